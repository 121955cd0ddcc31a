"""What `benchmarks.peer` and PyTorch say to each other: the same step, made by both."""

import contextlib
import pathlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from benchmarks.steps import cross_entropy, output_of
from hvin_jax.models import HighwayVIN


def torch_version(python: str) -> str:
    """The version of a Python's torch; an error if it has none."""
    command = [python, "-c", "import numpy, torch; print(torch.__version__)"]
    try:
        found = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(f"{python!r} is no Python with torch and numpy.") from None
    return found.stdout.strip()


def outcome_of(model: HighwayVIN, params: Any, data: dict[str, jax.Array]) -> dict[str, Any]:
    """What our step makes: value, logits, loss, gradients by name; and all actions taken."""

    def loss_of(params: Any) -> tuple[jax.Array, Any]:
        output = output_of(model, params, jax.random.key(1), data, diagnostics=True)
        return cross_entropy(output.logits, data["label"]), output

    (loss, output), grads = jax.jit(jax.value_and_grad(loss_of, has_aux=True))(params)
    outputs = {"value": output.values[-1], "logits": output.logits, "loss": loss}
    return jax.tree.map(np.asarray, {**grads["params"], **outputs, "actions": output.actions})


def for_torch(
    model: HighwayVIN, params: Any, data: dict[str, jax.Array], ours: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """What PyTorch needs to make the same step, channels before rows and columns."""
    dtype = params["params"]["reward"].dtype
    layers = ours["actions"].reshape(model.num_blocks, model.block_depth, *data["goal"].shape)
    arrays = {
        "maze": np.asarray(data["maze"], dtype),
        "goal": np.moveaxis(np.asarray(data["goal"], dtype), -1, 1),
        "label": np.asarray(data["label"], np.int64),
        # The first layer of a block is its VI module.
        "actions": np.moveaxis(layers[:, 1:], -1, -3).astype(np.int64),
    }
    return arrays | jax.tree.map(np.asarray, params["params"])


@contextlib.contextmanager
def torch_step(
    python: str, arrays: Mapping[str, Any]
) -> Iterator[tuple[Callable[[], None], Callable[[], Mapping[str, np.ndarray]]]]:
    """A process that waits between steps: a function that makes one, and what the first made."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "exchange.npz"
        np.savez(path, **arrays)
        script = pathlib.Path(__file__).parent / "highway_torch.py"
        command = [python, str(script), str(path)]
        with subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:

            def step() -> None:
                assert process.stdin is not None
                assert process.stdout is not None
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(b"\n")
                if not process.stdout.readline():
                    raise SystemExit("PyTorch did not finish its step; what it said is above.")

            yield step, lambda: np.load(folder + "/exchange-torch.npz")


def largest_difference(ours: Mapping[str, Any], theirs: Mapping[str, np.ndarray]) -> float:
    """The largest difference in anything of theirs, relative to its largest entry."""
    differences = [
        np.abs(ours[name] - other).max() / np.abs(other).max() for name, other in theirs.items()
    ]
    return float(np.max(differences))  # nan if one is

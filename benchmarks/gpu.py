r"""What training steps do on a GPU, counted without one.

    make gpu-env                                          # once: JAX with CUDA, 3 GB, in .gpu-env
    .gpu-env/bin/python -m benchmarks.gpu                 # all steps, for an A100 and an H100
    .gpu-env/bin/python -m benchmarks.gpu --steps=highway_vin-25-300,vin-25-30 --targets=a100
    .gpu-env/bin/python -m benchmarks.gpu --whole --check # ends with 1 if a limit is broken
    .gpu-env/bin/python -m benchmarks.gpu --json=FILE     # also keeps the figures

XLA compiles for a GPU that is not there: kernels, buffers and PTX are those that a user's GPU runs,
except that no matrix product has been tuned. Nothing runs. Launches are kernels and copies times
the trips of the loops around them. The two times are lower bounds and estimates: launches at 2.5 µs
each, and bytes at three quarters of the card's bandwidth. docs/gpus.md has the table.
"""

import dataclasses
import json
import os
import pathlib
import re
import tempfile
import time
from typing import Any

# Constants and shapes stay on the CPU: there is no GPU.
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
from absl import app, flags
from jax.experimental import topologies
from jax.sharding import AbstractDevice, AbstractMesh, SingleDeviceSharding, use_abstract_mesh

from benchmarks.gpu_program import Program, atomics, share_in_buffers
from benchmarks.harness import ROOT, note
from hvin_jax.models import DTVIN, GPPN, VIN, HighwayVIN, init_params
from hvin_jax.training import Imitation, devices, make_optimizer
from hvin_jax.training.maze_task import maze_forward
from hvin_jax.training.results import git_commit
from hvin_jax.training.step import create_state, make_train_step

BATCH = 32
LAUNCH_SECONDS = 2.5e-6
USED_BANDWIDTH = 0.75
TARGETS = pathlib.Path(__file__).parent / "gpu_targets"


@dataclasses.dataclass(frozen=True)
class Step:
    """A training step and the most that it may cost on an A100, all optional.

    Attributes:
      model: a planner.
      side: of the maps.
      objective: what is minimised.
      launches: limit.
      megabytes: limit of temporaries.
      gigabytes: limit of bytes moved.
    """

    model: Any
    side: int
    objective: Imitation = dataclasses.field(default_factory=lambda: Imitation(walls=True))
    launches: int | None = None
    megabytes: int | None = None
    gigabytes: int | None = None


def _highway(actions: int, blocks: int, depth: int) -> HighwayVIN:
    return HighwayVIN(latent_actions=actions, num_blocks=blocks, block_depth=depth)


def _dtvin(depth: int, side: int, every: int) -> Step:
    model = DTVIN(num_orientations=1, num_actions=4, depth=depth)
    return Step(model, side, Imitation(any_optimal=True, policies_every=every))


STEPS = {
    "highway_vin-25-300": Step(
        _highway(100, 30, 10), 25, launches=2700, megabytes=290, gigabytes=17
    ),
    "highway_vin-25-300-wide": Step(_highway(600, 30, 10), 25, launches=3500, megabytes=760),
    "highway_vin-15-100-cpu": Step(_highway(40, 20, 5), 15, launches=1200, megabytes=50),
    "vin-25-300": Step(VIN(depth=300), 25, launches=2500, megabytes=500, gigabytes=45),
    "vin-25-30": Step(VIN(depth=30), 25),
    "gppn-25-300": Step(GPPN(depth=300), 25, launches=6000, megabytes=1100),
    "dtvin-35-600": _dtvin(600, 35, 40),
    "dtvin-100-5000": _dtvin(5000, 100, 50),
}
COMPILE_SECONDS = 60
# So many launches more may the whole training step have, where launches have a limit.
WHOLE_LAUNCHES = 150
WHOLE = ", whole step"

_STEPS = flags.DEFINE_list("steps", list(STEPS), f"Which of {', '.join(STEPS)} to compile.")
_TARGETS = flags.DEFINE_list("targets", ["a100", "h100"], "Which of a100, h100 to compile for.")
_WHOLE = flags.DEFINE_boolean(
    "whole", False, "Also the whole training step on two cards: optimiser and all-reduce included."
)
_CHECK = flags.DEFINE_boolean("check", False, "End with 1 if a limit for an A100 is broken.")
_JSON = flags.DEFINE_string("json", None, "Also write the figures to this file.")


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one run of a step takes; see `benchmarks.gpu_program.Counts` for the first fields."""

    step: str
    target: str
    launches: int
    bytes: int
    flops: int
    scatter_adds: int
    temporaries: int
    in_buffers: float
    atomics: dict[str, int]
    compile_seconds: float
    launch_seconds: float
    byte_seconds: float


def main(argv: list[str]) -> None:
    """Compiles what was asked for and prints what it does."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    for flag, known in ((_STEPS, list(STEPS)), (_TARGETS, ["a100", "h100"])):
        for value in flag.value:
            if value not in known:
                raise app.UsageError(f"--{flag.name}={value}: expected {', '.join(known)}")
    costs = []
    for target in _TARGETS.value:
        for name in _STEPS.value:
            for whole in [False] + [True] * _WHOLE.value:
                note(f"compiling {name} for {target}{WHOLE * whole} ...")
                costs.append(measure(name, target, whole))
    print(f"commit {git_commit(ROOT)}, jax {jax.__version__}, batch {BATCH}, float32\n")
    print(table(costs))
    if _JSON.value:
        content = {"jax": jax.__version__, "steps": [dataclasses.asdict(x) for x in costs]}
        pathlib.Path(_JSON.value).write_text(json.dumps(content, indent=2))
    broken = [text for cost in costs for text in broken_limits(cost, costs)]
    print("\n".join(["", *broken]) if broken else "\nNo limit is broken.")
    if _CHECK.value and broken:
        raise SystemExit(1)


def loss_and_gradients(step: Step, cards: Any) -> Any:
    """The program, not yet compiled, for one card."""
    forward, every = maze_forward(step.model), step.objective.policies_every

    def loss(params: Any, key: jax.Array, batch: Any) -> jax.Array:
        options: dict[str, Any] = {"policies_every": every} if every else {}
        index = jnp.arange(BATCH)
        output = forward(params, batch, key=key, example_index=index, **options)
        sums = step.objective(output, batch)
        return sums.loss / sums.weight

    key = jax.random.key(0)
    params = jax.eval_shape(lambda key: init_params(step.model, key), key)
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=SingleDeviceSharding(cards[0])),
        (params, jax.eval_shape(lambda: key), batch_shapes(step)),
    )
    return jax.jit(jax.value_and_grad(loss)).lower(*shapes)


def whole_step(step: Step, cards: Any) -> Any:
    """The step as the training command runs it, not yet compiled: a batch for each card."""
    optimizer = make_optimizer()

    def init(key: jax.Array) -> Any:
        return create_state(key, init_params(step.model, key), optimizer)

    batch: Any = {
        name: jax.ShapeDtypeStruct((len(cards), *x.shape), x.dtype)
        for name, x in batch_shapes(step).items()
    }
    one = make_train_step(
        maze_forward(step.model), step.objective, optimizer, axis_name=devices.BATCH_AXIS
    )
    split: Any = devices.split_train_step(one, cards)
    return split.lower(jax.eval_shape(init, jax.random.key(0)), batch)


def measure(name: str, target: str, whole: bool = False) -> Cost:
    """Compiles a step: loss and gradients, or the whole one."""
    description = (TARGETS / f"{target}.txtpb").read_text()
    topology = topologies.get_topology_desc(
        platform="cuda", target_config=description, topology="1x1x2" if whole else "1x1x1"
    )
    # Kernels of our own ask what they are compiled for.
    card = AbstractDevice(f"NVIDIA {target.upper()}", num_cores=None, platform="gpu")
    with use_abstract_mesh(AbstractMesh((), (), abstract_device=card)):
        lowered = (whole_step if whole else loss_and_gradients)(STEPS[name], topology.devices)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        compiled = lowered.compile({"xla_dump_to": folder, "xla_dump_emitter_re": "ptx"})
        seconds = time.perf_counter() - began
        program = Program(compiled.as_text() or "")
        dump = pathlib.Path(folder)
        ptx = "".join(path.read_text() for path in dump.glob("*.ptx"))
        # The last list is the one that runs; command buffers, if any, are made between the two.
        thunks = max(dump.glob("*thunk_sequence*.txt"), key=lambda path: len(path.name))
        in_buffers = share_in_buffers(thunks.read_text(), program.trips())
    memory = compiled.memory_analysis()
    assert memory is not None
    counts = program.counts()
    bandwidth = float(re.findall(r"memory_bandwidth: (\d+)", description)[0])
    return Cost(
        step=name + WHOLE * whole,
        target=target,
        **dataclasses.asdict(counts),
        temporaries=memory.temp_size_in_bytes,
        in_buffers=in_buffers,
        atomics=dict(atomics(ptx)),
        compile_seconds=seconds,
        launch_seconds=LAUNCH_SECONDS * counts.launches,
        byte_seconds=counts.bytes / (USED_BANDWIDTH * bandwidth),
    )


def batch_shapes(step: Step) -> dict[str, jax.ShapeDtypeStruct]:
    """A batch as training has it."""
    states = (BATCH, step.side, step.side, step.model.num_orientations)
    shapes = {
        "maze": (states[:3], jnp.uint8),
        "goal": ((BATCH, 3), jnp.int32),
        "label": (states, jnp.uint8),
        "optimal": (states, jnp.uint8),
        "spl": (states, jnp.uint16),
    }
    return {name: jax.ShapeDtypeStruct(*x) for name, x in shapes.items()}


def table(costs: list[Cost]) -> str:
    """As Markdown."""
    lines = [
        "| step | card | launches | in command buffers | temporaries | bytes | products "
        "| scatter-adds | atomics in the PTX | compiled in | bound by launches | by bytes |",
        "|---" * 12 + "|",
    ]
    for x in costs:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(x.atomics.items())) or "none"
        lines.append(
            f"| {x.step} | {x.target} | {x.launches:,} | {x.in_buffers:.0%} "
            f"| {x.temporaries / 1e6:,.0f} MB | {x.bytes / 1e9:.1f} GB "
            f"| {x.flops / 1e12:.2f} TFLOP | {x.scatter_adds / 1e6:,.0f} M | {kinds} "
            f"| {x.compile_seconds:.0f} s "
            f"| {1e3 * x.launch_seconds:.1f} ms | {1e3 * x.byte_seconds:.1f} ms |"
        )
    return "\n".join(lines)


def broken_limits(cost: Cost, others: list[Cost]) -> list[str]:
    """A sentence for each limit that a step for an A100 breaks.

    Args:
      cost: of the step.
      others: among them, for a whole step, that of its loss and gradients.
    """
    step = STEPS[cost.step.removesuffix(WHOLE)]
    limits: list[tuple[str, float, float | None, int, str]] = [
        ("seconds to compile", cost.compile_seconds, COMPILE_SECONDS, 1, ""),
        ("compare-and-swap loops", cost.atomics.get("compare-and-swap", 0), 0, 1, ""),
    ]
    if cost.step.endswith(WHOLE):
        alone = (cost.step.removesuffix(WHOLE), cost.target)
        most = next(x.launches for x in others if (x.step, x.target) == alone) + WHOLE_LAUNCHES
        limits.append(("launches", cost.launches, most if step.launches else None, 1, ""))
    else:
        limits += [
            ("launches", cost.launches, step.launches, 1, ""),
            ("temporaries", cost.temporaries, step.megabytes, 10**6, " MB"),
            ("bytes moved", cost.bytes, step.gigabytes, 10**9, " GB"),
        ]
    return [
        f"{cost.step}: {number / unit:,.0f}{suffix} {what}, expected at most {most:,}{suffix}"
        for what, number, most, unit, suffix in limits
        if cost.target == "a100" and most is not None and number > most * unit
    ]


if __name__ == "__main__":
    app.run(main)

"""What more devices bring, and what their all-reduce of gradients costs.

    python -m benchmarks.scaling [--config=experiments/configs/paper.py:highway_vin-25-300]

Times a training step with a batch of fixed size, split over 1, 2, 4, … devices, and the all-reduce
by itself, of a vector as long as the step's. Without an accelerator, CPU devices share the
cores. With --coordinator, --num_processes and --process_id, which are those of the training
commands, it times a step on all devices of all processes only.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from absl import app, flags
from ml_collections import config_flags

from benchmarks.harness import Figure, best_seconds, note, report
from experiments.launch.exits import end_alone
from experiments.launch.settings import model_of, recipe_of
from hvin_jax.models import init_params
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training import devices, hosts
from hvin_jax.training.evaluation import num_params
from hvin_jax.training.maze_task import maze_forward, training_arrays
from hvin_jax.training.step import create_state, make_train_step

_CONFIG = config_flags.DEFINE_config_file(
    "config",
    "experiments/configs/cpu.py:highway_vin-15-100",
    "The model and the size of the batch.",
)
_JSON = flags.DEFINE_string("json", None, "Also write the figures to this file.")
_REPEATS = flags.DEFINE_integer("repeats", 5, "Timed runs of each contestant.", lower_bound=1)
_CPU_DEVICES = flags.DEFINE_integer(
    "cpu_devices", 0, "Without an accelerator: how many devices; 0: up to four a core."
)
_COORDINATOR = flags.DEFINE_string("coordinator", None, "HOST:PORT of the first process.")
_NUM_PROCESSES = flags.DEFINE_integer("num_processes", 1, "How many processes there are.")
_PROCESS_ID = flags.DEFINE_integer("process_id", 0, "Which of them this is, from 0.")


def main(argv: list[str]) -> None:
    """Measures and, in the first process, prints a Markdown table."""
    del argv
    jax.config.update(
        "jax_num_cpu_devices", _CPU_DEVICES.value or devices.PER_CORE * devices.usable_cores()
    )
    if _COORDINATOR.value:
        which = _NUM_PROCESSES.value, _PROCESS_ID.value
        hosts.join(_COORDINATOR.value, *which, lambda: end_alone("scaling"))
    counts = [jax.device_count()]
    while not hosts.are_several() and counts[-1] > 1:
        counts.append(counts[-1] // 2)
    counts.reverse()
    note(f"{jax.process_count()} processes, devices: {', '.join(map(str, counts))}; compiling ...")
    length = num_params(jax.eval_shape(_init))
    steps = {
        f"step, batch {_CONFIG.value.train.batch_size}, {_devices(n)}": _step(n) for n in counts
    }
    sums = {
        f"all-reduce of {4 * length / 1e6:.2f} MB, {_devices(n)}": _sum(n, length) for n in counts
    }
    seconds = best_seconds(steps | sums, _REPEATS.value)
    if hosts.is_first():
        figures = [Figure(name, 1e3 * time, "ms") for name, time in seconds.items()]
        report(figures, _JSON.value)
    hosts.leave_together()


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"


def _init() -> Any:
    return init_params(model_of(_CONFIG.value), jax.random.key(0))


def _step(count: int) -> Callable[[], Any]:
    """A training step on some devices."""
    config = _CONFIG.value
    batch_size, size = config.train.batch_size, config.data.size
    mechanism = get_mechanism(config.data.mechanism)
    mazes = make_mazes(
        law=MazeLaw((size, size)), mechanism=mechanism, train=batch_size, valid=0, test=0, seed=0
    )
    recipe = recipe_of(config)
    optimizer = recipe.make_optimizer()
    step = devices.split_train_step(
        make_train_step(
            maze_forward(model_of(config)), recipe.loss, optimizer, axis_name=devices.BATCH_AXIS
        ),
        None if hosts.are_several() else jax.devices()[:count],
    )
    batch: Any = devices.split(training_arrays(mazes.train), 0 if hosts.are_several() else count)
    states = [create_state(jax.random.key(1), jax.jit(_init)(), optimizer)]

    def run() -> Any:
        states[0], metrics = step(states[0], batch)
        return metrics

    return run


def _sum(count: int, length: int) -> Callable[[], Any]:
    """The sum of a vector over some devices, on each of which it lies."""
    local = count // jax.process_count()
    add = devices.all_reduce(None if hosts.are_several() else jax.devices()[:count])
    vector = add(jnp.ones((local, length), jnp.float32))
    return lambda: add(vector)


if __name__ == "__main__":
    app.run(main)

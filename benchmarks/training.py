"""Does the input pipeline make the training step wait? What does it cost to see costs?

    python -m benchmarks.training [--json=FILE]

Times training steps of a small VIN, split over CPU devices as in training, with a batch that is
already there, with batches from a copy of the data on the device, and with streamed ones. A small
model is the hardest case: the shorter the step, the less time there is to prepare the next batch.
Then those of a highway VIN of the cpu size, with and without the channels of what cells cost. Takes
about three minutes. Prints the table that stands in benchmarks/README.md.
"""

import collections
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

from benchmarks.harness import Figure, best_seconds, note, report
from hvin_jax.models import VIN, HighwayVIN
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training import batches, devices
from hvin_jax.training.maze_task import maze_forward, training_arrays
from hvin_jax.training.objective import Imitation
from hvin_jax.training.optimizers import make_optimizer
from hvin_jax.training.step import create_state, make_train_step

_JSON = flags.DEFINE_string("json", None, "Also write the figures to this file.")
_STEPS = flags.DEFINE_integer("steps", 20, "Steps in each timed run.", lower_bound=1)
_REPEATS = flags.DEFINE_integer("repeats", 5, "Timed runs of each contestant.", lower_bound=1)
BATCH = 32


def main(argv: list[str]) -> None:
    """Measures, prints a Markdown table and writes it as JSON if asked to."""
    del argv
    jax.config.update("jax_num_cpu_devices", devices.PER_CORE * devices.usable_cores())
    note("making mazes ...")
    arrays = _arrays(5000)
    indices = [_indices(5000) for _ in range(3)]
    model = VIN(latent_actions=10, depth=5)
    there = itertools.repeat(next(batches.batches_on_device(arrays, indices[0])))
    feeds: dict[str, Iterator[Any]] = {
        "the same batch every time": there,
        "data on the device": batches.batches_on_device(arrays, indices[1]),
        "data streamed": batches.batches_streamed(arrays, indices[2]),
    }
    contestants = {name: trainer(model, feed) for name, feed in feeds.items()}
    note("timing ...")
    seconds = best_seconds(contestants, _REPEATS.value)
    first = seconds["the same batch every time"]
    figures = []
    for name, time in seconds.items():
        figures.append(Figure(f"step, {name}", 1e3 * time / _STEPS.value, "ms"))
        if time != first:
            figures.append(Figure(f"{name} / the same batch every time", time / first, "×"))
    figures += _with_costs()
    report(figures, _JSON.value)


def _with_costs() -> list[Figure]:
    """What a step takes longer where cells have costs."""
    contestants = {
        terrain: trainer(
            HighwayVIN(latent_actions=40, terrain=terrain),
            batches.batches_streamed(_arrays(500, (1, 9) if terrain else None), _indices(500)),
        )
        for terrain in (False, True)
    }
    seconds = best_seconds(contestants, _REPEATS.value)
    step = 1e3 * seconds[False] / _STEPS.value
    return [
        Figure("step of highway VIN, cpu size", step, "ms"),
        Figure("the same with costs / without", seconds[True] / seconds[False], "×", 1.05),
    ]


def _arrays(count: int, costs: tuple[float, float] | None = None) -> dict[str, np.ndarray]:
    mazes = make_mazes(
        law=MazeLaw((15, 15)),
        mechanism=get_mechanism("diffdrive"),
        train=count,
        valid=0,
        test=0,
        seed=0,
        costs=costs,
    )
    return training_arrays(mazes.train)


def _indices(count: int) -> Iterator[np.ndarray]:
    return batches.batch_indices(num_examples=count, batch_size=BATCH, seed=0, first_step=0)


def trainer(model: Any, feed: Iterator[Any]) -> Callable[[], Any]:
    """A function that makes some training steps with the next batches of a feed."""
    optimizer = make_optimizer()
    step = devices.split_train_step(
        make_train_step(maze_forward(model), Imitation(), optimizer, axis_name=devices.BATCH_AXIS)
    )
    maze, goal = jnp.zeros((1, 15, 15)), jnp.zeros((1, 15, 15, 4))
    params = model.init(jax.random.key(0), maze, goal, train=False)
    states = [create_state(jax.random.key(1), params, optimizer)]

    def run() -> Any:
        under_way: collections.deque[Any] = collections.deque()
        for _ in range(_STEPS.value):
            states[0], metrics = step(states[0], next(feed))
            under_way.append(metrics)
            if len(under_way) > devices.steps_in_flight():
                jax.block_until_ready(under_way.popleft())
        return metrics

    return run


if __name__ == "__main__":
    app.run(main)

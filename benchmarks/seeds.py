"""Is it faster to train seeds together than one after another?

    python -m benchmarks.seeds [--json=FILE]

Times one training step of each of four seeds, made as one computation (`--seeds=0,1,2,3` of the
training commands) and one by one, split over CPU devices as in training or on the accelerators that
there are. Prints the table that stands in benchmarks/README.md.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from absl import app, flags

from benchmarks.harness import Figure, best_seconds, note, report
from hvin_jax.models import HighwayVIN
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training import devices
from hvin_jax.training.evaluation import training_arrays
from hvin_jax.training.objective import Imitation
from hvin_jax.training.optimizers import make_optimizer
from hvin_jax.training.state import TrainState, create_state
from hvin_jax.training.step import make_train_step, maze_forward

_JSON = flags.DEFINE_string("json", None, "Also write the figures to this file.")
_REPEATS = flags.DEFINE_integer("repeats", 20, "Timed steps of each contestant.", lower_bound=1)
SEEDS = 4
# Side of the mazes, batch size, and the model.
SIZES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "tiny": (7, 8, {"num_blocks": 2, "block_depth": 2, "latent_actions": 4, "hidden": 4}),
    "quickstart": (11, 32, {"num_blocks": 8, "block_depth": 5, "latent_actions": 20}),
    "cpu": (15, 32, {"num_blocks": 20, "block_depth": 5, "latent_actions": 40}),
}


def main(argv: list[str]) -> None:
    """Measures, prints a Markdown table and writes it as JSON if asked to."""
    del argv
    jax.config.update("jax_num_cpu_devices", devices.PER_CORE * devices.usable_cores())
    figures = []
    for name, (side, batch, settings) in SIZES.items():
        note(f"{name} ...")
        together, in_turn = contestants(HighwayVIN(**settings), side, batch)
        seconds = best_seconds({"together": together, "in turn": in_turn}, _REPEATS.value)
        for how, time in seconds.items():
            figures.append(Figure(f"{name}: a step of {SEEDS} seeds, {how}", 1e3 * time, "ms"))
        ratio = seconds["in turn"] / seconds["together"]
        figures.append(Figure(f"{name}: in turn / together", ratio, "×"))
    report(figures, _JSON.value)


def contestants(model: HighwayVIN, side: int, batch: int) -> list[Callable[[], Any]]:
    """Two functions that make one step of every seed: together, and in turn."""
    mazes = make_mazes(
        law=MazeLaw((side, side)),
        mechanism=get_mechanism("diffdrive"),
        train=batch,
        valid=0,
        test=0,
        seed=0,
    )
    data: Any = devices.split(training_arrays(mazes.train))
    optimizer = make_optimizer()
    step = make_train_step(
        maze_forward(model), Imitation(), optimizer, axis_name=devices.BATCH_AXIS
    )
    one, several = devices.pmap_train_step(step), devices.pmap_train_steps(step)

    def fresh(seed: int) -> TrainState:
        key = jax.random.key(seed)
        maze, goal = jnp.zeros((1, side, side)), jnp.zeros((1, side, side, 4))
        params = model.init(key, maze, goal, train=False)
        return devices.replicate(create_state(key, params, optimizer))

    groups = [[fresh(seed) for seed in range(SEEDS)] for _ in range(2)]

    def together() -> Any:
        made = several(groups[0], [data] * SEEDS)
        groups[0] = [state for state, _ in made]
        return made

    def in_turn() -> Any:
        for seed in range(SEEDS):
            groups[1][seed], metrics = jax.block_until_ready(one(groups[1][seed], data))
        return metrics

    return [together, in_turn]


if __name__ == "__main__":
    app.run(main)

r"""Trains a planner by reward alone: an actor-critic in mazes, tested from all start states.

    python -m experiments.reward
    python -m experiments.reward --start=random --workdir=runs/reward-random

Agents walk through training mazes and are rewarded at the goal; nobody tells them the shortest
paths (docs/reward.md). The planner that does best on the validation mazes is kept and tested on
mazes it has not seen. What it writes to --workdir: planner/ for `hvin_jax.load_planner`, whenever
there is a better one; at the end result.json, curves.png and examples.png. Ctrl-C ends the training
after the updates under way; the best planner so far is there.
"""

import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from absl import flags

import hvin_jax
from experiments.launch.console import say
from experiments.launch.exits import INTERRUPTED, readable_errors, run_main, stop_signals
from hvin_jax import Planner, load_planner, save_planner
from hvin_jax._files import write_json
from hvin_jax.models import make_model
from hvin_jax.tasks import (
    MazeData,
    MazeLaw,
    MazeSplits,
    Scores,
    evaluate,
    get_mechanism,
    make_mazes,
)
from hvin_jax.tasks.environment import MazeEnv
from hvin_jax.tasks.mechanisms import MECHANISMS, Mechanism
from hvin_jax.training import WorkdirError
from hvin_jax.training.actor_critic import ActorCritic, learn
from hvin_jax.training.evaluation import Evaluation
from hvin_jax.training.results import environment, git_commit, scores_table, test_scores
from hvin_jax.training.workdir import locked

_MODEL = flags.DEFINE_enum("model", "dtvin", ["dtvin", "highway_vin"], "What plans.")
_START = flags.DEFINE_enum(
    "start",
    "moves",
    ["moves", "random"],
    "How a DT-VIN starts: moves: its kernels as the agent's moves, rewards at the goal; random.",
)
_DEPTH = flags.DEFINE_integer("depth", 40, "Layers, a multiple of 5.", 5, 5000)
_MECHANISM = flags.DEFINE_enum("mechanism", "diffdrive", sorted(MECHANISMS), "How agents move.")
_SIZE = flags.DEFINE_integer("size", 9, "The side of the mazes.", 5, 101)
_MAZES = flags.DEFINE_integer("mazes", 4000, "Mazes to train in.", 1, 1_000_000)
_UNSEEN = flags.DEFINE_integer("unseen", 1000, "Mazes to validate with, and to test.", 1, 100_000)
_DATA_SEED = flags.DEFINE_integer("data_seed", 1, "What they are drawn from.", 0, 2**62)
_SEED = flags.DEFINE_integer("seed", 0, "What everything else is drawn from.", 0, 2**62)
_UPDATES = flags.DEFINE_integer("updates", 600, "How often to learn.", 1, 10**7)
_EVERY = flags.DEFINE_integer("every", 50, "Validate after so many updates.", 1, 10**7)
_MAPS = flags.DEFINE_integer("maps", 32, "Mazes of an update.", 1, 10**5)
_AGENTS = flags.DEFINE_integer("agents", 16, "Agents in each of them.", 1, 10**5)
_STEPS = flags.DEFINE_integer("steps", 32, "Actions of each agent.", 1, 10**5)
_EPOCHS = flags.DEFINE_integer("epochs", 4, "How often an update goes over them.", 1, 1000)
_LEARNING_RATE = flags.DEFINE_float("learning_rate", 3e-3, "Of Adam; falls to zero by a cosine.")
_ENTROPY = flags.DEFINE_float("entropy", 0.02, "Weight of the entropy of the policy.", 0.0)
_WALL_REWARD = flags.DEFINE_float("wall_reward", 0.0, "For moving into a wall that is a trap.")
_WORKDIR = flags.DEFINE_string("workdir", "runs/reward", "Folder to write to.")
_PICTURES = flags.DEFINE_bool("pictures", True, "Draw what the planner does.")


def main() -> None:
    """Runs the command."""
    with readable_errors("reward"):
        folder, motion = pathlib.Path(_WORKDIR.value), get_mechanism(_MECHANISM.value)
        settings = _settings(motion)
        make_model(**settings)  # impossible ones show here
        how = ActorCritic(
            num_maps=_MAPS.value,
            num_agents=_AGENTS.value,
            num_steps=_STEPS.value,
            epochs=_EPOCHS.value,
            entropy=_ENTROPY.value,
        )
        with locked(folder), stop_signals() as asked_to_stop:
            if (folder / "planner").exists():
                raise WorkdirError(f"{folder} has a planner already: choose another --workdir")
            mazes = make_mazes(
                law=MazeLaw((_SIZE.value, _SIZE.value)),
                mechanism=motion,
                train=_MAZES.value,
                valid=_UNSEEN.value,
                test=_UNSEEN.value,
                seed=_DATA_SEED.value,
            )
            result = _train(folder, settings, how, mazes, asked_to_stop)
            say(f"\nunseen mazes, untrained: {_percent(result['untrained'])}; trained:\n")
            say(scores_table(result["test"]))
            if _PICTURES.value:
                _draw(folder, result["history"], mazes.test)
            say(
                f"\n{folder}: result.json, planner/{', curves.png, examples.png' * _PICTURES.value}"
            )


def _settings(motion: Mechanism) -> dict[str, Any]:
    """What to train, as `make_model` takes it."""
    if _DEPTH.value % 5:
        raise ValueError(f"--depth={_DEPTH.value} is not a multiple of 5")
    sizes = {"num_orientations": motion.num_orientations, "num_actions": motion.num_actions}
    if _MODEL.value == "highway_vin":
        blocks = {"num_blocks": _DEPTH.value // 5, "block_depth": 5}
        small = {"latent_actions": 20, "hidden": 50, "kernel_size": 3}
        # Agents explore here, not the planner: the policy that acts is the one that is tested.
        small["value_exploration"] = False
        return {"kind": "highway_vin", **sizes, **blocks, **small}
    start: dict[str, Any] = {"moves": motion.moves}
    if _START.value == "random":
        # Kernels that do not start as moves need not become any: they stay as they were learned.
        drawn = {"kernel_start": "random", "reward_start": "random"}
        start = {**drawn, "apart": 1.0, "sharpness": 1.0}
    return {"kind": "dtvin", **sizes, "depth": _DEPTH.value, **start}


def _train(
    folder: pathlib.Path,
    settings: dict[str, Any],
    how: ActorCritic,
    mazes: MazeSplits,
    asked_to_stop: Callable[[], bool],
) -> dict[str, Any]:
    """Learns, keeps what does best on the validation mazes, tests and saves it."""
    learning = learn(
        jax.random.key(_SEED.value),
        make_model(**settings),
        MazeEnv.from_data(mazes.train, wall_reward=_WALL_REWARD.value),
        how,
        num_updates=_UPDATES.value,
        every=_EVERY.value,
        learning_rate=_LEARNING_RATE.value,
    )
    card: dict[str, Any] = {"name": folder.name, "config": {"data": _data(), "train": _flags()}}
    history: list[dict[str, Any]] = []
    began = time.monotonic()
    for progress in learning:
        planner = Planner(settings, progress.params, mazes.mechanism, card)
        line = {"update": progress.updates, **_rates(planner, mazes.valid)}
        if progress.report is None:
            first = planner
        else:
            line |= progress.report._asdict()
        is_best = not history or _order(line) > max(map(_order, history))
        history.append(line)
        if is_best:
            best, best_update = planner, progress.updates
            save_planner(folder / "planner", planner)
        reward = f"reward {line['reward']:.4f} an action, " if "reward" in line else ""
        say(
            f"{progress.updates} updates, {time.monotonic() - began:.0f} s: {reward}validation "
            f"{_percent(line)}{' (best)' * is_best}"
        )
        if asked_to_stop():
            say(f"{folder / 'planner'}: the planner after {best_update} updates, not tested")
            sys.exit(INTERRUPTED)
    result = {
        "flags": _flags(),
        "model": best.settings,
        "num_params": sum(x.size for x in jax.tree.leaves(best.params)),
        "actions": _UPDATES.value * how.num_maps * how.num_agents * how.num_steps,
        "wall_seconds": time.monotonic() - began,
        "best_update": best_update,
        "history": history,
        "untrained": _test(first, mazes.test),
        "test": _test(best, mazes.test),
        "commit": git_commit(pathlib.Path(hvin_jax.__file__).parent),
        **environment(),
    }
    best.card["test"] = result["test"]
    save_planner(folder / "planner", best)
    write_json(folder / "result.json", result)
    return result


def _measure(planner: Planner, data: MazeData) -> Scores:
    """How the greedy policy does from all start states."""
    return evaluate(_policy(planner, data), data)


def _policy(planner: Planner, data: MazeData) -> np.ndarray:
    logits = planner.policy(data.maze, data.goal, layers="own").logits
    return np.asarray(logits).argmax(-1).astype(np.uint8)


def _rates(planner: Planner, data: MazeData) -> dict[str, float]:
    scores = _measure(planner, data)
    return {"success_rate": scores.success_rate, "optimality_rate": scores.optimality_rate}


def _order(line: dict[str, Any]) -> tuple[float, float]:
    """The better planner has the higher success rate, of two that are equal the shorter paths."""
    return line["success_rate"], line["optimality_rate"]


def _test(planner: Planner, data: MazeData) -> dict[str, Any]:
    scores = test_scores(Evaluation(_measure(planner, data), constant_action=None), data)
    return {"data": _data(), **scores}


def _data() -> dict[str, Any]:
    return {
        "mechanism": _MECHANISM.value,
        "size": _SIZE.value,
        "train": _MAZES.value,
        "seed": _DATA_SEED.value,
    }


def _flags() -> dict[str, Any]:
    """The flags of this command with their values."""
    return {x.name: x.value for x in globals().values() if isinstance(x, flags.FlagHolder)}


def _percent(rates: dict[str, Any]) -> str:
    return f"SR {100 * rates['success_rate']:.2f} %, OR {100 * rates['optimality_rate']:.2f} %"


def _draw(folder: pathlib.Path, history: list[dict[str, Any]], data: MazeData) -> None:
    # Here, because matplotlib takes long to import.
    from hvin_jax.report.curves import reward_curves
    from hvin_jax.tasks.drawing import mazes_figure, save_figure

    save_figure(reward_curves(history), folder / "curves.png")
    shown = data[: min(8, len(data))]
    policy = _policy(load_planner(folder), shown)
    save_figure(mazes_figure(shown, policy=policy), folder / "examples.png")


if __name__ == "__main__":
    run_main("reward", main)

"""What all training commands share: from a configuration to a finished folder.

A launcher builds a `Task` from its configuration and calls `run`. The rest is the same for all: the
folder is claimed and locked, training resumes from the newest checkpoint, the best model by
validation is tested, and results, pictures and the planner are written.
"""

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.console import Console, Silence, announce, bar
from hvin_jax._files import write_json, write_text
from hvin_jax.models import make_model
from hvin_jax.planner import Planner, load_planner, save_planner
from hvin_jax.report.cards import card_text
from hvin_jax.report.curves import learning_curves
from hvin_jax.report.plans import plan_figure
from hvin_jax.report.results import environment, git_commit, scores_dict, spl_ranges
from hvin_jax.tasks.drawing import mazes_figure, save_figure
from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.tasks.measures import farthest_start, start_states
from hvin_jax.tasks.mechanisms import Mechanism, get_mechanism
from hvin_jax.training import batches, devices, hosts, loop, workdir
from hvin_jax.training.checkpoints import Best, Checkpoints, Snapshot
from hvin_jax.training.evaluation import (
    Evaluation,
    decisions,
    evaluate_policy,
    num_params,
)
from hvin_jax.training.objective import Imitation
from hvin_jax.training.optimizers import make_optimizer
from hvin_jax.training.state import Params, create_state
from hvin_jax.training.step import (
    Augment,
    Decisions,
    EvalStep,
    Forward,
    make_eval_step,
    make_train_step,
)
from hvin_jax.training.together import Place

SELECT = ("optimality", "success")


@dataclasses.dataclass(frozen=True)
class Split:
    """Some mazes and what the model looks at.

    Attributes:
      data: the mazes.
      arrays: the model's input by name, `[n, ...]` each.
    """

    data: MazeData
    arrays: Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Task:
    """What is trained, and on what.

    Attributes:
      forward: applies the model to a batch.
      init: makes parameters from a key.
      train: input and labels of the training mazes, by name.
      valid: the mazes that select a model.
      test: the mazes that measure the selected one.
      collate: makes a batch for the devices, if more is to be done than to split it.
      augment: changes training batches at random, if anything does.
      planner_params: the parameters of the planner among those of the model.
      write_more: writes what a run of this task has besides, given its folder, the best parameters
        and the decisions on the test mazes.
    """

    forward: Forward
    init: Callable[[jax.Array], Params]
    train: Mapping[str, np.ndarray]
    valid: Split
    test: Split
    collate: batches.Collate | None = None
    augment: Augment | None = None
    planner_params: Callable[[Params], Params] = lambda params: params
    write_more: Callable[[pathlib.Path, Params, Decisions], None] = lambda *_: None

    @functools.cached_property
    def eval_step(self) -> EvalStep:
        """One for validation and test, so that it is compiled once."""
        return devices.pmap_eval_step(make_eval_step(self.forward))


class Settings:
    """A configuration turned into objects, so that mistakes show before anything starts."""

    def __init__(self, config: ConfigDict, num_examples: int) -> None:
        """Checks everything that can be checked without data."""
        self.config = config
        self.batch_size = config.train.batch_size
        self.eval_batch_size = config.eval.batch_size or self.batch_size
        for size in (self.batch_size, self.eval_batch_size):
            devices.check_batch_size(size)
        self.feed = batches.choose_feed(config.train.feed)
        if config.eval.select not in SELECT:
            raise ValueError(
                f"config.eval.select is {config.eval.select!r}, expected one of {', '.join(SELECT)}"
            )
        per_epoch = batches.steps_per_epoch(num_examples, self.batch_size)
        num_steps = config.train.num_steps or config.train.num_epochs * per_epoch
        self.plan = loop.Plan(
            num_steps=num_steps,
            validate_every=config.eval.every_steps or per_epoch,
            skip_not_finite=config.train.skip_not_finite,
            stop_after_collapses=config.train.stop_after_collapses,
        )
        self.optimizer = make_optimizer(
            config.optimizer.name,
            learning_rate=config.optimizer.learning_rate,
            clip_norm=config.optimizer.clip_norm or None,
            plain_norm=config.optimizer.plain_norm,
            schedule=config.optimizer.schedule,
            warmup_steps=config.optimizer.warmup_steps,
            num_steps=num_steps,
        )
        self.objective = Imitation(**config.loss)

    def score(self, evaluation: Evaluation) -> float:
        """What makes one model better than another."""
        scores = evaluation.scores
        by_success = self.config.eval.select == "success"
        return scores.success_rate if by_success else scores.optimality_rate


def use_cpu_devices(count: int, batch_size: int) -> None:
    """Divides the CPU into devices, where there is no accelerator.

    Splitting a batch over devices is faster than sharing the loops of one batch among cores.

    Args:
      count: how many devices; 0: several a core, as far as they share a batch evenly.
      batch_size: of this process; 0: one that all devices share evenly, however many they are.
    """
    evenly = devices.even_number(batch_size, devices.usable_cores())
    jax.config.update("jax_num_cpu_devices", count or evenly)


def check(config: ConfigDict) -> Settings:
    """Raises for what is wrong with a configuration, as far as it shows before there are data."""
    num_examples = config.train.batch_size if config.data.file else config.data.train
    settings = Settings(config, num_examples)
    mechanism = get_mechanism(config.data.mechanism)
    model = model_of(config, mechanism)
    maze = jnp.zeros((1, config.data.size, config.data.size))
    goal = jnp.zeros((*maze.shape, model.num_orientations))
    jax.eval_shape(lambda: model.init(jax.random.key(0), maze, goal, train=False))
    first_weights(config, mechanism)
    return settings


def model_of(config: ConfigDict, mechanism: Mechanism) -> Any:
    """The planner of a configuration for a mechanism."""
    return make_model(**model_settings(config, mechanism))


def model_settings(config: ConfigDict, mechanism: Mechanism) -> dict[str, Any]:
    """Kind and fields of the planner, what the task decides included."""
    return {
        **config.model,
        "num_orientations": mechanism.num_orientations,
        "num_actions": mechanism.num_actions,
    }


def first_weights(config: ConfigDict, mechanism: Mechanism) -> Params | None:
    """The parameters that the planner begins with; None if they are drawn at random."""
    source = config.train.weights
    if not source:
        return None
    other = load_planner(source)
    if other.mechanism.name != mechanism.name:
        raise ValueError(f"{source} is a planner for {other.mechanism.name}, not {mechanism.name}")
    try:
        return Planner(model_settings(config, mechanism), other.params, mechanism).params
    except ValueError as error:
        raise ValueError(f"config.train.weights={source}: {error}") from error


def train(
    task: Task,
    settings: Settings,
    folder: pathlib.Path,
    *,
    asked_to_stop: Callable[[], bool],
    place: Place | None = None,
) -> Snapshot:
    """Trains, or goes on training, in a folder that is locked and claimed.

    Args:
      task: what is trained.
      settings: how.
      folder: of the run.
      asked_to_stop: looked at before each step.
      place: of this run among several that train together.

    Returns:
      The last snapshot.
    """
    config, is_first = settings.config, hosts.is_first()
    label = f"seed {config.seed}: " if place else ""

    def tell(text: str) -> None:
        announce(f"{label}{text}")

    params_key, noise_key = jax.random.split(jax.random.key(config.seed))
    step = make_train_step(
        task.forward,
        settings.objective,
        settings.optimizer,
        axis_name=devices.BATCH_AXIS,
        augment=task.augment,
    )
    valid = task.valid
    if config.eval.valid_mazes:
        part = slice(config.eval.valid_mazes)
        valid = Split(valid.data[part], {name: x[part] for name, x in valid.arrays.items()})

    def validate(params: Params) -> Evaluation:
        made = decisions(
            task.eval_step,
            params,
            valid.arrays,
            batch_size=settings.eval_batch_size,
            collate=task.collate or devices.split,
        )
        return evaluate_policy(made.policy, valid.data, made.free)

    params = jax.jit(task.init)(params_key)
    hosts.check_agreement(
        configuration=config.to_dict(), data=dict(task.train), initialisation=params
    )
    fresh = Snapshot(
        state=create_state(noise_key, params, settings.optimizer),
        best=Best.none(jax.tree.map(jnp.copy, params)),
        collapsed=jnp.zeros((), jnp.int32),
        seconds=jnp.zeros(()),
    )
    checkpoints = Checkpoints(folder / "checkpoints")
    restored = checkpoints.restore(fresh, tell)
    snapshot = devices.replicate(fresh if restored is None else restored)
    first_step = int(snapshot.state.step)
    if restored is not None:
        tell(f"resuming after step {first_step} of {settings.plan.num_steps}")
    several = f"{jax.process_count()} processes, " if jax.process_count() > 1 else ""
    tell(
        f"{several}{jax.device_count()} {jax.default_backend()} devices: batches of "
        f"{settings.batch_size}, {settings.batch_size // jax.device_count()} a device"
    )
    if is_first:
        commit = git_commit(pathlib.Path(__file__).parent)
        together = place.num_runs if place else 1
        workdir.note_sitting(folder, first_step=first_step, commit=commit, together=together)
    console = (
        Console(
            folder,
            first_step=first_step,
            num_steps=settings.plan.num_steps,
            actions=valid.data.mechanism.actions,
            say=tell,
            label=label,
        )
        if is_first
        else Silence()
    )
    indices = batches.batch_indices(
        num_examples=len(next(iter(task.train.values()))),
        batch_size=settings.batch_size,
        seed=config.seed,
        first_step=first_step,
    )
    if task.collate is None:
        feed = batches.FEEDS[settings.feed](task.train, indices)
    else:  # on the host, which is where batches are streamed from
        feed = batches.batches_streamed(task.train, indices, task.collate)
    with contextlib.closing(console):
        last = loop.fit(
            snapshot,
            settings.plan,
            train_step=place.train_step(step) if place else devices.pmap_train_step(step),
            batches=feed,
            validate=validate,
            score=settings.score,
            checkpoints=checkpoints,
            watcher=console,
            asked_to_stop=asked_to_stop,
        )
    checkpoints.close()
    if isinstance(console, Console):
        save_figure(learning_curves(console.log.history, title=config.name), folder / "curves.png")
    return last


def test_policy(
    eval_step: EvalStep,
    params: Params,
    split: Split,
    batch_size: int,
    collate: batches.Collate | None,
) -> tuple[Decisions, dict[str, Any]]:
    """What a model decides on some mazes, and its scores as they stand in `result.json`."""
    with bar(len(split.data), "testing") as progress:
        made = decisions(
            eval_step,
            params,
            split.arrays,
            batch_size=batch_size,
            collate=collate or devices.split,
            progress=progress.update,
        )
    evaluation = evaluate_policy(made.policy, split.data, made.free)
    longest = int(split.data.spl[start_states(split.data.spl)].max(initial=0))
    ranges = spl_ranges(max(split.data.size), longest)
    scores = scores_dict(evaluation.scores, ranges)
    return made, {**scores, "map_accuracy": evaluation.map_accuracy}


def finish(task: Task, settings: Settings, folder: pathlib.Path, last: Snapshot) -> None:
    """Tests the best model and writes the planner, the pictures and, at the end, `result.json`."""
    config, best = settings.config, last.best
    made, scores = test_policy(
        task.eval_step, best.params, task.test, settings.eval_batch_size, task.collate
    )
    if not hosts.is_first():
        return
    result = {
        "version": 1,
        "name": config.name,
        "config": config.to_dict(),
        "sittings": workdir.read_sittings(folder),
        **environment(),
        "num_params": num_params(best.params),
        "steps": int(last.state.step),
        "skipped_steps": int(last.state.skipped),
        "collapsed": int(last.collapsed) > 0,
        "wall_seconds": round(float(last.seconds), 1),
        "best_step": int(best.step),
        "valid_score": float(best.score),
        "test": {"data": config.data.to_dict(), **scores},
    }
    card = {key: value for key, value in result.items() if key not in ("version", "skipped_steps")}
    data = task.test.data
    params = task.planner_params(best.params)
    planner = Planner(model_settings(config, data.mechanism), params, data.mechanism, card)
    save_planner(folder / "planner", planner)
    write_text(folder / "planner" / "CARD.md", card_text(planner))
    examples = mazes_figure(data[:12], policy=made.policy[:12], title=config.name)
    save_figure(examples, folder / "examples.png")
    starts = [farthest_start(spl) for spl in data.spl[:12]]
    hard = max(range(len(starts)), key=lambda index: data.spl[index][starts[index]])
    plan = planner.plan(data.maze[hard], data.goal[hard], starts[hard])
    save_figure(plan_figure(plan, data.maze[hard], mechanism=data.mechanism), folder / "plan.png")
    task.write_more(folder, best.params, made)
    write_json(folder / "result.json", result)

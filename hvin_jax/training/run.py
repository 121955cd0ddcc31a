"""A run from beginning to end: state, steps, validation, checkpoints, test, the trained planner.

    task = maze_task(HighwayVIN(num_blocks=8, block_depth=5), mazes)
    result = train(task, Recipe(num_steps=2500), "runs/mine")

However a run ends, the same call goes on from its last checkpoint, bit by bit as if nothing had
happened: noise and the order of the data are functions of the seed and the step, and a checkpoint
holds the rest. What a run writes: `hvin_jax.training.workdir`.

Several processes (`hvin_jax.training.hosts`) each make this call and stay in step: what only one of
them knows, that it is asked to stop or that it is time to save, goes with its next batch, and all
learn of it by that step's all-reduce.
"""

import collections
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from hvin_jax._files import write_json, write_text
from hvin_jax.training import batches, devices, hosts, workdir
from hvin_jax.training.checkpoints import Best, Checkpoints, Snapshot
from hvin_jax.training.evaluation import Evaluation, evaluate_split, num_params
from hvin_jax.training.results import card_text, environment, git_commit, test_scores
from hvin_jax.training.step import (
    REPORT_EVERY,
    REQUESTS,
    Params,
    StepMetrics,
    create_state,
    make_train_step,
)
from hvin_jax.training.task import Recipe, Split, Task
from hvin_jax.training.watcher import Lines, Watcher


class NotFiniteError(FloatingPointError):
    """A loss or gradient is not finite."""


class Interrupted(Exception):
    """The run was asked to stop, and has saved everything."""


def train(
    task: Task | Callable[[], Task],
    recipe: Recipe,
    folder: str | os.PathLike[str],
    *,
    config: Mapping[str, Any] | None = None,
    test: bool = True,
    start_from: str | os.PathLike[str] | None = None,
    watcher: Watcher | None = None,
    asked_to_stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any] | None:
    """Trains a model, or goes on training it, and tests it.

    Args:
      task: what is trained; or what makes it, which is called when there is something left to do.
      recipe: how.
      folder: of the run. It serves this run alone, and one process (or group of them) at a time.
      config: what the run is known by, for JSON; another one is refused in this folder. By default
        the recipe, the model and a digest of the data.
      test: whether to test the best model at the end, which completes the run.
      start_from: the folder of a finished run of the same configuration but shorter, to go on from.
      watcher: is told what happens; by default a line for each validation is printed.
      asked_to_stop: looked at before each step; if true in any process, the run saves after that
        step and raises `Interrupted`. So does the first Ctrl-C, unless the caller handles SIGINT; a
        second one ends the run at once.

    Returns:
      What came out, see `workdir.RESULT_SCHEMA`; None without a test.

    Raises:
      WorkdirError: the folder belongs to another run, or another process is working in it.
      NotFiniteError: a loss or gradient is not finite, and the recipe does not skip such steps.
      Interrupted: the run was asked to stop.
    """
    _check_arguments(task, recipe, folder)
    folder, is_first = pathlib.Path(folder), hosts.is_first()
    watcher = (watcher or Lines()) if is_first else Watcher()
    with workdir.locked(folder) if is_first else contextlib.nullcontext():
        if config is None:
            task = task if isinstance(task, Task) else task()
            config = _description(task, recipe)
        config = json.loads(json.dumps(config))  # as it is read back: tuples are lists
        if is_first:
            workdir.check_owner(folder, config)
        if hosts.as_the_first((folder / "result.json").exists()):
            watcher.say(f"{folder} is complete")
            return workdir.read_result(folder)
        # A run that is on its way already goes on from its own checkpoints.
        source = None if (folder / "checkpoints").exists() else start_from
        if is_first and source is not None:
            workdir.check_start(config, pathlib.Path(source))
        if not isinstance(task, Task):
            task = hosts.first_before_others(task, "data")
        recipe = recipe.for_examples(task.num_examples)
        if is_first and source is not None:
            workdir.check_longer(recipe.num_steps, pathlib.Path(source))
        optimizer = task.adapt(recipe.make_optimizer())
        # Not before everything is known to be right: a folder serves one configuration only.
        if is_first:
            workdir.claim(folder, config)
            if source is not None:
                workdir.start_from(folder, pathlib.Path(source))
        hosts.wait_for_all("claimed")
        with _first_interrupt(watcher) as interrupted:
            last = _fit(
                task,
                recipe,
                optimizer,
                folder,
                config,
                watcher,
                lambda: asked_to_stop() or bool(interrupted),
            )
        if not test:
            return None
        result = _finish(task, recipe, folder, config, last, watcher)
        hosts.wait_for_all("finished")
        return result


def _check_arguments(task: Any, recipe: Any, folder: Any) -> None:
    """Raises for what people mix up, before anything is begun."""
    if isinstance(task, nn.Module) or not (isinstance(task, Task) or callable(task)):
        raise TypeError(
            f"the task is a {type(task).__name__}, expected a Task, such as maze_task(model, mazes)"
        )
    if not isinstance(recipe, Recipe):
        raise TypeError(f"the recipe is a {type(recipe).__name__}, expected a Recipe")
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"the folder is {folder!r}, expected a path")


@contextlib.contextmanager
def _first_interrupt(watcher: Watcher) -> Iterator[list[int]]:
    """Turns the first Ctrl-C into a stop request: the number of the signal in the list."""
    asked: list[int] = []

    def ask(number: int, _: object) -> None:
        asked.append(number)
        signal.signal(number, signal.default_int_handler)
        watcher.say("SIGINT: saving, then stopping")

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _fit(
    task: Task,
    recipe: Recipe,
    optimizer: optax.GradientTransformation,
    folder: pathlib.Path,
    config: Mapping[str, Any],
    watcher: Watcher,
    asked_to_stop: Callable[[], bool],
) -> Snapshot:
    """Makes the steps that are left, and returns the last snapshot, which is saved."""
    # Where the run stands: at its beginning, or at the newest checkpoint.
    params_key, noise_key = jax.random.split(jax.random.key(recipe.seed))
    params = jax.jit(task.init)(params_key)
    hosts.check_agreement(configuration=config, data=dict(task.train), initialisation=params)
    snapshot = Snapshot(
        state=create_state(noise_key, params, optimizer),
        best=Best.none(jax.tree.map(jnp.copy, params)),
        collapsed=jnp.zeros((), jnp.int32),
        seconds=jnp.zeros((), jnp.float32),
    )
    checkpoints = Checkpoints(folder / "checkpoints")
    if restored := checkpoints.restore(snapshot, watcher.say):
        snapshot = restored
        watcher.say(f"resuming after step {int(snapshot.state.step)} of {recipe.num_steps}")
    snapshot = devices.replicate(snapshot)
    state, best, collapsed = snapshot.state, snapshot.best, int(snapshot.collapsed)
    step = int(state.step)
    watcher.say(devices.describe(recipe.batch_size))
    before = workdir.devices_before(folder, step)
    if before not in (None, jax.device_count()):
        watcher.say(
            f"{before} devices until here, {jax.device_count()} from here on: sums round "
            "differently, so the outcome is not bit by bit that of an undisturbed run"
        )

    # What makes the steps.
    train_step = devices.split_train_step(
        make_train_step(
            task.forward,
            recipe.loss,
            optimizer,
            axis_name=devices.BATCH_AXIS,
            augment=task.augment,
        )
    )
    order = batches.batch_indices(
        num_examples=task.num_examples,
        batch_size=recipe.batch_size,
        seed=recipe.seed,
        first_step=step,
    )
    feed = batches.feed(recipe.feed, task.train, order, task.collate)
    valid = task.valid.first(recipe.valid_mazes)

    # What is known of them meanwhile.
    log = workdir.MetricsLog(folder, resume_step=step)
    if hosts.is_first():
        commit = git_commit(pathlib.Path(__file__).parent)
        workdir.note_sitting(folder, first_step=step, commit=commit, devices=jax.device_count())
        log.open()
    began = time.monotonic() - float(snapshot.seconds)
    saved_at = time.monotonic()
    in_flight: collections.deque[tuple[int, StepMetrics]] = collections.deque()
    requested = np.zeros(2)

    def requests() -> np.ndarray:
        """What this process asks for, a row for each of its devices: to stop, and to save."""
        nonlocal saved_at
        is_due = hosts.is_first() and time.monotonic() - saved_at > recipe.save_seconds
        if is_due:
            saved_at = time.monotonic()
        mine = np.asarray([asked_to_stop(), is_due], np.float32)
        return np.tile(mine, (jax.local_device_count(), 1))

    def look(at_most: int) -> None:
        """Looks at the oldest steps under way, until there are at most so many."""
        nonlocal requested
        while len(in_flight) > at_most:
            step, metrics = jax.block_until_ready(in_flight.popleft())
            requested = requested + np.asarray(metrics.requests)
            if not recipe.skip_not_finite and not metrics.finite:
                raise NotFiniteError(
                    f"step {step} has a loss of {float(metrics.loss)} and a gradient of norm "
                    f"{float(metrics.grad_norm)}; the last good checkpoint is {checkpoints.newest}"
                )
            watcher.on_step(step, metrics)

    def take_snapshot() -> Snapshot:
        # Clocks differ between processes, and a checkpoint's checksum must not.
        seconds = hosts.as_the_first(time.monotonic() - began)
        return Snapshot(
            state,
            best,
            jnp.asarray(collapsed, jnp.int32),
            jnp.asarray(seconds, jnp.float32),
        )

    with log, watcher.watching(folder, step, recipe.num_steps, valid.data.mechanism.actions):
        while step < recipe.num_steps and not 0 < recipe.stop_after_collapses <= collapsed:
            batch: dict[str, Any] = {**next(feed), REQUESTS: requests()}
            state, metrics = train_step(state, batch)
            step += 1
            in_flight.append((step, metrics))
            look(at_most=devices.steps_in_flight())
            to_stop, to_save = requested > 0
            requested = np.zeros(2)
            if step % REPORT_EVERY == 0:
                look(at_most=0)
                window = state.window
                steps = float(window.steps) or math.nan
                loss, accuracy = float(window.loss) / steps, float(window.accuracy) / steps
                log.write(step, loss=loss, accuracy=accuracy)
                watcher.on_report(step, loss, accuracy)
            if step % recipe.validate_every == 0 or step == recipe.num_steps:
                look(at_most=0)
                evaluation = _measure(task, state.params, valid, recipe)
                collapsed = 0 if evaluation.constant_action is None else collapsed + 1
                if step % REPORT_EVERY == 0 and not int(state.window.steps):
                    collapsed = max(collapsed, recipe.stop_after_collapses, 1)
                score = float(np.float32(recipe.score(evaluation.scores)))
                # Of equally good ones the later: it has learned for longer.
                if is_best := score >= float(best.score):
                    best = _best(state.params, score, step)
                log.write(
                    step,
                    **evaluation.rates,
                    constant_action=evaluation.constant_action,
                    **task.noted(state.params),
                )
                watcher.on_validation(step, evaluation, is_best)
                to_save = True
            if to_save or to_stop:
                look(at_most=0)
                checkpoints.save(take_snapshot())
                saved_at = time.monotonic()
            if to_stop:
                checkpoints.close()
                raise Interrupted(f"stopped after step {step}, saved in {checkpoints.newest}")
        look(at_most=0)
        checkpoints.close()
        return take_snapshot()


def _finish(
    task: Task,
    recipe: Recipe,
    folder: pathlib.Path,
    config: Mapping[str, Any],
    last: Snapshot,
    watcher: Watcher,
) -> dict[str, Any]:
    """Tests the best model, writes it and, at the end, `result.json`."""
    best = last.best
    with watcher.testing(len(task.test)) as progress:
        evaluation = _measure(task, best.params, task.test, recipe, progress)
    result = {
        "version": 1,
        "name": config.get("name", folder.name),
        "config": dict(config),
        "sittings": workdir.read_sittings(folder),
        **environment(),
        "num_params": num_params(best.params),
        "steps": int(last.state.step),
        "skipped_steps": int(last.state.skipped),
        "collapsed": int(last.collapsed) > 0,
        "wall_seconds": round(float(last.seconds), 1),
        "best_step": int(best.step),
        "valid_score": float(best.score),
        "test": {"data": config.get("data"), **test_scores(evaluation, task.test.data)},
    }
    if hosts.is_first():
        card = {key: x for key, x in result.items() if key not in ("version", "skipped_steps")}
        task.save(folder, best.params, card)
        write_text(folder / "planner" / "CARD.md", card_text(card))
        write_json(folder / "result.json", result)
    return result


def _measure(
    task: Task,
    params: Params,
    split: Split,
    recipe: Recipe,
    progress: Callable[[int], object] | None = None,
) -> Evaluation:
    """How good parameters are on a split of a task."""
    return evaluate_split(
        task.eval_step,
        params,
        split,
        batch_size=recipe.eval_batch_size,
        collate=task.collate,
        progress=progress,
    )


def _description(task: Task, recipe: Recipe) -> dict[str, Any]:
    """What a run is known by if nobody says otherwise."""
    how = dataclasses.asdict(recipe)
    return {
        "data": {
            "mechanism": task.test.data.mechanism.name,
            **{name: len(getattr(task, name)) for name in ("valid", "test")},
            "train": task.num_examples,
            "digest": task.fingerprints(),
        },
        "model": dict(task.model),
        "loss": how.pop("loss"),
        "optimizer": dict(how.pop("optimizer")),
        "train": how,
        "task": {name: value for name, value in task.known_by.items() if value},
    }


def _best(params: Params, score: float, step: int) -> Best:
    # A copy, since the state's own arrays are given away to the next step.
    copied = jax.tree.map(jnp.copy, params)
    return Best(copied, jnp.asarray(score, jnp.float32), jnp.asarray(step, jnp.int32))

"""The 2D task: planning on maps that are given."""

import pathlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from hvin_jax._saved import check_params
from hvin_jax.models import PlannerOutput, init_params, settings_of
from hvin_jax.models.highway import learned_temperatures
from hvin_jax.planner import Planner, check_mechanism
from hvin_jax.planner_files import load_planner, save_planner
from hvin_jax.tasks.maze_data import MazeData, MazeSplits, goal_maps
from hvin_jax.tasks.mechanisms import Mechanism
from hvin_jax.tasks.symmetries import Symmetries, symmetries
from hvin_jax.training.objective import Batch
from hvin_jax.training.step import Augment, Forward, Params
from hvin_jax.training.task import Split, Task, digest_of_params


def maze_task(
    model: Any,
    mazes: MazeSplits,
    *,
    weights: Params | None = None,
    use_symmetries: bool = False,
) -> Task:
    """Planning on mazes that are given by their maps and goals.

    Args:
      model: a planner of `hvin_jax.models`, for the mazes' mechanism.
      mazes: to train on, to select by, to test on.
      weights: parameters to begin with, see `first_weights`; None draws them at random.
      use_symmetries: whether to turn and mirror training mazes at random.

    Returns:
      The task.
    """
    mechanism, size = mazes.mechanism, mazes.train.size
    settings = settings_of(model)
    check_mechanism(settings, mechanism)
    if mazes.train.cost is not None and not model.terrain:
        raise ValueError("these mazes have costs, and the model knows none: make it with terrain")
    trained_for: dict[str, Any] = {
        "any_orientation": bool((mazes.train.goal[..., 2] < 0).all()),
        "several_goals": mazes.train.goal.ndim == 3,
    }

    def init(key: jax.Array) -> Params:
        return init_params(model, key, size) if weights is None else weights

    own = partial(init_params, model, size=size)
    wanted = jax.eval_shape(own, jax.random.key(0))  # impossible settings show here
    if weights is not None:
        check_params(weights, wanted)

    def save(folder: pathlib.Path, params: Params, card: Mapping[str, Any]) -> None:
        planner = Planner(settings, params, mechanism, card, **trained_for)
        save_planner(folder / "planner", planner)

    return Task(
        model=settings,
        forward=maze_forward(model),
        init=init,
        train=training_arrays(mazes.train),
        valid=maze_split(mazes.valid),
        test=maze_split(mazes.test),
        save=save,
        augment=random_symmetry(symmetries(mechanism, size)) if use_symmetries else None,
        noted=partial(learned_temperatures, model),
        known_by={"symmetries": use_symmetries, "weights": digest_of_params(weights)},
    )


def first_weights(source: str, model: Any, mechanism: Mechanism) -> Params | None:
    """The parameters of another planner, for a model that may have another depth.

    Args:
      source: the folder of a run or planner, or the name of a shipped one; "" for none.
      model: what they are for.
      mechanism: how its agent moves.

    Returns:
      The parameters; None if there is no source.
    """
    if not source:
        return None
    other = load_planner(source)
    if other.mechanism != mechanism:
        raise ValueError(f"{source} is a planner for {other.mechanism.name}, not {mechanism.name}")
    try:
        return Planner(settings_of(model), other.params, mechanism).params
    except ValueError as error:
        raise ValueError(f"weights={source}: {error}") from error


def maze_forward(model: Any) -> Forward:
    """Applies a planner to batches with what `planner_arrays` has."""

    def forward(
        params: Params,
        batch: Batch,
        *,
        key: jax.Array | None = None,
        example_index: jax.Array | None = None,
        step: jax.Array | None = None,
        **options: Any,
    ) -> PlannerOutput:
        del step  # training is the same from beginning to end
        maze = batch["maze"]
        goal = goal_maps(
            batch["goal"], size=maze.shape[1:], num_orientations=model.num_orientations
        )
        return model.apply(
            params,
            maze,
            goal,
            train=key is not None,
            example_index=example_index,
            **{name: batch[name] for name in ("inside", "cost") if name in batch},
            rngs=None if key is None else {"exploration": key},
            **options,
        )

    return forward


def random_symmetry(symmetries: Symmetries) -> Augment:
    """Turns and mirrors each maze of a batch, all ways being equally likely."""

    def augment(batch: Batch, *, key: jax.Array, example_index: jax.Array) -> Batch:
        keys = jax.vmap(lambda index: jax.random.fold_in(key, index))(example_index)
        which = jax.vmap(lambda key: jax.random.randint(key, (), 0, symmetries.order))(keys)
        return symmetries.transform(batch, which)

    return augment


def maze_split(data: MazeData) -> Split:
    """Mazes as a planner looks at them."""
    return Split(data, planner_arrays(data))


def planner_arrays(data: MazeData) -> dict[str, np.ndarray]:
    """What a planner looks at: maps and goals, costs and where maps end."""
    arrays = {"maze": data.maze, "goal": data.goal, "cost": data.cost, "inside": data.inside()}
    return {name: array for name, array in arrays.items() if array is not None}


def training_arrays(data: MazeData) -> dict[str, np.ndarray]:
    """What a training step needs besides: labels and path lengths."""
    others = {"label": data.label, "optimal": data.optimal, "spl": data.spl}
    return planner_arrays(data) | others

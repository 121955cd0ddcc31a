"""The 2D task: planning on maps that are given."""

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from experiments import launch
from hvin_jax.tasks.maze_data import MazeSplits
from hvin_jax.tasks.symmetries import symmetries
from hvin_jax.training.evaluation import planner_arrays, training_arrays
from hvin_jax.training.step import maze_forward, random_symmetry


def make_task(config: ConfigDict, mazes: MazeSplits) -> launch.Task:
    """The task of a configuration on some mazes."""
    model = launch.model_of(config, mazes.mechanism)
    shape = (1, *mazes.train.size)
    weights = launch.first_weights(config, mazes.mechanism)

    def init(key: jax.Array) -> launch.Params:
        if weights is not None:
            return weights
        goal = jnp.zeros((*shape, model.num_orientations))
        return model.init(key, jnp.zeros(shape), goal, train=False)

    return launch.Task(
        forward=maze_forward(model),
        init=init,
        train=training_arrays(mazes.train),
        augment=random_symmetry(symmetries(mazes.mechanism, mazes.train.size))
        if config.train.symmetries
        else None,
        valid=launch.Split(mazes.valid, planner_arrays(mazes.valid)),
        test=launch.Split(mazes.test, planner_arrays(mazes.test)),
    )

"""Training: from a model and mazes to a planner, by runs that survive being killed.

task = maze_task(HighwayVIN(num_blocks=8, block_depth=5), mazes)
train(task, Recipe(num_steps=2500), "runs/mine")
hvin_jax.load_planner("runs/mine")
"""

from hvin_jax.training.devices import use_cpu_devices
from hvin_jax.training.maze_task import maze_task
from hvin_jax.training.objective import Imitation
from hvin_jax.training.optimizers import make_optimizer
from hvin_jax.training.run import Interrupted, NotFiniteError, train
from hvin_jax.training.task import Recipe, Split, Task
from hvin_jax.training.watcher import Lines, Watcher
from hvin_jax.training.workdir import WorkdirBusy, WorkdirError

__all__ = [
    "Imitation",
    "Interrupted",
    "Lines",
    "NotFiniteError",
    "Recipe",
    "Split",
    "Task",
    "Watcher",
    "WorkdirBusy",
    "WorkdirError",
    "make_optimizer",
    "maze_task",
    "train",
    "use_cpu_devices",
]

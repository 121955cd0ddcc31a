"""Mazes as an environment for gymnasium (extra `gymnasium`).

env = GymMaze(data, render_mode="rgb_array")  # or gymnasium.make("hvin_jax/Maze-v0", data=data)
observation, info = env.reset(seed=0)

It is `hvin_jax.tasks.environment.MazeEnv`, one episode at a time; that one is faster by far where
many run side by side.
"""

from typing import Any

import jax
import numpy as np

from hvin_jax._extras import needs
from hvin_jax._words import counted
from hvin_jax.tasks.environment import EnvState, MazeEnv, Observation
from hvin_jax.tasks.maze_data import LEAST_COST, MOST_COST, MazeData

with needs("the gymnasium environment", "gymnasium", extra="gymnasium"):
    import gymnasium
    from gymnasium import spaces

ID = "hvin_jax/Maze-v0"
# Compiled once for all environments of a shape and settings.
_reset, _step = jax.jit(MazeEnv.reset), jax.jit(MazeEnv.step)


class GymMaze(gymnasium.Env[dict[str, np.ndarray], np.int64]):
    """Labelled mazes as a `gymnasium.Env`.

    Observations have `maze` `[H, W]`, `goal` `[H, W, O]` and `agent`, (row, column, orientation),
    and where cells have costs `cost` `[H, W]`; actions are those of the mechanism. `info` has the
    number of the maze.

    Attributes:
      action_space: `Discrete(A)`.
      observation_space: a `Dict` of these.
      render_mode: "rgb_array", which needs the extra `draw`, or None.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012 (gymnasium's)

    def __init__(self, data: MazeData, *, render_mode: str | None = None, **settings: Any) -> None:
        """Makes the environment.

        Args:
          data: the mazes.
          render_mode: see the attributes.
          **settings: `time_limit` and rewards, see `MazeEnv`.
        """
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode is {render_mode!r}, expected 'rgb_array' or None")
        self.render_mode = render_mode
        self._env = MazeEnv.from_data(data, auto_reset=False, **settings)
        self._data = data
        self._state: EnvState | None = None
        states = (*data.size, data.mechanism.num_orientations)
        self.action_space = spaces.Discrete(data.mechanism.num_actions)
        seen: dict[str, spaces.Space[Any]] = {
            "maze": spaces.MultiBinary(data.size),
            "goal": spaces.MultiBinary(states),
            "agent": spaces.MultiDiscrete(np.array(states)),
        }
        if data.cost is not None:
            seen["cost"] = spaces.Box(LEAST_COST, MOST_COST, data.size, np.float32)
        self.observation_space = spaces.Dict(seen)  # type: ignore[assignment]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begins an episode; after a seed, all that follow depend on it. There are no options."""
        super().reset(seed=seed, options=options)
        key = jax.random.key(self.np_random.integers(2**32, dtype=np.uint32))
        self._state, timestep = _reset(self._env, key)
        return _as_arrays(timestep.observation), self._info()

    def step(
        self, action: np.int64
    ) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Takes an action."""
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is not in {self.action_space}")
        self._state, timestep = _step(self._env, self._in_episode(), np.int32(action))
        return (
            _as_arrays(timestep.observation),
            float(timestep.reward),
            bool(timestep.terminated),
            bool(timestep.truncated),
            self._info(),
        )

    def render(self) -> np.ndarray | None:
        """The maze with agent and goal, uint8 `[rows, columns, 3]`; None without a render mode."""
        if self.render_mode is None:
            return None
        # Here, because it needs the extra `draw`.
        from hvin_jax.tasks.drawing import maze_figure

        state, data = self._in_episode(), self._data
        index = int(state.index)
        figure = maze_figure(
            data.maze[index],
            mechanism=data.mechanism,
            start=np.asarray(state.agent).tolist(),
            goal=data.goal[index],
            caption=counted(int(state.steps), "action"),
        )
        return _pixels(figure)

    def _in_episode(self) -> EnvState:
        if self._state is None:
            raise ValueError("there is no episode yet: call reset() first")
        return self._state

    def _info(self) -> dict[str, Any]:
        return {"maze": int(self._in_episode().index)}


def _as_arrays(observation: Observation) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {
        "maze": np.asarray(observation.maze, np.int8),
        "goal": np.asarray(observation.goal, np.int8),
        "agent": np.asarray(observation.agent, np.int64),
    }
    if observation.cost is not None:
        arrays["cost"] = np.asarray(observation.cost, np.float32)
    return arrays


def _pixels(figure: Any, *, dpi: int = 60) -> np.ndarray:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point=f"{__name__}:GymMaze")

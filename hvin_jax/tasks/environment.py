"""Mazes as an environment to learn in by reward: `reset` and `step` are pure functions.

env = MazeEnv.from_data(data)
state, timestep = env.reset(key)
state, timestep = env.step(state, action)

The conventions are those of gymnax and jumanji. Both functions work under `jit`, `vmap` and `scan`;
an environment is a pytree itself, so that it can be passed to compiled functions, and `env.only`
under `vmap` makes one environment for each of many maps. `hvin_jax.tasks.gym_env` wraps it for
gymnasium.
"""

import dataclasses
import math
import numbers
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.tasks.measures import start_states
from hvin_jax.tasks.mechanisms import Mechanism


class Observation(NamedTuple):
    """What the agent sees: all of the map.

    Attributes:
      maze: uint8 `[H, W]`, 1 = free, 0 = wall.
      goal: uint8 `[H, W, O]`, 1 at the goal.
      agent: int32 `[3]`, (row, column, orientation).
      cost: float32 `[H, W]`, what it costs to enter each cell, 1 at walls; None where the mazes
        have no costs.
    """

    maze: jax.Array
    goal: jax.Array
    agent: jax.Array
    cost: jax.Array | None = None


class TimeStep(NamedTuple):
    """What an action brings about.

    Attributes:
      observation: what to act upon next.
      reward: float32.
      discount: float32, 0 where the episode has terminated, else 1: what the value of
        `next_observation` counts for.
      terminated: whether the agent is at the goal, or in a wall for good.
      truncated: whether the episode ends because its time is over.
      next_observation: what the action has led to. It is `observation`, unless an episode has ended
        and `observation` is the first one of another.
    """

    observation: Observation
    reward: jax.Array
    discount: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    next_observation: Observation

    @property
    def last(self) -> jax.Array:
        """Whether the episode has ended."""
        return self.terminated | self.truncated


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EnvState:
    """Where an episode is.

    Attributes:
      key: a typed PRNG key, of which the next episode is made.
      index: int32, which of the mazes it is.
      agent: int32 `[3]`, (row, column, orientation).
      steps: int32, how many actions there have been.
    """

    key: jax.Array
    index: jax.Array
    agent: jax.Array
    steps: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class MazeEnv:
    """Labelled mazes as an environment; make it by `from_data`.

    An episode has a maze and a start, all mazes being equally likely, and all states of the maze
    that can reach its goal and are not at it. It ends at the goal, or in a wall if walls are traps,
    or after `time_limit` actions.

    Attributes:
      maze: uint8 `[n, H, W]`, 1 = free, 0 = wall.
      goal: uint8 `[n, H, W, O]`, 1 at the goal.
      starts: bool `[n, H, W, O]`, the states that episodes start from.
      mechanism: how the agent moves.
      time_limit: most actions of an episode.
      step_cost: what each action takes from the reward; where cells have costs, for each unit of
        what the cell costs that it ends in.
      goal_reward: for reaching the goal.
      wall_reward: for moving into a wall that is a trap.
      auto_reset: whether `step` begins another episode where one has ended.
      cost: float32 `[n, H, W]`, what it costs to enter each cell, 1 at walls; None: 1 everywhere.
    """

    maze: jax.Array
    goal: jax.Array
    starts: jax.Array
    mechanism: Mechanism = dataclasses.field(metadata={"static": True})
    time_limit: int = dataclasses.field(metadata={"static": True})
    step_cost: float = dataclasses.field(metadata={"static": True})
    goal_reward: float = dataclasses.field(metadata={"static": True})
    wall_reward: float = dataclasses.field(metadata={"static": True})
    auto_reset: bool = dataclasses.field(metadata={"static": True})
    cost: jax.Array | None = None

    @classmethod
    def from_data(
        cls,
        data: MazeData,
        *,
        time_limit: int = 100,
        step_cost: float = 0.01,
        goal_reward: float = 1.0,
        wall_reward: float = 0.0,
        auto_reset: bool = True,
    ) -> "MazeEnv":
        """The environment of some mazes; see the attributes."""
        if not isinstance(data, MazeData):
            raise ValueError(
                f"an environment is made of MazeData, such as load_mazes(FILE).train, not of a "
                f"{type(data).__name__}"
            )
        if not len(data):
            raise ValueError("there are no mazes to make an environment of")
        if not isinstance(time_limit, int | np.integer) or not 1 <= time_limit < 2**31:
            raise ValueError(f"time_limit is {time_limit!r}, expected 1 to 2³¹ - 1, a whole number")
        for name, value in (
            ("step_cost", step_cost),
            ("goal_reward", goal_reward),
            ("wall_reward", wall_reward),
        ):
            if not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise ValueError(f"{name} is {value!r}, expected a finite number")
        starts = start_states(data.spl)
        if (closed := ~starts.any(axis=(1, 2, 3))).any():
            raise ValueError(
                f"maze {int(closed.argmax())} has no start: no state leads to its goal but itself"
            )
        return cls(
            maze=jnp.asarray(data.maze),
            goal=jnp.asarray(data.goal_maps()),
            starts=jnp.asarray(starts),
            mechanism=data.mechanism,
            time_limit=time_limit,
            step_cost=step_cost,
            goal_reward=goal_reward,
            wall_reward=wall_reward,
            auto_reset=auto_reset,
            cost=None if data.cost is None else jnp.where(data.maze != 0, data.cost, 1),
        )

    @property
    def num_mazes(self) -> int:
        """`n`."""
        return self.maze.shape[0]

    def only(self, index: jax.Array) -> "MazeEnv":
        """The environment of one of the mazes."""
        arrays = {name: getattr(self, name) for name in ("maze", "goal", "starts", "cost")}
        return dataclasses.replace(self, **jax.tree.map(lambda x: x[index][None], arrays))

    def reset(self, key: jax.Array) -> tuple[EnvState, TimeStep]:
        """Begins an episode.

        Args:
          key: a typed PRNG key, which is consumed.

        Returns:
          Its state, and what is seen there, without a reward.
        """
        key, of_maze, of_start = jax.random.split(key, 3)
        index = jax.random.randint(of_maze, (), 0, self.num_mazes)
        state = EnvState(key, index, self._draw_start(of_start, index), jnp.zeros((), jnp.int32))
        observation, no = self.observe(state), jnp.zeros((), bool)
        nothing, one = jnp.zeros((), jnp.float32), jnp.ones((), jnp.float32)
        return state, TimeStep(observation, nothing, one, no, no, observation)

    def step(self, state: EnvState, action: jax.Array) -> tuple[EnvState, TimeStep]:
        """Takes an action, a single integer; those of many agents by `jax.vmap(env.step)`.

        Returns:
          The state afterwards, and what has come of it. Where the episode has ended, the state is
          the first of another, unless `auto_reset` is false.
        """
        if shape := np.shape(action):
            raise ValueError(
                f"the action has shape {shape}, expected a single whole number: many agents act by "
                "jax.vmap(env.step)"
            )
        agent = self.move(state.index, state.agent, action)
        after = dataclasses.replace(state, agent=agent, steps=state.steps + 1)
        at_goal = self.at_goal(after)
        in_wall = self.maze[after.index, agent[0], agent[1]] == 0
        terminated = at_goal | in_wall
        reward = jnp.where(at_goal, self.goal_reward, jnp.where(in_wall, self.wall_reward, 0.0))
        seen = self.observe(after)
        timestep = TimeStep(
            observation=seen,
            reward=(reward - self.step_cost * self._price(after)).astype(jnp.float32),
            discount=1 - terminated.astype(jnp.float32),
            terminated=terminated,
            truncated=~terminated & (after.steps >= self.time_limit),
            next_observation=seen,
        )
        if not self.auto_reset:
            return after, timestep
        fresh, first = self.reset(state.key)
        state, observation = jax.tree.map(
            lambda new, old: jnp.where(timestep.last, new, old),
            (fresh, first.observation),
            (after, seen),
        )
        return state, timestep._replace(observation=observation)

    def observe(self, state: EnvState) -> Observation:
        """What is seen in a state."""
        cost = None if self.cost is None else self.cost[state.index]
        return Observation(self.maze[state.index], self.goal[state.index], state.agent, cost)

    def at_goal(self, state: EnvState) -> jax.Array:
        """Whether the agent is at the goal."""
        return self.goal[(state.index, *state.agent)] != 0

    def _price(self, state: EnvState) -> jax.Array | float:
        """What it has cost to enter the cell of a state."""
        return 1.0 if self.cost is None else self.cost[(state.index, *state.agent[:2])]

    def move(self, index: jax.Array, agent: jax.Array, action: jax.Array) -> jax.Array:
        """Where an action leads, as `hvin_jax.tasks.mechanisms.step` has it.

        Args:
          index: which of the mazes.
          agent: int32 `[3]`, (row, column, orientation).
          action: its index.

        Returns:
          int32 `[3]`.
        """
        if self.mechanism.between == "stop" and self.mechanism.reach > 1:
            return self._glide(index, agent, action)
        _, height, width = self.maze.shape
        table = jnp.asarray(self.mechanism.table.astype(np.int32))
        rows, columns, orientation = table[agent[2], action]
        row, column = agent[0] + rows, agent[1] + columns
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        target = jnp.stack([row, column, orientation])
        deciding = agent if self.mechanism.walls == "trap" else jnp.where(inside, target, agent)
        free = self.maze[index, deciding[0], deciding[1]] != 0
        return jnp.where(inside & free, target, agent)

    def _glide(self, index: jax.Array, agent: jax.Array, action: jax.Array) -> jax.Array:
        """`move` of agents that stop on their way."""
        maze, traps = self.maze[index], self.mechanism.walls == "trap"
        height, width = maze.shape
        table = self.mechanism.table.astype(np.int32)
        counts = np.gcd(table[..., 0], table[..., 1])
        units = table[..., :2] // np.maximum(counts, 1)[..., None]
        which = (agent[2], action)
        count, unit = jnp.asarray(counts)[which], jnp.asarray(units)[which]
        cell = agent[:2]
        going = maze[cell[0], cell[1]] != 0 if traps else jnp.ones((), bool)
        changed = going & (count == 0)
        for done in range(self.mechanism.reach):
            row, column = cell + unit
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            free = maze[jnp.clip(row, 0, height - 1), jnp.clip(column, 0, width - 1)] != 0
            enters = going & (count > done) & inside & (free | traps)
            cell = jnp.where(enters, cell + unit, cell)
            changed |= enters
            going = enters & free
        facing = jnp.where(changed, jnp.asarray(table)[(*which, 2)], agent[2])
        return jnp.concatenate([cell, facing[None]])

    def _draw_start(self, key: jax.Array, index: jax.Array) -> jax.Array:
        """One of the starts of a maze, int32 `[3]`."""
        starts = self.starts[index]
        rank = jnp.cumsum(starts.ravel().astype(jnp.int32))
        drawn = jax.random.randint(key, (), 0, rank[-1])
        place = jnp.argmax(rank > drawn)
        return jnp.stack(jnp.unravel_index(place, starts.shape)).astype(jnp.int32)

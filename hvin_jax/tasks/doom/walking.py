"""Walking through a level by real actions: pushes and turns, with inertia and collisions.

The agent is put at its start once. From then on only its own actions move it, and where it is, the
engine says. An action of the maze (forward by a cell, a quarter turn) takes several tics.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from hvin_jax.tasks.doom.camera import DIRECTIONS
from hvin_jax.tasks.doom.engine import Engine, EngineError, Pose
from hvin_jax.tasks.doom.levels import ANGLES, cell_at, cell_centre
from hvin_jax.tasks.mechanisms import get_mechanism

State = tuple[int, int, int]

_FORWARD, _RIGHT, _LEFT = range(3)
# Doom's physics: in each tic a push of p adds p / 32 to the speed, then friction takes its share.
_PUSH, _FRICTION = 1 / 32, 0.90625
_HARDEST = 50
# How much speed the agent can lose in a tic, with a margin.
_BRAKING = 1.3
# A quarter turn is made in so many tics.
_TURN_TICS = 4
# Close enough to the centre of a cell, in map units, and slow enough.
_CLOSE, _SLOW = 1.0, 0.1
# After so many tics without getting closer, something is in the way.
_PATIENCE = 12


@dataclasses.dataclass(frozen=True)
class Walk:
    """How a walk went, by the engine's own account.

    Attributes:
      states: int32 `[k + 1, 3]`, the states from the start on.
      track: float32 `[t, 2]`, the places (x, y) after each tic, in map units.
      reached: whether the agent ended in the goal's cell, facing as the goal does.
      bumped: whether it walked into a wall.
    """

    states: np.ndarray
    track: np.ndarray
    reached: bool
    bumped: bool

    @property
    def length(self) -> int:
        """The number of actions."""
        return len(self.states) - 1


def state_of(pose: Pose, height: int) -> State:
    """The state (row, column, orientation) of a pose, in a maze with `height` rows."""
    row, column = cell_at(pose.x, pose.y, height)
    quarter = 90 * round(pose.angle / 90) % 360
    name = next(name for name, angle in ANGLES.items() if angle == quarter)
    return row, column, DIRECTIONS.index(name)


def walk(
    engine: Engine,
    policy: np.ndarray,
    *,
    start: State,
    goal: State,
    watch: Callable[[Engine], object] = lambda _: None,
) -> Walk:
    """Follows a policy from a start, until the goal, a wall, or a state for the second time.

    Args:
      engine: in the level.
      policy: uint8 `[H, W, 4]`, actions of differential drive.
      start: (row, column, orientation).
      goal: (row, column, orientation).
      watch: is called after each tic.

    Returns:
      How it went.
    """
    height = len(policy)
    driver = _Driver(engine, watch)
    driver.place(start, height)
    states = [start]
    bumped = False
    while states[-1] != goal and states[-1] not in states[:-1] and not bumped:
        action = int(policy[states[-1]])
        if action == _FORWARD:
            bumped = not driver.forward(states[-1], height)
        else:
            driver.turn(90 if action == _RIGHT else -90)
        states.append(state_of(engine.pose, height))
    return Walk(
        states=np.array(states, np.int32),
        track=np.array(driver.track, np.float32),
        reached=states[-1] == goal,
        bumped=bumped,
    )


class _Driver:
    """Turns actions of the maze into pushes and turns of the engine."""

    def __init__(self, engine: Engine, watch: Callable[[Engine], object]) -> None:
        self._engine, self._watch = engine, watch
        self.track: list[tuple[float, float]] = []

    def place(self, state: State, height: int) -> None:
        """Puts the agent at the start."""
        self._engine.warp(*cell_centre(*state[:2], height))
        self._tic()
        for _ in DIRECTIONS:
            if state_of(self._engine.pose, height) == state:
                return
            self.turn(90)
        raise EngineError(f"the agent can't be put at {state}: it is at {self._engine.pose}")

    def turn(self, degrees: int) -> None:
        """Turns to the right, or to the left if negative."""
        for _ in range(_TURN_TICS):
            self._tic(turn=degrees / _TURN_TICS)

    def forward(self, state: State, height: int) -> bool:
        """Goes to the centre of the next cell; false if something is in the way."""
        rows, columns, _ = get_mechanism("diffdrive").moves[state[2]][_FORWARD]
        target = cell_centre(state[0] + rows, state[1] + columns, height)
        ahead = np.array([columns, -rows])  # in map units, y grows to the north
        right = np.array([ahead[1], -ahead[0]])
        speed, best, waited = np.zeros(2), np.inf, 0
        while waited < _PATIENCE:
            place = np.array(self._engine.pose[:2])
            missing = np.array(target) - place
            if np.abs(missing).max() < _CLOSE and np.abs(speed).max() < _SLOW:
                return True
            push = _push_for(missing, speed)
            self._tic(forward=float(push @ ahead), right=float(push @ right))
            speed = np.array(self._engine.pose[:2]) - place
            distance = float(np.abs(np.array(target) - self._engine.pose[:2]).max())
            waited = 0 if distance < best - 0.1 else waited + 1
            best = min(best, distance)
        return False

    def _tic(self, *, turn: float = 0.0, forward: float = 0.0, right: float = 0.0) -> None:
        self._engine.act(turn=turn, forward=forward, right=right)
        pose = self._engine.pose
        self.track.append((pose.x, pose.y))
        self._watch(self._engine)


def _push_for(missing: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """The push that brings the agent towards a place from which it is `missing` units away.

    It aims at a speed from which it can still brake. Whole numbers, since the engine rounds.
    """
    far = np.abs(missing)
    wanted = np.sign(missing) * np.minimum(np.sqrt(2 * _BRAKING * far), far / 2)
    push = (wanted - _FRICTION * speed) / _PUSH
    return np.clip(np.rint(push), -_HARDEST, _HARDEST)

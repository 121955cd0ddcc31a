"""One headless Doom engine: its levels, its agent, and what the agent sees."""

import contextlib
import os
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from hvin_jax._extras import needs
from hvin_jax.tasks.doom import _orphans

# In the first 7 actions of an episode turns are ignored.
_FIRST_TIC = 10
# A path of the levels that is longer than 270 bytes crashes the engine, and Python with it.
_PATH_LENGTH = 255


class EngineError(RuntimeError):
    """The engine has died or does not do what it is told."""


class Pose(NamedTuple):
    """Where the agent is, by the engine's own account.

    Attributes:
      x: in map units, to the east.
      y: in map units, to the north.
      angle: in degrees, 0 = east, 90 = north.
    """

    x: float
    y: float
    angle: float


def load_vizdoom() -> ModuleType:
    """The module `vizdoom`, or an error that says how to get it."""
    with needs("the Doom engine", "vizdoom", extra="vizdoom"):
        import vizdoom
    return vizdoom


class Engine:
    """A running engine, to be used in a `with` statement.

    The screen shows nothing but the level: no weapon, no status bar.
    """

    def __init__(
        self,
        wad: str | os.PathLike[str],
        *,
        first_map: str,
        resolution: tuple[int, int] = (160, 120),
        depth: bool = False,
        from_above: bool = False,
    ) -> None:
        """Starts an engine.

        Args:
          wad: a file of levels, see `hvin_jax.tasks.doom.levels`.
          first_map: the name of one of them.
          resolution: (width, height) of the screen, one that ViZDoom has.
          depth: whether to make the depth buffer too.
          from_above: whether to make a picture of the whole level from above too.
        """
        vizdoom = load_vizdoom()
        if not os.path.isfile(wad):
            raise EngineError(f"{os.fspath(wad)}: there is no such file of levels")
        if (length := len(os.fsencode(wad))) > _PATH_LENGTH:
            raise EngineError(
                f"{os.fspath(wad)}: the path has {length} bytes, the engine takes {_PATH_LENGTH}; "
                "choose a shorter one, by TMPDIR if it is a temporary file"
            )
        self._errors = (
            vizdoom.ViZDoomErrorException,
            vizdoom.ViZDoomUnexpectedExitException,
            vizdoom.ViZDoomIsNotRunningException,
            vizdoom.MessageQueueException,
            vizdoom.SharedMemoryException,
        )
        size = getattr(vizdoom.ScreenResolution, f"RES_{resolution[0]}X{resolution[1]}", None)
        if size is None:
            raise ValueError(
                f"ViZDoom has no resolution {resolution[0]}×{resolution[1]}; try 160×120 or 320×240"
            )
        self.folder = _orphans.make_folder()
        game = self._game = vizdoom.DoomGame()
        try:
            game.set_doom_scenario_path(os.fspath(wad))
            game.set_doom_map(first_map)
            game.set_doom_config_path(str(self.folder / _orphans.CONFIG))
            game.set_window_visible(False)
            game.set_mode(vizdoom.Mode.PLAYER)
            game.set_screen_resolution(size)
            game.set_screen_format(vizdoom.ScreenFormat.RGB24)
            game.set_depth_buffer_enabled(depth)
            game.set_automap_buffer_enabled(from_above)
            if from_above:
                game.set_automap_mode(vizdoom.AutomapMode.WHOLE)
                game.set_automap_rotate(False)
                game.set_automap_render_textures(True)
            for thing in ("hud", "crosshair", "weapon", "decals", "particles", "messages"):
                getattr(game, f"set_render_{thing}")(False)
            game.set_available_buttons(
                [
                    vizdoom.Button.TURN_LEFT_RIGHT_DELTA,
                    vizdoom.Button.MOVE_FORWARD_BACKWARD_DELTA,
                    vizdoom.Button.MOVE_LEFT_RIGHT_DELTA,
                ]
            )
            variable = vizdoom.GameVariable
            game.set_available_game_variables(
                [variable.POSITION_X, variable.POSITION_Y, variable.ANGLE]
            )
            game.add_game_args("+sv_cheats 1")
            game.set_episode_start_time(_FIRST_TIC)
            game.set_episode_timeout(0)
            game.set_seed(0)
            # The engine makes this itself, but dies if another one does so at the same moment.
            with contextlib.suppress(OSError):
                os.mkdir("_vizdoom")
            with self._translated(), _orphans.remembering_instance(self.folder):
                game.init()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the engine and leaves nothing of it behind."""
        with contextlib.suppress(*self._errors):
            self._game.close()
        _orphans.clear(self.folder)

    @property
    def pids(self) -> list[int]:
        """The numbers of the engine's processes."""
        return _orphans.engine_pids(self.folder)

    def open_level(self, name: str) -> None:
        """Goes to another level of the file; the agent faces east."""
        with self._translated():
            self._game.set_doom_map(name)
            self._game.new_episode()

    def warp(self, x: int, y: int) -> None:
        """Puts the agent somewhere, at rest and facing as before."""
        with self._translated():
            self._game.set_action([0.0, 0.0, 0.0])  # or the last one would go on
            self._game.send_game_command(f"warp {x} {y}")
            # In the tic of the warp the eye is lower than it should be.
            self._game.advance_action(1, False)

    def act(self, *, turn: float = 0.0, forward: float = 0.0, right: float = 0.0) -> None:
        """Acts for one tic, after which there is a new picture.

        Args:
          turn: by how many degrees, to the right.
          forward: how hard to push forward (or, if negative, backward); 50 is running.
          right: how hard to push to the right.
        """
        with self._translated():
            self._game.make_action([turn, forward, right], 1)
            self._state = self._game.get_state()
        if self._state is None:
            raise EngineError("the engine's episode has ended, though nothing should end it")

    def show_whole_level(self) -> None:
        """Makes the picture from above anew, zoomed out, on black, around the agent."""
        with self._translated():
            for text in ("am_colorset 1", "am_gobig"):
                self._game.send_game_command(text)
        self.act()

    @property
    def pose(self) -> Pose:
        """Where the agent was when the last picture was made."""
        return Pose(*(float(value) for value in self._state.game_variables))

    @property
    def screen(self) -> np.ndarray:
        """What the agent sees: uint8 `[height, width, 3]`."""
        return self._state.screen_buffer

    @property
    def depth(self) -> np.ndarray:
        """How far away it is, in a unit of the engine's: uint8 `[height, width]`."""
        return self._state.depth_buffer

    @property
    def from_above(self) -> np.ndarray:
        """The level from above: uint8 `[height, width, 3]`."""
        return self._state.automap_buffer

    @contextlib.contextmanager
    def _translated(self) -> Any:
        try:
            yield
        except self._errors as error:
            raise EngineError(f"the Doom engine has died: {error}") from error


def check_pose(pose: Pose, *, x: float, y: float, angle: float) -> None:
    """Raises if the agent is not exactly where it should be.

    The engine counts angles in 2³² parts of a circle, which degrees show with a tiny error.
    """
    turned = abs((pose.angle - angle + 180) % 360 - 180)
    if (pose.x, pose.y) != (x, y) or turned > 1e-4:
        raise EngineError(
            f"the agent is at ({pose.x}, {pose.y}) facing {pose.angle}°, but was sent to "
            f"({x}, {y}) facing {angle}°"
        )

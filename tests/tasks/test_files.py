import dataclasses
import zipfile

import numpy as np
import pytest
from flips import with_one_bit_flipped

from hvin_jax._files import atomic_write
from hvin_jax.tasks._npz import MazeFileError
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.files import load_mazes, save_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maze_data import ARRAYS, SPLITS
from hvin_jax.tasks.mechanisms import MECHANISMS


def _make(mechanism="diffdrive", size=(7, 9), counts=(30, 6, 4)):
    train, valid, test = counts
    return make_mazes(
        law=MazeLaw(size, (0.1, 0.9)),
        mechanism=MECHANISMS[mechanism],
        train=train,
        valid=valid,
        test=test,
        seed=11,
    )


@pytest.fixture(scope="module")
def mazes():
    return _make()


def _assert_equal(first, second):
    for split in SPLITS:
        one, other = getattr(first, split), getattr(second, split)
        assert one.mechanism is other.mechanism
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            assert getattr(one, name).dtype == getattr(other, name).dtype


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("file_format", ["compact", "npz"])
@pytest.mark.parametrize("counts", [(30, 6, 4), (600, 0, 1)])
def test_round_trip(tmp_path, mechanism, file_format, counts):
    mazes = _make(mechanism, counts=counts)
    path = tmp_path / "mazes.npz"
    save_mazes(path, mazes, file_format=file_format)
    again = load_mazes(path)
    _assert_equal(mazes, again)
    if file_format == "compact":
        assert again.seed == 11
        assert again.decimation == (0.1, 0.9)
    else:
        assert again.seed == -1
    # The same data, the same bytes; and nothing is left beside the file.
    first = path.read_bytes()
    save_mazes(path, again if file_format == "npz" else mazes, file_format=file_format)
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == ["mazes.npz"]


def test_another_mechanism_by_a_known_name(tmp_path):
    """What a mechanism is, not how it is called, decides which versions can read the file."""
    news = MECHANISMS["news"]
    turned = dataclasses.replace(news, moves=(news.moves[0][::-1],))
    for mechanism, version in ((news, 1), (turned, 2)):
        mazes = make_mazes(
            law=MazeLaw((5, 5)), mechanism=mechanism, train=3, valid=0, test=0, seed=0
        )
        save_mazes(tmp_path / "mazes.npz", mazes)
        with np.load(tmp_path / "mazes.npz") as file:
            assert file["version"] == version
        assert load_mazes(tmp_path / "mazes.npz").mechanism == mechanism


def test_interchange_layout(tmp_path, mazes):
    """What a reader finds that knows nothing of us: nine float64 arrays, channels first."""
    path = tmp_path / "mazes.npz"
    save_mazes(path, mazes, file_format="npz")
    with np.load(path) as file:
        assert sorted(file.files) == [f"arr_{i}" for i in range(9)]
        arrays = [file[f"arr_{i}"] for i in range(9)]
    assert {a.dtype for a in arrays} == {np.dtype(np.float64)}
    for index, (n, split) in enumerate(zip((30, 6, 4), SPLITS, strict=True)):
        data = getattr(mazes, split)
        maze, goals, policies = arrays[3 * index : 3 * index + 3]
        assert maze.shape == (n, 7, 9)
        assert goals.shape == (n, 4, 7, 9)
        assert policies.shape == (n, 3, 4, 7, 9)
        assert (policies.sum(axis=1) == 1).all()
        for i in range(n):
            row, column, orientation = data.goal[i]
            assert goals[i, orientation, row, column] == goals[i].sum() == 1
            for action, o, y, x in np.argwhere(policies[i]):
                assert data.label[i, y, x, o] == action


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.bool_])
def test_interchange_of_other_types(tmp_path, mazes, dtype):
    path = tmp_path / "mazes.npz"
    save_mazes(path, mazes, file_format="npz")
    with np.load(path) as file:
        np.savez_compressed(path, *(file[f"arr_{i}"].astype(dtype) for i in range(9)))
    _assert_equal(mazes, load_mazes(path))


def _damaged(tmp_path, mazes, file_format, change):
    """A file in which `change` has replaced arrays, name → array or None to leave it out."""
    path = tmp_path / "mazes.npz"
    save_mazes(path, mazes, file_format=file_format)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays |= change(arrays)
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def _edit(name, index, value):
    def change(arrays):
        array = arrays[name].copy()
        array[index] = value
        return {name: array}

    return change


def _cast(name, dtype):
    return lambda arrays: {name: arrays[name].astype(dtype)}


def _wall_under_goal(arrays):
    maze = arrays["test_maze"].copy()
    maze[(2, *arrays["test_goal"][2, :2])] = 0
    return {"test_maze": maze}


def _longer_paths(arrays):
    """Lengths that no single state gives away: 0 at the goals alone, and no path from walls."""
    spl = arrays["valid_spl"].copy()
    spl[(spl > 0) & (spl < 65535)] += 1
    return {"valid_spl": spl}


def _another_goal(arrays):
    """The goal turned round: all arrays are sound, but those of another goal."""
    goal = arrays["train_goal"].copy()
    goal[0, 2] ^= 1
    return {"train_goal": goal}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: {"format": np.array("poems")}, "array format is 'poems', expected 'hvin_jax"),
        (lambda a: {"version": np.array(3)}, "array version is 3, but this hvin_jax reads up to"),
        (
            lambda a: {"version": np.array([1])},
            r"array version has shape \(1,\), expected a single",
        ),
        (
            lambda a: {"mechanism": np.array("hex")},
            "array mechanism is no mechanism: unknown mechanism 'hex': expected one of diff",
        ),
        (lambda a: {"seed": np.array(0.5)}, "array seed is 0.5, expected an integer"),
        (lambda a: {"decimation": np.zeros(3)}, "array decimation is not a pair"),
        (lambda a: {"families": np.array(3)}, "array families is 3, expected a text"),
        (lambda a: {"valid_spl": None}, "array valid_spl is missing; the file has decimation, "),
        (_cast("train_maze", np.float32), "array train_maze is float32, expected uint8"),
        (_cast("test_spl", np.int32), "array test_spl is int32, expected uint16"),
        (lambda a: {"train_maze": a["train_maze"][0]}, r"train_maze has shape \(7, 9\), expected"),
        (
            lambda a: {"test_goal": a["test_goal"][1:]},
            r"test_goal has shape \(3, 3\), expected \(4",
        ),
        (lambda a: {"valid_label": a["valid_label"][..., 0]}, r"valid_label has shape \(6, 7, 9\)"),
        (_edit("train_maze", (3, 1, 1), 7), "train_maze has values other than 0"),
        (_edit("valid_goal", (1, 0), 7), r"valid_goal of maze 1 is .* outside of \(7, 9, 4\)"),
        (_wall_under_goal, r"array test_goal of maze 2, \[.*\], is on a wall"),
        (
            _edit("train_label", (5, 1, 1, 0), 3),
            r"train_label is not an optimal action in one state, in maze 5 at row, "
            r"column, orientation \[1, 1, 0\]",
        ),
        (lambda a: {"test_label": 2 - a["test_label"]}, "test_label is not an optimal action in"),
        *(
            (
                _edit("train_optimal", (0, 1, 1, 0), value),
                "train_optimal is not what the mazes' shortest paths give in one state",
            )
            for value in (0, 8, 255)
        ),
        *(
            (
                _edit("test_spl", (2, 0, 0, 3), value),
                r"test_spl is not what .* give in one state, in maze 2 at .* \[0, 0, 3\]",
            )
            for value in (0, 5, 65534)
        ),
        (_longer_paths, "valid_spl is not what the mazes' shortest paths give in"),
        (_another_goal, "train_spl is not what the mazes' shortest paths give in"),
    ],
)
def test_bad_compact_files_are_explained(tmp_path, mazes, change, message):
    path = _damaged(tmp_path, mazes, "compact", change)
    with pytest.raises(MazeFileError, match=message) as raised:
        load_mazes(path)
    assert str(raised.value).startswith(f"{path}: ")


def _interchange_wall(arrays):
    return {"arr_3": 0 * arrays["arr_3"]}


def _two_goals(arrays):
    goals = arrays["arr_7"].copy()
    goals[1] = 1
    return {"arr_7": goals}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: {"arr_5": None}, "array arr_5 is missing"),
        (lambda a: {"arr_0": a["arr_0"][0]}, r"arr_0 has shape \(7, 9\), expected \[n, H, W\]"),
        (lambda a: {"arr_1": a["arr_1"][:, 0]}, r"arr_1 has shape .* expected \[n, O, H, W\]"),
        (
            lambda a: {"arr_2": a["arr_2"][:-1]},
            r"arr_2 has shape \(29, .* with 30, 7, 9 as in arr_0",
        ),
        (lambda a: {"arr_4": a["arr_4"].astype(str)}, "arr_4 is <U32, expected numbers"),
        (_edit("arr_8", (0, 0, 0, 0, 0), 0.5), "arr_8 has values other than 0 and 1"),
        (_edit("arr_0", (0, 0, 0), np.nan), "arr_0 has values other than 0 and 1"),
        (lambda a: {"arr_2": a["arr_2"][:, :2]}, "arr_2 has 2 actions and 4 orientations, like no"),
        (
            lambda a: {"arr_5": a["arr_5"][:, :2]},
            "arr_5 has 2 actions and 4 orientations, but diff",
        ),
        (lambda a: {"arr_4": a["arr_4"][:, :2]}, "arr_4 has 2 orientations, but diffdrive has 4"),
        (lambda a: {f"arr_{i}": a[f"arr_{i}"][..., :-1] for i in (6, 7, 8)}, "arr_6 has maps of"),
        (_two_goals, r"arr_7 has 252 goals in maze 1, expected one"),
        (_interchange_wall, r"arr_4 has the goal of maze 0, \[.*\], on a wall"),
        (lambda a: {"arr_8": 0 * a["arr_8"]}, "arr_8 has states with no action or several"),
        (
            lambda a: {"arr_2": a["arr_2"][:, ::-1]},
            "arr_2 has an action that is not optimal in diffdrive in .* states, the first in maze",
        ),
    ],
)
def test_bad_interchange_files_are_explained(tmp_path, mazes, change, message):
    path = _damaged(tmp_path, mazes, "npz", change)
    with pytest.raises(MazeFileError, match=message):
        load_mazes(path)


@pytest.mark.parametrize("file_format", ["compact", "npz"])
def test_truncated_files_are_explained(tmp_path, mazes, file_format):
    path = tmp_path / "mazes.npz"
    save_mazes(path, mazes, file_format=file_format)
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(MazeFileError, match=r"not a complete .* may have been cut"):
            load_mazes(path)
    for content in (b"hello, this is text", b"\x93NUMPY"):
        path.write_bytes(content)
        with pytest.raises(MazeFileError, match="not a complete"):
            load_mazes(path)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(MazeFileError, match="not a complete"):
        load_mazes(tmp_path / "one.npy")
    with pytest.raises(MazeFileError, match=r"none.npz: there is no such file"):
        load_mazes(tmp_path / "none.npz")


def test_a_flipped_bit_is_noticed(tmp_path, mazes):
    path = tmp_path / "mazes.npz"
    save_mazes(path, mazes)
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("valid_label.npy")
    content = bytearray(path.read_bytes())
    content[member.header_offset + 80 + member.compress_size // 2] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(MazeFileError, match="array valid_label is damaged"):
        load_mazes(path)


@pytest.mark.parametrize("file_format", ["compact", "npz"])
def test_a_changed_bit_never_gives_other_mazes(tmp_path, file_format):
    """Headers and the directory of the file included."""
    mazes = _make(size=(5, 6), counts=(6, 2, 2))
    path = tmp_path / "mazes.npz"
    save_mazes(path, mazes, file_format=file_format)
    seed, refused = load_mazes(path).seed, 0
    for _ in with_one_bit_flipped([path], 100):
        try:
            again = load_mazes(path)
        except MazeFileError:
            refused += 1
        else:
            _assert_equal(mazes, again)
            assert again.seed == seed
    assert refused > 50


def test_nothing_is_left_of_a_write_that_fails(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), atomic_write(path) as file:
        file.write("text, not bytes")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_own_mechanisms_and_formats(tmp_path, mazes):
    path = tmp_path / "mazes.npz"
    save_mazes(path, mazes, file_format="npz")
    slow = dataclasses.replace(MECHANISMS["diffdrive"], name="slow")
    assert load_mazes(path, mechanism=slow).mechanism is slow
    with pytest.raises(MazeFileError, match="arr_2 has 3 actions and 4 orientations, but news"):
        load_mazes(path, mechanism=MECHANISMS["news"])
    with pytest.raises(ValueError, match="file_format is 'zip', expected 'compact' or 'npz'"):
        save_mazes(path, mazes, file_format="zip")

"""What is tried: malformed files and words, for every command and every reader of files."""

import json
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tests.malformed import damage
from tests.malformed.kit import DRAWING, ROOT, edit_json

CONFIGS = ROOT / "experiments/configs"
HUGE = 10**20
DIGITS = "9" * 5000


class Case(NamedTuple):
    """Something malformed.

    Attributes:
      kind: the class of input.
      command: what it is given to: a module, or a reader of `load.py`.
      name: what is wrong with it.
      words: the arguments.
      spoil: damages the kit in the folder where the command runs.
    """

    kind: str
    command: str
    name: str
    words: tuple[str, ...]
    spoil: Callable[[pathlib.Path], object] = lambda folder: None


def all_cases():
    """Every case, each once."""
    return [*_files(), *_descriptions(), *_maps(), *_numbers(), *_configs(), *_words(), *_sizes()]


# Who reads a file: (file, its way to be damaged, the array that is damaged, readers and words).
_MAZE_EVAL = ("--mode=eval", "--checkpoint=planner", "--data=mazes.npz")
_VIEW_EVAL = ("--mode=eval", "--checkpoint=visual", "--data=views")
TINY = (
    f"--config={CONFIGS}/quickstart.py",
    "--config.data.size=7",
    "--config.data.train=64",
    "--config.data.valid=16",
    "--config.data.test=16",
    "--config.model.num_blocks=2",
    "--config.model.block_depth=2",
    "--config.model.latent_actions=4",
    "--config.model.hidden=4",
    "--config.train.batch_size=8",
    "--config.train.num_steps=60",
    "--config.eval.every_steps=15",
    "--cpu_devices=2",
    "--nopictures",
    "--workdir=run",
)
VIEWS = (
    f"--config={CONFIGS}/vizdoom_cpu.py:vin-40",
    "--config.data.file=views",
    "--config.model.latent_actions=4",
    "--config.train.batch_size=2",
    "--cpu_devices=2",
    "--nopictures",
    "--workdir=run",
)
_RUN = "results/cpu/vin-15-20-seed0"
_PLAN = ("map.txt", "--planner=planner", "--out=")
_WALK = ("--run=visual", "--out=")
_OWN_MAZES = (*TINY, "--config.data.file=mazes.npz", "--config.train.batch_size=2")
_OWN_WEIGHTS = (*TINY, "--config.train.weights=planner")
_OWN_PERCEPTION = (*VIEWS, "--config.perception.weights=visual")
_READ_BY = (
    ("planner/planner.json", "json", "load_planner", ("planner",)),
    ("planner/weights.npz", "value_kernel", "load_planner", ("planner",)),
    ("visual/perception/perception.json", "json", "load_perception", ("visual",)),
    ("visual/perception/weights.npz", "view_dense/kernel", "load_visual_planner", ("visual",)),
    ("mazes.npz", "train_maze", "load_mazes", ("mazes.npz",)),
    ("baseline.npz", "arr_3", "load_mazes", ("baseline.npz",)),
    ("views/views.json", "json", "load_view_data", ("views",)),
    ("views/mazes.npz", "valid_spl", "load_view_data", ("views",)),
    (f"{_RUN}/result.json", "json", "Run.load", (_RUN,)),
)
_GIVEN_TO = (
    ("planner/planner.json", "json", "experiments.plan", _PLAN),
    ("planner/weights.npz", "alpha", "experiments.plan", _PLAN),
    ("planner/weights.npz", "policy", "experiments.maze", _MAZE_EVAL),
    ("mazes.npz", "test_goal", "experiments.maze", _MAZE_EVAL),
    ("mazes.npz", "seed", "experiments.maze", _OWN_MAZES),
    ("planner/weights.npz", "reward", "experiments.maze", _OWN_WEIGHTS),
    ("views/views.json", "json", "experiments.vizdoom", _VIEW_EVAL),
    ("visual/planner/weights.npz", "hidden_bias", "experiments.vizdoom", _VIEW_EVAL),
    ("visual/perception/weights.npz", "grid_conv1/bias", "experiments.vizdoom", _OWN_PERCEPTION),
    ("visual/planner/planner.json", "json", "experiments.vizdoom_walk", _WALK),
    ("visual/perception/perception.json", "json", "experiments.vizdoom_walk", _WALK),
    (f"{_RUN}/result.json", "json", "experiments.report", ("--name=depths",)),
    ("results/paper/cost.json", "json", "experiments.report", ("--name=cost",)),
    ("results/paper/first_steps.json", "json", "experiments.report", ("--name=first_steps",)),
)
# Of those, what the commands are given.
_SOME = ("cut short", "complex numbers", "a shape of 4 TB", "null", "deep lists", "a FIFO")


def _files():
    """Damaged files: all ways for the readers, the more common ones for the commands."""
    for path, array, command, words in _READ_BY + _GIVEN_TO:
        ways = damage.JSON if array == "json" else damage.arrays(array)
        if command.startswith("experiments"):
            ways = {name: how for name, how in ways.items() if name in _SOME}
        for name, how in ways.items():
            yield Case("damaged file", command, f"{path}: {name}", words, _made(path, how))
        for name, how in damage.NO_FILES.items():
            if command.startswith("experiments") and name not in _SOME:
                continue
            if "results" in path and name == "missing" and command == "Run.load":
                continue  # a run that has not finished, which is no mistake
            yield Case("not a file", command, f"{path}: {name}", words, _made(path, how))


def _made(path, how):
    def spoil(folder):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        how(folder / path)

    return spoil


_DESCRIPTIONS = {
    ("load_planner", "planner/planner.json", "planner"): {
        "version": (2, "1", None, [1]),
        "mechanism": ("tank", 3, None, ["diffdrive"], {}),
        "model": (None, [], 3, "vin", {}, {"kind": "vin"}),
        "model.kind": ("vinn", None, 3, [], {}),
        "model.num_blocks": (0, -1, 1.5, "20", None, [20], True, 10**9, HUGE),
        "model.block_depth": (0, -1, 2.5, "x", None, 10**6, HUGE),
        "model.latent_actions": (0, -4, None, 10**12),
        "model.kernel_size": (0, 2, "5", 10**9 + 1),
        "model.hidden": (0, None, 10**12),
        "model.num_orientations": (0, 3, None, 10**9),
        "model.num_actions": (0, 5, None),
        "model.epsilon": (-1, 2, "x", None),
        "model.initial_temperature": (float("nan"), "hot", None),
        "model.dtype": ("float8", "object", 3, None),
        "card": (3, "x", [1]),
        "weights": (3, "..", "/etc", "gone", ["planner"]),
    },
    ("load_perception", "visual/perception/perception.json", "visual"): {
        "version": (7, None),
        "settings": (None, [], 3, "x"),
        "settings.channels": (None, [], [2], [2, 2, 2], [2, -2], [2, "x"], 5, [10**12, 2]),
        "settings.features": (0, -1, 2.5, None, "x", 10**12),
        "settings.hidden": (0, None, 10**12),
        "settings.colour": (1,),
    },
    ("load_view_data", "views/views.json", "views"): {
        "format": (None, "x"),
        "version": (2, None),
        "seed": (None, -1, "x", 1.5),
        "total": (None, -1, "x", 10**12, 3),
        "shards": (None, 3, "x", [3], [[]], [{}], {}),
        "shards.0.file": (None, 3, "gone.npz", "../mazes.npz", "/dev/zero", ""),
        "shards.0.mazes": (None, -1, "x", 10**12),
        "shards.0.sha256": (None, 3, ""),
    },
    ("Run.load", f"{_RUN}/result.json", _RUN): {
        "config": (None, [], 3),
        "config.model": (None, [], {}),
        "config.model.kind": (None, "vinn", []),
        "config.model.depth": ("x", [], -1),
        "config.data.size": (None, "x", -1),
        "test": (None, [], 3, {}),
        "test.ranges": (None, 3, [3], [{}]),
        "steps": (None, "x"),
        "wall_seconds": (None, "x"),
        "sittings": (None, 3, [3]),
    },
}


def _descriptions():
    """JSON files with one entry that is wrong or gone."""
    for (reader, path, word), entries in _DESCRIPTIONS.items():
        for entry, values in entries.items():
            for value in values:
                shown = json.dumps(value)
                name = f"{path}: {entry} = {shown}"
                yield Case("wrong entry", reader, name, (word,), _with_entry(path, entry, value))
            if entry not in ("card", "weights", "settings.colour") and entry.count(".") != 1:
                name = f"{path}: without {entry}"
                yield Case("wrong entry", reader, name, (word,), _with_entry(path, entry, None, 1))


def _with_entry(path, entry, value, gone=False):
    def change(content):
        *way, last = (int(x) if x.isdigit() else x for x in entry.split("."))
        for step in way:
            content = content[step]
        if gone:
            del content[last]
        else:
            content[last] = value

    return lambda folder: edit_json(folder / path, change)


def _npy(array):
    def how(path):
        np.save(path, array, allow_pickle=True)

    return how


def _npz(path):
    with path.open("wb") as file:
        np.savez(file, np.ones((5, 5)))


_MAPS = {
    "empty.txt": damage.writes(""),
    "blank.txt": damage.writes("\n \n\n"),
    "ragged.txt": damage.writes("###\n#S.G#\n"),
    "letters.txt": damage.writes("#S.G?#"),
    "starts.txt": damage.writes("#SSG#"),
    "no_start.txt": damage.writes("#..G#"),
    "no_goal.txt": damage.writes("#S..#"),
    "tabs.txt": damage.writes("#S\tG#"),
    "nul.txt": damage.writes("#S\0G#"),
    "utf16.txt": damage.writes(DRAWING.encode("utf-16")),
    "utf8.txt": damage.writes(b"#S\xffG#"),
    "bytes.txt": damage.DAMAGED["bytes at random"],
    "sparse.txt": damage.as_sparse,
    "long.txt": damage.writes("." * 30_000_000),
    "tall.txt": damage.writes(".\n" * 20_000_000),
    "wide.txt": damage.writes(f"S{'.' * 5_000_000}G"),
    "empty.yaml": damage.writes(""),
    "itself.yaml": damage.writes("image: itself.yaml\nfree_thresh: 0.2\n"),
    "long.yaml": damage.writes("image: x\n" * 5_000_000),
    "empty.png": damage.writes(b""),
    "bytes.png": damage.DAMAGED["bytes at random"],
    "text.png": damage.writes(DRAWING),
    "jpeg.png": damage.writes(damage.picture("JPEG")),
    "gif.png": damage.writes(damage.picture("GIF")),
    "bmp.png": damage.writes(damage.picture("BMP")),
    "tiff.png": damage.writes(damage.picture("TIFF")),
    "icon.png": damage.writes(damage.picture("ICO", (16, 16))),
    "pdf.png": damage.writes(b"%PDF-1.4\n"),
    "postscript.png": damage.writes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n"),
    "cut.png": damage.writes(damage.picture("PNG", (400, 400))[:-40]),
    "cut_early.png": damage.writes(damage.picture("PNG", (400, 400))[:20]),
    "head_only.png": damage.writes(damage.png(8, 8)),
    "junk_within.png": damage.writes(damage.png(8, 8, data=b"junk" * 10)),
    "no_pixels.png": damage.writes(damage.png(0, 8)),
    "all_black.png": damage.writes(damage.black_png(8, 8)),
    "grey.png": damage.writes(damage.picture("PNG", (4, 4), bits=8)),
    "13000.png": damage.writes(damage.black_png(13000, 13000)),
    "9000.png": damage.writes(damage.black_png(9000, 9000)),
    "claims_2e9.png": damage.writes(damage.png(2**31 - 1, 2**31 - 1)),
    "sparse.png": damage.as_sparse,
    "empty.npy": damage.writes(b""),
    "bytes.npy": damage.DAMAGED["bytes at random"],
    "text.npy": damage.writes(DRAWING),
    "scalar.npy": _npy(np.array(1)),
    "row.npy": _npy(np.ones(5)),
    "batch.npy": _npy(np.ones((2, 5, 5))),
    "no_cells.npy": _npy(np.ones((0, 5))),
    "twos.npy": _npy(np.full((5, 5), 2)),
    "nan.npy": _npy(np.full((5, 5), np.nan)),
    "objects.npy": _npy(np.full((5, 5), None)),
    "texts.npy": _npy(np.full((5, 5), "1")),
    "bytes_array.npy": _npy(np.full((5, 5), b"1")),
    "complex.npy": _npy(np.ones((5, 5), complex)),
    "dates.npy": _npy(np.zeros((5, 5), "M8[s]")),
    "records.npy": _npy(np.ones((5, 5), [("a", "i4")])),
    "cut.npy": damage.writes(damage.npy_header((9, 9))),
    "claims_4tb.npy": damage.writes(damage.npy_header((10**6, 10**6))),
    "claims_beyond.npy": damage.writes(damage.npy_header((10**12, 10**12))),
    "negative.npy": damage.writes(damage.npy_header((-5, -5))),
    "junk.npy": damage.writes(b"\x93NUMPY\x01\x00\x04\x00{{{{"),
    "sparse.npy": damage.as_sparse,
    "zip.npy": _npz,
    "short.map": damage.writes("type octile\nheight 5\n"),
    "small.map": damage.writes("type octile\nheight 9\nwidth 9\nmap\n...\n"),
    "hexagons.map": damage.writes("type hex\nheight 1\nwidth 1\nmap\n.\n"),
    "bytes.map": damage.DAMAGED["bytes at random"],
    "no_start.map": damage.writes("type octile\nheight 1\nwidth 3\nmap\n.@.\n"),
    "empty.csv": damage.writes(""),
    "ragged.csv": damage.writes("0,1\n0\n"),
    "words.csv": damage.writes("row,column\n0,1\n"),
    "bytes.csv": damage.DAMAGED["bytes at random"],
    "map.gif": damage.writes(damage.picture("GIF")),
    "map.jpg": damage.writes(damage.picture("JPEG")),
    "map": damage.writes(DRAWING),
    "map.npz": _npz,
}
# Maps as they are, but not with a start and a goal.
_SOUND_MAPS = (
    "no_start.txt",
    "no_start.map",
    "no_goal.txt",
    "wide.txt",
    "grey.png",
    "all_black.png",
)


def _maps():
    for name, how in _MAPS.items():
        if name not in _SOUND_MAPS:
            yield Case("map", "read_map", name, (name,), _made(name, how))
        if name in (*_SOUND_MAPS, "sparse.txt", "jpeg.png", "13000.png", "complex.npy"):
            yield Case("map", "experiments.plan", name, (name, "--out="), _made(name, how))
    for name, how in damage.NO_FILES.items():
        for kind in ("txt", "png", "npy", "yaml"):
            words = (f"bad.{kind}", "--out=")
            spoil = _made(words[0], how)
            yield Case("not a file", "read_map", f"{words[0]}: {name}", words[:1], spoil)
            if name == "a FIFO":
                yield Case("not a file", "experiments.plan", f"{words[0]}: {name}", words, spoil)
    for name in ("utf16.txt", "13000.png", "complex.npy", "no_goal.txt"):
        words = ("--run=visual", f"--map={name}", "--out=")
        yield Case("map", "experiments.vizdoom_walk", name, words, _made(name, _MAPS[name]))


_INTEGERS = ("x", "-1", "1.5", DIGITS)
_MAZE_NUMBERS = {
    "seed": (-1, HUGE, "x"),
    "data.size": (-1, 0, 3, HUGE, "1.5"),
    "data.train": (-1, 0),
    "data.valid": (-1, 0),
    "data.test": (-1, 0),
    "data.seed": (-1, HUGE),
    "data.min_decimation": ("nan", -1, 2),
    "data.max_decimation": ("nan", "inf", -0.5),
    "data.families": ("caverns", "caves:0", "caves,caves", ",", 3),
    "data.mechanism": ("", "tank"),
    "data.costs": ("x", "9:1", "0:1", "1:inf", "1:2:3"),
    "data.more_goals": (-1, HUGE, 1000),
    "model.kind": ("", "vinn"),
    "model.num_blocks": (0, -1, HUGE, "deep"),
    "model.block_depth": (0, -1, HUGE),
    "model.num_policies": (0, HUGE),
    "model.latent_actions": (0, -1, HUGE),
    "model.hidden": (0, HUGE),
    "model.kernel_size": (0, 2, -3),
    "model.epsilon": ("nan", -0.1, 1.1, "inf", "x"),
    "model.initial_temperature": ("nan", "inf", "-inf"),
    "model.dtype": ("", "float64", "int8"),
    "model.filter_gate": ("perhaps",),
    "model.positive_temperatures": ("perhaps",),
    "loss.long_paths": (-1, "nan", "inf"),
    "optimizer.learning_rate": (0, -1, "nan", "inf", "x"),
    "optimizer.clip_norm": (-1, "nan"),
    "optimizer.warmup_steps": (-1, HUGE, 61),
    "optimizer.name": ("", "__name__", "GradientTransformation", "tree"),
    "optimizer.schedule": ("", "steps"),
    "train.batch_size": (0, -8, 7, HUGE),
    "train.num_epochs": (-1, HUGE),
    "train.num_steps": (-1, 3 * 10**9, HUGE),
    "train.feed": ("", "x"),
    "train.stop_after_collapses": (-1,),
    "eval.batch_size": (-1, 7),
    "eval.every_steps": (-1,),
    "eval.valid_mazes": (-1,),
    "eval.select": ("", "speed"),
}


def _numbers():
    for option in ("train", "valid", "test", "seed", "workers"):
        for value in _INTEGERS:
            words = ("--size=7", "--train=2", "--valid=1", "--test=1", "--out=new/out.npz")
            yield _number("experiments.make_mazes", (*words, f"--{option}={value}"))
    for option in ("min_decimation", "max_decimation"):
        for value in ("x", "nan", "inf", "-0.1", "1.1"):
            words = ("--size=7", "--train=2", f"--{option}={value}", "--out=new/out.npz")
            yield _number("experiments.make_mazes", words)
    yield _number("experiments.make_mazes", ("--seed=99999999999999999999", "--out=new/out.npz"))
    for value in ("", ",", "caverns", "caves:", "caves:x", "caves:nan", "caves:-1", "caves:inf"):
        yield _number("experiments.make_mazes", (f"--families={value}", "--out=new/out.npz"))
    for option in ("size=6", "size=x", "count=0", "seed=-1", "seed=x"):
        yield _number("experiments.draw_families", ("--out=new.png", f"--{option}"))
    for option in ("maps=-1", "maps=x", "seed=-1", "sizes=6", "sizes=x", "sizes=", "families=x"):
        words = ("--planner=planner", "--out=new", f"--{option}")
        yield _number("experiments.generality", words)
    for option in (
        *("depth=7", "depth=x", "updates=0", "size=4", "maps=0", "agents=-1", "seed=-1", "mazes=x"),
        *("learning_rate=0", "learning_rate=nan", "entropy=-1", "entropy=nan", "wall_reward=inf"),
        *("model=vin", "mechanism=tank", "start=x", "size=5", "agents=9999999"),
    ):
        words = ("--size=7", "--mazes=9", "--unseen=4", "--updates=1", "--maps=9", "--workdir=new")
        yield _number("experiments.reward", (*words, f"--{option}"))
    for value in ("x", "0", "-1", "²", "1e3", DIGITS):
        yield _number("experiments.plan", ("map.txt", f"--cell={value}", "--out="))
    for value in (
        "x",
        "1",
        "1,",
        "1,x",
        "1,1,1,1",
        "-1,1",
        "99,99",
        f"{DIGITS},1",
        "1,²",
        "nan,1",
        "1,1,9",
    ):
        yield _number("experiments.plan", ("map.txt", f"--start={value}", "--out="))
    for name, values in _MAZE_NUMBERS.items():
        for value in values:
            yield _number("experiments.maze", (*TINY, f"--config.{name}={value}"))
    epochs = ("--config.train.num_steps=0", "--config.train.num_epochs=0")
    yield _number("experiments.maze", (*TINY, *epochs))
    for flag in ("cpu_devices=-1", "cpu_devices=x", f"cpu_devices={HUGE}", "parent=-1", "mode=x"):
        yield _number("experiments.maze", (*TINY, f"--{flag}"))
    for changes in (
        ("num_processes=0", "process_id=0"),
        ("num_processes=2", "process_id=2"),
        ("num_processes=2",),
    ):
        words = (f"--{change}" for change in ("coordinator=127.0.0.1:1", *changes))
        yield _number("experiments.maze", (*TINY, *words))
    for address in ("x", "127.0.0.1:99999999", ":1", "127.0.0.1:x"):
        words = (f"--coordinator={address}", "--num_processes=2", "--process_id=0")
        yield _number("experiments.maze", (*TINY, *words))
    for change in (
        "perception.learning=x",
        "perception.channels=(2,)",
        "perception.channels=(2,-2)",
        "perception.features=0",
        "perception.hidden=-1",
        "perception.true_map_epochs=-1",
        "loss.map_weight=-1",
        "loss.map_weight=nan",
        "data.mechanism=news",
        "data.max_decimation=0.5",
        "data.families=caves",
        "perception.weights=gone",
        "train.weights=gone",
        "seed=-1",
        "model.depth=0",
        "data.file=gone",
    ):
        yield _number("experiments.vizdoom", (*VIEWS, f"--config.{change}"))
    for option in ("train", "valid", "test", "seed", "shard", "workers"):
        for value in ("x", "-1", HUGE) if option == "seed" else ("x", "-1"):
            words = ("--size=7", "--train=2", "--out=new", f"--{option}={value}")
            yield _number("experiments.make_views", words)
    for option in ("size=x", "size=3", "size=-1", "walks=0", "walks=x", "seed=-1", f"seed={HUGE}"):
        words = ("--run=visual", "--out=", f"--{option}")
        yield _number("experiments.vizdoom_walk", words)
    for option in ("seeds=x", "seeds=", "seeds=0,0", "name=nothing", "name=", "scale=huge"):
        yield _number("experiments.study", ("--name=depths", "--dry_run", f"--{option}"))
        yield _number("experiments.report", ("--name=depths", f"--{option}"))


def _number(command, words):
    changed = words[-1] if len(words[-1]) < 60 else f"{words[-1][:40]}…"
    if command in ("experiments.make_mazes", "experiments.make_views") and "out" in changed:
        changed = words[-2] if len(words) > 2 else words[0]
    return Case("number or name", command, changed, words)


_CONFIG_TEXTS = {
    "empty.py": "",
    "syntax.py": "def get_config(:\n",
    "indent.py": "  x = 1\n y = 2\n",
    "raises.py": "raise RuntimeError('no')\n",
    "raises_within.py": "def get_config():\n    raise KeyError('no')\n",
    "divides.py": "def get_config():\n    return 1 / 0\n",
    "imports.py": "import nothing_of_that_name\n",
    "none.py": "def get_config():\n    return None\n",
    "number.py": "def get_config():\n    return 3\n",
    "text.py": "def get_config():\n    return 'x'\n",
    "dict.py": "def get_config():\n    return {'seed': 0}\n",
    "bare.py": "import ml_collections\nget_config = ml_collections.ConfigDict\n",
    "not_callable.py": "get_config = 3\n",
    "recursion.py": "def get_config():\n    return get_config()\n",
    "nested.py": f"x = {'[' * 5000}{']' * 5000}\n",
    "arguments.py": "def get_config(a, b):\n    return a\n",
    "nul.py": "x = '\0'\n",
    "latin.py": b"x = '\xe4'\n",
    "random.py": damage.np.random.default_rng(1).bytes(3000),
}
_CHANGED_CONFIGS = {
    "no_seed": "del config.seed",
    "no_data": "del config.data",
    "no_model": "del config.model",
    "no_kind": "del config.model.kind",
    "no_size": "del config.data.size",
    "no_batch": "del config.train.batch_size",
    "no_eval": "del config.eval",
    "no_optimizer": "del config.optimizer",
    "no_loss": "del config.loss",
    "no_name": "del config.name",
    "text_seed": "config.seed = 'x'",
    "float_steps": "config.train.num_steps = 1.5",
    "none_batch": "config.train.batch_size = None",
    "list_size": "config.data.size = [7, 7]",
    "text_rate": "config.optimizer.learning_rate = 'fast'",
    "number_name": "config.name = 3",
    "text_model": "config.model = 'vin'",
    "data_of_text": "config.data = 'x'",
    "more_loss": "config.loss.colour = 1",
    "more_optimizer": "config.optimizer.colour = 1",
    "more_model": "config.model.colour = 1",
}


def _configs():
    for name, text in _CONFIG_TEXTS.items():
        for command in ("experiments.maze", "experiments.sweep"):
            spoil = _made(name, damage.writes(text))
            yield Case("configuration", command, name, (f"--config={name}",), spoil)
    for name, change in _CHANGED_CONFIGS.items():
        lines = (
            "from experiments.configs import quickstart",
            "def get_config():",
            "    config = quickstart.get_config()",
            "    config = type(config)(config.to_dict())",
            f"    with config.ignore_type():\n        {change}",
            "    return config",
        )
        spoil = _made(f"{name}.py", damage.writes("\n".join(lines)))
        words = (f"--config={name}.py", "--nopictures")
        if name != "no_name":
            words = (*words, "--workdir=run")
        if name == "number_name":
            words = words[:2]
        yield Case("configuration", "experiments.maze", name, words, spoil)
    for name, how in damage.NO_FILES.items():
        for command in ("maze", "sweep"):
            words, spoil = ("--config=bad.py",), _made("bad.py", how)
            yield Case("not a file", f"experiments.{command}", f"bad.py: {name}", words, spoil)
        words = ("--config", "bad.py:x")
        yield Case("not a file", "experiments.maze", f"bad.py:x: {name}", words, spoil)
        words = ("--flagfile=bad.flags",)
        spoil = _made("bad.flags", how)
        yield Case("not a file", "experiments.maze", f"bad.flags: {name}", words, spoil)
    for cell in (
        "",
        "vin",
        "vin-15",
        "vin-15-x",
        "vin-15-20-3",
        "vim-15-20",
        "vin-3-20",
        "vin-15-0",
        "highway_vin-15-30",
        "highway_vin-15-0",
        "vin-15-²",
        f"vin-15-{10**20}",
        f"vin-{10**20}-20",
        "-15-20",
        "vin--15-20",
        "vin-15-20:x",
    ):
        words = (f"--config={CONFIGS}/cpu.py:{cell}", "--workdir=run", "--nopictures")
        yield Case("cell", "experiments.maze", f"cpu.py:{cell}", words)
    for cell in ("", "vin", "vin-25-40", "vin-x", "vim-40", "highway_vin-30", "vin-0"):
        words = (f"--config={CONFIGS}/vizdoom_cpu.py:{cell}", "--workdir=run", "--nopictures")
        yield Case("cell", "experiments.vizdoom", f"vizdoom_cpu.py:{cell}", words)
    for command, config in (
        ("maze", "configs/vizdoom_cpu.py:vin-40"),
        ("maze", "sweeps/tiny.py"),
        ("maze", "maze.py"),
        ("maze", "configs/base.py"),
        ("maze", "configs/quickstart.py:x"),
        ("vizdoom", "sweeps/tiny.py"),
        ("vizdoom", "configs/quickstart.py"),
        ("sweep", "configs/quickstart.py"),
        ("sweep", "sweeps/tiny.py:x"),
        ("sweep", "configs/cpu.py"),
    ):
        words = (f"--config={ROOT}/experiments/{config}",)
        yield Case("configuration", f"experiments.{command}", config, words)
    for how in ("empty", "null", "a list", "deep lists", "deep objects", "bytes at random"):
        spoil = _made("run/config.json", damage.JSON[how])
        yield Case("damaged file", "experiments.maze", f"run/config.json: {how}", TINY, spoil)
    for how in ("a folder", "a FIFO", "a device"):
        spoil = _made("run/config.json", damage.NO_FILES[how])
        yield Case("not a file", "experiments.maze", f"run/config.json: {how}", TINY, spoil)
    for source in ("gone", "planner", "map.txt"):
        words = (*TINY, f"--start_from={source}")
        yield Case("number or name", "experiments.maze", f"--start_from={source}", words)


def _words():
    commands = (
        "plan",
        "make_mazes",
        "maze",
        "vizdoom",
        "make_views",
        "draw_families",
        "generality",
        "vizdoom_walk",
        "study",
        "sweep",
        "report",
    )
    for command in commands:
        for words in (("--colour=red",), ("surplus", "surplus")):
            yield Case("words", f"experiments.{command}", " ".join(words), words)
        if command != "report":
            yield Case("words", f"experiments.{command}", "nothing", ())
    for words in (("dance",), ("plan", "map.txt", "more"), ("mazes", "--size"), ("label",)):
        yield Case("words", "hvin_jax", " ".join(words), words)
    for option in (
        "planner=gone",
        "planner=map.txt",
        "port=x",
        "port=-1",
        f"port={HUGE}",
        "host=?",
    ):
        yield Case("words", "hvin_jax", f"play --{option}", ("play", "--no-browser", f"--{option}"))
    for option in ("maps=gone", "maps=.", "maps=map.txt", "mechanism=legs", "split=1", "per_map=0"):
        words = ("label", "--maps=maze.npy", "--out=new/out.npz", f"--{option}")
        yield Case(
            "words", "hvin_jax", " ".join(words), words, _made("maze.npy", _MAPS["empty.npy"])
        )
    for name in ("empty.npy", "bytes.npy", "complex.npy"):
        words = ("label", f"--maps={name}", "--out=new/out.npz")
        yield Case("map", "hvin_jax", f"label {name}", words, _made(name, _MAPS[name]))
    for size in ("", "x", "9x", "x9", "9x9x9", "-9", "9.5", "3", "2x9", "0", DIGITS):
        yield _number("experiments.make_mazes", ("--out=new/out.npz", f"--size={size}"))
        yield _number("experiments.make_views", ("--out=new", f"--size={size}"))
    for out in (".", "map.txt/out.npz", "fifo"):
        words = ("--size=7", "--train=2", "--valid=1", "--test=1", f"--out={out}")
        yield Case(
            "words", "experiments.make_mazes", f"--out={out}", words, _made("fifo", damage.as_fifo)
        )
    for words in (("--mechanism=legs",), ("--mechanism=moore", "--planner=planner")):
        yield Case("words", "experiments.plan", " ".join(words), ("map.txt", *words))
    for out in (".", "map.txt/plan.png", "gone/plan.png", "plan.docx", "plan", "fifo.png"):
        spoil = _made("fifo.png", damage.as_fifo)
        yield Case("words", "experiments.plan", f"--out={out}", ("map.txt", f"--out={out}"), spoil)
    for mode in (
        (),
        ("--checkpoint=gone", "--data=mazes.npz"),
        ("--checkpoint=planner",),
        ("--checkpoint=planner", "--data=gone"),
        ("--checkpoint=planner", "--data=views"),
        ("--checkpoint=visual/perception", "--data=mazes.npz"),
    ):
        yield Case("words", "experiments.maze", " ".join(mode), ("--mode=eval", *mode))
    for mode in (
        ("--checkpoint=planner", "--data=views"),
        ("--checkpoint=visual", "--data=mazes.npz"),
        ("--checkpoint=visual", "--data=gone"),
        ("--checkpoint=views", "--planner=gone", "--data=views"),
        ("--checkpoint=views", "--planner=news", "--data=views"),
        ("--checkpoint=visual", "--data=views", "--workdir=mazes.npz"),
    ):
        yield Case("words", "experiments.vizdoom", " ".join(mode), ("--mode=eval", *mode))
    for words in (("--run=gone",), ("--run=planner",), ("--run=visual", "--out=walk.png")):
        yield Case("words", "experiments.vizdoom_walk", " ".join(words), words)


def _sizes():
    """What would take more memory, or more layers, than there can be."""
    for size in ("100000", "4x100000", "1000000x1000000", "30000", "4x60000"):
        yield Case(
            "huge",
            "experiments.make_mazes",
            f"--size={size}",
            (f"--size={size}", "--out=new/out.npz"),
        )
        words = (f"--size={size}", "--train=1", "--valid=1", "--test=1", "--out=new/out.npz")
        if size != "4x60000":
            yield Case("huge", "experiments.make_mazes", f"--size={size}, 3 mazes", words)
            yield Case(
                "huge", "experiments.make_views", f"--size={size}", (f"--size={size}", "--out=new")
            )
    for option in (
        "train=99999999999999",
        "valid=99999999999999",
        "test=99999999999",
        f"train={HUGE}",
        "workers=99999999",
    ):
        words = ("--size=15", f"--{option}")
        yield Case("huge", "experiments.make_mazes", f"--{option}", (*words, "--out=new/out.npz"))
        yield Case("huge", "experiments.make_views", f"--{option}", (*words, "--out=new"))
    for changes in (
        ("data.size=100000",),
        ("data.size=40000",),
        ("data.train=99999999999999",),
        ("data.valid=99999999999",),
        ("model.block_depth=1000000",),
        ("model.num_blocks=1000000",),
        ("model.num_policies=1000000",),
        ("model.latent_actions=1000000000",),
        ("model.hidden=1000000000000",),
        ("model.kernel_size=1000001",),
        ("eval.batch_size=1000000000000",),
        ("train.batch_size=99999999999992", "data.train=99999999999999"),
        ("model.kind=gppn", "model.hidden=10000000"),
        ("data.seed=0", "data.size=9000"),
    ):
        words = tuple(f"--config.{change}" for change in changes)
        tiny = [
            x for x in TINY if not (changes[0].startswith("model.kind") and "config.model" in x)
        ]
        yield Case("huge", "experiments.maze", " ".join(words), (*tiny, *words))
    for flag in ("cpu_devices=100000000", "cpu_devices=65536"):
        yield Case("huge", "experiments.maze", f"--{flag}", (*TINY, f"--{flag}"))
        words = ("--mode=eval", "--checkpoint=planner", "--data=mazes.npz", f"--{flag}")
        yield Case("huge", "experiments.maze", f"--mode=eval --{flag}", words)
    for change in (
        "model.depth=100000000",
        "perception.features=100000000000",
        "perception.channels=(10000000000,2)",
    ):
        yield Case(
            "huge", "experiments.vizdoom", f"--config.{change}", (*VIEWS, f"--config.{change}")
        )
    for option in ("size=100000", "walks=999999999999", "size=20000"):
        yield Case(
            "huge",
            "experiments.vizdoom_walk",
            f"--{option}",
            ("--run=visual", f"--{option}", "--out="),
        )

    def deep(folder):
        _with_entry("planner/planner.json", "model.block_depth", 20_000)(folder)
        (folder / "map.txt").write_text(
            "\n".join([f"S{'.' * 2999}"] + 2998 * ["." * 3000] + [f"{'.' * 2999}G"])
        )

    yield Case(
        "huge",
        "experiments.plan",
        "3000×3000 map",
        ("map.txt", "--planner=planner", "--out="),
        deep,
    )

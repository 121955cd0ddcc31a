r"""Trains and tests a planner on first-person views from the Doom engine.

At a size for CPUs, then a row of the paper's table:

    python -m experiments.vizdoom --config=experiments/configs/vizdoom_cpu.py:highway_vin-100
    python -m experiments.vizdoom --config=experiments/configs/vizdoom_paper.py:highway_vin-100

Views are made on the way if they are not there yet, which needs the engine (pip install
'hvin_jax[vizdoom]'); training from views that are there does not. Everything else is as with
`python -m experiments.maze`. Start from the perception of another run, and leave it as it is:

    python -m experiments.vizdoom --config=experiments/configs/vizdoom_cpu.py:vin-40 \
        --config.perception.weights=runs/other --config.perception.learning=frozen

Test a trained one on any folder of views:

    python -m experiments.vizdoom --mode=eval --checkpoint=runs/vizdoom-cpu-vin-40 --data=data/views
"""

import pathlib
from typing import Any

import jax
from absl import app, flags
from ml_collections import ConfigDict

from experiments import command, launch
from experiments.data import configured_views
from hvin_jax.models.perception import (
    VisualModel,
    join_params,
    make_perception,
    part_params,
)
from hvin_jax.report.doom import map_figure, views_figure
from hvin_jax.tasks.doom.camera import VIEW_SHAPE
from hvin_jax.tasks.doom.view_data import ViewData, load_view_data
from hvin_jax.tasks.drawing import save_figure
from hvin_jax.training.batches import steps_per_epoch
from hvin_jax.training.state import Params
from hvin_jax.training.step import Decisions
from hvin_jax.training.visual import ViewCollator, freeze_perception, view_arrays, view_forward
from hvin_jax.visual_planner import (
    load_perception,
    load_visual_planner,
    save_perception,
)

# Its flags are this command's, so that --help lists them.
flags.adopt_module_key_flags(command)
# Settings of config.perception that say how it is trained, not what it is.
_TRAINING = ("learning", "true_map_epochs", "weights")


def main(argv: list[str]) -> None:
    """Runs the command."""
    command.run(
        command.Command(
            name="vizdoom",
            example="experiments/configs/vizdoom_cpu.py",
            prepare=_prepare,
            load=_load,
            files=(*command.Command.files, "perception/", "maps.png", "views.png"),
        ),
        argv,
    )


def _prepare(config: ConfigDict, data_folder: pathlib.Path) -> tuple[launch.Task, launch.Settings]:
    data = configured_views(config.data, data_folder)
    settings = launch.Settings(config, len(data.mazes.train))
    if config.perception.learning == "frozen":
        settings.optimizer = freeze_perception(settings.optimizer)
    return make_task(config, data), settings


def make_task(config: ConfigDict, data: ViewData) -> launch.Task:
    """Planning on maps that are predicted from views."""
    fields = {k: v for k, v in config.perception.items() if k not in _TRAINING}
    planner = launch.model_of(config, data.mazes.mechanism)
    model = VisualModel(make_perception(fields), planner)
    goal = (*data.mazes.train.size, planner.num_orientations)
    seeing = _pretrained(config.perception.weights, fields)
    planning = launch.first_weights(config, data.mazes.mechanism)

    def init(key: jax.Array) -> Params:
        params = model.init_params(key, VIEW_SHAPE, goal)
        return join_params(
            part_params(params, "perception") if seeing is None else seeing,
            part_params(params, "planner") if planning is None else planning,
        )

    jax.eval_shape(init, jax.random.key(0))  # impossible settings show here
    per_epoch = steps_per_epoch(len(data.mazes.train), config.train.batch_size)

    def write_more(folder: pathlib.Path, params: Params, made: Decisions) -> None:
        card = {"name": config.name, "config": config.to_dict()}
        save_perception(folder / "perception", fields, part_params(params, "perception"), card)
        test = data.mazes.test
        save_figure(map_figure(made.free[:6], test.maze[:6]), folder / "maps.png")
        save_figure(views_figure(data, "test", 0), folder / "views.png")

    return launch.Task(
        forward=view_forward(
            model,
            learning=config.perception.learning,
            true_map_steps=config.perception.true_map_epochs * per_epoch,
        ),
        init=init,
        train=view_arrays(data, "train", labels=True),
        valid=_split(data, "valid"),
        test=_split(data, "test"),
        collate=ViewCollator(data),
        planner_params=lambda params: part_params(params, "planner"),
        write_more=write_more,
    )


def _pretrained(path: str, fields: dict[str, Any]) -> Any:
    if not path:
        return None
    settings, params = load_perception(path)
    if make_perception(settings) != make_perception(fields):
        raise ValueError(f"the perception of {path} has settings {settings}, not {fields}")
    return params


def _split(data: ViewData, name: str) -> launch.Split:
    return launch.Split(getattr(data.mazes, name), view_arrays(data, name, labels=False))


def _load(source: str, path: str, split: str) -> command.Trained:
    trained = load_visual_planner(source)
    data = load_view_data(path)
    return command.Trained(
        forward=view_forward(trained.model),
        params=trained.params,
        split=_split(data, split),
        collate=ViewCollator(data),
    )


if __name__ == "__main__":
    app.run(main)

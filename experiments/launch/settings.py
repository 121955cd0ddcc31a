"""From a configuration (experiments/configs/base.py) to what `hvin_jax.training` takes."""

from collections.abc import Iterable
from typing import Any

import jax
from ml_collections import ConfigDict

from experiments.configs.base import MODEL_SETTINGS, base_config
from hvin_jax.models import MODELS, default_settings, init_params, make_model
from hvin_jax.tasks.mechanisms import Mechanism, get_mechanism
from hvin_jax.training import Imitation, Recipe

# Settings that configurations for views do not have.
_OF_SOME_RUNS = ("train.symmetries",)


def check_structure(config: Any) -> None:
    """Raises if a configuration lacks a setting of all runs, or has one of another type."""
    if not isinstance(config, ConfigDict):
        raise ValueError("this is not the configuration of a run, see experiments/configs")
    _check_like(config, base_config(name="", model="vin", size=15), "")


def _check_like(config: Any, like: ConfigDict, above: str) -> None:
    for name, wanted in like.items():
        full = f"{above}{name}"
        if full in _OF_SOME_RUNS or (above == "model." and name != "kind"):
            continue
        if name not in config:
            raise ValueError(f"the configuration has no setting {full}, see experiments/configs")
        value = config[name]
        if isinstance(wanted, ConfigDict) and isinstance(value, ConfigDict):
            _check_like(value, wanted, f"{full}.")
        elif not (type(value) is type(wanted) or (type(wanted) is float and type(value) is int)):
            kind = type(wanted).__name__
            raise ValueError(f"config.{full} is {value!r}, expected one of type {kind}")


def settle_kind(config: ConfigDict, given: Iterable[str]) -> None:
    """Brings the settings of another kind of model where only `model.kind` was changed.

    What both kinds have is kept, what the new one lacks is dropped, and the rest has its default.

    Args:
      config: is changed.
      given: the names that were changed explicitly, such as "model.kind"; these stay, and it is an
        error later on if the kind does not have them.
    """
    names = {name.removeprefix("model.") for name in given if name.startswith("model.")}
    kind = config.model.kind
    if "kind" not in names or kind not in MODELS:
        return
    with config.unlocked():
        for name in config.model:
            default = MODEL_SETTINGS[kind].get(name)
            if name not in names | {"kind"} and (default is None or config.model[name] is None):
                config.model[name] = default


def model_of(
    config: ConfigDict, mechanism: Mechanism | None = None, *, terrain: bool = False
) -> Any:
    """The planner of a configuration; impossible settings are an error.

    Args:
      config: the configuration.
      mechanism: how the agent moves; by default the one that `config.data` names.
      terrain: whether cells have costs.
    """
    mechanism = mechanism or get_mechanism(config.data.mechanism)
    settings = stored(config)["model"]
    of_task: dict[str, Any] = {
        "num_orientations": mechanism.num_orientations,
        "num_actions": mechanism.num_actions,
        "moves": mechanism.moves,
        "terrain": terrain,
    }
    known = default_settings(settings["kind"])
    model = make_model(**settings, **{name: x for name, x in of_task.items() if name in known})
    jax.eval_shape(lambda: init_params(model, jax.random.key(0)))
    return model


def recipe_of(config: ConfigDict) -> Recipe:
    """How a configuration trains.

    Raises:
      ValueError, TypeError: something is wrong, as far as it shows before there are data.
    """
    train, evaluation, optimizer = config.train, config.eval, config.optimizer.to_dict()
    recipe = Recipe(
        num_steps=train.num_steps,
        num_epochs=train.num_epochs,
        batch_size=train.batch_size,
        seed=config.seed,
        loss=Imitation(**config.loss),
        optimizer={**optimizer, "clip_norm": optimizer["clip_norm"] or None},
        validate_every=evaluation.every_steps,
        valid_mazes=evaluation.valid_mazes,
        eval_batch_size=evaluation.batch_size,
        select=evaluation.select,
        skip_not_finite=train.skip_not_finite,
        stop_after_collapses=train.stop_after_collapses,
        feed=train.feed,
    )
    recipe.for_examples(train.batch_size if config.data.file else config.data.train)
    return recipe


def stored(config: ConfigDict) -> dict[str, Any]:
    """A configuration as `config.json` keeps it: without the settings of other kinds of model."""
    content = config.to_dict()
    content["model"] = {name: x for name, x in content["model"].items() if x is not None}
    return content


def depth_of(config: ConfigDict) -> int:
    """The number of layers of the model of a configuration."""
    return config.model.depth or config.model.num_blocks * config.model.block_depth

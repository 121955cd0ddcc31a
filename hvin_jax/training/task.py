"""What is trained, on what, and how: a run is a task and a recipe."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
import optax

from hvin_jax._digest import digest_of
from hvin_jax._saved import flat_params
from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.tasks.measures import Scores
from hvin_jax.training import batches, devices
from hvin_jax.training.objective import Imitation
from hvin_jax.training.optimizers import check_optimizer, make_optimizer
from hvin_jax.training.step import Augment, EvalStep, Forward, Params, make_eval_step

SELECT = ("optimality", "success")
# Fields of a recipe that are whole numbers.
_WHOLE = {
    "num_steps",
    "num_epochs",
    "batch_size",
    "seed",
    "validate_every",
    "valid_mazes",
    "eval_batch_size",
    "stop_after_collapses",
}


@dataclasses.dataclass(frozen=True)
class Split:
    """Some mazes and what the model looks at.

    Attributes:
      data: the mazes.
      arrays: the model's input by name, `[n, ...]` each.
    """

    data: MazeData
    arrays: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.data)

    def first(self, count: int) -> "Split":
        """The first of the mazes; all of them if `count` is 0."""
        part = slice(count or None)
        return Split(self.data[part], {name: x[part] for name, x in self.arrays.items()})


@dataclasses.dataclass(frozen=True)
class Task:
    """A model and its data; `maze_task` and `view_task` make one.

    Attributes:
      model: the settings of the model, for whoever reads the folder of a run.
      forward: applies the model to a batch.
      init: makes parameters from a key.
      train: input and labels of the training mazes by name, `[n, ...]` each.
      valid: the mazes that select a model.
      test: the mazes that measure the selected one.
      save: writes the trained model into the folder of a run, given its parameters and a card.
      collate: makes a batch for the devices from rows of the data.
      augment: changes training batches at random, if anything does.
      adapt: makes of an optimiser the one that trains this model.
      noted: numbers of the parameters that the log keeps with each validation, by name.
      known_by: what else of the task makes a run another one, by name, for JSON; what is off or
        empty is left out.
    """

    model: Mapping[str, Any]
    forward: Forward
    init: Callable[[jax.Array], Params]
    train: Mapping[str, np.ndarray]
    valid: Split
    test: Split
    save: Callable[[pathlib.Path, Params, Mapping[str, Any]], None]
    collate: batches.Collate = devices.split
    augment: Augment | None = None
    adapt: Callable[[optax.GradientTransformation], optax.GradientTransformation] = lambda x: x
    noted: Callable[[Params], Mapping[str, Any]] = lambda _: {}
    known_by: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("valid", "test"):
            if not len(getattr(self, name)):
                raise ValueError(
                    f"there are no {name} mazes: a run selects its model on valid and measures it "
                    "on test mazes"
                )

    @property
    def num_examples(self) -> int:
        """The number of training mazes."""
        return len(next(iter(self.train.values())))

    @functools.cached_property
    def eval_step(self) -> EvalStep:
        """One for validation and test, so that it is compiled once."""
        return devices.split_eval_step(make_eval_step(self.forward))

    def fingerprints(self) -> dict[str, str]:
        """A digest of the data of each split, by which the folder of a run knows them again."""
        mazes = {name: getattr(self, name) for name in ("valid", "test")}
        arrays = {
            name: {**split.arrays, "spl": split.data.spl, "mazes": split.data.maze}
            for name, split in mazes.items()
        }
        return {name: digest_of(x)[:16] for name, x in {"train": self.train, **arrays}.items()}


def digest_of_params(params: Params | None) -> str:
    """By what a run knows the parameters that it began with; "" of none."""
    return "" if params is None else digest_of(flat_params(params))[:16]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How to train, by default as the paper's protocol does (but for walls in the loss).

    Attributes:
      num_steps: how many steps; 0 counts `num_epochs` instead.
      num_epochs: how often to go through the training mazes.
      batch_size: mazes in a step, over all devices.
      seed: of parameters, noise and the order of the data.
      loss: what is minimised.
      optimizer: arguments of `make_optimizer`, such as {"name": "adam", "learning_rate": 3e-3}.
      validate_every: validate after so many steps, and at the end; 0: after each epoch.
      valid_mazes: on so many of the validation mazes; 0: on all.
      eval_batch_size: mazes at once in validation and test; 0: `batch_size`.
      select: the best model is that of the highest "optimality" or "success" rate, of equally good
        ones the later.
      skip_not_finite: whether to go on when a loss or gradient is not finite; the step is skipped
        and counted. Otherwise the run stops.
      stop_after_collapses: stop when so many validations in a row found a constant policy, or when
        one comes with a report whose steps were all skipped, so that parameters stand still; 0 goes
        on whatever happens.
      feed: "device": data live on the devices; "stream": a thread brings batches; "auto".
      save_seconds: besides at each validation, write a checkpoint after so many seconds.
    """

    num_steps: int = 0
    num_epochs: int = 30
    batch_size: int = 32
    seed: int = 0
    loss: Imitation = dataclasses.field(default_factory=Imitation)
    optimizer: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    validate_every: int = 0
    valid_mazes: int = 0
    eval_batch_size: int = 0
    select: str = "optimality"
    skip_not_finite: bool = False
    stop_after_collapses: int = 0
    feed: str = "auto"
    save_seconds: float = 120.0

    def __post_init__(self) -> None:
        for name in _WHOLE:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise TypeError(f"{name} is {value!r}, expected a whole number")
            object.__setattr__(self, name, int(value))  # numpy's are none for JSON
        for name in _WHOLE - {"batch_size", "seed"}:
            if not 0 <= getattr(self, name) < 2**31:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 0 to 2³¹ - 1")
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size}, expected 1 or more")
        if not isinstance(self.loss, Imitation):
            raise TypeError(f"loss is {self.loss!r}, expected an Imitation")
        check_optimizer(self.optimizer)
        if not (self.num_steps or self.num_epochs):
            raise ValueError("num_steps and num_epochs are both 0: there is nothing to train")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed is {self.seed}, expected 0 to 2⁶³ - 1")
        if self.select not in SELECT:
            raise ValueError(f"select is {self.select!r}, expected one of {', '.join(SELECT)}")
        if self.feed not in ("auto", *batches.FEEDS):
            raise ValueError(f"feed is {self.feed!r}, expected auto, device or stream")

    def for_examples(self, num_examples: int) -> "Recipe":
        """The recipe with its lengths in steps, for so many training mazes.

        Raises:
          ValueError: it can't be followed, with these examples or on these devices.
        """
        per_epoch = batches.steps_per_epoch(num_examples, self.batch_size)
        recipe = dataclasses.replace(
            self,
            num_steps=self.num_steps or self.num_epochs * per_epoch,
            validate_every=self.validate_every or per_epoch,
            eval_batch_size=self.eval_batch_size or self.batch_size,
        )
        if recipe.num_steps >= 2**31:
            raise ValueError(f"{recipe.num_steps} steps are too many, expected less than 2³¹")
        for size in (recipe.batch_size, recipe.eval_batch_size):
            devices.check_batch_size(size)
        recipe.make_optimizer()
        return recipe

    def make_optimizer(self) -> optax.GradientTransformation:
        """The optimiser, whose schedule ends with the last step."""
        return make_optimizer(**self.optimizer, num_steps=self.num_steps)

    def score(self, scores: Scores) -> float:
        """What makes one model better than another."""
        return scores.success_rate if self.select == "success" else scores.optimality_rate

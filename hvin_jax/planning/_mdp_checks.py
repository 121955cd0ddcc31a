"""Whether an object is an MDP: sentences in place of errors deep within a planner.

Nothing is computed and no value is looked at, so the checks cost little and work under `jit`.
"""

import difflib
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hvin_jax.planning import _checks as checks

_NUMBERS = ("num_actions", "value_shape", "batched")
_LOOKS_AHEAD = ("greedy", "q_of", "q")
_FOLLOWS = ("follow", "follow_vjp")
_OPTIONAL = (*_FOLLOWS, "sharing_actions")
_MEMBERS = (*_NUMBERS, *_LOOKS_AHEAD, *_OPTIONAL)
# How alike a member must be to an optional one that is absent to pass for its misspelling: `folow`
# and `share_actions` are, `flow` is not.
_ALIKE = 0.85


def check_mdp(mdp: Any) -> None:
    """Raises unless `mdp` has the members of `MDP` and is a pytree of arrays."""
    name = type(mdp).__name__
    if isinstance(mdp, type):
        raise TypeError(f"mdp must be an instance of an MDP, got the class {mdp.__name__} itself.")
    if not any(hasattr(type(mdp), x) or hasattr(mdp, x) for x in _MEMBERS):
        raise TypeError(f"mdp must be an MDP such as TabularMDP or ConvMDP, got a {name}.")
    _check_members(mdp, name, (*_NUMBERS, *_LOOKS_AHEAD), "hvin_jax.planning.MDP")
    _check_optional_members(mdp.__class__)
    _check_numbers(mdp, name)
    _check_leaves(mdp, name)


def sharing_actions(mdp: Any) -> Any:
    """The MDP's own form for actions that all examples share, or the MDP if it has none."""
    if not hasattr(mdp, "sharing_actions"):
        return mdp
    shared = mdp.sharing_actions()
    name = f"{type(shared).__name__}, which sharing_actions of {type(mdp).__name__} returned,"
    _check_members(shared, name, (*_NUMBERS, *_FOLLOWS), "hvin_jax.planning.SharedMDP")
    _check_numbers(shared, name)
    _check_leaves(shared, name)
    if shared.batched or shared.value_shape != mdp.value_shape[1:]:
        raise ValueError(
            f"{name} must have batched = False and value_shape = {mdp.value_shape[1:]}, that of "
            f"the MDP without its batch axis; got {shared.batched} and {shared.value_shape}."
        )
    return shared


def _check_members(mdp: Any, name: str, members: tuple[str, ...], protocol: str) -> None:
    for member in members:
        try:
            found = getattr(mdp, member)
        except AttributeError:
            if hasattr(type(mdp), member):
                raise  # a property that fails by itself: what it says is what helps
            others = [x for x in dir(mdp) if x not in _MEMBERS and not x.startswith("_")]
            near = _near(member, others, 0.6)
            hint = f" It has {near}: is that what it should be?" if near else ""
            raise TypeError(
                f"{name} has no member {member}, which {protocol} requires.{hint}"
            ) from None
        if member not in _NUMBERS and not callable(found):
            raise TypeError(f"{member} of {name} must be a method, got {found!r}.")


@lru_cache(maxsize=256)
def _check_optional_members(kind: type) -> None:
    """Raises if a member that would only make things faster is there in part or misspelt."""
    own = [x for x in dir(kind) if not x.startswith("_") and x not in _MEMBERS]
    for member in _OPTIONAL:
        near = _near(member, own, _ALIKE)
        if near and not hasattr(kind, member):
            raise TypeError(
                f"{kind.__name__} has a member {near}, which nothing uses: did you mean {member}? "
                f"If it is something else, give it a name that is less like that."
            )
    present = [member for member in _FOLLOWS if hasattr(kind, member)]
    if len(present) == 1:
        (absent,) = set(_FOLLOWS) - {*present}
        raise TypeError(
            f"{kind.__name__} has {present[0]} but no {absent}: define both "
            f"(hvin_jax.planning.FastMDP), or neither."
        )


def _check_numbers(mdp: Any, name: str) -> None:
    """Raises unless the members that are no methods have their types."""
    checks.check_at_least(f"num_actions of {name}", mdp.num_actions, 1)
    shape, batched = mdp.value_shape, mdp.batched
    if not isinstance(shape, tuple) or not all(_is_int(length) for length in shape):
        raise TypeError(f"value_shape of {name} must be a tuple of Python ints, got {shape!r}.")
    if not isinstance(batched, bool | np.bool_):
        raise TypeError(f"batched of {name} must be True or False, got {batched!r}.")
    if batched and not shape:
        raise ValueError(f"{name} is batched, so value_shape must begin with the batch, got ().")


def _check_leaves(mdp: Any, name: str) -> None:
    """Raises unless `mdp` is a pytree of arrays, one of which is of a floating-point type."""
    leaves = jax.tree_util.tree_leaves_with_path(mdp)
    if len(leaves) == 1 and leaves[0][1] is mdp:
        raise TypeError(
            f"{name} is no JAX pytree. Decorate the class, say as a frozen dataclass whose fields "
            f"are arrays, with @jax.tree_util.register_dataclass; numbers that are no arrays go "
            f"into its meta_fields."
        )
    for path, leaf in leaves:
        if not isinstance(leaf, jax.Array | np.ndarray | np.generic):
            raise TypeError(
                f"{name}{jax.tree_util.keystr(path)} must be an array, got {leaf!r} of type "
                f"{type(leaf).__name__}: convert it with jnp.asarray, or make it static "
                f"(meta_fields of jax.tree_util.register_dataclass)."
            )
    if not any(jnp.issubdtype(leaf.dtype, jnp.floating) for _, leaf in leaves):
        types = ", ".join(sorted({str(leaf.dtype) for _, leaf in leaves})) or "no array at all"
        raise TypeError(
            f"{name} must have an array of a floating-point type among its leaves, from which "
            f"values take theirs; got {types}."
        )


def _is_int(x: Any) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def _near(name: str, others: list[str], alike: float) -> str | None:
    """The one of `others` that is most like `name`, whatever its capitals."""
    spelt = {x.lower(): x for x in others}
    near = difflib.get_close_matches(name, spelt, 1, alike)
    return spelt[near[0]] if near else None

"""What is public, and whether the reference has it: an undocumented name fails the build."""

import functools
import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

# Packages that say in `__all__` what they export.
PACKAGES = (
    "hvin_jax",
    "hvin_jax.planning",
    "hvin_jax.models",
    "hvin_jax.tasks",
    "hvin_jax.tasks.doom",
    "hvin_jax.training",
)
# Modules that one imports by their own name, some because they need an extra.
MODULES = (
    "hvin_jax.visual_planner",
    "hvin_jax.tasks.drawing",
    "hvin_jax.tasks.environment",
    "hvin_jax.tasks.gym_env",
    "hvin_jax.training.actor_critic",
    "hvin_jax.training.view_task",
    "hvin_jax.report.comparisons",
    "hvin_jax.report.curves",
    "hvin_jax.report.doom",
    "hvin_jax.report.entropy",
    "hvin_jax.report.figures",
    "hvin_jax.report.generality",
    "hvin_jax.report.moving",
    "hvin_jax.report.page",
    "hvin_jax.report.paper_numbers",
    "hvin_jax.report.pictures",
    "hvin_jax.report.plans",
    "hvin_jax.report.runs",
    "hvin_jax.report.tables",
    "hvin_jax.report.thoughts",
    "hvin_jax.report.walks",
)


def public_names() -> dict[str, Any]:
    """Everything public: `module.name` to the object."""
    names = {}
    for name in (*PACKAGES, *MODULES):
        module = importlib.import_module(name)
        names |= {f"{name}.{member}": getattr(module, member) for member in exported(module)}
    return names


def exported(module: ModuleType) -> list[str]:
    """What `__all__` lists, or else the functions and classes that the module defines."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("__")]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def undocumented(names: dict[str, Any]) -> list[str]:
    """Those without a docstring of their own, members of classes included."""
    return [
        path
        for name, value in names.items()
        for path, thing in ((name, value), *_members(name, value))
        if _needs_docstring(thing) and not (inspect.getdoc(thing) or "").strip()
    ]


def _needs_docstring(thing: Any) -> bool:
    """Data is documented by the page that lists it."""
    return isinstance(thing, property) or inspect.isclass(thing) or inspect.isroutine(thing)


def _members(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Methods and properties of a class that stand in its own source."""
    if not inspect.isclass(value):
        return
    for member, thing in vars(value).items():
        if isinstance(thing, functools.cached_property):
            thing = property(thing.func)
        function = thing.fget if isinstance(thing, property) else inspect.unwrap(thing)
        function = getattr(function, "__func__", function)
        # Neither what a decorator adds (`replace` of a dataclass) nor the default of a field.
        own = getattr(function, "__module__", "") == value.__module__
        if own and not member.startswith("_") and function.__name__ == member:
            yield f"{name}.{member}", thing


def missing(names: dict[str, Any], listed: set[str]) -> list[str]:
    """Public names that are listed nowhere; one that is exported twice is listed once."""
    shown = {id(names[name]) for name in listed & names.keys()}
    return sorted(
        name
        for name, value in names.items()
        if name not in listed and id(value) not in shown and not inspect.ismodule(value)
    )


def _check(app: Any, env: Any) -> None:
    from sphinx.util import logging

    logger = logging.getLogger(__name__)
    names = public_names()
    listed = {name for name, *_ in env.get_domain("py").get_objects()}
    for name in undocumented(names):
        logger.warning("%s is public and has no docstring", name)
    for name in missing(names, listed):
        logger.warning("%s is public and on no page of docs/reference", name)


def setup(app: Any) -> dict[str, Any]:
    """Sphinx calls it."""
    app.connect("env-check-consistency", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

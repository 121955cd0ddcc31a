"""Strict settings for every test: what a careless user would trip over should fail here first."""

import collections
import importlib.metadata
import os
import pathlib
import shutil
import tempfile
import uuid

# The tests compile much and compute little. Without the compiler's last optimisations they take
# half as long, the random numbers above all; read when JAX first touches a device.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"
# The former emitters of loops, and one piece for each program: half of what remains is gone, too.
# A release refuses to start with a flag that it does not know; 0.10.1 and 0.10.2 know these two.
if importlib.metadata.version("jaxlib").startswith("0.10."):
    os.environ["XLA_FLAGS"] += (
        " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    )
# Programs are compiled once for all processes of a session, those that tests start included.
os.environ["JAX_COMPILATION_CACHE_DIR"] = (
    f"{tempfile.gettempdir()}/hvin_jax-tests-"
    f"{os.environ.get('PYTEST_XDIST_TESTRUNUID', uuid.uuid4().hex)}"
)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"

import jax
import pytest

# Eight CPU devices, so that the multi-device paths run on any machine.
jax.config.update("jax_num_cpu_devices", 8)
# No silent casts and no silent broadcasting between ranks.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def x64():
    """Double precision, in which two ways to compute one thing agree to ten digits or more."""
    with jax.enable_x64(True):
        yield


def pytest_collection_modifyitems(items):
    """The longest files come first, since one worker has each: no worker is to be the last alone.

    These are the files that start processes, then those with the most slow tests.
    """
    heavy = {item.path for item in items if item.get_closest_marker("processes")}
    slow = collections.Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: (item.path not in heavy, -slow[item.path]))


def pytest_xdist_auto_num_workers():
    """One more than there are cores: many tests wait for processes that they have started."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_configure_node(node):
    """Is called for each worker; all of them know the session by one name."""
    node.config.compiled = (
        f"{tempfile.gettempdir()}/hvin_jax-tests-{node.workerinput['testrunuid']}"
    )


def pytest_sessionstart(session):
    """Nobody else may put programs there."""
    if _computes(session):
        pathlib.Path(os.environ["JAX_COMPILATION_CACHE_DIR"]).mkdir(mode=0o700, exist_ok=True)


def pytest_sessionfinish(session):
    """Removes the compiled programs, when all workers are done."""
    if not hasattr(session.config, "workerinput"):
        own = os.environ["JAX_COMPILATION_CACHE_DIR"]
        shutil.rmtree(getattr(session.config, "compiled", own), ignore_errors=True)


def _computes(session):
    """Whether tests run in this process, not in workers of it."""
    return hasattr(session.config, "workerinput") or not session.config.getoption("numprocesses")

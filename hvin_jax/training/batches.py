"""The order in which examples are trained on, and the way they take to the devices.

The order of an epoch depends on the seed and the epoch's number alone, so the position in the data
is the step: a resumed run goes on with the very batch that the interrupted one would have had.
"""

import collections
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from hvin_jax.training.devices import split, split_gather

# How many batches are made ahead of time.
AHEAD = 3
# Makes what the devices get, `[D, ...]` each, from rows `[B, ...]` of the data.
Collate = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


def batch_indices(
    *, num_examples: int, batch_size: int, seed: int, first_step: int
) -> Iterator[np.ndarray]:
    """The examples of step `first_step`, `first_step + 1`, … without end: int64 `[batch_size]`.

    Every epoch is a new permutation; examples that do not fill a batch are left out of it.
    """
    per_epoch = steps_per_epoch(num_examples, batch_size)
    step = first_step
    while True:
        epoch, within = divmod(step, per_epoch)
        order = np.random.default_rng([seed, epoch]).permutation(num_examples)
        for start in range(within * batch_size, per_epoch * batch_size, batch_size):
            yield order[start : start + batch_size]
            step += 1


def steps_per_epoch(num_examples: int, batch_size: int) -> int:
    """The number of whole batches; an error if there is none."""
    if num_examples < batch_size:
        raise ValueError(
            f"{num_examples} training examples do not fill a batch of {batch_size}: make more "
            "examples or a smaller batch"
        )
    return num_examples // batch_size


def batches_on_device(
    arrays: Mapping[str, np.ndarray], indices: Iterator[np.ndarray]
) -> Iterator[Any]:
    """Batches `[D, B / D, ...]` gathered from a copy of the data that lives on every device."""
    resident = {name: jax.numpy.asarray(array) for name, array in arrays.items()}
    gather = split_gather()
    for index in indices:
        yield gather(resident, split({"index": index.astype(np.int32)})["index"])


def batches_streamed(
    arrays: Mapping[str, np.ndarray], indices: Iterator[np.ndarray], collate: Collate = split
) -> Iterator[Any]:
    """Batches `[D, B / D, ...]` that a thread gathers on the host, a few steps ahead."""
    with ThreadPoolExecutor(1) as pool:
        ahead: collections.deque[Future] = collections.deque()
        for index in indices:
            ahead.append(pool.submit(_gather, arrays, index, collate))
            if len(ahead) > AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _gather(
    arrays: Mapping[str, np.ndarray], index: np.ndarray, collate: Collate
) -> Mapping[str, np.ndarray]:
    return collate({name: array[index] for name, array in arrays.items()})


FEEDS = {"device": batches_on_device, "stream": batches_streamed}


def feed(
    name: str, arrays: Mapping[str, np.ndarray], indices: Iterator[np.ndarray], collate: Collate
) -> Iterator[Any]:
    """Batches of some examples, on their way to the devices.

    Args:
      name: one of `FEEDS`, or "auto": "device" where there is an accelerator to keep fed, else
        "stream".
      arrays: the data.
      indices: of the examples in each batch.
      collate: makes a batch for the devices; all but `split` is done on the host, from where
        batches are streamed.
    """
    if collate is not split:
        return batches_streamed(arrays, indices, collate)
    if name == "auto":
        name = "stream" if jax.default_backend() == "cpu" else "device"
    return FEEDS[name](arrays, indices)

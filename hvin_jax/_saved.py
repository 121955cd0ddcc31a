"""Trained parts on disk: a folder with a description in JSON and parameters in `weights.npz`.

Parameters are one array each; nested names are joined by "/". In place of its own weights a folder
may use those of a folder beside it: then `"weights"` in its description is the name of that one.

`"sha256"` in the description is a checksum of the weights and of all that it says but the card,
which may be edited. Without it, as in earlier versions, nothing is compared.
"""

import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from hvin_jax._digest import digest_of
from hvin_jax._files import read_json, write_json
from hvin_jax.tasks._npz import NpzReader, write_npz

VERSION = 1
_WEIGHTS = "weights.npz"

T = TypeVar("T")


def save_folder(
    folder: str | pathlib.Path, kind: str, params: Any, content: Mapping[str, Any]
) -> None:
    """Writes a trained part; each of its files appears when it is complete.

    Args:
      folder: where to.
      kind: what it is, such as "planner"; its description becomes `KIND.json`.
      params: its parameters.
      content: its description.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.asarray(x) for name, x in flat_params(params).items()}
    write_npz(folder / _WEIGHTS, arrays)
    content = {"format": f"hvin_jax {kind}", "version": VERSION, **content}
    write_json(folder / f"{kind}.json", {**content, "sha256": checksum(content, arrays)})


def load_folder(
    folder: pathlib.Path,
    kind: str,
    expect: Callable[[dict[str, Any]], Any],
    make: Callable[[dict[str, Any], dict[str, Any]], T],
) -> T:
    """Reads what `save_folder` wrote.

    Args:
      folder: where from.
      kind: what it is, as in `save_folder`.
      expect: the parameters that belong to a description, as arrays or as their shapes and types.
      make: makes what is returned of the description and the parameters.

    Returns:
      What `make` makes.

    Raises:
      ValueError: something is missing or does not fit, files and `make` alike.
    """
    try:
        content = read_json(folder / f"{kind}.json")
        if content["version"] != VERSION:
            raise ValueError(
                f"it has version {content['version']}, this hvin_jax reads {VERSION}: update it"
            )
        path = _owner_of_weights(folder, content) / _WEIGHTS
        arrays = _read_weights(path, expect(content))
        if content.get("sha256") not in (None, checksum(content, arrays)):
            raise ValueError(
                f"its checksum is not that of {kind}.json and {_WEIGHTS}, so one of them is "
                'damaged or was changed; if you changed it, remove the line "sha256"'
            )
        weights = {name: jnp.asarray(x, jnp.float32) for name, x in arrays.items()}
        return make(content, {"params": unflatten_dict(weights, sep="/")})
    except KeyError as error:
        raise ValueError(f"{folder} is not a sound {kind}: {error} is missing") from error
    except (OSError, ValueError, TypeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{folder} is not a sound {kind}: {reason}") from error


def check_params(params: Any, wanted: Any) -> None:
    """Raises if parameters are not those of a model.

    Args:
      params: what there is.
      wanted: what the model has, as arrays or as their shapes and types.
    """
    shapes = {name: x.shape for name, x in flat_params(params).items()}
    _check_shapes(shapes, wanted)


def _check_shapes(shapes: Mapping[str, tuple[int, ...]], wanted: Any) -> None:
    expected = {name: x.shape for name, x in flat_params(wanted).items()}
    for name in sorted(shapes.keys() | expected.keys()):
        if shapes.get(name) != expected.get(name):
            raise ValueError(
                f"the parameters do not fit the model: {name} has shape "
                f"{shapes.get(name, '(absent)')}, expected {expected.get(name, '(absent)')}"
            )


def checksum(content: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """What `"sha256"` of a description has to be, given its weights."""
    compared = {key: x for key, x in content.items() if key not in ("card", "sha256")}
    text = json.dumps(compared, sort_keys=True)
    return digest_of({**arrays, "": np.frombuffer(text.encode(), np.uint8)})


def flat_params(params: Any) -> dict[str, Any]:
    """The arrays of parameters by their joined names."""
    return flatten_dict(params["params"], sep="/")


def _owner_of_weights(folder: pathlib.Path, content: Mapping[str, Any]) -> pathlib.Path:
    name = content.get("weights")
    if name is None:
        return folder
    # A description may come from anywhere, so it must not lead elsewhere in the file system.
    if not isinstance(name, str) or name in ("", ".", "..") or set(name) & set("/\\:\0"):
        raise ValueError(f"its weights are {name!r}, expected the name of a folder beside it")
    return folder.resolve().parent / name


def _read_weights(path: pathlib.Path, wanted: Any) -> dict[str, np.ndarray]:
    with NpzReader(path) as reader:
        headers = {name: reader.header(name) for name in reader.names}
        for name, (_, dtype) in headers.items():
            if dtype.kind != "f":
                raise reader.fail(name, f"is {dtype}, expected float32")
        _check_shapes({name: shape for name, (shape, _) in headers.items()}, wanted)
        arrays = {name: reader.read(name) for name in sorted(headers)}
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                raise reader.fail(name, "has values that are not finite")
    return arrays

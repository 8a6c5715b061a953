"""Checkpoints: nested dicts and lists of tensors, numbers and strings in a safetensors file.

The tensors are stored under their dotted paths, so that other programs can read them; the nesting and everything that
is not a tensor stand as JSON in the file's metadata. Nothing is ever pickled, so loading runs no code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from leafgrad.tensor.data import from_numpy
from leafgrad.tensor.tensor import Tensor

__all__ = ["load", "save"]

METADATA = "leafgrad"
# JSON has objects with string keys and lists; anything else is an object with one of these keys.
TENSOR, TUPLE, DICT = "$tensor", "$tuple", "$dict"
MARKS = {TENSOR, TUPLE, DICT}


def save(obj: Any, f: str | os.PathLike[str]) -> None:
    """Write ``obj`` to a file, which appears whole or not at all: if saving fails, the former file stays.

    Args:
        obj: a tensor, number, string, bool, None, or a dict, list or tuple of such, nested at will. State dicts of
            modules and optimizers are.
        f: the path.

    Raises:
        TypeError: something else is in ``obj``; the message says where. ImportError: safetensors is not installed.
    """
    tensors: dict[str, Tensor] = {}
    structure = json.dumps(_pack(obj, "", tensors, {}))
    arrays = {name: t.detach().cpu().contiguous().numpy() for name, t in tensors.items()}
    content = _safetensors().numpy.save(arrays, {METADATA: structure})
    with _replacing(os.fspath(f)) as file:
        file.write(content)


def load(f: str | os.PathLike[str], map_location: Any = "cpu") -> Any:
    """What ``save`` wrote to a file. A safetensors file of another program gives a dict of its tensors.

    Args:
        f: the path.
        map_location: the device on which to put the tensors.

    Returns:
        The object, with tensors that do not require grad, and every kind of mapping as a dict.

    Raises:
        FileNotFoundError: there is no such file. RuntimeError: it is not a safetensors file, or it is damaged.
        ImportError: safetensors is not installed.
    """
    library = _safetensors()
    try:
        with library.safe_open(os.fspath(f), framework="np") as file:
            structure = (file.metadata() or {}).get(METADATA)
            names = file.keys()
            tensors = {name: from_numpy(file.get_tensor(name)).to(map_location) for name in names}
    except library.SafetensorError as error:
        raise RuntimeError(f"load: {os.fspath(f)}: expected a whole safetensors file, got: {error}") from error
    return tensors if structure is None else _unpack(json.loads(structure), tensors)


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError("checkpoints need the package safetensors: pip install 'leafgrad[io]'") from error
    return safetensors


@contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of ``path`` at the end, and is deleted if that is not reached."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _pack(obj: Any, path: str, tensors: dict[str, Tensor], names: dict[int, str]) -> Any:
    """``obj`` as JSON data; its tensors go into ``tensors``, each once (``names``: by identity)."""
    if obj is None or isinstance(obj, (bool, int, float, str)):
        return obj
    if isinstance(obj, Tensor):
        if id(obj) not in names:
            name = path or "tensor"
            while name in tensors:  # {"a.b": ..., "a": {"b": ...}}
                name += "_"
            names[id(obj)] = name
            tensors[name] = obj
        return {TENSOR: names[id(obj)]}
    if isinstance(obj, (list, tuple)):
        items = [_pack(item, _join(path, i), tensors, names) for i, item in enumerate(obj)]
        return items if isinstance(obj, list) else {TUPLE: items}
    if isinstance(obj, Mapping):
        for key in obj:
            if not isinstance(key, (str, int, float, bool)):
                raise TypeError(f"save: obj{_where(path)}: expected keys that are strings or numbers, got {key!r}")
        pairs = [(key, _pack(value, _join(path, key), tensors, names)) for key, value in obj.items()]
        if all(isinstance(key, str) and key not in MARKS for key in obj):
            return dict(pairs)
        return {DICT: pairs}
    raise TypeError(
        f"save: obj{_where(path)}: expected a Tensor, number, string, None, dict, list or tuple, got "
        f"{type(obj).__name__}; save its state_dict() or convert it first"
    )


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _where(path: str) -> str:
    return f" at {path!r}" if path else ""


def _unpack(data: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(data, list):
        return [_unpack(item, tensors) for item in data]
    if not isinstance(data, dict):
        return data
    if TENSOR in data:
        return tensors[data[TENSOR]]
    if TUPLE in data:
        return tuple(_unpack(data[TUPLE], tensors))
    if DICT in data:
        return {key: _unpack(value, tensors) for key, value in data[DICT]}
    return {key: _unpack(value, tensors) for key, value in data.items()}

"""Checkpoints: nested dicts and lists of tensors, numbers and strings in a safetensors file.

The tensors are stored under their dotted paths, so that other programs can read them; the nesting and everything that
is not a tensor stand as JSON in the file's metadata. Nothing is ever pickled or unpickled, so loading runs no code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, BinaryIO

from leafgrad.tensor.tensor import Tensor

__all__ = ["load", "save"]

METADATA = "leafgrad"
# JSON has objects with string keys and lists; anything else is an object with one of these keys.
TENSOR, TUPLE, DICT = "$tensor", "$tuple", "$dict"
MARKS = {TENSOR, TUPLE, DICT}

# How files begin that hold pickles: zip archives as torch.save writes them, its older files, and bare pickles.
PICKLES = (b"PK\x03\x04", *(b"\x80" + bytes([protocol]) for protocol in range(2, 6)))
PICKLED = (
    "it is a pickle, as torch.save writes it, and leafgrad never unpickles, since that can run any code. Convert it "
    "where PyTorch is installed: safetensors.torch.save_file(torch.load(path, weights_only=True), 'model.safetensors')"
)

Path = str | os.PathLike[str]


def save(obj: Any, f: Path | BinaryIO) -> None:
    """Write ``obj`` to a file, which appears whole or not at all: if saving fails, the former file stays.

    Args:
        obj: a tensor, number, string, bool, None, or a dict, list or tuple of such, nested at will. State dicts of
            modules, optimizers and schedules are. A tensor that stands in several places is stored once.
        f: the path, or a binary file to write to.

    Raises:
        TypeError: something else is in ``obj``; the message says where. RuntimeError: there is no such folder.
        ImportError: the package safetensors is missing.
    """
    import json  # slow to import

    from leafgrad.utils import safetensors

    tensors: dict[str, Tensor] = {}
    structure = json.dumps(_pack(obj, "", tensors, {}))
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise TypeError(f"save: f: expected a path or a binary file, got {type(f).__name__}")
    with _replacing(os.fspath(f)) if isinstance(f, (str, os.PathLike)) else nullcontext(f) as file:
        file.write(safetensors.encode(tensors, {METADATA: structure}))


def load(f: Path | BinaryIO, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """What ``save`` wrote to a file. A safetensors file of another program gives a dict of its tensors.

    Args:
        f: the path, or a binary file, which is read from where it stands.
        map_location: the device on which to put the tensors: the CPU by default. Also a dict with the device for
            ``"cpu"``, or a function of each tensor and ``"cpu"`` that returns a tensor.
        weights_only: always so, since nothing is unpickled.

    Returns:
        The object, with tensors that do not require grad, and every kind of mapping as a dict. bfloat16, which leafgrad
        does not have, becomes float32, with a warning.

    Raises:
        FileNotFoundError: there is no such file. RuntimeError: it is a pickle, no safetensors file, or damaged.
        TypeError: a tensor of a dtype that leafgrad does not have. ValueError: ``weights_only=False``.
        ImportError: the package safetensors is missing.
    """
    if not weights_only:
        raise ValueError("load: weights_only=False asks to unpickle, which leafgrad never does; leave it out")
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            found = _loaded(file, os.fspath(f), map_location)
            if file.read(1):
                raise RuntimeError(f"load: {os.fspath(f)}: expected a safetensors file, but it goes on after its end")
        return found
    if not hasattr(f, "read"):
        raise TypeError(f"load: f: expected a path or a binary file, got {type(f).__name__}")
    return _loaded(f, getattr(f, "name", type(f).__name__), map_location)


def _loaded(file: Any, name: Any, map_location: Any) -> Any:
    import json

    from leafgrad.utils import safetensors

    here = file.tell()
    try:
        tensors, metadata = safetensors.decode(file)
        structure = json.loads(metadata.get(METADATA, "null"))
    except ValueError as error:
        file.seek(here)
        why = PICKLED if file.read(4).startswith(PICKLES) else f"it cannot be read: {error}"
        raise RuntimeError(f"load: {name}: expected a whole safetensors file, but {why}") from error
    tensors = {path: _moved(t, map_location) for path, t in tensors.items()}
    if METADATA not in metadata:
        return tensors
    try:
        return _unpack(structure, tensors)
    except KeyError as error:
        raise RuntimeError(f"load: {name}: expected a whole safetensors file, but it lacks tensor {error}") from error


def _moved(t: Tensor, map_location: Any) -> Tensor:
    if map_location is None:
        return t
    if isinstance(map_location, Mapping):
        return t.to(map_location.get("cpu", "cpu"))
    if callable(map_location):
        moved = map_location(t, "cpu")
        return t if moved is None else moved
    return t.to(map_location)


@contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of ``path`` at the end, and is deleted if that is not reached."""
    folder, name = os.path.split(path)
    if folder and not os.path.isdir(folder):
        raise RuntimeError(f"save: {path}: Parent directory {folder} does not exist; make it first")
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
            while name in tensors or name == "__metadata__":  # {"a.b": ..., "a": {"b": ...}}
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

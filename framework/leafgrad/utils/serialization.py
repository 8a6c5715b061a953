"""Checkpoints: nested dicts and lists of tensors, numbers and strings in a safetensors file.

The tensors are stored under their dotted paths, so that other programs can read them; the nesting and everything that
is not a tensor stand as JSON in the file's metadata, beside a digest by which a file that was changed is known. Nothing
is ever pickled or unpickled, so loading runs no code.
"""

from __future__ import annotations

import functools
import os
from argparse import Namespace
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Protocol, cast, runtime_checkable

from leafgrad import plugins
from leafgrad.tensor.data import as_tensor
from leafgrad.tensor.tensor import Tensor
from leafgrad.utils import trust

__all__ = ["load", "save"]

METADATA = "leafgrad"
OURS = ("", ".safetensors", ".pt", ".pth", ".ckpt", ".bin")  # suffixes for which no plugin is asked
ZIP = b"PK\x03\x04"  # how files of torch.save begin
LEGACY = b"\x80\x02\x8a\nl\xfc"  # and how they did before PyTorch 1.6
# How pickles begin.
PICKLES = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))
PICKLED = (
    "it is a pickle that is not of torch.save, and leafgrad never unpickles, since that can run any code. Save what it "
    "has by leafgrad.save, or where PyTorch is installed by torch.save"
)

Path = str | os.PathLike[str]
Named = Callable[[set[str]], Mapping[str, Any]]


@runtime_checkable
class Readable(Protocol):
    """A binary file, or what behaves as one when it is read."""

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes, none at the end."""


@runtime_checkable
class Writable(Protocol):
    """A binary file, or what behaves as one when it is written."""

    def write(self, data: Any, /) -> int | None:
        """Take bytes, and say how many."""


def save(obj: Any, f: Path | Writable) -> None:
    """Write ``obj`` to a file, which appears whole or not at all: if saving fails, the former file stays.

    When ``save`` returns, the file is on the disk, as far as the system can tell. It has the mode of the former one; of
    a symbolic link the target is written. What is no regular file, as a pipe or device, is written to.

    Args:
        obj: a tensor, number, string, bool, None, path, NumPy array or scalar, or a dict, OrderedDict, Counter,
            defaultdict, Namespace, list, tuple, deque, set or frozenset of such, nested at will. State dicts of
            modules, optimizers and schedules are. What stands in several places is stored once; tensors that overlap in
            memory do so again. Modules and other objects are stored as the name of their class and their attributes,
            functions, classes and dtypes as their names, if they can be imported; so are objects of classes derived
            from those above, as named tuples and enums. Nothing becomes something else.
        f: the path, or a binary file to write to. Where a plugin has a format for the suffix of the path, as ".npz",
            the file is of that.

    Raises:
        TypeError: something else is in ``obj``; the message says where. ValueError: a container or object contains
            itself, or there are more than 100 MB of numbers and strings. RuntimeError: there is no such folder,
            or a tensor was written while it was saved.
        OSError: the system could not write all of it. ImportError: the package safetensors is missing.
    """
    import json  # slow to import

    from leafgrad.utils import disk, safetensors, structure

    data, tensors = structure.pack(obj)
    if not isinstance(f, (str, os.PathLike, Writable)):
        raise TypeError(f"save: f: expected a path or a binary file, got {type(f).__name__}")
    other = _format_of(f)
    if other is not None:
        arrays = {name: t.detach().cpu()._array("save()") for name, t in tensors.items()}
        with disk.replacing(os.fspath(cast(Path, f))) as file:
            other.write(file, arrays, json.dumps(data))
        return
    encoded = safetensors.encode(tensors, {METADATA: json.dumps(data)})
    with disk.replacing(os.fspath(f)) if isinstance(f, (str, os.PathLike)) else disk.flushed(f) as file:
        digest = encoded.digest()
        for part in encoded.sealed(digest):
            disk.write(file, part)
        if encoded.digest() != digest:
            raise RuntimeError(
                "save: obj: expected tensors that nobody writes while they are saved; save clones of them"
            )


def load(
    f: Path | Readable, map_location: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None
) -> Any:
    """What ``save`` wrote to a file. A safetensors file of another program gives a dict of its tensors.

    Of files of ``torch.save`` it reads tensors, parameters, numbers, strings, paths, NumPy's arrays and scalars, what
    containers ``save`` takes, sizes, dtypes and devices, by a reader that runs no code. In place of an object or a
    function of another kind stands what says its name, and is an error where it is used.

    Args:
        f: the path, or a binary file, which is read from where it stands.
        map_location: the device on which to put the tensors: the CPU by default. Also a dict with the device for
            ``"cpu"``, or a function of each tensor and ``"cpu"`` that returns a tensor.
        weights_only: True, as by default: an object is made only of leafgrad's own layers, and of classes that
            ``leafgrad.serialization.add_safe_globals`` was given; with False, of each class of Modules whose module has
            been imported, too. Code is never read from a file.
        mmap: has no effect: files are read whole.

    Returns:
        The object. Tensors require grad if they did, parameters are parameters, and tensors that were the same
        elements in the same memory are again, and so are views and what they are views of.

    Raises:
        FileNotFoundError: there is no such file. RuntimeError: it is a pickle, no safetensors file, not as it was
            written, holds an object of a class that is not trusted, or is of ``torch.save`` with something else in it;
            the message names the file and what is wrong.
        TypeError: the file object is not binary, or a tensor is of a dtype that leafgrad does not have.
        ImportError: the package safetensors is missing.
    """
    if weights_only is None:
        weights_only = True
    if not isinstance(weights_only, bool):
        raise TypeError(f"load: weights_only: expected a bool, got {type(weights_only).__name__}")
    named = functools.partial(trust.found, any_module=not weights_only)
    if isinstance(f, (str, os.PathLike)):
        other = _format_of(f)
        with open(f, "rb") as file:
            if other is not None and not _is_ours(file):
                return _of_format(other, file, os.fspath(f), map_location, named)
            found = _loaded(file, os.fspath(f), map_location, named)
            if file.read(1):
                raise RuntimeError(f"load: {os.fspath(f)}: expected a safetensors file, but it goes on after its end")
        return found
    if not isinstance(f, Readable):
        raise TypeError(f"load: f: expected a path or a binary file, got {type(f).__name__}")
    return _loaded(f, getattr(f, "name", type(f).__name__), map_location, named)


def _format_of(f: Any) -> Any:
    """The format of a plugin for a path with its suffix; None for safetensors."""
    suffix = os.path.splitext(os.fspath(f))[1] if isinstance(f, (str, os.PathLike)) else ""
    if suffix in OURS or not isinstance(suffix, str):
        return None
    try:
        return plugins.resolve(plugins.format_of(suffix).target)()
    except plugins.UnknownNameError:
        return None


def _is_ours(file: Any) -> bool:
    """Whether a file with the suffix of another format is one of safetensors all the same, as older versions wrote."""
    first = file.read(9)
    file.seek(0)
    return bool(len(first) == 9 and first[8:] == b"{")


def _of_format(other: Any, file: Any, name: Any, map_location: Any, named: Named) -> Any:
    """What a file in the format of a plugin holds."""
    import json

    from leafgrad.utils import structure
    from leafgrad.utils.bounds import Bounds

    try:
        arrays, text = other.read(file)
        tensors = {path: _moved(as_tensor(a), map_location) for path, a in arrays.items()}
        return tensors if text is None else structure.unpack(json.loads(text), tensors, Bounds(len(text)), named)
    except trust.UntrustedError as error:
        raise RuntimeError(f"load: {name}: {error}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RuntimeError(f"load: {name}: expected a whole file of its format, but {error}") from error


def _loaded(file: Any, name: Any, map_location: Any, named: Named) -> Any:
    import json

    from leafgrad.utils import disk, safetensors, structure
    from leafgrad.utils.bounds import Bounds

    here = file.tell() if disk.seekable(file) else None
    if _begins(file, here, (ZIP, LEGACY)):
        return _of_pytorch(file, name, map_location)
    expected = f"load: {name}: expected a whole safetensors file, but"
    try:
        tensors, metadata = safetensors.decode(file, METADATA)
    except ValueError as error:
        why = PICKLED if _begins(file, here, PICKLES) else f"it cannot be read: {error}"
        raise RuntimeError(f"{expected} {why}") from error
    except MemoryError as error:
        raise MemoryError(f"load: {name}: {error}") from error
    tensors = {path: _moved(t, map_location) for path, t in tensors.items()}
    if METADATA not in metadata:
        return tensors
    try:
        text = metadata[METADATA]
        return structure.unpack(json.loads(text), tensors, Bounds(len(text)), named)
    except trust.UntrustedError as error:
        raise RuntimeError(f"load: {name}: {error}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RuntimeError(f"{expected} it cannot be read: {error}") from error


def _begins(file: Any, start: int | None, magic: bytes | tuple[bytes, ...]) -> bool:
    """Whether a file begins so; it is left at its beginning."""
    if start is None:  # what a pipe began with is gone
        return False
    file.seek(start)
    first = file.read(6)
    file.seek(start)
    return isinstance(first, bytes) and first.startswith(magic)


def _of_pytorch(file: Any, name: Any, map_location: Any) -> Any:
    from leafgrad.utils import pytorch_file

    try:
        found = pytorch_file.read(file.read())
    except ValueError as error:
        raise RuntimeError(f"load: {name}: expected a file of torch.save with tensors, but {error}") from error
    try:
        return found if map_location is None else _each_moved(found, map_location, {})
    except RecursionError as error:
        raise RuntimeError(f"load: {name}: expected containers in containers that can be moved, but {error}") from error


def _each_moved(found: Any, map_location: Any, moved: dict[int, Any]) -> Any:
    """``found`` with its tensors moved, in containers of the same kind; what stands in several places is moved once."""
    if id(found) in moved:
        return moved[id(found)]
    made = found
    if isinstance(found, Tensor):
        made = _moved(found, map_location)
    elif isinstance(found, dict):
        made = found.copy()
        for key, value in found.items():
            made[key] = _each_moved(value, map_location, moved)
        if isinstance(found, OrderedDict):
            vars(made).update(vars(found))
    elif type(found) in (Namespace, SimpleNamespace):
        made = type(found)(**_each_moved(vars(found), map_location, moved))
    elif type(found) in (list, tuple, deque):
        made = type(found)(_each_moved(v, map_location, moved) for v in found)
    moved[id(found)] = made
    return made


def _moved(t: Tensor, map_location: Any) -> Tensor:
    if map_location is None:
        return t
    if isinstance(map_location, Mapping):
        return t.to(map_location.get("cpu", "cpu"))
    if callable(map_location):
        moved = map_location(t, "cpu")
        return t if moved is None else moved
    return t.to(map_location)

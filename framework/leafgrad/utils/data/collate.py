"""Samples into batches: ``default_collate``, and ``default_convert`` where there are none."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from functools import partial
from typing import Any

from leafgrad import dtypes
from leafgrad.tensor.data import as_tensor, tensor
from leafgrad.tensor.joining import stack
from leafgrad.tensor.tensor import Tensor

__all__ = ["default_collate", "default_convert"]


def default_collate(batch: Any) -> Any:
    """A list of samples as one batch, with a new first dimension.

    Tensors and NumPy arrays are stacked, numbers become a tensor (floats a float64 one), strings and bytes stay a
    list. Mappings, sequences and named tuples of such are batched field by field: a batch of tuples is a list of
    batches.

    Args:
        batch: samples of one kind.

    Raises:
        TypeError: a sample is something else, or of another kind than the first. RuntimeError: sizes differ.
        KeyError: a mapping lacks a key. IndexError: there is no sample.
    """
    if not (hasattr(batch, "__len__") and hasattr(batch, "__getitem__")) or isinstance(batch, Mapping):
        raise TypeError(f"default_collate: batch: expected a list of samples, got {type(batch).__name__}")
    if not len(batch):
        raise IndexError("default_collate: batch: expected at least one sample, got none")
    first = batch[0]
    if _is_array(first):
        if first.dtype.name not in dtypes.BY_NAME:
            raise _cannot_collate(first.dtype)
        return stack([as_tensor(item) for item in batch]) if first.ndim else tensor(list(batch))
    function = default_collate_fn_map.get(type(first)) or next(
        (function for kind, function in default_collate_fn_map.items() if isinstance(first, kind)), None
    )
    if function is not None:
        return function(batch, collate_fn_map=default_collate_fn_map)
    kind = next((kind for kind in (Mapping, Sequence) if isinstance(first, kind)), None)
    if kind is None:
        raise _cannot_collate(type(first))
    same = type(first)  # mostly all are, and to ask an abstract class takes longer
    other = next((item for item in batch if type(item) is not same and not isinstance(item, kind)), None)
    if other is not None:
        raise TypeError(f"default_collate: expected samples of one kind, got {first!r:.40} and {other!r:.40}")
    if kind is Mapping:
        lacking = next((item for item in batch if not first.keys() <= item.keys()), None)
        if lacking is not None:
            missing = next(key for key in first if key not in lacking)
            raise KeyError(f"default_collate: expected the key {missing!r} of the first in each, got {list(lacking)}")
        return _with_values(first, {key: default_collate([item[key] for item in batch]) for key in first})
    if {len(first)} != {*map(len, batch)}:
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [default_collate(column) for column in zip(*batch, strict=True)]
    return columns if type(first) is tuple else _with_items(first, columns)


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    """Tensors, stacked.

    Args:
        batch: tensors of one shape.
        collate_fn_map: not used.
    """
    out: Tensor = sys.modules["leafgrad"].stack(list(batch))  # which asks, if these are of a subclass
    return out


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    float: lambda batch, *, collate_fn_map=None: tensor(list(batch), dtype=dtypes.float64),
    int: lambda batch, *, collate_fn_map=None: tensor(list(batch)),
    (str, bytes): lambda batch, *, collate_fn_map=None: batch,
}
"""What batches samples of a class, or of several: ``function(batch, collate_fn_map=...)``. Others may add theirs."""


def default_convert(data: Any) -> Any:
    """``data`` with its NumPy arrays and scalars as tensors, at any depth of mappings and sequences.

    Args:
        data: anything.
    """

    def convert(value: Any) -> Any:
        return as_tensor(value) if _is_array(value) and value.dtype.name in dtypes.BY_NAME else value

    return _each(data, convert)


def pinned(data: Any, device: str) -> Any:
    """``data`` with its tensors in page-locked memory, at any depth, and with what its ``pin_memory()`` gives.

    Args:
        data: anything.
        device: of the type that will copy from there.
    """

    def pin(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.pin_memory(device)
        return value.pin_memory() if hasattr(value, "pin_memory") else value

    return _each(data, pin)


def _each(data: Any, act: Callable[[Any], Any]) -> Any:
    """``data`` with ``act`` of whatever is in its mappings and sequences."""
    if isinstance(data, Mapping):
        return _with_values(data, {key: _each(value, act) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        items = [_each(item, act) for item in data]
        return items if type(data) is tuple else _with_items(data, items)
    return act(data)


def _is_array(value: Any) -> bool:
    """Whether ``value`` is an array or a scalar of NumPy's, which are known by their module: nothing is imported."""
    return type(value).__module__ == "numpy" and hasattr(value, "dtype") and hasattr(value, "ndim")


def _cannot_collate(what: Any) -> TypeError:
    return TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {what}; pass the "
        "DataLoader a collate_fn of your own"
    )


def _with_values(like: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """A mapping of the kind of ``like``, or a dict if that kind cannot be made so."""
    if isinstance(like, MutableMapping):
        made = copy.copy(like)
        made.update(values)
        return made
    return _made(type(like), values)


def _with_items(like: Sequence[Any], items: list[Any]) -> Any:
    """A sequence of the kind of ``like``, or a list if that kind cannot be made so."""
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*items)
    return _made(partial(_refilled, like) if isinstance(like, MutableSequence) else type(like), items)


def _refilled(like: MutableSequence[Any], items: list[Any]) -> Any:
    made = copy.copy(like)
    made.clear()
    made.extend(items)
    return made


def _made(kind: Callable[..., Any], content: Any) -> Any:
    try:
        return kind(content)
    except TypeError:  # range, say, is made of something else
        return content

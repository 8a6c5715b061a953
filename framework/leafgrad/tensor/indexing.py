"""``t[...]`` and ``t[...] = value``.

Ints, slices, None and the ellipsis choose a view. Integer tensors (lists, arrays) then pick elements from it, and
boolean masks stand for the integers where they hold: finding these waits for the device.
"""

from __future__ import annotations

import math
import operator
from numbers import Number
from typing import Any

from leafgrad import backends, dtypes, modes
from leafgrad.ops import dispatch, index as ops
from leafgrad.ops.geometry import index_axes, index_shape, inverse
from leafgrad.ops.messages import warn
from leafgrad.ops.node import SymbolBase
from leafgrad.ops.select import where
from leafgrad.ops.shape import Index, part, permute
from leafgrad.ops.traits import ALL
from leafgrad.tensor import arguments
from leafgrad.tensor.creation import beyond
from leafgrad.tensor.data import copied
from leafgrad.tensor.inplace import filled, update
from leafgrad.tensor.methods import attach
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.writes import copy_, fill_, value_for

INTEGERS = (dtypes.int64, dtypes.int32, dtypes.int16, dtypes.int8)
SIMPLE = {int, slice, type(None), type(Ellipsis)}
ENDS = {int, type(None)}
said = operator.attrgetter("__class__")  # of a symbolic number int
BACKENDS = backends.BACKENDS
_part, _index = part.function, ops.index.function


class ParsedKey:
    """A key, taken apart: the basic index ``at`` (None if it chooses everything), then ``indices`` at ``dims``.

    Attributes:
        order: how to permute what ``indices`` choose; None as it is.
    """

    __slots__ = ("at", "dims", "indices", "order")

    def __init__(self, x: Tensor, key: Any) -> None:
        self.indices: list[Tensor] = []
        self.dims: list[int] = []
        at: list[Any] = []
        shape = x._data.shape
        d = out = used = 0  # the dimension of x, of the view that at chooses, and how much of at is not trivial
        for k in _expanded(x, key):
            if k is None:
                at.append(None)
                out += 1
                used = len(at)
            elif type(k) is int:
                at.append(_position(k, d, shape[d]))
                d += 1
                used = len(at)
            elif type(k) is slice:
                n = shape[d]
                at.append(_range(k, n))
                if at[-1] != (0, n, 1):
                    used = len(at)
                d += 1
                out += 1
            else:
                new = not k._data.ndim and k.dtype is dtypes.bool_  # chooses from a dimension of its own
                for tensor in self._advanced(x, k, d):
                    at.append(None if new else (0, shape[d], 1))
                    self.indices.append(tensor)
                    self.dims.append(out)
                    d += not new
                    out += 1
                used = len(at) if new else used
        self.at: Index | None = tuple(at[:used]) if used or not self.dims else None
        self.order = self._order(out) if any(not i._data.ndim for i in self.indices) else None

    def _advanced(self, x: Tensor, k: Tensor, d: int) -> tuple[Tensor, ...]:
        """The integer tensors that ``k`` stands for, on x's device."""
        if k.dtype is dtypes.bool_:
            if k._data.shape != x._data.shape[d : d + k.ndim]:
                raise IndexError(
                    f"The shape of the mask {list(k.shape)} at index {d} does not match the shape of the indexed "
                    f"tensor {list(x.shape)} at index {d}"
                )
            found: tuple[Tensor, ...] = k.nonzero(as_tuple=True)
        elif k.dtype in INTEGERS:
            found = (k,)
        else:
            raise IndexError(
                f"tensors used as indices must be integers or bools, got {k.dtype}; convert it with .long() or .bool()"
            )
        place = x.device
        return tuple([i if i.device is place else i.to(place) for i in found])

    def _order(self, ndim: int) -> tuple[int, ...] | None:
        """An index without dimensions, whose value is not known, has no say in where those of the others stand."""
        singles = [d for d, i in zip(self.dims, self.indices, strict=True) if not i._data.ndim]
        left = [d for d in range(ndim) if d not in singles]
        dims = tuple([left.index(d) for d in self.dims if d not in singles])
        if not dims:
            return None
        width = max([i._data.ndim for i in self.indices])
        chosen = index_axes(ndim, tuple(self.dims), width)
        order = tuple([chosen.index(left[a] if a >= 0 else a) for a in index_axes(len(left), dims, width)])
        return None if order == tuple(range(len(order))) else order

    def view(self, x: Tensor) -> Tensor:
        """The part of x that the basic index chooses."""
        return x if self.at is None else part(x, at=self.at)

    def chosen(self, x: Tensor) -> Tensor:
        """What ``indices`` choose of the view."""
        out = ops.index(x, *self.indices, dims=tuple(self.dims))
        return out if self.order is None else permute(out, dims=self.order)

    def value(self, x: Tensor, value: Any) -> Any:
        """``value``, to be written where ``indices`` choose of the view, as ``index_put`` takes it."""
        arrays = [tuple(i._data.shape) for i in self.indices]
        shape = index_shape(tuple(x._data.shape), arrays, tuple(self.dims))
        value = _trimmed(value, len(shape))
        if self.order is None or not isinstance(value, Tensor):
            return value
        return permute(value.expand([shape[d] for d in self.order]), dims=inverse(self.order))


def _expanded(x: Tensor, key: Any) -> list[Any]:
    """One entry per dimension, without ellipsis: int, slice, None or Tensor."""
    entries = [_entry(x, k) for k in (key if type(key) is tuple else _in_tuple(key))]
    taken, dots = 0, None
    for i, k in enumerate(entries):
        if k is Ellipsis:
            if dots is not None:
                raise IndexError("an index can only have a single ellipsis ('...')")
            dots = i
        elif k is not None:
            taken += k.ndim if isinstance(k, Tensor) and k.dtype is dtypes.bool_ else 1
    ndim = x._data.ndim
    if taken > ndim:
        if not ndim:
            raise IndexError("invalid index of a 0-dim tensor. Use tensor.item() to convert a 0-dim tensor to a number")
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    rest: list[Any] = [slice(None)] * (ndim - taken)
    return entries + rest if dots is None else entries[:dots] + rest + entries[dots + 1 :]


def _in_tuple(key: Any) -> tuple[Any, ...]:
    """A key that is no tuple as one; as in PyTorch, a short list with more in it than numbers stands for a tuple."""
    if not isinstance(key, list) or len(key) >= 32 or all(isinstance(k, Number) for k in key):
        return (key,)
    warn(
        "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead of x[seq], "
        "or x[leafgrad.tensor(seq)] where one index is meant"
    )
    return tuple(key)


def _entry(x: Tensor, k: Any) -> Any:
    if k is None or k is Ellipsis or type(k) is int or type(k) is slice:
        return k
    if isinstance(k, bool):
        k = copied(k, None, x.device)
    elif isinstance(k, (list, tuple, range)) or (not isinstance(k, Tensor) and _is_array(k)):
        k = copied(k, None, None)
        if not k.numel() and k.dtype is not dtypes.bool_:
            k = k.to(dtypes.int64)
    if isinstance(k, Tensor) and k.dtype is dtypes.uint8:
        warn("indexing with dtype leafgrad.uint8 is now deprecated, please use a dtype leafgrad.bool instead")
        k = k.to(dtypes.bool_)
    if isinstance(k, Tensor):
        single = not k._data.ndim and k.dtype in INTEGERS and not isinstance(k._data, SymbolBase)
        return int(k.item()) if single else k
    if hasattr(k.__class__, "__index__") and getattr(k, "dtype", None) != "bool":  # which is 0 or 1 for older NumPy
        return operator.index(k)
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and integer or bool tensors are valid indices, got "
        f"{k.__class__.__name__}"
    )


def _is_array(k: Any) -> bool:
    """Whether ``k`` is an array of a library, of whatever class; its scalars are none."""
    try:
        return not isinstance(k, backends.backend_of(k).scalars)
    except TypeError:
        return False


def _position(i: int, d: int, n: int) -> int:
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for dimension {d} with size {n}")
    return i + n if i < 0 else i


def _range(s: slice, n: int) -> tuple[int, int, int]:
    if s.step is not None and operator.index(s.step) <= 0:
        raise ValueError(f"step must be greater than zero, got {s.step}; use flip()")
    start, stop, step = s.indices(n)
    return start, max(start, stop), step


def _ends(s: slice, n: int) -> tuple[int, int, int]:
    """What ``s.indices(n)`` gives of a slice without step, by arithmetic: with sizes that a compiled step follows."""
    start, stop = 0 if s.start is None else s.start, n if s.stop is None else s.stop
    return _end(start, n), _end(stop, n), 1


def _is_symbolic(end: Any) -> bool:
    """Whether an end of a slice is a number that only says that it is an int."""
    return end.__class__ is int is not type(end)


def _end(at: int, n: int) -> int:
    return max(at + n, 0) if at < 0 else min(at, n)


def simple_index(key: Any, shape: tuple[int, ...]) -> Index | None:
    """What `ParsedKey.at` is for ints, slices without step, None and the ellipsis; None for other keys or beyond it.

    Numbers may be symbolic ones, which say that they are ints.
    """
    ndim = len(shape)
    if key.__class__ is int and ndim and -shape[0] <= key < shape[0]:
        return (key % shape[0],)
    entries = key if type(key) is tuple else (key,)
    if not (SIMPLE.issuperset(map(type, entries)) or SIMPLE.issuperset(map(said, entries))):
        return None
    if Ellipsis in entries:
        i = entries.index(Ellipsis)
        rest = ndim - (len(entries) - 1 - entries.count(None))
        entries = entries[:i] + (slice(None),) * rest + entries[i + 1 :]
    at: list[Any] = []
    d = used = 0
    for k in entries:
        if k is None:
            at.append(None)
        elif d == ndim:
            return None
        elif k.__class__ is int and -shape[d] <= k < shape[d]:
            at.append(k % shape[d])
            d += 1
        elif type(k) is slice and k.step is None:
            n = shape[d]
            ends = k.start, k.stop, n
            plain = ENDS.issuperset(map(type, ends)) or not any(map(_is_symbolic, ends))
            start, stop, _ = k.indices(n) if plain else _ends(k, n)
            at.append((start, max(start, stop), 1))
            d += 1
            if stop - start == n:
                continue
        else:
            return None
        used = len(at)
    return tuple(at[:used])


def getitem(self: Tensor, key: Any) -> Tensor:
    """A view for ints, slices, None and the ellipsis, a copy as soon as tensors, lists or masks choose elements."""
    at = simple_index(key, self._data.shape)
    if at is not None:
        return _part(self, at=at)
    if isinstance(key, Tensor) and modes.get() <= modes.GRAD:
        at, data = key._data, self._data
        alike = type(at) is type(data) and type(at) in ops.index.lines
        if alike and at.ndim and data.ndim and at.dtype.kind == "i":
            return _index(self, key, dims=(0,))
        if alike and at.ndim and at.dtype.kind == "b" and at.shape == data.shape[: at.ndim]:
            return _index(self, *dispatch.aliases(at.nonzero()), dims=ALL[at.ndim])
    plan = ParsedKey(self, key)
    chosen = plan.view(self)
    if not plan.dims:
        return chosen
    return plan.chosen(chosen)


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Write ``value`` (a number, a tensor or data for one, which broadcasts) to what ``self[key]`` gives."""
    at = simple_index(key, self._data.shape)
    if at is not None and modes.get() <= modes.GRAD and filled(_part(self, at=at), value):
        return
    value = _value(self, value)
    if _is_mask(self, key) and (not isinstance(value, Tensor) or not value._data.ndim):
        mask = reshaped(key, (*key._data.shape, *(1,) * (self._data.ndim - key._data.ndim)))
        update(self, _where_mask, mask.to(self.device), value)
        return
    plan = None if at is not None else ParsedKey(self, key)
    target = _part(self, at=at) if plan is None else plan.view(self)
    if plan is not None and plan.dims:
        update(target, ops.index_put, plan.value(target, value), *plan.indices, dims=tuple(plan.dims))
    elif isinstance(value, Tensor):
        copy_(target, _trimmed(value, target._data.ndim))
    else:
        fill_(target, value)


def _where_mask(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    return where(mask, value, x)


def _is_mask(x: Tensor, key: Any) -> bool:
    return (
        isinstance(key, Tensor)
        and key.dtype is dtypes.bool_
        and bool(key._data.ndim)
        and key._data.shape == x._data.shape[: key._data.ndim]
    )


def _value(x: Tensor, value: Any) -> Any:
    """A number, or a tensor of x's dtype on x's device."""
    if isinstance(value, Tensor):
        return arguments.discarding(value.to(x.device) if not value._data.ndim else value, x.dtype)
    if isinstance(value, (list, tuple)) or (type(value) in backends.BACKENDS and value.ndim):
        return copied(value, x.dtype, x.device)
    if type(value) in (int, float) and x.dtype.is_floating_point and beyond(value, x.dtype):
        return math.inf if value > 0 else -math.inf  # as PyTorch, unlike in fill_
    return value_for(x, value, "value")


def _trimmed(value: Any, ndim: int) -> Any:
    """``value`` without leading dimensions of size 1 beyond ``ndim`` dimensions."""
    if not isinstance(value, Tensor):
        return value
    shape = tuple(value._data.shape)
    while len(shape) > ndim and shape[0] == 1:
        shape = shape[1:]
    return value if len(shape) == value._data.ndim else reshaped(value, shape)


attach("__getitem__", getitem)
attach("__setitem__", setitem)

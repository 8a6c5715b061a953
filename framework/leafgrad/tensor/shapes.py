"""Shapes and strides, and views that rearrange dimensions: reshape, transpose, expand, squeeze, …"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import messages, shape as ops
from leafgrad.ops.abstract import broadcast_shape
from leafgrad.ops.marks import mark, shown_as
from leafgrad.ops.scalars import as_ints
from leafgrad.tensor import arguments
from leafgrad.tensor.bits import as_dtype
from leafgrad.tensor.formats import layout
from leafgrad.tensor.methods import attach
from leafgrad.tensor.public import public
from leafgrad.tensor.size import Size
from leafgrad.tensor.tensor import Tensor

Shape = tuple[int, ...]
_reshape, _permute = ops.reshape.function, ops.permute.function


# ---- size and layout ----------------------------------------------------------------------------------------------


@public(only="Tensor")
def size(input: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dimension."""
    shape = input._data.shape
    if dim is None:
        return Size(shape)
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return shape[arguments.one_dim(input, dim, "size")]


@public(also="ndimension", only="Tensor")
def dim(input: Tensor) -> int:
    """The number of dimensions."""
    return int(input._data.ndim)


@public
def numel(input: Tensor) -> int:
    """The number of elements."""
    return math.prod(input._data.shape)


attach("nelement", numel)


@public(only="Tensor")
def element_size(input: Tensor) -> int:
    """Bytes of one element."""
    return input.dtype.itemsize


@public(only="Tensor")
def stride(input: Tensor, dim: int | None = None) -> Any:
    """How many elements to step in memory from one to the next along each dimension, or along one."""
    data = layout(input)
    if not hasattr(data, "strides"):  # of the device meta
        steps = tuple(math.prod(data.shape[d + 1 :]) for d in range(len(data.shape)))
    else:
        steps = tuple(s // data.itemsize for s in data.strides)
    return steps if dim is None else steps[arguments.one_dim(input, dim, "stride")]


# ---- reshape ------------------------------------------------------------------------------------------------------


def resolved(input: Tensor, shape: Shape) -> Shape:
    """``shape`` with -1 replaced by the size that fits; a RuntimeError if none does."""
    count = math.prod(input._data.shape)
    if -1 in shape:
        known = -math.prod(shape)
        if shape.count(-1) > 1:
            raise RuntimeError(f"only one dimension can be inferred, got shape {list(shape)}")
        if known == 0:
            raise RuntimeError(
                f"cannot reshape tensor of {count} elements into shape {list(shape)} because the unspecified "
                "dimension size -1 can be any value and is ambiguous"
            )
        if known > 0 and count % known == 0:
            return tuple([count // known if n == -1 else n for n in shape])
    elif math.prod(shape) == count and (not shape or min(shape) >= 0):
        return shape
    if shape and min(shape) < -1:
        raise RuntimeError(f"invalid shape dimension {min(shape)}, got shape {list(shape)}")
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")


def reshaped(input: Tensor, shape: Shape) -> Tensor:
    """The op, with a shape that is known to fit."""
    return _reshape(input, shape=shape)


@public(only="leafgrad")
def reshape(input: Tensor, shape: Any) -> Tensor:
    """The elements, in order, in another shape, in which one size may be -1; a view where strides allow.

    Raises:
        RuntimeError: the shape does not fit the number of elements.
    """
    arguments.expect_tensor(input, "input", "reshape")
    return reshaped(input, resolved(input, arguments.shape((shape,), "reshape", "shape")))


def _reshape_to(self: Tensor, *shape: Any) -> Tensor:
    """The elements, in order, in another shape: sizes one by one or in a tuple, of which one may be -1."""
    plain = arguments.INTS.issuperset(map(type, shape))
    return _reshape(self, shape=resolved(self, shape if plain else arguments.shape(shape, "reshape", "shape")))


attach("reshape", _reshape_to)


@public(only="Tensor")
def view(self: Tensor, *size: Any, dtype: Any = None) -> Tensor:
    """The same memory in another shape, in which one size may be -1, or its bytes as another dtype.

    Raises:
        RuntimeError: the shape does not fit, or the strides do not allow it without a copy.
    """
    if dtype is not None or (len(size) == 1 and isinstance(size[0], dtypes.dtype)):
        return as_dtype(self, dtypes.check(size[0] if dtype is None else dtype))
    out = reshaped(self, resolved(self, arguments.shape(size, "view")))
    if out._view is not None or not out.numel():
        return out
    raise RuntimeError(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        f"contiguous subspaces): size {list(self.shape)}, stride {self.stride()}, view {list(out.shape)}. "
        "Use .reshape(...) instead."
    )


@public(only="Tensor")
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """``self.view(other.shape)``"""
    return self.view(arguments.expect_tensor(other, "other", "view_as").shape)


@public(only="Tensor")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """``self.reshape(other.shape)``"""
    return self.reshape(arguments.expect_tensor(other, "other", "reshape_as").shape)


@public
def ravel(input: Tensor) -> Tensor:
    """The elements in one dimension without gaps, a view where they lie like that. (...) -> (n,)"""
    return reshaped(input.contiguous(), (input.numel(),))


@public
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from ``start_dim`` to ``end_dim``, both included, made one."""
    first = arguments.one_dim(input, start_dim, "flatten", name="start_dim")
    last = arguments.one_dim(input, end_dim, "flatten", name="end_dim")
    if first > last:
        raise RuntimeError(f"flatten() has invalid args: start_dim cannot come after end_dim, got {first} and {last}")
    shape = tuple(input._data.shape)
    if not shape:
        return reshaped(input, (1,))
    return (
        input
        if first == last
        else reshaped(input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))
    )


@public
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension made several, of ``sizes``, in which one may be -1."""
    if not input._data.ndim:
        raise RuntimeError("unflatten: Dimension specified as 0 but tensor has no dimensions")
    d = arguments.one_dim(input, dim, "unflatten")
    shape, parts = tuple(input._data.shape), arguments.shape((sizes,), "unflatten", "sizes")
    if not parts:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = math.prod(n for n in parts if n != -1)
    if shape[d] % known if known and -1 in parts else shape[d] != known:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim {d} ({shape[d]}) in the "
            "input tensor"
        )
    if known and parts.count(-1) == 1:  # what fits this dimension, even where another one has no elements
        parts = tuple(shape[d] // known if n == -1 else n for n in parts)
    return reshaped(input, resolved(input, (*shape[:d], *parts, *shape[d + 1 :])))


@public
def squeeze(input: Tensor, dim: arguments.Dim = None) -> Tensor:
    """Without the dimensions of size 1, or without those among ``dim`` (an int or several)."""
    shape, over = tuple(input._data.shape), as_ints(dim)
    none = isinstance(over, (tuple, list)) and not over
    chosen = range(len(shape)) if dim is None else () if none else arguments.dims(input, over, "squeeze")
    out = reshaped(input, tuple(n for d, n in enumerate(shape) if n != 1 or d not in chosen))
    label = "SqueezeBackward" + ("0" if dim is None else "1" if over is not dim else "2")
    return mark(out, label, input)


@public
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a dimension of size 1 inserted so that it is ``dim`` of the result."""
    shape = input._data.shape
    d = dim if type(dim) is int and 0 <= dim <= len(shape) else arguments.one_dim(input, dim, "unsqueeze", extra=1)
    return mark(_reshape(input, shape=(*shape[:d], 1, *shape[d:])), "UnsqueezeBackward0", input)


@public(only="leafgrad")
def atleast_1d(*tensors: Any) -> Any:
    """Each tensor with at least one dimension; a tuple if several (or a sequence) are given."""
    return _each("atleast_1d", tensors, lambda x: x.reshape(1) if not x.ndim else x)


@public(only="leafgrad")
def atleast_2d(*tensors: Any) -> Any:
    """Each tensor with at least two dimensions, (n,) as (1, n)."""
    return _each("atleast_2d", tensors, lambda x: x.reshape(1, -1) if x.ndim < 2 else x)


@public(only="leafgrad")
def atleast_3d(*tensors: Any) -> Any:
    """Each tensor with at least three dimensions, (n,) as (1, n, 1) and (m, n) as (m, n, 1)."""
    return _each(
        "atleast_3d", tensors, lambda x: x.unsqueeze(-1) if x.ndim == 2 else x.reshape(1, -1, 1) if x.ndim < 2 else x
    )


def _each(name: str, tensors: tuple[Any, ...], change: Any) -> Any:
    listed = len(tensors) == 1 and isinstance(tensors[0], (tuple, list))
    every = tensors[0] if listed else tensors
    changed = tuple([change(arguments.expect_tensor(x, f"tensors[{i}]", name)) for i, x in enumerate(every)])
    return changed[0] if len(tensors) == 1 and not listed else changed


# ---- order of dimensions ------------------------------------------------------------------------------------------


@public(only="leafgrad")
def permute(input: Tensor, dims: Any) -> Tensor:
    """The dimensions in another order: dimension i of the result is dimension ``dims[i]`` of ``input``.

    Raises:
        RuntimeError: not one entry for each dimension, or one twice.
    """
    arguments.expect_tensor(input, "input", "permute")
    order = arguments.shape((dims,), "permute", "dims")
    if sorted(order) != [*range(input._data.ndim)]:
        order = tuple([arguments.one_dim(input, d, "permute") for d in order])
    if len(order) != input._data.ndim:
        raise RuntimeError(
            f"permute: number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(order)}"
        )
    if len(set(order)) != len(order):
        raise RuntimeError(f"permute(): duplicate dims are not allowed, got {dims}")
    return permuted(input, order)


def permuted(input: Tensor, order: Shape) -> Tensor:
    """The op, with an order that is known to be one."""
    return _permute(input, dims=order)


attach("permute", lambda self, *dims: permute(self, dims[0] if len(dims) == 1 else dims))


@public(also="swapdims")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """With two dimensions exchanged.

    Args:
        dim0, dim1: dimensions.
        dim0, dim1: dimensions.
    """
    n = input._data.ndim
    a = dim0 if type(dim0) is int and 0 <= dim0 < n else arguments.one_dim(input, dim0, "transpose", name="dim0")
    b = dim1 if type(dim1) is int and 0 <= dim1 < n else arguments.one_dim(input, dim1, "transpose", name="dim1")
    order = list(range(n))
    if order:
        order[a], order[b] = b, a
    return mark(_permute(input, dims=tuple(order)), "TransposeBackward0", input)


@public
@shown_as("TransposeBackward0")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """The same as ``transpose``.

    Args:
        axis0, axis1: dimensions.
    """
    return transpose(input, axis0, axis1)


@public
@shown_as("TBackward0")
def t(input: Tensor) -> Tensor:
    """The transposed matrix; tensors of fewer dimensions as they are. (m, n) -> (n, m)"""
    if arguments.expect_tensor(input, "self", "t")._data.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D; use transpose()")
    return _reversed(input)


def _reversed(input: Tensor) -> Tensor:
    return _permute(input, dims=tuple(range(input._data.ndim - 1, -1, -1)))


@shown_as("TransposeBackward0")
def _mT(input: Tensor) -> Tensor:
    if not input._data.ndim:
        messages.warn("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.")
        return input
    if input._data.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor."
        )
    return input.transpose(-2, -1)


attach("T", property(_reversed, doc="All dimensions in reverse order."))
attach("mT", property(_mT, doc="The last two dimensions exchanged. (..., m, n) -> (..., n, m)"))


@public
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, conjugated. (..., m, n) -> (..., n, m)"""
    return _mT(input).conj()


@public(also="moveaxis")
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The dimensions ``source`` (an int or several) moved to the places ``destination``, the others in order."""
    sources, targets = list(as_ints(source)), list(as_ints(destination))
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({sources} dims) should contain the same number of "
            f"dims as destination ({targets} dims)"
        )
    origin = [arguments.one_dim(input, d, "movedim", name="source") for d in sources]
    place = [arguments.one_dim(input, d, "movedim", name="destination") for d in targets]
    for name, found in (("source", origin), ("destination", place)):
        if len(set(found)) != len(found):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({found})")
    rest = iter([d for d in range(input._data.ndim) if d not in origin])
    moved = dict(zip(place, origin, strict=True))
    return permuted(input, tuple(moved[d] if d in moved else next(rest) for d in range(input._data.ndim)))


# ---- broadcasting -------------------------------------------------------------------------------------------------


@public(only="Tensor")
def expand(self: Tensor, *size: Any) -> Tensor:
    """Dimensions of size 1 repeated to ``size`` without a copy; -1 leaves one as it is. New ones come first.

    Raises:
        RuntimeError: a size other than 1 would change.
    """
    shape, want = tuple(self._data.shape), arguments.shape(size, "expand")
    new = len(want) - len(shape)
    if new < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(want)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({len(shape)})"
        )
    full = list(want)
    for d, (have, n) in enumerate(itertools.zip_longest((None,) * new + shape, want)):
        if n == -1 and have is not None:
            full[d] = have
        elif n < 0 or have not in (None, 1, n):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton "
                f"dimension {d}.  Target sizes: {list(want)}.  Tensor sizes: {list(shape)}"
            )
    return ops.expand.function(self, shape=tuple(full))


@public(only="Tensor")
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """``self.expand(other.shape)``"""
    return self.expand(arguments.expect_tensor(other, "other", "expand_as").shape)


@public(only="Tensor")
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """``self`` summed over the dimensions in which it could have been expanded from ``size``; integers as int64.

    Raises:
        RuntimeError: ``size`` is not expandable to the size of ``self``.
    """
    wanted = arguments.shape(size, "sum_to_size", "size")
    expandable = len(wanted) <= self.ndim and all(
        a in (1, b) for a, b in zip(wanted[::-1], self.shape[::-1], strict=False)
    )
    if not expandable:
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(self.shape)}}}.")
    if wanted and wanted == tuple(self.shape):  # a number is summed, as in PyTorch
        return self
    exact = not (self.dtype.is_floating_point or self.dtype.is_complex)
    return ops.sum_to.function(self.long() if exact else self, shape=wanted)


@public
def broadcast_to(input: Tensor, *size: Any) -> Tensor:
    """``input.expand(size)``"""
    return input.expand(*size)


@public(only="leafgrad")
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape to which tensors of these shapes broadcast together.

    Raises:
        RuntimeError: they do not. ValueError: a size is negative.
    """
    every = [arguments.shape((s,), "broadcast_shapes", "shapes") for s in shapes]
    if any(n < 0 for one in every for n in one):
        raise ValueError(f"broadcast_shapes: expected sizes of at least 0, got {[list(s) for s in every]}")
    try:
        return Size(broadcast_shape(map(tuple, every)))
    except ValueError:
        raise RuntimeError(
            f"Shape mismatch: objects cannot be broadcast to a single shape, got "
            f"{' and '.join([str(list(s)) for s in every])}"
        ) from None


@public(only="leafgrad")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to one shape."""
    every = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    for i, x in enumerate(every):
        arguments.expect_tensor(x, f"tensors[{i}]", "broadcast_tensors")
    shape = broadcast_shapes(*[x.shape for x in every])
    return tuple(x.expand(shape) for x in every)

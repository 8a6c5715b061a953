"""Tensors put together (cat, stack, meshgrid, …) and taken apart (split, chunk, unbind, …)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.ops import promotion, shape as ops
from leafgrad.ops.dispatch import alias, expose
from leafgrad.ops.marks import shown_as
from leafgrad.ops.node import SymbolBase
from leafgrad.ops.scalars import as_int
from leafgrad.tensor import arguments
from leafgrad.tensor.arguments import cast, integer
from leafgrad.tensor.creation import new_zeros
from leafgrad.tensor.formats import RANKS, channels_last, follow
from leafgrad.tensor.methods import attach
from leafgrad.tensor.public import public
from leafgrad.tensor.shapes import atleast_1d, atleast_2d, atleast_3d, reshaped
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import parts

Tensors = Sequence[Tensor]
Sections = int | Sequence[int] | Tensor
_cat, _part, _stack = ops.cat.function, ops.part.function, ops.stack.function


def several(tensors: Any, function: str) -> list[Tensor]:
    """A non-empty list of tensors, from a sequence of them."""
    if type(tensors) not in (tuple, list) and (isinstance(tensors, Tensor) or not isinstance(tensors, Sequence)):
        raise TypeError(
            f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    if not tensors:
        error = ValueError if function == "cat" else RuntimeError
        raise error(f"{function}(): expected a non-empty list of Tensors")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            arguments.expect_tensor(x, f"tensors[{i}]", function)
    return list(tensors)


@public(also="concat concatenate", only="leafgrad", out="cast")
def cat(tensors: Tensors, dim: int = 0) -> Tensor:
    """Tensors one after the other along ``dim``; in all other dimensions their sizes agree.

    dtypes are promoted. Tensors of shape (0,) fit all others, and count in that, too.

    Raises:
        ValueError: no tensors. RuntimeError: sizes differ, or a tensor has no dimensions.
    """
    parts = several(tensors, "cat")
    position, model = 0, parts[0]
    if model._data.shape == (0,):
        position, model = next(((i, x) for i, x in enumerate(parts) if x._data.shape != (0,)), (0, model))
    first = model._data.shape
    if not first:
        raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    d = dim if type(dim) is int and 0 <= dim < len(first) else arguments.one_dim(model, dim, "cat")
    for i, x in enumerate(parts):
        shape = x._data.shape
        if shape == first:
            continue
        if shape == (0,) and len(first) > 1:
            parts[i] = reshaped(x, (*first[:d], 0, *first[d + 1 :]))
            continue
        if len(shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        if shape[:d] != first[:d] or shape[d + 1 :] != first[d + 1 :]:
            k = next(k for k in range(len(first)) if k != d and shape[k] != first[k])
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size {first[k]} but got size "
                f"{shape[k]} for tensor number {i} in the list."
            )
    out: Tensor = _cat(*parts, dim=d)
    if len(first) in RANKS.values() and (order := channels_last(parts[0])) and all(map(channels_last, parts)):
        return follow(out, order)
    return out


@public(only="leafgrad", out="cast")
def stack(tensors: Tensors, dim: int = 0) -> Tensor:
    """Tensors of one shape along a new dimension, which is ``dim`` of the result. dtypes are promoted.

    Raises:
        RuntimeError: no tensors, or shapes differ.
    """
    parts = several(tensors, "stack")
    d = arguments.one_dim(parts[0], dim, "stack", extra=1)
    shape = parts[0]._data.shape
    for i, x in enumerate(parts):
        if x._data.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(x._data.shape)} at entry {i}"
            )
    out: Tensor = _stack(*parts, dim=d)
    order = channels_last(parts[0])
    if order and d < len(shape) and all(map(channels_last, parts)):  # as cat, whose dimension d is then two
        moved = [k + (k >= d) for k in order]
        at = moved.index(d + 1)
        return follow(out, (*moved[:at], d, *moved[at:]))
    return out


@public(only="leafgrad", out="cast")
def hstack(tensors: Tensors) -> Tensor:
    """Tensors side by side: along dimension 1, or 0 where they have one dimension."""
    parts = atleast_1d(several(tensors, "hstack"))
    return cat(parts, 0 if parts[0].ndim == 1 else 1)


@public(also="row_stack", only="leafgrad", out="cast")
def vstack(tensors: Tensors) -> Tensor:
    """Tensors below each other, (n,) as (1, n)."""
    return cat(atleast_2d(several(tensors, "vstack")), 0)


@public(only="leafgrad", out="cast")
def dstack(tensors: Tensors) -> Tensor:
    """Tensors behind each other, along dimension 2."""
    return cat(atleast_3d(several(tensors, "dstack")), 2)


@public(only="leafgrad", out="cast")
def column_stack(tensors: Tensors) -> Tensor:
    """Tensors side by side, (n,) as a column (n, 1)."""
    return hstack([x.reshape(x.numel(), 1) if x.ndim < 2 else x for x in several(tensors, "column_stack")])


@public(only="leafgrad")
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given ones along its diagonal and zeros elsewhere.

    Args:
        tensors: of at most two dimensions; (n,) is a row, a number one of one element.
    """
    kind = promotion.result_type(tuple(given := several(tensors, "block_diag")))  # for which numbers count less
    blocks = [cast(b, kind) for b in atleast_2d(given)]
    rows, left, width = [], 0, sum(b.shape[1] for b in blocks)
    for b in blocks:
        if b.ndim > 2:
            raise RuntimeError(f"block_diag: Input tensors must have 2 or fewer dimensions, got {b.ndim}")
        height, n = b.shape
        rows.append(cat([new_zeros(b, height, left), b, new_zeros(b, height, width - left - n)], 1))
        left += n
    return cat(rows, 0)


@public(only="leafgrad")
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Each of n one-dimensional tensors expanded over the grid of all: element [i, j, …] of the first is its i-th.

    Args:
        indexing: "ij", or "xy", which exchanges the first two dimensions.
    """
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    every = several(tuple(given), "meshgrid")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for x in every:
        if x.ndim > 1:
            raise RuntimeError(f"meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(x.shape)}")
    axes = list(range(len(every)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = 1, 0
    shape = [0] * len(every)
    for axis, x in zip(axes, every, strict=True):
        shape[axis] = x.numel()
    return tuple(
        reshaped(x, tuple(x.numel() if d == axis else 1 for d in range(len(every)))).expand(shape)
        for axis, x in zip(axes, every, strict=True)
    )


# ---- parts --------------------------------------------------------------------------------------------------------


def piece(input: Tensor, d: int, start: int, stop: int) -> Tensor:
    """The range from ``start`` to ``stop`` of dimension ``d``, as a view."""
    whole = [(0, n, 1) for n in input._data.shape[:d]] if d else []
    return _part(input, at=(*whole, (start, stop, 1)))


@public
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """``length`` elements of dimension ``dim`` from ``start`` on, as a view.

    Raises:
        IndexError: ``start`` is out of range. RuntimeError: ``length`` is negative or too long.
    """
    d = arguments.one_dim(input, dim, "narrow")
    if not input._data.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and start.ndim:
        raise RuntimeError(f"narrow(): start: expected an integer or a tensor without dimensions, got {start.ndim}")
    n, first = input._data.shape[d], arguments.integer(start, "start", "narrow")
    length = arguments.integer(length, "length", "narrow")
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative, got {length}")
    if not -n <= first <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    first += n if first < 0 else 0
    if first + length > n:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({n}).")
    return piece(input, d, first, first + length)


@public
@shown_as("SelectBackward0")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice at ``index`` of dimension ``dim``, which goes away; a view.

    Args:
        index: the place along ``dim``, from the end if negative.
    """
    if not input._data.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d, i = arguments.one_dim(input, dim, "select"), arguments.integer(index, "index", "select")
    n = input._data.shape[d]
    if not -n <= i < n:
        raise IndexError(f"select(): index {i} out of range for tensor of size {list(input.shape)} at dimension {d}")
    return _at(input, d, i % n)


def _at(input: Tensor, d: int, i: int) -> Tensor:
    whole = [(0, n, 1) for n in input._data.shape[:d]] if d else []
    return _part(input, at=(*whole, i))


def _cut(input: Tensor, d: int, edges: Sequence[int]) -> tuple[Tensor, ...]:
    """The pieces between consecutive ``edges``."""
    return tuple([_part(input, at=at) for at in _places(input._data.shape[:d], tuple(edges))])


@functools.lru_cache(maxsize=256)
def _places(before: tuple[int, ...], edges: tuple[int, ...]) -> list[ops.Index]:
    """The pieces of a dimension between ``edges``, as basic indices, by the sizes of the dimensions before it."""
    whole = [(0, n, 1) for n in before]
    return [(*whole, (a, b if b > a else a, 1)) for a, b in itertools.pairwise(edges)]


@public
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along ``dim``, which goes away; views."""
    if not input._data.ndim:
        raise IndexError("unbind: Dimension specified as 0 but tensor has no dimensions")
    d = arguments.one_dim(input, dim, "unbind")
    whole = [(0, n, 1) for n in input._data.shape[:d]] if d else []
    return parts(input, [(*whole, i) for i in range(input._data.shape[d])], "UnbindBackward0")


@public(only="leafgrad")
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of ``split_size`` along ``dim``, the last one perhaps shorter, or of the sizes in a list; views.

    Args:
        tensor: what is split.
        split_size_or_sections: the size of the parts, or a list of their sizes.

    Raises:
        RuntimeError: a negative size, or sizes that do not add up to that of the dimension.
    """
    if not arguments.expect_tensor(tensor, "tensor", "split")._data.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = arguments.one_dim(tensor, dim, "split")
    n = tensor._data.shape[d]
    if (size := as_int(split_size_or_sections)) is not None:
        if size < 0 or (size == 0 and n):
            raise RuntimeError(
                f"split expects split_size be non-negative, and positive here, but got split_size={size}"
            )
        count = max(1, -(-n // size)) if size else 1
        edges = (*[i * size for i in range(count)], n)
        return parts(tensor, _places(tensor._data.shape[:d], edges), "SplitBackward0")
    sections = arguments.shape((split_size_or_sections,), "split", "split_size_or_sections")
    if sum(sections) != n or (sections and min(sections) < 0):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={list(sections)}"
        )
    edges = (0, *itertools.accumulate(sections))
    return parts(tensor, _places(tensor._data.shape[:d], edges), "SplitWithSizesBackward0")


def _split(self: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """``split``: pieces of ``split_size``, or of the sizes in a list."""
    return split(self, split_size, dim)


attach("split", _split)


@public
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of these sizes along ``dim``; views.

    Args:
        split_sizes: the sizes of the parts.
    """
    return split(input, split_sizes, dim)


@public
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` pieces along ``dim``, of equal size but for the last; views."""
    if not input._data.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if (chunks := integer(chunks, "chunks", "chunk")) <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = dim if type(dim) is int and 0 <= dim < input._data.ndim else arguments.one_dim(input, dim, "chunk")
    n = input._data.shape[d]
    size = -(-n // chunks)
    edges = (*range(0, n, size), n) if size else (0,) * (chunks + 1)
    return parts(input, _places(input._data.shape[:d], edges), "SplitBackward0")


def _apart(input: Tensor, pieces: tuple[Tensor, ...], dim: int) -> tuple[Tensor, ...]:
    """Pieces of the same sizes, in the memory of ``input``, that may be written in place as if they were no views."""
    edges = [0, *itertools.accumulate(piece.shape[dim] for piece in pieces)]
    cut = _cut(input, arguments.one_dim(input, dim, "split"), edges)
    if modes.get() & modes.TRACE or isinstance(input._data, SymbolBase):  # only views say there what shares memory
        return cut
    expose(input._data)
    return tuple([alias(piece._data, piece._node) for piece in cut])


@public
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """``split``, whose pieces may be written in place."""
    return _apart(tensor, split(tensor, split_size, dim), dim)


@public
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """``split_with_sizes``, whose pieces may be written in place."""
    return _apart(input, split(input, split_sizes, dim), dim)


@public
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """``chunk``, whose pieces may be written in place."""
    return _apart(input, chunk(input, chunks, dim), dim)


@public
def tensor_split(input: Tensor, indices_or_sections: Sections, dim: int = 0) -> tuple[Tensor, ...]:
    """That many pieces along ``dim``, of sizes that differ by one at most, or pieces cut at given places; views.

    Args:
        indices_or_sections: how many parts, or where they begin.
    """
    if not input._data.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = arguments.one_dim(input, dim, "tensor_split")
    n, given = int(input._data.shape[d]), indices_or_sections
    if isinstance(given, Tensor):
        if given.dtype is not dtypes.int64:
            raise RuntimeError(
                f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {given.dtype}"
            )
        if given.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
                f"but got a tensor with {given.ndim} dims"
            )
        given = given.tolist()
    if (count := as_int(given)) is not None:
        if count <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {count}")
        return _cut(input, d, [i * (n // count) + min(i, n % count) for i in range(count + 1)])
    inner = [min(max(i + n if i < 0 else i, 0), n) for i in arguments.shape((given,), "tensor_split", "indices")]
    return _cut(input, d, [0, *inner, n])


@public
def hsplit(input: Tensor, indices_or_sections: Sections) -> tuple[Tensor, ...]:
    """Split along dimension 1, or 0 of a one-dimensional tensor.

    Args:
        indices_or_sections: as of ``tensor_split``.
    """
    return _even_split("hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1, 1)


@public
def vsplit(input: Tensor, indices_or_sections: Sections) -> tuple[Tensor, ...]:
    """Split along dimension 0.

    Args:
        indices_or_sections: as of ``tensor_split``.
    """
    return _even_split("vsplit", input, indices_or_sections, 0, 2)


@public
def dsplit(input: Tensor, indices_or_sections: Sections) -> tuple[Tensor, ...]:
    """Split along dimension 2.

    Args:
        indices_or_sections: as of ``tensor_split``.
    """
    return _even_split("dsplit", input, indices_or_sections, 2, 3)


def _even_split(function: str, input: Tensor, given: Any, d: int, least: int) -> tuple[Tensor, ...]:
    if input.ndim < least:
        raise RuntimeError(
            f"{dtypes.namespace}.{function} requires a tensor with at least {least} dimension, but got a tensor with "
            f"{input.ndim} dimensions!"
        )
    count = as_int(given)
    if count is not None and (count <= 0 or input.shape[d] % count):
        raise RuntimeError(
            f"{dtypes.namespace}.{function} attempted to split along dimension {d}, but the size of the dimension "
            f"{input.shape[d]} is not divisible by the split_size {count}!"
        )
    return tensor_split(input, given, d)

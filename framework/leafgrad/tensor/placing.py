"""A part of a tensor replaced: put, select_scatter, diagonal_scatter, …; and Python functions applied in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import dtypes
from leafgrad.tensor import arguments
from leafgrad.tensor.data import copied
from leafgrad.tensor.gathering import scatter, scatter_add, scatter_reduce
from leafgrad.tensor.inplace import update
from leafgrad.tensor.joining import narrow, select
from leafgrad.tensor.public import public
from leafgrad.tensor.rearranging import diagonal
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.storage import as_strided
from leafgrad.tensor.tensor import Tensor


def replaced(function: str, input: Tensor, src: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
    """A copy of ``input`` with ``part`` of it replaced by ``src``, which has its shape."""
    out = input.clone()
    target = part(out)
    if target.shape != arguments.expect_tensor(src, "src", function).shape:
        raise RuntimeError(
            f"{function}: expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice "
            f"size = {list(target.shape)}"
        )
    target.copy_(src)
    return out


@public
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with ``select(dim, index)`` replaced by ``src``."""
    return replaced("select_scatter", input, src, lambda x: select(x, dim, index))


@public(out="exact")
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy with the slice ``start:end:step`` of dimension ``dim`` replaced by ``src``."""
    d = arguments.one_dim(input, dim, "slice_scatter")
    key = (*[slice(None)] * d, slice(start, end, step))
    return replaced("slice_scatter", input, src, lambda x: x[key])


@public
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy with a diagonal replaced by ``src``."""
    return replaced("diagonal_scatter", input, src, lambda x: diagonal(x, offset, dim1, dim2))


@public
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A copy with ``as_strided(size, stride, storage_offset)`` replaced by ``src``."""
    return replaced("as_strided_scatter", input, src, lambda x: as_strided(x, size, stride, storage_offset))


@public
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """``narrow(dim, start, length)`` as a copy."""
    return narrow(input, dim, start, length).clone()


@public(out="exact")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of ``input`` whose slices at ``index`` along ``dim`` are combined with those of ``source``.

    Args:
        index: integers. (n,)
        source: of the shape of ``input``, with n slices along ``dim``.
        reduce: "prod", "mean", "amax" or "amin".
        include_self: whether what is there counts as one of them.

    Raises:
        RuntimeError: another ``reduce``, or shapes that do not fit. IndexError: an index is out of range.
    """
    at = arguments.expect_tensor(index, "index", "index_reduce")
    d = arguments.one_dim(input, dim, "index_reduce")
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce: reduce: expected prod, mean, amax or amin, got {reduce!r}")
    if not input.ndim and at.numel() == 1:
        one = index_reduce(input.reshape(1), 0, at.reshape(1), source.reshape(1), reduce, include_self=include_self)
        return one.reshape(())
    wanted = (*input.shape[:d], at.numel(), *input.shape[d + 1 :])
    if at.ndim != 1 or not input.ndim or arguments.expect_tensor(source, "source", "index_reduce").shape != wanted:
        raise RuntimeError(
            f"index_reduce: expected an index of one dimension and a source of size {list(wanted)}, got index of size "
            f"{list(at.shape)} and source of size {list(source.shape)} for dimension {d} of size {list(input.shape)}"
        )
    everywhere = at.reshape([-1 if e == d else 1 for e in range(input.ndim)]).expand(wanted)
    return scatter_reduce(input, d, everywhere, source, reduce, include_self=include_self)


@public(only="Tensor")
def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """``index_reduce`` in place."""
    return update(self, index_reduce, dim, index, source, reduce, include_self=include_self)


@public
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with elements of ``source`` at places of the flattened tensor; they add up if ``accumulate``.

    Raises:
        RuntimeError: not as many elements as places. IndexError: a place is out of range.
    """
    at = arguments.expect_tensor(index, "index", "put")
    new = arguments.expect_tensor(source, "source", "put")
    if at.dtype is not dtypes.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {at.dtype}")
    if new.dtype is not input.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {input.dtype} and "
            f"source.dtype = {new.dtype}"
        )
    if at.numel() != new.numel():
        raise RuntimeError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{new.numel()}, index.numel() = {at.numel()}"
        )
    n = input.numel()
    if at.numel() and not -n <= int(at.min()) <= int(at.max()) < n:
        raise IndexError(f"put_(): out of range: an index is outside the {n} elements of the tensor")
    flat, places = reshaped(input, (n,)), at.reshape(-1) % max(n, 1)
    filled = (scatter_add if accumulate else scatter)(flat, 0, places, new.reshape(-1))
    return reshaped(filled, tuple(input.shape))


@public(only="Tensor")
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``put`` in place."""
    return update(self, put, index, source, accumulate)


# ---- functions of Python ------------------------------------------------------------------------------------------


def _mapped(self: Tensor, function: str, callable: Callable[..., Any], others: tuple[Tensor, ...]) -> Tensor:
    if self.requires_grad or any(o.requires_grad for o in others):
        raise RuntimeError(f"Can't call {function}() on Variable that requires grad. Use var.detach().{function}().")
    if self.device.type != "cpu":
        raise TypeError(f"{function} is only implemented on CPU tensors, got one on {self.device}")
    columns = [x.reshape(-1).tolist() for x in (self, *[o.expand(self.shape) for o in others])]
    values = copied([callable(*row) for row in zip(*columns, strict=True)], self.dtype, self.device)
    return self.copy_(reshaped(values, tuple(self.shape)))


@public(only="Tensor")
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by ``callable(element)``. Slow: for the CPU, and for what nothing else does."""
    return _mapped(self, "apply_", callable, ())


@public(only="Tensor")
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by ``callable(element, other)``, with that of a tensor that broadcasts."""
    return _mapped(self, "map_", callable, (arguments.expect_tensor(tensor, "tensor", "map_"),))


@public(only="Tensor")
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by ``callable(element, of_x, of_y)``."""
    others = arguments.expect_tensor(x, "x", "map2_"), arguments.expect_tensor(y, "y", "map2_")
    return _mapped(self, "map2_", callable, others)

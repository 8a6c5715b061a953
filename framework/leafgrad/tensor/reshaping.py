"""Changes of shape in place: ``t_``, ``unsqueeze_``, ``resize_``, …

A tensor that changes its shape becomes a view of a hidden tensor, which takes over its memory and its history. Views
that were made of it before go on from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from leafgrad import modes
from leafgrad.ops import carriers
from leafgrad.ops.node import Leaf, hand_over
from leafgrad.tensor import arguments, shapes
from leafgrad.tensor.creation import empty
from leafgrad.tensor.inplace import check, version
from leafgrad.tensor.methods import attach, method
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.storage import as_strided
from leafgrad.tensor.tensor import Tensor

__all__: list[str] = []  # what it adds are methods


def rearrange(x: Tensor, function: Callable[..., Tensor], *args: Any) -> Tensor:
    """Make ``x`` what ``function(x, *args)`` makes of it, a view; returns x."""
    check(x, function.__name__, fill=True)
    if isinstance(x._node, Leaf):
        raise RuntimeError(
            f"{function.__name__}_: a leaf that requires grad cannot change its shape, which its gradient has; use the "
            "out-of-place operation"
        )
    if carriers.inside(x) is not x:
        if x.requires_grad:
            raise RuntimeError(
                f"{function.__name__}_: a compiled function cannot change the shape of a tensor from outside that "
                "requires grad; use the out-of-place operation"
            )
        modes.TRACER.get().reshaped(x, f"{function.__name__}_", lambda: rearrange(x, function, *args))
        return x
    own = x._view is None
    source = _memory(x) if own else x
    before = x._node
    with modes.enable_grad():
        made: Any = function(source, *args)
    if made._view is not None:
        made._view.hides = own or x._view.hides
        made._view.origin = None if own else x._view.origin
    x._data, x._history, x._view = made._data, made._history, made._view
    hand_over(x, before, x._history)
    version(x).bump()
    if x._view is not None:
        x._view.seen = max(x._view.seen, version(x).seq)
    return x


def _memory(x: Any) -> Any:
    """A tensor that has the memory and the history of ``x``."""
    hidden = carriers.alias(x._data, x._history)
    hidden._writes = version(x)
    return hidden


@method
def t_(self: Tensor) -> Tensor:
    """Become ``self.t()``, in place."""
    return rearrange(self, shapes.t)


@method
def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Become ``self.transpose(dim0, dim1)``, in place."""
    return rearrange(self, shapes.transpose, dim0, dim1)


@method
def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """The same as ``transpose_``."""
    return rearrange(self, shapes.transpose, axis0, axis1)


attach("swapdims_", transpose_)


@method
def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """Become ``self.unsqueeze(dim)``, in place."""
    return rearrange(self, shapes.unsqueeze, dim)


@method
def squeeze_(self: Tensor, dim: arguments.Dim = None) -> Tensor:
    """Become ``self.squeeze(dim)``, in place."""
    return rearrange(self, shapes.squeeze, dim)


@method
def as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Become ``self.as_strided(size, stride, storage_offset)``, in place."""
    return rearrange(self, as_strided, size, stride, storage_offset)


# ---- other memory -------------------------------------------------------------------------------------------------


@method
def resize_(self: Tensor, *size: Any) -> Tensor:
    """Take another shape: the elements that follow in memory, or in new memory a copy of those and arbitrary ones.

    Raises:
        RuntimeError: the tensor requires grad.
    """
    shape = arguments.shape(size, "resize_")
    if any(n < 0 for n in shape):
        raise RuntimeError(f"resize_: Dimension size must be non-negative, got {list(shape)}")
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if shape == self.shape:
        return self
    check(self, "resize", fill=True)
    count, whole = math.prod(shape), self if self._base is None else self._base
    left = whole.storage_offset() + whole.numel() - self.storage_offset()
    following = as_strided(self, (min(count, left),), (1,)).detach()
    if count <= left:
        self.data = reshaped(following, shape)
    else:
        grown = empty(shape, dtype=self.dtype, device=self.device)
        reshaped(grown, (count,))[:left] = following
        self.data = grown
    return self


@method
def resize_as_(self: Tensor, the_template: Tensor) -> Tensor:
    """``resize_`` to the shape of another tensor."""
    return resize_(self, arguments.expect_tensor(the_template, "the_template", "resize_as_").shape)


@method
def set_(self: Tensor, source: Tensor) -> Tensor:
    """Take the memory, shape and strides of ``source``; writes to one are then seen by the other.

    Raises:
        RuntimeError: another dtype, or a leaf that requires grad. TypeError: ``source`` is no tensor.
    """
    other = arguments.expect_tensor(source, "source", "set_")
    if other.dtype is not self.dtype:
        raise RuntimeError(f"set_: expected a source of dtype {self.dtype}, got {other.dtype}; convert it with .to()")
    check(self, "set", fill=True)
    self.data = other.detach()
    return self


@method
def share_memory_(self: Tensor) -> Tensor:
    """Always a RuntimeError: memory is not shared between processes."""
    raise RuntimeError("share_memory_: leafgrad does not share memory between processes; send copies")

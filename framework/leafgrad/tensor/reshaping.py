"""Changes of shape in place: ``t_``, ``unsqueeze_``, ``resize_``, …

A tensor that changes its shape becomes a view of a hidden tensor, which takes over its memory and its history. Views
that were made of it before go on from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.ops import dispatch
from leafgrad.ops.node import Leaf
from leafgrad.tensor import arguments, formats, shapes, view
from leafgrad.tensor.creation import empty
from leafgrad.tensor.inplace import check, version
from leafgrad.tensor.methods import attach
from leafgrad.tensor.public import public
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.storage import TypedStorage, as_strided
from leafgrad.tensor.tensor import Tensor


def rearrange(x: Tensor, function: Callable[..., Tensor], *args: Any) -> Tensor:
    """Make ``x`` what ``function(x, *args)`` makes of it, a view; returns x."""
    check(x, function.__name__, fill=True)
    if isinstance(x._node, Leaf):
        raise RuntimeError(
            f"{function.__name__}_: a leaf that requires grad cannot change its shape, which its gradient has; use the "
            "out-of-place operation"
        )
    if (tracer := modes.tracer()) and tracer.inside(x) is not x:
        if x.requires_grad:
            raise RuntimeError(
                f"{function.__name__}_: a compiled function cannot change the shape of a tensor from outside that "
                "requires grad; use the out-of-place operation"
            )
        tracer.reshaped(x, f"{function.__name__}_", lambda: rearrange(x, function, *args))
        return x
    own, hides = x._view is None, x._view is None or x._view.hides
    source = _memory(x) if own else x
    before = x._node
    with modes.enable_grad():
        made: Any = function(source, *args)
    if made._view is not None:
        made._view.origin = None if own else x._view.origin
        if not own and x._view.whole:
            made._view.whole = True
    x._data, x._history, x._view = made._data, made._history, made._view
    dispatch.hand_over(x, before, x._history)
    face = view.face(version(x))
    current = [t._view for t in (x, face) if t is not None and t._view is not None and t._view.seen >= version(x).seq]
    version(x).bump()
    for each in current:
        each.seen = max(each.seen, version(x).seq)
    return view.alone(x) if hides else x


def _memory(x: Any) -> Any:
    """A tensor that has the memory and the history of ``x``."""
    hidden = dispatch.alias(x._data, x._history)
    hidden._writes, hidden._epoch = version(x), x._epoch
    return hidden


@public(only="Tensor")
def t_(self: Tensor) -> Tensor:
    """Become ``self.t()``, in place."""
    return rearrange(self, shapes.t)


@public(only="Tensor")
def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Become ``self.transpose(dim0, dim1)``, in place."""
    return rearrange(self, shapes.transpose, dim0, dim1)


@public(only="Tensor")
def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """The same as ``transpose_``."""
    return rearrange(self, shapes.transpose, axis0, axis1)


attach("swapdims_", transpose_)


@public(only="Tensor")
def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """Become ``self.unsqueeze(dim)``, in place."""
    return rearrange(self, shapes.unsqueeze, dim)


@public(only="Tensor")
def squeeze_(self: Tensor, dim: arguments.Dim = None) -> Tensor:
    """Become ``self.squeeze(dim)``, in place."""
    return rearrange(self, shapes.squeeze, dim)


@public(only="Tensor")
def as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Become ``self.as_strided(size, stride, storage_offset)``, in place."""
    return rearrange(self, as_strided, size, stride, storage_offset)


# ---- other memory -------------------------------------------------------------------------------------------------


@public(only="Tensor")
def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Take another shape: the elements that follow in memory, or in new memory a copy of those and arbitrary ones.

    Args:
        memory_format: how the elements lie in memory, by default in order; they keep their places there.

    Raises:
        RuntimeError: the tensor requires grad, or there cannot be so many elements.
    """
    shape = arguments.shape(size, "resize_")
    if any(n < 0 for n in shape):
        raise RuntimeError(f"resize_: Dimension size must be non-negative, got {list(shape)}")
    if math.prod(shape) * self.element_size() >= 2**63:
        raise RuntimeError(f"resize_: Storage size calculation overflowed with sizes={list(shape)}")
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if memory_format is not None:
        laid = formats.strides(shape, memory_format, "resize_")
        resize_(self, (math.prod(shape),))
        self.data = as_strided(self, shape, laid).detach()
        return self
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


@public(only="Tensor")
def resize_as_(self: Tensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    """``resize_`` to the shape of another tensor, and with ``preserve_format`` to its memory format too.

    Args:
        the_template: the tensor whose shape it takes.
    """
    template = arguments.expect_tensor(the_template, "the_template", "resize_as_")
    if memory_format is dtypes.preserve_format:
        memory_format = next((f for f in formats.RANKS if template.is_contiguous(f)), dtypes.contiguous_format)
    return resize_(self, template.shape, memory_format=memory_format)


@public(only="Tensor")
def set_(
    self: Tensor, source: Tensor | TypedStorage, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Take the memory, shape and strides of ``source``; writes to one are then seen by the other.

    Args:
        source: a tensor, or what ``storage()`` gave.
        storage_offset, size, stride: which elements of that memory, as for ``as_strided``; by default all of a tensor
            or of a storage, one after the other where only ``size`` is given.

    Raises:
        RuntimeError: another dtype, elements outside the memory, or a leaf that requires grad.
        TypeError: ``source`` is neither.
    """
    if not isinstance(source, TypedStorage):
        arguments.expect_tensor(source, "source", "set_")
    if source.dtype is not self.dtype:
        raise RuntimeError(f"set_: expected a source of dtype {self.dtype}, got {source.dtype}; convert it with .to()")
    check(self, "set", fill=True)
    if isinstance(source, Tensor) and size is None:
        self.data = source.detach()
        return self
    memory = source.storage() if isinstance(source, Tensor) else source
    shape = (memory.size() - storage_offset,) if size is None else arguments.shape((size,), "set_", "size")
    steps = [math.prod(shape[d + 1 :]) for d in range(len(shape))] if stride is None else stride
    self.data = memory.strided(shape, steps, storage_offset).detach()
    return self


@public(only="Tensor")
def share_memory_(self: Tensor) -> Tensor:
    """Always a RuntimeError: memory is not shared between processes."""
    raise RuntimeError("share_memory_: leafgrad does not share memory between processes; send copies")

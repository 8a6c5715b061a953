"""Deep copies of tensors, which share memory with each other where the tensors themselves do."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from leafgrad import modes
from leafgrad.ops import dispatch
from leafgrad.ops.convert import clone
from leafgrad.ops.node import SymbolBase, Version


class DeepCopies:
    """What ``copy.deepcopy`` asks of a tensor."""

    __slots__ = ()

    def __deepcopy__(self: Any, memo: dict[Any, Any]) -> Any:
        if not self.is_leaf:
            message = "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol; "
            raise RuntimeError(message + "detach() it first")
        with dispatch.on_device_of(self._data):
            out = self._twin(memo)
        out.__class__ = type(self)
        memo[id(self)] = out
        out.__dict__.update(deepcopy(self.__dict__, memo))
        leaf = dispatch.inside(self)._leaf
        if leaf is not None and (gradient := dispatch.grad_of(leaf)) is not None:
            out.grad = gradient.__deepcopy__(memo)
        return out._set_grad(self.requires_grad)

    def _twin(self: Any, memo: dict[Any, Any]) -> Any:
        """A copy without history, in the copy of all the memory that those of one ``memo`` share."""
        if modes.tracer() and not getattr(self._data, "level", 0):
            return traced_twin(dispatch.inside(self), memo)
        if isinstance(self._data, SymbolBase):  # of a batch, or of the device meta, which has no memory
            return clone(self.detach())
        return dispatch.alias(dispatch.twin(self._data, memo))


def traced_twin(x: Any, memo: dict[Any, Any]) -> Any:
    """The same in a trace, where memory is that of the base, and views know how they lie in it."""
    base, steps = (x, ()) if x._view is None else (x._view.base, x._view.steps)
    if x.dtype is not base.dtype:  # not copied as a whole, as outside
        return clone(x.detach())
    key = id(base), "memory"
    if key not in memo:
        memo[key] = clone(base.detach()), base  # which keeps its id
    out = memo[key][0]
    for step, params in steps:
        out = step(out, **params)
    out = out.detach()
    out._writes = Version.of_data()  # each has its own
    return out

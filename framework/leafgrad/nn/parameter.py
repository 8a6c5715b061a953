"""Parameter: a tensor that a module trains."""

from __future__ import annotations

from typing import Any

from leafgrad.tensor.tensor import Tensor

__all__ = ["Parameter"]


class Parameter(Tensor):
    """A leaf tensor that registers itself when it is assigned to an attribute of a Module.

    It shares memory with ``data``.

    Args:
        data: a tensor, of any shape and dtype.
        requires_grad: whether operations on it are recorded; needs a floating dtype.

    Raises:
        TypeError: ``data`` is not a Tensor.
        RuntimeError: ``requires_grad`` with a dtype that is not a floating one.
    """

    __slots__ = ()

    def __new__(cls, data: Tensor, requires_grad: bool = True) -> Parameter:
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Parameter: data: expected a Tensor, got {type(data).__name__}; wrap it with leafgrad.tensor(...)"
            )
        shared = data.detach()
        out = object.__new__(cls)
        out._data = shared._data
        out._node = out._leaf = None
        out._version = shared._version
        out.requires_grad_(requires_grad)
        return out

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.detach(), self.requires_grad)

"""What ``torch.autograd`` has beside leafgrad's."""

from __future__ import annotations

from typing import Any

from leafgrad.tensor.tensor import Tensor

__all__ = ["Variable"]


class _Variables(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_Variables):
    """``Variable(data)`` shares memory with ``data``; every tensor is a Variable, since PyTorch 0.4."""

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Any:
        return data.detach().requires_grad_(requires_grad)

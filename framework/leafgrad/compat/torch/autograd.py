"""What ``torch.autograd`` has beside leafgrad's."""

from __future__ import annotations

from leafgrad.tensor.tensor import Tensor

__all__ = ["Variable"]


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """A tensor that shares memory with ``data``; a tensor is one by itself, since PyTorch 0.4."""
    return data.detach().requires_grad_(requires_grad)

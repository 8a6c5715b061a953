"""Dropout layers."""

from __future__ import annotations

from leafgrad.nn import functional as F
from leafgrad.nn.module import Module
from leafgrad.tensor.tensor import Tensor

__all__ = ["Dropout"]


class Dropout(Module):
    """In training mode, zeroes each element with probability ``p`` and scales the others by 1 / (1 - p).

    Srivastava et al. (2014).

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """(...) -> (...)"""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"

"""A table of trained vectors."""

from __future__ import annotations

from typing import Any, Self

from leafgrad import modes
from leafgrad.nn import functional as F, init
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.tensor.creation import empty
from leafgrad.tensor.tensor import Tensor

__all__ = ["Embedding"]


class Embedding(Module):
    """Looks up one vector for each integer. (...) int64 -> (..., embedding_dim)

    The vectors start standard normal.

    Args:
        num_embeddings: how many vectors there are.
        embedding_dim: their size.
        padding_idx: a vector that starts at zero and gets no gradient; negative counts from the end.

    Attributes:
        weight: (num_embeddings, embedding_dim).
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"padding_idx: expected an index within num_embeddings={num_embeddings}, got {padding_idx}"
                )
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.weight = Parameter(empty(num_embeddings, embedding_dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the vectors anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with modes.no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Self:
        """An Embedding that shares memory with the table ``embeddings``. ``freeze`` keeps it from being trained."""
        if embeddings.ndim != 2:
            raise ValueError(f"embeddings: expected 2 dimensions (vectors, size), got {embeddings.ndim}")
        rows, size = embeddings.shape
        made = cls(rows, size, padding_idx, device=embeddings.device, dtype=embeddings.dtype)
        made.weight = Parameter(embeddings, requires_grad=not freeze)
        return made

    def forward(self, input: Tensor) -> Tensor:
        """(...) int64 -> (..., embedding_dim)"""
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"

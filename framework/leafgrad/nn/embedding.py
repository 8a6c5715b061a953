"""Tables of trained vectors."""

from __future__ import annotations

from typing import Any, Self

from leafgrad import modes
from leafgrad.nn import functional as F, init
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.creation import empty
from leafgrad.tensor.tensor import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


class EmbeddingTable(Module):
    """Base: a table of ``num_embeddings`` vectors of size ``embedding_dim``, which start standard normal."""

    weight: Parameter

    def _make(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        sparse: bool,
    ) -> None:
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"padding_idx: expected an index within num_embeddings={num_embeddings}, got {padding_idx}"
                )
            padding_idx %= num_embeddings
        if sparse:
            raise NotImplementedError(
                f"{type(self).__name__}: sparse=True: there are no sparse tensors; leave it False, gradients of tables "
                "are dense"
            )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse

    def _fill(self, weight: Tensor | None, freeze: bool, device: Any, dtype: Any) -> None:
        size = (self.num_embeddings, self.embedding_dim)
        if weight is None:
            self.weight = Parameter(empty(*size, device=device, dtype=dtype), requires_grad=not freeze)
            self.reset_parameters()
        elif tuple(weight.shape) != size:
            raise ValueError(
                f"Shape of weight does not match num_embeddings and embedding_dim: expected {size}, got "
                f"{tuple(weight.shape)}"
            )
        else:
            self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw the vectors anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with modes.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _described(self, padding: bool = False) -> str:
        """The sizes, and what is not as usual."""
        usual = {"max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False}
        usual = {"padding_idx": None, **usual} if padding else usual
        others = [f"{name}={getattr(self, name)}" for name, default in usual.items() if getattr(self, name) != default]
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *others])


def _size(embeddings: Tensor) -> tuple[int, int]:
    if expect_tensor(embeddings, "embeddings", "from_pretrained").ndim != 2:
        raise ValueError(f"embeddings: expected 2 dimensions (vectors, size), got {embeddings.ndim}")
    rows, size = embeddings.shape
    return rows, size


class Embedding(EmbeddingTable):
    """Looks up one vector for each integer. (...) integer -> (..., embedding_dim)

    The vectors start standard normal.

    Args:
        num_embeddings: how many vectors there are.
        embedding_dim: their size.
        padding_idx: a vector that starts at zero and gets no gradient; negative counts from the end.
        max_norm: vectors of a greater norm are scaled down to it when they are looked up.
        norm_type: p of that p-norm.
        scale_grad_by_freq: divide the gradient of a vector by how often the input names it.
        sparse: not available.

    Attributes:
        weight: (num_embeddings, embedding_dim).

    Raises:
        ValueError: ``padding_idx`` is out of range. NotImplementedError: ``sparse``.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        self._make(num_embeddings, embedding_dim, *options)
        self._fill(_weight, _freeze, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """An Embedding that shares memory with the table ``embeddings``. ``freeze`` keeps it from being trained."""
        rows, size = _size(embeddings)
        return cls(rows, size, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)

    def forward(self, input: Tensor) -> Tensor:
        """(...) integer -> (..., embedding_dim)"""
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)

    def extra_repr(self) -> str:
        return self._described(padding=True)


class EmbeddingBag(EmbeddingTable):
    """Looks up the vectors of a bag of integers, and gives their sum, mean or maximum. -> (bags, embedding_dim)

    Args:
        num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse: as in ``Embedding``.
        mode: "sum", "mean" or "max".
        include_last_offset: ``offsets`` end with the length of the input.
        padding_idx: a vector that counts for nothing.

    Attributes:
        weight: (num_embeddings, embedding_dim).

    Raises:
        ValueError: ``padding_idx`` is out of range. NotImplementedError: ``sparse``.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        self._make(num_embeddings, embedding_dim, *options)
        self.mode = mode
        self.include_last_offset = include_last_offset
        self._fill(_weight, False, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """An EmbeddingBag that shares memory with the table ``embeddings``. ``freeze`` keeps it from being trained."""
        rows, size = _size(embeddings)
        options = include_last_offset, padding_idx
        made = cls(rows, size, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, *options)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """(bags, n) integer, or (n,) and the offsets of bags -> (bags, embedding_dim)"""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            False,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self._described()}, mode={self.mode!r}{padding}"

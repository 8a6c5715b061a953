"""Lewandowski, Kurowicka and Joe's distribution of correlation matrices, as their Cholesky factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad import modes
from leafgrad.distributions.constraints import corr_cholesky, positive
from leafgrad.distributions.distribution import Distribution, parameters
from leafgrad.distributions.gamma import Beta
from leafgrad.dtypes import finfo
from leafgrad.ops.gamma import log_gamma
from leafgrad.tensor.creation import arange
from leafgrad.tensor.random import randn
from leafgrad.tensor.tensor import Tensor

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L of correlation matrices with a density in proportion to ``det(L L^T) ** (concentration - 1)``.

    "Generating random correlation matrices based on vines and extended onion method" (2009).

    Args:
        dim: how many rows, at least 2.
        concentration: positive; 1 for all correlation matrices alike.
    """

    arg_constraints: ClassVar[Any] = {"concentration": positive}
    support = corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = parameters(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return self._expanded(
            batch_shape, _instance, dim=self.dim, concentration=self.concentration.expand(batch_shape)
        )

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """By the onion method: each row is a direction, and by how much it leaves the diagonal."""
        with modes.no_grad():
            like: dict[str, Any] = {"dtype": self.concentration.dtype, "device": self.concentration.device}
            half = 0.5 * arange(self.dim - 1, **like)
            marginal = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 2)
            part = Beta(half + 0.5, marginal - half, validate_args=False).sample(sample_shape)
            part = part.clamp(max=1 - finfo(part.dtype).eps)
            drawn = randn(self._extended_shape(sample_shape), **like).tril(-1)[..., 1:, :]
            direction = drawn / drawn.norm(dim=-1, keepdim=True)
            first = drawn.new_zeros((*drawn.shape[:-2], 1, self.dim))
            out = first.new_zeros((*first.shape[:-2], self.dim, self.dim))
            out[..., 1:, :] = part.sqrt().unsqueeze(-1) * direction
            left = (1 - (out * out).sum(-1)).clamp(min=finfo(part.dtype).tiny)
            return out + left.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, eta = self.dim, self.concentration
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        order = arange(2, n + 1, dtype=value.dtype, device=value.device)
        powers = 2 * (eta - 1).unsqueeze(-1) + n - order
        return (powers * diagonal.log()).sum(-1) - self._log_norm()

    def _log_norm(self) -> Tensor:
        n, eta = self.dim, self.concentration
        alpha = eta + 0.5 * (n - 1)
        steps = arange(n - 1, dtype=eta.dtype, device=eta.device) / 2
        multi = log_gamma((alpha - 0.5).unsqueeze(-1) - steps).sum(-1)
        multi = multi + (n - 1) * (n - 2) / 4 * math.log(math.pi)
        return 0.5 * (n - 1) * math.log(math.pi) + multi - log_gamma(alpha) * (n - 1)

    def __repr__(self) -> str:
        return f"LKJCholesky(dim={self.dim}, {super().__repr__()[len('LKJCholesky(') :]}"

"""The normal distribution of vectors whose covariance is a diagonal and something of low rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad.distributions.constraints import IndependentConstraint, positive_vector, real, real_vector
from leafgrad.distributions.distribution import Distribution, lazy_property
from leafgrad.distributions.multivariate_normal import mahalanobis
from leafgrad.tensor.creation import eye
from leafgrad.tensor.decompositions import cholesky
from leafgrad.tensor.linalg import solve_triangular
from leafgrad.tensor.random import randn
from leafgrad.tensor.shapes import broadcast_shapes
from leafgrad.tensor.tensor import Tensor

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance W W^T + D; only matrices of the rank of W are factored.

    Args:
        loc: mean, (..., n).
        cov_factor: W, (..., n, rank).
        cov_diag: the diagonal of D, positive, (..., n).
    """

    arg_constraints: ClassVar[Any] = {
        "loc": real_vector,
        "cov_factor": IndependentConstraint(real, 2),
        "cov_diag": positive_vector,
    }
    support = real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.ndim < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.shape[-1:] != (n,):
            raise ValueError(f"cov_diag must be a batch of vectors with shape ({n},)")
        try:
            batch = broadcast_shapes(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1]))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(*batch, n)
        self.cov_factor, self.cov_diag = cov_factor.expand(*batch, *cov_factor.shape[-2:]), cov_diag.expand(*batch, n)
        super().__init__(batch, (n,), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        n = self._event_shape[0]
        factor = self.cov_factor.expand(*batch_shape, *self.cov_factor.shape[-2:])
        loc, diagonal = self.loc.expand(*batch_shape, n), self.cov_diag.expand(*batch_shape, n)
        return self._expanded(batch_shape, _instance, loc=loc, cov_factor=factor, cov_diag=diagonal)

    @lazy_property
    def _capacitance_tril(self) -> Tensor:
        """The factor of I + W^T D^-1 W, whose determinant times that of D is that of the covariance."""
        return capacitance_tril(self.cov_factor, self.cov_diag)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor of the covariance."""
        return cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by Woodbury's identity."""
        scaled = self.cov_factor / self.cov_diag.unsqueeze(-1)
        half = solve_triangular(self._capacitance_tril, scaled.mT, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - half.mT @ half

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        options: dict[str, Any] = {"dtype": self.loc.dtype, "device": self.loc.device}
        few = randn((*shape[:-1], self.cov_factor.shape[-1]), **options)
        drawn = (self.cov_factor @ few.unsqueeze(-1)).squeeze(-1)
        return self.loc + drawn + self.cov_diag.sqrt() * randn(shape, **options)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        distance = low_rank_mahalanobis(self.cov_factor, self.cov_diag, value - self.loc, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        return self._half_log_det() + 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi))

    def _half_log_det(self) -> Tensor:
        """Half the logarithm of the determinant of the covariance. -> batch_shape"""
        factor = self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return factor + 0.5 * self.cov_diag.log().sum(-1)


def capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The factor of I + W^T D^-1 W. (..., n, m), (..., n) -> (..., m, m)"""
    inner = factor.mT @ (factor / diagonal.unsqueeze(-1))
    return cholesky(inner + eye(factor.shape[-1], dtype=factor.dtype, device=factor.device))


def low_rank_mahalanobis(factor: Tensor, diagonal: Tensor, x: Tensor, capacitance: Tensor) -> Tensor:
    """``x^T (W W^T + D)^-1 x``, by Woodbury's identity. (..., n, m), (..., n), (..., n), (..., m, m) -> (...)"""
    scaled = x / diagonal
    inner = (factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
    return (x * scaled).sum(-1) - mahalanobis(capacitance, inner)

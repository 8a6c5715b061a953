"""The Wishart distribution of covariance matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad.distributions.constraints import dependent, greater_than, lower_cholesky, positive_definite
from leafgrad.distributions.distribution import hold, lazy_property
from leafgrad.distributions.exp_family import ExponentialFamily
from leafgrad.distributions.gamma import Chi2
from leafgrad.ops.gamma import log_gamma, psi
from leafgrad.tensor.creation import arange, eye
from leafgrad.tensor.data import tensor
from leafgrad.tensor.decompositions import cholesky
from leafgrad.tensor.linalg import solve_triangular
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.random import randn
from leafgrad.tensor.shapes import broadcast_shapes
from leafgrad.tensor.tensor import Tensor

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """Sums of x x^T over so many normal vectors x, of mean 0.

    Args:
        df: how many, above n - 1; also between whole numbers. (...)
        covariance_matrix: of the vectors, (..., n, n).
        precision_matrix: its inverse.
        scale_tril: a lower triangular L with covariance L L^T; exactly one of the three is given.
    """

    arg_constraints: ClassVar[Any] = {
        "df": dependent,
        "covariance_matrix": positive_definite,
        "precision_matrix": positive_definite,
        "scale_tril": lower_cholesky,
    }
    support = positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        found = [(name, matrix) for name, matrix in given.items() if matrix is not None]
        if len(found) != 1:
            raise ValueError(
                "Expected exactly one of covariance_matrix or precision_matrix or scale_tril to be specified."
            )
        name, matrix = found[0]
        if matrix.ndim < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        n = matrix.shape[-1]
        freedom = df if isinstance(df, Tensor) else tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(freedom.shape))
        self.df = freedom.expand(batch)
        hold(self.df > n - 1, lambda: f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        vars(self)[name] = matrix.expand(*batch, n, n)
        self._constraint = {**self.arg_constraints, "df": greater_than(n - 1)}
        super().__init__(batch, (n, n), validate_args)

    def _constraints(self) -> Any:
        return self._constraint

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor L."""
        if "covariance_matrix" in self._given:
            return cholesky(self.covariance_matrix)
        flipped = cholesky(self.precision_matrix.flip((-2, -1))).flip((-2, -1))
        return solve_triangular(flipped.mT, self._eye(), upper=False)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors."""
        return self.scale_tril @ self.scale_tril.mT

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        inverse = solve_triangular(self.scale_tril, self._eye(), upper=False)
        return inverse.mT @ inverse

    def _eye(self) -> Tensor:
        return eye(self._event_shape[0], dtype=self.df.dtype, device=self.df.device)

    @property
    def _n(self) -> int:
        return self._event_shape[0]

    @property
    def _df(self) -> Tensor:
        """As matrices."""
        return self.df.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        return self._df * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """nan where ``df`` is not above n + 1."""
        factor = self._df - self._n - 1
        return where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        cov = self.covariance_matrix
        diagonal = cov.diagonal(dim1=-2, dim2=-1)
        return self._df * (cov**2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        tril = self.scale_tril.expand(*batch_shape, self._n, self._n)
        return self._expanded(
            batch_shape, _instance, df=self.df.expand(batch_shape), scale_tril=tril, _constraint=self._constraint
        )

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """By Bartlett's decomposition: L A A^T L^T of a triangular A of normal and chi numbers."""
        freedom = self.df.unsqueeze(-1) - arange(self._n, dtype=self.df.dtype, device=self.df.device)
        diagonal = Chi2(freedom, validate_args=False).rsample(sample_shape).sqrt()
        drawn = randn(self._extended_shape(sample_shape), dtype=self.df.dtype, device=self.df.device).tril(-1)
        factor = self.scale_tril @ (drawn + diagonal.diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, df = self._n, self.df
        half = cholesky(value)
        inner = solve_triangular(self.scale_tril, half, upper=False)
        spread = (inner * inner).sum((-2, -1))  # the trace of the precision times the value
        return -self._log_norm() + (df - n - 1) * _log_diagonal(half) - 0.5 * spread

    def _log_norm(self) -> Tensor:
        n, df = self._n, self.df
        return df * (0.5 * n * math.log(2.0) + _log_diagonal(self.scale_tril)) + log_multigamma(df / 2, n)

    def entropy(self) -> Tensor:
        n, df = self._n, self.df
        return self._log_norm() - 0.5 * (df - n - 1) * self._mean_log_det() + 0.5 * df * n

    def _mean_log_det(self) -> Tensor:
        """The mean of the logarithm of the determinant."""
        n = self._n
        steps = arange(n, dtype=self.df.dtype, device=self.df.device) / 2
        of_gamma = psi(self.df.unsqueeze(-1) / 2 - steps)
        return of_gamma.sum(-1) + n * math.log(2.0) + 2 * _log_diagonal(self.scale_tril)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._n - 1) / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        precision, power = natural_params
        n, half = precision.shape[-1], power + (precision.shape[-1] + 1) / 2
        return half * (n * math.log(2.0) - 2 * _log_diagonal(cholesky(-2 * precision))) + log_multigamma(half, n)


def _log_diagonal(tril: Tensor) -> Tensor:
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def log_multigamma(x: Tensor, n: int) -> Tensor:
    """The logarithm of the multivariate gamma function of order n. (...) -> (...)"""
    steps = arange(n, dtype=x.dtype, device=x.device) / 2
    parts = log_gamma(x.unsqueeze(-1) - steps)
    return parts.sum(-1) + n * (n - 1) / 4 * math.log(math.pi)

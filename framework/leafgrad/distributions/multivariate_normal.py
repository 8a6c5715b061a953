"""The normal distribution of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad.distributions.constraints import lower_cholesky, positive_definite, real_vector
from leafgrad.distributions.distribution import Distribution, lazy_property
from leafgrad.tensor.creation import eye
from leafgrad.tensor.decompositions import cholesky
from leafgrad.tensor.linalg import solve_triangular
from leafgrad.tensor.random import randn
from leafgrad.tensor.shapes import broadcast_shapes
from leafgrad.tensor.tensor import Tensor

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """Normal vectors. Whichever matrix is given, the work is done with its Cholesky factor.

    Args:
        loc: mean, (..., n).
        covariance_matrix: covariance, (..., n, n).
        precision_matrix: its inverse.
        scale_tril: a lower triangular L with covariance L L^T; exactly one of the three is given.
    """

    arg_constraints: ClassVar[Any] = {
        "loc": real_vector,
        "covariance_matrix": positive_definite,
        "precision_matrix": positive_definite,
        "scale_tril": lower_cholesky,
    }
    support = real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        found = [(name, matrix) for name, matrix in given.items() if matrix is not None]
        if len(found) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = found[0]
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.loc = loc.expand(*batch_shape, loc.shape[-1])
        vars(self)[name] = matrix.expand(*batch_shape, *matrix.shape[-2:])
        super().__init__(batch_shape, loc.shape[-1:], validate_args)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor L."""
        if "covariance_matrix" in self._given:
            return cholesky(self.covariance_matrix)
        # The factor of the flipped precision, flipped, is the precision's upper factor: the inverse of L, transposed.
        flipped = cholesky(self.precision_matrix.flip((-2, -1))).flip((-2, -1))
        return solve_triangular(flipped.transpose(-2, -1), self._eye(), upper=False)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.scale_tril @ self.scale_tril.transpose(-2, -1)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        inverse = solve_triangular(self.scale_tril, self._eye(), upper=False)
        return inverse.transpose(-2, -1) @ inverse

    def _eye(self) -> Tensor:
        return eye(self._event_shape[0], dtype=self.loc.dtype, device=self.loc.device)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return (self.scale_tril**2).sum(-1)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        n = self._event_shape[0]
        scale_tril = self.scale_tril.expand(*batch_shape, n, n)
        return self._expanded(batch_shape, _instance, loc=self.loc.expand(*batch_shape, n), scale_tril=scale_tril)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        distance = mahalanobis(self.scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        return self._half_log_det() + 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi))

    def _half_log_det(self) -> Tensor:
        """Half the logarithm of the determinant of the covariance. -> batch_shape"""
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def mahalanobis(scale_tril: Tensor, x: Tensor) -> Tensor:
    """``|L^-1 x|^2``, for all samples of an L at once. (*batch, n, n), (*samples, *batch, n) -> (*samples, *batch)"""
    samples = x.shape[: max(x.ndim - scale_tril.ndim + 1, 0)]
    columns = x.reshape(math.prod(samples), *x.shape[len(samples) :]).movedim(0, -1)
    solved = solve_triangular(scale_tril, columns, upper=False)
    found = (solved * solved).sum(-2).movedim(-1, 0)
    return found.reshape(*samples, *found.shape[1:])

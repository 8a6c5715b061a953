"""Batches taken as events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad.distributions.constraints import Constraint, IndependentConstraint
from leafgrad.distributions.distribution import Distribution
from leafgrad.tensor.tensor import Tensor

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last batch dimensions belong to the event: log probabilities are summed over them.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: how many dimensions.
    """

    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        batch = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        if batch < 0:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.has_rsample = base_distribution.has_rsample
        self.has_enumerate_support = base_distribution.has_enumerate_support and reinterpreted_batch_ndims == 0
        super().__init__(shape[:batch], shape[batch:], validate_args)

    @property
    def support(self) -> Constraint:
        """That of the base, for each element of an event."""
        base: Constraint = self.base_dist.support
        return IndependentConstraint(base, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else base

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        kept = self._event_shape[: self.reinterpreted_batch_ndims]
        return self._expanded(
            batch_shape,
            _instance,
            base_dist=self.base_dist.expand((*batch_shape, *kept)),
            reinterpreted_batch_ndims=self.reinterpreted_batch_ndims,
            has_rsample=self.has_rsample,
            has_enumerate_support=self.has_enumerate_support,
        )

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


def sum_last(x: Tensor, dims: int) -> Tensor:
    """The sum over the last ``dims`` dimensions."""
    return x.sum(tuple(range(-dims, 0))) if dims else x

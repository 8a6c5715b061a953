"""Distributions with exponential tails: the exponential one and Laplace's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad.distributions.constraints import nonnegative, positive, real
from leafgrad.distributions.distribution import Distribution, parameters
from leafgrad.distributions.exp_family import ExponentialFamily
from leafgrad.dtypes import finfo
from leafgrad.tensor.creation import empty
from leafgrad.tensor.random import rand
from leafgrad.tensor.tensor import Tensor

__all__ = ["Exponential", "Laplace"]


class Exponential(ExponentialFamily):
    """Waiting times between events that come at a constant rate.

    Args:
        rate: events in a unit of time, positive.
    """

    arg_constraints: ClassVar[Any] = {"rate": positive}
    support = nonnegative
    has_rsample = True

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = parameters(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return self.rate * 0

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate**-2

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return self._expanded(batch_shape, _instance, rate=self.rate.expand(batch_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return empty(shape, dtype=self.rate.dtype, device=self.rate.device).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (rate,) = natural_params
        return -(-rate).log()


class Laplace(Distribution):
    """Two exponential distributions back to back.

    Args:
        loc: mean.
        scale: mean distance from it, positive.
    """

    arg_constraints: ClassVar[Any] = {"loc": real, "scale": positive}
    support = real
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = parameters(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale * math.sqrt(2)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * 2

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return self._expanded(
            batch_shape, _instance, loc=self.loc.expand(batch_shape), scale=self.scale.expand(batch_shape)
        )

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(drawn.clamp(min=finfo(drawn.dtype).eps / 2))  # at 0 it is infinite

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(self.scale * 2).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        side = value - 0.5
        return self.loc - self.scale * side.sign() * (side.abs() * -2).log1p()

    def entropy(self) -> Tensor:
        return (self.scale * 2).log() + 1

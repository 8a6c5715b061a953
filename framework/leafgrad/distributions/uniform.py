"""The uniform distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from leafgrad.distributions.constraints import Constraint, GreaterThan, Interval, LessThan, dependent
from leafgrad.distributions.distribution import Distribution, parameters
from leafgrad.tensor.random import rand
from leafgrad.tensor.tensor import Tensor

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Numbers uniform in [low, high).

    Args:
        low: lower end.
        high: upper end, above it.
    """

    arg_constraints: ClassVar[Any] = {"low": dependent, "high": dependent}
    has_rsample = True

    def __init__(self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None) -> None:
        self.low, self.high = parameters(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    def _constraints(self) -> Mapping[str, Constraint]:
        return {"low": LessThan(self.high), "high": GreaterThan(self.low)}

    @property
    def support(self) -> Constraint:
        """From ``low`` to ``high``."""
        return Interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        """nan: no number is the most probable."""
        return self.high * math.nan

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return self._expanded(
            batch_shape, _instance, low=self.low.expand(batch_shape), high=self.high.expand(batch_shape)
        )

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = ((value >= self.low) & (value < self.high)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()

"""Normal distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad.distributions.constraints import positive, real
from leafgrad.distributions.distribution import parameters
from leafgrad.distributions.exp_family import ExponentialFamily
from leafgrad.ops.inverse_erf import inverse_erf
from leafgrad.ops.special import erf
from leafgrad.tensor.random import randn
from leafgrad.tensor.tensor import Tensor

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """Normal numbers.

    Args:
        loc: mean.
        scale: standard deviation, positive.
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
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return self._expanded(
            batch_shape, _instance, loc=self.loc.expand(batch_shape), scale=self.scale.expand(batch_shape)
        )

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return z * z * -0.5 - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (erf((value - self.loc) / (self.scale * math.sqrt(2))) + 1) * 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * inverse_erf(value * 2 - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (0.5 + 0.5 * math.log(2 * math.pi))

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale**2, -0.5 / self.scale**2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        first, second = natural_params
        return -0.25 * first**2 / second + 0.5 * (-math.pi / second).log()

"""Transforms of numbers, element by element, and the logarithms of their slopes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leafgrad.distributions.constraints import (
    IndependentConstraint,
    interval,
    nonnegative,
    positive,
    real,
    unit_interval,
)
from leafgrad.distributions.independent import sum_last
from leafgrad.distributions.transform import Transform
from leafgrad.dtypes import finfo
from leafgrad.ops.activation import logsigmoid, softplus
from leafgrad.tensor.shapes import broadcast_shapes
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "AbsTransform", "AffineTransform", "CumulativeDistributionTransform", "ExpTransform", "PowerTransform",
    "SigmoidTransform", "SoftplusTransform", "TanhTransform",
]  # fmt: skip


class Ascending(Transform):
    """A bijection of numbers that ascends."""

    bijective: Any = True
    sign: Any = 1


class ExpTransform(Ascending):
    """exp(x)"""

    codomain = positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Ascending):
    """x ** exponent, of positive numbers.

    Args:
        exponent: a number or a tensor, not 0.
    """

    domain = codomain = positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        return self.exponent.sign() if isinstance(self.exponent, Tensor) else math.copysign(1, self.exponent)

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        inverse: Tensor = y ** (1 / self.exponent)
        return inverse

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(broadcast_shapes(shape, getattr(self.exponent, "shape", ())))

    inverse_shape = forward_shape


def inside(y: Tensor) -> Tensor:
    """Numbers in [0, 1], moved off its ends to the next of their dtype, where logarithms are finite."""
    return y.clamp(finfo(y.dtype).tiny, 1 - finfo(y.dtype).eps)


class SigmoidTransform(Ascending):
    """1 / (1 + exp(-x)), which is never 0 or 1 here."""

    codomain = unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return inside(x.sigmoid())

    def _inverse(self, y: Tensor) -> Tensor:
        y = inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return logsigmoid(x) + logsigmoid(-x)


class SoftplusTransform(Ascending):
    """log(1 + exp(x))"""

    codomain = positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x, beta=1.0, threshold=20.0)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return logsigmoid(x)


class TanhTransform(Ascending):
    """tanh(x)"""

    codomain = interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (math.log(2.0) - x - softplus(x * -2, beta=1.0, threshold=20.0)) * 2.0


class AffineTransform(Ascending):
    """loc + scale * x

    Args:
        loc, scale: numbers, or tensors that broadcast.
        event_dim: how many of the last dimensions are one event.
    """

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:
        return IndependentConstraint(real, self._event_dim) if self._event_dim else real

    codomain = domain

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else math.copysign(1, self.scale)

    def _call(self, x: Tensor) -> Tensor:
        result: Tensor = self.loc + self.scale * x
        return result

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        known = isinstance(self.scale, Tensor)
        slope = self.scale.abs().log() if known else x.new_full((), math.log(abs(self.scale)))
        return sum_last(slope.expand(x.shape), self._event_dim)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ())))

    inverse_shape = forward_shape


class AbsTransform(Transform):
    """|x|; its inverse gives the positive one of two."""

    codomain = nonnegative

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class CumulativeDistributionTransform(Ascending):
    """The distribution function.

    Args:
        distribution: of single numbers, with ``cdf`` and ``icdf``.
    """

    codomain = unit_interval

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        result: Tensor = self.distribution.cdf(x)
        return result

    def _inverse(self, y: Tensor) -> Tensor:
        result: Tensor = self.distribution.icdf(y)
        return result

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slope: Tensor = self.distribution.log_prob(x)
        return slope

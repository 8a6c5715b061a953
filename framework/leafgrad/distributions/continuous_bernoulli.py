"""The continuous Bernoulli distribution: of pixels and other shares that a Bernoulli likelihood takes for coins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from leafgrad.distributions.bernoulli import Odds, check_odds, clamp_probs
from leafgrad.distributions.constraints import real, unit_interval
from leafgrad.distributions.distribution import Parameter, lazy_property
from leafgrad.distributions.exp_family import ExponentialFamily
from leafgrad.distributions.limits import expm1_over, log1p_over
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.random import rand
from leafgrad.tensor.tensor import Tensor

__all__ = ["ContinuousBernoulli"]

BERNOULLI = (1/6, -1/30, 1/42, -1/30, 5/66, -691/2730, 7/6, -3617/510, 43867/798, -174611/330)  # fmt: skip
# Of log(sinh(y) / y), by y**(2 k) (DLMF 4.19.7): half the logits are y, of which all moments are derivatives.
TERMS = [(k, 4**k * b / (2 * k * math.factorial(2 * k))) for k, b in enumerate(BERNOULLI, 1)]


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Numbers x in [0, 1] with a density in proportion to p^x (1 - p)^(1 - x), which is exp(logits x).

    G. Loaiza-Ganem and J. P. Cunningham, "The continuous Bernoulli" (2019).

    Args:
        probs: p, in (0, 1).
        logits: the logarithm of its odds; one of the two is given.
        lims: between these p PyTorch uses series of two terms; here moments and density are exact at all p.
    """

    arg_constraints: ClassVar[Any] = {"probs": unit_interval, "logits": real}
    support = unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Parameter = None,
        logits: Parameter = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        check_odds(probs, logits)
        self._lims = lims
        self._set(validate_args, **({"logits": logits} if probs is None else {"probs": probs}))
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """p, off 0 and 1, where the formulas have poles."""
        return clamp_probs(self.logits.sigmoid())

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._lims = self._lims
        return new

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithm of the odds, which near 1/2 is as accurate as p - 1/2."""
        p = self.probs
        odd = 2 * p - 1
        return where(odd < 0, -(-odd / p).log1p(), (odd / (1 - p)).log1p())

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Whether the odds are near 1, their logarithm there, and its absolute value elsewhere."""
        near = self.logits.abs() < 1
        return near, where(near, self.logits, 0.0), where(near, 1.0, self.logits.abs())

    @property
    def mean(self) -> Tensor:
        near, logits, size = self._parts()
        series = 0.5 + 0.25 * logits * _even(logits, [2 * k * c for k, c in TERMS])
        low = 1 / size - _odds_of_end(size)
        return where(near, series, where(self.logits < 0, low, 1 - low))

    @property
    def variance(self) -> Tensor:
        near, logits, size = self._parts()
        end = _odds_of_end(size)
        return where(
            near, 0.25 * _even(logits, [2 * k * (2 * k - 1) * c for k, c in TERMS]), size**-2 - end * (1 + end)
        )

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        like = self.logits
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        near, logits, size = self._parts()
        series = logits * (value - 0.5) - _log_sinhc(logits)
        fall = where(self.logits < 0, value, 1 - value)
        return where(near, series, size.log() - (-(-size).exp()).log1p() - size * fall)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        near, logits, size = self._parts()
        high = where(near | (self.logits < 0), 0.0, size)
        far = (-high * (1 - value)).exp() * (-size * value).expm1() / (-size).expm1()
        inside = where(near, expm1_over(value, logits) / expm1_over(1.0, logits), far)
        return where(value <= 0, 0.0, where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        near, logits, size = self._parts()
        series = log1p_over(value * expm1_over(1.0, logits), logits)
        low = self.logits < 0
        least = value * (-size).exp() + (1 - value)  # exp(-size x) where the odds are low
        small = least < 0.5
        falling = where(small, where(small, least, 1.0).log(), where(small, 0.0, value * (-size).expm1()).log1p())
        most = value + (1 - value) * (-size).exp()  # exp(size (x - 1)) where they are high
        tiny = value.log() < -size
        rising = where(tiny, (where(tiny, value, 0.0) * where(tiny, size, 1.0).expm1()).log1p(), size + most.log())
        return where(near, series, where(low, -falling, rising) / size)

    def entropy(self) -> Tensor:
        near, logits, size = self._parts()
        series = 0.25 * logits * logits * _even(logits, [(1 - 2 * k) * c for k, c in TERMS])
        far = 1 - size.log() + (-(-size).exp()).log1p() - size * _odds_of_end(size)
        return where(near, series, far)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (logits,) = natural_params
        near = logits.abs() < 1
        size = where(near, 1.0, logits.abs())
        apart = logits.relu() + (-(-size).expm1() / size).log()
        found: Tensor = where(near, logits / 2 + _log_sinhc(where(near, logits, 0.0)), apart)
        return found


def _even(logits: Tensor, coefficients: Sequence[float]) -> Tensor:
    """The sum of coefficients times even powers of logits / 2, from the 0-th up."""
    square = 0.25 * logits * logits
    total = square * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        total = total * square + c
    return total


def _log_sinhc(logits: Tensor) -> Tensor:
    return 0.25 * logits * logits * _even(logits, [c for _, c in TERMS])


def _odds_of_end(size: Tensor) -> Tensor:
    """1 / (exp(size) - 1)."""
    return (-size).exp() / -(-size).expm1()

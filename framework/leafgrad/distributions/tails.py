"""Distributions with heavy tails, of extremes, and of absolute values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from leafgrad.distributions.constraints import Constraint, GreaterThanEq, dependent, nonnegative, positive, real
from leafgrad.distributions.distribution import Univariate
from leafgrad.distributions.normal import Normal
from leafgrad.dtypes import finfo
from leafgrad.ops.gamma import log_gamma
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.random import rand
from leafgrad.tensor.tensor import Tensor

__all__ = ["Cauchy", "Gumbel", "HalfCauchy", "HalfNormal", "Pareto", "Weibull"]

EULER = 0.57721566490153286060


class Inverted(Univariate):
    """Drawn through ``icdf``, the inverse of the distribution function."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        like: Tensor = vars(self)[next(iter(self.arg_constraints))]
        drawn = rand(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)
        return self.icdf(drawn.clamp(min=finfo(drawn.dtype).eps / 2))  # at 0 some are infinite


class Cauchy(Inverted):
    """Ratios of two normal numbers; without a mean.

    Args:
        loc: median.
        scale: half the distance of the quartiles, positive.
    """

    arg_constraints: ClassVar[Any] = {"loc": real, "scale": positive}
    support = real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc: Tensor
        self.scale: Tensor
        self._set(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        """nan: the integral does not exist."""
        return self.loc * math.nan

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return where(self.loc.isnan(), math.nan, self.loc * 0 + math.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Folded(Inverted):
    """Absolute values of numbers that lie symmetrically around 0.

    Args:
        scale: of the numbers, positive.
    """

    arg_constraints: ClassVar[Any] = {"scale": positive}
    support = nonnegative

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale: Tensor
        self._set(validate_args, scale=scale)

    @property
    def base_dist(self) -> Any:
        """The distribution of the numbers."""
        raise NotImplementedError(f"{type(self).__name__}: define base_dist")

    @property
    def mode(self) -> Tensor:
        return self.scale * 0

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        density: Tensor = self.base_dist.log_prob(value) + math.log(2)
        return where(value >= 0, density, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        below: Tensor = self.base_dist.cdf(value) * 2 - 1
        return below

    def icdf(self, value: Tensor) -> Tensor:
        found: Tensor = self.base_dist.icdf((value + 1) / 2)
        return found

    def entropy(self) -> Tensor:
        found: Tensor = self.base_dist.entropy() - math.log(2)
        return found


class HalfCauchy(Folded):
    """Absolute values of Cauchy distributed numbers.

    Args:
        scale: the median, positive.
    """

    @property
    def base_dist(self) -> Cauchy:
        return Cauchy(0.0, self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.inf

    @property
    def variance(self) -> Tensor:
        return self.scale * math.inf


class HalfNormal(Folded):
    """Absolute values of normal numbers.

    Args:
        scale: the standard deviation of these, positive.
    """

    @property
    def base_dist(self) -> Normal:
        return Normal(0.0, self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).abs()


class Gumbel(Inverted):
    """The largest of many numbers whose tail is exponential.

    Args:
        loc: the most probable value.
        scale: that of the tail, positive.
    """

    arg_constraints: ClassVar[Any] = {"loc": real, "scale": positive}
    support = real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc: Tensor
        self.scale: Tensor
        self._set(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale * (math.pi / math.sqrt(6))

    @property
    def variance(self) -> Tensor:
        return self.stddev**2

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


class Weibull(Inverted):
    """Waiting times whose rate grows as a power of time.

    Args:
        scale: the time by which all but 1 / e are over, positive.
        concentration: the power and 1, positive.
    """

    arg_constraints: ClassVar[Any] = {"scale": positive, "concentration": positive}
    support = positive

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale: Tensor
        self.concentration: Tensor
        self._set(validate_args, scale=scale, concentration=concentration)

    def _moment(self, n: int) -> Tensor:
        """The mean of the n-th power, for a scale of 1."""
        out = log_gamma(1 + n / self.concentration)
        return out.exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        share = ((self.concentration - 1) / self.concentration).clamp(min=0)
        return self.scale * share ** (1 / self.concentration)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (self._moment(2) - self._moment(1) ** 2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        k, z = self.concentration, value / self.scale
        return (k / self.scale).log() + (k - 1) * z.log() - z**k

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(where(value == 0, self.scale, value))  # 0 has a share below it, if no density
        return -(-((value / self.scale) ** self.concentration)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p()) ** (1 / self.concentration)

    def entropy(self) -> Tensor:
        return EULER * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1


class Pareto(Inverted):
    """Numbers above a bound whose tail falls as a power.

    Args:
        scale: the bound, positive.
        alpha: the power, positive.
    """

    arg_constraints: ClassVar[Any] = {"scale": positive, "alpha": positive}

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale: Tensor
        self.alpha: Tensor
        self._set(validate_args, scale=scale, alpha=alpha)

    @property
    def support(self) -> Constraint:
        """From the bound on."""
        return GreaterThanEq(self.scale) if "scale" in vars(self) else dependent

    @property
    def mean(self) -> Tensor:
        """inf up to alpha = 1."""
        return where(self.alpha > 1, self.alpha * self.scale / (self.alpha - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        """inf up to alpha = 2."""
        a = self.alpha
        return where(a > 2, self.scale**2 * a / ((a - 1) ** 2 * (a - 2)), math.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.alpha.log() - self.alpha * (value / self.scale).log() - value.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(-self.alpha * (value / self.scale).log()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p() / self.alpha).exp()

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + 1 / self.alpha)

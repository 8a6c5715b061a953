"""Fisher and Snedecor's distribution of ratios of variances, and the generalized Pareto distribution of excesses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from leafgrad.distributions.constraints import Interval, dependent_property, greater_than_eq, positive, real
from leafgrad.distributions.distribution import Univariate
from leafgrad.distributions.gamma import Gamma
from leafgrad.distributions.limits import expm1_over, log1p_over
from leafgrad.distributions.tails import Inverted
from leafgrad.dtypes import finfo
from leafgrad.ops.gamma import log_gamma
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.tensor import Tensor

__all__ = ["FisherSnedecor", "GeneralizedPareto"]


class FisherSnedecor(Univariate):
    """Ratios of the means of so many squares of normal numbers.

    Args:
        df1, df2: how many above and below, positive.
    """

    arg_constraints: ClassVar[Any] = {"df1": positive, "df2": positive}
    support = positive
    has_rsample = True

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self.df1: Tensor
        self.df2: Tensor
        self._set(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        """nan up to ``df2 = 2``."""
        df2 = where(self.df2 > 2, self.df2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        """nan up to ``df1 = 2``."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self) -> Tensor:
        """nan up to ``df2 = 4``."""
        df2 = where(self.df2 > 4, self.df2, math.nan)
        return 2 * df2**2 * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2) ** 2 * (df2 - 4))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        above, below = (Gamma(df / 2, df / 2, validate_args=False).rsample(sample_shape) for df in (self.df1, self.df2))
        tiny = finfo(above.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        norm = log_gamma(a + b) - log_gamma(a) - log_gamma(b)
        return norm + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()


class GeneralizedPareto(Inverted):
    """By how much large values exceed a threshold.

    Args:
        loc: the threshold.
        scale: positive.
        concentration: how heavy the tail is; below 0 there is a largest value.
    """

    arg_constraints: ClassVar[Any] = {"loc": real, "scale": positive, "concentration": real}

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc: Tensor
        self.scale: Tensor
        self.concentration: Tensor
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From ``loc`` on, and if the concentration is below 0, up to ``loc - scale / concentration``."""
        bounded = self.concentration < 0
        if not bounded.any().item():
            return greater_than_eq(self.loc)
        last = self.loc - self.scale / where(bounded, self.concentration, -1.0)
        return Interval(self.loc, where(bounded, last, math.inf))

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return where(k < 1, self.loc + self.scale / (1 - where(k < 1, k, 0.0)), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        k = where(self.concentration < 0.5, self.concentration, 0.0)
        return where(self.concentration < 0.5, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), math.inf)

    def _log_left(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of more than ``value``."""
        return -log1p_over((value - self.loc) / self.scale, self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._log_left(value) * (1 + self.concentration) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -self._log_left(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * expm1_over(-(-value).log1p(), self.concentration)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1

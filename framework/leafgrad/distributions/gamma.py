"""Gamma distributed numbers and what is made of them: chi-squared, beta, Dirichlet's and Student's distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad.distributions.constraints import nonnegative, positive, positive_vector, real, simplex, unit_interval
from leafgrad.distributions.distribution import Univariate, parameters
from leafgrad.distributions.exp_family import ExponentialFamily
from leafgrad.dtypes import finfo, float64
from leafgrad.ops.exponential import xlogy
from leafgrad.ops.gamma import log_gamma, psi
from leafgrad.ops.special import xlog1py
from leafgrad.tensor.creation import eye
from leafgrad.tensor.joining import stack
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.random import randn
from leafgrad.tensor.sampling import standard_gamma
from leafgrad.tensor.tensor import Tensor

__all__ = ["Beta", "Chi2", "Dirichlet", "Gamma", "StudentT"]


class Gamma(Univariate, ExponentialFamily):
    """Waiting times until so many events have come at a constant rate.

    Args:
        concentration: how many events, positive.
        rate: events in a unit of time, positive.
    """

    arg_constraints: ClassVar[Any] = {"concentration": positive, "rate": positive}
    support = nonnegative
    has_rsample = True

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.concentration: Tensor
        self.rate: Tensor
        self._set(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        return (drawn / self.rate).clamp(min=finfo(drawn.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return xlogy(a, rate) + xlogy(a - 1, value) - rate * value - log_gamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + log_gamma(a) + (1 - a) * psi(a)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        power, rate = natural_params
        return log_gamma(power + 1) - (power + 1) * (-rate).log()


class Chi2(Gamma):
    """Sums of so many squares of normal numbers.

    Args:
        df: how many, positive.
    """

    arg_constraints: ClassVar[Any] = {"df": positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        self.df: Tensor
        self._set(validate_args, df=df)
        self._derive()

    def _derive(self) -> None:
        self.concentration, self.rate = self.df * 0.5, self.df * 0 + 0.5

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new._derive()
        return new


class Beta(Univariate, ExponentialFamily):
    """Shares, between 0 and 1, of a gamma distributed number in its sum with another.

    Args:
        concentration1: of the share, positive.
        concentration0: of the rest, positive.
    """

    arg_constraints: ClassVar[Any] = {"concentration1": positive, "concentration0": positive}
    support = unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1: Tensor
        self.concentration0: Tensor
        self._set(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def _pair(self) -> Dirichlet:
        """The distribution of the share and the rest."""
        return Dirichlet(stack((self.concentration1, self.concentration0), -1), validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._pair.mode.select(-1, 0)

    @property
    def variance(self) -> Tensor:
        return self._pair.variance.select(-1, 0)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._pair.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return xlogy(a - 1, value) + xlog1py(b - 1, -value) - log_beta(a, b)

    def entropy(self) -> Tensor:
        return self._pair.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        one, zero = natural_params
        return log_beta(one, zero)

    @property
    def _mean_carrier_measure(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return 2 * psi(a + b) - psi(a) - psi(b)


class Dirichlet(ExponentialFamily):
    """Shares whose sum is 1 of gamma distributed numbers.

    Args:
        concentration: of the shares, (..., k), positive.
    """

    arg_constraints: ClassVar[Any] = {"concentration": positive_vector}
    support = simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        (self.concentration,) = parameters(concentration)
        if self.concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        shape = self.concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        given = self.concentration.expand((*batch_shape, *self._event_shape))
        return self._expanded(batch_shape, _instance, concentration=given)

    @property
    def _total(self) -> Tensor:
        return self.concentration.sum(-1, keepdim=True)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self._total

    @property
    def mode(self) -> Tensor:
        """The most probable shares; below 1 alone, where the density is infinite in every corner, the first corner."""
        above = (self.concentration - 1).clamp(min=0)
        corners = (self.concentration < 1).all(-1, keepdim=True)
        first = eye(self._event_shape[0], dtype=above.dtype, device=above.device)[0]
        return where(corners, first, above / above.sum(-1, keepdim=True))

    @property
    def variance(self) -> Tensor:
        a, total = self.concentration, self._total
        return a * (total - a) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """From logarithms in float64: small concentrations make numbers too small for any dtype."""
        drawn = standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)).to(float64), log=True)
        limits = finfo(self.concentration.dtype)
        return drawn.softmax(-1).clamp(limits.tiny, 1 - limits.eps / 2).to(self.concentration.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        return (xlogy(a - 1, value) - log_gamma(a)).sum(-1) + log_gamma(a.sum(-1))

    def entropy(self) -> Tensor:
        a, k = self.concentration, self._event_shape[0]
        total = a.sum(-1)
        return (log_gamma(a) - (a - 1) * psi(a)).sum(-1) - log_gamma(total) + (total - k) * psi(total)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (concentration,) = natural_params
        return log_gamma(concentration).sum(-1) - log_gamma(concentration.sum(-1))

    @property
    def _mean_carrier_measure(self) -> Tensor:
        a = self.concentration
        return (psi(a.sum(-1, keepdim=True)) - psi(a)).sum(-1)


class StudentT(Univariate):
    """Normal numbers over the root of a mean of squares of others.

    Args:
        df: of how many squares, positive.
        loc: median.
        scale: positive.
    """

    arg_constraints: ClassVar[Any] = {"df": positive, "loc": real, "scale": positive}
    support = real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df: Tensor
        self.loc: Tensor
        self.scale: Tensor
        self._set(validate_args, df=df, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        """nan up to df = 1."""
        return where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """inf up to df = 2, nan up to df = 1."""
        df = where(self.df > 2, self.df, 3.0)  # elsewhere its gradient is no number
        finite = self.scale**2 * df / (df - 2)
        return where(self.df > 2, finite, where(self.df > 1, self.df.new_full((), math.inf), math.nan))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        normal = randn(shape, dtype=self.df.dtype, device=self.df.device)
        squares = standard_gamma((self.df * 0.5).expand(shape)) * 2
        return self.loc + self.scale * normal * (squares / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        y = (value - self.loc) / self.scale
        spread = self.scale.log() + 0.5 * self.df.log() + log_beta(self.df / 2, self.df * 0 + 0.5)
        return -0.5 * (self.df + 1) * (y**2 / self.df).log1p() - spread

    def entropy(self) -> Tensor:
        half = (self.df + 1) / 2
        spread = self.scale.log() + 0.5 * self.df.log() + log_beta(self.df / 2, self.df * 0 + 0.5)
        return half * (psi(half) - psi(self.df / 2)) + spread


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """The logarithm of the beta function. (...), (...) -> (...)"""
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)

"""Distributions of trials that succeed or fail: Bernoulli's and the geometric one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from leafgrad import modes
from leafgrad.distributions.constraints import boolean, nonnegative_integer, real, unit_interval
from leafgrad.distributions.distribution import Parameter, Univariate, lazy_property
from leafgrad.distributions.exp_family import ExponentialFamily
from leafgrad.dtypes import finfo
from leafgrad.ops.exponential import logaddexp
from leafgrad.tensor.creation import arange
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.random import rand
from leafgrad.tensor.sampling import bernoulli
from leafgrad.tensor.tensor import Tensor

__all__ = ["Bernoulli", "Geometric"]


class Odds(Univariate):
    """A probability of success that is given as such, or as the logarithm of the odds: the other follows."""

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of success."""
        return self.logits.sigmoid()

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithm of the odds of success."""
        p = clamp_probs(self.probs)
        return p.log() - (-p).log1p()

    @property
    def _param(self) -> Tensor:
        """The one that was given."""
        return self.probs if "probs" in self._given else self.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.shape


def clamp_probs(probs: Tensor) -> Tensor:
    """Away from 0 and 1 by the dtype's epsilon."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def check_odds(probs: Parameter, logits: Parameter) -> None:
    """ValueError unless one of both is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class Trials(Odds):
    """Trials with a probability, given as such or as the logarithm of the odds."""

    arg_constraints: ClassVar[Any] = {"probs": unit_interval, "logits": real}

    def __init__(self, probs: Parameter = None, logits: Parameter = None, validate_args: bool | None = None) -> None:
        check_odds(probs, logits)
        self._set(validate_args, **({"logits": logits} if probs is None else {"probs": probs}))


class Bernoulli(Trials, ExponentialFamily):
    """1 with a probability, else 0.

    Args:
        probs: the probability of 1.
        logits: the logarithm of its odds; one of the two is given.
    """

    support = boolean
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The more probable value, nan if both are."""
        return where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with modes.no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return value * self.logits - softplus(self.logits)

    def entropy(self) -> Tensor:
        return softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(2, dtype=self._param.dtype, device=self._param.device)
        return over_batch(values, self._batch_shape, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (logits,) = natural_params
        return softplus(logits)


class Geometric(Trials):
    """How many trials fail before the first one succeeds: 0, 1, 2, …

    Args:
        probs: the probability of success, in (0, 1].
        logits: the logarithm of its odds; one of the two is given.
    """

    support = nonnegative_integer

    def __init__(self, probs: Parameter = None, logits: Parameter = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all().item():
            raise ValueError(f"Expected parameter probs of distribution {self!r} to be positive")

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return self.probs * 0

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with modes.no_grad():
            drawn = rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
            return ((-drawn).log1p() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        probs = where((self.probs == 1) & (value == 0), 0.0, self.probs)  # 0 times minus infinity is nan
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        """-log p - (1 - p) / p log(1 - p), of what was given: the other one is rounded, which 1 / p would show."""
        if "probs" in self._given:
            p = clamp_probs(self.probs)
            return -self.probs.log() - (1 - self.probs) * (-p).log1p() / p
        low = self.logits.clamp(min=math.log(finfo(self.logits.dtype).tiny))  # below, the second term is 1
        return softplus(-self.logits) + (-low).exp() * softplus(low)


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)), without a threshold."""
    return logaddexp(x, 0.0)


def over_batch(values: Tensor, batch_shape: Sequence[int], expand: bool) -> Tensor:
    """(n,) -> (n, 1, ..., 1), or expanded (n, *batch_shape)"""
    column = values.reshape(-1, *(1,) * len(batch_shape))
    return column.expand(-1, *batch_shape) if expand else column

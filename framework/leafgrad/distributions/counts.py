"""Distributions of counts: Poisson's, and the negative binomial one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from leafgrad import modes
from leafgrad.distributions.bernoulli import Odds, check_odds, softplus
from leafgrad.distributions.constraints import half_open_interval, nonnegative, nonnegative_integer, real
from leafgrad.distributions.distribution import Parameter, Univariate
from leafgrad.distributions.exp_family import ExponentialFamily
from leafgrad.ops.exponential import xlogy
from leafgrad.ops.gamma import log_gamma
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.sampling import poisson, standard_gamma
from leafgrad.tensor.tensor import Tensor

__all__ = ["NegativeBinomial", "Poisson"]


class Poisson(Univariate, ExponentialFamily):
    """How many events come in a unit of time.

    Args:
        rate: how many on average, not negative.
    """

    arg_constraints: ClassVar[Any] = {"rate": nonnegative}
    support = nonnegative_integer

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.rate: Tensor
        self._set(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with modes.no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return xlogy(value.to(self.rate.dtype), self.rate) - self.rate - log_gamma(value.to(self.rate.dtype) + 1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (rate,) = natural_params
        return rate.exp()

    def entropy(self) -> Tensor:
        raise NotImplementedError("Poisson: the entropy has no closed form; take the mean of -log_prob(sample)")


class NegativeBinomial(Odds):
    """How many trials succeed before so many have failed.

    Args:
        total_count: how many fail, not negative; also between whole numbers.
        probs: the probability of success, in [0, 1).
        logits: the logarithm of its odds; one of the two is given.
    """

    arg_constraints: ClassVar[Any] = {"total_count": nonnegative, "probs": half_open_interval(0.0, 1.0), "logits": real}
    support = nonnegative_integer

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Parameter = None,
        logits: Parameter = None,
        validate_args: bool | None = None,
    ) -> None:
        check_odds(probs, logits)
        self.total_count: Tensor
        given = {"logits": logits} if probs is None else {"probs": probs}
        self._set(validate_args, total_count=total_count, **given)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Poisson numbers whose rates are gamma distributed."""
        with modes.no_grad():
            count = self.total_count.expand(self._extended_shape(sample_shape))
            rate = standard_gamma(where(count > 0, count, 1.0)) * self.logits.exp()
            return poisson(where(count > 0, rate, 0.0))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.total_count
        chance = -n * softplus(self.logits) - value * softplus(-self.logits)
        ways = log_gamma(n + value) - log_gamma(value.to(n.dtype) + 1) - log_gamma(n)
        return chance + where(n + value == 0, 0.0, ways)

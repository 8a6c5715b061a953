"""Numbers of trials that succeed, and of trials with each of several outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad import modes
from leafgrad.distributions.bernoulli import Odds, check_odds, over_batch, softplus
from leafgrad.distributions.categorical import Categorical
from leafgrad.distributions.constraints import (
    IntegerInterval,
    Multinomial as MultinomialConstraint,
    dependent_property,
    nonnegative_integer,
    real,
    real_vector,
    simplex,
    unit_interval,
)
from leafgrad.distributions.distribution import Distribution, Parameter
from leafgrad.ops.gamma import log_gamma
from leafgrad.tensor.creation import arange
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.sampling import binomial
from leafgrad.tensor.tensor import Tensor

__all__ = ["Binomial", "Multinomial"]


class Binomial(Odds):
    """How many of so many trials succeed.

    Args:
        total_count: how many trials, a nonnegative integer or a tensor of such.
        probs: the probability of success.
        logits: the logarithm of its odds; one of the two is given.
    """

    arg_constraints: ClassVar[Any] = {"total_count": nonnegative_integer, "probs": unit_interval, "logits": real}
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Tensor | float = 1,
        probs: Parameter = None,
        logits: Parameter = None,
        validate_args: bool | None = None,
    ) -> None:
        check_odds(probs, logits)
        self.total_count: Tensor
        given = {"logits": logits} if probs is None else {"probs": probs}
        self._set(validate_args, **given, total_count=total_count)
        self.total_count = self.total_count.to(self._param.dtype)

    @dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The integers from 0 to ``total_count``."""
        return IntegerInterval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with modes.no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, x = self.total_count, value.to(self._param.dtype)
        ways = log_gamma(n + 1) - log_gamma(x + 1) - log_gamma(n - x + 1)
        chance: Tensor = x * self.logits - n * softplus(self.logits)
        return ways + chance

    def entropy(self) -> Tensor:
        log_prob = self.log_prob(self._every("entropy", expand=False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._every("enumerate_support", expand)

    def _every(self, function: str, expand: bool) -> Tensor:
        """All values, where they are the same for all of the batch."""
        most = int(self.total_count.max().item())
        if not (self.total_count == most).all().item():
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{function}`.")
        values = arange(1 + most, dtype=self._param.dtype, device=self._param.device)
        return over_batch(values, self._batch_shape, expand)


class Multinomial(Distribution):
    """How many of so many trials have each outcome.

    Args:
        total_count: how many trials, an int.
        probs: the probabilities of the outcomes along the last dimension, or nonnegative numbers in proportion to them.
        logits: their logarithms, plus any number; one of the two is given.

    Raises:
        NotImplementedError: ``total_count`` is no int.
    """

    arg_constraints: ClassVar[Any] = {"probs": simplex, "logits": real_vector}

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities of the outcomes."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Vectors of counts whose sum is at most ``total_count``, as PyTorch checks it."""
        return MultinomialConstraint(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        categorical = self._categorical.expand(batch_shape)
        return self._expanded(batch_shape, _instance, _categorical=categorical, total_count=self.total_count)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Few trials are drawn and counted; of many the successes in those that are left, outcome by outcome."""
        with modes.no_grad():
            probs = self.probs.expand(self._extended_shape(sample_shape))
            if 0 < self.total_count <= probs.shape[-1]:
                trials = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
                return probs.new_zeros(probs.shape).scatter_add(-1, trials, probs.new_ones(trials.shape))
            rest = probs.flip(-1).cumsum(-1).flip(-1)  # of this outcome and those after it
            chance = where(rest > 0, probs / where(rest > 0, rest, 1.0), 0.0).clamp(0, 1)
            counts = probs.new_zeros(probs.shape)
            left = probs.new_full(probs.shape[:-1], self.total_count)
            last = probs.shape[-1] - 1
            for i in range(last):
                drawn = binomial(left, chance[..., i])
                counts[..., i] = drawn
                left = left - drawn
            counts[..., last] = left
            return counts

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        x = value.to(self.probs.dtype)
        logits = where((x == 0) & (self.logits == -math.inf), 0.0, self.logits)
        out = log_gamma(x.sum(-1) + 1) - log_gamma(x + 1).sum(-1)
        return out + (x * logits).sum(-1)

    def entropy(self) -> Tensor:
        """That of the trials, less what is not known of their order."""
        n = self.probs.new_full((), self.total_count)
        outcomes = Binomial(self.total_count, probs=self.probs, validate_args=False)
        some = outcomes._every("entropy", expand=False)[1:]
        orders = (outcomes.log_prob(some).exp() * log_gamma(some + 1)).sum((0, -1))
        return n * self._categorical.entropy() - log_gamma(n + 1) + orders

    def __repr__(self) -> str:
        return f"Multinomial({self.total_count}, {self._categorical!r})"

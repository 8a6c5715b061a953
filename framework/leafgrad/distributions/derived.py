"""Distributions that transforms make of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from leafgrad import modes
from leafgrad.distributions.bernoulli import Trials
from leafgrad.distributions.categorical import Categorical, OneHotCategorical
from leafgrad.distributions.composite import TransformedDistribution
from leafgrad.distributions.constraints import positive, real, real_vector, simplex, unit_interval
from leafgrad.distributions.distribution import Distribution, parameters
from leafgrad.distributions.elementwise_transforms import (
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
)
from leafgrad.distributions.gamma import Gamma
from leafgrad.distributions.normal import Normal
from leafgrad.distributions.tails import EULER
from leafgrad.distributions.uniform import Uniform
from leafgrad.distributions.vector_transforms import StickBreakingTransform
from leafgrad.dtypes import finfo
from leafgrad.ops.gamma import log_gamma, psi
from leafgrad.tensor.creation import zeros_like
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.random import rand
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "InverseGamma", "Kumaraswamy", "LogNormal", "LogisticNormal", "OneHotCategoricalStraightThrough",
    "RelaxedBernoulli", "RelaxedOneHotCategorical",
]  # fmt: skip


class InverseGamma(TransformedDistribution):
    """1 over gamma distributed numbers.

    Args:
        concentration, rate: those of the gamma distribution, positive.
    """

    arg_constraints: ClassVar[Any] = {"concentration": positive, "rate": positive}
    support = positive

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(base.rate.new_full((), -1.0)), validate_args)

    @property
    def concentration(self) -> Tensor:
        """That of the gamma distribution."""
        value: Tensor = self.base_dist.concentration
        return value

    @property
    def rate(self) -> Tensor:
        """That of the gamma distribution."""
        value: Tensor = self.base_dist.rate
        return value

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return where(a > 1, self.rate / where(a > 1, a - 1, 1.0), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = where(self.concentration > 2, self.concentration, 3.0)
        return where(self.concentration > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + log_gamma(a) - (1 + a) * psi(a)


class Kumaraswamy(TransformedDistribution):
    """Numbers between 0 and 1, much as Beta's, whose distribution function is a formula.

    Args:
        concentration1, concentration0: positive.
    """

    arg_constraints: ClassVar[Any] = {"concentration1": positive, "concentration0": positive}
    support = unit_interval

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = parameters(concentration1, concentration0)
        low = zeros_like(self.concentration0)
        base = Uniform(low, low + 1, validate_args)
        super().__init__(base, self._steps(), validate_args)

    def _steps(self) -> list[Any]:
        inner, outer = (PowerTransform(c.reciprocal()) for c in (self.concentration0, self.concentration1))
        return [inner, AffineTransform(1.0, -1.0), outer]

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new.concentration1, new.concentration0 = (
            c.expand(batch_shape) for c in (self.concentration1, self.concentration0)
        )
        new.transforms = new._steps()
        return new

    def _moment(self, order: int) -> Tensor:
        """The mean of the power."""
        a, b = self.concentration1, self.concentration0
        of_power = 1 + order / a
        out = log_gamma(of_power) + log_gamma(b) - log_gamma(of_power + b)
        return b * out.exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        peak = (a >= 1) & (b >= 1) & (a * b > 1)
        a, b = where(peak, a, 2.0), where(peak, b, 2.0)  # where there is none, gradients shall not be nan
        return where(peak, ((a - 1) / (a * b - 1)) ** (1 / a), math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean**2

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = psi(b + 1) + EULER
        return 1 - 1 / b + (1 - 1 / a) * harmonic - a.log() - b.log()


class LogNormal(TransformedDistribution):
    """Positive numbers whose logarithm is normal.

    Args:
        loc: mean of the logarithm.
        scale: standard deviation of the logarithm, positive.
    """

    arg_constraints: ClassVar[Any] = {"loc": real, "scale": positive}
    support = positive

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """Mean of the logarithm."""
        value: Tensor = self.base_dist.loc
        return value

    @property
    def scale(self) -> Tensor:
        """Standard deviation of the logarithm."""
        value: Tensor = self.base_dist.scale
        return value

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale**2
        return square.expm1() * (self.loc * 2 + square).exp()

    def entropy(self) -> Tensor:
        entropy: Tensor = self.base_dist.entropy()
        return entropy + self.loc


class LogisticNormal(TransformedDistribution):
    """Shares that stick breaking makes of normal numbers.

    Args:
        loc, scale: of the normal numbers, (..., n); there are n + 1 shares.
    """

    arg_constraints: ClassVar[Any] = {"loc": real, "scale": positive}
    support = simplex

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the normal numbers."""
        value: Tensor = self.base_dist.base_dist.loc
        return value

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal numbers."""
        value: Tensor = self.base_dist.base_dist.scale
        return value


# ---- relaxed --------------------------------------------------------------------------------------------------------


class LogitRelaxedBernoulli(Trials):
    """The logits of RelaxedBernoulli's numbers."""

    support = real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        logits = self.logits
        u = rand(self._extended_shape(sample_shape), dtype=logits.dtype, device=logits.device)
        eps = finfo(u.dtype).eps
        u = u.clamp(eps, 1 - eps)
        drawn: Tensor = (u.log() - (-u).log1p() + logits) / self.temperature
        return drawn

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        off = self.logits - value * self.temperature
        size = value.new_full((), self.temperature) if not isinstance(self.temperature, Tensor) else self.temperature
        return size.log() + off - 2 * off.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that become Bernoulli's as the temperature falls, and have gradients.

    C. J. Maddison, A. Mnih and Y. W. Teh, "The concrete distribution" (2017).

    Args:
        temperature: positive.
        probs: the probability of 1.
        logits: the logarithm of its odds; one of the two is given.
    """

    arg_constraints: ClassVar[Any] = {"probs": unit_interval, "logits": real}
    support = unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args)

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        value: Tensor = self.base_dist.probs
        return value

    @property
    def logits(self) -> Tensor:
        """The logarithm of its odds."""
        value: Tensor = self.base_dist.logits
        return value


class ExpRelaxedCategorical(Distribution):
    """The logarithms of RelaxedOneHotCategorical's vectors."""

    arg_constraints: ClassVar[Any] = {"probs": simplex, "logits": real_vector}
    support = real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        categorical = self._categorical.expand(batch_shape)
        return self._expanded(batch_shape, _instance, _categorical=categorical, temperature=self.temperature)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        logits = self.logits
        u = rand(self._extended_shape(sample_shape), dtype=logits.dtype, device=logits.device)
        eps = finfo(u.dtype).eps
        scores: Tensor = (logits - (-u.clamp(eps, 1 - eps).log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self._event_shape[0]
        size = value.new_full((), self.temperature) if not isinstance(self.temperature, Tensor) else self.temperature
        scores = self.logits - value * size
        scores = (scores - scores.logsumexp(-1, keepdim=True)).sum(-1)
        log_scale = (n - 1) * size.log() + math.lgamma(n)
        return scores + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Shares that become OneHotCategorical's vectors as the temperature falls, and have gradients.

    Args:
        temperature: positive.
        probs: the probabilities of the classes along the last dimension, or nonnegative numbers in proportion to them.
        logits: their logarithms, plus any number; one of the two is given.
    """

    arg_constraints: ClassVar[Any] = {"probs": simplex, "logits": real_vector}
    support = simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        value: Tensor = self.base_dist.probs
        return value

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        value: Tensor = self.base_dist.logits
        return value


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose samples pass gradients on to the probabilities as if they were these."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with modes.no_grad():
            drawn = super().sample(sample_shape)
        return drawn + (self.probs - self.probs.detach())

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return super().sample(sample_shape)

"""The continuous Bernoulli distribution: of pixels and other shares that a Bernoulli likelihood takes for coins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from leafgrad.distributions.bernoulli import Odds, check_odds, clamp_probs, softplus
from leafgrad.distributions.constraints import real, unit_interval
from leafgrad.distributions.distribution import Parameter, lazy_property
from leafgrad.distributions.exp_family import ExponentialFamily
from leafgrad.distributions.limits import expm1_over, log1p_over
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.random import rand
from leafgrad.tensor.tensor import Tensor

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Numbers x in [0, 1] with a density in proportion to p^x (1 - p)^(1 - x).

    G. Loaiza-Ganem and J. P. Cunningham, "The continuous Bernoulli" (2019).

    Args:
        probs: p, in (0, 1).
        logits: the logarithm of its odds; one of the two is given.
        lims: between these p, where formulas divide 0 by 0, series are used for the moments and the density.
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

    def _near(self) -> tuple[Tensor, Tensor, Tensor]:
        """Where series are used, p - 1/2, and p elsewhere."""
        near = (self.probs > self._lims[0]) & (self.probs <= self._lims[1])
        return near, self.probs - 0.5, where(near, self._lims[0], self.probs)

    def _even(self) -> tuple[Tensor, Tensor, Tensor]:
        """Where the odds are near 1, their logarithm there, and p elsewhere.

        The density is in proportion to exp(logits x), so that the distribution functions are quotients which at
        logits 0 have a derivative by it.
        """
        near = self.logits.abs() < 1
        return near, where(near, self.logits, 0.0), where(near, 0.25, self.probs)

    def _log_norm(self) -> Tensor:
        """The logarithm of what p^x (1 - p)^(1 - x) is multiplied with."""
        near, x, p = self._near()
        width = (1 - 2 * p).abs()
        far = ((-p).log1p() - p.log()).abs().log() - width.log()
        square = x * x
        return where(near, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * square) * square, far)

    @property
    def mean(self) -> Tensor:
        near, x, p = self._near()
        far = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        return where(near, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x * x) * x, far)

    @property
    def variance(self) -> Tensor:
        near, x, p = self._near()
        far = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2
        square = x * x
        return where(near, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * square) * square, far)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        like = self.probs
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return value * self.logits - softplus(self.logits) + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        near, logits, p = self._even()
        far = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inside = where(near, expm1_over(value, logits) / expm1_over(1.0, logits), far)
        return where(value <= 0, 0.0, where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        near, logits, p = self._even()
        far = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return where(near, log1p_over(value * expm1_over(1.0, logits), logits), far)

    def entropy(self) -> Tensor:
        none = (-self.probs).log1p()
        return self.mean * (none - self.probs.log()) - self._log_norm() - none

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (logits,) = natural_params
        small = logits.abs() < 1e-2
        size = where(small, 1.0, logits.abs())
        apart = logits.relu() + (-(-size).expm1() / size).log()
        found: Tensor = where(small, logits / 2 + logits**2 / 24, apart)
        return found

"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from leafgrad import modes
from leafgrad.distributions.constraints import positive, real
from leafgrad.distributions.distribution import Univariate
from leafgrad.dtypes import float64
from leafgrad.tensor.creation import arange
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.random import rand
from leafgrad.tensor.tensor import Tensor

__all__ = ["VonMises"]

NODES = 64  # of the quadrature up to FAR, where its error, of order I_128 / I_0, is below 1e-17
FAR = 200.0  # from here on the asymptotic series give float64
ROUNDS = 64  # of rejection; each accepts at least 0.65


class VonMises(Univariate):
    """Angles around a mean direction, as normal numbers on a circle.

    Args:
        loc: the direction, in radians.
        concentration: how close they are, positive: for large ones, 1 over the variance.
    """

    arg_constraints: ClassVar[Any] = {"loc": real, "concentration": positive}
    support = real

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc: Tensor
        self.concentration: Tensor
        self._set(validate_args, loc=loc, concentration=concentration)

    @property
    def mean(self) -> Tensor:
        """The direction."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """1 minus the mean cosine of the deviation."""
        return 1 - mean_cosine(self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        k = self.concentration
        return k * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - log_scaled_bessel(k)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises distribution" (1979), in float64."""
        shape = self._extended_shape(sample_shape)
        with modes.no_grad():
            k = self.concentration.to(float64)
            tau = 1 + (1 + 4 * k * k).sqrt()
            ratio = where(k < 1e-5, 1 / k.clamp(min=1e-300) + k, 0.0)
            root = (tau - (2 * tau).sqrt()) / (2 * k)
            r = where(k < 1e-5, ratio, (1 + root * root) / (2 * root.clamp(min=1e-300))).expand(shape)
            k = k.expand(shape)
            cosine, waiting = k * 0 + 1, k == k
            for _ in range(ROUNDS):
                u, v = _uniform(k), 1 - _uniform(k)
                z = (math.pi * u).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accepted = waiting & ((c * (2 - c) > v) | ((c / v).log() + 1 - c >= 0))
                cosine, waiting = where(accepted, f, cosine), waiting & ~accepted
                if not waiting.any().item():
                    break
            side = where(_uniform(k) < 0.5, -1.0, 1.0).to(float64)
            angle = side * cosine.clamp(-1, 1).acos()
            return ((angle + math.pi + self.loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)


def _uniform(like: Tensor) -> Tensor:
    return rand(like.shape, dtype=float64, device=like.device)


def _nodes(k: Tensor) -> Tensor:
    """Cosines of angles between 0 and pi, along a new first dimension, and 1 less."""
    angles = (arange(NODES, dtype=k.dtype, device=k.device) + 0.5) * (math.pi / NODES)
    return angles.cos().reshape(NODES, *[1] * k.ndim)


def log_scaled_bessel(k: Tensor) -> Tensor:
    """``log(I_0(k) exp(-k))``, of Bessel's modified function: the mean of ``exp(k (cos t - 1))`` over t."""
    near = where(k < FAR, k, 1.0)
    mean = (near * (_nodes(k) - 1)).logsumexp(0) - math.log(NODES)
    far = where(k < FAR, FAR, k)
    w = 1 / (8 * far)
    series = 1 + w * (1 + w * (9 / 2 + w * (75 / 2 + w * (3675 / 8 + w * 59535 / 8))))
    return where(k < FAR, mean, series.log() - 0.5 * (2 * math.pi * far).log())


def mean_cosine(k: Tensor) -> Tensor:
    """``I_1(k) / I_0(k)``."""
    cosines = _nodes(k)
    near = ((where(k < FAR, k, 1.0) * (cosines - 1)).softmax(0) * cosines).sum(0)
    w = 1 / where(k < FAR, FAR, k)
    far = 1 - w * (1 / 2 + w * (1 / 8 + w * (1 / 8 + w * (25 / 128 + w * (13 / 32 + w * 1073 / 1024)))))
    return where(k < FAR, near, far)

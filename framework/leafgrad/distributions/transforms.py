"""Invertible maps of numbers, element by element, and the logarithms of their slopes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leafgrad.distributions.constraints import Constraint, interval, positive, real, unit_interval
from leafgrad.ops.activation import logsigmoid, softplus
from leafgrad.tensor.shapes import broadcast_shapes
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "PowerTransform", "SigmoidTransform", "SoftplusTransform",
    "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class Transform:
    """Base of transforms. A subclass defines ``_call``, ``_inverse`` and ``log_abs_det_jacobian``.

    Args:
        cache_size: 1 keeps the last pair of argument and result, so that the inverse of that result is exact.

    Attributes:
        domain, codomain: from what to what it maps.
        sign: 1 if it ascends, -1 if it descends.
    """

    bijective = True
    domain: Constraint = real
    codomain: Constraint = real
    sign: Any = 1

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._last: tuple[Any, Any] = (None, None)

    @property
    def event_dim(self) -> int:
        """How many dimensions it works on together: none."""
        return 0

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return Inverse(self)

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size and x is self._last[0]:
            known: Tensor = self._last[1]
            return known
        return self._keep(x, self._call(x))[1]

    def back(self, y: Tensor) -> Tensor:
        """The x that becomes y."""
        if self._cache_size and y is self._last[1]:
            known: Tensor = self._last[0]
            return known
        return self._keep(self._inverse(y), y)[0]

    def _keep(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if self._cache_size:
            self._last = x, y
        return x, y

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: define _call(x)")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: define _inverse(y)")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the magnitude of dy / dx."""
        raise NotImplementedError(f"{type(self).__name__}: define log_abs_det_jacobian(x, y)")

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of y, from that of x."""
        return tuple(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Inverse(Transform):
    """A transform backwards."""

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self.transform = transform
        self.domain, self.codomain, self.sign = transform.codomain, transform.domain, transform.sign

    @property
    def inv(self) -> Transform:
        return self.transform

    def _call(self, x: Tensor) -> Tensor:
        return self.transform.back(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.transform(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.transform.log_abs_det_jacobian(y, x)

    def __repr__(self) -> str:
        return f"{self.transform!r}.inv"


class ComposeTransform(Transform):
    """One transform after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        if self.parts:
            self.domain, self.codomain = self.parts[0].domain, self.parts[-1].codomain
        for part in self.parts:
            self.sign = self.sign * part.sign

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.back(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total = x * 0
        for part in self.parts:
            after = part(x)
            total = total + part.log_abs_det_jacobian(x, after)
            x = after
        return total

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


identity_transform = ComposeTransform([])


class ExpTransform(Transform):
    """exp(x)"""

    codomain = positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """x ** exponent, of positive numbers."""

    domain = codomain = positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent
        self.sign = exponent.sign() if isinstance(exponent, Tensor) else math.copysign(1, exponent)

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        inverse: Tensor = y ** (1 / self.exponent)
        return inverse

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))"""

    codomain = unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return x.sigmoid()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slope: Tensor = logsigmoid(x) + logsigmoid(-x)
        return slope


class SoftplusTransform(Transform):
    """log(1 + exp(x))"""

    codomain = positive

    def _call(self, x: Tensor) -> Tensor:
        result: Tensor = softplus(x, beta=1.0, threshold=20.0)
        return result

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slope: Tensor = logsigmoid(x)
        return slope


class TanhTransform(Transform):
    """tanh(x)"""

    codomain = interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slope: Tensor = (math.log(2.0) - x - softplus(x * -2, beta=1.0, threshold=20.0)) * 2.0
        return slope


class AffineTransform(Transform):
    """loc + scale * x

    Args:
        loc, scale: numbers, or tensors that broadcast.
    """

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        if event_dim:
            raise NotImplementedError(
                f"AffineTransform: event_dim: expected 0, got {event_dim}; wrap the distribution in Independent"
            )
        self.loc, self.scale = loc, scale
        self.sign = scale.sign() if isinstance(scale, Tensor) else math.copysign(1, scale)

    def _call(self, x: Tensor) -> Tensor:
        result: Tensor = self.loc + self.scale * x
        return result

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            return self.scale.abs().log().expand(x.shape)
        return x * 0 + math.log(abs(self.scale))

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ())))

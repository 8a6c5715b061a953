"""Transforms of samples: their base, inverses, and what is made of several, or of one for more dimensions."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Self

from leafgrad.distributions.constraints import Constraint, IndependentConstraint, real
from leafgrad.distributions.independent import sum_last
from leafgrad.tensor.tensor import Tensor

__all__ = ["ComposeTransform", "IndependentTransform", "ReshapeTransform", "Transform", "identity_transform"]

CACHE = ("_cache_size", "_cached_x_y")


class Transform:
    """Base of transforms. A subclass defines ``_call``, ``_inverse`` and ``log_abs_det_jacobian``.

    Args:
        cache_size: 1 keeps the last pair of argument and result, so that the inverse of that result is exact.

    Attributes:
        domain, codomain: from what to what it maps; their ``event_dim`` says how many dimensions it works on together.
        bijective: whether ``t(t.inv(t(x))) == t(x)``, and nothing else becomes ``t(x)``.
        sign: 1 if it ascends, -1 if it descends; of bijective transforms of single numbers.
    """

    bijective: Any = False
    domain: Any = real
    codomain: Any = real

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()  # of a transform that is a Module too

    @property
    def event_dim(self) -> int:
        """How many dimensions it works on together."""
        return max(self.domain.event_dim, self.codomain.event_dim)

    @property
    def sign(self) -> Any:
        """1 if it ascends, -1 if it descends."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return Inverse(self)

    def with_cache(self, cache_size: int = 1) -> Self:
        """The same transform with such a cache."""
        if cache_size == self._cache_size:
            return self
        new = copy.copy(self)
        new._cache_size, new._cached_x_y = cache_size, (None, None)
        return new

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size and x is self._cached_x_y[0]:
            known: Tensor = self._cached_x_y[1]
            return known
        return self._keep(x, self._call(x))[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        """The x that becomes y."""
        if self._cache_size and y is self._cached_x_y[1]:
            known: Tensor = self._cached_x_y[0]
            return known
        return self._keep(self._inverse(y), y)[0]

    def _keep(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if self._cache_size:
            self._cached_x_y = x, y
        return x, y

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: define _call(x)")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: define _inverse(y)")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the magnitude of the determinant of dy / dx."""
        raise NotImplementedError(f"{type(self).__name__}: define log_abs_det_jacobian(x, y)")

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of y, from that of x."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of x, from that of y."""
        return tuple(shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transform) or type(self) is not type(other):
            return False
        mine, its = ({k: v for k, v in vars(t).items() if k not in CACHE} for t in (self, other))
        return mine.keys() == its.keys() and all(_same(mine[k], its[k]) for k in mine)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        equal = a == b
        return bool(equal.all().item()) if isinstance(equal, Tensor) else False
    return bool(a == b)


class Inverse(Transform):
    """A transform backwards."""

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self.transform = transform

    @property
    def domain(self) -> Any:
        return self.transform.codomain

    @property
    def codomain(self) -> Any:
        return self.transform.domain

    @property
    def bijective(self) -> bool:
        return self.transform.bijective

    @property
    def sign(self) -> Any:
        return self.transform.sign

    @property
    def inv(self) -> Transform:
        return self.transform

    def with_cache(self, cache_size: int = 1) -> Any:
        return self.transform.with_cache(cache_size).inv

    def __call__(self, x: Tensor) -> Tensor:
        return self.transform._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self.transform(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.transform.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.transform.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.transform.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{self.transform!r}.inv"


def widened(constraint: Constraint, event_dim: int) -> Constraint:
    """A constraint on events of at least so many dimensions."""
    more = event_dim - constraint.event_dim
    return IndependentConstraint(constraint, more) if more > 0 else constraint


class ComposeTransform(Transform):
    """One transform after the other.

    Args:
        parts: transforms, of which the first comes first.
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    @property
    def domain(self) -> Any:
        if not self.parts:
            return real
        dims = 0
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return widened(self.parts[0].domain, dims)

    @property
    def codomain(self) -> Any:
        if not self.parts:
            return real
        dims = 0
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return widened(self.parts[-1].codomain, dims)

    @property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    def with_cache(self, cache_size: int = 1) -> ComposeTransform:
        return self if cache_size == self._cache_size else ComposeTransform(self.parts, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return x * 0
        total: Any = 0
        dims = self.domain.event_dim
        for i, part in enumerate(self.parts, 1):
            after = y if i == len(self.parts) else part(x)
            total = total + sum_last(part.log_abs_det_jacobian(x, after), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = after
        slopes: Tensor = total
        return slopes

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dimensions belong to the event: the logarithms of slopes are summed over them.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: how many dimensions.
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def domain(self) -> Any:
        return IndependentConstraint(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return IndependentConstraint(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        self._expect(x, self.domain)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        self._expect(y, self.codomain)
        return self.base_transform._inv_call(y)

    def _expect(self, x: Tensor, constraint: Constraint) -> None:
        if x.ndim < constraint.event_dim:
            raise ValueError(f"Too few dimensions on input: expected at least {constraint.event_dim}, got {x.ndim}")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """The elements of an event in another shape.

    Args:
        in_shape, out_shape: of as many elements.
    """

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(f"in_shape, out_shape have different numbers of elements: {in_shape} and {out_shape}")

    @property
    def domain(self) -> Any:
        return IndependentConstraint(real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        return IndependentConstraint(real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._exchanged(shape, self.out_shape, self.in_shape)

    def _exchanged(self, shape: Sequence[int], old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
        batch = len(shape) - len(old)
        if batch < 0:
            raise ValueError(f"Too few dimensions on input: expected at least {len(old)}, got {len(shape)}")
        if tuple(shape[batch:]) != old:
            raise ValueError(f"Shape mismatch: expected {old} but got {tuple(shape[batch:])}")
        return (*shape[:batch], *new)

    def __repr__(self) -> str:
        return f"ReshapeTransform({self.in_shape}, {self.out_shape})"

"""Transforms of vectors and matrices: onto simplices, triangular factors and matrices, and several side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leafgrad.distributions.constraints import (
    Cat,
    IndependentConstraint,
    Stack,
    corr_cholesky,
    lower_cholesky,
    positive_definite,
    real,
    real_vector,
    simplex,
)
from leafgrad.distributions.elementwise_transforms import inside
from leafgrad.distributions.independent import sum_last
from leafgrad.distributions.transform import Transform
from leafgrad.dtypes import finfo
from leafgrad.ops.activation import logsigmoid
from leafgrad.tensor.arguments import one_dim
from leafgrad.tensor.creation import arange, eye, tril_indices
from leafgrad.tensor.decompositions import cholesky
from leafgrad.tensor.joining import cat, stack
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "CatTransform", "CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "SoftmaxTransform",
    "StackTransform", "StickBreakingTransform",
]  # fmt: skip


# ---- onto the simplex -----------------------------------------------------------------------------------------------


class SoftmaxTransform(Transform):
    """exp(x), divided by the sum. Its inverse gives the logarithms, one of many x."""

    domain, codomain = real_vector, simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return at_least(shape, 1)

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """n numbers as n + 1 shares: each breaks a part off what is left of a stick. (..., n) -> (..., n + 1)

    0 gives equal shares.
    """

    domain, codomain, bijective = real_vector, simplex, True

    def _call(self, x: Tensor) -> Tensor:
        part = inside((x - left(x)).sigmoid())
        rest = (1 - part).cumprod(-1)
        one = x.new_ones((*x.shape[:-1], 1))
        return cat((part, one), -1) * cat((one, rest), -1)

    def _inverse(self, y: Tensor) -> Tensor:
        known = y[..., :-1]
        rest = (1 - known.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return known.log() - rest.log() + left(known)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        moved = x - left(x)
        slopes = -moved + logsigmoid(moved) + y[..., :-1].log()
        return slopes.sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        *batch, n = at_least(shape, 1)
        return (*batch, n + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        *batch, n = at_least(shape, 1)
        return (*batch, n - 1)


def left(x: Tensor) -> Tensor:
    """The logarithms of how many shares are left after each. (..., n) -> (n)"""
    return arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()


def at_least(shape: Sequence[int], dims: int) -> tuple[int, ...]:
    """The shape, if it has so many dimensions."""
    if len(shape) < dims:
        raise ValueError(f"Too few dimensions on input: expected at least {dims}, got {len(shape)}")
    return tuple(shape)


# ---- matrices -------------------------------------------------------------------------------------------------------


class LowerCholeskyTransform(Transform):
    """Matrices without what is above the diagonal, and exp of that. (..., n, n) -> (..., n, n)"""

    domain, codomain = IndependentConstraint(real, 2), lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """L L^T of the factors L that LowerCholeskyTransform makes. (..., n, n) -> (..., n, n)"""

    domain, codomain = IndependentConstraint(real, 2), positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform()._inverse(cholesky(y))


class CorrCholeskyTransform(Transform):
    """Numbers as the Cholesky factor of a correlation matrix. (..., n (n - 1) / 2) -> (..., n, n)

    tanh of a number is what an element below the diagonal takes of what the elements before it left of its row.
    """

    domain, codomain, bijective = real_vector, corr_cholesky, True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        n = order(x.shape[-1])
        rows, columns = tril_indices(n, n, -1, device=x.device)
        part = x.new_zeros((*x.shape[:-1], n, n))
        part[..., rows, columns] = x.tanh().clamp(-1 + eps, 1 - eps)
        rest = (1 - part * part).sqrt().cumprod(-1)
        before = cat((rest.new_ones((*rest.shape[:-1], 1)), rest[..., :-1]), -1)
        return (part + eye(n, dtype=x.dtype, device=x.device)) * before

    def _inverse(self, y: Tensor) -> Tensor:
        below, before = self._below(y)
        part = below / before.sqrt()
        return (part.log1p() - (-part).log1p()) / 2

    def _below(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """The elements below the diagonal, and what those before each left of the sum of squares of its row."""
        rows, columns = tril_indices(y.shape[-1], y.shape[-1], -1, device=y.device)
        rest = 1 - (y * y).cumsum(-1)
        before = cat((rest.new_ones((*rest.shape[:-1], 1)), rest[..., :-1]), -1)
        return y[..., rows, columns], before[..., rows, columns]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        _, before = self._below(y)
        of_tanh = math.log(2.0) * 2 + 2 * logsigmoid(2 * x) - 2 * x
        return (of_tanh + 0.5 * before.log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        *batch, count = at_least(shape, 1)
        return (*batch, order(count), order(count))

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        *batch, n, m = at_least(shape, 2)
        if n != m:
            raise ValueError(f"Input is not square: {n} x {m}")
        return (*batch, n * (n - 1) // 2)


def order(count: int) -> int:
    """n, of ``n (n - 1) / 2`` numbers."""
    n = (1 + math.isqrt(1 + 8 * count)) // 2
    if n * (n - 1) // 2 != count:
        raise ValueError(f"Input is not a flattened lower-diagonal number: {count} is not n (n - 1) / 2")
    return n


# ---- several --------------------------------------------------------------------------------------------------------


class SeveralTransforms(Transform):
    """Transforms of parts of a tensor along a dimension."""

    transforms: list[Transform]
    dim: int

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    def parts(self, x: Tensor) -> list[Tensor]:
        """The parts of x, one for each transform."""
        raise NotImplementedError

    def join(self, parts: list[Tensor], dim: int) -> Tensor:
        """The parts in one."""
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        return self.join([t(part) for t, part in zip(self.transforms, self.parts(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.join([t._inv_call(part) for t, part in zip(self.transforms, self.parts(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        dims, found = self.event_dim, []
        for t, a, b in zip(self.transforms, self.parts(x), self.parts(y), strict=True):
            found.append(sum_last(t.log_abs_det_jacobian(a, b), dims - t.event_dim))
        dim = one_dim(x, self.dim, type(self).__name__)
        return self.join(found, dim) if dim < x.ndim - dims or not dims else sum(found[1:], found[0])


class CatTransform(SeveralTransforms):
    """Transforms of neighbouring ranges of ``dim``.

    Args:
        tseq: the transforms.
        lengths: of the ranges, by default 1 each.
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq]
        self.dim = dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    @property
    def length(self) -> int:
        """The length of ``dim``."""
        return sum(self.lengths)

    @property
    def domain(self) -> Any:
        return Cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return Cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def parts(self, x: Tensor) -> list[Tensor]:
        return list(x.split(self.lengths, self.dim))

    def join(self, parts: list[Tensor], dim: int) -> Tensor:
        return cat(parts, dim)


class StackTransform(SeveralTransforms):
    """Transforms of the slices of ``dim``.

    Args:
        tseq: the transforms, one for each slice.
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq]
        self.dim = dim

    @property
    def domain(self) -> Any:
        return Stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return Stack([t.codomain for t in self.transforms], self.dim)

    def parts(self, x: Tensor) -> list[Tensor]:
        return list(x.unbind(self.dim))

    def join(self, parts: list[Tensor], dim: int) -> Tensor:
        return stack(parts, dim)

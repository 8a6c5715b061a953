"""The set functions of the Python array API standard."""

from __future__ import annotations

from typing import Any, NamedTuple

from leafgrad.tensor import comparison, differences, statistics
from leafgrad.tensor.tensor import Tensor


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements."""
    found: Tensor = statistics.unique(x)
    return found


class UniqueAll(NamedTuple):
    """The distinct elements, where each is first, the number of each element's own, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The distinct elements, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The distinct elements, and for each element the number of its own among them."""

    values: Tensor
    inverse_indices: Tensor


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of ``x1``, or with ``invert`` not, is one of ``x2``."""
    return comparison.isin(x1, x2, invert=invert)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, with all that there is to know of them."""
    values, inverse, counts = statistics.unique(x, return_inverse=True, return_counts=True)
    order = comparison.argsort(inverse.reshape(-1), stable=True)
    return UniqueAll(values, order[differences.cumsum(counts, 0) - counts], inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements, and how often each occurs."""
    return UniqueCounts(*statistics.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and for each element the number of its own among them."""
    return UniqueInverse(*statistics.unique(x, return_inverse=True))

"""Shapes and dtypes without arrays: what rules for the shape of a result are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

Shape = tuple[int, ...]
PRECISE: Final = ("float32", "float64")  # dtypes in which sums are taken as they are; float16 is added up in float32


class Abstract(NamedTuple):
    """What is known of an array before it is made. ``dtype`` is a name, None for a number."""

    shape: Shape
    dtype: str | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def floating(self) -> bool:
        return self.dtype is not None and self.dtype.startswith("float")

    def like(self, shape: Iterable[int], dtype: str | None = None) -> Abstract:
        """An array of another shape, and of this one's dtype unless another is given."""
        return Abstract(tuple(shape), dtype or self.dtype)


def broadcast_shape(shapes: Iterable[Shape]) -> Shape:
    """The shape that shapes broadcast to. Raises ValueError."""
    found: list[int] = []
    for shape in shapes:
        found[:0] = [1] * (len(shape) - len(found))
        for i, n in enumerate(reversed(shape), 1):
            if n != found[-i] and 1 not in (n, found[-i]):
                raise ValueError(f"sizes {n} and {found[-i]} do not broadcast")
            if n != 1:
                found[-i] = n
    return tuple(found)


def reduced(source: Shape, target: Shape) -> Shape:
    """The dimensions of ``source`` along which an array of shape ``target`` was broadcast to it."""
    extra = len(source) - len(target)
    return (*range(extra), *[i + extra for i, n in enumerate(target) if n == 1 and source[i + extra] != 1])

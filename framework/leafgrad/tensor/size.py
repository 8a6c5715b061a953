"""``leafgrad.Size``, the type of ``Tensor.shape``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

from leafgrad import dtypes

of_ints = tuple.__new__
"""``of_ints(Size, sizes)`` is ``Size(sizes)`` without a look at what they are."""


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints that prints as ``leafgrad.Size([2, 3])``."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[int] = ()) -> Size:
        made = of_ints(cls, sizes)
        for i, n in enumerate(made):
            if type(n) is not int and not hasattr(type(n), "__index__"):
                raise TypeError(
                    f"{dtypes.namespace}.Size() takes an iterable of 'int' (item {i} is '{type(n).__name__}')"
                )
        return made

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Size: ...
    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return of_ints(Size, found) if key.__class__ is slice else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, other))

    def __mul__(self, count: SupportsIndex) -> Size:
        return of_ints(Size, tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{dtypes.namespace}.Size({list(self)})"

"""``leafgrad.Size``, the type of ``Tensor.shape``."""

from __future__ import annotations

import math

from leafgrad import dtypes


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints that prints as ``leafgrad.Size([2, 3])``."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"{dtypes.namespace}.Size({list(self)})"

"""Networks without numbers, whose weights come from a file: what that claims takes no memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.layers import Maker

Size = Any  # what NumPy takes for one


class Blank(NDArrayOperatorsMixin):
    """A shape in the place of an array, for elementwise functions."""

    def __init__(self, size: Size) -> None:
        self.shape = tuple(size) if isinstance(size, (tuple, list)) else (size,)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        if method != "__call__" or settings:
            return NotImplemented
        return Blank(np.broadcast_shapes(*[np.shape(x) if not isinstance(x, Blank) else x.shape for x in inputs]))


class Blanks:
    """Draws shapes instead of random numbers."""

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = ()) -> Blank:
        return Blank(size)

    uniform = normal

    def integers(self, high: int) -> int:
        return 0

    def random(self, size: Size = ()) -> Blank:
        return Blank(size)


class BlankMaker(Maker):
    """Makes parameters on the device "meta", and buffers that are no weights where they belong."""

    def __init__(self, dtype: Any, device: Any) -> None:
        blanks: Any = Blanks()
        super().__init__(blanks, dtype, device)

    def tensor(self, values: Any) -> Tensor:
        if not isinstance(values, Blank):
            return super().tensor(values)
        return leafgrad.empty(values.shape, dtype=self.dtype, device="meta")

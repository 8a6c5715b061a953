"""Python's operators, for every carrier that is not a raw array: Tensor and Symbol share them."""

from __future__ import annotations

from leafgrad.ops import elementwise as ew


class Operators:
    """Arithmetic and comparison operators in terms of ops."""

    __slots__ = ()

    # NumPy must leave ``ndarray * Tensor`` to the reflected operators instead of looping over elements.
    __array_ufunc__ = None

    __add__ = ew.add.function
    __radd__ = ew.add.reflected
    __sub__ = ew.sub.function
    __rsub__ = ew.sub.reflected
    __mul__ = ew.mul.function
    __rmul__ = ew.mul.reflected
    __truediv__ = ew.div.function
    __rtruediv__ = ew.div.reflected
    __neg__ = ew.neg.function

"""What all patterns are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leafgrad.compile.ir.graph import Equation
from leafgrad.lowering.expressions import FLOATS, held

if TYPE_CHECKING:
    from leafgrad.lowering.lowering import Lowering


class Pattern:
    """How one equation is lowered.

    Attributes:
        fixed: whether it fills all of its memory, or its result lies in another's: it cannot be made in a larger array.
    """

    fixed = False

    def fits(self, e: Equation) -> bool:
        """Whether C computes what the op does, for these dtypes."""
        return True

    def lower(self, low: Lowering, e: Equation) -> None:
        """Add the kernels of an equation."""
        raise NotImplementedError


def one_float(e: Equation) -> bool:
    """Whether all arrays are of one floating dtype."""
    kind = e.out.dtype
    return held(kind) in FLOATS and all(v.dtype == kind for v in (*e.values, *e.outputs))

"""How recurrences become C: with the columns of their matrix in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leafgrad.compile.ir.graph import Equation
from leafgrad.lowering import scan_patterns
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Copy, ScanStep
from leafgrad_native.blocks import lanes
from leafgrad_native.packed import block

if TYPE_CHECKING:
    from leafgrad.lowering.lowering import Lowering


class Recurrence(scan_patterns.Recurrence):
    """Steps along dimension 0, each from the one before, by panels of columns."""

    def arranged(self, low: Lowering, e: Equation, matrix: Form, rows: int) -> tuple[Form, tuple[Form, ...]]:
        panels = ordered(low, e, matrix)
        count, _, wide = panels.shape
        return panels, (full(Root((rows, count * wide), panels.root.dtype)),)


def scan(
    code: str,
    results: Sequence[str],
    carried: Sequence[str] = (),
    *,
    across: str,
    turned: bool = False,
    first: str | None = None,
    reverse: bool = False,
) -> Recurrence:
    """As in ``leafgrad.lowering.scan_patterns``."""
    return Recurrence(ScanStep(code, tuple(results), tuple(carried), across, turned, first, reverse))


def ordered(low: Lowering, e: Equation, matrix: Form) -> Form:
    """Copies of the columns of a matrix, as many side by side as a block of results has, and zeros beyond the last."""
    (height, width), kind = matrix.shape, matrix.root.dtype
    size = lanes(kind)
    step = block(-(-width // size))[0] * size
    panels = full(Root((-(-width // step), height, step), kind))
    whole, rest = divmod(width, step)
    for first, count, columns, fill in ((whole, 1, rest, 0), (0, whole, step, None)):
        if count * columns:
            source = matrix.part(((0, height, 1), (first * step, first * step + count * columns, 1)))
            target = panels.part(((first, first + count, 1), (0, height, 1), (0, columns, 1)))
            assert source is not None
            assert target is not None
            source = source.reshape((height, count, columns), None)
            assert source is not None
            low.add(Copy(e, (source.permute((1, 0, 2)),), target, fill))
    return panels

"""Arrays that are joined: where each part lies in the whole, and which parts are made there and need no copy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.lowering import forms
from leafgrad.lowering.forms import Form


def parts(equation: Equation, dim: int | None, out: Form) -> Iterator[Form]:
    """Where the inputs of a join along ``dim`` lie in its output; of None, their elements in a vector."""
    start = 0
    for v in equation.values:
        along, size = (0, math.prod(v.shape)) if dim is None else (dim, v.shape[dim])
        at = [(0, n, 1) for n in out.shape]
        at[along] = start, start + size, 1
        part = out.part(at)
        assert part is not None
        yield Form(part.root, v.shape, forms.row_major(v.shape, None), part.offset) if dim is None else part
        start += size


def places(
    joins: dict[Equation, int | None], axis: Callable[[Value], int | None], free: Callable[[Equation, int], bool]
) -> dict[Value, Form]:
    """The forms of values that are made as parts of a join, and of joins.

    Args:
        joins: the joins of a stage, in order, with the dimension of each.
        axis: the batch axis of a join's output.
        free: whether what makes the i-th input of a join may write elsewhere.
    """
    found: dict[Value, Form] = {}
    for equation in reversed(joins):  # a join may itself be a part of a later one
        out = found.setdefault(equation.out, forms.of(equation.out, axis(equation.out)))
        for i, (v, part) in enumerate(zip(equation.values, parts(equation, joins[equation], out), strict=True)):
            if v not in found and part.contiguous and free(equation, i):  # gaps would cut the loops of its maker short
                found[v] = part
    return found

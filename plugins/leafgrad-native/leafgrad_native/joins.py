"""Arrays that are joined: where each part lies in the whole, and which parts are made there and need no copy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from leafgrad.compile.graph import Equation, Value
from leafgrad_native import forms
from leafgrad_native.forms import Form

OPS = ("cat", "pack")


def parts(join: Equation, out: Form) -> Iterator[Form]:
    """Where the inputs of ``join`` lie in its output."""
    start = 0
    for v in join.values:
        dim, size = (join.params["dim"], v.shape[join.params["dim"]]) if join.name == "cat" else (0, math.prod(v.shape))
        at = [(0, n, 1) for n in out.shape]
        at[dim] = start, start + size, 1
        part = forms.part(out, at)
        assert part is not None
        yield part if join.name == "cat" else Form(part.root, v.shape, forms.row_major(v.shape, None), part.offset)
        start += size


def places(
    equations: Iterable[Equation], axis: Callable[[Value], int | None], free: Callable[[Equation, int], bool]
) -> dict[Value, Form]:
    """The forms of values that are made as parts of a join, and of joins.

    Args:
        equations: of a stage, in order.
        axis: the batch axis of a join's output.
        free: whether what makes the i-th input of a join may write elsewhere.
    """
    found: dict[Value, Form] = {}
    for join in [e for e in equations if e.name in OPS][::-1]:  # a join may itself be a part of a later one
        out = found.setdefault(join.out, forms.of(join.out, axis(join.out)))
        for i, (v, part) in enumerate(zip(join.values, parts(join, out), strict=True)):
            if v not in found and part.contiguous and free(join, i):  # gaps would cut the loops of its maker short
                found[v] = part
    return found

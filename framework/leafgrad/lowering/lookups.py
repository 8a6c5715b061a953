"""Elements read and written by index arrays: ``index``, ``gather``, their transposes, and what writes into a copy.

All are one loop over a line of elements, in order: each reads its place along some dimensions of a table from index
arrays, and has one of its own along the others. Negative indices count from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leafgrad.compile.ir.graph import Equation, Operand, Value
from leafgrad.lowering.expressions import FLOATS, held
from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import Index, Lookup
from leafgrad.ops.abstract import broadcast_shape


@dataclass(frozen=True)
class How:
    """Which arguments of an op are index arrays, and what is done with the elements that they name.

    Attributes:
        kind, dims, along: as ``patterns.lookup`` explains.
        at: the position of the first index array.
    """

    kind: str
    dims: tuple[int, ...]
    at: int
    along: bool

    def divided(self, inputs: Sequence[Operand]) -> tuple[list[Operand], list[Operand]]:
        """The inputs that are no index arrays, and those that are."""
        stop = self.at + 1 if self.along else len(inputs)
        return [*inputs[: self.at], *inputs[stop:]], list(inputs[self.at : stop])


def fits(equation: Equation, how: How) -> bool:
    """Whether the loop computes what the op does: not for sums of bools, and extremes of integers."""
    kind = equation.out.dtype
    sides, arrays = how.divided(equation.inputs)
    if any(v.dtype != kind for v in sides if isinstance(v, Value)):
        return False
    if any(not isinstance(v, Value) or held(v.dtype) in (*FLOATS, "bool") for v in arrays):
        return False
    return held(kind) in FLOATS or not (how.kind in ("max", "min") or (kind == "bool" and how.kind == "add"))


def lookup(equation: Equation, how: How, given: dict[Value, Form], out: Form) -> Lookup:
    """The kernel of an equation whose inputs lie as ``given`` says."""
    sides, at = how.divided(equation.inputs)
    x, *rest = [given[v] if isinstance(v, Value) else v for v in sides]
    assert isinstance(x, Form)
    table = x if how.kind == "read" else out
    line = out if how.kind == "read" else x if how.kind == "add" else rest[0]
    arrays = [given[v] for v in at if isinstance(v, Value)]
    seen, spread = (along if how.along else chosen)(table, arrays, how.dims)
    indices = []
    for d, form in zip(how.dims, spread, strict=True):
        step = table.strides[d]
        assert step is not None
        indices.append(Index(form, table.shape[d], step))
    if isinstance(line, Form):
        line = line.expand(seen.shape)
    sources = tuple(given[v] for v in equation.values)
    start = None if how.kind in ("read", "add") else x
    return Lookup(equation, sources, out, how.kind, seen, line, tuple(indices), start)


def along(table: Form, arrays: Sequence[Form], dims: Sequence[int]) -> tuple[Form, list[Form]]:
    """The table in the shape of the line, and the index array, for an op with a place of its own in each dimension."""
    (at,) = arrays
    strides = tuple(0 if d in dims else s for d, s in enumerate(table.strides))
    return Form(table.root, at.shape, strides, table.offset), [at]


def chosen(table: Form, arrays: Sequence[Form], dims: Sequence[int]) -> tuple[Form, list[Form]]:
    """The same for an op whose index arrays stand where the chosen dimensions stood, or first if those are apart."""
    common = broadcast_shape(a.shape for a in arrays)
    kept = [d for d in range(len(table.shape)) if d not in dims]
    first = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    before, after = kept[:first], kept[first:]
    shape = (*(table.shape[d] for d in before), *common, *(table.shape[d] for d in after))
    strides = (*(table.strides[d] for d in before), *[0] * len(common), *(table.strides[d] for d in after))
    spread = []
    for a in arrays:
        tail = len(after)
        form = Form(a.root, (*a.shape, *[1] * tail), (*a.strides, *[0] * tail), a.offset)
        spread.append(form.expand(shape))
    return Form(table.root, shape, strides, table.offset), spread

"""Elements read and written by index arrays: ``index``, ``gather``, their transposes, and what writes into a copy.

All are one loop over a line of elements, in order: each reads its place along some dimensions of a table from index
arrays, and has one of its own along the others. Negative indices count from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leafgrad.compile.ir.graph import Equation, Operand, Value
from leafgrad_native.blocks import short
from leafgrad_native.expressions import FLOATS, literal
from leafgrad_native.forms import Form
from leafgrad_native.kernels import Index, Lookup
from leafgrad_native.strides import collapsed
from leafgrad_native.writer import SIMD, Writer


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
    if any(not isinstance(v, Value) or v.dtype in (*FLOATS, "bool") for v in arrays):
        return False
    return kind in FLOATS or not (how.kind in ("max", "min") or (kind == "bool" and how.kind == "add"))


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
    common = np.broadcast_shapes(*[a.shape for a in arrays])
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


# ---- as C -----------------------------------------------------------------------------------------------------------


def write(w: Writer, lookup: Lookup) -> None:
    """All indices are looked at before anything is written; one out of range fails the program."""
    check(w, lookup)
    if lookup.start is not None:
        w.elements(lookup.target.shape, lookup.target.axis, [lookup.start, lookup.target], lambda x, o: f"{o} = {x};")
    elif lookup.kind == "add":
        w.fill(lookup.target, 0.0)
    elements(w, lookup)


def check(w: Writer, lookup: Lookup) -> None:
    w.add("int wrong = 0;")
    for index in lookup.indices:
        at = index.form
        own = tuple(1 if s == 0 else n for n, s in zip(at.shape, at.strides, strict=True))
        below, above = f"((int64_t){{0}} < -{index.size}L)", f"((int64_t){{0}} >= {index.size}L)"
        text = f"wrong |= {below} | {above};"
        w.elements(own, at.axis, [Form(at.root, own, at.strides, at.offset)], text.format, " reduction(| : wrong)")
    w.add("if (wrong) return 1;")


def elements(w: Writer, lookup: Lookup) -> None:
    """The line in order, so that sums have the same digits as NumPy's, and the last of several writes stays."""
    table, line, indices = lookup.table, lookup.line, lookup.indices
    arrays = [table, *([line] if isinstance(line, Form) else []), *(i.form for i in indices)]
    axis = next((f.axis for f in arrays if f.axis is not None), None)
    dims, strides = collapsed(table.shape, axis, [f.strides for f in arrays])
    step = dict(zip(arrays, strides, strict=True))
    variables = [f"i{k}" for k in range(len(dims))]
    depth = max((k + 1 for i in indices for k, s in enumerate(step[i.form]) if s), default=0)
    varies = depth == len(dims) if axis is None else any(i.form.axis is not None for i in indices)
    simd = lookup.kind == "read" or not varies  # else the innermost loop may write to one place several times
    places = [f"t{a}" for a in range(len(indices))]

    def find(batched: bool) -> None:
        """The places that the index arrays name, as soon as the loops around know them."""
        for t, index in zip(places, indices, strict=True):
            if (index.form.axis is not None) == batched:
                w.add(f"const long {t}_ = (long){w.at(index.form, step[index.form], variables)};")
                w.add(f"const long {t} = {t}_ < 0 ? {t}_ + {index.size} : {t}_;")

    for k, n in enumerate(dims):
        if k == depth:
            find(batched=False)
        w.loop(variables[k], n, simd=SIMD if simd and axis is None and k == len(dims) - 1 else None)
    if depth == len(dims):
        find(batched=False)
    if axis is not None:
        w.loop("p", w.chunk, stop="m", simd=SIMD if simd else None)
        find(batched=True)
    place = w.at(table, [*step[table], *(i.step for i in indices)], [*variables, *places])
    kind = table.root.dtype
    other = w.at(line, step[line], variables) if isinstance(line, Form) else literal(line, kind)
    w.add(statement(lookup, place, other, kind))
    w.close(len(dims) + (axis is not None))


def statement(lookup: Lookup, place: str, other: str, kind: str) -> str:
    """What happens to one element of the table and one of the line."""
    match lookup.kind:
        case "read":
            return f"{other} = {place};"
        case "add":
            return f"{place} += {other};"
        case "write":
            return f"{place} = {other};"
        case _:
            return f"{place} = lg_{lookup.kind}imum_{short(kind)}({place}, {other});"

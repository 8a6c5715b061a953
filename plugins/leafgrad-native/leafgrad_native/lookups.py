"""Elements read and written by index arrays, as C: one loop over a line of elements, in order."""

from __future__ import annotations

from leafgrad.lowering.expressions import literal
from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import Lookup
from leafgrad.lowering.strides import collapsed
from leafgrad_native.blocks import short
from leafgrad_native.writer import SIMD, CWriter


def write(w: CWriter, lookup: Lookup) -> None:
    """All indices are looked at before anything is written; one out of range fails the program."""
    check(w, lookup)
    if lookup.start is not None:
        w.elements(lookup.target.shape, lookup.target.axis, [lookup.start, lookup.target], lambda x, o: f"{o} = {x};")
    elif lookup.kind == "add":
        w.fill(lookup.target, 0.0)
    elements(w, lookup)


def check(w: CWriter, lookup: Lookup) -> None:
    w.add("int wrong = 0;")
    for index in lookup.indices:
        at = index.form
        own = tuple(1 if s == 0 else n for n, s in zip(at.shape, at.strides, strict=True))
        below, above = f"((int64_t){{0}} < -{index.size}L)", f"((int64_t){{0}} >= {index.size}L)"
        text = f"wrong |= {below} | {above};"
        w.elements(own, at.axis, [Form(at.root, own, at.strides, at.offset)], text.format, " reduction(| : wrong)")
    w.add("if (wrong) return 1;")


def elements(w: CWriter, lookup: Lookup) -> None:
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

"""Kernels that read and write where index arrays say. An index out of range sets the program's flag."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leafgrad.lowering.expressions import HELD, literal
from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import Index, Lookup, Select
from leafgrad.lowering.strides import collapsed
from leafgrad_cuda.along import SUFFIX
from leafgrad_cuda.walks import walks
from leafgrad_cuda.writer import ITEMS, Failure, Item, Refused, Task

FEW = 64  # indices of a line that each element of a table looks at


def select(w: Item, select: Select) -> Task:
    """Reads or writes the class that the target names."""
    x, target = select.sources
    out, dim = select.target, select.dim
    scores, single = (x, out) if select.reads else (out, x)
    rest = [k for k in range(len(target.shape)) if k != target.axis and target.shape[k] != 1]
    names = [f"o{k}" for k in rest]
    batched = target.axis is not None
    count = w.decode(names, [target.shape[k] for k in rest], points=batched)
    others = [s for k, s in enumerate(scores.strides) if k != dim]
    w.add(f"const int64_t at = {w.at(target, [target.strides[k] for k in rest], names)};")
    w.add(f"const int skip = at == {select.ignore}LL;")
    w.add(f"if (!skip && (at < 0 || at >= {scores.shape[dim]})) {{ lg_fail(flag, what, at); return; }}")
    w.add("const INDEX chosen = skip ? 0 : (INDEX)at;")
    place = w.at(scores, [*(others[k] for k in rest), scores.strides[dim]], [*names, "chosen"])
    other = w.at(single, [single.strides[k] for k in rest], names)
    kind = HELD[scores.root.dtype]
    w.add(f"{other} = skip ? 0 : ({kind}){place};" if select.reads else f"if (!skip) {place} = {other};")
    failure = Failure(select.maker, IndexError, f"class {{index}} is out of range for {scores.shape[dim]} classes")
    seen = [(f, [f.strides[k] for k in rest], ()) for f in (target, single)]
    found = walks(
        [target.shape[k] for k in rest],
        [*seen, (scores, [others[k] for k in rest], [(scores.strides[dim], scores.shape[dim])])],
    )
    return w.task(count, select.sources, [out], again=not select.reads, failures=[failure], walks=found)


def look_up(w: Item, lookup: Lookup) -> Task:
    """One element of the line, or, where several may meet in one place of the table, all that may, in order."""
    table, line, indices = lookup.table, lookup.line, lookup.indices
    arrays = [table, *([line] if isinstance(line, Form) else []), *(i.form for i in indices)]
    axis = next((f.axis for f in arrays if f.axis is not None), None)
    if axis is not None and lookup.kind != "read" and table.root.axis is None:
        raise Refused(lookup.equation, "points of a chunk write into one array")
    dims, strides = collapsed(table.shape, axis, [f.strides for f in arrays])
    step = dict(zip(arrays, strides, strict=True))
    apart = [lookup.kind == "read" or bool(step[table][k]) for k in range(len(dims))]  # in places of their own
    variables = [f"i{k}" for k in range(len(dims))]
    items = [k for k in range(len(dims)) if apart[k]]
    count = w.decode([variables[k] for k in items], [dims[k] for k in items], points=axis is not None)
    inside = [k for k in range(len(dims)) if not apart[k]]
    w.loops([variables[k] for k in inside], [dims[k] for k in inside])
    places = named(w, indices, step, variables)
    place = w.at(table, [*step[table], *(i.step for i in indices)], [*variables, *places])
    kind = table.root.dtype
    other = w.at(line, step[line], variables) if isinstance(line, Form) else literal(line, kind)
    w.add(statement(lookup.kind, place, other, kind))
    w.close(len(inside))
    reads = [*lookup.inputs, *(i.form for i in indices)]
    return w.task(count, reads, [lookup.target], again=lookup.kind != "read", failures=failures(lookup),
                  operations=math.prod(dims[k] for k in inside))  # fmt: skip


def sought(w: Item, lookup: Lookup) -> Task | None:
    """Each element of a table looks for itself among the indices of its line, if these are few, and takes in order what
    they bring; so there are as many items as elements, and no other task need make them first.
    """
    table, line, indices, kind = lookup.table, lookup.line, lookup.indices, lookup.table.root.dtype
    arrays = [table, *([line] if isinstance(line, Form) else []), *(i.form for i in indices)]
    dims, strides = collapsed(table.shape, None, [f.strides for f in arrays])
    step, variables = dict(zip(arrays, strides, strict=True)), [f"i{k}" for k in range(len(dims))]
    apart, inside = ([k for k in range(len(dims)) if bool(step[table][k]) == own] for own in (True, False))
    lengths, few = [*(dims[k] for k in apart), *(i.size for i in indices)], math.prod(dims[k] for k in inside)
    elements = math.prod(lengths)
    if lookup.kind == "read" or w.chunk or elements != table.root.lanes or few > FEW or few * elements > FEW * ITEMS:
        return None
    own = [f"e{a}" for a in range(len(indices))]
    mine, steps = [*(variables[k] for k in apart), *own], [*(step[table][k] for k in apart), *(i.step for i in indices)]
    w.decode(mine, lengths)
    place = w.at(table, steps, mine)
    w.add(f"{HELD[kind]} total = {'0' if lookup.start is None else place};")
    w.loops([variables[k] for k in inside], [dims[k] for k in inside])
    here = " && ".join(f"{t} == {e}" for t, e in zip(named(w, indices, step, variables), own, strict=True))
    other = w.at(line, step[line], variables) if isinstance(line, Form) else literal(line, kind)
    w.add(f"if ({here}) {statement(lookup.kind, 'total', other, kind)}")
    w.close(len(inside))
    w.add(f"{place} = total;")
    reads = [*lookup.inputs, *(i.form for i in indices)]
    return w.task(elements, reads, [lookup.target], again=lookup.start is not None, failures=failures(lookup),
                  operations=3 * few, terms=few, walks=walks(lengths, [(table, steps, ())]))  # fmt: skip


def named(w: Item, indices: Sequence[Index], step: dict[Form, tuple[int, ...]], variables: Sequence[str]) -> list[str]:
    """Variables for what index arrays name, counted from the front, where that is there."""
    names = [f"t{a}" for a in range(len(indices))]
    for k, (t, index) in enumerate(zip(names, indices, strict=True)):
        w.add(f"const int64_t {t}_ = (int64_t){w.at(index.form, step[index.form], variables)};")
        w.add(f"if ({t}_ < -{index.size} || {t}_ >= {index.size}) {{ lg_fail(flag, what + {k}, {t}_); return; }}")
        w.add(f"const INDEX {t} = (INDEX)({t}_ < 0 ? {t}_ + {index.size} : {t}_);")
    return names


def failures(lookup: Lookup) -> list[Failure]:
    text = "index {{index}} is out of bounds for size {}".format
    return [Failure(lookup.maker, IndexError, text(i.size)) for i in lookup.indices]


def statement(how: str, place: str, other: str, kind: str) -> str:
    """What happens to one element of the table and one of the line."""
    match how:
        case "read":
            return f"{other} = {place};"
        case "add":
            return f"{place} += {other};"
        case "write":
            return f"{place} = {other};"
        case _:
            return f"{place} = lg_{how}imum{SUFFIX[kind]}({place}, {other});"

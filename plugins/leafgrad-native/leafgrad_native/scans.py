"""Recurrences as C: at each step a product with one matrix, whose columns lie in order from the start, and elements.

Rows, the sequences of a batch, are independent, so threads share them and each takes its own through all steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from leafgrad.lowering import expressions
from leafgrad.lowering.expressions import C_TYPES
from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import LOOK, Scan
from leafgrad.lowering.strides import linear
from leafgrad_native.blocks import accumulated, accumulators, blocks, lanes, stored
from leafgrad_native.packed import block
from leafgrad_native.writer import SIMD, CWriter


def write(w: CWriter, scan: Scan) -> None:
    """All steps for the rows of a thread."""
    steps, rows, _ = scan.target.shape
    most = block(product(scan).shape[1] // lanes(scan.target.root.dtype))[1]
    size, more = divmod(rows, -(-rows // most))
    start, stop = w.ends(-(-rows // most))
    w.add(f"const long begin = {start}, end = {stop};")
    first, last = (f"{u} * {size} + ({u} < {more} ? {u} : {more})" for u in ("begin", "end"))
    w.add(f"const long lg_first_row = {first}, lg_last_row = {last};")
    begun(w, scan)
    w.loop("lg_s", steps)
    w.add(f"const long lg_t = {f'{steps - 1} - lg_s' if scan.step.reverse else 'lg_s'};")
    multiplied(w, scan, blocks(rows, most))
    elements(w, scan)
    stepped(w, scan)
    w.close(3)


def product(scan: Scan) -> Form:
    """Memory for the matrix times what the step before left."""
    return scan.scratch[0]


def elements(w: CWriter, scan: Scan) -> None:
    """Open the loops over a thread's rows and their elements."""
    w.open("for (long lg_r = lg_first_row; lg_r < lg_last_row; lg_r++) {")
    w.add(SIMD)
    w.open(f"for (long lg_j = 0; lg_j < {scan.hidden}; lg_j++) {{")


def stepped(w: CWriter, scan: Scan) -> None:
    """The statements of a step, which know arrays as macros of a part."""
    known = {**scan.known, "across": product(scan)}
    macros = {f"{name}(part)": element(w, scan, form, "(part)") for name, form in known.items()}
    macros |= {name: element(w, scan, form) for name, form in scan.carried.items()}
    macros["real"] = C_TYPES[scan.target.root.dtype]
    for name, text in macros.items():
        w.add(f"#define {name} {text}")
    for line in expressions.statements(scan.maker, scan.step.code).splitlines():
        w.add(line.strip())
    for name in macros:
        w.add(f"#undef {name.partition('(')[0]}")


def element(w: CWriter, scan: Scan, form: Form, part: str | None = None) -> str:
    """An array's element at this step, row and place, in a part of its last dimension."""
    *steps, last = (s or 0 for s in form.strides)
    variables = ["lg_t", "lg_r"][2 - len(steps) :]
    if part is not None:
        steps, variables = [*steps, last * scan.hidden], [*variables, part]
    return w.at(form, [*steps, last], [*variables, "lg_j"])


def begun(w: CWriter, scan: Scan) -> None:
    """What is carried, before the first step: the argument of this name, or 0."""
    if scan.carried:
        elements(w, scan)
        for name, form in scan.carried.items():
            given = scan.arrays.get(name)
            start = "0" if given is None else element(w, scan, given)
            w.add(f"{element(w, scan, form)} = {start};")
        w.close(2)


def multiplied(w: CWriter, scan: Scan, cut: Sequence[tuple[int, int]]) -> None:
    """``across``: the matrix times the first result of the step before, or times what comes first."""
    panels, (_, columns), t = scan.matrix, product(scan).shape, C_TYPES[scan.target.root.dtype]
    time, *steps = (s or 0 for s in scan.target.strides)
    earlier = "(lg_t + 1)" if scan.step.reverse else "(lg_t - 1)"
    before = f"{w.names[scan.target.root]} + {linear(scan.target.offset, [time], [earlier])}"
    if scan.step.first is None:
        rows = f"{w.names[product(scan).root]} + lg_first_row * {columns}L"
        w.add(f"if (!lg_s) memset({rows}, 0, (lg_last_row - lg_first_row) * {columns}L * sizeof({t}));")
        w.open("else {")
        w.add(f"const {t} *from = {before}; const long by = {steps[0]}, next = {steps[1]};")
    else:
        first = scan.arrays[scan.step.first]
        by, following = (f"lg_s ? {s} : {f or 0}" for s, f in zip(steps, first.strides, strict=True))
        w.open()
        w.add(f"const {t} *from = lg_s ? {before} : {w.row(first, [], [])};")
        w.add(f"const long by = {by}, next = {following};")
    w.loop("panel", panels.shape[0])
    w.add(f"const {t} *column = {w.names[panels.root]} + panel * {math.prod(panels.shape[1:])}L;")
    unit = row = 0
    for height, count in cut:
        start, stop = f"(begin > {unit} ? begin : {unit})", f"(end < {unit + count} ? end : {unit + count})"
        if w.inside[-1] > LOOK:
            start, stop = w.stretches(start, stop, max(1, LOOK // (height * math.prod(panels.shape[1:]))))
        w.open(f"for (long u = {start}; u < {stop}; u++) {{")
        w.add(f"const long r = {row} + (u - {unit}) * {height};")
        rows_of(w, scan, height)
        w.close()
        unit, row = unit + count, row + height * count
    w.close(2)


def rows_of(w: CWriter, scan: Scan, height: int) -> None:
    """So many rows of the product with a panel, from row r on."""
    kind, (_, inner, wide) = scan.target.root.dtype, scan.matrix.shape
    t, columns, out = C_TYPES[kind], product(scan).shape[1], w.names[product(scan).root]
    vectors, rows = wide // lanes(kind), range(height)
    w.add(accumulators(kind, height, vectors))
    w.open(f"for (long k = 0; k < {inner}; k++) {{")
    for line in accumulated(kind, [f"from[(r + {r}) * by + k * next]" for r in rows], vectors, f"column + k * {wide}"):
        w.add(line)
    w.close()
    w.add(f"{t} *to = {out} + r * {columns}L + panel * {wide};")
    for r in rows:
        w.add(stored(kind, r, vectors, f"to + {r * columns}"))

"""Recurrences: at each step an item computes its element of a row, from what all of the row left at the one before.

Rows, the sequences of a batch, are independent: a block takes its own through all steps, with a barrier after each.
"""

from __future__ import annotations

from leafgrad.lowering import expressions
from leafgrad.lowering.expressions import HELD
from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import Scan
from leafgrad_cuda.writer import Item, Task


def scan(w: Item, scan: Scan) -> Task:
    """The step ``s`` of element ``i``."""
    count, rows, inner = scan.target.shape
    hidden, step, t = scan.hidden, scan.step, HELD[scan.target.root.dtype]
    parts = scan.matrix.shape[1] // hidden
    w.add(f"const INDEX lg_r = i / {hidden}, lg_j = i % {hidden};")
    w.add(f"const INDEX lg_t = {f'{count - 1} - s' if step.reverse else 's'};")
    w.add(f"{t} lg_a[{parts}] = {{0}};")
    times, *rest = scan.target.strides
    w.open("if (s) {")
    multiplied(w, scan, w.at(scan.target, [times, *rest], [f"(lg_t {'+' if step.reverse else '-'} 1)", "lg_r", "k"]))
    w.close()
    if step.first is not None:
        first = scan.arrays[step.first]
        w.open("else {")
        multiplied(w, scan, w.at(first, first.strides, ["lg_r", "k"]))
        w.close()
    for name, form in scan.carried.items():
        given = scan.arrays.get(name)
        w.add(f"if (!s) {element(w, scan, form)} = {'0' if given is None else element(w, scan, given)};")
    macros = {f"{name}(part)": element(w, scan, form, "(part)") for name, form in scan.known.items()}
    macros |= {name: element(w, scan, form) for name, form in scan.carried.items()}
    macros |= {"across(part)": "lg_a[part]", "real": t}
    w.lines += [f"#define {name} {text}" for name, text in macros.items()]
    w.open("{")
    for line in expressions.statements(scan.maker, step.code).splitlines():
        w.add(line.strip())
    w.close()
    w.lines += [f"#undef {name.partition('(')[0]}" for name in macros]
    writes = [*scan.made.values(), *scan.carried.values()]
    work = count * (2 * inner * parts + 20 * parts)
    reads = [*scan.sources, *writes]
    return w.task(rows * hidden, reads, writes, operations=work, steps=count, row=hidden)


def multiplied(w: Item, scan: Scan, left: str) -> None:
    """``across``: a row, of which ``left`` is element k, times the columns of the matrix."""
    matrix = scan.matrix
    w.loop("k", matrix.shape[0])
    w.add(f"const {HELD[matrix.root.dtype]} lg_x = {left};")
    for part in range(matrix.shape[1] // scan.hidden):
        column = w.at(matrix, matrix.strides, ["k", "lg_j"], str(part * scan.hidden * int(matrix.strides[1] or 0)))
        w.add(f"lg_a[{part}] += lg_x * {column};")
    w.close()


def element(w: Item, scan: Scan, form: Form, part: str | None = None) -> str:
    """An array's element at this step, row and place, in a part of its last dimension."""
    *steps, last = (int(s or 0) for s in form.strides)
    variables = ["lg_t", "lg_r"][2 - len(steps) :]
    if part is not None:
        steps, variables = [*steps, last * scan.hidden], [*variables, part]
    return w.at(form, [*steps, last], [*variables, "lg_j"])

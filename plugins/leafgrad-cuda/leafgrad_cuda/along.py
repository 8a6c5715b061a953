"""Kernels that walk along dimensions: reductions, softmax and its kin, an op's own statements."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from leafgrad.lowering import expressions
from leafgrad.lowering.expressions import FLOATS, HELD, held, literal
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Lines, Normalize, Ranked, Reduce
from leafgrad_cuda.walks import Walk, walks
from leafgrad_cuda.writer import ITEMS, Item, Refused, Task

RUN = 64  # elements of a whole array that an item of a reduction takes, if there are not enough other items
SUFFIX = {"float16": "_f32", "float32": "_f32", "float64": "_f64"}
ENDS = {"float": (-math.inf, math.inf), "bool": (0, 1), "uint8": (0, 255)}


def start(kind: str, dtype: str) -> str:
    """Where a reduction begins."""
    if not kind.isalpha():
        return literal(kind == "*", dtype)
    bits = int(re.sub(r"\D", "", dtype) or 0)
    ends = ENDS.get(dtype) or (ENDS["float"] if held(dtype) in FLOATS else (-(1 << bits - 1), (1 << bits - 1) - 1))
    return literal(ends[kind == "min"], dtype)


def combine(w: Item, kind: str, x: str, dtype: str) -> None:
    """One more element of a reduction."""
    if kind.isalpha() and dtype in SUFFIX:
        w.add(f"total = lg_{kind}imum{SUFFIX[dtype]}(total, {x});")
    elif kind.isalpha():
        w.add(f"const {HELD[dtype]} x_ = {x};\n    total = x_ {'>' if kind == 'max' else '<'} total ? x_ : total;")
    else:
        w.add(f"total = total {kind} {x};")


def worded(reduce: Reduce, text: str, x: str, dtype: str) -> str:
    """What is taken of an element, or becomes of a result, ``x`` of this dtype."""
    if text == "x":
        return x
    kind = held(dtype)
    return f"({expressions.worded(text, {**expressions.numbers(reduce.maker, kind), 'x': f'({x})'}, kind)})"


def reduce(item: Callable[[], Item], reduce: Reduce) -> list[Task]:
    """Sums, products and extremes over dimensions."""
    (x,), out = reduce.sources, reduce.target
    if reduce.total and reduce.then != "x":
        raise Refused(reduce.equation, "what becomes of the sum over a batch is not a sum of what becomes of its parts")
    outer = [k for k, n in enumerate(x.shape) if k not in reduce.dims and k != x.axis and n != 1]
    inner = [k for k in reduce.dims if k != x.axis and x.shape[k] != 1]
    length = math.prod(x.shape[k] for k in inner)
    if x.axis is None and length >= 2 * RUN and math.prod(x.shape[k] for k in outer) < ITEMS:
        return in_runs(item, reduce, outer, inner, length)
    w = item()
    outs, ins = [f"o{k}" for k in outer], [f"i{k}" for k in inner]
    batched = x.axis is not None and not reduce.total
    count = w.decode(outs, [x.shape[k] for k in outer], points=batched)
    dtype = out.root.dtype
    w.add(f"{HELD[dtype]} total = {start(reduce.kind, dtype)};")
    w.loops(ins, [x.shape[k] for k in inner])
    if reduce.total:
        w.loop("p", "n")
    read = w.at(x, [x.strides[k] for k in (*outer, *inner)], [*outs, *ins])
    combine(w, reduce.kind, worded(reduce, reduce.each, read, x.root.dtype), dtype)
    w.close(len(inner) + reduce.total)
    work = length * (w.chunk if reduce.total else 1)
    found = walks(
        [x.shape[k] for k in outer], [(x, [x.strides[k] for k in outer], [(x.strides[k], x.shape[k]) for k in inner])]
    )
    return [finished(w, reduce, outs, count, [x, out] if reduce.total else [x], work, found)]


def added(item: Callable[[], Item], parts: Form, out: Form) -> list[Task]:
    """The sum of parts over their first dimension."""
    return reduce(item, Reduce(None, (parts,), out, (0,), False, "+", False))


def finished(
    w: Item, reduce: Reduce, outs: list[str], count: int, reads: list[Form], work: int, found: dict[Root, Walk]
) -> Task:
    """What becomes of an item's total."""
    out = reduce.target
    targets = [s for s, n in zip(out.strides, out.shape, strict=True) if n != 1 and s is not None]
    mean = math.prod(reduce.sources[0].shape[k] for k in reduce.dims)
    divided = f" / {mean}" if reduce.mean and not reduce.total else ""
    total = worded(reduce, reduce.then, "total", out.root.dtype)
    w.add(f"{w.at(out, targets, outs)} {'+' if reduce.total else ''}= {total}{divided};")
    lengths = [n for n, s in zip(out.shape, out.strides, strict=True) if n != 1 and s is not None]
    return w.task(
        count, reads, [out], operations=work, terms=work, walks={**found, **walks(lengths, [(out, targets, ())])}
    )


def in_runs(item: Callable[[], Item], reduce: Reduce, outer: list[int], inner: list[int], length: int) -> list[Task]:
    """A long reduction: an item takes every so many-th element, then of what these gave, until one is left.

    The order does not depend on how many threads there are, and neighbours read neighbours.
    """
    (x,), dtype = reduce.sources, reduce.target.root.dtype
    lengths, outs = [x.shape[k] for k in outer], [f"o{k}" for k in outer]
    near = [abs(int(x.strides[k[-1]] or 0)) for k in (inner, outer) if k]
    fast = near[0] == min(near)  # neighbouring items are of one total, or of neighbouring ones
    tasks: list[Task] = []
    source, runs = x, length
    while runs > 1:
        w, terms = item(), runs
        runs = -(-terms // RUN)
        cut = ["run"] if runs > 1 else []
        order = [*zip(outs, lengths, strict=True)]
        order = [*order, *[("run", runs) for _ in cut]] if fast else [*[("run", runs) for _ in cut], *order]
        count = w.decode([name for name, _ in order], [n for _, n in order])
        w.add(f"{HELD[dtype]} total = {start(reduce.kind, dtype)};")
        w.open(f"for (INDEX k = {'run' if cut else 0}; k < {terms}; k += {runs}) {{")
        if source is x:
            ins = [f"i{k}" for k in inner]
            w.split("k", ins, [x.shape[k] for k in inner])
            read = w.at(x, [x.strides[k] for k in (*outer, *inner)], [*outs, *ins])
            read = worded(reduce, reduce.each, read, x.root.dtype)
        else:
            read = w.at(source, source.strides, [*outs, "k"] if fast else ["k", *outs])
        combine(w, reduce.kind, read, dtype)
        w.close()
        if not cut:
            found = walks(lengths, [(source, source.strides[:-1], [(1, terms)])]) if fast else {}
            return [*tasks, finished(w, reduce, outs, count, [source], terms, found)]
        partial = full(Root((*lengths, runs) if fast else (runs, *lengths), held(dtype)))
        w.add(f"{w.name(partial.root)}[i] = total;")
        found = {}
        if fast:
            inside = [(x.strides[k], x.shape[k]) for k in inner] if source is x else [(1, terms)]
            steps = [x.strides[k] for k in outer] if source is x else source.strides[:-1]
            found = walks([*lengths, runs], [(source, [*steps, 0], inside)]) | {partial.root: Walk(count, 0)}
        tasks.append(
            w.task(count, [source], [partial], operations=-(-terms // runs), terms=-(-terms // runs), walks=found)
        )
        source = partial
    raise AssertionError("a long reduction has many terms")


def normalize(w: Item, normalize: Normalize) -> Task:
    """softmax, log_softmax and logsumexp: the largest element, the sum of exponentials, the results."""
    (x,), out = normalize.sources, normalize.target
    kept = [k for k in range(len(x.shape)) if k not in normalize.dims and k != x.axis and x.shape[k] != 1]
    along = [k for k in normalize.dims if x.shape[k] != 1]
    outs, ins, lengths = [f"o{k}" for k in kept], [f"i{k}" for k in along], [x.shape[k] for k in along]
    f = SUFFIX[x.root.dtype]
    count = w.decode(outs, [x.shape[k] for k in kept], points=x.axis is not None)
    read = w.at(x, [x.strides[k] for k in (*kept, *along)], [*outs, *ins])

    def each(statement: str) -> None:
        w.loops(ins, lengths)
        w.add(statement)
        w.close(len(ins))

    w.add(f"{HELD[x.root.dtype]} top = -INFINITY, sum = 0;")
    each(f"top = lg_maximum{f}(top, {read});")
    if normalize.kind == "logsumexp":
        w.add("if (top - top != 0) top = top == top ? 0 : top;")
    each(f"sum += lg_exp{f}({read} - top);")
    if normalize.kind == "logsumexp":
        steps = [s for s, n in zip(out.strides, out.shape, strict=True) if n != 1 and s is not None]
        w.add(f"{w.at(out, steps, outs)} = lg_log{f}(sum) + top;")
    else:
        write = w.at(out, [out.strides[k] for k in (*kept, *along)], [*outs, *ins])
        if normalize.kind == "softmax":
            w.add("sum = 1 / sum;")
            each(f"{write} = lg_exp{f}({read} - top) * sum;")
        else:
            w.add(f"top += lg_log{f}(sum);")
            each(f"{write} = {read} - top;")
    found = walks(
        [x.shape[k] for k in kept],
        [
            (f, [f.strides[k] for k in kept], [(f.strides[k], x.shape[k]) for k in along])
            for f in [x, *([out] if len(out.shape) == len(x.shape) else [])]
        ],
    )
    return w.task(count, [x], [out], operations=25 * math.prod(lengths), terms=3 * math.prod(lengths), walks=found)


def lines(w: Item, lines: Lines) -> Task:
    """The statements of an op's author for one line."""
    count = statements(w, lines, [])
    return w.task(count, lines.sources, [lines.target], operations=10 * lines.sources[0].shape[lines.dim])


def ranked(w: Item, ranked: Ranked) -> Task:
    """The statements of an op's author for one element, after it was compared with all of its line."""
    (name,) = ranked.maker.op.signature.arguments
    first, second = ("mine_", "other_") if ranked.descending else ("other_", "mine_")
    less = "({0} < {1} || ({0} == {0} && {1} != {1}))".format
    count = statements(w, ranked, [
        f"const real mine_ = {name}(at);",
        "long rank = 0, nans = 0;",
        "for (long j_ = 0; j_ < n; j_++) {",
        f"    const real other_ = {name}(j_);",
        f"    rank += {less(first, second)} || (!{less(second, first)} && j_ < at);",
        "    nans += other_ != other_;",
        "}",
    ])  # fmt: skip
    return w.task(count, ranked.sources, [ranked.target], operations=6 * ranked.sources[0].shape[ranked.dim])


def statements(w: Item, kernel: Lines | Ranked, before: Sequence[str]) -> int:
    """Statements in which arguments and result are macros of an index; how many items there are.

    An item is a line, or, of what is ranked, the element ``at`` of one.
    """
    shape, out, dim = kernel.sources[0].shape, kernel.target, kernel.dim
    axis = next((x.axis for x in (*kernel.sources, out) if x.axis is not None), None)
    outer = [k for k in range(len(shape)) if k not in (dim, axis)]
    items = sorted([*outer, dim]) if isinstance(kernel, Ranked) else outer
    outs = [f"o{k}" for k in outer]
    count = w.decode(["at" if k == dim else f"o{k}" for k in items], [shape[k] for k in items], points=axis is not None)
    gone = len(out.shape) < len(shape)
    strides = [*out.strides[:dim], 0, *out.strides[dim:]] if gone else list(out.strides)
    macros = {**dict(zip(kernel.maker.op.signature.arguments, kernel.sources, strict=True)), "out": out}
    known = {}
    for name, form in macros.items():
        steps = strides if form is out else form.strides
        known[name] = w.at(form, [steps[k] for k in (*outer, dim)], [*outs, "(k_)"])
    w.lines.append(f"#define real {HELD[kernel.sources[0].root.dtype]}")
    w.lines += [f"#define {name}(k_) {place}" for name, place in known.items()]
    w.open(f"{{ const long n = {shape[dim]}; (void)n;")
    if dim - 1 in outer:
        w.add(f"const long row = o{dim - 1}; (void)row;")
    for line in [*before, *expressions.statements(kernel.maker, kernel.code).splitlines()]:
        w.add(line.strip())
    w.close()
    w.lines += [f"#undef {name}" for name in ("real", *macros)]
    return count

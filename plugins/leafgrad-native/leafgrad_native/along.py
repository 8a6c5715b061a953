"""Kernels that walk along dimensions: reductions, softmax and its kin, one class of many."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leafgrad.lowering import expressions
from leafgrad.lowering.expressions import C_TYPES, literal
from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import Lines, Normalize, Reduce, Select
from leafgrad.lowering.strides import linear
from leafgrad_native.blocks import short
from leafgrad_native.writer import SIMD, CWriter

COLUMNS = ROWS = 64  # a sum over rows takes so many columns at once, and adds up so many rows at first
WIDE = 16  # extremes of as many elements are taken side by side
START = {"+": 0.0, "*": 1.0, "max": -math.inf, "min": math.inf}


def combine(kind: str, total: str, x: str, dtype: str) -> str:
    """One more element of a reduction."""
    return f"lg_{kind}imum_{short(dtype)}({total}, {x})" if kind.isalpha() else f"{total} {kind} {x}"


def reduce(w: CWriter, reduce: Reduce) -> None:
    """Sums, products and extremes over dimensions."""
    (x,), out, dims = reduce.sources, reduce.target, reduce.dims
    kept = [k for k in range(len(x.shape)) if k not in dims]
    outer = [k for k in kept if k != x.axis and x.shape[k] != 1]
    inner = [k for k in dims if k != x.axis and x.shape[k] != 1]
    targets = [s for s, n in zip(out.strides, out.shape, strict=True) if n != 1 and s is not None]
    if reduce.kind == "+" and x.axis is None and inner and outer and max(inner) < max(outer):
        columns(w, reduce, x, outer, inner)
        return
    if reduce.total and len(outer) <= 1:
        lanes = [(x.shape[k], x.strides[k]) for k in outer] or [(1, 1)]
        (count, step), to = lanes[0], (targets or [1])[0]
        call = w.products.totals(x.root.dtype, w.chunk, count, step or 0, to)
        for k in inner:
            w.loop(f"i{k}", x.shape[k])
        lane = w.row(x, [x.strides[k] or 0 for k in inner], [f"i{k}" for k in inner])
        w.add(f"{call}(call, {lane}, {w.row(out, [], [])}, n);")
        w.close(len(inner))
        return
    cut = w.cut([x.shape[k] for k in outer])
    for a, k in enumerate(outer):
        w.loop(f"o{a}", x.shape[k], shared=a == cut)
    outs = [f"o{a}" for a in range(len(outer))]
    where = w.at(out, [s for s in targets if s is not None], outs)
    steps = [x.strides[k] or 0 for k in (*outer, *inner)]
    variables = [*outs, *(f"i{a}" for a in range(len(inner)))]
    kind = x.root.dtype
    if x.axis is not None and not reduce.total:
        w.points()
        w.add(f"{where} = {literal(START[reduce.kind], kind)};")
        w.close()
        for a, k in enumerate(inner):
            w.loop(f"i{a}", x.shape[k])
        w.points()
        w.add(f"{where} = {combine(reduce.kind, where, w.at(x, steps, variables), kind)};")
        w.close(1 + len(inner))
        if reduce.mean:
            w.points()
            w.add(f"{where} /= {math.prod(x.shape[k] for k in dims)};")
            w.close()
    else:
        scalar(w, reduce, x, where, steps, variables, [x.shape[k] for k in inner])
    w.close(len(outer))


def columns(w: CWriter, reduce: Reduce, x: Form, outer: Sequence[int], inner: Sequence[int]) -> None:
    """Sums over leading dimensions of a whole array: row is added to row, in stretches of limited length."""
    out, kind = reduce.target, x.root.dtype
    t, n = C_TYPES[kind], x.shape[outer[-1]]
    targets = [s for s, m in zip(out.strides, out.shape, strict=True) if m != 1 and s is not None]
    outs = [f"o{a}" for a in range(len(outer))]
    cut = w.cut([*(x.shape[k] for k in outer[:-1]), n // COLUMNS])
    for a, k in enumerate(outer[:-1]):
        w.loop(f"o{a}", x.shape[k], shared=a == cut)
    w.loop("c", n, by=COLUMNS, shared=cut == len(outer) - 1)
    w.add(f"const long end = c + {COLUMNS} < {n} ? c + {COLUMNS} : {n};")
    w.add(f"{t} total[{COLUMNS}] = {{0}}, s[{COLUMNS}];")
    last = outs[-1]
    names = [f"i{a}" for a in range(len(inner))]
    for v, k in zip(names[:-1], inner[:-1], strict=True):
        w.loop(v, x.shape[k])
    count = x.shape[inner[-1]]
    w.loop("b", count, by=ROWS)
    w.add(f"const long stop = b + {ROWS} < {count} ? b + {ROWS} : {count};")
    w.add("memset(s, 0, sizeof s);")
    w.open(f"for (long {names[-1]} = b; {names[-1]} < stop; {names[-1]}++) {{")
    read = w.at(x, [x.strides[k] or 0 for k in (*outer, *inner)], [*outs, *names])
    w.add(SIMD)
    w.add(f"for (long {last} = c; {last} < end; {last}++) s[{last} - c] += {read};")
    w.close()
    w.add(SIMD)
    w.add(f"for (long k = 0; k < {COLUMNS}; k++) total[k] += s[k];")
    w.close(len(inner))
    mean = f" / {math.prod(x.shape[k] for k in reduce.dims)}" if reduce.mean else ""
    w.add(f"for (long {last} = c; {last} < end; {last}++) {w.at(out, targets, outs)} = total[{last} - c]{mean};")
    w.close(len(outer))


def scalar(
    w: CWriter,
    reduce: Reduce,
    x: Form,
    where: str,
    steps: Sequence[int],
    variables: Sequence[str],
    counts: Sequence[int],
) -> None:
    """One element of the result: over the valid points of a chunk, or over dimensions of a whole array."""
    kind = x.root.dtype
    t = C_TYPES[kind]
    inner = variables[len(variables) - len(counts) :]
    w.add(f"{t} total = {literal(START[reduce.kind], kind)};")
    if reduce.total:
        for v, n in zip(inner, counts, strict=True):
            w.loop(v, n)
        w.add(f"{t} s = 0;")
        w.add(f"{SIMD} reduction(+ : s)")
        w.add(f"for (long p = 0; p < n; p++) s += {w.at(x, steps, variables)};")
        w.add("total += s;")
        w.close(len(counts))
        w.add(f"{where} += total;")
        return
    for v, n in zip(inner[:-1], counts[:-1], strict=True):
        w.loop(v, n)
    place = w.at(x, steps, variables)
    if counts and reduce.kind == "+":  # partial sums of limited length keep the digits of long ones
        v, n = inner[-1], counts[-1]
        w.loop("b", n, by=1024)
        w.add(f"{t} s = 0;")
        w.add(f"const long end = b + 1024 < {n} ? b + 1024 : {n};")
        w.add(f"{SIMD} reduction(+ : s)")
        w.add(f"for (long {v} = b; {v} < end; {v}++) s += {place};")
        w.add("total += s;")
        w.close()
    elif counts:
        v, n = inner[-1], counts[-1]
        whole = n // WIDE * WIDE if reduce.kind.isalpha() else 0  # extremes in any order
        if whole:
            w.add(f"{t} best[{WIDE}];")
            w.add(f"for (long c = 0; c < {WIDE}; c++) best[c] = total;")
            w.loop("b", whole, by=WIDE)
            w.add(SIMD)
            w.open(f"for (long c = 0; c < {WIDE}; c++) {{ const long {v} = b + c;")
            w.add(f"best[c] = {combine(reduce.kind, 'best[c]', place, kind)};")
            w.close(2)
            w.add(f"for (long c = 0; c < {WIDE}; c++) total = {combine(reduce.kind, 'total', 'best[c]', kind)};")
        w.loop(v, n, whole)
        w.add(f"total = {combine(reduce.kind, 'total', place, kind)};")
        w.close()
    else:
        w.add(f"total = {combine(reduce.kind, 'total', place, kind)};")
    w.close(max(0, len(counts) - 1))
    mean = f" / {math.prod(x.shape[k] for k in reduce.dims)}" if reduce.mean else ""
    w.add(f"{where} = total{mean};")


def normalize(w: CWriter, normalize: Normalize) -> None:
    """softmax, log_softmax and logsumexp: the largest element, the sum of exponentials, the results."""
    (x,), out = normalize.sources, normalize.target
    name, dims = normalize.kind, normalize.dims
    kind = x.root.dtype
    t, suffix = C_TYPES[kind], "_f32" if kind == "float32" else "_f64"
    batched = x.axis is not None
    kept = [k for k in range(len(x.shape)) if k not in dims and k != x.axis and x.shape[k] != 1]
    along = [k for k in dims if x.shape[k] != 1]
    cut = w.cut([x.shape[k] for k in kept])
    for a, k in enumerate(kept):
        w.loop(f"o{a}", x.shape[k], shared=a == cut)
    variables = [*(f"o{a}" for a in range(len(kept))), *(f"i{a}" for a in range(len(along)))]
    read = w.at(x, [x.strides[k] or 0 for k in (*kept, *along)], variables)
    size = f"[{w.chunk}]" if batched else ""
    here = "[p]" if batched else ""
    w.add(f"{t} top{size}, sum{size};")

    def each(statement: str, inside: bool = True) -> None:
        if inside:
            for a, k in enumerate(along):
                w.loop(f"i{a}", x.shape[k])
        if batched:
            w.points()
        w.add(statement)
        w.close((len(along) if inside else 0) + batched)

    each(f"top{here} = -INFINITY; sum{here} = 0;", inside=False)
    each(f"top{here} = lg_maximum{suffix}(top{here}, {read});")
    if name == "logsumexp":
        each(f"if (top{here} - top{here} != 0) top{here} = top{here} == top{here} ? 0 : top{here};", inside=False)
    each(f"sum{here} += lg_exp{suffix}({read} - top{here});")
    if name == "logsumexp":
        steps = [s for s, n in zip(out.strides, out.shape, strict=True) if n != 1 and s is not None]
        write = w.at(out, steps, variables[: len(kept)])
        each(f"{write} = lg_log{suffix}(sum{here}) + top{here};", inside=False)
    else:
        write = w.at(out, [out.strides[k] or 0 for k in (*kept, *along)], variables)
        if name == "softmax":
            each(f"sum{here} = 1 / sum{here};", inside=False)
            each(f"{write} = lg_exp{suffix}({read} - top{here}) * sum{here};")
        else:
            each(f"top{here} += lg_log{suffix}(sum{here});", inside=False)
            each(f"{write} = {read} - top{here};")
    w.close(len(kept))


def lines(w: CWriter, lines: Lines) -> None:
    """The statements of an op's author for each line, in which arguments and result are macros of an index."""
    shape, out, dim = lines.sources[0].shape, lines.target, lines.dim
    axis = next((x.axis for x in (*lines.sources, out) if x.axis is not None), None)
    outer = [k for k in range(len(shape)) if k not in (dim, axis)]
    variables = [*(f"o{a}" for a in range(len(outer))), "(i)"]
    cut = w.cut([shape[k] for k in outer])
    for a, (name, k) in enumerate(zip(variables, outer, strict=False)):
        w.loop(name, shape[k], shared=a == cut)
    if axis is not None:
        w.loop("p", w.chunk, stop="m")
    gone = len(out.shape) < len(shape)
    strides = [*out.strides[:dim], 0, *out.strides[dim:]] if gone else list(out.strides)
    w.add(f"#define real {C_TYPES[lines.sources[0].root.dtype]}")
    arguments = lines.maker.op.signature.arguments
    macros = {**dict(zip(arguments, lines.sources, strict=True)), "out": out}
    for name, form in macros.items():
        steps = strides if form is out else form.strides
        place = w.at(form, [steps[k] or 0 for k in (*outer, dim)], variables)
        w.add(f"#define {name}(i) {place}")
    w.open(f"{{ const long n = {shape[dim]}; (void)n;")
    for line in expressions.statements(lines.maker, lines.code).splitlines():
        w.add(line.strip())
    w.close()
    for name in ("real", *macros):
        w.add(f"#undef {name}")
    w.close(len(outer) + (axis is not None))


def select(w: CWriter, select: Select) -> None:
    """Reads or writes the class that the target names; a target out of range fails the program."""
    x, target = select.sources
    out, dim = select.target, select.dim
    picks = select.reads
    scores, single = (x, out) if picks else (out, x)
    classes = scores.shape[dim]
    ignore = select.ignore
    step = scores.strides[dim]
    assert step is not None
    if not picks:
        w.fill(out, 0.0)
    rest = [k for k in range(len(target.shape)) if k != target.axis and target.shape[k] != 1]
    for a, k in enumerate(rest):
        w.loop(f"o{a}", target.shape[k])
    variables = [f"o{a}" for a in range(len(rest))]
    others = [s or 0 for k, s in enumerate(scores.strides) if k != dim]
    batched = target.axis is not None
    if batched:
        w.loop("p", w.chunk, stop="m")
    w.add(f"const int64_t t = {w.at(target, [target.strides[k] or 0 for k in rest], variables)};")
    w.add(f"const int skip = t == {ignore}LL;")
    w.add(f"if (!skip && (t < 0 || t >= {classes})) return 1;")
    lane = linear(scores.offset, [others[k] for k in rest], variables)
    lane = f"({lane} + (skip ? 0 : t) * {step}L)"
    place = f"{w.names[scores.root]}[{w.scaled(lane) + ' + p' if batched else lane}]"
    other = w.at(single, [single.strides[k] or 0 for k in rest], variables)
    w.add(f"{other} = skip ? 0 : {place};" if picks else f"if (!skip) {place} = {other};")
    w.close(len(rest) + batched)

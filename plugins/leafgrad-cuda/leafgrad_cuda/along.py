"""Kernels that walk along dimensions: reductions, softmax and its kin, an op's own statements."""

from __future__ import annotations

import math
from collections.abc import Callable

from leafgrad.lowering import expressions
from leafgrad.lowering.expressions import HELD, held, literal
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Lines, Normalize, Reduce
from leafgrad_cuda.writer import Item, Task

START = {"+": 0.0, "*": 1.0, "max": -math.inf, "min": math.inf}
LONG = 2048  # elements from which on a reduction of a whole array is cut into slices, one for each item
SUFFIX = {"float16": "_f32", "float32": "_f32", "float64": "_f64"}


def combine(kind: str, total: str, x: str, dtype: str) -> str:
    """One more element of a reduction."""
    return f"lg_{kind}imum{SUFFIX[dtype]}({total}, {x})" if kind.isalpha() else f"{total} {kind} {x}"


def reduce(item: Callable[[], Item], reduce: Reduce) -> list[Task]:
    """Sums, products and extremes over dimensions."""
    (x,), out = reduce.sources, reduce.target
    outer = [k for k, n in enumerate(x.shape) if k not in reduce.dims and k != x.axis and n != 1]
    inner = [k for k in reduce.dims if k != x.axis and x.shape[k] != 1]
    length = math.prod(x.shape[k] for k in inner)
    kept = math.prod(x.shape[k] for k in outer)
    if x.axis is None and length >= LONG and kept * 32 < length:
        return sliced(item, reduce, x, outer, inner, length)
    w = item()
    outs, ins = [f"o{k}" for k in outer], [f"i{k}" for k in inner]
    batched = x.axis is not None and not reduce.total
    count = w.decode(outs, [x.shape[k] for k in outer], points=batched)
    t = HELD[x.root.dtype]
    w.add(f"{t} total = {literal(START[reduce.kind], x.root.dtype)};")
    w.loops(ins, [x.shape[k] for k in inner])
    if reduce.total:
        w.loop("p", "n")
    read = w.at(x, [x.strides[k] for k in (*outer, *inner)], [*outs, *ins])
    w.add(f"total = {combine(reduce.kind, 'total', read, x.root.dtype)};")
    w.close(len(inner) + reduce.total)
    work = length * (w.chunk if reduce.total else 1)
    return [finished(w, reduce, out, outs, count, [x, out] if reduce.total else [x], work)]


def finished(w: Item, reduce: Reduce, out: Form, outs: list[str], count: int, reads: list[Form], work: int) -> Task:
    """What becomes of an item's total."""
    targets = [s for s, n in zip(out.strides, out.shape, strict=True) if n != 1 and s is not None]
    mean = math.prod(reduce.sources[0].shape[k] for k in reduce.dims)
    divided = f" / {mean}" if reduce.mean and not reduce.total else ""
    w.add(f"{w.at(out, targets, outs)} {'+' if reduce.total else ''}= total{divided};")
    return w.task(count, reads, [out], operations=work)


def sliced(
    item: Callable[[], Item], reduce: Reduce, x: Form, outer: list[int], inner: list[int], length: int
) -> list[Task]:
    """A long reduction: of slices at first, then of what they gave, always in the same order."""
    size = 1 << (math.isqrt(length) - 1).bit_length()
    slices = -(-length // size)
    lengths, dtype = [x.shape[k] for k in outer], x.root.dtype
    partial = full(Root((math.prod(lengths), slices), held(dtype)))
    t, start = HELD[dtype], literal(START[reduce.kind], dtype)
    outs, ins = [f"o{k}" for k in outer], [f"i{k}" for k in inner]
    w = item()
    count = w.decode([*outs, "slice"], [*lengths, slices])
    w.add(f"const INDEX first = slice * {size}, end = first + {size} < {length} ? first + {size} : {length};")
    w.add(f"{t} total = {start};")
    w.loop("k", "end", "first")
    w.split("k", ins, [x.shape[k] for k in inner])
    read = w.at(x, [x.strides[k] for k in (*outer, *inner)], [*outs, *ins])
    w.add(f"total = {combine(reduce.kind, 'total', read, dtype)};")
    w.close()
    w.add(f"{w.name(partial.root)}[i] = total;")
    first = w.task(count, [x], [partial], operations=size)
    w = item()
    count = w.decode(outs, lengths)
    w.add(f"{t} total = {start};")
    w.loop("k", slices)
    w.add(f"total = {combine(reduce.kind, 'total', f'{w.name(partial.root)}[i * {slices} + k]', dtype)};")
    w.close()
    return [first, finished(w, reduce, reduce.target, outs, count, [partial], slices)]


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
    return w.task(count, [x], [out], operations=25 * math.prod(lengths))


def lines(w: Item, lines: Lines) -> Task:
    """The statements of an op's author for one line, in which arguments and result are macros of an index."""
    shape, out, dim = lines.sources[0].shape, lines.target, lines.dim
    axis = next((x.axis for x in (*lines.sources, out) if x.axis is not None), None)
    outer = [k for k in range(len(shape)) if k not in (dim, axis)]
    outs = [f"o{k}" for k in outer]
    count = w.decode(outs, [shape[k] for k in outer], points=axis is not None)
    gone = len(out.shape) < len(shape)
    strides = [*out.strides[:dim], 0, *out.strides[dim:]] if gone else list(out.strides)
    macros = {**dict(zip(lines.maker.op.signature.arguments, lines.sources, strict=True)), "out": out}
    known = {}
    for name, form in macros.items():
        steps = strides if form is out else form.strides
        known[name] = w.at(form, [steps[k] for k in (*outer, dim)], [*outs, "(k_)"])
    w.lines.append(f"#define real {HELD[out.root.dtype]}")
    w.lines += [f"#define {name}(k_) {place}" for name, place in known.items()]
    w.open(f"{{ const long n = {shape[dim]}; (void)n;")
    for line in expressions.statements(lines.maker, lines.code).splitlines():
        w.add(line.strip())
    w.close()
    w.lines += [f"#undef {name}" for name in ("real", *macros)]
    return w.task(count, lines.sources, [out], operations=10 * shape[dim])

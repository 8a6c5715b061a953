"""Kernels that walk along dimensions: reductions, softmax and its kin, an op's own statements."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leafgrad.lowering import expressions
from leafgrad.lowering.expressions import FLOATS, HELD, held, literal
from leafgrad.lowering.forms import Form, Root, Stride, full
from leafgrad.lowering.kernels import Lines, Normalize, Ranked, Reduce
from leafgrad.lowering.strides import collapsed
from leafgrad_cuda.walks import Seen, walks
from leafgrad_cuda.writer import ITEMS, Item, Refused, Task

FEW = 8  # terms that a thread reads by itself
UNROLLED = 32  # terms whose loop is unrolled, so that many are read before the first is added
BUSY = 4  # threads that share items are at most so many times as many as keep a GPU busy
SECTOR = 8  # neighbouring elements that come from memory together
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
    terms, (along,) = collapsed(tuple(x.shape[k] for k in inner), None, [tuple(x.strides[k] for k in inner)])
    lengths, steps, dtype = [x.shape[k] for k in outer], [x.strides[k] for k in outer], out.root.dtype
    targets = [s for s, n in zip(out.strides, out.shape, strict=True) if n != 1 and s is not None]

    def read(w: Item, outs: Sequence[str], ins: Sequence[str]) -> str:
        return worded(reduce, reduce.each, w.at(x, [*steps, *along], [*outs, *ins]), x.root.dtype)

    def write(w: Item, outs: Sequence[str]) -> None:
        mean = math.prod(x.shape[k] for k in reduce.dims)
        divided = f" / {mean}" if reduce.mean and not reduce.total else ""
        total = worded(reduce, reduce.then, "total", dtype)
        w.add(f"{w.at(out, targets, outs)} {'+' if reduce.total else ''}= {total}{divided};")

    w = item()
    if not w.chunk:
        seen = [(x, steps, [*zip(along, terms, strict=True)])]
        near = nearer(along, steps)
        target = out, targets, ()
        return folded(item, Fold(reduce.kind, lengths, terms, read, write, near, [x], seen, target))
    outs, ins = [f"o{k}" for k in range(len(lengths))], [f"i{k}" for k in range(len(terms))]
    count = w.decode(outs, lengths, points=x.axis is not None and not reduce.total)
    w.add(f"{HELD[dtype]} total = {start(reduce.kind, dtype)};")
    w.loops(ins, terms)
    if reduce.total:
        w.loop("p", "n")
    combine(w, reduce.kind, read(w, outs, ins), dtype)
    w.close(len(ins) + reduce.total)
    write(w, outs)
    work = math.prod(terms) * (w.chunk if reduce.total else 1)
    return [w.task(count, [x, out] if reduce.total else [x], [out], operations=work)]


@dataclass(frozen=True)
class Fold:
    """A reduction of whole arrays.

    Attributes:
        kind: of reduction.
        lengths, terms: dimensions of items, and of what each reduces.
        read: the expression of a term, by the variables of both.
        write: what becomes of ``total``.
        near: whether terms lie nearer to each other than items.
        sources: what is read.
        seen, target: how items walk along what of this they do, and along the result.
    """

    kind: str
    lengths: Sequence[int]
    terms: Sequence[int]
    read: Callable[[Item, Sequence[str], Sequence[str]], str]
    write: Callable[[Item, Sequence[str]], None]
    near: bool
    sources: Sequence[Form]
    seen: Sequence[Seen]
    target: Seen

    @property
    def dtype(self) -> str:
        return self.target[0].root.dtype

    @property
    def length(self) -> int:
        return math.prod(self.terms)

    @property
    def outs(self) -> list[str]:
        """Variables of items."""
        return [f"o{k}" for k in range(len(self.lengths))]

    @property
    def ins(self) -> list[str]:
        """Those of terms."""
        return [f"i{k}" for k in range(len(self.terms))]

    @property
    def width(self) -> int:
        """How many threads share an item, so that none reads many terms one after the other, as long as all are not
        busy; where terms lie together, neighbours read them together.
        """
        if self.length <= 2 * FEW:
            return 1
        each = max(FEW, min(UNROLLED, math.isqrt(self.length)), math.prod(self.lengths) * self.length // (BUSY * ITEMS))
        width = 1 << (-(-self.length // each) - 1).bit_length()
        return max(width, SECTOR) if self.near and self.length >= FEW * SECTOR else width


def folded(item: Callable[[], Item], fold: Fold) -> list[Task]:
    """Of few terms by a thread each; else threads share an item, and what they have is reduced in turn, always in the
    same order.
    """
    if fold.width == 1:
        return [by_one(item(), fold)]
    first, rest = by_many(item(), fold)
    return [first, *folded(item, rest)]


def by_one(w: Item, fold: Fold) -> Task:
    """Each item by a thread."""
    count, ins = w.decode(fold.outs, fold.lengths), fold.ins
    w.add(f"{HELD[fold.dtype]} total = {start(fold.kind, fold.dtype)};")
    if fold.length <= UNROLLED and len(ins) == 1:
        w.open(f"LG_UNROLL for (int {ins[0]} = 0; {ins[0]} < {fold.length}; {ins[0]}++) {{")
    else:
        w.loops(ins, fold.terms)
    combine(w, fold.kind, fold.read(w, fold.outs, ins), fold.dtype)
    w.close(len(ins))
    fold.write(w, fold.outs)
    found = walks(fold.lengths, [*fold.seen, fold.target])
    return w.task(count, fold.sources, [fold.target[0]], operations=fold.length, terms=fold.length, walks=found)


def by_many(w: Item, fold: Fold) -> tuple[Task, Fold]:
    """What each of the threads that share an item has of it, and the reduction of that.

    Neighbouring threads are of one item, or of as many items as lie together.
    """
    *rest, last = fold.lengths or [1]
    width, outs, dtype = fold.width, fold.outs[: len(rest)], fold.dtype
    some = 1 if fold.near else SECTOR if last % SECTOR == 0 else last
    dims, each = [*rest, last // some, width, some], -(-fold.length // width)
    parts = full(Root(tuple(dims), held(dtype)))

    def whole(outs: Sequence[str]) -> list[str]:
        """The variables of an item, of those whose last two count blocks of items and the items of one."""
        return [*outs[:-2], f"({outs[-2]} * {some} + {outs[-1]})"][: len(fold.lengths)]

    def divided(steps: Sequence[Stride], between: Sequence[Stride] = ()) -> list[Stride]:
        """The steps of items as those of blocks, of what comes between, and of the items of one."""
        *first, own = [s or 0 for s in steps] or [0]
        return [*first, own * some, *between, own]

    count = w.decode([*outs, "block", "member", "own"], dims)
    w.add(f"{HELD[dtype]} total = {start(fold.kind, dtype)};")
    w.open(f"{'LG_UNROLL ' if each <= UNROLLED else ''}for (int j = 0; j < {each}; j++) {{")
    w.add(f"const INDEX k = j * {width} + member;")
    w.open(f"if (k < {fold.length}) {{" if fold.length % width else "{")
    w.split("k", fold.ins, fold.terms)
    combine(w, fold.kind, fold.read(w, whole([*outs, "block", "own"]), fold.ins), dtype)
    w.close(2)
    w.add(f"{w.name(parts.root)}[i] = total;")
    seen = [(form, divided(steps, [0]), inner) for form, steps, inner in fold.seen]
    found = walks(dims, [*seen, (parts, parts.strides, ())])
    task = w.task(count, fold.sources, [parts], operations=each, terms=each, walks=found)
    *first, block, member, own = parts.strides
    steps, (out, targets, _) = [*first, block, own], fold.target
    return task, Fold(
        fold.kind, [*rest, last // some, some], [width],
        lambda w, outs, ins: w.at(parts, [*steps, member], [*outs, *ins]), lambda w, outs: fold.write(w, whole(outs)),
        fold.near, [parts], [(parts, steps, [(member, width)])], (out, divided(targets), ()),
    )  # fmt: skip


def nearer(along: Sequence[Stride], steps: Sequence[Stride]) -> bool:
    """Whether terms that step so lie nearer to each other than items."""
    return min((abs(s) for s in along if s), default=0) <= min((abs(s) for s in steps if s), default=math.inf)


def added(item: Callable[[], Item], parts: Form, out: Form) -> list[Task]:
    """The sum of parts over their first dimension."""
    return reduce(item, Reduce(None, (parts,), out, (0,), False, "+", False))


def in_turn(w: Item, normalize: Normalize) -> Task:
    """softmax, log_softmax and logsumexp: of points of a chunk, each by one thread."""
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


def normalize(item: Callable[[], Item], normalize: Normalize) -> list[Task]:
    """softmax, log_softmax and logsumexp: the largest element, the sum of exponentials, the results."""
    w = item()
    if w.chunk:
        return [in_turn(w, normalize)]
    (x,), out, kind = normalize.sources, normalize.target, normalize.kind
    kept = [k for k in range(len(x.shape)) if k not in normalize.dims and x.shape[k] != 1]
    along = [k for k in normalize.dims if x.shape[k] != 1]
    lines, terms = [x.shape[k] for k in kept], [x.shape[k] for k in along]
    outs, ins = [f"o{k}" for k in kept], [f"i{k}" for k in along]
    f, dtype = SUFFIX[x.root.dtype], held(x.root.dtype)
    top, total = (full(Root(tuple(lines), dtype)) for _ in range(2))
    ours, theirs = [x.strides[k] for k in kept], [x.strides[k] for k in along]
    inner = [*zip(theirs, terms, strict=True)]

    def largest(w: Item, outs: Sequence[str]) -> str:
        place = w.at(top, top.strides, outs)
        return f"({place} - {place} == 0 || {place} != {place} ? {place} : 0)" if kind == "logsumexp" else place

    def read(w: Item, outs: Sequence[str], ins: Sequence[str]) -> str:
        return w.at(x, [*ours, *theirs], [*outs, *ins])

    def power(w: Item, outs: Sequence[str], ins: Sequence[str]) -> str:
        return f"lg_exp{f}({read(w, outs, ins)} - {largest(w, outs)})"

    def keep(form: Form, text: str = "total") -> Callable[[Item, Sequence[str]], None]:
        return lambda w, outs: w.add(f"{w.at(form, form.strides, outs)} = {text};")

    def ends(w: Item, outs: Sequence[str]) -> None:
        w.add(f"{w.at(out, single, outs)} = lg_log{f}(total) + {largest(w, outs)};")

    tops, totals = (top, top.strides, ()), (total, total.strides, ())
    near = nearer(theirs, ours)
    found = folded(item, Fold("max", lines, terms, read, keep(top), near, [x], [(x, ours, inner)], tops))
    single = [s for s, n in zip(out.strides, out.shape, strict=True) if n != 1]
    target = (out, single, ()) if kind == "logsumexp" else totals
    write = ends if kind == "logsumexp" else keep(total)
    seen = [(x, ours, inner), tops]
    found += folded(item, Fold("+", lines, terms, power, write, near, [x, top], seen, target))
    if kind == "logsumexp":
        return found
    w.decode([*outs, *ins], [*lines, *terms])
    element, base, sum_ = read(w, outs, ins), w.at(top, top.strides, outs), w.at(total, total.strides, outs)
    result = f"{element} - ({base} + lg_log{f}({sum_}))"
    if kind == "softmax":
        result = f"lg_exp{f}({element} - {base}) / {sum_}"
    targets = [out.strides[k] for k in (*kept, *along)]
    w.add(f"{w.at(out, targets, [*outs, *ins])} = {result};")
    still = [0] * len(along)
    seen = [(x, [*ours, *theirs], ()), (out, targets, ()), *((r, [*r.strides, *still], ()) for r in (top, total))]
    every = [*lines, *terms]
    return [*found, w.task(math.prod(every), [x, top, total], [out], operations=25, walks=walks(every, seen))]


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

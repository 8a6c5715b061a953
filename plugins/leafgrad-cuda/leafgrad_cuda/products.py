"""Matrix products: an item is a tile of the result, for which it reads each element of its rows and columns once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leafgrad.lowering.expressions import HELD, held
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Product
from leafgrad.lowering.strides import linear, spread
from leafgrad_cuda import tiles
from leafgrad_cuda.along import Fold, added, folded, nearer
from leafgrad_cuda.writer import ITEMS, QUAD, Item, Refused, Task, quad_type

FEW = 4  # threads at least that share a sum
SHORT = 16  # terms of sums up to which each element is by itself, so that others may follow in the same thread
TILES = (4, 2, 1)  # sides of tiles, of which the largest is taken that leaves enough items
FEWEST = 128  # items of a chunk
FEWEST_WHOLE = 1 << 15  # of whole arrays


def product(item: Callable[[], Item], product: Product) -> list[Task]:
    return [summed(item(), product)] if product.total else multiplied(item, product)


def side(length: int, others: int, fewest: int) -> int:
    """How many neighbours of ``length`` a tile takes, so that with ``others`` there are at least so many items."""
    return next((n for n in TILES if length % n == 0 and length // n * others >= fewest), 1)


def summed(w: Item, product: Product) -> Task:
    """x^T y, where all dimensions but the last are rows, those of a chunk: added to an accumulator."""
    x, y = product.sources
    out = product.target
    columns = len(y.shape) == len(x.shape)
    rows = [k for k in range(len(x.shape) - 1) if k != x.axis]
    if x.axis != y.axis or x.shape[:-1] != y.shape[: len(x.shape) - 1]:
        raise Refused(product.equation, "rows of two arrays that lie differently")
    sizes = [x.shape[-1], *([y.shape[-1]] if columns else [])]
    wide = side(sizes[-1], math.prod(sizes[:-1]), FEWEST)
    high = side(sizes[0], sizes[1] // wide, FEWEST) if columns else 1
    tile = [high, wide] if columns else [wide]
    outs = ["a", "b"][: len(sizes)]
    count = w.decode(outs, [n // t for n, t in zip(sizes, tile, strict=True)])
    t, names = HELD[out.root.dtype], [f"k{k}" for k in rows]
    high, wide = (high, wide) if columns else (wide, 1)
    totals = [(i, j) for i in range(high) for j in range(wide)]
    w.add(f"{t} {', '.join(f's{i}_{j} = 0' for i, j in totals)};")
    w.loops(names, [x.shape[k] for k in rows])

    def places(form: Form, variable: str, n: int) -> list[str]:
        along = [variable] if variable else []
        strides = [*(form.strides[k] for k in rows), *([int(form.strides[-1] or 0) * n] if variable else [])]
        step = int(form.strides[-1] or 0) if variable else 0
        return [w.at(form, strides, [*names, *along], str(step * i) if i else "") for i in range(n)]

    left, right = places(x, "a", high), places(y, "b" if columns else "", wide)
    terms = [f"s{i}_{j} += ({t})x{i}{{0}} * ({t})y{j}{{0}};" for i, j in totals]
    w.add("INDEX p = 0;")
    w.open(f"for (; p + {QUAD} <= n; p += {QUAD}) {{")
    for name, form, all_places in (("x", x, left), ("y", y, right)):
        for i, place in enumerate(all_places):
            w.add(f"const {quad_type(form.root.dtype)} {name}{i} = {w.quad_at(form, place)};")
    w.each_of_quad([term.format(".at[q]") for term in terms])
    w.close()
    w.open("for (; p < n; p++) {")
    for name, form, all_places in (("x", x, left), ("y", y, right)):
        for i, place in enumerate(all_places):
            w.add(f"const {HELD[form.root.dtype]} {name}{i} = {place};")
    for term in terms:
        w.add(term.format(""))
    w.close(len(rows) + 1)
    steps = [int(s or 0) for s in out.strides]
    for i, j in totals:
        extra = steps[0] * i + (steps[1] * j if columns else 0)
        strides = [s * n for s, n in zip(steps, tile, strict=False)]
        w.add(f"{w.at(out, strides, outs, str(extra) if extra else '')} += s{i}_{j};")
    work = 2 * math.prod(x.shape[k] for k in rows) * w.chunk * len(totals)
    return w.task(count, [x, y, out], [out], operations=work)


def multiplied(item: Callable[[], Item], product: Product) -> list[Task]:
    """Elements of a product whose result may have a chunk's points on any of its axes, or matrices side by side.

    A tile is of columns, with four points of a chunk, or with rows of whole arrays. Blocks make large products of
    these, and threads share the sums of few elements.
    """
    w = item()
    a, b, out = as_matrices(product)
    inner, shape, t = a.shape[-1], out.shape, HELD[out.root.dtype]
    lead = tuple(n for n in shape[:-2] if n != 1)
    square = tiles.Shape(held(out.root.dtype), lead, shape[-2], shape[-1], inner)
    if not w.chunk and square.fits:
        return squares(item, square, a, b, out)
    if not w.chunk and (math.prod(shape) * FEW <= ITEMS or inner <= SHORT):
        return dots(item, a, b, out)
    so = out.strides
    quads, last = out.axis is not None, len(shape) - 1
    kept = [k for k in range(len(shape)) if so[k] is not None and shape[k] != 1]
    tile = neighbours(w, shape, kept, quads)
    variables, lengths = [f"l{k}" for k in kept], [shape[k] // tile[k] for k in kept]
    count = (w.decode_quads if quads else w.decode)(variables, lengths)
    totals = [(i, j) for i in range(tile[last - 1]) for j in range(tile[last])]
    zero = f"[{QUAD}] = {{0, 0, 0, 0}}" if quads else " = 0"
    w.add(f"{t} {', '.join(f's{i}_{j}{zero}' for i, j in totals)};")
    left = Operand(w, "left", a, spread(a, (*shape[:-2], *a.shape[-2:])), last - 1, last, kept, tile, t)
    right = Operand(w, "right", b, spread(b, (*shape[:-2], *b.shape[-2:])), last, last - 1, kept, tile, t)
    along(w, [left, right], totals, quads, inner)
    for i, j in totals:
        extra = int(so[-2] or 0) * i + int(so[-1] or 0) * j
        place = w.at(out, [int(so[k] or 0) * tile[k] for k in kept], variables, str(extra) if extra else "")
        if quads:
            w.add(f"{quad_type(out.root.dtype)} w{i}_{j};")
            w.each_of_quad([f"w{i}_{j}.at[q] = s{i}_{j}[q];"])
            w.add(f"{w.quad_at(out, place)} = w{i}_{j};")
        else:
            w.add(f"{place} = s{i}_{j};")
    return [w.task(count, [a, b], [out], operations=2 * inner * len(totals) * (QUAD if quads else 1), terms=inner)]


def squares(item: Callable[[], Item], shape: tiles.Shape, a: Form, b: Form, out: Form) -> list[Task]:
    """By blocks; sums are cut into parts, which are added in order, where there are few squares."""
    lead = out.shape[:-2]
    dims = [d for d in range(len(lead)) if lead[d] != 1]
    stack = [f"l{k}" for k in range(len(dims))]

    def side(form: Form, own: int, summed: int) -> tiles.Edge:
        steps = [int(s or 0) for s in spread(form, (*lead, *form.shape[-2:]))]
        strides = [*(steps[d] for d in dims), steps[own], steps[summed]]
        return tiles.Edge(
            lambda w: (w.at(form, strides, [*stack, "at", "k"]), ""), nearer([steps[summed]], [steps[own]])
        )

    target = full(Root((shape.parts, *out.shape), held(out.root.dtype))) if shape.parts > 1 else out
    steps = [int(s or 0) for s in target.strides]
    strides = [*(steps[:1] if target is not out else [0]), *(steps[d - len(out.shape)] for d in dims), *steps[-2:]]
    place = linear(target.offset, strides, ["part", *stack, "row", "column"])
    made = tiles.tiled(item, shape, (side(a, -2, -1), side(b, -1, -2)), [a, b], target, lambda w: place)
    return [made, *added(item, target, out)] if shape.parts > 1 else [made]


def dots(item: Callable[[], Item], a: Form, b: Form, out: Form) -> list[Task]:
    """By threads that share the sum of each element."""
    shape, t = out.shape, HELD[out.root.dtype]
    kept = [k for k in range(len(shape)) if shape[k] != 1]
    left, right = ([*spread(f, (*shape[:-2], *f.shape[-2:]))] for f in (a, b))
    last = len(shape) - 1
    rows = [0 if k == last else left[k] for k in kept]
    columns = [0 if k == last - 1 else right[k] for k in kept]

    def read(w: Item, outs: Sequence[str], ins: Sequence[str]) -> str:
        x, y = w.at(a, [*rows, left[-1]], [*outs, *ins]), w.at(b, [*columns, right[-2]], [*outs, *ins])
        return f"({t}){x} * ({t}){y}"

    def write(w: Item, outs: Sequence[str]) -> None:
        w.add(f"{w.at(out, [out.strides[k] for k in kept], outs)} = total;")

    lengths, inner = [shape[k] for k in kept], a.shape[-1]
    seen = [(a, rows, [(left[-1], inner)]), (b, columns, [(right[-2], inner)])]
    near = all(nearer([s for s, _ in terms], steps) for _, steps, terms in seen)
    target = out, [out.strides[k] for k in kept], ()
    return folded(item, Fold("+", lengths, [inner], read, write, near, [a, b], seen, target))


def as_matrices(product: Product) -> tuple[Form, Form, Form]:
    """Both operands and the result with two dimensions at least."""
    a, b = product.sources
    out = product.target
    if len(a.shape) == 1:
        a = Form(a.root, (1, *a.shape), (0, *a.strides), a.offset)
        shape, strides = (*out.shape[:-1], 1, *out.shape[-1:]), (*out.strides[:-1], 0, *out.strides[-1:])
        out = Form(out.root, shape, strides, out.offset)
    if len(b.shape) == 1:
        b = Form(b.root, (*b.shape, 1), (*b.strides, 0), b.offset)
        out = Form(out.root, (*out.shape, 1), (*out.strides, 0), out.offset)
    return a, b, out


def neighbours(w: Item, shape: Sequence[int], kept: Sequence[int], quads: bool) -> list[int]:
    """How many neighbours a tile has in each dimension of the result."""
    tile, last = [1] * len(shape), len(shape) - 1
    items = math.prod(shape[k] for k in kept) * (w.chunk // QUAD if quads else 1)
    for k in [last] if quads else [last, last - 1]:
        if k in kept:
            tile[k] = side(shape[k], items // shape[k], FEWEST if quads else FEWEST_WHOLE)
            items //= tile[k]
    return tile


def along(w: Item, operands: list[Operand], totals: list[tuple[int, int]], quads: bool, inner: int) -> None:
    """The loop over a sum's terms, from which each operand takes four at once where they lie together."""
    early = [o for o in operands if inner % QUAD == 0 and o.along_sum]
    w.open(f"for (INDEX k = 0; k < {inner}; k += {QUAD if early else 1}) {{")
    for o in early:
        o.read_quads()
    if early:
        w.open(f"LG_UNROLL for (int r = 0; r < {QUAD}; r++) {{")
    for o in operands:
        if o not in early:
            o.read("(k + r)" if early else "k")
    left, right = operands
    terms = [f"s{i}_{j}{'[q]' if quads else ''} += {left.names[i]} * {right.names[j]};" for i, j in totals]
    if quads:
        w.each_of_quad(terms)
    else:
        for term in terms:
            w.add(term)
    w.close(2 if early else 1)


@dataclass(eq=False)
class Operand:
    """One side of a product, as a tile reads it.

    Attributes:
        strides: of all its dimensions, those of stacked matrices first.
        own, summed: the dimension that is the result's as well, and the one that is summed over.
        kept: dimensions of the result that items differ in.
        tile: how many neighbours a tile has in each dimension.
        type: of the sum.
        names: what a term calls what was read.
    """

    w: Item
    name: str
    form: Form
    strides: Sequence[int | None]
    own: int
    summed: int
    kept: Sequence[int]
    tile: list[int]
    type: str

    def __post_init__(self) -> None:
        self.names: list[str] = []
        self.points = self.form.root.axis is not None
        self.every = range(self.tile[self.own])
        self.ours = [k for k in self.kept if k != self.summed]
        self.step = int(self.strides[self.own] or 0)
        self.steps = [int(self.strides[k] or 0) * self.tile[k] for k in self.ours]

    def even(self, *strides: int) -> bool:
        """Whether quads begin at quads."""
        return not self.points and all(s % QUAD == 0 for s in (self.form.offset, *strides))

    @property
    def along_sum(self) -> bool:
        """Whether neighbours in memory are neighbours in the sum."""
        return self.strides[self.summed] == 1 and self.even(*self.steps, self.step if len(self.every) > 1 else 0)

    def place(self, i: int, k: str) -> str:
        variables = [*(f"l{d}" for d in self.ours), k]
        return self.w.at(
            self.form, [*self.steps, self.strides[self.summed]], variables, str(self.step * i) if i else ""
        )

    def quad(self, i: int, k: str) -> None:
        self.w.functions.aligned.add(self.form.root)
        place = self.w.quad_at(self.form, self.place(i, k))
        self.w.add(f"const {quad_type(self.form.root.dtype)} {self.name}{i} = {place};")

    def read_quads(self) -> None:
        """Four terms of the sum at once."""
        for i in self.every:
            self.quad(i, "k")
        self.names = [f"({self.type}){self.name}{i}.at[r]" for i in self.every]

    def read(self, k: str) -> None:
        """One term of the sum: of four points, of neighbours that lie together, or of each by itself."""
        together = self.step == 1 and self.even(int(self.strides[self.summed] or 0), *self.steps)
        if self.points:
            for i in self.every:
                self.quad(i, k)
            self.names = [f"({self.type}){self.name}{i}.at[q]" for i in self.every]
        elif together and len(self.every) == QUAD:
            self.quad(0, k)
            self.names = [f"({self.type}){self.name}0.at[{i}]" for i in self.every]
        else:
            for i in self.every:
                self.w.add(f"const {self.type} {self.name}{i} = {self.place(i, k)};")
            self.names = [f"{self.name}{i}" for i in self.every]

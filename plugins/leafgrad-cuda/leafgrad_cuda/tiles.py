"""Products of whole matrices by blocks of threads: each makes a square of the result.

Step by step along the sum the block puts a slice of its rows and one of its columns into shared memory, and each thread
adds to the products of four by four elements, which it keeps in registers. What the next step needs is fetched while
this one multiplies. Where there are few squares, they are small, and the threads of a block are several groups: each
multiplies its own terms of a step, and what they have is added up at the end, always in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leafgrad.lowering.expressions import HELD
from leafgrad.lowering.forms import Form
from leafgrad_cuda.walks import Walk
from leafgrad_cuda.writer import QUAD, Item, Task, Tile, quad_type

THREADS = 256
SIDES = {1: 64, 4: 32}  # of a square, by groups of threads
TERMS = 16  # of the sum in a step, of each group
PRODUCTS = QUAD**2  # which a thread keeps, before what it fetched
LEAST = 16  # rows, and columns, from which on squares are not mostly empty
WORK = 1 << 20  # multiplications from which on a block has enough to do
BLOCKS = 264  # two for each processor; where squares are fewer, they are small
PROCESSORS = 132  # for which there is a small square, or sums are cut
SHORTEST = 4  # steps of a part of a sum that is cut


@dataclass(frozen=True)
class Shape:
    """A product, and how it is cut.

    Attributes:
        lead: lengths of dimensions that both operands and the result have.
        rows, columns, terms: of the result, and of its sums.
        whole: whether sums are not cut.
    """

    lead: tuple[int, ...]
    rows: int
    columns: int
    terms: int
    whole: bool = False

    @property
    def fits(self) -> bool:
        """Whether it is large enough."""
        work = math.prod(self.lead) * self.rows * self.columns * self.terms
        return min(self.rows, self.columns) >= LEAST and self.terms >= TERMS and work >= WORK

    @property
    def groups(self) -> int:
        """Of a block's threads."""
        return 1 if self.squares(SIDES[1]) >= BLOCKS else 4

    @property
    def side(self) -> int:
        return SIDES[self.groups]

    @property
    def depth(self) -> int:
        """Terms of a step."""
        return TERMS * self.groups

    def squares(self, side: int) -> int:
        return math.prod(self.lead) * -(-self.rows // side) * -(-self.columns // side)

    @property
    def size(self) -> int:
        """Terms of a part of a sum: whole steps."""
        most = 1 if self.whole else min(self.terms // (SHORTEST * self.depth), PROCESSORS // self.squares(self.side))
        return -(-self.terms // (max(1, most) * self.depth)) * self.depth

    @property
    def parts(self) -> int:
        """In how many parts each sum is cut."""
        return -(-self.terms // self.size)


@dataclass(frozen=True)
class Side:
    """Rows or columns, of which a step needs some terms each.

    Attributes:
        read: writes where term ``k`` of line ``at`` lies; returns its expression, and a condition that it is there.
        near: whether terms lie nearer to each other than lines.
    """

    read: Callable[[Item], tuple[str, str]]
    near: bool


def tiled(
    item: Callable[[], Item],
    shape: Shape,
    sides: tuple[Side, Side],
    sources: Sequence[Form],
    out: Form,
    write: Callable[[Item], str],
    whole: bool = True,
) -> Task:
    """A task whose items are squares.

    Args:
        sides: of rows and of columns, by variables ``l0`` and on for dimensions before them.
        out: the result, with a first dimension for parts of sums, if they are cut.
        write: the expression of the result's place, by these, ``part``, ``row`` and ``column``, after what ``total``
            becomes before it is there.
        whole: whether no other task makes a part of the result.
    """
    side, depth, t = shape.side, shape.depth, HELD[out.root.dtype]
    pitch, each, groups = side + QUAD, side * depth // THREADS, shape.groups
    stack = [f"l{d}" for d in range(len(shape.lead))]
    lengths = [shape.parts, *shape.lead, -(-shape.rows // side), -(-shape.columns // side)]

    def square(w: Item) -> Item:
        w.split("item", ["part", *stack, "high", "wide"], lengths)
        return w

    fetch = square(item())
    fetch.add(f"const INDEX begin = part * {shape.size}, stop = begin + {shape.size};")
    fetch.add(f"const INDEX end = stop < {shape.terms} ? stop : {shape.terms};")
    for number, one in enumerate(sides):
        fetch.open(f"LG_UNROLL for (int n = 0; n < {each}; n++) {{")
        first, lines = [("high", shape.rows), ("wide", shape.columns)][number]
        fetch.add(f"const INDEX at = {first} * {side} + {spot('line', one.near, side, depth)};")
        fetch.add(f"const INDEX k = begin + done + {spot('term', one.near, side, depth)};")
        place, inside = one.read(fetch)
        there = " && ".join([f"at < {lines}", "k < end", *([inside] if inside else [])])
        fetch.add(f"keep[{PRODUCTS + number * each} + n] = {there} ? ({t}){place} : 0;")
        fetch.close()
    fetched = fetch.function("fetch", ["const INDEX item", "const INDEX done", "const int t", f"{t} *keep"])
    put: list[str] = []
    for number, one in enumerate(sides):
        line, term = spot("line", one.near, side, depth), spot("term", one.near, side, depth)
        place = f"shared[{number * depth * pitch} + ({term}) * {pitch} + {line}]"
        put.append(f"    LG_UNROLL for (int n = 0; n < {each}; n++) {place} = keep[{PRODUCTS + number * each} + n];")
    functions, kept = fetch.functions, f"const int t, {t} *keep"
    store = square(item())
    store.add(f"const INDEX row = high * {side} + e / {side}, column = wide * {side} + e % {side};")
    store.add(f"if (row >= {shape.rows} || column >= {shape.columns}) return -1;")
    store.add(f"{t} total = shared[e];")
    for group in range(1, groups):
        store.add(f"total += shared[e + {group * side * side}];")
    store.add(f"const INDEX place = {write(store)};")
    store.add(f"{store.name(out.root)}[place] = total;")
    store.add("return place;")
    tile = Tile(
        t, PRODUCTS + 2 * each, shape.size, depth, THREADS, side * side,
        max(2 * depth * pitch, groups * side * side) * (8 if t == "double" else 4),
        fetched, tuple(fetch.names), functions.name("put", f"{kept}, {t} *shared", put),
        functions.name("multiply", f"{kept}, const {t} *shared", multiplied(t, side, depth, groups)),
        functions.name("gather", f"{kept}, {t} *shared", gathered(t, side)),
    )  # fmt: skip
    written = frozenset({out.root})
    name = store.function("store", ["const INDEX item", "const int e", f"const {t} *shared"], written, "INDEX")
    work = 2 * side * side * shape.size
    reads = frozenset(f.root for f in sources)
    return Task(
        store.equations, math.prod(lengths), name, tuple(store.names), reads, written,
        operations=work, walks={out.root: Walk(1, 0)} if whole and out.whole else {}, tile=tile,
    )  # fmt: skip


def spot(what: str, near: bool, side: int, depth: int) -> str:
    """Which line, or term, a thread's element ``n`` is of; neighbouring threads read what lies together."""
    fast = depth if near else side
    return f"t % {fast}" if (what == "term") == near else f"t / {fast} + n * {THREADS // fast}"


def multiplied(t: str, side: int, depth: int, groups: int) -> list[str]:
    """A step's terms, those of each group of threads, added to the products that a thread keeps."""
    quad, pitch, along = quad_type("float64" if t == "double" else "float32"), side + QUAD, side // QUAD
    place = f"(k + t / {along**2} * {TERMS}) * {pitch}" if groups > 1 else f"k * {pitch}"
    return [
        f"    LG_UNROLL for (int k = 0; k < {TERMS}; k++) {{",
        f"        const {quad} x = *(const {quad} *)&shared[{place} + t % {along**2} / {along} * {QUAD}];",
        f"        const {quad} y = *(const {quad} *)&shared[{depth * pitch} + {place} + t % {along} * {QUAD}];",
        f"        LG_UNROLL for (int i = 0; i < {QUAD}; i++)",
        f"            LG_UNROLL for (int j = 0; j < {QUAD}; j++) keep[i * {QUAD} + j] += x.at[i] * y.at[j];",
        "    }",
    ]


def gathered(t: str, side: int) -> list[str]:
    """Each group's products into shared memory, a square after the other."""
    along = side // QUAD
    place = f"t / {along**2} * {side * side} + (t % {along**2} / {along} * {QUAD} + i) * {side} + t % {along} * {QUAD}"
    return [
        f"    LG_UNROLL for (int i = 0; i < {QUAD}; i++)",
        f"        LG_UNROLL for (int j = 0; j < {QUAD}; j++) shared[{place} + j] = keep[i * {QUAD} + j];",
    ]

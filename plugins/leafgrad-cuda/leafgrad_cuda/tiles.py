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
from typing import NamedTuple

from leafgrad.lowering.expressions import HELD
from leafgrad.lowering.forms import Form
from leafgrad_cuda.launches import memory_size
from leafgrad_cuda.walks import Walk
from leafgrad_cuda.writer import QUAD, Item, Task, Tile, quad_type

THREADS = 256
TERMS = 16  # of the sum in a step, of each group
LEAST = 16  # rows, and columns, from which on squares are not mostly empty
WORK = 1 << 20  # multiplications from which on a block has enough to do
PROCESSORS = 132  # for which there is a small square, or sums are cut
BLOCKS = 264  # two for each processor; where squares are fewer, they are small
SHORTEST = 4  # steps of a part of a sum that is cut


class Cut(NamedTuple):
    """The groups of a block's threads, and the rows and columns of a square."""

    groups: int
    high: int
    wide: int

    @property
    def depth(self) -> int:
        """Terms of a step."""
        return TERMS * self.groups

    @property
    def along(self) -> int:
        """Threads along a row."""
        return self.wide // QUAD

    @property
    def team(self) -> int:
        """Threads of a group."""
        return THREADS // self.groups

    @property
    def tall(self) -> int:
        """Rows of a thread, which has four columns of each."""
        return self.high * self.along // self.team

    @property
    def little(self) -> bool:
        """Whether threads store few elements, one after the other: what needs one may follow."""
        return self.high * self.wide <= 4 * THREADS


TALL, LARGE, SMALL, TINY = Cut(1, 128, 64), Cut(1, 64, 64), Cut(4, 32, 32), Cut(8, 16, 32)


@dataclass(frozen=True)
class Shape:
    """A product, and how it is cut.

    Attributes:
        dtype: in which it is computed.
        lead: lengths of dimensions that both operands and the result have.
        rows, columns, terms: of the result, and of its sums.
        whole: whether sums are not cut.
    """

    dtype: str
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
    def cut(self) -> Cut:
        """The largest that leaves enough squares. Registers and shared memory hold fewer numbers of 64 bits."""
        single, deep = self.dtype == "float32", self.terms >= 2 * TINY.depth
        cuts = [(TALL, PROCESSORS if single else math.inf), (LARGE, BLOCKS), (SMALL, BLOCKS if single and deep else 0)]
        return next((cut for cut, least in cuts if self.squares(cut) >= least), TINY)

    def squares(self, cut: Cut) -> int:
        return math.prod(self.lead) * -(-self.rows // cut.high) * -(-self.columns // cut.wide)

    @property
    def size(self) -> int:
        """Terms of a part of a sum: whole steps."""
        depth = self.cut.depth
        most = 1 if self.whole else min(self.terms // (SHORTEST * depth), PROCESSORS // self.squares(self.cut))
        return -(-self.terms // (max(1, most) * depth)) * depth

    @property
    def parts(self) -> int:
        """In how many parts each sum is cut."""
        return -(-self.terms // self.size)


@dataclass(frozen=True)
class Edge:
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
    sides: tuple[Edge, Edge],
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
    cut, t = shape.cut, HELD[shape.dtype]
    depth, tall, groups = cut.depth, cut.tall, cut.groups
    stack = [f"l{d}" for d in range(len(shape.lead))]
    lengths = [shape.parts, *shape.lead, -(-shape.rows // cut.high), -(-shape.columns // cut.wide)]
    slices = (
        Slice("high", shape.rows, cut.high, depth, sides[0]),
        Slice("wide", shape.columns, cut.wide, depth, sides[1]),
    )
    products, quad = tall * QUAD, quad_type(shape.dtype)
    starts = [products, products + slices[0].each]  # in registers, behind the products
    begins = [0, depth * slices[0].pitch]  # in shared memory

    def square(w: Item) -> Item:
        w.split("item", ["part", *stack, "high", "wide"], lengths)
        return w

    fetch = square(item())
    fetch.add(f"const INDEX begin = part * {shape.size}, stop = begin + {shape.size};")
    fetch.add(f"const INDEX end = stop < {shape.terms} ? stop : {shape.terms};")
    for one, start in zip(slices, starts, strict=True):
        one.fetch(fetch, start, t)
    fetched = fetch.function("fetch", ["const INDEX item", "const INDEX done", "const int t", f"{t} *keep"])
    put = [one.put(start, begin) for one, start, begin in zip(slices, starts, begins, strict=True)]
    functions, kept = fetch.functions, f"const int t, {t} *keep"
    store, elements = square(item()), cut.high * cut.wide
    store.add(f"const INDEX row = high * {cut.high} + e / {cut.wide}, column = wide * {cut.wide} + e % {cut.wide};")
    store.add(f"if (row >= {shape.rows} || column >= {shape.columns}) return -1;")
    store.add(f"{t} total = shared[e];")
    for group in range(1, groups):
        store.add(f"total += shared[e + {group * elements}];")
    store.add(f"const INDEX place = {write(store)};")
    store.add(f"{store.name(out.root)}[place] = total;")
    store.add("return place;")
    tile = Tile(
        t, products + sum(one.each for one in slices), shape.size, depth, THREADS, elements,
        max(depth * sum(one.pitch for one in slices), groups * elements) * memory_size(shape.dtype),
        fetched, tuple(fetch.names), functions.name("put", f"{kept}, {t} *shared", put),
        functions.name("multiply", f"{kept}, const {t} *shared", multiplied(quad, cut, *(one.pitch for one in slices))),
        functions.name("gather", f"{kept}, {t} *shared", gathered(quad, cut)),
    )  # fmt: skip
    written = frozenset({out.root})
    name = store.function("store", ["const INDEX item", "const int e", f"const {t} *shared"], written, "INDEX")
    work = 2 * elements * shape.size
    reads = frozenset(f.root for f in sources)
    return Task(
        store.equations, math.prod(lengths), name, tuple(store.names), reads, written,
        operations=work, walks={out.root: Walk(1, 0)} if whole and out.whole and cut.little else {}, tile=tile,
    )  # fmt: skip


@dataclass(frozen=True)
class Slice:
    """What a step needs of a side.

    Attributes:
        number: the variable that counts squares along it.
        lines: how many there are in all.
        length: of a square.
        depth: terms of each.
    """

    number: str
    lines: int
    length: int
    depth: int
    side: Edge

    @property
    def each(self) -> int:
        """Elements that a thread fetches."""
        return self.length * self.depth // THREADS

    @property
    def pitch(self) -> int:
        """In shared memory, from a term to the next."""
        return self.length + QUAD

    def spot(self, what: str) -> str:
        """Which line, or term, a thread's element ``n`` is of; neighbouring threads read what lies together."""
        fast = self.depth if self.side.near else self.length
        return f"t % {fast}" if (what == "term") == self.side.near else f"(t / {fast} + n * {THREADS // fast})"

    def fetch(self, w: Item, start: int, t: str) -> None:
        """Into registers from ``start`` on; 0 for what is not there."""
        w.open(f"LG_UNROLL for (int n = 0; n < {self.each}; n++) {{")
        w.add(f"const INDEX at = {self.number} * {self.length} + {self.spot('line')};")
        w.add(f"const INDEX k = begin + done + {self.spot('term')};")
        place, inside = self.side.read(w)
        there = " && ".join([f"at < {self.lines}", "k < end", *([inside] if inside else [])])
        w.add(f"keep[{start} + n] = {there} ? ({t}){place} : 0;")
        w.close()

    def put(self, start: int, begin: int) -> str:
        """From there into shared memory, a row for each term."""
        place = f"shared[{begin} + {self.spot('term')} * {self.pitch} + {self.spot('line')}]"
        return f"    LG_UNROLL for (int n = 0; n < {self.each}; n++) {place} = keep[{start} + n];"


def multiplied(quad: str, cut: Cut, rows: int, columns: int) -> list[str]:
    """A step's terms, those of each group of threads, added to the products that a thread keeps."""
    tall = cut.tall
    term = f"(k + t / {cut.team} * {TERMS})" if cut.groups > 1 else "k"
    x = f"shared[{term} * {rows} + t % {cut.team} / {cut.along} * {tall} + h * {QUAD}]"
    y = f"shared[{cut.depth * rows} + {term} * {columns} + t % {cut.along} * {QUAD}]"
    return [
        f"    LG_UNROLL for (int k = 0; k < {TERMS}; k++) {{",
        f"        const {quad} y = *(const {quad} *)&{y};",
        f"        LG_UNROLL for (int h = 0; h < {tall // QUAD}; h++) {{",
        f"            const {quad} x = *(const {quad} *)&{x};",
        f"            LG_UNROLL for (int i = 0; i < {QUAD}; i++)",
        f"                LG_UNROLL for (int j = 0; j < {QUAD}; j++)",
        f"                    keep[(h * {QUAD} + i) * {QUAD} + j] += x.at[i] * y.at[j];",
        "        }",
        "    }",
    ]


def gathered(quad: str, cut: Cut) -> list[str]:
    """Each group's products into shared memory, a square after the other."""
    row = f"(t % {cut.team} / {cut.along} * {cut.tall} + i)"
    place = f"t / {cut.team} * {cut.high * cut.wide} + {row} * {cut.wide} + t % {cut.along} * {QUAD}"
    return [
        f"    LG_UNROLL for (int i = 0; i < {cut.tall}; i++) {{",
        f"        {quad} z;",
        f"        LG_UNROLL for (int j = 0; j < {QUAD}; j++) z.at[j] = keep[i * {QUAD} + j];",
        f"        *({quad} *)&shared[{place}] = z;",
        "    }",
    ]

"""Products of whole matrices by blocks of threads: each makes a square of the result.

Step by step along the sum the block puts a slice of its rows and one of its columns into shared memory, and each thread
keeps the products of four by four elements in registers. What the next step needs is fetched while this one multiplies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leafgrad.lowering.expressions import HELD, STORED
from leafgrad.lowering.forms import Form
from leafgrad.lowering.strides import linear, spread
from leafgrad_cuda.writer import QUAD, Item, Task, Tile, quad_type

SIDE = 64  # of a square
DEPTH = 16  # terms of the sum in a step
ALONG = SIDE // QUAD  # threads along a side
THREADS = ALONG**2
EACH = SIDE * DEPTH // THREADS  # elements of a slice that a thread fetches
PITCH = SIDE + QUAD
PRODUCTS = QUAD**2  # which a thread keeps, before what it fetched
LEAST = 32  # rows, and columns, from which on squares are not mostly empty
WORK = 1 << 20  # multiplications from which on a block has enough to do
BLOCKS = 264  # two for each processor; where squares are fewer, sums are cut
SHORTEST = 4 * DEPTH  # terms of a part of a sum that is cut


def fits(a: Form, b: Form, out: Form) -> bool:
    """Whether a product is large enough."""
    (m, k), n = a.shape[-2:], b.shape[-1]
    return min(m, n) >= LEAST and k >= DEPTH and math.prod(out.shape) * k >= WORK


def parts(a: Form, out: Form) -> int:
    """In how many parts its sums are cut."""
    squares = math.prod(out.shape[:-2]) * -(-out.shape[-2] // SIDE) * -(-out.shape[-1] // SIDE)
    return max(1, min(a.shape[-1] // SHORTEST, BLOCKS // squares))


@dataclass(frozen=True)
class Slice:
    """What a step reads of an operand: ``SIDE`` of its lines, which are rows or columns, and ``DEPTH`` terms of each.

    Attributes:
        name: of its array.
        first: its first line.
        lines: how many lines there are in all.
        place: where term ``k`` of line ``at`` lies.
        near: whether terms lie nearer to each other than lines.
        type: in which it is read.
        kept: after how many numbers in registers those of the slice come.
        start: where it begins in shared memory.
    """

    name: str
    first: str
    lines: int
    place: str
    near: bool
    type: str
    kept: int
    start: int

    def elements(self, statements: Sequence[str]) -> list[str]:
        """Statements for element ``i`` that a thread fetches; neighbouring threads read what lies together."""
        line, term = (f"e / {DEPTH}", f"e % {DEPTH}") if self.near else (f"e % {SIDE}", f"e / {SIDE}")
        return [
            f"    LG_UNROLL for (int i = 0; i < {EACH}; i++) {{",
            f"        const int e = t + i * {THREADS}, line = {line}, term = {term};",
            *(f"        {statement}" for statement in statements),
            "    }",
        ]

    def fetched(self) -> list[str]:
        """Into registers; 0 for what is not there."""
        return self.elements([
            f"const INDEX at = {self.first} + line, k = begin + done + term;",
            f"keep[{self.kept} + i] = at < {self.lines} && k < end ? ({self.type}){self.name}[{self.place}] : 0;",
        ])  # fmt: skip

    def put(self) -> list[str]:
        """From there into shared memory, a row for each term."""
        return self.elements([f"shared[{self.start} + term * {PITCH} + line] = keep[{self.kept} + i];"])


def tiled(w: Item, a: Form, b: Form, out: Form, size: int) -> Task:
    """A task whose items are squares.

    Args:
        out: (parts, ..., m, n).
        size: the terms of a part.
    """
    count, *lead, m, n = out.shape
    k, t = a.shape[-1], HELD[out.root.dtype]
    dims = [d for d in range(len(lead)) if lead[d] != 1]
    stacked = [f"l{d}" for d in dims]
    lengths = [count, *(lead[d] for d in dims), -(-m // SIDE), -(-n // SIDE)]
    w.split("item", ["part", *stacked, "high", "wide"], lengths)
    w.add(f"const INDEX row = high * {SIDE}, column = wide * {SIDE};")
    square = w.lines

    def operand(form: Form, name: str, first: str, own: int, summed: int) -> Slice:
        steps = [int(s or 0) for s in spread(form, (*lead, *form.shape[-2:]))]
        place = linear(form.offset, [*(steps[d] for d in dims), steps[own], steps[summed]], [*stacked, "at", "k"])
        near, number = abs(steps[summed]) <= abs(steps[own]), "xy".index(name)
        kept, start = PRODUCTS + number * EACH, number * DEPTH * PITCH
        return Slice(name, first, form.shape[own], place, near, HELD[form.root.dtype], kept, start)

    slices = [operand(a, "x", "row", -2, -1), operand(b, "y", "column", -1, -2)]
    names, given = w.functions.name, f"const int t, {t} *keep"
    arrays = ", ".join(f"const {STORED[form.root.dtype]} *{s.name}" for form, s in zip((a, b), slices, strict=True))
    part = f"    const INDEX begin = part * {size}, end = begin + {size} < {k} ? begin + {size} : {k};"
    body = [*square, part, *slices[0].fetched(), *slices[1].fetched()]
    fetch = names("fetch", f"const INDEX item, const INDEX done, {given}, {arrays}", body)
    put = names("put", f"{given}, {t} *shared", [*slices[0].put(), *slices[1].put()])
    multiply = names("multiply", f"{given}, const {t} *shared", multiplied(t))
    steps = [int(s or 0) for s in out.strides]
    steps = [steps[0], *(steps[1 + d] for d in dims), *steps[-2:]]
    place = linear(out.offset, steps, ["part", *stacked, "(row + i)", "(column + j)"])
    body = [*square, *stored(f"z[{place}]", m, n)]
    store = names("store", f"const INDEX item, {given}, {STORED[out.root.dtype]} *z", body)
    shared = 2 * DEPTH * PITCH * (8 if t == "double" else 4)
    tile = Tile(t, PRODUCTS + 2 * EACH, size, DEPTH, THREADS, shared, fetch, put, multiply)
    roots = (a.root, b.root, out.root)
    reads, writes, work = frozenset(roots[:2]), frozenset(roots[2:]), 2 * m * n * size // math.prod(lengths[-2:])
    return Task(w.equations, math.prod(lengths), store, roots, reads, writes, operations=work, tile=tile)


def multiplied(t: str) -> list[str]:
    """A step's terms, added to the products that a thread keeps."""
    quad = quad_type("float64" if t == "double" else "float32")
    return [
        f"    LG_UNROLL for (int k = 0; k < {DEPTH}; k++) {{",
        f"        const {quad} x = *(const {quad} *)&shared[k * {PITCH} + t / {ALONG} * {QUAD}];",
        f"        const {quad} y = *(const {quad} *)&shared[{DEPTH * PITCH} + k * {PITCH} + t % {ALONG} * {QUAD}];",
        f"        LG_UNROLL for (int i = 0; i < {QUAD}; i++)",
        f"            LG_UNROLL for (int j = 0; j < {QUAD}; j++) keep[i * {QUAD} + j] += x.at[i] * y.at[j];",
        "    }",
    ]


def stored(place: str, rows: int, columns: int) -> list[str]:
    """The products of a thread, where there is such a row and column."""
    return [
        f"    LG_UNROLL for (int r = 0; r < {QUAD}; r++)",
        f"        LG_UNROLL for (int c = 0; c < {QUAD}; c++) {{",
        f"            const INDEX i = t / {ALONG} * {QUAD} + r, j = t % {ALONG} * {QUAD} + c;",
        f"            if (row + i < {rows} && column + j < {columns}) {place} = keep[r * {QUAD} + c];",
        "        }",
    ]

"""Sums of products over the points of a chunk, as the gradients of weights are, as C functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leafgrad.lowering.expressions import C_TYPES
from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import LOOK
from leafgrad.lowering.strides import collapsed
from leafgrad_native.blocks import LONG, LONGEST, blocks, each, fused, lanes, padding, short, tree, vector, vectors
from leafgrad_native.target import registers

if TYPE_CHECKING:
    from leafgrad_native.products import Products

# Of the vectors' length, up to which a sum over points is better computed with a side along the vector; measured.
WASTE = {"float32": 1.35, "float64": 1.1}
SIDE = 4  # a block of accumulators of a sum over points is SIDE x SIDE, half as wide with few registers


@dataclass(frozen=True)
class Contraction:
    """``s[k, j] += sum of x[..., k, p] * y[..., j, p]`` over n points and what stands for the dots.

    Attributes:
        kind, chunk: the dtype, and the points from one lane to the next.
        k, j: how many.
        xk, yj, sk, sj: strides, of x and y in lanes, of s in elements.
        lead: of each other dimension the length, and the strides of x and y.
    """

    kind: str
    chunk: int
    k: int
    j: int
    xk: int
    yj: int
    sk: int
    sj: int
    lead: tuple[tuple[int, int, int], ...]

    @property
    def wide(self) -> bool:
        """Whether j runs along the vector, not the points."""
        return padding(self.j, self.kind) <= WASTE[self.kind] and self.k >= SIDE

    @property
    def points(self) -> int:
        """At most as many products are summed for each k and j."""
        return LONGEST * math.prod(n for n, _, _ in self.lead)

    def text(self, name: str, products: Products) -> list[str]:
        t = C_TYPES[self.kind]
        return [
            f"// s[k, j] += sum over n points of x[k, p] y[p, j] for {self.k} k and {self.j} j"
            + "".join(f", {n} times" for n, _, _ in self.lead),
            f"LG_FUNCTION int {name}",
            f"(lg_call *call, {t} *restrict x, {t} *restrict y, {t} *restrict s, long n) {{",
            *(self.along_sides(products) if self.wide else self.along_points()),
            "    (void)call;",
            "    return 0;",
            "}",
        ]

    def repeated(self, lines: list[str]) -> list[str]:
        """``lines`` for each element of the leading dimensions, whose points begin at ``xq`` and ``yq``."""
        t, names = C_TYPES[self.kind], [f"q{d}" for d in range(len(self.lead))]
        heads = [f"    for (long {q} = 0; {q} < {n}; {q}++)" for q, (n, _, _) in zip(names, self.lead, strict=True)]
        starts = [
            " + ".join([side, *(f"{q} * {dim[at] * self.chunk}L" for q, dim in zip(names, self.lead, strict=True))])
            for side, at in (("x", 1), ("y", 2))
        ]
        return [*heads, f"    {{ {t} *xq = {starts[0]}, *yq = {starts[1]};", *lines, "    }"]

    # ---- points along the vector --------------------------------------------------------------------------------

    def along_points(self) -> list[str]:
        t = C_TYPES[self.kind]
        lines = whole_vectors(t)
        lines += self.repeated([
            *emptied("xq", self.k, self.xk * self.chunk),
            *emptied("yq", self.j, self.yj * self.chunk),
        ])  # fmt: skip
        first, row = 0, self.j * self.points
        for height, rows in blocks(self.k, SIDE):
            left = 0
            for width, columns in blocks(self.j, SIDE if registers() > 16 else SIDE // 2):
                lines += [
                    *each("k", first, first + height * rows, height, height * row, self.k * row),
                    f"    for (long j = {left}; j < {left + width * columns}; j += {width}) {{",
                    *self.block(height, width),
                    "    } }",
                ]
                left += width * columns
            first += height * rows
        return lines

    def block(self, height: int, width: int) -> list[str]:
        """One block of ``height`` x ``width`` accumulators over all points, added to its place."""
        t, v, size = C_TYPES[self.kind], vector(self.kind), lanes(self.kind)
        ax, by = self.xk * self.chunk, self.yj * self.chunk
        cells = [(r, c) for r in range(height) for c in range(width)]
        inner = [
            f"        for (long p = 0; p < m; p += LG_VL({t})) {{",
            "            " + " ".join(f"const {v} y{c} = *({v} *)(yq + (j + {c}) * {by}L + p);" for c in range(width)),
        ]
        for r in range(height):
            adds = " ".join(f"a{r}_{c} = {fused(self.kind, 'h', f'y{c}', f'a{r}_{c}')};" for c in range(width))
            inner.append(f"            {{ const {v} h = *({v} *)(xq + (k + {r}) * {ax}L + p); {adds} }}")
        lines = [
            f"        {v} {', '.join(f'a{r}_{c} = {{0}}' for r, c in cells)};",
            *self.repeated([*inner, "        }"]),
        ]
        for start in range(0, len(cells), size):
            some = cells[start : start + size]
            names = [f"a{r}_{c}" for r, c in some] + [f"({v}){{0}}"] * (size - len(some))
            lines.append(f"        {{ const {v} t = {tree(self.kind, names)};")
            if self.sj == 1 and width == 4 and len(some) == size:
                place = f"s + (k + {some[0][0]}) * {self.sk}L + j, {self.sk}L"
                lines.append(f"          lg_add_rows_{short(self.kind)}({place}, t); }}")
                continue
            lines.append(
                "          "
                + " ".join(
                    f"s[(k + {r}) * {self.sk}L + (j + {c}) * {self.sj}L] += t[{i}];" for i, (r, c) in enumerate(some)
                )
                + " }"
            )
        return lines

    # ---- j along the vector -------------------------------------------------------------------------------------

    def along_sides(self, products: Products) -> list[str]:
        """With y transposed, as a product of matrices."""
        t, size = C_TYPES[self.kind], lanes(self.kind)
        wide = min(-(-self.j // size), vectors())
        columns = -(-self.j // (wide * size)) * wide * size
        products.turn(self.kind)
        lines, first = self.turned(columns), 0
        for height, count in blocks(self.k):
            start, stop = str(first), str(first + height * count)
            if self.k * columns * self.points > LONG:
                rounds = max(1, LOOK // (height * columns * LONGEST))
                lines.append(f"    LG_STRETCHES({start}, {stop}, {rounds * height})")
                start, stop = "lg_first", "lg_end"
            lines.append(
                f"    {products.tile(self.kind, wide, height)}({stop} - {start}, {self.j}, n, "
                f"xq + {start} * {self.xk * self.chunk}L, {self.xk * self.chunk}, 1, turned, {columns}, 1, "
                f"s + {start} * {self.sk}L, {self.sk}, {self.sj}, 1);"
            )
            first += height * count
        return [f"    {t} turned[{self.chunk * columns}] __attribute__((aligned(64)));", *self.repeated(lines)]

    def turned(self, columns: int) -> list[str]:
        """``turned[p, :]`` becomes ``y[p, :]`` for n points, and 0 beyond its ``j`` elements."""
        size, step, j = lanes(self.kind), self.yj * self.chunk, self.j
        call = f"lg_turn_{short(self.kind)}(yq + j * {step}L + p, {step}L, turned + p * {columns} + j, {columns});"
        if j < size:
            return [
                "    for (long p = 0; p < n; p++)",
                f"        for (long j = 0; j < {columns}; j++)",
                f"            turned[p * {columns} + j] = j < {j} ? yq[j * {step}L + p] : 0;",
            ]
        last = [f"        {{ const long j = {j - size}; {call} }}"] if j % size else []  # over what is there already
        v, rest = vector(self.kind), range(j // size * size, columns, size)
        return [
            *(f"    for (long p = 0; p < n; p++) *({v} *)(turned + p * {columns} + {at}) = ({v}){{0}};" for at in rest),
            f"    for (long p = 0; p < n; p += {size}) {{",
            f"        for (long j = 0; j + {size} <= {j}; j += {size}) {call}",
            *last,
            "    }",
        ]


def contraction(a: Form, b: Form, out: Form, chunk: int) -> tuple[Contraction, bool]:
    """The sum of ``a[..., k] * b[..., j]`` for ``out[k, j]``, and whether a and b change places in it."""
    lead, (steps, others) = collapsed(a.shape[:-1], a.axis, [a.strides[:-1], b.strides[:-1]])
    sides = [(form.shape[-1], form.strides[-1] or 0, own) for form, own in ((a, steps), (b, others))]
    sk, sj = (s or 0 for s in out.strides)
    kind = a.root.dtype
    exchanged = padding(sides[1][0], kind) > padding(sides[0][0], kind)  # it wastes less of its vectors then
    if exchanged:
        sides, sk, sj = sides[::-1], sj, sk
    (k, xk, left), (j, yj, right) = sides
    return Contraction(kind, chunk, k, j, xk, yj, sk, sj, tuple(zip(lead, left, right, strict=True))), exchanged


def whole_vectors(t: str) -> list[str]:
    """``m``: n points in whole vectors."""
    return [f"    const long m = (n + LG_VL({t}) - 1) / LG_VL({t}) * LG_VL({t});"]


def emptied(x: str, count: int, step: int) -> list[str]:
    """What lies beyond the n points of ``count`` lanes becomes zero, and counts nothing in a sum."""
    return [f"    for (long k = 0; k < {count}; k++) for (long p = n; p < m; p++) {x}[k * {step}L + p] = 0;"]

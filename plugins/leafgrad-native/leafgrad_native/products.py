"""Matrix products as C functions, those on the points of a chunk for sizes that the compiler knows.

Products with small shared weights keep a block of outputs in registers while they walk along the inner dimension,
with the points of a chunk along the vector. Sums over the points keep a block of vector accumulators. Large products
of whole arrays go to the BLAS that NumPy carries, where it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import getitem
from typing import Any

from leafgrad.compile.ir.extent import applied, present
from leafgrad.lowering.expressions import C_TYPES
from leafgrad.lowering.forms import Form
from leafgrad_native.blocks import (
    LONGEST,
    accumulated,
    accumulators,
    blocks,
    each,
    fused,
    lanes,
    short,
    stored,
    tree,
    turned,
    vector,
    vectors,
)
from leafgrad_native.contractions import contraction, emptied, whole_vectors
from leafgrad_native.packed import sizes, units
from leafgrad_native.rows import MOST_OF_A_ROW, axpys, dots
from leafgrad_native.target import vector_bytes
from leafgrad_native.tiles import edge, tile

BLAS_FROM = 1 << 28  # multiplications; below, what is here was as fast as OpenBLAS or faster
Ends = Callable[[int], tuple[str, str]]  # of so many rounds of a loop, where those of a thread begin and end


class Products:
    """The functions that a program needs, each once. They return what a look for signals did.

    Attributes:
        functions: name -> definition.
        blas: whether large whole products may call BLAS.
        packed: the dtypes of which products call the library of ``packed.py``.
    """

    def __init__(self, blas: bool) -> None:
        self.blas = blas
        self.packed: set[str] = set()
        self.functions: dict[str, list[str]] = {}
        self.named: dict[tuple[Any, ...], str] = {}

    def function(self, stem: str, key: tuple[Any, ...], text: Callable[[str], list[str]]) -> str:
        """The name of the function of a stem with this key, whose text follows from its name."""
        if (stem, *key) not in self.named:
            name = self.named[stem, *key] = f"{stem}{len(self.named)}"
            self.functions[name] = text(name)
        return self.named[stem, *key]

    # ---- in chunks --------------------------------------------------------------------------------------------

    def weights(self, kind: str, chunk: int, k: int, j: int, xk: int, oj: int, wk: int, wj: int) -> str:
        """``o[j, p] = sum over k of x[k, p] * w[k, j]``. Strides of x and o count lanes, those of w elements."""
        t, wide, points = C_TYPES[kind], vectors(), vectors() * lanes(kind)

        def text(name: str) -> list[str]:
            lines = [
                f"// o[j, p] = sum over k of x[k, p] w[k, j] for {k} k and {j} j",
                f"LG_FUNCTION int {name}(lg_call *call, const {t} *restrict x, const {t} *restrict w, "
                f"{t} *restrict o, long m) {{",
                f"    for (long p = 0; p < m; p += {points}) {{",
            ]
            start = 0
            for size, count in blocks(j):
                end = start + size * count
                weights = [f"w[k * {wk}L + (j + {r}) * {wj}L]" for r in range(size)]
                lines += [
                    *each("j", start, end, size, k * points * size, LONGEST * k * end),
                    accumulators(kind, size, wide),
                    f"for (long k = 0; k < {k}; k++) {{",
                    *accumulated(kind, weights, wide, f"x + k * {xk * chunk}L + p"),
                    "}",
                    *(stored(kind, r, wide, f"o + (j + {r}) * {oj * chunk}L + p") for r in range(size)),
                    "        }",
                ]
                start = end
            return [*lines, "    }", "    (void)call;", "    return 0;", "}"]

        return self.function("times", (kind, chunk, k, j, xk, oj, wk, wj), text)

    def points(self, kind: str, chunk: int, k: int, xk: int, yk: int) -> str:
        """``o[p] = sum over k of x[k, p] * y[k, p]``."""
        t, v = C_TYPES[kind], vector(kind)
        right = f"*(const {v} *)(y + k * {yk * chunk}L + p)"
        head = f"(lg_call *call, const {t} *restrict x, const {t} *restrict y, {t} *restrict o, long m) {{"
        lines = [
            f"    for (long p = 0; p < m; p += LG_VL({t})) {{",
            f"        {v} s = {{0}};",
            f"        for (long k = 0; k < {k}; k++)",
            f"            s = {fused(kind, f'*(const {v} *)(x + k * {xk * chunk}L + p)', right, 's')};",
            f"        *({v} *)(o + p) = s;",
            "    }",
            "    (void)call;",
            "}",
        ]
        about = f"// o[p] = sum over {k} k of x[k, p] y[k, p]"
        return self.function("dot", (kind, chunk, k, xk, yk), lambda name: [about, f"static void {name}{head}", *lines])

    def sums(self, chunk: int, a: Form, b: Form, out: Form, row: Callable[..., str]) -> str:
        """A call that adds the sum of ``a[..., k] * b[..., j]`` over points and leading dimensions to ``out[k, j]``."""
        found, exchanged = contraction(a, b, out, chunk)
        name = self.function("gather", (found,), lambda name: found.text(name, self))
        x, y, s = (row(form, [], []) for form in (*((b, a) if exchanged else (a, b)), out))
        return f"if ((code = {name}(call, {x}, {y}, {s}, n))) return code;"

    def totals(self, kind: str, chunk: int, count: int, xs: int, ss: int) -> str:
        """``s[k] += sum over points of x[k, p]`` for ``count`` lanes, as many together as a vector has elements."""
        t, v, size = C_TYPES[kind], vector(kind), lanes(kind)

        def text(name: str) -> list[str]:
            lines = [
                f"// s[k] += sum over n points of x[k, p] for {count} k",
                f"LG_FUNCTION void {name}(lg_call *call, {t} *restrict x, {t} *restrict s, long n) {{",
                *whole_vectors(t),
                *emptied("x", count, xs * chunk),
            ]
            whole = count // size * size
            for first, end in ((0, whole), (whole, count)):
                if first == end:
                    continue
                some = range(min(size, end - first))
                names = [f"a{k}" for k in some] + [f"({v}){{0}}"] * (size - len(some))
                lines += [
                    f"    for (long k = {first}; k < {end}; k += {size}) {{",
                    f"      {v} {', '.join(f'a{k} = {{0}}' for k in some)};",
                    f"      for (long p = 0; p < m; p += {size}) {{",
                    *(f"          a{k} += *(const {v} *)(x + (k + {k}) * {xs * chunk}L + p);" for k in some),
                    "      }",
                    f"      const {v} t = {tree(kind, names)};",
                    *(f"      s[(k + {k}) * {ss}L] += t[{k}];" for k in some),
                    "    }",
                ]
            return [*lines, "    (void)call;", "}"]

        return self.function("totals", (kind, chunk, count, xs, ss), text)

    def turn(self, kind: str) -> str:
        """The function that transposes square blocks."""
        self.functions.setdefault(f"turn_{short(kind)}", turned(kind))
        return f"lg_turn_{short(kind)}"

    def tile(self, kind: str, wide: int, height: int) -> str:
        """The function for blocks of so many vectors and rows."""
        self.functions.setdefault(f"edge_{short(kind)}", edge(kind))
        return self.function("tile", (kind, wide, height), lambda name: tile(name, kind, wide, height))

    # ---- of whole arrays --------------------------------------------------------------------------------------

    def by_blas(self, a: Form, b: Form, out: Form) -> bool:
        """Whether BLAS computes a product of whole matrices: it is large, and BLAS can read them."""
        (m, k), n = a.shape[-2:], b.shape[-1]
        om, on = (s or 0 for s in out.strides[-2:])
        large = self.blas and m * k * n >= BLAS_FROM
        return large and leading(a) is not None and leading(b) is not None and (on == 1 or n == 1) and om >= n

    def whole(self, a: Form, b: Form, out: Form, pa: str, pb: str, po: str, ends: Ends) -> str:
        """A call for one product of matrices in memory; ``ends`` tells which of its blocks of rows."""
        kind = a.root.dtype
        m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
        (am, ak), (bk, bn), (om, on) = (
            tuple(s or 0 for s in f.strides[-2:]) for f in (a, b, out)
        )  # fmt: skip
        left, right = leading(a), leading(b)
        if self.by_blas(a, b, out) and left and right:
            letter = "s" if kind == "float32" else "d"
            return (
                f"call->{letter}gemm(101, {left[0]}, {right[0]}, {m}, {n}, {k}, 1, "
                f"{pa}, {left[1]}, {pb}, {right[1]}, 0, {po}, {om if m > 1 else max(om, n)});"
            )
        if n < vector_bytes() // 8 and m > n:  # the longer side along the vector
            m, n, pa, pb = n, m, pb, pa
            (am, ak), (bk, bn), (om, on) = (bn, bk), (ak, am), (on, om)
        first, last = ends(applied(units, m, n, kind))
        if m == 1 and ak == 1 and k * n <= MOST_OF_A_ROW and (bk == 1 or bn == on == 1):
            by_dots = bk == 1
            if not by_dots or k >= 2 * lanes(kind):
                name = self.function("row", (kind, by_dots), partial(dots if by_dots else axpys, kind))
                return f"if ({first} < {last}) {name}({pa}, {pb}, {po}, {k}L, {n}L, {bn if by_dots else bk}L, {on}L);"
        numbers = applied(partial(sizes, kind), m, k, n, am, ak, bk, bn, om, on)
        numbers = ", ".join([str(applied(getitem, numbers, i)) for i in range(len(present(numbers)))])
        self.packed.add(kind)
        call = f"call->product_{short(kind)}(call, {pa}, {pb}, {po}, &(lg_sizes){{{numbers}}}, {first}, {last})"
        return f"if ((code = {call})) return code;  // {m} x {k} and {k} x {n}"


def leading(x: Form) -> tuple[int, int] | None:
    """How BLAS reads a matrix: 111 as it is, 112 transposed; and its leading dimension."""
    m, n = x.shape[-2:]
    rows, columns = (s or 0 for s in x.strides[-2:])
    if (columns == 1 or n == 1) and (rows >= n or m == 1):
        return 111, max(rows, n) if m > 1 else max(n, 1)
    if (rows == 1 or m == 1) and (columns >= m or n == 1):
        return 112, max(columns, m) if n > 1 else max(m, 1)
    return None

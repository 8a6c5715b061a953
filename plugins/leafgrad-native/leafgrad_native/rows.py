"""Products of one row and a matrix as C: each element of the matrix is read once, and stays where it is."""

from __future__ import annotations

from leafgrad.lowering.expressions import C_TYPES
from leafgrad_native.blocks import fused, lanes, loose, tree, vector

MOST_OF_A_ROW = 1 << 26  # multiplications, some hundredths of a second in which nothing looks for signals
TOGETHER = 8  # columns whose sums are in registers at once
STRETCH = 2048  # elements of the result, which stay in the innermost cache

# One row x of k elements; b has k rows and n columns; o is the row of the results, os apart.
PARAMETERS = "const {t} *restrict x, const {t} *restrict b, {t} *restrict o, long k, long n, long bs, long os"


def dots(kind: str, name: str) -> list[str]:
    """Of each column, whose elements lie side by side, ``bs`` behind those of the last: its product with x."""
    t, v, u, size = C_TYPES[kind], vector(kind), loose(kind), lanes(kind)
    together = min(TOGETHER, size)
    lines = [
        "// o[j] = sum over k of x[k] b[j, k]",
        f"LG_FUNCTION void {name}({PARAMETERS.format(t=t)}) {{",
        f"    const long whole = k / {size} * {size};",
        "    long j = 0;",
    ]
    for count in (together, 1):
        sums = [f"a{r}" for r in range(count)]
        lines += [
            f"    for (; j + {count} <= n; j += {count}) {{",
            f"        const {t} *restrict c = b + j * bs;",
            f"        {v} {', '.join(f'{a} = {{0}}' for a in sums)};",
            f"        for (long i = 0; i < whole; i += {size}) {{",
            f"            const {v} y = *(const {u} *)(x + i);",
            *(
                f"            {a} = {fused(kind, 'y', f'*(const {u} *)(c + {r} * bs + i)', a)};"
                for r, a in enumerate(sums)
            ),
            "        }",
            f"        {v} s = {tree(kind, sums + [f'({v}){{0}}'] * (size - count))};",
            "        for (long i = whole; i < k; i++) {",
            *(f"            s[{r}] += x[i] * c[{r} * bs + i];" for r in range(count)),
            "        }",
            *(f"        o[(j + {r}) * os] = s[{r}];" for r in range(count)),
            "    }",
        ]
    return [*lines, "}"]


def axpys(kind: str, name: str) -> list[str]:
    """The sum of the rows of b, ``bs`` apart, whose elements lie side by side, each times an element of x."""
    t = C_TYPES[kind]
    four = " + ".join(f"x[i + {r}] * c[{r} * bs + j]" for r in range(4))
    return [
        "// o[j] = sum over k of x[k] b[k, j]",
        f"LG_FUNCTION void {name}({PARAMETERS.format(t=t)}) {{",
        "    (void)os;",
        f"    for (long lo = 0; lo < n; lo += {STRETCH}) {{",
        f"        const long hi = lo + {STRETCH} < n ? lo + {STRETCH} : n;",
        "        for (long j = lo; j < hi; j++) o[j] = 0;",
        "        long i = 0;",
        "        for (; i + 4 <= k; i += 4) {",
        f"            const {t} *restrict c = b + i * bs;",
        "            #pragma omp simd",
        f"            for (long j = lo; j < hi; j++) o[j] += {four};",
        "        }",
        "        for (; i < k; i++) {",
        "            #pragma omp simd",
        "            for (long j = lo; j < hi; j++) o[j] += x[i] * b[i * bs + j];",
        "        }",
        "    }",
        "}",
    ]

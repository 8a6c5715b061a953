"""Products of whole matrices: panels of the right one in order, blocks of the result in registers."""

from __future__ import annotations

from leafgrad.lowering.expressions import C_TYPES
from leafgrad_native.blocks import accumulated, added, blocks, each, lanes, short, vector
from leafgrad_native.target import core_cache, registers, vector_bytes

PACKED = 1 << 16  # bytes of a block of the right matrix that is brought into order, where the left one's rows are not
LARGEST = 1 << 18  # the most that a block has where they are: then a left row is read seldom, and at full speed
DEEP = 128  # rows that it has at least, if there are so many
MANY = 24  # vectors of columns, of which those that are computed in vain do not count


def packed(
    name: str, kind: str, sizes: tuple[int, int, int], a: tuple[int, int], b: tuple[int, int], o: tuple[int, int]
) -> list[str]:
    """``o = a @ b`` for any strides: panels of b in order, in whole vectors, and blocks of the result in registers.

    Of the blocks of rows, those from ``first`` to ``last``: see `units`.
    """
    m, k, n = sizes
    t, v = C_TYPES[kind], vector(kind)
    size = lanes(kind)
    wide, most = block(-(-n // size))
    step = wide * size
    room = min(LARGEST, max(PACKED, core_cache() // 4)) if a[1] == 1 else PACKED
    elements = room // (vector_bytes() // size)
    columns = min(-(-n // step), max(1, elements // min(k, DEEP) // step)) * step
    depth = min(k, elements // columns)
    lines = [
        f"// o = a @ b for {m} x {k} and {k} x {n}",
        f"LG_FUNCTION int {name}",
        f"(lg_call *call, const {t} *restrict a, const {t} *restrict b, {t} *restrict o, long first, long last) {{",
        f"    {t} pack[{depth * columns}] __attribute__((aligned(64)));",
        f"    for (long j0 = 0; j0 < {n}; j0 += {columns})",
        f"    for (long k0 = 0; k0 < {k}; k0 += {depth}) {{",
        f"        const long nj = {n} - j0 < {columns} ? {n} - j0 : {columns};",
        f"        const long nk = {k} - k0 < {depth} ? {k} - k0 : {depth};",
        *panels(kind, depth, step, b),
    ]
    unit = start = 0
    for height, count in rows_of(m, most):
        rows = range(height)
        lines += [
            f"        {{ const long begin = first > {unit} ? first : {unit};",
            f"        const long end = last < {unit + count} ? last : {unit + count};",
            *each("u", "begin", "end", 1, height * columns * depth, m * k * n),
            f"        const long i = {start} + (u - {unit}) * {height};",
            f"        for (long j = 0; j < nj; j += {step}) {{",
            f"            {v} {', '.join(f'a{r}[{wide}] = {{{{0}}}}' for r in rows)};",
            f"            const {t} *panel = pack + j * {depth};",
            "            for (long k = 0; k < nk; k++) {",
            *accumulated(
                kind, [f"a[(i + {r}) * {a[0]}L + (k0 + k) * {a[1]}L]" for r in rows], wide, f"panel + k * {step}"
            ),
            "            }",
            f"            const long left = nj - j < {step} ? nj - j : {step};",
        ]
        for sign, when in (("=", "if (!k0) {"), ("+=", "} else {")):
            lines.append(f"            {when}")
            for r in rows:
                lines += added(kind, f"a{r}", wide, f"o + (i + {r}) * {o[0]}L + (j0 + j) * {o[1]}L", o[1], sign)
        lines.append("            }")
        lines.append("        } } }")
        unit += count
        start += height * count
    return [*lines, "    }", "    (void)call;", "    return 0;", "}"]


def rows_of(m: int, most: int) -> list[tuple[int, int]]:
    """`blocks` of rows: of many always two sizes, so that the text for another number of rows has as many loops."""
    found = blocks(m, most)
    return [*found, (most - 1, 0)] if len(found) == 1 and m >= most * most else found


def units(m: int, n: int, kind: str) -> int:
    """Blocks of rows that a result of m x n has."""
    return sum(count for _, count in blocks(m, block(-(-n // lanes(kind)))[1]))


def block(vectors: int) -> tuple[int, int]:
    """How many vectors of columns, and how many rows at most, of a product are computed in registers at once."""
    if registers() <= 16:
        return (1, 10) if vectors == 1 else (2, 6)
    if vectors >= MANY:
        return 4, 6
    return min(((4, 6), (3, 8), (2, 12), (1, 12)), key=lambda shape: -(-vectors // shape[0]) * shape[0])


def panels(kind: str, depth: int, step: int, b: tuple[int, int]) -> list[str]:
    """``pack`` becomes panels of ``step`` columns of b, zero beyond its last one."""
    t, size = C_TYPES[kind], lanes(kind)
    lines = [
        f"        for (long j = 0; j < nj; j += {step}) {{",
        f"            const long left = nj - j < {step} ? nj - j : {step};",
        f"            {t} *panel = pack + j * {depth};",
        f"            const {t} *from = b + k0 * {b[0]}L + (j0 + j) * {b[1]}L;",
    ]
    rest = f"for (long c = 0; c < {step}; c++) panel[k * {step} + c] = c < left ? from[k * {b[0]}L + c * {b[1]}L] : 0;"
    if b[1] == 1:
        return [
            *lines,
            f"            if (left == {step}) for (long k = 0; k < nk; k++) "
            f"for (long c = 0; c < {step}; c++) panel[k * {step} + c] = from[k * {b[0]}L + c];",
            f"            else for (long k = 0; k < nk; k++) {rest}",
            "        }",
        ]
    if b[0] == 1:
        square = f"from + k + c * {b[1]}L, {b[1]}L, panel + k * {step} + c, {step}"
        return [
            *lines,
            "            long k = 0;",
            f"            if (left == {step}) for (; k + {size} <= nk; k += {size})",
            f"                for (long c = 0; c < {step}; c += {size}) lg_turn_{short(kind)}({square});",
            f"            for (; k < nk; k++) {rest}",
            "        }",
        ]
    return [*lines, f"            for (long k = 0; k < nk; k++) {rest}", "        }"]

"""Blocks of a product of matrices, of so many rows and vectors of columns, which are summed in registers."""

from __future__ import annotations

from leafgrad.lowering.expressions import C_TYPES
from leafgrad_native.blocks import accumulated, accumulators, lanes, short, stored, vector


def tile(name: str, kind: str, wide: int, height: int) -> list[str]:
    """A function of the type ``lg_tile_f32`` or ``lg_tile_f64`` for blocks of ``height`` rows and ``wide`` vectors."""
    t, v, rows, step = C_TYPES[kind], vector(kind), range(height), wide * lanes(kind)
    return [
        f"LG_FUNCTION void {name}(LG_TILE({t})) {{",
        f"    for (long i = 0; i < rows; i += {height}, a += {height} * ai, o += {height} * oi)",
        f"    for (long j = 0; j < columns; j += {step}) {{",
        f"        {accumulators(kind, height, wide)}",
        f"        const {t} *row = b + j * bj;",
        "        for (long k = 0; k < depth; k++, row += bk) {",
        *accumulated(kind, [f"a[{r} * ai + k * ak]" for r in rows], wide, "row"),
        "        }",
        f"        {t} *to = o + j;",
        f"        if (oj == 1 && columns - j >= {step}) {{",
        "            if (more) {",
        *(f"                {stored(kind, r, wide, f'to + {r} * oi', '+=')}" for r in rows),
        "            } else {",
        *(f"                {stored(kind, r, wide, f'to + {r} * oi')}" for r in rows),
        "            }",
        "        } else {",
        f"            const {v} block[] = {{{', '.join(f'a{r}_{q}' for r in rows for q in range(wide))}}};",
        f"            const long left = columns - j < {step} ? columns - j : {step};",
        f"            lg_edge_{short(kind)}(({t} *)block, {height}, {step}, o + j * oj, oi, oj, left, more);",
        "        }",
        "    }",
        "}",
    ]


def edge(kind: str) -> list[str]:
    """A function for blocks that go beyond the last column, or whose columns do not lie side by side."""
    t = C_TYPES[kind]
    return [
        f"LG_FUNCTION void lg_edge_{short(kind)}",
        f"(const {t} *block, long rows, long step, {t} *restrict o, long oi, long oj, long left, int more) {{",
        "    for (long r = 0; r < rows; r++, block += step, o += oi)",
        "        if (oj == 1)",
        "            for (long c = 0; c < left; c++) o[c] = more ? o[c] + block[c] : block[c];",
        "        else",
        "            for (long c = 0; c < left; c++) o[c * oj] = more ? o[c * oj] + block[c] : block[c];",
        "}",
    ]

"""Products of whole matrices: panels of the right one in order, blocks of the result in registers.

Their functions are a library of their own, which all programs call: it is compiled once on a machine, and the C of a
program is the same for matrices of any size.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from string import Template
from threading import Thread

from leafgrad.lowering.expressions import C_TYPES
from leafgrad.lowering.kernels import LOOK
from leafgrad_native import build
from leafgrad_native.blocks import blocks, lanes, loose, short, turned, vector
from leafgrad_native.parts import END, in_parts
from leafgrad_native.target import core_cache, registers, vector_bytes
from leafgrad_native.tiles import edge, tile

PACKED = 1 << 16  # bytes of a block of the right matrix that is brought into order, where the left one's rows are not
LARGEST = 1 << 18  # the most that a block has where they are: then a left row is read seldom, and at full speed
DEEP = 128  # rows that it has at least, if there are so many
MANY = 24  # vectors of columns, of which those that are computed in vain do not count

# o = a @ b for any strides: blocks of b become panels of `step` columns in whole vectors, zero beyond its last one, and
# blocks of the result are computed in registers. Of the blocks of rows, those from first to last: see `units`.
_MULTIPLY = Template("""\
int lg_multiply_$s(LG_PRODUCT($t)) {
    lg_tile_$s *const tall = lg_tiles_$s[z->vectors][z->height], *const low = lg_tiles_$s[z->vectors][z->height - 1];
    $t pack[z->deep * z->wide] __attribute__((aligned(64)));
    const long step = z->step, bk = z->bk, bj = z->bj;
    long work = 0, code;
    for (long j0 = 0; j0 < z->columns; j0 += z->wide)
    for (long k0 = 0; k0 < z->depth; k0 += z->deep) {
        const long nj = z->columns - j0 < z->wide ? z->columns - j0 : z->wide;
        const long nk = z->depth - k0 < z->deep ? z->depth - k0 : z->deep;
        for (long j = 0; j < nj; j += step) {
            const long left = nj - j < step ? nj - j : step;
            const long whole = bj == 1 || bk == 1 ? left / $size * $size : 0; /* columns that are moved as vectors */
            const long squares = bj == 1 ? nk : nk / $size * $size;            /* and rows */
            const $t *from = b + k0 * bk + (j0 + j) * bj;
            $t *panel = pack + j * z->deep;
            if (left < step) memset(panel, 0, nk * step * sizeof *panel);
            if (bj == 1)
                for (long k = 0; k < nk; k++)
                    for (long c = 0; c < whole; c += $size)
                        *($v *)(panel + k * step + c) = *(const $u *)(from + k * bk + c);
            else
                for (long c = 0; c < whole; c += $size)
                    for (long k = 0; k < squares; k += $size)
                        lg_turn_$s(from + k + c * bj, bj, panel + k * step + c, step);
            for (long k = whole < left ? 0 : squares; k < nk; k++)
                for (long c = k < squares ? whole : 0; c < left; c++) panel[k * step + c] = from[k * bk + c * bj];
        }
        const long most = (last - first) * z->height * nj * nk <= $look ? last : 1 + $look / (z->height * nj * nk);
        for (long u = first, end; u < last; u = end) {
            const long high = u < z->tall, height = z->height - !high, stop = high && last > z->tall ? z->tall : last;
            const long i = u * height + (high ? 0 : z->tall);
            const $t *from = a + i * z->ai + k0 * z->ak;
            $t *to = o + i * z->oi + j0 * z->oj;
            end = stop - u < most ? stop : u + most;
            const long rows = (end - u) * height;
            (high ? tall : low)(rows, nj, nk, from, z->ai, z->ak, pack, step, z->deep, to, z->oi, z->oj, k0 > 0);
            if ((work += rows * nj * nk) > $look && (work = 0, code = call->look())) return (int)code;
        }
    }
    return 0;
}""")


@cache
def address(kind: str) -> int:
    """That of the function for products of this dtype.

    Raises:
        NoCompiler, CompilationFailed: from `leafgrad_native.compiler`.
    """
    name = f"lg_multiply_{short(kind)}"
    found = build.library(text(kind), "products", [name])
    found.stay()  # programs have the address
    return ctypes.cast(found[name], ctypes.c_void_p).value or 0


@contextmanager
def meanwhile(kinds: set[str]) -> Iterator[None]:
    """What is done within it, and the libraries of these dtypes, take the longer of their times."""

    def prepare(kind: str) -> None:
        with suppress(Exception):  # which `address` raises again
            address(kind)

    waiting = [Thread(target=prepare, args=(kind,)) for kind in kinds]
    for thread in waiting:
        thread.start()
    try:
        yield
    finally:
        for thread in waiting:
            thread.join()


def text(kind: str) -> str:
    """The C of the library, without the headers that it includes."""
    words = {"t": C_TYPES[kind], "s": short(kind), "v": vector(kind), "u": loose(kind)}
    shapes = [(wide, height) for wide, most in shapes_of_blocks() for height in range(1, most + 1)]
    tiles = [tile(f"tile{wide}_{height}", kind, wide, height) for wide, height in shapes]
    table = [
        f"static lg_tile_{short(kind)} *const lg_tiles_{short(kind)}[][{1 + max(h for _, h in shapes)}] = {{",
        *(f"    [{wide}][{height}] = tile{wide}_{height}," for wide, height in shapes),
        "};",
    ]
    last = [*table, *_MULTIPLY.substitute(words, size=lanes(kind), look=LOOK).splitlines()]
    return in_parts(END.join("\n".join(lines) for lines in [turned(kind), edge(kind), *tiles, last]))


def sizes(kind: str, m: int, k: int, n: int, *strides: int) -> tuple[int, ...]:
    """``lg_sizes`` of a product of a[m, k] and b[k, n] with these strides, two of each and of the product."""
    wide, most = block(-(-n // lanes(kind)))
    step = wide * lanes(kind)
    room = min(LARGEST, max(PACKED, core_cache() // 4)) if strides[1] == 1 else PACKED
    elements = room // (vector_bytes() // lanes(kind))
    columns = min(-(-n // step), max(1, elements // min(k, DEEP) // step)) * step
    depth = min(k, elements // columns)
    height, tall = blocks(m, most)[0]
    return (k, n, *strides, depth, columns, step, wide, height, tall)


def units(m: int, n: int, kind: str) -> int:
    """Blocks of rows that a result of m x n has."""
    return sum(count for _, count in blocks(m, block(-(-n // lanes(kind)))[1]))


def block(vectors: int) -> tuple[int, int]:
    """How many vectors of columns, and how many rows at most, of a product are computed in registers at once."""
    shapes = shapes_of_blocks()
    if vectors >= MANY or (registers() <= 16 and vectors > 1):
        return shapes[0]
    return min(shapes, key=lambda shape: -(-vectors // shape[0]) * shape[0])


def shapes_of_blocks() -> list[tuple[int, int]]:
    """Those that there are."""
    return [(2, 6), (1, 10)] if registers() <= 16 else [(4, 6), (3, 8), (2, 8), (1, 8)]

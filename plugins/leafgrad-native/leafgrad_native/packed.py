"""Products of whole matrices: panels of the right one in order, blocks of the result in registers."""

from __future__ import annotations

from string import Template

from leafgrad.lowering.expressions import C_TYPES
from leafgrad.lowering.kernels import LOOK
from leafgrad_native.blocks import blocks, lanes, loose, short, vector
from leafgrad_native.target import core_cache, registers, vector_bytes

PACKED = 1 << 16  # bytes of a block of the right matrix that is brought into order, where the left one's rows are not
LARGEST = 1 << 18  # the most that a block has where they are: then a left row is read seldom, and at full speed
DEEP = 128  # rows that it has at least, if there are so many
MANY = 24  # vectors of columns, of which those that are computed in vain do not count

# o = a @ b for any strides: blocks of b become panels of `step` columns in whole vectors, zero beyond its last one, and
# blocks of the result are computed in registers. Of the blocks of rows, those from first to last: see `units`.
_MULTIPLY = Template("""\
LG_FUNCTION int lg_multiply_$s
(lg_call *call, const $t *restrict a, const $t *restrict b, $t *restrict o, const lg_sizes *z, lg_tile_$s *tall,
 lg_tile_$s *low, long first, long last) {
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


def multiply(kind: str) -> list[str]:
    """The function for products of this dtype."""
    words = {"t": C_TYPES[kind], "s": short(kind), "v": vector(kind), "u": loose(kind)}
    return _MULTIPLY.substitute(words, size=lanes(kind), look=LOOK).splitlines()


def sizes(
    kind: str, m: int, k: int, n: int, a: tuple[int, int], b: tuple[int, int], o: tuple[int, int]
) -> tuple[str, int, list[int]]:
    """``lg_sizes`` of a product with these strides; then how many vectors, and how many rows, its two blocks have."""
    wide, most = block(-(-n // lanes(kind)))
    step = wide * lanes(kind)
    room = min(LARGEST, max(PACKED, core_cache() // 4)) if a[1] == 1 else PACKED
    elements = room // (vector_bytes() // lanes(kind))
    columns = min(-(-n // step), max(1, elements // min(k, DEEP) // step)) * step
    depth = min(k, elements // columns)
    (height, tall), *_ = rows = rows_of(m, most)
    numbers = (k, n, *a, *b, *o, depth, columns, step, height, tall)
    return f"&(lg_sizes){{{', '.join(map(str, numbers))}}}", wide, [height, rows[-1][0]]


def rows_of(m: int, most: int) -> list[tuple[int, int]]:
    """`blocks` of rows: of many always two sizes, so that another number of rows calls the same functions."""
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
    return min(((4, 6), (3, 8), (2, 8), (1, 8)), key=lambda shape: -(-vectors // shape[0]) * shape[0])

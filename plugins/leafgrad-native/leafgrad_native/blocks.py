"""What products are made of: vectors, blocks of rows, and squares that are transposed."""

from __future__ import annotations

from collections.abc import Sequence

from leafgrad.lowering.expressions import C_TYPES
from leafgrad.lowering.kernels import LOOK
from leafgrad_native.target import registers, vector_bytes

LONGEST = 1024  # points of a chunk
QUANTUM = 64  # their number is a multiple of it: four vectors of float32
LONG = 16 * LOOK  # multiplications of a function from which on it looks for signals itself
ROWS = 6  # outputs in registers at once, of some vectors each


def lanes(kind: str) -> int:
    """Elements of a vector."""
    return vector_bytes() // (4 if kind == "float32" else 8)


def vectors() -> int:
    """How many a row of a block has, of up to ROWS of them."""
    return 4 if registers() > 16 else 2


def padding(n: int, kind: str) -> float:
    """What ``n`` elements take in whole vectors, over ``n``."""
    return -(-n // lanes(kind)) * lanes(kind) / n


def short(kind: str) -> str:
    return "f32" if kind == "float32" else "f64"


def loose(kind: str) -> str:
    """A vector that may lie anywhere."""
    return f"lg_u{short(kind)}"


def vector(kind: str) -> str:
    return f"lg_v{short(kind)}"


def blocks(n: int, largest: int = ROWS) -> list[tuple[int, int]]:
    """``n`` cut into nearly equal blocks of at most ``largest``: (size, how many) pairs."""
    count = -(-n // largest)
    size, more = divmod(n, count)
    return [(s, c) for s, c in ((size + 1, more), (size, count - more)) if c]


def each(variable: str, first: int | str, end: int | str, by: int, inside: int, work: int) -> list[str]:
    """The head of a loop with so many multiplications in a round, in a function of so many."""
    start, stop, cut = str(first), str(end), []
    if work > LONG:
        start, stop = "lg_first", "lg_end"
        cut = [f"        LG_STRETCHES({first}, {end}, {max(1, LOOK // inside) * by})"]
    return [*cut, f"        for (long {variable} = {start}; {variable} < {stop}; {variable} += {by}) {{"]


def accumulators(kind: str, height: int, vectors: int, start: Sequence[str] = ()) -> str:
    """Declares a block: row r is the vectors ``a<r>_0``, ``a<r>_1``, ..., which are 0, or a number of each row."""
    starts = [f"({vector(kind)}){{0}} + {x}" for x in start] or ["{0}"] * height
    return f"{vector(kind)} {', '.join(f'a{r}_{q} = {starts[r]}' for r in range(height) for q in range(vectors))};"


def fused(kind: str, a: str, b: str, c: str) -> str:
    """The expression of a b + c, of vectors."""
    return f"lg_fused_{short(kind)}({a}, {b}, {c})"


def accumulated(kind: str, weights: Sequence[str], vectors: int, row: str, load: str = "") -> list[str]:
    """A round of a block of products: to its rows is added one that is read, times a weight of each.

    Args:
        weights: the expression of each.
        vectors: how many a row of the block has.
        row: where the row that is read begins.
        load: the type as which it is read; a vector by default.
    """
    reads = ", ".join(f"h{q} = *(const {load or vector(kind)} *)({row} + {q * lanes(kind)})" for q in range(vectors))
    lines = [f"const {vector(kind)} {reads};"]
    for r, weight in enumerate(weights):  # row by row, no more than one weight waits in a register
        sums = " ".join(f"a{r}_{q} = {fused(kind, f'h{q}', 'lg_w', f'a{r}_{q}')};" for q in range(vectors))
        lines.append(f"{{ const {vector(kind)} lg_w = ({weight}) - ({vector(kind)}){{0}}; {sums} }}")
    return lines


def stored(kind: str, r: int, vectors: int, place: str, sign: str = "=") -> str:
    """Row r of a block, put in memory that begins at ``place``, or added to what is there."""
    return " ".join(f"*({loose(kind)} *)({place} + {q * lanes(kind)}) {sign} a{r}_{q};" for q in range(vectors))


def tree(kind: str, names: Sequence[str], level: int = 0) -> str:
    """The vector of the sums of the elements of as many vectors as one has elements."""
    if len(names) == 1:
        return names[0]
    if level == 0:
        level = len(names)
    half = len(names) // 2
    pairs = [f"lg_pair{level}_{short(kind)}({a}, {b})" for a, b in zip(names[::2], names[1::2], strict=True)]
    return pairs[0] if half == 1 else tree(kind, pairs, level // 2)


def turned(kind: str) -> list[str]:
    """A function that transposes a square block of as many vectors as one has elements, by swapping halves."""
    n, t, v = lanes(kind), C_TYPES[kind], vector(kind)
    lines = [
        f"LG_FUNCTION void lg_turn_{short(kind)}(const {t} *x, long rows, {t} *o, long columns) {{",
        *(f"    {v} a{i} = *(const {loose(kind)} *)(x + {i} * rows);" for i in range(n)),
    ]
    half = n // 2
    while half:
        low = ", ".join(str(i if not i & half else n + i - half) for i in range(n))
        high = ", ".join(str(i + half if not i & half else n + i) for i in range(n))
        for i in range(n):
            if not i & half:
                a, b = f"a{i}", f"a{i + half}"
                lines.append(
                    f"    {{ const {v} t = __builtin_shufflevector({a}, {b}, {low}); "
                    f"{b} = __builtin_shufflevector({a}, {b}, {high}); {a} = t; }}"
                )
        half //= 2
    return [*lines, *(f"    *({loose(kind)} *)(o + {i} * columns) = a{i};" for i in range(n)), "}"]

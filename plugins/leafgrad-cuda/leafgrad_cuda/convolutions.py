"""Convolutions by implicit products: an item is a few channels of one output, so that it reads each source once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from leafgrad.lowering.expressions import HELD, held
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Convolve
from leafgrad.lowering.strides import linear
from leafgrad.lowering.sweeps import Line
from leafgrad_cuda import tiles
from leafgrad_cuda.along import Fold, added, folded, nearer
from leafgrad_cuda.walks import walks
from leafgrad_cuda.writer import Item, Refused, Task

TILES = (8, 4, 2, 1)  # channels of an item
FEWEST = 1 << 15  # items of whole arrays, where there are so many outputs
SHORT = 16  # terms up to which an item is one output, so that others may follow in the same thread


def convolve(item: Callable[[], Item], kernel: Convolve) -> list[Task]:
    """A convolution, its transpose, or its sum over windows."""
    whole = not item().chunk
    if kernel.kind == "taps":
        return summed(item, kernel) if whole else [taps(item(), kernel)]
    if kernel.sources[1].root.axis is not None:
        raise Refused(kernel.equation, "each point of a batch has a kernel of its own")
    return [(whole and square(item, kernel, lines)) or sweep(item(), kernel, lines) for lines in kernel.sweeps]


def names(variable: str, lines: Sequence[Line]) -> list[str]:
    return [f"{variable}{d}" for d in range(len(lines))]


def tiled(channels: int, others: int = FEWEST, terms: int = SHORT + 1) -> int:
    """Of how many channels an item is."""
    few = [n for n in TILES if channels % n == 0 and channels // n * others >= FEWEST and terms > SHORT]
    return few[0] if few else 1


def place(w: Item, x: Form, channel: str, at: Sequence[str]) -> str:
    """The element of an image, which is number ``b`` of whole arrays, or a point of a chunk."""
    image = ([], []) if x.axis is not None else ([x.strides[0]], ["b"])
    return w.at(x, [*image[0], *x.strides[1:]], [*image[1], channel, *at])


def found(w: Item, lines: Sequence[Line], length: Sequence[int], us: Sequence[str], ks: Sequence[str]) -> str:
    """Variables ``z0`` and on for where outputs find taps; the condition that there is an element."""
    tests = []
    for d, (line, n, u, k) in enumerate(zip(lines, length, us, ks, strict=True)):
        w.add(f"const INDEX z{d} = {linear(line.start, [line.step, line.hop], [u, k])};")
        low, high = line.ends
        tests += [*([f"z{d} >= 0"] if low < 0 else []), *([f"z{d} < {n}"] if high >= n else [])]
    return " && ".join(tests)


def near(x: Form, dims: Sequence[int], others: Sequence[int]) -> bool:
    """Whether elements along ``dims`` lie nearer to each other than along others."""
    along, rest = ([x.strides[d] for d in ds if x.shape[d] != 1] for ds in (dims, others))
    return bool(along) and nearer(along, rest)


def square(item: Callable[[], Item], kernel: Convolve, lines: Sequence[Line]) -> Task | None:
    """Outputs that have the same taps, as a product of channels with positions; None if it is too small."""
    (x, weight, *bias), out, groups = kernel.sources, kernel.target, kernel.groups
    inputs, outputs, gathers = x.shape[1] // groups, out.shape[1] // groups, kernel.kind == "gather"
    us, ks, sizes, each = names("u", lines), names("k", lines), [n.size for n in lines], [n.taps for n in lines]
    positions, terms = x.shape[0] * math.prod(sizes), inputs * math.prod(each)
    lead = (groups,) if groups > 1 else ()
    group = "l0" if lead else "0"
    shape = tiles.Shape(held(out.root.dtype), lead, outputs, positions, terms, whole=True)
    if not shape.fits:
        return None

    def term(w: Item, o: str) -> str:
        at = [f"({linear(line.tap, [line.each], [k])})" for line, k in zip(lines, ks, strict=True)]
        first = [f"({group} * {outputs} + {o})", "c"] if gathers else [f"({group} * {inputs} + c)", o]
        return w.at(weight, weight.strides, [*first, *at])

    def channels(w: Item) -> tuple[str, str]:
        w.split("k", ["c", *ks], [inputs, *each])
        return term(w, "at"), ""

    def image(w: Item) -> str:
        return place(w, x, f"({group} * {inputs} + c)", names("z", lines))

    def windows(w: Item) -> tuple[str, str]:
        w.split("at", ["b", *us], [x.shape[0], *sizes])
        w.split("k", ["c", *ks], [inputs, *each])
        inside = found(w, lines, x.shape[2:], us, ks)
        return image(w), inside

    def write(w: Item) -> str:
        t = HELD[out.root.dtype]
        w.split("column", ["b", *us], [x.shape[0], *sizes])
        if not gathers:  # what lies outside is no term: not even 0 times infinity
            w.open("if (total != total) {")
            w.add("total = 0;")
            w.loops(["c", *ks], [inputs, *each])
            inside = found(w, lines, x.shape[2:], us, ks)
            w.add(f"if ({inside or 1}) total += ({t}){image(w)} * ({t}){term(w, 'row')};")
            w.close(2 + len(ks))
        for b in bias:
            w.add(f"total += {w.at(b, b.strides, [f'({group} * {outputs} + row)'])};")
        ends = [f"({linear(line.out, [line.every], [u])})" for line, u in zip(lines, us, strict=True)]
        return linear(out.offset, [int(s or 0) for s in out.strides], ["b", f"({group} * {outputs} + row)", *ends])

    own, rest = (0, [1, *range(2, len(weight.shape))]) if gathers else (1, [0, *range(2, len(weight.shape))])
    sides = tiles.Edge(channels, near(weight, rest, [own])), tiles.Edge(windows, False)
    return tiles.tiled(item, shape, sides, kernel.sources, out, write, len(kernel.sweeps) == 1)


def summed(item: Callable[[], Item], kernel: Convolve) -> list[Task]:
    """For each element of a kernel the sum over all windows of whole arrays."""
    (x, y), (lines,), out, groups = kernel.sources, kernel.sweeps, kernel.target, kernel.groups
    inputs, outputs = x.shape[1] // groups, y.shape[1] // groups
    us, ks, sizes, each = names("u", lines), names("k", lines), [n.size for n in lines], [n.taps for n in lines]
    lead = (groups,) if groups > 1 else ()
    group = "l0" if lead else "0"
    shape = tiles.Shape(held(out.root.dtype), lead, outputs, inputs * math.prod(each), x.shape[0] * math.prod(sizes))
    if not shape.fits:
        return shared(item, kernel)
    target = full(Root((shape.parts, *out.shape), held(out.root.dtype))) if shape.parts > 1 else out

    def channels(w: Item) -> tuple[str, str]:
        w.split("k", ["b", *us], [x.shape[0], *sizes])
        return place(w, y, f"({group} * {outputs} + at)", us), ""

    def windows(w: Item) -> tuple[str, str]:
        w.split("at", ["c", *ks], [inputs, *each])
        w.split("k", ["b", *us], [x.shape[0], *sizes])
        inside = found(w, lines, x.shape[2:], us, ks)
        return place(w, x, f"({group} * {inputs} + c)", names("z", lines)), inside

    def write(w: Item) -> str:
        w.split("column", ["c", *ks], [inputs, *each])
        at = [*(["part"] if target is not out else []), f"({group} * {outputs} + row)", "c", *ks]
        return linear(target.offset, [int(s or 0) for s in target.strides], at)

    positions = [0, *range(2, len(x.shape))]
    sides = tiles.Edge(channels, near(y, positions, [1])), tiles.Edge(windows, near(x, positions, [1]))
    made = tiles.tiled(item, shape, sides, kernel.sources, target, write)
    return [made, *added(item, target, out)] if target is not out else [made]


def shared(item: Callable[[], Item], kernel: Convolve) -> list[Task]:
    """The same by threads that share the sum of each element."""
    (x, y), (lines,), out, groups = kernel.sources, kernel.sweeps, kernel.target, kernel.groups
    inputs, outputs, t = x.shape[1] // groups, y.shape[1] // groups, HELD[out.root.dtype]
    lengths = [y.shape[1], inputs, *(line.taps for line in lines)]

    def read(w: Item, outs: Sequence[str], ins: Sequence[str]) -> str:
        o, c, *ks = outs
        b, *us = ins
        w.add(f"const INDEX b = {b};")
        inside = found(w, lines, x.shape[2:], us, ks)
        found_ = place(w, x, f"({o} / {outputs} * {inputs} + {c})", names("z", lines))
        return f"({f'{inside} ? ({t}){found_} : 0' if inside else f'({t}){found_}'}) * ({t}){place(w, y, o, us)}"

    def write(w: Item, outs: Sequence[str]) -> None:
        w.add(f"{w.at(out, out.strides, outs)} = total;")

    terms = [x.shape[0], *(line.size for line in lines)]
    return folded(item, Fold("+", lengths, terms, read, write, True, [x, y], [], (out, out.strides, ())))


def sweep(w: Item, kernel: Convolve, lines: Sequence[Line]) -> Task:
    """Outputs that have the same taps."""
    (x, weight, *bias), out = kernel.sources, kernel.target
    kind, groups, spread = HELD[out.root.dtype], kernel.groups, kernel.kind == "spread"
    inputs, outputs = x.shape[1] // groups, out.shape[1] // groups
    batched, outs, ks = out.axis is not None, names("u", lines), names("k", lines)
    positions, terms = x.shape[0] * math.prod(line.size for line in lines), inputs * math.prod(n.taps for n in lines)
    tile = tiled(outputs) if batched else tiled(outputs, groups * positions, terms)
    rows = [f"s{r}" for r in range(tile)]
    lengths = [*([] if batched else [x.shape[0]]), out.shape[1] // tile, *(line.size for line in lines)]
    count = w.decode([*([] if batched else ["b"]), "tile", *outs], lengths, points=batched)
    w.add(f"const INDEX first = tile * {tile}, from = first / {outputs} * {inputs};")
    for r, s in enumerate(rows):
        start = w.at(bias[0], bias[0].strides, [f"(first + {r})"]) if bias else "0"
        w.add(f"{kind} {s} = {start};")
    w.loops(["c", *ks], [inputs, *(line.taps for line in lines)])
    inside = found(w, lines, x.shape[2:], outs, ks)
    read = place(w, x, "(from + c)", names("z", lines))
    if spread and inside:
        w.open(f"if ({inside}) {{")
    # zeros around an image count, as they do in the op: nan comes of an infinite kernel
    w.add(f"const {kind} x_ = {f'{inside} ? ({kind}){read} : 0' if inside and not spread else read};")
    at = [linear(line.tap, [line.each], [k]) for line, k in zip(lines, ks, strict=True)]
    first = [f"(from + c), first % {outputs}", "first, c"][not spread].split(", ")
    along = 1 if spread else 0
    for r, s in enumerate(rows):
        step = str(int(weight.strides[along] or 0) * r) if r else ""
        places = [f"({v})" for v in (*first, *at)]
        w.add(f"{s} += x_ * {w.at(weight, weight.strides, places, step)};")
    w.close(1 + len(ks) + bool(spread and inside))
    ends = [f"({linear(line.out, [line.every], [u])})" for line, u in zip(lines, outs, strict=True)]
    for r, s in enumerate(rows):
        w.add(f"{place(w, out, f'(first + {r})', ends)} = {s};")
    even = tile == 1 and not batched and len(kernel.sweeps) == 1
    seen = walks(lengths, [(out, out.strides, ())] if even else [])
    return w.task(count, kernel.sources, [out], operations=2 * tile * terms, terms=terms, walks=seen)


def taps(w: Item, kernel: Convolve) -> Task:
    """For each element of a kernel the sum over all windows of a chunk, added to an accumulator."""
    (x, y), (lines,), out = kernel.sources, kernel.sweeps, kernel.target
    if x.axis is None or y.axis is None:
        raise Refused(kernel.equation, "one of two arrays has a batch")
    kind, groups, ks, outs = HELD[out.root.dtype], kernel.groups, names("k", lines), names("u", lines)
    inputs, outputs = x.shape[1] // groups, y.shape[1] // groups
    tile, rows = tiled(outputs), [f"s{r}" for r in range(tiled(outputs))]
    count = w.decode(["tile", "c", *ks], [y.shape[1] // tile, inputs, *(line.taps for line in lines)])
    w.add(f"const INDEX first = tile * {tile}, from = first / {outputs} * {inputs};")
    w.add(f"{kind} {', '.join(f'{s} = 0' for s in rows)};")
    w.loops(outs, [line.size for line in lines])
    inside = found(w, lines, x.shape[2:], outs, ks)
    w.loop("p", "n")
    read = place(w, x, "(from + c)", names("z", lines))
    w.add(f"const {kind} x_ = {f'{inside} ? ({kind}){read} : 0' if inside else read};")
    for r, s in enumerate(rows):
        w.add(f"{s} += x_ * {place(w, y, f'(first + {r})', outs)};")
    w.close(1 + len(outs))
    for r, s in enumerate(rows):
        w.add(f"{w.at(out, out.strides, [f'(first + {r})', 'c', *ks])} += {s};")
    work = 2 * tile * math.prod(line.size for line in lines) * w.chunk
    return w.task(count, [x, y, out], [out], operations=work)

"""Convolutions as C: blocks of outputs in registers, over many points at once.

What a kernel slides over lies in a frame: its channels and places with zeros around them, and side by side, along the
vectors, the points of a chunk or, of whole arrays, some images and the places of a row. Of the three ops of
``leafgrad.ops.convolution``, two read such a frame at each tap of a kernel (`Sweep`), and one sums over it (`Taps`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from leafgrad.lowering.expressions import C_TYPES
from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import Convolve
from leafgrad.lowering.strides import linear
from leafgrad.lowering.sweeps import Line
from leafgrad_native.blocks import (
    ROWS,
    accumulated,
    accumulators,
    blocks,
    fused,
    lanes,
    loose,
    stored,
    tree,
    vector,
    vectors,
)
from leafgrad_native.contractions import SIDE
from leafgrad_native.frames import Frame, Layout, layout
from leafgrad_native.target import registers
from leafgrad_native.writer import CWriter


def write(w: CWriter, kernel: Convolve) -> None:
    x, out = kernel.sources[0], kernel.target
    kind, chunked = x.root.dtype, bool(w.chunk)
    found = layout(kind, w.chunk, kernel.sweeps, x.shape[0])
    f, t = w.names[kernel.scratch[0].root], C_TYPES[kind]
    size = found.frame.channel * x.shape[1] * (4 if kind == "float32" else 8)
    if kernel.kind == "spread":
        tame(w, kernel.sources[1])
    if kernel.kind == "taps" and not chunked:
        w.fill(out, 0.0)
    if chunked:
        w.add(f"memset({f}, 0, {size});")
        w.add("const long first = 0, left = m; (void)first; (void)left;")
    else:
        unit = found.frame.unit
        w.loop("first", x.shape[0], by=unit)
        w.add(f"const long left = {x.shape[0]} - first < {unit} ? {x.shape[0]} - first : {unit};")
        w.add(f"if (!first || left < {unit}) memset({f}, 0, {size});")
    framed(w, x, f, found.frame, chunked)
    if kernel.kind == "taps":
        taps(w, kernel, found, f, t)
    else:
        for lines in found.sweeps:
            w.open()
            sweep(w, kernel, found, lines, f, t)
            w.close()
    if not chunked:
        w.close()


def tame(w: CWriter, weight: Form) -> None:
    """Leave it to NumPy if a weight is infinite or nan, which must not meet the zeros around an image."""
    w.add("int wild = 0;")
    w.elements(weight.shape, None, [weight], "wild |= !({0} - {0} == 0);".format, " reduction(| : wild)")
    w.add("if (wild) return 2;")


def copied(w: CWriter, t: str, unit: int, rows: int, to: tuple[str, int, int], source: tuple[str, int, int]) -> None:
    """``left`` points, at most ``unit``, of so many places: an address, and from place to place and point to point."""
    body = [
        "    for (long i = 0; i < rows; i++, o += oi, x += xi)",
        '        _Pragma("GCC unroll 8") for (long p = 0; p < left; p++) o[p * op] = x[p * xp];',
    ]
    parameters = f"{t} *restrict o, long oi, long op, const {t} *restrict x, long xi, long xp, long rows, long left"
    name = w.functions.name("void", "copied", parameters, body)
    counts: tuple[object, object] = rows, "left"
    if unit == 1:  # the long loop is the inner one
        counts, to, source = (1, rows), (to[0], to[2], to[1]), (source[0], source[2], source[1])
    w.add(f"{name}({', '.join(map(str, (*to, *source, *counts)))});")


def framed(w: CWriter, x: Form, f: str, frame: Frame, chunked: bool) -> None:
    """The points into the frame, whose other elements are 0."""
    names = ["c", *(f"i{d}" for d in range(len(frame.extent)))]
    ends = [(max(a, 0), max(min(a + m, n), 0)) for a, m, n in zip(frame.low, frame.extent, x.shape[2:], strict=True)]
    rows, alone = 1, chunked or frame.split > 1  # whether places of the last dimension are copied one by one
    w.loop("c", x.shape[1])
    for name, (first, end) in zip(names[1:], ends if alone else ends[:-1], strict=False):
        w.loop(name, end, first=first)
    if not alone:
        names[-1], rows = str(ends[-1][0]), ends[-1][1] - ends[-1][0]
    last = f"({names[-1]} - ({frame.low[-1]}))"
    if frame.split > 1:
        last = f"({last} % {frame.split} * {frame.extent[-1] // frame.split} + {last} / {frame.split})"
    before = [f"({name} - ({low}))" for name, low in zip(names[1:-1], frame.low, strict=False)]
    into = f"{f} + {linear(0, [frame.channel, *frame.strides, frame.unit], ['c', *before, last])}"
    image, *steps = (s or 0 for s in x.strides)
    if chunked:
        w.add(f"memcpy({into}, {w.row(x, steps, names)}, m * sizeof *{f});")
    else:
        source = w.row(x, [image, *steps], ["first", *names]), steps[-1], image
        copied(w, C_TYPES[x.root.dtype], frame.unit, rows, (into, frame.unit, 1), source)
    w.close(len(names) - (not alone))


def table(w: CWriter, name: str, numbers: Sequence[int]) -> None:
    w.add(f"const long {name}[] = {{{', '.join(map(str, numbers)) or '0'}}};")


def places(lines: Sequence[Line]) -> list[tuple[int, ...]]:
    """The taps of a sweep."""
    return list(itertools.product(*(range(line.taps) for line in lines)))


def sources(found: Layout, lines: Sequence[Line]) -> list[int]:
    """Where each tap of the first output is in the frame."""
    at = [[line.start + t * line.hop for line, t in zip(lines, tap, strict=True)] for tap in places(lines)]
    return [found.frame.place(a) for a in at]


def outer(w: CWriter, found: Layout, lines: Sequence[Line]) -> tuple[list[str], str]:
    """Open the loops over outputs that do not lie in one run: their variables, and where they are in the frame."""
    sliding = list(lines) if w.chunk else list(lines[:-1])
    names = [f"u{d}" for d in range(len(sliding))]
    for name, line in zip(names, sliding, strict=True):
        w.loop(name, line.size)
    strides = [*found.frame.strides, found.frame.unit]
    return names, linear(0, [line.step * s for line, s in zip(sliding, strides, strict=False)], names)


def runs(w: CWriter, found: Layout, lines: Sequence[Line], kind: str, most: int) -> list[tuple[int, int, int]]:
    """Loops that cover a run of outputs: how many vectors each takes at once, and where it begins and ends."""
    size = lanes(kind)
    if w.chunk:
        return [(vectors(), 0, w.chunk)]
    found_, at = [], 0
    for count, times in blocks(-(-lines[-1].size * found.frame.unit // size), most):
        end = at + count * times * size
        found_.append((count, at, end))
        at = end
    return found_


def sweep(w: CWriter, kernel: Convolve, found: Layout, lines: Sequence[Line], f: str, t: str) -> None:
    """All outputs of a sweep, into their places or, of whole arrays, first into memory in which runs are whole."""
    x, weight = kernel.sources[:2]
    kind, groups, out = x.root.dtype, kernel.groups, kernel.target
    size = lanes(kind)
    inputs, outputs = x.shape[1] // groups, out.shape[1] // groups
    swapped = kernel.kind == "spread"
    wo, wc = (weight.strides[1], weight.strides[0]) if swapped else (weight.strides[0], weight.strides[1])
    by = [s or 0 for s in weight.strides[2:]]
    offsets = [
        sum((line.tap + k * line.each) * s for line, k, s in zip(lines, tap, by, strict=True)) for tap in places(lines)
    ]
    table(w, "at", sources(found, lines))
    table(w, "of", offsets)
    group = (weight.strides[0] or 0) * (inputs if swapped else outputs)
    w.loop("g", groups)
    first = 0
    for height, count in blocks(outputs):
        rows = range(height)
        most = max(1, min(8, (24 if registers() > 16 else 12) // height))
        for wide, start, end in runs(w, found, lines, kind, most):
            names, base = outer(w, found, lines)
            w.loop("p", end, first=start, by=wide * size, stop="m" if w.chunk else None)
            w.loop("o", first + height * count, first=first, by=height)
            started(w, kernel, height, wide, [f"g * {outputs} + o + {r}" for r in rows])
            w.loop("c", inputs)
            w.loop("k", len(offsets))
            w.add(f"const {t} *from = {f} + (g * {inputs} + c) * {found.frame.channel}L + {base} + at[k] + p;")
            place = linear(weight.offset, [group, wc or 0, 1], ["g", "c", "of[k]"])
            w.add(f"const {t} *by = {w.names[weight.root]} + {place} + o * ({wo or 0}L);")
            for line in accumulated(kind, [f"by[{r * (wo or 0)}]" for r in rows], wide, "from", loose(kind)):
                w.add(line)
            w.close(2)
            for r in rows:
                to = target(w, kernel, found, lines, [f"(g * {outputs} + o + {r})", *names])
                w.add(stored(kind, r, wide, to))
            w.close(2 + len(names))
        first += height * count
    w.close()
    if not w.chunk:
        delivered(w, out, found, lines, w.names[kernel.scratch[1].root])


def started(w: CWriter, kernel: Convolve, height: int, wide: int, channels: Sequence[str]) -> None:
    """A block of outputs in registers: the bias, or 0."""
    start = []
    if len(kernel.sources) > 2:
        bias = kernel.sources[2]
        start = [w.at(bias, [bias.strides[0] or 0], [f"({channel})"]) for channel in channels]
    w.add(accumulators(kernel.target.root.dtype, height, wide, start))


def target(w: CWriter, kernel: Convolve, found: Layout, lines: Sequence[Line], at: Sequence[str]) -> str:
    """The address of the outputs ``p`` and on of a run, by the variables of channel and rows."""
    out = kernel.target
    if not w.chunk:
        return f"{w.names[kernel.scratch[1].root]} + {linear(0, row_steps(found, lines), at)} + p"
    return w.row(out, *moved(out, lines, at)) + " + p"


def moved(y: Form, lines: Sequence[Line], at: Sequence[str]) -> tuple[list[int], Sequence[str], int]:
    """How an array is stepped through from channel to channel and output to output, and where the first lies."""
    steps = [s or 0 for s in y.strides[1:]]
    every = [line.every * s for line, s in zip(lines, steps[1:], strict=True)]
    return [steps[0], *every], at, sum(line.out * s for line, s in zip(lines, steps[1:], strict=True))


def row_steps(found: Layout, lines: Sequence[Line]) -> list[int]:
    """From channel to channel and from output to output, but along a run, in the memory of whole runs."""
    sizes = [line.size for line in lines[:-1]]
    return [found.rows, *(math.prod(sizes[d + 1 :]) * found.longest for d in range(len(sizes)))]


def delivered(w: CWriter, y: Form, found: Layout, lines: Sequence[Line], name: str, back: bool = False) -> None:
    """Runs of outputs, to their places in a whole array; or from there into runs."""
    names = ["c", *(f"u{d}" for d in range(len(lines) - 1)), "0"]
    w.loop("c", y.shape[1])
    for variable, line in zip(names[1:-1], lines, strict=False):
        w.loop(variable, line.size)
    steps, at, extra = moved(y, lines, names)
    image = y.strides[0] or 0
    place = w.row(y, [image, *steps], ["first", *at], extra), steps[-1], image
    run = f"{name} + {linear(0, [*row_steps(found, lines), found.frame.unit], names)}", found.frame.unit, 1
    copied(w, C_TYPES[y.root.dtype], found.frame.unit, lines[-1].size, *((run, place) if back else (place, run)))
    w.close(len(lines))


def taps(w: CWriter, kernel: Convolve, found: Layout, f: str, t: str) -> None:
    """For each output channel and tap the sum over all outputs, added to the result."""
    x, y = kernel.sources
    (lines,), out = found.sweeps, kernel.target
    kind, groups = x.root.dtype, kernel.groups
    v, size, itemsize = vector(kind), lanes(kind), 4 if kind == "float32" else 8
    inputs, outputs = x.shape[1] // groups, y.shape[1] // groups
    each = math.prod(line.taps for line in lines)
    table(w, "at", sources(found, lines))
    by = [s or 0 for s in out.strides[2:]]
    table(w, "of", [sum(k * s for k, s in zip(tap, by, strict=True)) for tap in places(lines)])
    if w.chunk:
        blank(w, x, y, found, f)
        runs_ = w.names[y.root]
        steps = [(s or 0) * w.chunk for s in y.strides[1:]]
        start, end = y.offset * w.chunk, f"(n + {size - 1}) / {size} * {size}"
    else:
        runs_ = w.names[kernel.scratch[1].root]
        w.add(f"if (!first || left < {found.frame.unit}) memset({runs_}, 0, sizeof({t}) * {found.rows * y.shape[1]});")
        delivered(w, y, found, lines, runs_, back=True)
        steps, start, end = row_steps(found, lines), 0, str(lines[-1].size * found.frame.unit // size * size)
    rest = 0 if w.chunk else lines[-1].size * found.frame.unit % size
    if rest:
        w.add("typedef int64_t lg_bits __attribute__((vector_size(LG_VB)));")
        bits = ", ".join(["-1"] * rest + ["0"] * (size - rest))
        w.add(f"static const int{8 * itemsize}_t valid[] __attribute__((aligned(LG_VB))) = {{{bits}}};")
    w.loop("g", groups)
    e0 = 0
    for height, count in blocks(inputs * each, ROWS if registers() > 16 else SIDE):
        o0 = 0
        for width, times in blocks(outputs, SIDE if registers() > 16 else SIDE // 2):
            cells = list(itertools.product(range(height), range(width)))
            w.loop("e", e0 + height * count, first=e0, by=height)
            for r in range(height):
                channel = f"(g * {inputs} + (e + {r}) / {each})"
                w.add(f"const {t} *x{r}_ = {f} + {channel} * {found.frame.channel}L + at[(e + {r}) % {each}];")
            w.loop("o", o0 + width * times, first=o0, by=width)
            w.add(f"{v} {', '.join(f'a{r}_{c} = {{0}}' for r, c in cells)};")
            names, base = outer(w, found, lines)
            w.add(f"const {t} *ys = {runs_} + {linear(start, steps, [f'(g * {outputs} + o)', *names])};")
            w.loop("p", lines[-1].size * found.frame.unit if not w.chunk else w.chunk, by=size, stop=end)
            multiplied(w, kind, height, width, steps[0], base)
            w.close()
            if rest:
                w.add(f"const long p = {end};")
                multiplied(w, kind, height, width, steps[0], base, "valid")
            w.close(len(names))
            collected(w, kernel, cells, kind, inputs, outputs, each)
            w.close(2)
            o0 += width * times
        e0 += height * count
    w.close()


def multiplied(w: CWriter, kind: str, height: int, width: int, step: int, base: str, valid: str = "") -> None:
    """A vector of each of some taps with one of each of some outputs; of the taps those elements that are valid."""
    v, u = vector(kind), loose(kind)
    w.add(" ".join(f"const {v} y{c} = *(const {u} *)(ys + {c * step}L + p);" for c in range(width)))
    for r in range(height):
        h = f"*(const {u} *)(x{r}_ + {base} + p)"
        if valid:
            h = f"({v})((lg_bits){h} & (lg_bits)*(const {v} *){valid})"
        sums = " ".join(f"a{r}_{c} = {fused(kind, 'h', f'y{c}', f'a{r}_{c}')};" for c in range(width))
        w.add(f"{{ const {v} h = {h}; {sums} }}")


def collected(
    w: CWriter, kernel: Convolve, cells: Sequence[tuple[int, int]], kind: str, inputs: int, outputs: int, each: int
) -> None:
    """The sums of vectors, added to their places."""
    out, size = kernel.target, lanes(kind)
    steps = [s or 0 for s in out.strides[:2]]
    for start in range(0, len(cells), size):
        some = cells[start : start + size]
        names = [f"a{r}_{c}" for r, c in some] + [f"({vector(kind)}){{0}}"] * (size - len(some))
        w.open()
        w.add(f"const {vector(kind)} t = {tree(kind, names)};")
        for i, (r, c) in enumerate(some):
            at = [f"(g * {outputs} + o + {c})", f"((e + {r}) / {each})", f"of[(e + {r}) % {each}]"]
            w.add(f"{w.at(out, [*steps, 1], at)} += t[{i}];")
        w.close()


def blank(w: CWriter, x: Form, y: Form, found: Layout, f: str) -> None:
    """Points beyond the valid ones become zero, and count nothing in a sum."""
    w.open("if (n < m) {")
    w.loop("c", found.frame.channel // w.chunk * x.shape[1])
    w.add(f"for (long p = n; p < m; p++) {f}[c * {w.chunk}L + p] = 0;")
    w.close()
    names = [f"i{d}" for d in range(len(y.shape) - 1)]
    for name, n in zip(names, y.shape[1:], strict=True):
        w.loop(name, n)
    w.add(f"for (long p = n; p < m; p++) {w.at(y, [s or 0 for s in y.strides[1:]], names)} = 0;")
    w.close(1 + len(names))

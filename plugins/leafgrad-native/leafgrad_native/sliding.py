"""Windows as C: the largest element of each, where it is, and the elements themselves, read or added up."""

from __future__ import annotations

from leafgrad.lowering.expressions import C_TYPES
from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import Slide
from leafgrad.lowering.strides import linear
from leafgrad_native.blocks import short
from leafgrad_native.writer import CWriter


def write(w: CWriter, kernel: Slide) -> None:
    (elements if kernel.kind in ("read", "add") else largest)(w, kernel)


def planes(w: CWriter, x: Form, windows: int) -> list[str]:
    """Open the loops over the dimensions before those of the windows: their variables, "0" for the batch."""
    names = [f"o{d}" for d in range(len(x.shape) - windows)]
    for d, name in enumerate(names):
        if d != x.axis:
            w.loop(name, x.shape[d])
    return ["0" if d == x.axis else name for d, name in enumerate(names)]


def steps(x: Form) -> list[int]:
    return [s or 0 for s in x.strides]


def largest(w: CWriter, kernel: Slide) -> None:
    """Of equal ones the first counts, and the last nan."""
    (x,), out = kernel.sources, kernel.target
    kind, batched = x.root.dtype, x.axis is not None
    length, taps, stride, padding, dilation, size = kernel.windows
    lead = planes(w, x, len(size))
    loops = len(lead) - batched
    outs = [f"u{d}" for d in range(len(size))]
    places = [f"(l{d} + t{d} * {dilation[d]})" for d in range(len(size))]
    for d, n in enumerate(size):
        w.loop(outs[d], n)
        w.add(f"const long l{d} = u{d} * {stride[d]} - {padding[d]}, far{d} = {length[d]} - l{d};")
        inside = padding[d] == 0 and (n - 1) * stride[d] + (taps[d] - 1) * dilation[d] < length[d]
        low = "0" if inside else f"l{d} < 0 ? ({dilation[d] - 1} - l{d}) / {dilation[d]} : 0"
        end = f"(far{d} + {dilation[d] - 1}) / {dilation[d]}"
        high = str(taps[d]) if inside else f"{end} < {taps[d]} ? {end} : {taps[d]}"
        w.add(f"const long low{d} = {low}, high{d} = {high}; (void)far{d};")
    read, write = w.at(x, steps(x), [*lead, *places]), w.at(out, steps(out), [*lead, *outs])
    which = kernel.kind == "argmax"
    here, room = ("[p]", f"[{w.chunk}]") if batched else ("", "")
    best = f"best{here}" if which or not batched else write
    if which or not batched:
        w.add(f"{C_TYPES[kind]} best{room};")
    numbers = [1]
    for n in reversed(length[1:]):
        numbers.insert(0, numbers[0] * n)
    first = linear(0, numbers, [f"(l{d} + low{d} * {dilation[d]})" for d in range(len(size))])

    def each(*statements: str) -> None:
        if batched:
            w.points()
        for statement in statements:
            w.add(statement)
        w.close(int(batched))

    each(f"{best} = -INFINITY;", *([f"{write} = {first};"] if which else []))
    for d in range(len(size)):
        w.open(f"for (long t{d} = low{d}; t{d} < high{d}; t{d}++) {{")
    maximum = f"lg_maximum_{short(kind)}({best}, x)"
    choice = f"{write} = (x > {best}) | (x != x) ? {linear(0, numbers, places)} : {write};"
    each(f"const {C_TYPES[kind]} x = {read};", *([choice] if which else []), f"{best} = {maximum};")
    w.close(len(size))
    if not which and not batched:
        w.add(f"{write} = best;")
    w.close(len(size) + loops)


def elements(w: CWriter, kernel: Slide) -> None:
    """Taps in order, so that sums have the same digits as NumPy's."""
    (x,), out = kernel.sources, kernel.target
    length, taps, stride, padding, dilation, size = kernel.windows
    adds = kernel.kind == "add"
    image, columns = (out, x) if adds else (x, out)
    w.fill(out, 0.0)
    lead = planes(w, image, len(size))
    loops = len(lead) - (image.axis is not None)
    inner = [f"t{d}" for d in range(len(size))]
    outs = [f"u{d}" for d in range(len(size))]
    places = [linear(-padding[d], [stride[d], dilation[d]], [f"u{d}", f"t{d}"]) for d in range(len(size))]
    for name, n in zip([*inner, *outs], [*taps, *size], strict=True):
        w.loop(name, n)
    for d, n in enumerate(length):
        w.add(f"const long i{d} = {places[d]};")
        w.add(f"if (i{d} < 0 || i{d} >= {n}) continue;")
    a = w.at(image, steps(image), [*lead, *(f"i{d}" for d in range(len(size)))])
    b = w.at(columns, steps(columns), [*lead, *inner, *outs])
    if image.axis is not None:
        w.points()
    w.add(f"{a} += {b};" if adds else f"{b} = {a};")
    w.close((image.axis is not None) + 2 * len(size) + loops)

"""Windows: the largest element of each, where it is, and the elements themselves, read or added up; sums of ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leafgrad.lowering.expressions import HELD
from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import Ranges, Slide
from leafgrad.lowering.strides import linear
from leafgrad_cuda.along import SUFFIX
from leafgrad_cuda.writer import Item, Task


def slide(w: Item, kernel: Slide) -> Task:
    return {"read": read, "add": add}.get(kernel.kind, largest)(w, kernel)


def items(w: Item, x: Form, windows: int, last: Sequence[str], lengths: Sequence[int]) -> tuple[int, list[str]]:
    """Items for each index of the dimensions before those of windows, and of ``last``; how many, and the variables."""
    lead = [d for d in range(len(x.shape) - windows) if d != x.axis]
    count = w.decode([*(f"o{d}" for d in lead), *last], [*(x.shape[d] for d in lead), *lengths], x.axis is not None)
    return count, ["0" if d == x.axis else f"o{d}" for d in range(len(x.shape) - windows)]


def largest(w: Item, kernel: Slide) -> Task:
    """Of equal ones the first counts, and the last nan."""
    (x,), out = kernel.sources, kernel.target
    kind, which = x.root.dtype, kernel.kind == "argmax"
    length, taps, stride, padding, dilation, size = kernel.windows
    ndim = range(len(size))
    count, lead = items(w, x, len(size), [f"u{d}" for d in ndim], size)
    for d in ndim:
        w.add(f"const INDEX l{d} = {linear(-padding[d], [stride[d]], [f'u{d}'])}, far{d} = {length[d]} - l{d};")
        w.add(f"const INDEX low{d} = l{d} < 0 ? ({dilation[d] - 1} - l{d}) / {dilation[d]} : 0;")
        w.add(f"const INDEX end{d} = (far{d} + {dilation[d] - 1}) / {dilation[d]};")
        w.add(f"const INDEX high{d} = end{d} < {taps[d]} ? end{d} : {taps[d]};")
    numbers = [math.prod(length[d + 1 :]) for d in ndim]
    w.add(f"{HELD[kind]} best = -INFINITY;")
    if which:
        w.add(f"INDEX at = {linear(0, numbers, [f'(l{d} + low{d} * {dilation[d]})' for d in ndim])};")
    for d in ndim:
        w.loop(f"t{d}", f"high{d}", f"low{d}")
    places = [f"(l{d} + t{d} * {dilation[d]})" for d in ndim]
    w.add(f"const {HELD[kind]} x_ = {w.at(x, x.strides, [*lead, *places])};")
    if which:
        w.add(f"if (x_ > best || x_ != x_) at = {linear(0, numbers, places)};")
    w.add(f"best = lg_maximum{SUFFIX[kind]}(best, x_);")
    w.close(len(size))
    w.add(f"{w.at(out, out.strides, [*lead, *(f'u{d}' for d in ndim)])} = {'at' if which else 'best'};")
    return w.task(count, [x], [out], operations=2 * math.prod(taps))


def read(w: Item, kernel: Slide) -> Task:
    """An element of a window, or 0 in the padding."""
    (x,), out = kernel.sources, kernel.target
    length, taps, stride, padding, dilation, size = kernel.windows
    ndim = range(len(size))
    names = [*(f"t{d}" for d in ndim), *(f"u{d}" for d in ndim)]
    count, lead = items(w, x, len(size), names, [*taps, *size])
    for d in ndim:
        at = linear(-padding[d], [stride[d], dilation[d]], [f"u{d}", f"t{d}"])
        w.add(f"const INDEX i{d} = {at};")
    inside = " && ".join(f"i{d} >= 0 && i{d} < {length[d]}" for d in ndim)
    found = w.at(x, x.strides, [*lead, *(f"i{d}" for d in ndim)])
    w.add(f"{w.at(out, out.strides, [*lead, *names])} = {inside} ? ({HELD[x.root.dtype]}){found} : 0;")
    return w.task(count, [x], [out])


def add(w: Item, kernel: Slide) -> Task:
    """What windows hold of an element of the image, added in the order of taps, as NumPy does."""
    (x,), out = kernel.sources, kernel.target
    length, taps, stride, padding, dilation, size = kernel.windows
    ndim = range(len(size))
    count, lead = items(w, out, len(size), [f"i{d}" for d in ndim], length)
    w.add(f"{HELD[out.root.dtype]} total = 0;")
    for d in ndim:
        w.loop(f"t{d}", taps[d])
        far = linear(padding[d], [1, -dilation[d]], [f"i{d}", f"t{d}"])
        w.add(f"const INDEX far{d} = {far}, u{d} = far{d} / {stride[d]};")
        w.add(f"if (far{d} < 0 || far{d} % {stride[d]} || u{d} >= {size[d]}) continue;")
    names = [*(f"t{d}" for d in ndim), *(f"u{d}" for d in ndim)]
    w.add(f"total += {w.at(x, x.strides, [*lead, *names])};")
    w.close(len(size))
    w.add(f"{w.at(out, out.strides, [*lead, *(f'i{d}' for d in ndim)])} = total;")
    return w.task(count, [x], [out], operations=math.prod(taps))


def ranged(w: Item, kernel: Ranges) -> Task:
    """Sums of ranges of one dimension."""
    (x,), out, dim = kernel.sources, kernel.target, kernel.dim
    kept = [d for d in range(len(x.shape)) if d not in (dim, x.axis)]
    names = {d: f"o{d}" for d in kept} | {dim: "u"}
    order = sorted(names)
    count = w.decode([names[d] for d in order], [out.shape[d] for d in order], points=x.axis is not None)
    starts, stops = zip(*kernel.ranges, strict=True)
    for name, ends in (("begin", starts), ("end", stops)):
        step = ends[1] - ends[0] if len(ends) > 1 else 0
        if list(ends) == [ends[0] + step * k for k in range(len(ends))]:
            w.add(f"const INDEX {name} = {linear(ends[0], [step], ['u'])};")
        else:
            w.add(f"const INDEX {name}s[] = {{{', '.join(map(str, ends))}}}, {name} = {name}s[u];")
    w.add(f"{HELD[x.root.dtype]} total = 0;")
    w.loop("k", "end", "begin")
    w.add(f"total += {w.at(x, [x.strides[d] for d in order], ['k' if d == dim else names[d] for d in order])};")
    w.close()
    w.add(f"{w.at(out, [out.strides[d] for d in order], [names[d] for d in order])} = total;")
    longest = max(stop - start for start, stop in kernel.ranges)
    return w.task(count, [x], [out], operations=max(1, longest))

"""Windows that slide over the last dimensions of an array: their elements, the largest of each, and transposes."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple, Self

from leafgrad.ops.define import op
from leafgrad.ops.geometry import window_span
from leafgrad.ops.half import accumulator
from leafgrad.ops.select import zero
from leafgrad.ops.shifted import shifted
from leafgrad.ops.small import SMALL

Sizes = tuple[int, ...]


class Windows(NamedTuple):
    """Windows over the last dimensions, with one entry for each of these in every attribute.

    Element k of window i is number ``i * stride + k * dilation - padding`` of what they slide over.

    Attributes:
        length: how many elements there are to slide over; all before and after them is padding.
        kernel: how many elements a window has.
        stride: from one window to the next.
        padding: how far before the first element the first window begins.
        dilation: from one element of a window to the next.
        size: how many windows there are.
    """

    length: Sizes
    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    size: Sizes

    @property
    def extent(self) -> Sizes:
        """How many elements lie between the first of the first window and the last of the last one, both included."""
        return tuple(map(window_span, self.size, self.kernel, self.stride, (0,) * len(self.size), self.dilation))

    def along(self, d: int) -> Self:
        """The same windows in one dimension alone."""
        return type(self)(*(sizes[d : d + 1] for sizes in self))

    def inside(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Where the extent has elements, and which these are."""
        frame, source = [], []
        for n, p, extent in zip(self.length, self.padding, self.extent, strict=True):
            start, stop = min(p, extent), min(p + n, extent)
            frame.append(slice(start, stop))
            source.append(slice(0, stop - start))
        return tuple(frame), tuple(source)


@functools.lru_cache(maxsize=1024)
def taps(windows: Windows) -> tuple[tuple[slice, ...], ...]:
    """For each place in the kernel: where all windows have it, counted from the first window's first element."""
    return tuple(
        tuple(
            slice(k * d, k * d + (m - 1) * s + 1, s)
            for k, d, m, s in zip(place, windows.dilation, windows.size, windows.stride, strict=True)
        )
        for place in itertools.product(*map(range, windows.kernel))
    )


@functools.lru_cache(maxsize=1024)
def places(windows: Windows) -> tuple[tuple[slice, ...], tuple[slice, ...], Sizes, bool]:
    """Where the extent has elements, which these are, how large it is, and whether it has elements everywhere."""
    frame, source = windows.inside()
    return frame, source, windows.extent, [s.stop - s.start for s in frame] == list(windows.extent)


def framed(xp: Any, x: Any, windows: Windows, fill: float) -> Any:
    """x over the extent of the windows, ``fill`` where they have padding. (..., *length) -> (..., *extent)"""
    frame, source, extent, whole = places(windows)
    if whole:
        return x[(..., *source)]
    out = xp.full((*_planes(x, windows), *extent), fill, dtype=x.dtype)
    out[(..., *frame)] = x[(..., *source)]
    return out


def _planes(x: Any, windows: Windows) -> Sizes:
    """The dimensions of x before those of the windows."""
    shape: Sizes = x.shape[: x.ndim - len(windows.size)]
    return shape


# ---- the elements of each window ------------------------------------------------------------------------------------


@op("linear", "complex")
def unfold(xp: Any, x: Any, *, windows: Windows) -> Any:
    """The elements of each window, 0 in the padding. (..., *length) -> (..., *kernel, *size)"""
    frame, planes = framed(xp, x, windows, 0), _planes(x, windows)
    out = xp.empty((*planes, math.prod(windows.kernel), *windows.size), dtype=x.dtype)
    whole = (slice(None),) * len(planes)
    for i, tap in enumerate(taps(windows)):
        out[(*whole, i)] = frame[(*whole, *tap)]
    return out.reshape((*planes, *windows.kernel, *windows.size))


@op("linear", "complex", transpose_of=unfold)
def fold(xp: Any, x: Any, *, windows: Windows) -> Any:
    """Every element of every window added where it was; the transpose of unfold. -> (..., *length)"""
    planes = x.shape[: x.ndim - 2 * len(windows.size)]
    x = x.reshape((*planes, math.prod(windows.kernel), *windows.size))
    total = xp.zeros((*planes, *windows.extent), dtype=accumulator(x.dtype))
    whole = (slice(None),) * len(planes)
    for i, tap in enumerate(taps(windows)):
        part = total[(*whole, *tap)]  # by itself, since ``total[...] +=`` would write the sum there again
        part += x[(*whole, i)]
    return unframed(xp, total.astype(x.dtype, copy=False), windows)


def unframed(xp: Any, frame: Any, windows: Windows) -> Any:
    """The transpose of ``framed``: 0 where the windows leave elements out. (..., *extent) -> (..., *length)"""
    kept, source, _, _ = places(windows)
    out = xp.zeros((*_planes(frame, windows), *windows.length), dtype=frame.dtype)
    out[(..., *source)] = frame[(..., *kept)]
    return out


unfold.shape(lambda x, *, windows: (*_leading(x, windows.length), *windows.kernel, *windows.size))
unfold.chunk(lambda call: call.aligned(whole=_last(call, 1)))
fold.shape(lambda x, *, windows: (*_leading(x, windows.kernel + windows.size), *windows.length))
fold.chunk(lambda call: call.aligned(whole=_last(call, 2)))


def _leading(x: Any, last: Sizes) -> Sizes:
    """The dimensions of x before the last ones, which must be these. Raises ValueError."""
    shape: Sizes = x.shape
    if shape[-len(last) :] != last:
        raise ValueError(f"expected the last dimensions {last}, got {shape}")
    return shape[: -len(last)]


def _last(call: Any, times: int) -> range:
    """The dimensions that windows slide over, counted from the back."""
    return range(-times * len(call.params["windows"].size), 0)


# ---- the largest of each window -------------------------------------------------------------------------------------


def _lowest(xp: Any, x: Any) -> float:
    return -math.inf if x.dtype.kind == "f" else int(xp.iinfo(x.dtype).min)


@functools.lru_cache(maxsize=1024)
def sweeps(windows: Windows) -> tuple[tuple[Any, ...], ...]:
    """The taps in each dimension alone: along the last one first, which leaves less for the others."""
    found: list[tuple[Any, ...]] = []
    for d in range(len(windows.size)):
        after = (slice(None),) * (len(windows.size) - 1 - d)
        found.insert(0, tuple([(..., *tap, *after) for tap in taps(windows.along(d))]))
    return tuple(found)


@op
def window_max(xp: Any, x: Any, *, windows: Windows) -> Any:
    """The largest element of each window; nan if it has one. (..., *length) -> (..., *size)"""
    _, source, _, whole = places(windows)
    best = x[(..., *source)] if whole else framed(xp, x, windows, _lowest(xp, x))
    for first, *others in sweeps(windows):
        whole, best = best, best[first]
        for tap in others:
            best = xp.maximum(best, whole[tap])
    return best.copy() if math.prod(windows.kernel) == 1 else best


@op("nondifferentiable")
def window_argmax(xp: Any, x: Any, *, windows: Windows) -> Any:
    """Where each window has its largest element, the first of equal ones, the last nan: its number among the elements
    of all the dimensions that windows slide over. (..., *length) -> (..., *size), int64"""
    frame, start = framed(xp, x, windows, _lowest(xp, x)), _first_taps(xp, windows)
    small = "int8" if math.prod(windows.kernel) < 128 else "int32"  # the smaller, the faster
    best, found = None, xp.zeros((*_planes(x, windows), *windows.size), dtype=small) + start.astype(small)
    for i, tap in enumerate(taps(windows)):
        part = frame[(..., *tap)].copy()  # comparing strided parts in place is slower
        if best is not None:
            newer = (part > best) | (part != part)
            found = xp.maximum(found, newer.astype(small) * i)
        best = part if best is None else xp.maximum(best, part)
    return _numbers(xp, windows, found)


@window_argmax.kernel("numpy")
def _argmax(xp: Any, x: Any, *, windows: Windows) -> Any:
    """As above; in few calls where the array is small and all its elements are finite, as their sum tells."""
    if x.size > SMALL or x.dtype.kind != "f" or not math.isfinite(xp.add.reduce(x.reshape(-1))):
        return window_argmax.forward(xp, x, windows=windows)
    frame, parts = framed(xp, x, windows, -math.inf), taps(windows)
    every = xp.empty((len(parts), *_planes(x, windows), *windows.size), dtype=x.dtype)
    for i, tap in enumerate(parts):
        every[i] = frame[(..., *tap)]
    within, base = _known_numbering(xp, windows)
    return within[every.argmax(0)] + base


def _first_taps(xp: Any, windows: Windows) -> Any:
    """The first place in the kernel where each window has an element and no padding: it may hold nothing but -inf."""
    found: Any = 0
    for m, s, k, p, d in zip(
        windows.size, windows.stride, windows.kernel, windows.padding, windows.dilation, strict=True
    ):
        first = xp.maximum(0, (p + d - 1 - xp.arange(m, dtype="int32") * s) // d)
        found = xp.expand_dims(xp.asarray(found), -1) * k + first
    return found


def _numbers(xp: Any, windows: Windows, found: Any) -> Any:
    """The number of the element that each window has at a place in the kernel. (..., *size) -> the same, int64"""
    within, base = _numbering(xp, windows)
    return xp.take(within, found) + base


def _numbering(xp: Any, windows: Windows) -> tuple[Any, Any]:
    """What the places in the kernel add to the number of an element, and the windows."""
    base: Any = 0
    within = [0]
    for n, m, s, k, p, d in zip(
        *(windows.length, windows.size, windows.stride, windows.kernel, windows.padding, windows.dilation), strict=True
    ):
        base = xp.expand_dims(xp.asarray(base), -1) * n + xp.arange(m, dtype="int64") * s - p
        within = [number * n + i * d for number in within for i in range(k)]
    return xp.asarray(within, dtype="int64"), base


_known_numbering = functools.lru_cache(maxsize=64)(_numbering)  # of NumPy's arrays, which lie on one device


@op("any_dtype")
def window_pick(xp: Any, x: Any, at: Any, *, windows: Windows) -> Any:
    """The elements of x that ``window_argmax`` numbers. (..., *length), (..., *size) -> (..., *size)"""
    return x.reshape(-1)[_flat(xp, at, windows)].reshape(*_leading(x, windows.length), *windows.size)


@op("any_dtype", transpose_of=window_pick)
def window_place(xp: Any, v: Any, at: Any, *, windows: Windows) -> Any:
    """Zeros with v added where ``window_pick`` would read; its transpose. (..., *size) twice -> (..., *length)"""
    out = xp.zeros((*_planes(v, windows), *windows.length), dtype=accumulator(v.dtype))
    same, flat = out.dtype is v.dtype, v.reshape(-1)
    xp.add.at(out.reshape(-1), _flat(xp, at, windows), flat if same else flat.astype(out.dtype, copy=False))
    return out if same else out.astype(v.dtype, copy=False)


def _flat(xp: Any, at: Any, windows: Windows) -> Any:
    """Numbers within each plane as numbers in the whole array, in one dimension."""
    planes, elements = math.prod(_planes(at, windows)), math.prod(windows.length)
    if planes == 1:
        return at.reshape(-1)
    start = xp.arange(planes, dtype="int64").reshape(planes, 1) * elements
    return (at.reshape(planes, math.prod(windows.size)) + start).reshape(-1)


_argmax_of, _place_at = window_argmax.function, window_place.function
window_max.label = "MaxPool2DWithIndicesBackward0"
window_max.vjp(x=lambda g, x, *, windows: _place_at(g, _argmax_of(x, windows=windows), windows=windows))
window_max.shape(lambda x, *, windows: (*_leading(x, windows.length), *windows.size))
window_argmax.shape(lambda x, *, windows: x.like((*_leading(x, windows.length), *windows.size), "int64"))
window_pick.shape(lambda x, at, *, windows: (*_leading(x, windows.length), *windows.size))
window_place.shape(lambda v, at, *, windows: (*_leading(v, windows.size), *windows.length))
for _op in (window_max, window_argmax, window_pick, window_place):
    _op.chunk(lambda call: call.aligned(whole=_last(call, 1)))
unfold.lower("native", lambda c, e: c.windowed("read", e.params["windows"]))
fold.lower("native", lambda c, e: c.windowed("add", e.params["windows"]))
window_max.lower("native", lambda c, e: c.windowed("max", e.params["windows"]))
window_argmax.lower("native", lambda c, e: c.windowed("argmax", e.params["windows"]))
window_pick.lower("native", lambda c, e: c.numbered("read", len(e.params["windows"].size)))
window_place.lower("native", lambda c, e: c.numbered("add", len(e.params["windows"].size)))
window_pick.vjp(at=zero)
window_place.vjp(at=zero)

for _op in (unfold, fold, window_max, window_argmax, window_pick, window_place):  # leading dimensions are a batch
    _op.batched(shifted())

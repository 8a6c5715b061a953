"""Where the outputs of a convolution find what they read: lines of taps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple


class Line(NamedTuple):
    """Along one dimension: output u of ``size`` has tap t of ``taps`` at source ``start + u * step + t * hop``.

    Attributes:
        out, every: where output 0 lies in the result, and how far from one output to the next.
        tap, each: the same for taps in the kernel.
    """

    size: int
    taps: int
    start: int
    step: int
    hop: int
    out: int = 0
    every: int = 1
    tap: int = 0
    each: int = 1

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last source that any output reads."""
        reach, hops = (self.size - 1) * self.step, (max(self.taps, 1) - 1) * self.hop
        return self.start + min(hops, 0), self.start + reach + max(hops, 0)


def gathering(windows: Sequence[Sequence[int]]) -> list[Line]:
    """The lines of a convolution."""
    _, kernel, stride, padding, dilation, size = windows
    return [Line(*sizes) for sizes in zip(size, kernel, [-p for p in padding], stride, dilation, strict=True)]


def spreading(windows: Sequence[Sequence[int]]) -> list[tuple[Line, ...]]:
    """The lines of its transpose: places that are a stride apart have the same taps, and are a sweep of their own."""
    found = []
    for n, k, s, p, d, _ in zip(*windows, strict=True):
        common = math.gcd(s, d)
        lines = []
        for r in range(min(s, n)):
            taps = [t for t in range(k) if (r + p - t * d) % s == 0]
            first = taps[0] if taps else 0
            start = (r + p - first * d) // s
            lines.append(Line(-(-(n - r) // s), len(taps), start, 1, -d // common, r, s, first, s // common))
        found.append(lines)
    return list(itertools.product(*found))


def sweeps(kind: str, windows: Sequence[Sequence[int]]) -> list[tuple[Line, ...]]:
    """Those of a convolution of a kind, as ``window_patterns.convolution`` explains."""
    return spreading(windows) if kind == "spread" else [tuple(gathering(windows))]

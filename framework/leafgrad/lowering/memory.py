"""Where roots lie: blocks of one stretch of memory, given again when their last reader has run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import getitem

from leafgrad.compile.ir.extent import applied
from leafgrad.lowering.forms import Root
from leafgrad.lowering.kernels import Kernel, Nest, roots

ALIGN = 64


@dataclass(eq=False, repr=False)
class Step:
    """What runs at one time: what it reads, what it writes, and which inputs its results may take the place of."""

    reads: Sequence[Root]
    writes: Sequence[Root]
    places: Sequence[tuple[Root, Root]] = ()


def step(kernel: Kernel) -> Step:
    """A kernel as a step. A nest reads each element before it writes the one at the same place."""
    places: list[tuple[Root, Root]] = []
    if isinstance(kernel, Nest):
        whole = [f.root for f in kernel.reads.values() if f.whole and f.shape == kernel.shape]
        places = [(out.root, x) for out in kernel.outputs for x in whole if x.dtype == out.root.dtype]
        strided = {f.root for f in kernel.reads.values() if not (f.whole and f.shape == kernel.shape)}
        places = [(out, x) for out, x in places if x not in strided]
    return Step(roots(kernel.inputs), roots(kernel.outputs), places)


def place(steps: Sequence[Step], size: dict[Root, int]) -> tuple[dict[Root, int], int]:
    """Offsets of roots, and the length of the memory that holds them all.

    Args:
        steps: in order.
        size: bytes of each root to be placed; others are ignored.
    """
    first: dict[Root, int] = {}
    last: dict[Root, int] = {}
    for k, now in enumerate(steps):
        for root in (*now.reads, *now.writes):
            if root in size:
                first.setdefault(root, k)
                last[root] = k
    at: dict[Root, int] = {}  # the number of its block
    spans: list[tuple[int, int]] = []  # the first and last step of each block
    needs: list[int] = []
    live: set[Root] = set()
    for root in sorted(first, key=first.__getitem__):
        k = first[root]
        live = {r for r in live if last[r] >= k}
        free = [x for out, x in steps[k].places if out is root and x in live]
        dying = [x for x in free if last[x] == k and size[x] == size[root]]
        if dying:
            block = at[root] = at[dying[0]]
            spans[block] = spans[block][0], last[root]
            live.remove(dying[0])
        else:
            at[root] = len(spans)
            spans.append((k, last[root]))
            needs.append(size[root])
        live.add(root)
    offsets = applied(partial(laid_out, spans), *needs)
    return {root: applied(getitem, offsets, k) for root, k in at.items()}, applied(getitem, offsets, -1)


def laid_out(spans: Sequence[tuple[int, int]], *sizes: int) -> list[int]:
    """Offsets of blocks that are used from one step to another, and the length of all."""
    offsets: list[int] = []
    end = 0
    for (k, _), size in zip(spans, sizes, strict=True):
        used = sorted([(at, n) for at, n, (_, last) in zip(offsets, sizes, spans, strict=False) if last >= k])
        at = 0
        for other, n in used:
            if other - at >= rounded(size):
                break
            at = max(at, other + rounded(n))
        offsets.append(at)
        end = max(end, at + rounded(size))
    return [*offsets, end]


def rounded(size: int) -> int:
    return -(-size // ALIGN) * ALIGN

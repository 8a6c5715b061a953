"""Where roots lie: blocks of one stretch of memory, given again when their last reader has run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
    offsets: dict[Root, int] = {}
    live: set[Root] = set()
    total = 0
    for root in sorted(first, key=first.__getitem__):
        k = first[root]
        live = {r for r in live if last[r] >= k}
        free = [x for out, x in steps[k].places if out is root and x in live]
        dying = [x for x in free if last[x] == k and size[x] == size[root]]
        if dying:
            offsets[root] = offsets[dying[0]]
            live.remove(dying[0])
        else:
            offsets[root] = gap(live, offsets, size, rounded(size[root]))
        live.add(root)
        total = max(total, offsets[root] + rounded(size[root]))
    return offsets, total


def gap(live: Iterable[Root], offsets: dict[Root, int], size: dict[Root, int], need: int) -> int:
    """The first offset from which ``need`` bytes are free."""
    at = 0
    for other in sorted(live, key=offsets.__getitem__):
        if offsets[other] - at >= need:
            break
        at = max(at, offsets[other] + rounded(size[other]))
    return at


def rounded(size: int) -> int:
    return -(-size // ALIGN) * ALIGN

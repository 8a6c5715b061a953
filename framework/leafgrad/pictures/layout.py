"""Where the boxes of a directed graph go: in layers, with few crossings and short edges.

The usual steps for layered graphs: layers by longest paths to the end, places for edges that pass a layer, an order
within each layer by medians of neighbours, and horizontal positions that are as near to the neighbours' as the widths
allow.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, insort
from collections.abc import Sequence

Size = tuple[float, float]
Point = tuple[float, float]

GAP, PASSAGE, STEP = 18.0, 10.0, 34.0  # between boxes, between passing edges, between layers
SWEEPS = 12


def layers_of(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """For each box the number of its layer, 0 on top; an edge leads down, and boxes lie as low as they can."""
    below: list[list[int]] = [[] for _ in range(count)]
    above: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for a, b in edges:
        below[a].append(b)
        above[b].append(a)
        waiting[a] += 1
    height = [0] * count
    ready = [n for n in range(count) if not waiting[n]]
    for n in ready:  # grows while it is walked
        for m in above[n]:
            height[m] = max(height[m], height[n] + 1)
            waiting[m] -= 1
            if not waiting[m]:
                ready.append(m)
    top = max(height, default=0)
    return [top - h for h in height]


class Layered:
    """Boxes and the places where edges pass, layer by layer."""

    def __init__(self, sizes: Sequence[Size], edges: Sequence[tuple[int, int]]) -> None:
        self.sizes = list(sizes)
        self.layer = layers_of(len(sizes), edges)
        self.chains: list[list[int]] = []
        self.up: list[list[int]] = [[] for _ in sizes]
        self.down: list[list[int]] = [[] for _ in sizes]
        self.boxes = len(self.sizes)
        for a, b in edges:
            chain = [a]
            for level in range(self.layer[a] + 1, self.layer[b]):
                chain.append(len(self.sizes))
                self.sizes.append((0.0, 0.0))
                self.layer.append(level)
                self.up.append([])
                self.down.append([])
            chain.append(b)
            for upper, lower in itertools.pairwise(chain):
                self.down[upper].append(lower)
                self.up[lower].append(upper)
            self.chains.append(chain)
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        for n in self.first_order():
            self.rows[self.layer[n]].append(n)

    def first_order(self) -> list[int]:
        """All of them, from the lowest upwards, neighbours after one another."""
        found: list[int] = []
        seen: set[int] = set()
        for end in sorted(range(len(self.sizes)), key=lambda n: -self.layer[n]):
            todo = [end]
            while todo:
                n = todo.pop()
                if n not in seen:
                    seen.add(n)
                    found.append(n)
                    todo += reversed(self.up[n])
        return found

    # ---- the order within layers --------------------------------------------------------------------------------

    def untangle(self) -> None:
        """Order each layer by the medians of its neighbours, to and fro; keep the order with the fewest crossings."""
        best, fewest = [list(row) for row in self.rows], self.crossings()
        for sweep in range(SWEEPS):
            if not fewest:
                break
            downward = sweep % 2 == 0
            for row in self.rows[1:] if downward else self.rows[-2::-1]:
                neighbours = self.up if downward else self.down
                place = {n: i for r in self.rows for i, n in enumerate(r)}
                row.sort(key=lambda n: median([place[m] for m in neighbours[n]], place[n]))
            crossings = self.crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def crossings(self) -> int:
        """How many pairs of edges cross."""
        total = 0
        for upper, lower in zip(self.rows, self.rows[1:], strict=False):
            place = {n: i for i, n in enumerate(lower)}
            seen: list[int] = []
            for n in upper:
                ends = sorted(place[m] for m in self.down[n])
                total += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
                for end in ends:
                    insort(seen, end)
        return total

    # ---- positions ----------------------------------------------------------------------------------------------

    def widths(self, row: list[int]) -> list[float]:
        """How far the middle of each of a row is from that of the one before it, at least; 0 for the first."""
        found = [0.0]
        for a, b in itertools.pairwise(row):
            gap = GAP if a < self.boxes and b < self.boxes else PASSAGE
            found.append((self.sizes[a][0] + self.sizes[b][0]) / 2 + gap)
        return found

    def pull(self, n: int, m: int) -> float:
        """How much one wants to be right above the other: passing edges most, so that they run straight."""
        return (1.0, 2.0, 8.0)[(n >= self.boxes) + (m >= self.boxes)]

    def positions(self) -> list[Point]:
        """The middle of each, from the top left corner of the picture."""
        x = [0.0] * len(self.sizes)
        for row in self.rows:
            at = 0.0
            for n, far in zip(row, self.widths(row), strict=True):
                at += far
                x[n] = at
        for sweep in range(2 * SWEEPS):
            downward = sweep % 2 == 0
            for row in self.rows if downward else self.rows[::-1]:
                wanted, weights = [], []
                for n in row:
                    near = [*self.up[n], *self.down[n]] if sweep >= SWEEPS else (self.up if downward else self.down)[n]
                    pulls = [self.pull(n, m) for m in near]
                    total = sum(pulls)
                    wanted.append(sum(x[m] * p for m, p in zip(near, pulls, strict=True)) / total if near else x[n])
                    weights.append(total or 0.1)
                for n, at in zip(row, placed(wanted, weights, self.widths(row)), strict=True):
                    x[n] = at
        left = min((x[n] - self.sizes[n][0] / 2 for n in range(len(x))), default=0.0)
        y, at = [0.0] * len(x), 0.0
        for row in self.rows:
            tall = max(self.sizes[n][1] for n in row)
            for n in row:
                y[n] = at + tall / 2
            at += tall + STEP
        return [(a - left, b) for a, b in zip(x, y, strict=True)]

    def passage(self, n: int) -> tuple[float, float]:
        """From where to where, relative to its middle, an edge goes straight down beside the boxes of a layer."""
        tall = max(self.sizes[m][1] for m in self.rows[self.layer[n]]) / 2
        return -tall, tall


def median(values: list[int], default: float) -> float:
    """The middle of some numbers, between two of them if their count is even."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if not ordered:
        return default
    return float(ordered[half]) if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def placed(wanted: list[float], weights: list[float], far: list[float]) -> list[float]:
    """Positions in this order, each at least ``far`` from the one before it, nearest to what is wanted.

    Least squares: without the distances that must be kept it is a regression by a function that never falls.
    """
    shift, at = [], 0.0
    for f in far:
        at += f
        shift.append(at)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many
    for want, weight, s in zip(wanted, weights, shift, strict=True):
        block = (want - s, weight, 1)
        while blocks and blocks[-1][0] >= block[0]:
            mean, w, count = blocks.pop()
            block = ((mean * w + block[0] * block[1]) / (w + block[1]), w + block[1], count + block[2])
        blocks.append(block)
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + s for mean, s in zip(means, shift, strict=True)]


def lay_out(sizes: Sequence[Size], edges: Sequence[tuple[int, int]]) -> tuple[list[Point], list[list[Point]]]:
    """The middle of each box, and for each edge the points that it goes through.

    Args:
        sizes: width and height of each box.
        edges: pairs of boxes, from the upper to the lower one, without cycles.
    """
    layered = Layered(sizes, edges)
    layered.untangle()
    at = layered.positions()
    paths = []
    for chain in layered.chains:
        first, last = chain[0], chain[-1]
        start = (at[first][0], at[first][1] + layered.sizes[first][1] / 2)
        end = (at[last][0], at[last][1] - layered.sizes[last][1] / 2)
        passed = [(at[n][0], at[n][1] + far) for n in chain[1:-1] for far in layered.passage(n)]
        paths.append([start, *passed, end])
    return at[: len(sizes)], paths

"""How much memory values take, and how long."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leafgrad.compile.ir.extent import present
from leafgrad.compile.ir.graph import Equation, Graph, Value, itemsize


def roots(graph: Graph) -> dict[Value, Value]:
    """For each value the one in whose memory it may lie: its own, or that of which it is a view."""
    found: dict[Value, Value] = {v: v for v in graph.inputs}
    for e in graph.equations:
        source = e.inputs[0] if "view" in e.op.traits else None
        for v in e.outputs:
            found[v] = found[source] if isinstance(source, Value) else v
    return found


def nbytes(value: Value) -> int:
    """What a value takes at present: where sizes may be others, any order of equations that this leads to is right."""
    return math.prod(map(present, value.shape)) * itemsize(value.dtype)


class Memory:
    """What the equations of a graph make and read of memory, views counted as that of which they are views.

    Attributes:
        made: the memory that each equation makes, with its size in bytes.
        read: the memory that each equation reads, with its size in bytes.
        read_by: the equations that read each memory.
        held: the memory that the program is given or keeps.
        readers: how many equations read each memory; one more where it is held.
    """

    def __init__(self, graph: Graph) -> None:
        root = roots(graph)
        size = {v: nbytes(v) for v, r in root.items() if r is v}
        self.made = {e: {v: size[v] for v in e.outputs if v in size} for e in graph.equations}
        self.read = {e: {r: size[r] for r in map(root.__getitem__, e.values)} for e in graph.equations}
        self.held = {*graph.inputs, *(root[v] for v in graph.kept)}
        self.read_by: dict[Value, list[Equation]] = {v: [] for v in size}
        for e, read in self.read.items():
            for v in read:
                self.read_by[v].append(e)
        self.readers = {v: len(found) + (v in self.held) for v, found in self.read_by.items()}

    def peak(self, order: Sequence[Equation]) -> int:
        """The most bytes that values made by the program take at once, if its equations run in ``order``.

        Elementwise results go into the memory of an input that dies.
        """
        left = self.readers.copy()
        live = peak = 0
        alive: set[Value] = set()
        for e in order:
            made, freed = self.made[e], dict[Value, int]()
            for v, size in self.read[e].items():
                left[v] -= 1
                if not left[v] and v in alive:
                    freed[v] = size
            live += sum(made.values())
            if live > peak:
                reuses = "elementwise" in e.op.traits and any(v.shape == e.out.shape for v in freed)
                peak = max(peak, live - (nbytes(e.out) if reuses else 0))
            live -= sum(freed.values())
            alive.difference_update(freed)
            for v, size in made.items():
                if left[v]:
                    alive.add(v)
                else:
                    live -= size
        return peak

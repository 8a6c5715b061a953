"""What runs one recorded program for batches of several lengths."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.lengths import Length, lengths_in, resized
from leafgrad.compile.ir.locks import Lock
from leafgrad.compile.record.layouts import Decision
from leafgrad.compile.run.runner import Runner

Sizes = tuple[int, ...]
KEPT = 32  # lengths of one program


class Lengths:
    """The runners of a program, one for each length that it was run for.

    Args:
        graph: the program, with Lengths in the place of sizes.
        decisions: on memory on which it rests.
        name: of the executor that was asked for.

    Attributes:
        texts: the expressions of its sizes.
        last: the runner that was used last.
    """

    def __init__(self, graph: Graph, decisions: Sequence[Decision], name: str | None) -> None:
        self.graph, self.decisions, self.name = graph, decisions, name
        found = [*lengths_in(graph), *[length for decision in decisions for length in decision.lengths()]]
        self.texts = list(dict.fromkeys([length.text for length in found]))
        self.runners: OrderedDict[Sizes, Runner] = OrderedDict()
        self.last: Runner
        self.lock = Lock()

    def fits(self, sizes: Sizes) -> bool:
        """Whether the same views are in the memory of others at these sizes."""
        at = self.at(sizes)
        return all(decision.at(at).holds() for decision in self.decisions)

    def at(self, sizes: Sizes) -> Callable[[Any], Any]:
        """What a part of the program is at these sizes."""
        known = dict(zip(self.texts, sizes, strict=True))
        return lambda part: known[part.text] if type(part) is Length else part

    def runner(self, sizes: Sizes) -> Runner:
        """That for these sizes."""
        with self.lock.held:
            found = self.runners.get(sizes)
            if found is None:
                found = self.runners[sizes] = Runner(resized(self.graph, self.at(sizes)), self.name)
                while len(self.runners) > KEPT:
                    self.runners.popitem(last=False)
            self.runners.move_to_end(sizes)
            self.last = found
        return found

"""What runs one recorded program for batches of several lengths."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad.compile.ir.admitted import Extents
from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.lengths import Length, lengths_in, resized
from leafgrad.compile.ir.locks import Lock
from leafgrad.compile.ir.log import log
from leafgrad.compile.record.layouts import Decision
from leafgrad.compile.run.misses import OF_LENGTH, OF_MEMORY, Cost
from leafgrad.compile.run.runner import Prepared, Runner
from leafgrad.signals import held

Sizes = tuple[int, ...]
KEPT = 32  # lengths of one program
MOST = 8  # times that it is made for more lengths than one


class Lengths:
    """The runners of a program, one for each length that it was run for.

    Args:
        graph: the program, with Lengths in the place of sizes.
        decisions: on memory on which it rests.
        name: of the executor that was asked for.

    Attributes:
        texts: the expressions of its sizes.
        made: what serves many lengths each.
        left: how often more of that may be made.
        last: the runner that was used last.
    """

    def __init__(self, graph: Graph, decisions: Sequence[Decision], name: str | None) -> None:
        self.graph, self.decisions, self.name = graph, decisions, name
        found = [*lengths_in(graph), *[length for decision in decisions for length in decision.lengths()]]
        self.texts = list(dict.fromkeys([length.text for length in found]))
        self.runners: OrderedDict[Sizes, Runner] = OrderedDict()
        self.made: list[Prepared] = []
        self.left = MOST
        self.last: Runner
        self.lock = Lock()

    def fits(self, sizes: Sizes) -> bool:
        """Whether the same views are in the memory of others at these sizes."""
        at = self.at(sizes)
        return all(decision.at(at).holds() for decision in self.decisions)

    def at(self, sizes: Sequence[Any]) -> Callable[[Any], Any]:
        """What a part of the program is at these sizes."""
        known = dict(zip(self.texts, sizes, strict=True))
        return lambda part: known[part.text] if type(part) is Length else part

    def runner(self, sizes: Sizes) -> Runner:
        """That for these sizes."""
        return self.lock.run(self.kept, sizes)

    def kept(self, sizes: Sizes) -> Runner:
        """The same, in turn."""
        found = self.runners.get(sizes)
        if found is None:
            found = self.runners[sizes] = self.run_at(sizes)
            while len(self.runners) > KEPT:
                self.runners.popitem(last=False)
        self.runners.move_to_end(sizes)
        self.last = found
        return found

    def serving(self, sizes: Sizes) -> Prepared | None:
        """What was made for other sizes, and serves these."""
        return next((made for made in self.made if made.extents is not None and made.extents.admit(sizes)), None)

    def cost(self, sizes: Sizes) -> Cost:
        """What it costs to run the program for these sizes."""
        made = self.serving(sizes)
        return OF_LENGTH if made is None or made.planned is None else OF_MEMORY

    def run_at(self, sizes: Sizes) -> Runner:
        """A runner for these sizes: of what was made for others and serves them, too, or of what is made now."""
        made = self.serving(sizes)
        if made is None and self.left and all(type(n) is int for n in sizes):
            self.left -= 1
            extents = Extents(sizes)
            try:
                made = held(Prepared, resized(self.graph, self.at(extents.given)), self.name, extents)
                self.made.append(made)
            except Exception as error:  # as in Extents.tried
                log(f"{type(error).__name__}: {error}")
        if made is None:
            return Runner(Prepared(resized(self.graph, self.at(sizes)), self.name))
        return Runner(made, sizes)

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

KEPT = 32  # lengths of one program


class Lengths:
    """The runners of a program, one for each length that it was run for.

    Args:
        graph: the program, with Lengths in the place of sizes.
        decisions: on memory on which it rests.
        name: of the executor that was asked for.
        evaluate: makes a function of a call's leaves that gives what some expressions are.
        leaves: of the call that was recorded.

    Attributes:
        last: the runner that was used last.
    """

    def __init__(
        self,
        graph: Graph,
        decisions: Sequence[Decision],
        name: str | None,
        evaluate: Callable[[Sequence[str]], Any],
        leaves: Sequence[Any],
    ) -> None:
        self.graph, self.decisions, self.name = graph, decisions, name
        found = [*lengths_in(graph), *[length for decision in decisions for length in decision.lengths()]]
        self.texts = list(dict.fromkeys([length.text for length in found]))
        self.sizes: Callable[[Sequence[Any]], tuple[int, ...]] = evaluate(self.texts)
        self.runners: OrderedDict[tuple[int, ...], Runner] = OrderedDict()
        self.lock = Lock()
        self.last = self.runner(leaves)

    def has(self, leaves: Sequence[Any]) -> bool:
        """Whether the length of these was met before."""
        return self.sizes(leaves) in self.runners

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Whether the same views are in the memory of others at the length of these."""
        sizes = self.at(self.sizes(leaves))
        return all(decision.at(sizes).holds() for decision in self.decisions)

    def at(self, sizes: Sequence[int]) -> Callable[[Any], Any]:
        """What a part of the program is at these sizes."""
        known = dict(zip(self.texts, sizes, strict=True))
        return lambda part: known[part.text] if type(part) is Length else part

    def runner(self, leaves: Sequence[Any]) -> Runner:
        """That for the length of these."""
        sizes = self.sizes(leaves)
        with self.lock.held:
            found = self.runners.get(sizes)
            if found is None:
                found = self.runners[sizes] = Runner(resized(self.graph, self.at(sizes)), self.name)
                while len(self.runners) > KEPT:
                    self.runners.popitem(last=False)
            self.runners.move_to_end(sizes)
            self.last = found
        return found

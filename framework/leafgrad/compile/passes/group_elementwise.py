"""Order equations so that chains of elementwise ops stand together and few values live at once."""

from __future__ import annotations

from collections.abc import Callable

from leafgrad.compile.ir.graph import Equation, Graph
from leafgrad.compile.passes.liveness import Memory


def group_elementwise(graph: Graph) -> Graph:
    """The graph with its equations in the order, of those tried, whose values take the least memory at once.

    Tried are the order as it is; greedily forward, what frees most first; and greedily backward, what the end
    needs last. Equations whose ops are ordered keep their order.
    """
    memory, before = Memory(graph), dependencies(graph)
    orders = (graph.equations, forward(memory, before), backward(graph, memory, before))
    best = min(orders, key=memory.peak)
    return graph if best is graph.equations else graph.with_equations(best)


Dependencies = dict[Equation, list[Equation]]


def forward(memory: Memory, before: Dependencies) -> tuple[Equation, ...]:
    """At each step the ready equation that adds least to memory; of equal ones the one made ready last."""
    left = memory.readers.copy()
    new = {e: sum(made.values()) for e, made in memory.made.items()}

    def growth(e: Equation) -> int:
        return new[e] - sum([size for v, size in memory.read[e].items() if left[v] == 1])

    def done(e: Equation) -> list[Equation]:
        for v in memory.read[e]:
            left[v] -= 1
        return [r for v in memory.read[e] if left[v] == 1 for r in memory.read_by[v]]

    return greedy(before, growth, done)


def backward(graph: Graph, memory: Memory, before: Dependencies) -> tuple[Equation, ...]:
    """The same from the end: the equation placed last is the one that brings the fewest new values to keep."""
    needed = memory.held.copy()
    after: Dependencies = {e: [] for e in reversed(graph.equations)}
    for e, earlier in before.items():
        for b in earlier:
            after[b].append(e)
    new = {e: sum(made.values()) for e, made in memory.made.items()}

    def growth(e: Equation) -> int:
        return sum([size for v, size in memory.read[e].items() if v not in needed]) - new[e]

    def done(e: Equation) -> list[Equation]:
        new = memory.read[e].keys() - needed
        needed.update(new)
        return [r for v in new for r in memory.read_by[v]]

    return tuple(reversed(greedy(after, growth, done)))


def dependencies(graph: Graph) -> Dependencies:
    """The equations that must run before each one."""
    makers = graph.makers()
    found: Dependencies = {}
    last: Equation | None = None
    for e in graph.equations:
        found[e] = [makers[v] for v in dict.fromkeys(e.values) if v in makers]
        if e.op.ordered:
            if last is not None and last not in found[e]:
                found[e].append(last)
            last = e
    return found


def greedy(
    before: Dependencies, growth: Callable[[Equation], int], done: Callable[[Equation], list[Equation]]
) -> tuple[Equation, ...]:
    """All equations, each after those ``before`` it: at each step the ready one that grows least, youngest first.

    ``done`` tells which equations may now grow by something else.
    """
    waiting = {e: len(b) for e, b in before.items()}
    after: Dependencies = {e: [] for e in before}
    for e, b in before.items():
        for earlier in b:
            after[earlier].append(e)
    ready = {e: growth(e) for e, n in waiting.items() if not n}
    order: list[Equation] = []
    while ready:
        e = min(reversed(ready), key=ready.__getitem__)
        del ready[e]
        order.append(e)
        for changed in done(e):
            if changed in ready:
                ready[changed] = growth(changed)
        for later in after[e]:
            waiting[later] -= 1
            if not waiting[later]:
                ready[later] = growth(later)
    return tuple(order)

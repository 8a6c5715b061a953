"""Order equations so that chains of elementwise ops stand together and few values live at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from leafgrad.compile.graph import Equation, Graph, Value
from leafgrad.compile.passes.liveness import nbytes, peak_bytes, roots


def group_elementwise(graph: Graph) -> Graph:
    """The graph with its equations in the order, of those tried, whose values take the least memory at once.

    Tried are the order as it is; greedily forward, what frees most first; and greedily backward, what the end
    needs last. Equations whose ops are ordered keep their order.
    """
    orders = (graph.equations, forward(graph), backward(graph))
    best = min(orders, key=lambda order: peak_bytes(graph, order))
    return graph if best is graph.equations else graph.with_equations(best)


def forward(graph: Graph) -> tuple[Equation, ...]:
    """At each step the ready equation that adds least to memory; of equal ones the one made ready last."""
    root = roots(graph)
    left = {root[v]: 1 for v in graph.kept}
    for e in graph.equations:
        for v in set(e.values):
            left[root[v]] = left.get(root[v], 0) + 1
    for v in graph.inputs:
        left[v] = left.get(v, 0) + 1

    new, read = sizes(graph, root)

    def growth(e: Equation) -> int:
        return new[e] - sum([size for v, size in read[e].items() if left[v] == 1])

    def done(e: Equation) -> None:
        for v in set(e.values):
            left[root[v]] -= 1

    return greedy(dependencies(graph), growth, done)


def backward(graph: Graph) -> tuple[Equation, ...]:
    """The same from the end: the equation placed last is the one that brings the fewest new values to keep."""
    root = roots(graph)
    needed = {root[v] for v in graph.kept} | set(graph.inputs)
    after: dict[Equation, list[Equation]] = {e: [] for e in graph.equations}
    for e, before in dependencies(graph).items():
        for b in before:
            after[b].append(e)

    made, read = sizes(graph, root)

    def growth(e: Equation) -> int:
        return sum([size for v, size in read[e].items() if v not in needed]) - made[e]

    def done(e: Equation) -> None:
        needed.update(read[e])

    reverse = {e: after[e] for e in reversed(graph.equations)}
    return tuple(reversed(greedy(reverse, growth, done)))


def sizes(graph: Graph, root: dict[Value, Value]) -> tuple[dict[Equation, int], dict[Equation, dict[Value, int]]]:
    """For each equation the bytes of the memory that it makes, and of each that it reads."""
    made = {e: sum(nbytes(v) for v in e.outputs if root[v] is v) for e in graph.equations}
    return made, {e: {root[v]: nbytes(root[v]) for v in e.values} for e in graph.equations}


def dependencies(graph: Graph) -> dict[Equation, list[Equation]]:
    """The equations that must run before each one."""
    makers = graph.makers()
    found: dict[Equation, list[Equation]] = {}
    last: Equation | None = None
    for e in graph.equations:
        found[e] = [makers[v] for v in dict.fromkeys(e.values) if v in makers]
        if e.op.ordered:
            if last is not None and last not in found[e]:
                found[e].append(last)
            last = e
    return found


def greedy(
    before: dict[Equation, list[Equation]], growth: Callable[[Equation], int], done: Callable[[Equation], None]
) -> tuple[Equation, ...]:
    """All equations, each after those ``before`` it: at each step the ready one that grows least, youngest first."""
    waiting = {e: len(b) for e, b in before.items()}
    after: dict[Equation, list[Equation]] = {e: [] for e in before}
    for e, b in before.items():
        for earlier in b:
            after[earlier].append(e)
    ready = [e for e, n in waiting.items() if not n]
    order: list[Equation] = []
    while ready:
        costs = [growth(e) for e in reversed(ready)]
        e = ready.pop(-1 - costs.index(min(costs)))
        order.append(e)
        done(e)
        for later in after[e]:
            waiting[later] -= 1
            if not waiting[later]:
                ready.append(later)
    return tuple(order)


@dataclass
class Group:
    """Elementwise equations over one shape, that one loop over elements can compute."""

    shape: tuple[int, ...]
    equations: list[Equation] = field(default_factory=list)


def groups(graph: Graph) -> list[Group]:
    """Fusable equations of the graph, in an order in which the groups and the equations between them can run.

    An equation joins the youngest group of its shape (and device) if all that it reads exists before that group
    or is made in it.
    """
    found: list[Group] = []
    step: dict[Value, int] = {}  # when a value exists: after as many groups and other equations
    youngest: dict[tuple[tuple[int, ...], tuple[str, int]], tuple[int, Group]] = {}
    for now, e in enumerate(graph.equations, 1):
        ready = max((step.get(v, 0) for v in e.values), default=0)
        if "elementwise" not in e.op.traits or "random" in e.op.traits or e.several:
            step.update(dict.fromkeys(e.outputs, now))
            continue
        key = e.out.shape, e.place
        at, group = youngest.get(key, (0, None))
        if group is None or ready > at:
            at, group = now, Group(e.out.shape)
            youngest[key] = at, group
            found.append(group)
        group.equations.append(e)
        step[e.out] = at
    return found

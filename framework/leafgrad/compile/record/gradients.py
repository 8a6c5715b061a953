"""The backward programs of a recorded call: how gradients of its results become those of what these are made of."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

from leafgrad import modes
from leafgrad.autograd import engine
from leafgrad.autograd.context import FunctionNode
from leafgrad.compile.ir.graph import Graph, SetData, Value, Write
from leafgrad.compile.ir.lines import user_line
from leafgrad.compile.ir.sources import Argument, Captured, Expression, Given, Source
from leafgrad.compile.record.ancestors import Owner
from leafgrad.compile.record.history import History, Reader
from leafgrad.compile.record.recorder import Recorder
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.errors import MissingGradientError, TraceError
from leafgrad.ops import messages
from leafgrad.ops.node import FREED, GraphNode, Leaf, Version
from leafgrad.tensor import inplace
from leafgrad.tensor.tensor import Tensor


@dataclass(frozen=True)
class Pullback:
    """How gradients of some results become gradients of what these are made of.

    Attributes:
        results: which.
        graph: the program, of what was saved for it and of gradients of the results.
        targets: the sources, and the numbers of other results, whose gradients it gives, in order.
        saved: the values that gradients need.
        read: how many of them the program is given; the others are for derivatives of derivatives.
        history: the graph of the results as far as the targets.
        versions: those of the memory that saved values are in.
    """

    results: list[int]
    graph: Graph
    targets: list[Owner | int]
    saved: list[Value]
    read: int
    history: History
    versions: list[tuple[Value, Version]]


@dataclass
class Gradients:
    """How the results of a call are differentiated.

    Attributes:
        pullbacks: how gradients of results become those of what they are made of, each after those it leads to.
        refused: which results require grad but have none, since their graph was freed or cannot be compiled, with the
            sources that they are made of, and what to raise when they are differentiated for these after all.
    """

    pullbacks: list[Pullback] = field(default_factory=list)
    refused: dict[int, tuple[list[Owner], Exception]] = field(default_factory=dict)

    @property
    def saved(self) -> list[Value]:
        """The values of the call's graph that they need, in order: inputs, or results after all others."""
        return list(dict.fromkeys([v for p in self.pullbacks for v in p.saved]))

    def kept_in(self, recorder: Recorder, results: dict[int, Tensor]) -> list[Owner | int | None]:
        """Whose memory each of the saved values is in: a source's, that of a result by its number, or nobody's."""
        owners: dict[Version, Owner | int] = {inplace.version(t): i for i, t in results.items()}
        for o in recorder.outside.values():
            if isinstance(o.source, (Argument, Captured)):
                owners[o.inner._writes] = o.source
        found = {v: owners[version] for p in self.pullbacks for v, version in p.versions if version in owners}
        return [found.get(v) for v in self.saved]


def gradients_of(recorder: Recorder, graph: Graph, outputs: dict[int, Tensor]) -> Gradients:
    """The backward programs of those results whose graph can be walked; what to raise for the others.

    Raises:
        Unclosed: an op has no gradient for some tensors that a result is made of, which a program asks for at once.
    """
    owners = differentiable_sources(recorder, outputs)
    sources: dict[Any, Owner | int] = dict(owners)
    found = Gradients()
    for chosen in layers(outputs, recorder.born):
        one = pullback(recorder, sources, {i: outputs[i] for i in chosen}, graph)
        if isinstance(one, Exception):
            alone = {i: pullback(recorder, sources, {i: outputs[i]}, graph) for i in chosen}
            for i, error in alone.items():
                if isinstance(error, Exception):
                    nodes = engine.reachable([outputs[i]._node], recorder.born)
                    led_to = {node: owners[node] for node in nodes if node in owners}
                    if isinstance(error, MissingGradientError):  # who asks for others alone meets none
                        apart = [pullback(recorder, {n: s}, {i: outputs[i]}, graph) for n, s in led_to.items()]
                        if not all(isinstance(one, Exception) for one in apart):
                            raise Unclosed(f"gradients of a result are there for some tensors only: {error}")
                    found.refused[i] = [*led_to.values()], error
            able = {i: outputs[i] for i in chosen if i not in found.refused}
            one = pullback(recorder, sources, able, graph) if able else one
        if isinstance(one, Pullback):
            found.pullbacks.append(one)
        sources |= {outputs[i]._node: i for i in chosen if i not in found.refused}
    return found


def staying(graph: Graph, saved: list[Value], memory: list[Owner | int | None]) -> set[Value]:
    """The saved values that stay in the memory that they are in: a result's, or that of a tensor from outside."""
    written = {e.value: e.source for e in graph.effects if isinstance(e, (Write, SetData))}

    def stays(value: Value, owner: Owner | int | None) -> bool:
        if isinstance(owner, int):
            return graph.results[owner] is value
        return owner is not None and owner is written.get(value)

    return {v for v, owner in zip(saved, memory, strict=True) if stays(v, owner)}


def saving(recorder: Recorder, graph: Graph, saved: list[Value], memory: list[Owner | int | None]) -> Graph:
    """The graph with results that gradients need after all others, and inputs for numbers that they need."""
    numbers = {v: s for v in saved if isinstance(s := recorder.sources.get(v), Expression) and v not in graph.inputs}
    inputs = graph.inputs | numbers
    there = {*inputs, *staying(graph, saved, memory)}
    return Graph(inputs, graph.equations, (*graph.results, *(v for v in saved if v not in there)), graph.effects)


def layers(outputs: dict[int, Tensor], since: int) -> list[list[int]]:
    """Results in groups, each after those that gradients come through on their way.

    What one is made of is another's place for hooks, ``.grad`` and ``autograd.grad``, so gradients must arrive there.
    Those of one group have some of the graph in common, so that a backward pass through one frees the others, too.
    """
    ends = {t._node for t in outputs.values()}
    depth: dict[Any, int] = {}
    parts: dict[Any, Any] = {}  # of each node one that it is connected with; for one of each part itself

    def part(node: Any) -> Any:
        while parts[node] is not node:
            parts[node] = node = parts[parts[node]]
        return node

    for node in reversed(engine.reachable(ends, since)):
        before = [edge for edge in node.edges if edge in depth]
        depth[node] = max([depth[edge] + (edge in ends) for edge in before], default=0)
        parts[node] = node
        for edge in before:
            if edge.seq >= since:
                parts[part(edge)] = part(node)
    found: dict[tuple[int, Any], list[int]] = {}
    for i, t in outputs.items():
        found.setdefault((depth[t._node], part(t._node)), []).append(i)
    return [found[group] for group in sorted(found, key=operator.itemgetter(0))]


def pullback(
    recorder: Recorder, sources: dict[Any, Owner | int], outputs: dict[int, Tensor], forward: Graph
) -> Pullback | Exception:
    """The backward program of some results of the program ``forward``, or why there is none."""
    cut = [(node, node.edges) for node, source in sources.items() if isinstance(source, int)]
    try:
        for node, _ in cut:
            node.edges = ()
        return trace_backward(recorder, sources, outputs, forward)
    except Unclosed:
        raise
    except (RuntimeError, MissingGradientError, TraceError) as error:
        return error.with_traceback(None)
    finally:
        for node, edges in cut:
            node.edges = edges
        del recorder.equations[len(forward) :]


def differentiable_sources(recorder: Recorder, outputs: dict[int, Tensor]) -> dict[Any, Owner]:
    """The sources of ``outputs`` that require grad, by their nodes.

    Raises:
        Unclosed: one of them is a view that was made anew, since the call wrote its base.
    """
    sources: dict[Any, Owner] = {}
    reached = set(engine.reachable({t._node for t in outputs.values()}, recorder.born))
    for o in recorder.outside.values():
        if not isinstance(o.source, (Argument, Captured)):
            continue
        for node in (o.node, o.inner._history):  # that of a view before the call wrote its base, and now
            if type(node) is Leaf or (node is not None and node.seq < recorder.born):
                sources.setdefault(node, o.source)
            elif node in reached:
                raise Unclosed(f"its results are made of {messages.describe(o.tensor)}, a view whose base it wrote")
    return sources


def is_spent(node: GraphNode) -> bool:
    """Whether it is that of a user's Function that cannot run again: its backward, which does more, is not called."""
    return isinstance(node, FunctionNode) and not node.op.pure and node.saved is FREED


def trace_backward(
    recorder: Recorder, sources: dict[Any, Owner | int], outputs: dict[int, Tensor], forward: Graph
) -> Pullback:
    """The program that takes what the forward one saved and gradients of ``outputs`` to gradients of ``sources``."""
    nodes = engine.reachable([t._node for t in outputs.values()], recorder.born)
    if any(node.seq >= recorder.born and is_spent(node) for node in nodes):
        raise messages.freed()
    symbols = []
    for t in outputs.values():
        result = recorder.lift(t).value
        gradient = Value(result.shape, result.dtype, result.place)
        recorder.likes[gradient] = result
        symbols.append(recorder.symbol(gradient))
    found: dict[Any, Any] = {}
    with modes.no_grad():
        seeds = [(t._node, s) for t, s in zip(outputs.values(), symbols, strict=True)]
        engine.run(seeds, set(sources), True, False, found.__setitem__, recorder.born)
    targets = [(source, recorder.operand(None, found[node])) for node, source in sources.items() if node in found]
    equations = tuple(recorder.equations[len(forward) :])
    made = {v for e in equations for v in e.outputs} | {s.value for s in symbols}
    wanted = [v for e in equations for v in e.values] + [v for _, v in targets if isinstance(v, Value)]
    read = list(dict.fromkeys(v for v in wanted if v not in made))
    strange = {v for v, s in recorder.sources.items() if not isinstance(s, Expression)} - forward.inputs.keys()
    if not strange.isdisjoint(read):
        raise TraceError(f"the gradient of a result needs an array that the program does not know, at {user_line()}")
    reached = {node: i for i, node in enumerate(node for node in sources if node in found)}
    reader = Reader(recorder, reached, recorder.born)
    history = reader.read([t._node for t in outputs.values()])
    given: dict[Value, Source] = {v: Given(i) for i, v in enumerate([*read, *(s.value for s in symbols)])}
    return Pullback(
        list(outputs),
        Graph(given, equations, tuple(v for _, v in targets if isinstance(v, Value))),
        [source for source, _ in targets],
        list(dict.fromkeys([*read, *history.values()])),
        len(read),
        history,
        reader.versions,
    )

"""The node of a compiled call's results: its pull is a program too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from leafgrad.autograd import engine
from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.ir.locks import Lock
from leafgrad.compile.ir.sources import Source
from leafgrad.compile.passes.remove_dead import remove_dead
from leafgrad.compile.record.gradients import Pullback, staying
from leafgrad.compile.record.trace import Traced
from leafgrad.ops import dispatch, messages
from leafgrad.ops.convert import new_full
from leafgrad.ops.elementwise import add
from leafgrad.ops.node import EMPTY, FREED, SEQ, GraphNode, Node, Output, SymbolBase
from leafgrad.signals import held
from leafgrad.tensor import inplace
from leafgrad.tensor.tensor import Tensor

Saved = tuple[Any, Tensor | None]  # an array, and the tensor whose memory it is, if it is one from outside

Run = tuple[Callable[[Sequence[Any]], list[Any]], list[int], list[int]]


def new_node(op: Any, saved: Sequence[Saved]) -> Node:
    """A new node without its shape and edges."""
    node = object.__new__(Node)
    node.op = op
    node.params = EMPTY
    node.edges = ()
    node.seq = next(SEQ)
    node.hooks = node.out = node.version = node.shapes = None
    node.saved = tuple(saved)
    return node


class Refused:
    """What the engine asks of ``node.op`` for a result that requires grad but whose graph is gone."""

    label = "CompiledBackward0"
    name = "a compiled function"
    traits: frozenset[str] = frozenset()

    def __init__(self, error: Exception) -> None:
        self.error = error

    def attach(self, result: Tensor, edges: tuple[GraphNode, ...]) -> None:
        """Make ``result`` the output of a new node."""
        node = new_node(self, ())
        node.shape, node.edges = result._data.shape, edges
        result._node = node

    def pull(self, node: Node, g: Any, needed: set[GraphNode] | None) -> list[tuple[GraphNode, Any]]:
        """The error that the graph gave when it was walked."""
        raise type(self.error)(*self.error.args)

    pull_recorded = pull


class Backward:
    """What the engine asks of ``node.op`` for some results of a compiled program.

    Args:
        pullback: of these results.
        values: what stands for them.
        build: makes what runs a graph.
    """

    label = "CompiledBackward0"
    name = "a compiled function"
    traits: frozenset[str] = frozenset()

    def __init__(
        self,
        pullback: Pullback,
        values: Sequence[Value],
        build: Callable[[Graph], Callable[[Sequence[Any]], list[Any]]],
    ) -> None:
        self.graph = pullback.graph
        self.history = pullback.history
        self.saved = pullback.saved
        self.read = pullback.read
        self.values = list(values)
        self.shapes = [v.shape for v in self.values]
        self.gradients = list(self.graph.inputs)[self.read :]
        self.build = build
        self.lock = Lock()
        self.runs: dict[tuple[bool, ...], Run] = {}

    def node(self, saved: Sequence[Saved]) -> tuple[Node, list[GraphNode]]:
        """A new node for one call, without its edges, and those of the results, in the order of which all are born."""
        node = new_node(self, saved)
        if len(self.values) == 1:
            node.shape = self.values[0].shape
            return node, [node]
        gaps: Any = (None,) * len(self.values)
        node.shape, node.ends = gaps, {}
        return node, [*Output.each(node, enumerate(v.shape for v in self.values))]

    def pull(self, node: Node, g: Any, needed: set[GraphNode] | None) -> list[tuple[GraphNode, Any]]:
        """The gradients of the inputs that need one, by the compiled backward program."""
        gradients = list(g) if type(g) is tuple else [g]
        if node.saved is FREED:
            raise messages.freed()
        if isinstance(next(one for one in gradients if one is not None), SymbolBase):
            return self.flow(node, g, needed, False)
        run, places, read = self.program(tuple([one is not None for one in gradients]))
        expect_unwritten(node, [node.saved[k] for k in read])
        given = [dispatch.array(one) for one in gradients if one is not None]
        found = run([array for array, _ in node.saved[: self.read]] + given)
        return [
            (node.edges[i], array)
            for i, array in zip(places, found, strict=True)
            if node.edges[i] is not None and (needed is None or node.edges[i] in needed)
        ]

    def program(self, given: tuple[bool, ...]) -> Run:
        """What runs the backward graph where some results have a gradient, the targets that then have one, and which of
        the values it is given it needs.
        """
        return self.runs.get(given) or self.lock.run(held, self.make, given)

    def make(self, given: tuple[bool, ...]) -> Run:
        """The same, made anew if no other thread has made it meanwhile."""
        if given in self.runs:
            return self.runs[given]
        missing = [v for v, there in zip(self.gradients, given, strict=True) if not there]
        graph, places = without(self.graph, missing, self.gradients)
        alive = remove_dead(graph)
        needed = {v for e in alive.equations for v in e.values} | {*alive.results}
        read = [k for k, v in enumerate(self.saved[: self.read]) if v in needed]
        return self.runs.setdefault(given, (self.build(graph), places, read))

    def pull_recorded(self, node: Node, g: Any, needed: set[GraphNode] | None) -> list[tuple[GraphNode, Any]]:
        """The same with Tensors, for derivatives of derivatives."""
        if node.saved is FREED:
            raise messages.freed()
        return self.flow(node, g, needed, True)

    def flow(self, node: Node, g: Any, needed: set[GraphNode] | None, recorded: bool) -> list[tuple[GraphNode, Any]]:
        """The same by the nodes that the call would have had: of Tensors if ``recorded``, or of symbols."""
        saved = dict(zip(self.saved, node.saved, strict=True))
        given = [one is not None for one in g] if type(g) is tuple else [True]
        expect_unwritten(node, [saved[v] for v in self.history.values(given)])

        def array(value: Value) -> tuple[Any, Any]:
            kept, tensor = saved[value]
            return kept, None if tensor is None else inplace.version(tensor)

        born = next(SEQ)
        single = len(self.values) == 1
        results = [node] if single else [Output.of(node, i, v.shape) for i, v in enumerate(self.values)]
        ends = self.history.nodes(array, node.edges, results)
        gradients = zip(ends, g if type(g) is tuple else [g], strict=True)
        found: dict[GraphNode, Any] = {}
        engine.run(
            [(end, one) for end, one in gradients if end is not None and one is not None],
            {e for e in node.edges if e is not None and (needed is None or e in needed)},
            True,
            recorded,
            found.__setitem__,
            born,
        )
        return list(found.items())


def expect_unwritten(node: Node, saved: Sequence[Saved]) -> None:
    """An error if a tensor was written since the call."""
    for array, tensor in saved:
        if tensor is not None and tensor._writes is not None and tensor._writes.seq > node.seq:
            raise messages.modified(node, array, tensor._writes)


def without(graph: Graph, missing: Sequence[Value], gradients: Sequence[Value]) -> tuple[Graph, list[int]]:
    """A backward graph in which some results have no gradient, and the numbers of the targets that still have one.

    Nothing flows from what is missing: it is no zero, which times inf would be nan.
    """
    if not missing:
        return graph, list(range(len(graph.results)))
    zero, moving, same = set(missing), set(gradients), dict[Value, Value]()
    kept: list[Equation] = []
    for e in graph.equations:
        inputs = tuple([same.get(v, v) if isinstance(v, Value) else v for v in e.inputs])
        flowing = [v for v in inputs if isinstance(v, Value) and v in moving]
        if flowing:
            moving.update(e.outputs)
        gone = [v for v in flowing if v in zero]
        if flowing and len(gone) == len(flowing):
            zero.update(e.outputs)
        elif gone and e.op is add and len(flowing) == 2:
            same[e.out] = next(v for v in flowing if v not in zero)
        else:
            for v in dict.fromkeys(gone):
                kept.append(zeros_like(v, next(w for w in flowing if w not in zero), e))
                inputs = tuple([kept[-1].out if w is v else w for w in inputs])
            kept.append(replace(e, inputs=inputs))
    results = [(i, same.get(v, v)) for i, v in enumerate(graph.results)]
    there = [(i, v) for i, v in results if v not in zero]
    given = {v: source for v, source in graph.inputs.items() if v not in zero}
    return Graph(given, tuple(kept), tuple(v for _, v in there)), [i for i, _ in there]


def zeros_like(value: Value, some: Value, e: Equation) -> Equation:
    """An equation that makes zeros in the shape of ``value``."""
    params = {"shape": value.shape, "value": 0, "dtype": value.dtype}
    return Equation(new_full, (some,), params, (Value(value.shape, value.dtype, value.place),), e.line)


def plan_saved(traced: Traced, inputs: list[Value]) -> list[tuple[Value, Source | int | None, int | None]]:
    """Each saved value with what has its memory, a source, a result or None, and its number among inputs and results.

    What stays in that memory has none.
    """
    graph, saved = traced.graph, traced.gradients.saved
    at = {v: k for k, v in enumerate(graph.results, len(inputs))} | {v: k for k, v in enumerate(inputs)}
    stay = staying(graph, saved, traced.memory)
    return [(v, owner, None if v in stay else at[v]) for v, owner in zip(saved, traced.memory, strict=True)]

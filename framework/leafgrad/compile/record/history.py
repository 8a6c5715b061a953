"""The autograd graph of a call's results as data, and the nodes that are made of it for derivatives of derivatives.

A trace makes the nodes that an eager call would make, with Symbols for what they keep. A History is what remains of
them: values in the place of Symbols, and numbers in the place of nodes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from leafgrad.autograd import engine
from leafgrad.autograd.context import FunctionCtx, FunctionNode, Saved
from leafgrad.autograd.local import Local
from leafgrad.batching.batched import Batch, Batched, Pending
from leafgrad.compile.ir.graph import Value
from leafgrad.compile.ir.keys import ProgramPart
from leafgrad.compile.ir.lengths import changed
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import SymbolicNumber, fixed
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.ops import dispatch
from leafgrad.ops.node import FREED, SEQ, GraphNode, Leaf, Node, Output, SymbolBase, TensorBase, Version
from leafgrad.ops.op import Op
from leafgrad.tensor import inplace


class Target(NamedTuple):
    """The node that the ``number``-th target of the gradients has at a call."""

    number: int


class MadeTensor(NamedTuple):
    """The node of the ``number``-th step, or one of its outputs, of that shape."""

    number: int
    output: int | None
    shape: tuple[int, ...] | None


class Inner(NamedTuple):
    """A leaf that the call made, which nobody sees: what comes from it requires grad."""

    shape: tuple[int, ...]
    dtype: Any


class Kept(NamedTuple):
    """A tensor that a node keeps."""

    data: Any


class Item(NamedTuple):
    """A Python number that differs from call to call."""

    array: Any


class Hidden(NamedTuple):
    """Values of which the ``batch``-th vmap hides the first dimension."""

    array: Any
    batch: int


@dataclass(frozen=True)
class NodeParameter(ProgramPart):
    """The ``batch``-th vmap, where it is a parameter."""

    batch: int


class Apply(NamedTuple):
    """What the node of a Function has besides: the attributes of its context, and what it says of tensors."""

    context: dict[str, Any]
    positions: Any
    inputs: Any
    outputs: Any


class HistoryStep(NamedTuple):
    """A node. ``edges`` are Targets, MadeTensor, Inner or None; ``saved`` and ``out`` are in this module's words."""

    op: Any
    params: dict[str, Any]
    edges: tuple[Any, ...]
    saved: Any
    out: Any
    others: dict[str, Any]  # what it has besides, as it is
    several: bool
    apply: Apply | None


OTHERS = ("shape", "shapes", "dtypes", "takes", "where")
Arrays = Callable[[Value], tuple[Any, Any]]  # the array of a value, and the version of its memory or None


@dataclass(frozen=True)
class History(ProgramPart):
    """What the nodes of some results are made of.

    Attributes:
        steps: the nodes that lead to targets, each after those that its edges lead to.
        ends: where each result's gradient arrives, as ``edges``.
        batches: the size and randomness of each vmap, the outermost first.
    """

    steps: tuple[HistoryStep, ...] = ()
    ends: tuple[Any, ...] = ()
    batches: tuple[tuple[int, str], ...] = ()

    def values(self, given: Sequence[bool] = ()) -> dict[Value, None]:
        """The values that nodes keep, or those through which gradients of the results flow that are ``given`` some."""
        steps = self.steps
        if given:
            waiting, met = [end for end, there in zip(self.ends, given, strict=True) if there], dict[int, None]()
            for place in waiting:  # grows
                if isinstance(place, MadeTensor) and place.number not in met:
                    met[place.number] = None
                    waiting += steps[place.number].edges
            steps = tuple([steps[i] for i in met])
        return dict.fromkeys(v for s in steps for kept in (s.saved, s.out) for v in values_in(kept))

    def nodes(self, arrays: Arrays, edges: Sequence[GraphNode | None], results: Sequence[GraphNode]) -> list[Any]:
        """New nodes for a call, whose targets have the nodes ``edges``: where each result's gradient arrives.

        ``results`` are the nodes that the results have, to which derivatives of these derivatives lead.
        """
        batches = [Batch(size, randomness) for size, randomness in self.batches]
        made: list[Node] = []

        def edge(place: Any) -> Any:
            if isinstance(place, Target):
                return edges[place.number]
            if isinstance(place, Inner):
                return leaf(place)
            if place is None or place.output is None:
                return None if place is None else made[place.number]
            return Output.of(made[place.number], place.output, place.shape)

        def parameter(p: Any) -> Any:
            return batches[p.batch] if isinstance(p, NodeParameter) else p

        def raw(kept: Any) -> Any:
            if isinstance(kept, Hidden):
                return Batched(raw(kept.array), batches[kept.batch])
            if isinstance(kept, Item):
                held = arrays(kept.array)[0]
                return held if isinstance(held, SymbolBase) else float(held)
            return arrays(kept)[0] if isinstance(kept, Value) else kept

        def saved(kept: Any) -> Any:
            if isinstance(kept, Saved):
                return Saved(saved(kept.tensor), edge(kept.edge), kept.number)
            if not isinstance(kept, Kept):
                return raw(kept) if isinstance(kept, Item) else kept
            tensor = dispatch.alias(raw(kept.data))
            tensor._writes = next((version for v in values_in(kept) if (version := arrays(v)[1]) is not None), None)
            return tensor

        for step in self.steps:
            node = Node() if step.apply is None else of_function(step.apply)
            node.op = step.op
            node.params = changed(step.params, parameter)
            node.edges = tuple([edge(e) for e in step.edges])
            node.seq = next(SEQ)
            for name, value in step.others.items():
                setattr(node, name, value)
            node.hooks = node.version = None
            node.saved = FREED if step.saved is FREED else tuple([saved(s) for s in step.saved])
            node.out = tuple(map(raw, step.out)) if type(step.out) is tuple else raw(step.out)
            if step.several:
                node.ends = {}
            made.append(node)
        for end, result in zip(self.ends, results, strict=True):
            if isinstance(end, MadeTensor):
                made[end.number].results = {**getattr(made[end.number], "results", {}), end.output: result}
        return [edge(end) for end in self.ends]


def leaf(inner: Inner) -> Leaf:
    """A new leaf without a tensor."""
    node = object.__new__(Leaf)
    node.edges, node.seq, node.shape = (), next(SEQ), inner.shape
    node.dtype = inner.dtype
    node.hooks, node.grad, node.passes = None, None, 0
    node.owner = weakref.ref(dispatch.alias(None))  # nobody
    return node


def of_function(apply: Apply) -> FunctionNode:
    """The node of a Function, with what it has besides those of ops."""
    node = object.__new__(FunctionNode)
    node.ctx = FunctionCtx()
    vars(node.ctx).update(apply.context, _node=weakref.ref(node))
    node.positions, node.inputs, node.outputs = apply.positions, apply.inputs, apply.outputs
    return node


def values_in(kept: Any) -> Iterator[Value]:
    """The values in what a node keeps."""
    if isinstance(kept, Value):
        yield kept
    elif isinstance(kept, tuple):
        for part in kept:
            yield from values_in(part)


class Reader:
    """Reads a History off the nodes of a trace.

    Args:
        tracer: whose Symbols may be in them.
        targets: the number of each node that gradients are wanted of.
        since: the birth of the trace: nodes before it are others'.
    """

    def __init__(self, tracer: Any, targets: dict[Any, int], since: int) -> None:
        self.tracer, self.targets, self.since = tracer, targets, since
        self.numbers: dict[Any, int] = {}
        self.batches: dict[Batch, int] = {}
        self.versions: list[tuple[Value, Version]] = []  # of the memory that kept values are in

    def read(self, ends: Sequence[Any]) -> History:
        """The History of results whose nodes are ``ends``.

        Raises:
            Unclosed: a node keeps what no program knows.
        """
        order = engine.reachable(dict.fromkeys(ends), self.since)
        leaves = {node for node in order if type(node) is Leaf}
        _, passing = engine.leading_to(order, leaves | self.targets.keys(), self.since)
        nodes = [n for n in reversed(order) if n in passing and n not in self.targets]
        found = {batch for n in nodes if isinstance(n, Node) for batch in batches_in(n)}
        self.batches = {batch: i for i, batch in enumerate(sorted(found, key=lambda batch: batch.level))}
        self.passing = passing
        steps: list[HistoryStep] = []
        for node in nodes:
            if not isinstance(node, Output | Local):
                self.numbers[node] = len(steps)
                steps.append(self.step(node))
        batches = tuple([(batch.size, batch.randomness) for batch in self.batches])
        return History(tuple(steps), tuple(map(self.edge, ends)), batches)

    def edge(self, node: Any) -> Any:
        while isinstance(node, Local) and node not in self.targets:
            node = node.edges[0] if node.edges else None
        if node is None or node in self.targets:
            return None if node is None else Target(self.targets[node])
        if type(node) is Leaf:
            return Inner(tuple(node.shape), node.dtype)
        if node not in self.passing:
            return None
        if isinstance(node, Output):
            return MadeTensor(self.numbers[node.source], node.index, node.shape)
        return MadeTensor(self.numbers[node], None, None)

    def step(self, node: Any) -> HistoryStep:
        apply = None
        if isinstance(node, FunctionNode) and node.op.pure:
            context = {name: value for name, value in vars(node.ctx).items() if name != "_node"}
            apply = Apply(context, node.positions, node.inputs, node.outputs)
        elif type(node) is not Node or not isinstance(node.op, Op):
            raise Unclosed(f"{node.name()} would have to be made again when a result is differentiated twice")
        if isinstance(out := self.raw(node.out) if type(node.out) is not tuple else None, Value) and node.version:
            self.versions.append((out, node.version))
        return HistoryStep(
            op=node.op,
            params=changed(node.params, self.parameter),
            edges=tuple(map(self.edge, node.edges)),
            saved=FREED if node.saved is FREED else tuple(map(self.saved, node.saved)),
            out=tuple(map(self.raw, node.out)) if type(node.out) is tuple else self.raw(node.out),
            others={name: getattr(node, name) for name in OTHERS if hasattr(node, name)},
            several=hasattr(node, "ends"),
            apply=apply,
        )

    def parameter(self, p: Any) -> Any:
        return NodeParameter(self.batches[p]) if isinstance(p, Batch) else p

    def saved(self, kept: Any) -> Any:
        if isinstance(kept, Saved):
            return Saved(self.saved(self.tracer.inside(kept.tensor)), self.edge(kept.edge), kept.number)
        if not isinstance(kept, TensorBase):
            return self.raw(kept)
        data = self.raw(kept._data)
        self.versions += [(v, inplace.version(kept)) for v in values_in(data)]
        return Kept(data)

    def raw(self, kept: Any) -> Any:
        """What stands for a raw value. Numbers are themselves."""
        if isinstance(kept, Symbol) and kept.tracer is self.tracer:
            return kept.value
        if isinstance(kept, Batched) and not isinstance(kept, Pending):
            return Hidden(self.raw(kept.array), self.batches[kept.batch])
        if type(kept) is SymbolicNumber:
            found = (v for (text, _), v in self.tracer.followed.items() if text == kept._text)
            value = next(found, None)
            return fixed(kept) if value is None else Item(value)
        if kept is None or isinstance(kept, (bool, int, float)):
            return kept
        raise Unclosed(f"its gradients need a {type(kept).__name__} that no program knows")


def batches_in(node: Node) -> Iterator[Batch]:
    """The vmaps that a node knows of."""
    found: list[Batch] = []
    changed(node.params, lambda p: found.append(p) if isinstance(p, Batch) else None)
    outs = node.out if type(node.out) is tuple else (node.out,)
    saved = [] if node.saved is FREED else [s.tensor if isinstance(s, Saved) else s for s in node.saved]
    for kept in (*(s._data if isinstance(s, TensorBase) else s for s in saved), *outs):
        while isinstance(kept, Batched):
            found.append(kept.batch)
            kept = None if isinstance(kept, Pending) else kept.array
    yield from found

"""The node of a compiled call's results: its pull is a program too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import backends
from leafgrad.compile.graph import Graph, Value
from leafgrad.compile.recorder import unknown_history
from leafgrad.compile.trace import Traced
from leafgrad.ops import messages
from leafgrad.ops.convert import new_full
from leafgrad.ops.node import EMPTY, FREED, SEQ, GraphNode, Node, Output, SymbolBase
from leafgrad.tensor.tensor import Tensor

Saved = tuple[Any, Tensor | None]  # an array, and the tensor whose memory it is, if it is one from outside


def new_node(op: Any, saved: Sequence[Saved]) -> Node:
    """A new node without its shape and edges."""
    node = object.__new__(Node)
    node.op = op
    node.params = EMPTY
    node.edges = ()
    node.seq = next(SEQ)
    node.hooks = node.out = node.version = node.shapes = None
    node.saved = tuple(saved)
    node.ends = {}
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
    """What the engine asks of ``node.op`` for the results of one compiled program."""

    label = "CompiledBackward0"
    name = "a compiled function"
    traits: frozenset[str] = frozenset()

    def __init__(self, traced: Traced, build: Callable[[Graph], Callable[[Sequence[Any]], list[Any]]]) -> None:
        self.graph = traced.backward
        self.values: list[Value] = [traced.graph.results[i] for i in traced.differentiable]
        self.build = build
        self.lock = threading.Lock()
        self.run: Callable[[Sequence[Any]], list[Any]] | None = None

    def node(self, saved: Sequence[Saved]) -> Node:
        """A new node for one call, without its edges."""
        node = new_node(self, saved)
        if len(self.values) > 1:
            gaps: Any = (None,) * len(self.values)  # pull fills them
            node.shape = gaps
        else:
            node.shape = self.values[0].shape
        return node

    def attach(self, node: Node, results: Sequence[Tensor]) -> None:
        """Make ``results`` the outputs of the node."""
        if len(results) == 1:
            results[0]._node = node
            return
        for i, result in enumerate(results):
            result._node = Output(node, i, result._data.shape)

    def pull(self, node: Node, g: Any, needed: set[GraphNode] | None) -> list[tuple[GraphNode, Any]]:
        """The gradients of the inputs that need one, by the compiled backward program."""
        gradients = list(g) if type(g) is tuple else [g]
        if node.saved is FREED:
            raise messages.freed()
        some = next(one for one in gradients if one is not None)
        if isinstance(some, SymbolBase):
            raise unknown_history(self.name)
        for array, tensor in node.saved:
            if tensor is not None and tensor._version is not None and tensor._version.seq > node.seq:
                raise messages.modified(node, array, tensor._version)
        filled = [
            new_full(some, shape=v.shape, value=0, dtype=v.dtype) if one is None else backends.backend_of(one).wrap(one)
            for one, v in zip(gradients, self.values, strict=True)
        ]
        found = self.program()([array for array, _ in node.saved] + filled)
        return [
            (edge, array)
            for edge, array in zip(node.edges, found, strict=True)
            if edge is not None and (needed is None or edge in needed)
        ]

    def pull_recorded(self, node: Node, g: Any, needed: set[GraphNode] | None) -> list[tuple[GraphNode, Any]]:
        """Not possible: the backward program records nothing."""
        raise RuntimeError(
            "create_graph=True through the result of a compiled function: its backward pass is compiled and cannot be "
            "differentiated. Differentiate inside the compiled function: there derivatives of any order are compiled "
            "with it"
        )

    def program(self) -> Callable[[Sequence[Any]], list[Any]]:
        """What runs the backward graph, built when it is first asked for."""
        with self.lock:
            if self.run is None:
                assert self.graph is not None
                self.run = self.build(self.graph)
            return self.run

"""The graph as programs see it: ``t.grad_fn`` and what it leads to.

What the dispatch records is bare (``ops/node.py``). A Node here stands for one recorded node, is made when somebody
asks for it, and stays the same object as long as anybody holds it. Its class has PyTorch's name: ``MulBackward0``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from leafgrad import modes
from leafgrad.ops import dispatch, forms, messages
from leafgrad.ops.forms import ShownNode
from leafgrad.ops.node import FREED, GraphNode, Leaf, Output, TensorBase
from leafgrad.ops.packing import SavedTensor
from leafgrad.tensor.handle import RemovableHandle

# By the id of what it stands for, which lives as long as the Node does.
_made: weakref.WeakValueDictionary[int, Node] = weakref.WeakValueDictionary()
_classes: dict[tuple[type, str], type] = {}

ARGUMENTS = {"x": "self", "y": "other"}


def node_for(node: GraphNode) -> Node:
    """The Node that stands for a recorded node."""
    found = _made.get(id(node))
    if found is None:
        found = _made.setdefault(id(node), _new(node, node.name()))
    return found


def _new(recorded: Any, name: str) -> Node:
    base: type[Node] = (
        Shown if isinstance(recorded, ShownNode) else AccumulateGrad if isinstance(recorded, Leaf) else Node
    )
    if isinstance(getattr(recorded, "op", None), type):
        base = BackwardCFunction
    kind = base if base is AccumulateGrad else _classes.get((base, name))
    if kind is None:
        kind = _classes[base, name] = type(name, (base,), {"__slots__": (), "__module__": "leafgrad.autograd"})
    made: Node = object.__new__(kind)
    made._recorded = recorded
    made._next = None
    return made


class Node:
    """A node of the backward graph: how the gradients of one recorded call are passed on."""

    __slots__ = ("__weakref__", "_next", "_recorded")

    _recorded: Any
    _next: tuple[tuple[Node | None, int], ...] | None

    def __init__(self) -> None:
        raise TypeError("a Node is made by recording an operation; tensors lead to theirs by grad_fn")

    def name(self) -> str:
        """The name, which is that of the class: ``"MulBackward0"``."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    # ---- what is around it ------------------------------------------------------------------------------------

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that this one passes gradients to, each with the number of its output that they belong to."""
        if self._next is None:
            self._next = tuple([_target(edge) for edge in self._edges()])
        return self._next

    def _edges(self) -> tuple[Any, ...]:
        return forms.form_of(self._recorded)[1]

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict of the program's own, for whatever it likes to attach."""
        return self._hooks().metadata

    def _sequence_nr(self) -> int:
        """A number that grows with each recorded call."""
        return int(self._recorded.seq)

    # ---- hooks ------------------------------------------------------------------------------------------------

    def _hooks(self) -> Any:
        return dispatch.attached(self._recorded)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)``, tuples, once the gradients have passed; it may return other inputs.

        Raises:
            RuntimeError: this node stands for several operations of leafgrad's, between which PyTorch has no hooks.
        """
        if not self._has_own_inputs():
            raise RuntimeError(
                f"register_hook: {self.name()} is several operations in leafgrad, whose inputs have no gradients of "
                "their own here; register a hook on its input tensors, or register_prehook"
            )
        return RemovableHandle(self._hooks().after, _function(fn, "register_hook"))

    def _has_own_inputs(self) -> bool:
        return forms.places_of(self._recorded) is not None

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)``, a tuple, before the gradients pass; it may return others."""
        return RemovableHandle(self._hooks().before, _function(fn, "register_prehook"))

    def __call__(self, *grads: Any) -> Any:
        """The gradients of its inputs, from those of its outputs."""
        recorded = self._recorded
        raw = grads if modes.get() & modes.GRAD else tuple([None if g is None else dispatch.raw(g) for g in grads])
        several = hasattr(recorded, "ends")
        pull = recorded.op.pull_recorded if modes.get() & modes.GRAD else recorded.op.pull
        found = iter(pull(recorded, raw if several else raw[0], None))
        result = []
        for edge in recorded.edges:
            g = None if edge is None else next(found)[1]
            result.append(g if g is None or isinstance(g, TensorBase) else dispatch.alias(g))
        return result[0] if len(result) == 1 else tuple(result)

    # ---- what was saved ---------------------------------------------------------------------------------------

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *[f"_saved_{name}" for name in self._values()]})

    def _values(self) -> dict[str, Callable[[], Any]]:
        """What the node keeps, by PyTorch's name for it: how to get it."""
        node = self._recorded
        if not hasattr(node, "saved") or not hasattr(node.op, "signature") or hasattr(node, "shown"):
            return {}
        op = node.op
        found: dict[str, Callable[[], Any]] = {}
        read = frozenset[str]().union(*op.uses)
        for i in range(len(node.edges)):
            argument = op.signature.arguments[op.signature.slot(i)]
            if argument in read and not op.signature.variadic:
                found[_spelled(op, argument)] = partial(self._kept, i)
        if "out" in read:
            found["result"] = partial(self._kept, None)
        for parameter in node.params:
            found[parameter] = partial(node.params.__getitem__, parameter)
        return found

    def _kept(self, i: int | None) -> Any:
        """The value of argument ``i``, or of the output, as a part of the graph."""
        node = self._recorded
        if node.saved is FREED:
            raise messages.freed()
        saved = node.op.checked(node)
        if i is None:
            return dispatch.reconnect_output(node)
        value = saved[i] if saved else None
        return dispatch.connect(value, node.edges[i]) if isinstance(value, TensorBase) else value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            found = self._values().get(name.removeprefix("_saved_"))
            if found is not None:
                return found()
        if name.startswith("_raw_saved_"):
            return self._raw(name.removeprefix("_raw_saved_"))
        raise AttributeError(f"{self.name()!r} object has no attribute {name!r}")

    def _raw(self, name: str) -> Any:
        node = self._recorded
        names = [_spelled(node.op, node.op.signature.arguments[i]) for i in range(len(node.edges))]
        if name not in self._values() or name not in (*names, "result"):
            raise AttributeError(f"{self.name()!r} object has no attribute '_raw_saved_{name}'")
        return SavedTensor(node, None if name == "result" and "result" not in names else names.index(name))


def _spelled(op: Any, argument: str) -> str:
    found: str = op.saved_as.get(argument) or ARGUMENTS.get(argument, argument)
    return found


def _function(fn: Any, where: str) -> Callable[..., Any]:
    if not callable(fn):
        raise TypeError(f"{where}: fn: expected a function, got {type(fn).__name__}")
    found: Callable[..., Any] = fn
    return found


def _target(edge: Any) -> tuple[Node | None, int]:
    if edge is None:
        return None, 0
    if isinstance(edge, Output):
        return node_for(edge.source), edge.index
    if isinstance(edge, ShownNode):
        return _new(edge, edge.label), 0
    return node_for(edge), 0


class Shown(Node):
    """A node of PyTorch's that is a part of a node here; its Node holds it."""

    __slots__ = ()

    def _edges(self) -> tuple[Any, ...]:
        edges: tuple[Any, ...] = self._recorded.edges
        return edges

    def _sequence_nr(self) -> int:
        raise self._refusal()

    def _hooks(self) -> Any:
        raise self._refusal()

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        raise self._refusal()

    def __call__(self, *grads: Any) -> Any:
        raise self._refusal()

    def _values(self) -> dict[str, Callable[[], Any]]:
        return {}

    def _refusal(self) -> RuntimeError:
        return RuntimeError(
            f"{self.name()} is shown where PyTorch has a node; in leafgrad it is a part of the operation after it. "
            "Register hooks on tensors, or on that operation's node"
        )


class AccumulateGrad(Node):
    """The end of the graph: where the gradient of a leaf goes."""

    __slots__ = ()

    @property
    def variable(self) -> Any:
        """The leaf; None once it is gone."""
        return self._recorded.owner()

    def _edges(self) -> tuple[Any, ...]:
        return ()

    def _has_own_inputs(self) -> bool:
        return True

    def _values(self) -> dict[str, Callable[[], Any]]:
        return {}

    def __call__(self, *grads: Any) -> None:
        """Add to the leaf's ``.grad``."""
        owner = self.variable
        owner.grad = grads[0].clone() if owner.grad is None else owner.grad + grads[0]


class BackwardCFunction(Node):
    """One call of a Function. It has the attributes of that call's ``ctx``."""

    __slots__ = ()

    def _values(self) -> dict[str, Callable[[], Any]]:
        return {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{self.name()!r} object has no attribute {name!r}")
        return getattr(self._recorded.ctx, name)

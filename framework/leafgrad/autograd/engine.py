"""The backward pass: nodes in order of birth, youngest first; gradients summed where edges meet."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from leafgrad import backends, modes
from leafgrad.autograd import node_hooks
from leafgrad.autograd.context import FunctionNode
from leafgrad.ops import complex as complex_ops, dispatch, messages
from leafgrad.ops.convert import clone, new_full
from leafgrad.ops.node import GraphNode, Hooks, Leaf, Output, SymbolBase, TensorBase
from leafgrad.ops.shape import sum_to

BIRTH = operator.attrgetter("seq")


def reachable(roots: Iterable[GraphNode], since: int = 0) -> list[GraphNode]:
    """All nodes that gradients of ``roots`` can flow to, youngest first; nothing beyond those older than ``since``."""
    found = list(roots)
    seen = set(found)
    for node in found:  # grows while it is walked
        for edge in node.edges if node.seq >= since else ():
            if edge is not None and edge not in seen:
                seen.add(edge)
                found.append(edge)
    found.sort(key=BIRTH, reverse=True)
    return found


def leading_to(
    order: list[GraphNode], targets: set[GraphNode], since: int = 0
) -> tuple[set[GraphNode], set[GraphNode]]:
    """The nodes of ``order`` from which a target can be reached, with the targets and without those at the end."""
    needed, passing = set(targets), set()
    for node in reversed(order):
        for edge in node.edges if node.seq >= since else ():
            if edge in needed:
                needed.add(node)
                passing.add(node)
                break
    return needed, passing


class Pass:
    """One backward pass: the nodes that it may come to, and those that it goes to, None for all leaves."""

    __slots__ = ("__weakref__", "needed", "order", "targets")

    def __init__(self, order: list[GraphNode], needed: set[GraphNode] | None, targets: set[GraphNode] | None) -> None:
        self.order, self.needed, self.targets = order, needed, targets

    def comes_to(self, node: GraphNode | None) -> bool:
        """Whether a gradient will arrive at ``node``, as far as the graph tells."""
        return node in (self.order if self.needed is None else self.needed)


PASS: Final[ContextVar[Pass]] = ContextVar("leafgrad_pass")


def run(
    roots: list[tuple[GraphNode, Any]],
    targets: set[GraphNode] | None,
    retain: bool,
    recorded: bool,
    arrived: Callable[[GraphNode, Any], None],
    since: int = 0,
) -> None:
    """Send gradients from ``roots`` backward.

    Args:
        roots: nodes with the gradients of their outputs: raw arrays, or Tensors if ``recorded``.
        targets: the nodes to stop at; None means all leaves.
        retain: keep what the nodes saved.
        recorded: run the rules on Tensors, so that the pass itself can be differentiated.
        arrived: called with each target (or leaf) and its complete gradient.
        since: nodes older than this, by birth, are not gone through, and their hooks are left to whoever comes there.
    """
    grads: dict[GraphNode, Any] = {}
    for node, g in roots:
        grads[node] = grads[node] + g if node in grads else g
    order: list[Any] = reachable(grads, since)
    needed, passing = (None, set[GraphNode]()) if targets is None else leading_to(order, targets, since)
    if FunctionNode.made:
        grads = gaps(order if targets is None else passing - targets, since) | grads
    act = partial(flow, grads, order, targets, needed, passing, retain, recorded, arrived, since)
    token = PASS.set(Pass(order, needed, targets))
    try:
        if modes.get() & modes.TRACE and not since and (tracer := modes.tracer()):
            tracer.differentiate(order, order if needed is None else passing, recorded, act)
        else:
            act()
    finally:
        PASS.reset(token)


def gaps(nodes: Iterable[Any], since: int) -> dict[GraphNode, Any]:
    """The nodes of users' Functions among ``nodes``, ready for gradients: where none comes they get zeros."""
    return {n: {} for n in nodes if type(n) is FunctionNode and n.ctx._materialize and n.seq >= since}


def flow(
    grads: dict[GraphNode, Any],
    order: list[Any],
    targets: set[GraphNode] | None,
    needed: set[GraphNode] | None,
    passing: set[GraphNode],
    retain: bool,
    recorded: bool,
    arrived: Callable[[GraphNode, Any], None],
    since: int,
) -> None:
    """Send ``grads`` through the nodes of ``order``. The arguments are those of ``run``, and what it made of them."""
    owned: set[GraphNode] = set()  # nodes whose sum of gradients is an array of our own
    apart = backends.several_devices()  # of which gradients may be on any
    wary = apart or modes.get() & (modes.ANOMALY | modes.WATCH)
    node = g = None
    try:
        for node in order:
            g = grads.pop(node, None)
            if g is None:
                continue
            if node.hooks is not None and node.seq >= since and type(g) is not dict:
                g = run_hooks(node, g, recorded)
            if targets is None:
                if type(node) is Leaf:
                    arrived(node, g)
                    continue
            else:
                if node in targets:
                    arrived(node, g)
                if node not in passing:
                    continue
            if type(node) is Output:
                add_output(grads.setdefault(node.source, {}), node.index, g)
                continue
            if type(g) is dict:
                g = complete(node, g)
            if wary or node.hooks is not None:
                pulled = watched(node, g, needed, recorded)
            else:
                pulled = pull_recorded(node, g, needed) if recorded else node.op.pull(node, g, needed)
            if not retain:
                node.release()
            for edge, ge in pulled:
                if ge is None:
                    continue
                if getattr(ge, "shape", None) != edge.shape:
                    ge = unbroadcast(node, edge, ge)
                so_far = grads.get(edge)
                if so_far is None:
                    grads[edge] = ge
                elif apart:
                    grads[edge] = sum_of_gradients(so_far, ge)
                elif edge in owned and not isinstance(ge, SymbolBase):
                    so_far += ge
                    grads[edge] = so_far
                else:
                    grads[edge] = so_far + ge
                    if not recorded and not isinstance(ge, SymbolBase) and ge.ndim:
                        owned.add(edge)
    except MemoryError as error:
        raise messages.no_memory(node, g, error) from error


def add_output(slots: dict[int, Any], index: int, g: Any) -> None:
    """Add the gradient of one of several outputs."""
    slots[index] = slots[index] + g if index in slots else g


def pull_recorded(node: Any, g: Any, needed: set[GraphNode] | None) -> Any:
    """What a node's rules give of Tensors, which must be Tensors again: anything else would cut the graph."""
    pulled = node.op.pull_recorded(node, g, needed)
    for edge, ge in pulled:
        if ge is not None and not isinstance(ge, TensorBase):
            wanted = "a Tensor, under create_graph=True: write the rule with operators and functions of leafgrad.rules"
            raise messages.bad_gradient(node, edge, f"returned {type(ge).__name__}", wanted)
    return pulled


def watched(node: Any, g: Any, needed: set[GraphNode] | None, recorded: bool) -> Any:
    """What a node's rules give, with its hooks before and after, and the check for nan."""
    hooks = node.hooks
    if hooks is not None and hooks.before:
        g = left(node, node_hooks.run_before(hooks, g, recorded))
    pull = pull_recorded if recorded else node.op.pull
    with dispatch.on_device_of(g):  # on which rules compute with operators
        if modes.get() & modes.WATCH:
            pulled = modes.watched(node, (), lambda: pull(node, g, needed)) if g is not None else []
        else:
            pulled = pull(node, g, needed) if g is not None else []
    if modes.get() & modes.ANOMALY:
        check_anomaly(node, pulled)
    if hooks is not None and hooks.after:
        pulled = node_hooks.run_after(hooks, node, pulled, g, recorded)
    return pulled


def left(node: Any, g: Any) -> Any:
    """What prehooks have left of the gradients of a node's outputs, with zeros for what they took; None for nothing."""
    if type(g) is not tuple or isinstance(node, FunctionNode):
        return g
    slots = {i: one for i, one in enumerate(g) if one is not None}
    return complete(node, slots) if slots else None


def unbroadcast(node: GraphNode, edge: GraphNode, g: Any) -> Any:
    """A gradient of the shape that an argument was broadcast to, summed to the argument's own."""
    shape, wide = edge.shape, getattr(g, "shape", None)
    if wide is None:
        raise messages.bad_gradient(node, edge, f"returned {type(g).__name__}", "an array")
    extra = len(wide) - len(shape)
    if wide[extra:] != shape and (extra < 0 or any(n not in (1, m) for n, m in zip(shape, wide[extra:], strict=True))):
        raise messages.bad_gradient(node, edge, f"returned shape {tuple(wide)}", str(shape))
    return sum_to.function(g, shape=shape)


def sum_of_gradients(a: Any, b: Any) -> Any:
    """The sum of two gradients on a device that need not be the current one."""
    with dispatch.on_device_of(b):
        return a + b


def complete(node: Any, slots: dict[int, Any]) -> tuple[Any, ...]:
    """Gradients of all outputs of a node, zeros where none arrived; None where the node fills its own gaps."""
    some = next(iter(slots.values()), None)
    return tuple(
        slots.get(i)
        if i in slots or shape is None
        else new_full(some, shape=tuple(shape), value=0, dtype=complex_ops.kind(some, node.dtypes[i]))
        for i, shape in enumerate(node.shape)
    )


def run_hooks(node: GraphNode, g: Any, recorded: bool) -> Any:
    """The gradient after the tensor's hooks; then those who retain it get it."""
    hooks: Hooks | None = node.hooks if type(node) is Leaf else dispatch.attached(node)
    assert hooks is not None
    t = g if recorded else dispatch.alias(dispatch.array(g))
    for hook in list(hooks.functions.values()):
        with modes.set_grad_enabled(recorded):
            result = hook(t)
        if result is None:
            continue
        if not isinstance(result, TensorBase):
            raise TypeError(f"hook: expected it to return a Tensor or None, got {type(result).__name__}")
        node_hooks.check_fits(result, t, "hook")
        t = result
    for ref in hooks.retained:
        leaf = ref()
        if leaf is not None:
            kept = clone(t) if recorded else dispatch.alias(clone(t._data))
            before = dispatch.grad_of(leaf)
            dispatch.set_grad(leaf, kept if before is None else before + kept)
    if recorded:
        return t
    data = dispatch.raw(t)
    return dispatch.copied(data) if hooks.functions and not isinstance(data, SymbolBase) else data  # they may keep t


def check_anomaly(node: Any, pulled: Any) -> None:
    from leafgrad.autograd.anomaly import check_nan

    check_nan(node, pulled)

"""Forward mode: tangents pushed through the recorded graph, from the inputs to the outputs.

No op has a forward rule of its own. An elementwise op's Jacobian is diagonal, so its vjp rule is its jvp rule; a
linear op applied to the tangent is its own derivative; a bilinear op follows the product rule. Anything else is
transposed: u -> vjp(u) is linear in u, and the vjp of that linear map is the jvp (Townsend, "A new trick for
calculating Jacobian vector products", 2017).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.autograd import api, engine
from leafgrad.autograd.context import FunctionNode
from leafgrad.autograd.edge import output_shapes
from leafgrad.autograd.function import Function
from leafgrad.autograd.function_rules import pushed
from leafgrad.autograd.local import Local, close, local
from leafgrad.batching.boundary import each_sample, handed_over
from leafgrad.ops import complex as complex_ops, dispatch, reduce
from leafgrad.ops.complex import conj, real
from leafgrad.ops.conjugate import is_complex
from leafgrad.ops.convert import new_full
from leafgrad.ops.node import GraphNode, Node, Output, transparent
from leafgrad.ops.op import Op
from leafgrad.ops.shape import expand
from leafgrad.tensor.public import publish
from leafgrad.tensor.tensor import Tensor

__all__ = ["push"]

Flow = MutableMapping[GraphNode, Any]  # the tangent of each node: a Tensor, or one or None for each output


def fitting_tangent(i: int, primal: Tensor, tangent: Any) -> Tensor:
    """``tangent`` in the dtype of ``primal``, if it fits."""
    if not isinstance(tangent, Tensor):
        raise RuntimeError(f"tangents[{i}]: expected a Tensor, got {type(tangent).__name__}")
    if tangent.dtype.is_floating_point and primal.dtype.is_floating_point:
        tangent = tangent.to(primal.dtype)
    for what, ours, theirs in (
        ("size", list(primal.shape), list(tangent.shape)),
        ("dtype", primal.dtype, tangent.dtype),
        ("device", primal.device, tangent.device),
    ):
        if ours != theirs:
            raise RuntimeError(
                f"tangents[{i}]: a forward gradient that has a different {what} than the original Tensor is not "
                f"supported: expected {what} {ours}, got {theirs}"
            )
    return tangent


def push(
    outputs: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
    tangents: tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, ...]:
    """The derivative of ``outputs``, which were computed from ``inputs`` already, in the direction of ``tangents``.

    Runs nothing again: it sweeps the graph between inputs and outputs, which may be swept as often as you like.

    Args:
        create_graph: record the sweep, so that the result can be differentiated.
        strict: raise where an output does not depend on the inputs, instead of giving zeros.
    """
    flow: Flow = {}
    outputs = tuple([dispatch.inside(o) if isinstance(o, Tensor) else o for o in outputs])
    for i, (x, t) in enumerate(zip(inputs, tangents, strict=True)):
        t = fitting_tangent(i, x, t)
        node = api.node_of(x, "inputs", i)
        flow[node] = flow[node] + t if node in flow else t
    order = engine.reachable(dict.fromkeys(o._node for o in outputs if o._node is not None))
    _, passing = engine.leading_to(order, set(flow))
    sweep([node for node in reversed(order) if node in passing], flow, create_graph)
    with modes.set_grad_enabled(create_graph):
        return tuple(derivative(o, i, flow, strict) for i, o in enumerate(outputs))


def sweep(nodes: list[GraphNode], flow: Flow, recorded: bool) -> None:
    """Add the tangents of ``nodes``, oldest first, to ``flow``."""
    with modes.set_grad_enabled(recorded):
        for node in nodes:
            seed, arriving = flow.get(node), tangent(node, flow, recorded)
            if arriving is not None:
                flow[node] = arriving if seed is None else seed + arriving


def advance(end: GraphNode, flow: Flow, recorded: bool) -> None:
    """Add the tangents of ``end``, and of all before it that have none yet, to ``flow``."""
    found = [] if end in flow else [end]
    seen = set(found)
    for node in found:  # grows while it is walked
        ahead = {edge for edge in node.edges if edge is not None and edge not in flow} - seen
        seen |= ahead
        found += ahead
    found.sort(key=engine.BIRTH)
    passing: set[GraphNode] = set()
    for node in found:
        if any(edge in flow or edge in passing for edge in node.edges):
            passing.add(node)
    sweep([node for node in found if node in passing], flow, recorded)


def derivative(output: Any, i: int, flow: Flow, strict: bool) -> Tensor:
    if not isinstance(output, Tensor):
        raise RuntimeError(f"jvp: expected func to return Tensors, got {type(output).__name__} as output {i}")
    found = None if output._node is None else flow.get(output._node)
    if found is None:
        if strict:
            raise RuntimeError(f"jvp: output {i} is independent of the inputs, which strict=True does not allow")
        found = new_full(output.detach(), shape=tuple(output.shape), value=0)
    return found


def tangent(node: GraphNode, flow: Flow, recorded: bool) -> Any:
    """The tangent of what ``node`` computed, from those of its arguments; None for zero."""
    if isinstance(node, Local):
        return flow.get(node.edges[0])
    if isinstance(node, Node) and transparent(node):
        found = flow.get(node.edges[0])
        return None if found is None else handed_over(found, found._data, node.params["batches"])
    if isinstance(node, Output):
        several = flow.get(node.source)
        return None if several is None else several[node.index]
    assert isinstance(node, Node)
    given = {e: flow[e] for e in node.edges if e is not None and flow.get(e) is not None}
    if not given:
        return None
    op = getattr(node.op, "unconjugated", node.op)
    if isinstance(op, type) and issubclass(op, Function) and op.jvp is not Function.jvp:
        return pushed(node, given)
    if isinstance(op, Op):
        if "linear" in op.traits and len(node.edges) == 1:
            return op(flow[node.edges[0]], **node.params)
        if "elementwise" in op.traits and symmetric(node, op, given.values()):
            return diagonals(node, given)
        if "bilinear" in op.traits and not hasattr(node, "ends"):
            both = product(node, given)
            if both is not None:
                return both
    return transposed(node, given, recorded)


def diagonals(node: Any, given: Flow) -> Any:
    """The tangent of each output of an elementwise op, by the rule that multiplies its gradient by its derivatives."""
    if not hasattr(node, "ends"):
        return tangent_of(node, given, tuple(node.shape), lambda t: t)
    found: list[Any] = [None] * len(node.shape)
    for k, output in node.ends.items():
        if output() is not None:
            found[k] = tangent_of(node, given, tuple(node.shape[k]), functools.partial(alone, node, k))
    return tuple(found)


def tangent_of(node: Node, given: Flow, shape: tuple[int, ...], gradient: Callable[[Any], Any]) -> Any:
    """The tangent of one output, whose tangent ``t`` the rules take as the gradient ``gradient(t)``."""
    total = None
    for edge, t in given.items():
        full = t if tuple(t._data.shape) == shape else expand(t, shape=shape)
        for _, part in node.op.unconjugated.pull_recorded(node, gradient(full), {edge}):
            if part is not None:
                total = part if total is None else total + part
    if total is not None and tuple(total._data.shape) != shape:
        total = expand(total, shape=shape)
    return total


def alone(node: Any, k: int, t: Any) -> tuple[Any, ...]:
    """``t`` as the gradient of output k, and zeros for the others."""
    return tuple([t if i == k else new_full(t, shape=tuple(s), value=0) for i, s in enumerate(node.shape)])


def product(node: Node, given: Flow) -> Any:
    """(tx, y) + (x, ty); None if a factor that it needs was not kept."""
    saved = node.op.checked(node) or (None,) * len(node.edges)
    args = [dispatch.connect(s, e) if isinstance(s, Tensor) else s for s, e in zip(saved, node.edges, strict=True)]
    total = None
    for i, edge in enumerate(node.edges):
        t = given.get(edge) if edge is not None else None
        if t is None:
            continue
        factors = [t if j == i else a for j, a in enumerate(args)]
        if any(f is None for f in factors):
            return None
        part = node.op.unconjugated(*factors, **node.params)
        total = part if total is None else total + part
    return total


def symmetric(node: Node, op: Op, tangents: Iterable[Any]) -> bool:
    """Whether the rules of an elementwise op make of these tangents those of its result: what multiplies both is equal.

    Real and imaginary part are two numbers, and what a rule does to them is the transpose of what the op does. The two
    are equal, once not conjugated, of a holomorphic op, and of a sum. Rules of others give what their arguments are of.
    """
    if not op.ours:
        gives = [d for d in dtypes_of(node) if d.is_differentiable]
        same = all(dtypes.of(t._data) is d for t in tangents for d in gives)
        return same and ("complex" not in op.traits or not any(map(is_complex, tangents)))
    if op.makes is None and ("complex" not in op.traits or "linear" in op.traits):
        return True
    return not (op.makes == "complex" or any(map(is_complex, tangents)))


def variables(node: Any, some: Any) -> list[Any]:
    """Gradients of the outputs of a node, to differentiate by; ``some`` is the tangent of an argument."""
    shapes = output_shapes(node) if hasattr(node, "ends") else [tuple(node.shape)]
    kind, makes = dtypes.of(some._data), getattr(node.op, "makes", None)
    kind = kind.to_real() if makes == "real" else kind.to_complex() if makes == "complex" else kind
    kinds: Sequence[str | None] = [kind.name] * len(shapes)
    if isinstance(node, FunctionNode) or hasattr(node, "takes"):
        kinds = [d.name if d.is_differentiable else None for d in dtypes_of(node)]
    elif hasattr(node, "dtypes"):
        kinds = [complex_ops.kind(some, d) for d in node.dtypes]
    zeros = [
        None if s is None else new_full(some.detach(), shape=s, value=0, dtype=k)
        for s, k in zip(shapes, kinds, strict=True)
    ]
    return [None if z is None else local(z, False) for z in zeros]


def dtypes_of(node: Any) -> list[dtypes.dtype]:
    """Those of the outputs of a node of an op or a Function of others."""
    if isinstance(node, FunctionNode):
        return [dtypes.BY_NAME[o[1]] if o else dtypes.bool_ for o in node.outputs]
    return [*map(dtypes.named, node.dtypes)]


def inner(x: Any, y: Any) -> Any:
    """The sum of the products of elements; of complex ones, of their real and imaginary parts."""
    product = real(conj(x) * y) if is_complex(x) or is_complex(y) else x * y
    return reduce.sum(product, dim=tuple(range(product.ndim)))


def transposed(node: Node, given: Flow, recorded: bool) -> Any:
    """The jvp as the transpose of the vjp, for any op whose rule can be differentiated with respect to ``g``."""
    several = hasattr(node, "ends")
    us = variables(node, next(iter(given.values())))
    close([u for u in us if u is not None])
    with modes.enable_grad():
        total = None
        for edge, pulled in node.op.pull_recorded(node, tuple(us) if several else us[0], set(given)):
            if pulled is not None and pulled.requires_grad:
                part = inner(pulled, given[edge])
                total = part if total is None else total + part
    if total is None or not total.requires_grad:
        return None
    with each_sample():  # us may meet batches that it lacks
        found = iter(api.grad(total, [u for u in us if u is not None], create_graph=recorded, allow_unused=True))
    each = tuple(None if u is None else next(found) for u in us)
    return each if several else each[0]


publish(globals())

"""The short path of small eager ops: elementwise, one or two arguments, no parameters.

What ``Op.apply`` does in general is written out here for the common case: gradients on or off, nothing else
going on, matching dtypes. Everything else goes to ``apply``, which also finds the words when something failed.
The functions are closures rather than methods, since looking up ``self`` and its attributes costs as much as
the rest; Tensor's operators are these very functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import backends, mode
from leafgrad.mode import GRAD
from leafgrad.ops import carriers, messages
from leafgrad.ops.node import EMPTY, FREED, SEQ, GraphNode, Node, TensorBase, Version
from leafgrad.ops.op import Forward, Op, Pulled

BACKENDS = backends.BACKENDS


class UnaryOp(Op):
    """An elementwise op of one array without parameters."""

    def __init__(self, forward: Forward, name: str, traits: frozenset[str]) -> None:
        super().__init__(forward, name, traits)
        self.function: Any = unary(self)

    def __call__(self, x: Any) -> Any:
        return self.function(x)


class BinaryOp(Op):
    """An elementwise op of two arrays without parameters."""

    def __init__(self, forward: Forward, name: str, traits: frozenset[str]) -> None:
        super().__init__(forward, name, traits)
        self.pair_plans: list[tuple[bool, ...]] = [(False,) * 4] * 3  # for x, for y, for both
        self.function: Any = binary(self)
        self.reflected: Any = lambda y, x: self.function(x, y)

    def __call__(self, x: Any, y: Any) -> Any:
        return self.function(x, y)

    def vjp(self, **rules: Callable[..., Any]) -> Op:
        super().vjp(**rules)
        needs = ((True, False), (False, True), (True, True))
        self.pair_plans[:] = [(*keep, out, shapes) for keep, out, shapes in map(self.plan, needs)]
        return self

    def pull(self, node: Node, g: Any, needed: set[GraphNode] | None) -> Pulled:
        saved = node.saved
        if saved is FREED:
            raise messages.freed()
        x, y = saved
        seq = node.seq
        if isinstance(x, TensorBase):
            if x._version is not None and x._version.seq > seq:
                raise messages.modified(node, x._data, x._version)
            x = x._data
        if isinstance(y, TensorBase):
            if y._version is not None and y._version.seq > seq:
                raise messages.modified(node, y._data, y._version)
            y = y._data
        out = node.out
        if out is not None and node.version is not None and node.version.seq > seq:
            raise messages.modified(node, out, node.version)
        ex, ey = node.edges
        rx, ry = self.rules
        args = (x, y)
        if ex is not None and (needed is None or ex in needed):
            gx = rx(g, args, out, node.shapes, EMPTY, 0)
            if ey is not None and (needed is None or ey in needed):
                return (ex, gx), (ey, ry(g, args, out, node.shapes, EMPTY, 1))
            return ((ex, gx),)
        if ey is not None and (needed is None or ey in needed):
            return ((ey, ry(g, args, out, node.shapes, EMPTY, 1)),)
        return ()


def unary(op: UnaryOp) -> Callable[[Any], Any]:
    """The function that calls ``op``."""
    table, plan, differentiable, keeps_dtype = op.table, op.plan, op.differentiable, op.keeps_dtype
    get_mode, new, apply = mode.get, object.__new__, op.apply

    def function(x: Any) -> Any:
        flags = get_mode()
        if not isinstance(x, TensorBase) or flags > GRAD:
            return Op.__call__(op, x)
        a = x._data
        kind = type(a)
        try:
            forward, xp = table[kind]
            r = forward(xp, a)
            if type(r) is not kind:
                r = BACKENDS[kind].wrap(r)
            if keeps_dtype and r.dtype is not a.dtype:
                return apply((x,), EMPTY)
        except Exception:
            return apply((x,), EMPTY)
        out = new(carriers.TENSOR)
        out._data = r
        out._node = out._leaf = out._version = None
        edge = x._node
        if edge is not None and flags and differentiable:
            keep, keep_out, keep_shapes = plan((True,))
            out._node = node = new(Node)
            node.op = op
            node.params = EMPTY
            node.edges = (edge,)
            node.seq = next(SEQ)
            node.shape = r.shape
            node.saved = (x if keep[0] else None,)
            node.hooks = node.out = node.version = None
            node.shapes = (a.shape,) if keep_shapes else None
            if keep_out:
                node.out = r
                node.version = out._version = Version()
        return out

    function.__name__, function.__doc__ = op.name, op.__doc__
    return function


def binary(op: BinaryOp) -> Callable[[Any, Any], Any]:
    """The function that calls ``op``."""
    table, plans, differentiable, keeps_dtype = op.table, op.pair_plans, op.differentiable, op.keeps_dtype
    get_mode, new, apply, step = mode.get, object.__new__, op.apply, SEQ.__next__

    def function(x: Any, y: Any) -> Any:
        flags = get_mode()
        if flags > GRAD:
            return Op.__call__(op, x, y)
        ex = ey = None
        if isinstance(x, TensorBase):
            a = x._data
            dtype = a.dtype
            kind = type(a)
            ex = x._node
            if isinstance(y, TensorBase):
                b = y._data
                ey = y._node
                if b.dtype is not dtype:
                    return apply((x, y), EMPTY)
            elif type(y) is float or type(y) is int:
                b = y
            else:
                return apply((x, y), EMPTY)
        elif isinstance(y, TensorBase) and (type(x) is float or type(x) is int):
            a = x
            b = y._data
            dtype = b.dtype
            kind = type(b)
            ey = y._node
        else:
            return Op.__call__(op, x, y)
        try:
            forward, xp = table[kind]
            r = forward(xp, a, b)
            if type(r) is not kind:
                r = BACKENDS[kind].wrap(r)
            if keeps_dtype and r.dtype is not dtype:
                return apply((x, y), EMPTY)
        except Exception:
            return apply((x, y), EMPTY)
        out = new(carriers.TENSOR)
        out._data = r
        out._node = out._leaf = out._version = None
        if (ex is not None or ey is not None) and flags and differentiable:
            keep_x, keep_y, keep_out, keep_shapes = plans[0 if ey is None else 1 if ex is None else 2]
            out._node = node = new(Node)
            node.op = op
            node.params = EMPTY
            node.edges = (ex, ey)
            node.seq = step()
            node.shape = r.shape
            node.saved = (x if keep_x else None, y if keep_y else None)
            node.hooks = node.out = node.version = None
            node.shapes = (getattr(a, "shape", ()), getattr(b, "shape", ())) if keep_shapes else None
            if keep_out:
                node.out = r
                node.version = out._version = Version()
        return out

    function.__name__, function.__doc__ = op.name, op.__doc__
    return function

"""The short path of small eager ops: elementwise, one or two arguments, no parameters.

What ``Op.apply`` does in general is written out here for the common case: gradients on or off, nothing else
going on, matching dtypes. Everything else goes to ``apply``, which also finds the words when something failed.
The functions are closures rather than methods, since looking up ``self`` and its attributes costs as much as
the rest; Tensor's operators are these very functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import backends, modes
from leafgrad.modes import GRAD
from leafgrad.ops import carriers
from leafgrad.ops.node import EMPTY, SEQ, Node, TensorBase, Version
from leafgrad.ops.op import Forward, Op

BACKENDS = backends.BACKENDS
INFERENCE_VERSION = carriers.INFERENCE_VERSION


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
        self.pair_plans[:] = [(*(keep or (False, False)), out, shapes) for keep, out, shapes in map(self.plan, needs)]
        return self


def unary(op: UnaryOp) -> Callable[[Any], Any]:
    """The function that calls ``op``."""
    table, plan, differentiable, keeps_dtype = op.table, op.plan, op.differentiable, op.keeps_dtype
    get_mode, new, apply, step = modes.get, object.__new__, op.apply, SEQ.__next__

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
            out._node = node = Node()
            node.op = op
            node.params = EMPTY
            node.edges = (edge,)
            node.seq = step()
            node.shape = r.shape
            node.saved = (x,) if keep else ()
            node.hooks = node.out = node.version = None
            node.shapes = (a.shape,) if keep_shapes else None
            if keep_out:
                node.out = r
                node.version = out._version = Version()
        return out

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    return function


def binary(op: BinaryOp) -> Callable[[Any, Any], Any]:
    """The function that calls ``op``."""
    table, plans, differentiable, keeps_dtype = op.table, op.pair_plans, op.differentiable, op.keeps_dtype
    get_mode, new, apply, step = modes.get, object.__new__, op.apply, SEQ.__next__

    def function(x: Any, y: Any) -> Any:
        flags = get_mode()
        if flags > GRAD:
            return Op.__call__(op, x, y)
        ex = ey = None
        if isinstance(x, TensorBase):
            a, ex = x._data, x._node
            dtype, kind = a.dtype, type(a)
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
            outside = y if ey is None else x if ex is None else None
            if isinstance(outside, TensorBase) and outside._version is INFERENCE_VERSION:
                return apply((x, y), EMPTY)
            keep_x, keep_y, keep_out, keep_shapes = plans[0 if ey is None else 1 if ex is None else 2]
            out._node = node = Node()
            node.op, node.params, node.edges = op, EMPTY, (ex, ey)
            node.seq, node.shape = step(), r.shape
            node.saved = (x if keep_x else None, y if keep_y else None) if keep_x or keep_y else ()
            node.hooks = node.out = node.version = None
            node.shapes = (getattr(a, "shape", ()), getattr(b, "shape", ())) if keep_shapes else None
            if keep_out:
                node.out = r
                node.version = out._version = Version()
        return out

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    return function

"""The short paths of small eager ops: those of a fixed number of arguments, and elementwise ones of one or two.

What ``Op.apply`` does in general is written out here for the common case: gradients on or off, nothing else
going on, matching dtypes. Everything else goes to ``apply``, which also finds the words when something failed.
The functions of elementwise ops are closures rather than methods, since looking up ``self`` and its attributes costs
as much as the rest; Tensor's operators are these very functions.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from typing import Any, Self

from leafgrad import backends, dtypes, modes
from leafgrad.modes import BATCH, GRAD, TRACE, TRACER
from leafgrad.ops import dispatch
from leafgrad.ops.declarations import Forward
from leafgrad.ops.node import EMPTY, SEQ, Epoch, Node, SymbolBase, TensorBase, Version
from leafgrad.ops.op import Op
from leafgrad.ops.signature import Signature

BACKENDS = backends.BACKENDS
MANY = TRACE | BATCH
ALONE: set[type] = set()  # classes of arrays that lie on one device, all of them
NEEDED = (True,)
INFERENCE_VERSION = dispatch.INFERENCE_VERSION


class DirectOp(Op):
    """An op of a fixed number of arguments, neither a view nor with effects."""

    def resolve(self, kind: type) -> tuple[Forward, Any]:
        if not issubclass(kind, SymbolBase) and backends.backend_of_type(kind).device_count() == 1:
            ALONE.add(kind)
        return super().resolve(kind)

    def apply(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        flags = modes.get()
        out = self.direct(args, params, flags) if flags <= GRAD else None
        return super().apply(args, params) if out is None else out

    def direct(self, args: tuple[Any, ...], params: dict[str, Any], flags: int) -> Any:
        """Run on Tensors of one class of arrays, one dtype and device; None if they are not, or if that fails."""
        kind: Any = None
        dtype: Any = None
        raw: list[Any] = []
        edges: list[Any] = []
        for a in args:
            if isinstance(a, TensorBase):
                data = a._data
                if kind is None:
                    kind, dtype = type(data), data.dtype
                elif type(data) is not kind or (data.dtype is not dtype and not self.mixes_dtypes):
                    return None
                raw.append(data)
                edges.append(a._history if a._view is None else a._node)
            elif a is None and raw:
                raw.append(None)
                edges.append(None)
            else:
                return None
        if kind not in ALONE or kind not in self.table or (self.converts_integers and dtype.kind in "biu"):
            return None
        forward, xp = self.table[kind]
        try:
            r = forward(xp, *raw, **params)
        except Exception:
            return None
        if type(r) is not kind:
            return self.record(args, params, tuple(raw), dispatch.wrap(self, kind, r), flags)
        if not self.keeps_layout and not r.flags.c_contiguous:
            r = r.copy()
        out: Any = object.__new__(dispatch.TENSOR)
        out._data, out._epoch = r, Epoch.now
        out._history = out._leaf = out._writes = out._view = None
        if flags and self.differentiable and any(edges) and dispatch.is_floating(r):
            if len(edges) < self.arity:
                edges += [None] * (self.arity - len(edges))
                args += (None,) * (self.arity - len(args))
            out._history = node = self.node(args, params, raw, r, tuple(edges), flags)
            if node.out is not None:
                node.version = out._writes = Version()
        return out


class UnaryOp(Op):
    """An elementwise op of one array without parameters."""

    def __init__(self, forward: Forward, name: str, traits: frozenset[str], signature: Signature) -> None:
        super().__init__(forward, name, traits, signature)
        self.function: Any = unary(self)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self.function(*args, **params)


class BinaryOp(Op):
    """An elementwise op of two arrays without parameters."""

    def __init__(self, forward: Forward, name: str, traits: frozenset[str], signature: Signature) -> None:
        super().__init__(forward, name, traits, signature)
        self.pair_plans: list[tuple[bool, ...]] = [(False,) * 4] * 3  # for x, for y, for both
        self.function: Any = binary(self, self.apply)
        self.reflected: Any = lambda y, x: self.function(x, y)

    def operator(self, reflected: str) -> Any:
        """The function as a Python operator, which leaves what it does not know to that one's ``reflected``."""

        def apply(args: tuple[Any, Any], params: Any) -> Any:
            left = defers(args[1], reflected) or (reflected == "__rmul__" and repeats(*args))
            return NotImplemented if left else self.apply(args, params)

        return binary(self, apply)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self.function(*args, **params)

    def vjp(self, **rules: Callable[..., Any]) -> Self:
        super().vjp(**rules)
        needs = ((True, False), (False, True), (True, True))
        self.pair_plans[:] = [(*(keep or (False, False)), out, shapes) for keep, out, shapes in map(self.plan, needs)]
        return self


def repeats(count: Any, other: Any) -> bool:
    """Whether Python takes the product for a sequence several times: ``[0] * n``, where n is an integer."""
    return (
        isinstance(other, (str, bytes, list, tuple))
        and isinstance(count, TensorBase)
        and count._data.size == 1
        and not dtypes.of(count._data).is_floating_point
    )


def defers(other: Any, reflected: str) -> bool:
    """Whether an operand is of a class that has a reflected operator and that leafgrad knows nothing of."""
    if isinstance(other, (TensorBase, SymbolBase, numbers.Number)) or hasattr(other, "__array__"):
        return False
    return any(reflected in vars(c) for c in type(other).__mro__ if c.__module__ != "builtins")


def special(op: BinaryOp, apply: Callable[..., Any], input: Any, other: Any, flags: int) -> Any:
    """In a trace, a vmap, inference mode or anomaly detection."""
    if isinstance(input, TensorBase) or isinstance(other, TensorBase):
        return apply((input, other), EMPTY)
    found = TRACER.get().follow(op, (input, other), EMPTY) if flags & MANY == TRACE else None
    return Op.__call__(op, input, other) if found is None else found


def unary(op: UnaryOp) -> Callable[[Any], Any]:
    """The function that calls ``op``."""
    table, plans, differentiable, keeps_dtype = op.table, op.plans, op.differentiable, op.keeps_dtype
    converts = op.converts_integers
    get_mode, new, apply, step = modes.get, object.__new__, op.apply, SEQ.__next__

    def function(input: Any) -> Any:
        flags = get_mode()
        if not isinstance(input, TensorBase):
            return Op.__call__(op, input)
        if flags > GRAD:
            return apply((input,), EMPTY)
        a = input._data
        kind = type(a)
        try:
            forward, xp = table[kind]
            r = forward(xp, a)
            if type(r) is not kind:
                r = BACKENDS[kind].wrap(r)
            if keeps_dtype and (r.dtype is not a.dtype or (converts and r.dtype.kind in "biu")):
                return apply((input,), EMPTY)
        except Exception:
            return apply((input,), EMPTY)
        out = new(dispatch.TENSOR)
        out._data, out._epoch = r, Epoch.now
        out._history = out._leaf = out._writes = out._view = None
        edge = input._history if input._view is None else input._node
        if edge is not None and flags and differentiable:
            keep, keep_out, keep_shapes = plans.get(NEEDED) or op.plan(NEEDED)
            out._history = node = Node()
            node.op = op
            node.params = EMPTY
            node.edges = (edge,)
            node.seq = step()
            node.shape = r.shape
            node.saved = (input,) if keep else ()
            node.hooks = node.out = node.version = None
            node.shapes = (a.shape,) if keep_shapes else None
            if keep_out:
                node.out = r
                node.version = out._writes = Version()
        return out

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    return function


def binary(op: BinaryOp, apply: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The function that calls ``op``, and ``apply`` where the short path ends."""
    table, plans, differentiable, keeps_dtype = op.table, op.pair_plans, op.differentiable, op.keeps_dtype
    converts = op.converts_integers
    get_mode, new, step = modes.get, object.__new__, SEQ.__next__

    def function(input: Any, other: Any) -> Any:
        flags = get_mode()
        if flags > GRAD:
            return special(op, apply, input, other, flags)
        ex = ey = None
        if isinstance(input, TensorBase):
            a, ex = input._data, input._history if input._view is None else input._node
            dtype, kind = a.dtype, type(a)
            if isinstance(other, TensorBase):
                b = other._data
                ey = other._history if other._view is None else other._node
                if b.dtype is not dtype:
                    return apply((input, other), EMPTY)
            elif type(other) is float or type(other) is int:
                b = other
            else:
                return apply((input, other), EMPTY)
        elif isinstance(other, TensorBase) and (type(input) is float or type(input) is int):
            a = input
            b = other._data
            dtype = b.dtype
            kind = type(b)
            ey = other._history if other._view is None else other._node
        else:
            return Op.__call__(op, input, other)
        try:
            forward, xp = table[kind]
            r = forward(xp, a, b)
            if type(r) is not kind:
                r = BACKENDS[kind].wrap(r)
            if keeps_dtype and (r.dtype is not dtype or (converts and r.dtype.kind in "biu")):
                return apply((input, other), EMPTY)
        except Exception:
            return apply((input, other), EMPTY)
        out = new(dispatch.TENSOR)
        out._data, out._epoch = r, Epoch.now
        out._history = out._leaf = out._writes = out._view = None
        if (ex is not None or ey is not None) and flags and differentiable:
            outside = other if ey is None else input if ex is None else None
            if outside is not None and isinstance(outside, TensorBase) and outside._writes is INFERENCE_VERSION:
                return apply((input, other), EMPTY)
            keep_x, keep_y, keep_out, keep_shapes = plans[0 if ey is None else 1 if ex is None else 2]
            out._history = node = Node()
            node.op, node.params, node.edges = op, EMPTY, (ex, ey)
            node.seq, node.shape = step(), r.shape
            node.saved = (input if keep_x else None, other if keep_y else None) if keep_x or keep_y else ()
            node.hooks = node.out = node.version = None
            node.shapes = (getattr(a, "shape", ()), getattr(b, "shape", ())) if keep_shapes else None
            if keep_out:
                node.out = r
                node.version = out._writes = Version()
        return out

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    return function

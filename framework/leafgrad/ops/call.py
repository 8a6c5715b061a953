"""The call of each op, written out as one Python function from its declarations when it is first called.

A small eager op spends its time on calls, tuples and looking things up, not on arithmetic. So its function holds what
this op needs and nothing else: its own arguments, the checks that its traits ask for, and a node with what its rules
read. That is the straight line: raw arrays; or Tensors of one class of arrays and one dtype, gradients on or off, and
nothing else going on. Whatever else there is goes to ``Op.general``, which also finds the words where something failed.
"""

from __future__ import annotations

import builtins
import inspect
import operator
from collections.abc import Callable, Iterable
from functools import partial
from types import CodeType, FunctionType
from typing import Any, Final, Protocol, cast, overload

from leafgrad import backends, modes
from leafgrad.ops import dispatch, half, messages
from leafgrad.ops.node import EMPTY, SEQ, Epoch, Node, SymbolBase, T, TensorBase, Version
from leafgrad.ops.runtime import runtime
from leafgrad.ops.signature import as_now
from leafgrad.ops.tracebacks import WRITTEN
from leafgrad.ops.traits import ALL, normal, rank
from leafgrad.signals import raised_by_handler

General = Callable[[tuple[Any, ...], dict[str, Any]], Any]


class OpFunction(Protocol):
    """What an op's function takes and gives: a tensor of tensors, an array of arrays; several results are unpacked."""

    @overload
    def __call__(self, first: T, /, *args: Any, **params: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, **params: Any) -> Any: ...


class Missing:
    """Stands for an optional argument that was not given."""


MISSING: Final = Missing()
WORDS: Final = frozenset(
    {"any", "float", "getattr", "int", "isinstance", "len", "map", "max", "tuple", "type", "zip"}
)  # of the text
CODES: Final[dict[str, CodeType]] = {}  # ops that are alike share their code
SCOPE: Final[dict[str, Any]] = {
    "__name__": __name__, "__builtins__": builtins, "ABSTRACT": (SymbolBase, TensorBase), "ALL": ALL, "EMPTY": EMPTY,
    "GRAD": modes.GRAD, "HALF": backends.by_device_type("cpu").xp.dtype("float16"),
    "INFERENCE": dispatch.INFERENCE_VERSION, "MISSING": MISSING, "Epoch": Epoch, "Node": Node, "TensorBase": TensorBase,
    "Version": Version, "_dispatch": dispatch, "_runtime": runtime, "_cause": messages.cause,
    "_failed": messages.failed, "_mode": modes.get, "_new": object.__new__, "_by_handler": raised_by_handler,
    "_given": partial(operator.is_not, None), "_held": half.holds,
    "_as_now": as_now, "_shape": operator.attrgetter("shape"), "_normal": normal, "_rank": rank, "_step": SEQ.__next__,
}  # fmt: skip

# What stands in a function until it is written, by how many public arguments it has.
STUBS: Final[dict[int, CodeType]] = {
    count: eval(compile(f"lambda {names}: begin({names})", WRITTEN, "eval")).__code__
    for count, names in enumerate(("*args, **params", "input", "input, other"))
}
SIGNATURES: Final = {n: inspect.signature(FunctionType(STUBS[n], {})) for n in (1, 2)}


def function(op: Any, general: General) -> OpFunction:
    """The function that calls ``op``, and ``general`` where the straight line ends."""
    stub = STUBS[operands(op)]
    scope = {**SCOPE, "_op": op, "_lines": op.lines, "_general": general, "stub": stub}
    made = FunctionType(stub, scope, op.name)
    made.__qualname__, made.__doc__, made.__module__ = op.name, op.__doc__, __name__

    def begin(*args: Any, **params: Any) -> Any:
        signature = op.signature
        made.__defaults__ = None if signature.variadic else (MISSING,) * (len(signature.arguments) - signature.required)
        made.__kwdefaults__ = signature.defaults
        made.__code__ = code(op)  # last, since other threads may run it from now on
        return op(*args, **params) if made is op.function else made(*args)

    scope["begin"] = begin
    op.functions.append(made)
    return cast(OpFunction, made)


def operands(op: Any) -> int:
    """How many arguments an op has that are public, as those of operators are; 0 if it is not of that kind."""
    signature, count = op.signature, len(op.signature.arguments)
    fits = op.traits & {"elementwise", "bilinear"} and not (op.traits & {"any_dtype", "view"} or op.ordered)
    plain = fits and not (signature.parameters or signature.variadic) and signature.required == count <= 2
    return count if plain else 0


def code(op: Any) -> CodeType:
    text = CallText(op).text()
    if text not in CODES:
        outer = compile(text, WRITTEN, "exec")
        CODES[text] = next(c for c in outer.co_consts if isinstance(c, CodeType))
    return CODES[text]


def indented(lines: Iterable[str]) -> list[str]:
    return ["    " + line for line in lines]


class CallText:
    """The text of the function that calls one op. Names that are not the op's begin with an underscore."""

    def __init__(self, op: Any) -> None:
        self.op, self.signature = op, op.signature
        self.count, self.variadic = len(op.signature.arguments), op.signature.variadic
        self.names = ["input", "other"][: operands(op)] or [f"_x{i}" for i in range(self.count)]
        given = "".join([f", {p}={p}" for p in op.signature.parameters])
        raw = "*_raw" if self.variadic else ", ".join([f"_a{i}" for i in range(self.count)])
        self.forward = f"_forward(_xp, {raw}{given})"
        self.params = "{" + ", ".join([f"{p!r}: {p}" for p in op.signature.parameters]) + "}" if op.count else "EMPTY"
        self.kept = f"_as_now({self.params})" if op.count and not op.ours else self.params  # for rules
        self.args = "_args" if self.variadic else self.given()
        self.leave = f"return _general({self.args}, {self.params})"
        bilinear = "bilinear" in op.traits and "elementwise" not in op.traits
        self.numbers = not (op.ordered or bilinear)  # whether it takes Python's
        # The kinds of numbers that do not go along the straight line.
        self.elsewhere = ("biu" if op.converts_integers else "") + ("" if op.takes_complex else "c")
        self.checked = self.numbers and op.keeps_dtype and self.count > 1 and op.traits & {"elementwise", "promote"}

    @property
    def layouts(self) -> bool:
        """Whether operands may lie in memory each in its own order, of which the result's follows."""
        return self.op.keeps_layout and self.count > 1 and "view" not in self.op.traits

    def given(self) -> str:
        """The arguments, without those that were not given."""
        text = f"({', '.join(self.names)},)" if self.names else "()"
        for i in range(self.count - 1, self.signature.required - 1, -1):
            text = f"({', '.join(self.names[:i])},) if {self.names[i]} is MISSING else {text}"
        return text

    def text(self) -> str:
        op, parameters = self.op, [*self.signature.parameters]
        if self.variadic:
            head = ["*_args", *parameters]
        elif operands(op) or not self.count:
            head = [*self.names, *["*"][: op.count], *parameters]
        else:
            head = [*self.names, "/", *["*"][: op.count], *parameters]
        if not self.count or not op.straight or op.crosses or any(p.startswith("_") or p in WORDS for p in parameters):
            body = [self.leave]
        else:
            body = [*self.reals(), *(self.many() if self.variadic else self.few()), *self.computed(), *self.made()]
        return "\n".join([f"def call({', '.join(head)}):", *indented(body)])

    # ---- the arguments ------------------------------------------------------------------------------------------

    def reals(self) -> list[str]:
        """Parameters that are floats must be Python's own: of NumPy's the result's dtype would follow."""
        none = [" and {p} is not None" if self.signature.parameters[p] is None else "" for p in self.signature.reals]
        return [
            f"if type({p}) is not float and type({p}) is not int{known.format(p=p)}: {self.leave}"
            for p, known in zip(self.signature.reals, none, strict=True)
        ]

    def few(self) -> list[str]:
        """Arguments of a fixed number: the first decides, and the others must be like it."""
        x = self.names[0]
        mode = ["_flags = _mode()", f"if _flags > GRAD: {self.leave}"]
        asked = self.count > 1 or self.elsewhere  # whether there is anything to compare its dtype with
        lines = [*mode, *self.tensor(0), "_kind, _dtype = type(_a0), _a0.dtype" if asked else "_kind = type(_a0)"]
        for i in range(1, self.count):
            lines += self.other(i)
        lines = [*["_apart = False"][: self.layouts], f"if isinstance({x}, TensorBase):", *indented(lines)]
        if operands(self.op) == 2 and self.numbers:
            lines += [f"elif isinstance(other, TensorBase) and (type({x}) is float or type({x}) is int):"]
            lines += indented([*mode, *self.tensor(1), f"_a0, _e0, _kind, _dtype = {x}, None, type(_a1), _a1.dtype"])
            lines += indented(self.held(x))
        lines += ["else:", *indented(self.arrays())]
        return [*lines, *self.normalized("_a0.ndim")]

    def tensor(self, i: int) -> list[str]:
        """The raw array of a Tensor, and its node, for which a view is asked where its base was written since."""
        return [f"_a{i} = {self.names[i]}._data", f"_e{i} = {self.edge(self.names[i])}"]

    def edge(self, x: str) -> str:
        return f"{x}._history if {x}._view is None or {x}._writes.seq <= {x}._view.seen else {x}._node"

    def other(self, i: int) -> list[str]:
        x, alike = self.names[i], "" if self.op.mixes_dtypes else f" or _a{i}.dtype is not _dtype"
        lines = [f"if isinstance({x}, TensorBase):", *indented(self.tensor(i))]
        lines += [f"    if type(_a{i}) is not _kind{alike or self.apart(f'_a{i}')}: {self.leave}"]
        if self.layouts:
            both = f"(_a0.flags.c_contiguous and _a{i}.flags.c_contiguous)"  # of two operands the first decides alone
            ordered = "_a0.flags.c_contiguous" if self.count == 2 else both
            apart = f"_kind in _lines and not {ordered} and _a0.strides != _a{i}.strides"
            lines += [f"    _apart = {'' if i == 1 else '_apart or '}{apart}"]
        if self.numbers:
            lines += [f"elif type({x}) is float or type({x}) is int:", f"    _a{i}, _e{i} = {x}, None"]
            lines += indented(self.held(x))
        if i >= self.signature.required:
            lines += [f"elif {x} is None or {x} is MISSING: _a{i} = _e{i} = None"]
        return [*lines, f"else: {self.leave}"]

    def held(self, number: str) -> list[str]:
        """A number beside float16 is one that it holds, where another one is taken in float32, or refused."""
        asks = self.op.exact or self.op.within_float16
        return [f"if _dtype is HALF and not _held({number}): {self.leave}"] if asks else []

    def apart(self, a: str) -> str:
        """That an array of whatever dtype is complex, where the op does not take it."""
        return "" if self.op.takes_complex else f" or {a}.dtype.kind == 'c'"

    def arrays(self) -> list[str]:
        """Raw arrays: the forward alone."""
        x, *others = self.names
        lines = [f"_kind = type({x})"]
        symbols = "".join([f" or isinstance({y}, ABSTRACT)" for y in others])
        apart = self.apart(x) + "".join(
            [f" or (type({y}) is _kind{self.apart(y).replace(' or', ' and')})" for y in others]
        )
        apart = "" if self.op.takes_complex else apart
        lines += [f"if _kind not in _lines{symbols}{apart}: {self.leave}"]
        lines += [f"_a{i} = {y}" for i, y in enumerate(self.names)]
        lines += [f"if _a{i} is MISSING: _a{i} = None" for i in range(self.signature.required, self.count)]
        lines += self.normalized(f"{x}.ndim")
        lines += ["_forward, _xp = _lines[_kind]", *self.failing()]
        return [*lines, "return _r if type(_r) is _kind else _dispatch.wrap(_op, _kind, _r)"]

    def many(self) -> list[str]:
        """Any number of arguments."""
        alike = "" if self.op.mixes_dtypes else " or _a.dtype is not _dtype"
        lines = ["_flags = _mode()"]
        lines += [f"if _flags > GRAD or not _args or not isinstance(_args[0], TensorBase): {self.leave}"]
        lines += ["_a = _args[0]._data", "_kind, _dtype, _raw, _edges, _outside = type(_a), _a.dtype, [], [], False"]
        each = [f"if not isinstance(_x, TensorBase): {self.leave}", "_a = _x._data"]
        each += [f"if type(_a) is not _kind{alike or self.apart('_a')}: {self.leave}"]
        each += ["_raw.append(_a)", f"_edges.append({self.edge('_x')})"]
        each += ["_outside = _outside or _x._writes is INFERENCE"]
        lines += ["for _x in _args:", *indented(each)]
        return [*lines, *self.normalized("_a.ndim")]

    def floating(self) -> list[str]:
        return (
            [f"if _dtype.kind {'in' if self.elsewhere[1:] else '=='} '{self.elsewhere}': {self.leave}"]
            if self.elsewhere
            else []
        )

    def normalized(self, ndim: str) -> list[str]:
        """The parameter that names dimensions, as ``traits.normalized`` has it."""
        if self.op.dims is None:
            return []
        if self.variadic:
            ndim = f"max(map(_rank, {self.args}))"
        elif self.count > 1:
            others = [f"getattr(_a{i}, 'ndim', 0)" for i in range(1, self.count)]
            ndim = f"max({', '.join([ndim, *others])})"
        unknown = "dim is not None and not (type(dim) is int and 0 <= dim < _ndim) and dim is not ALL[_ndim]"
        single = "type(dim) is tuple and len(dim) == 1 and type(dim[0]) is int and 0 <= dim[0] < _ndim"
        unknown = f"{unknown} and not ({single})"
        return [f"_ndim = {ndim}", f"if {unknown}: dim = _normal(_op, dim, _ndim)"]

    # ---- the result ---------------------------------------------------------------------------------------------

    def failing(self) -> list[str]:
        """The forward, whose errors are told."""
        told = f"raise _failed(_op, {self.args}, {self.params}, _error) from _cause(_op, _error)"
        return ["try:", f"    _r = {self.forward}", "except Exception as _error:", f"    {told}"]

    def computed(self) -> list[str]:
        """The raw result. What has no effects may be tried: the general path fails in the same way, or does not."""
        if self.op.ordered:
            lines = [f"if _kind not in _lines: {self.leave}", *self.floating()]
            lines += ["_forward, _xp = _lines[_kind]", *self.failing()]
        else:
            lines = [*self.floating(), "try:", "    _forward, _xp = _lines[_kind]", f"    _r = {self.forward}"]
            lines += ["except Exception as _error:", "    if _by_handler(_error): raise", "    _r = None"]
            lines += [f"if _r is None: {self.leave}"]
        raw = "tuple(_raw)" if self.variadic else "(" + "".join([f"_a{i}, " for i in range(self.count)]) + ")"
        edges = "tuple(_edges)" if self.variadic else "(" + "".join([f"_e{i}, " for i in range(self.count)]) + ")"
        edges = f"{edges} if _flags else ()" if self.op.differentiable else "()"
        several = f"return _op.several({self.args}, {self.params}, {raw}, _r, {edges}, _flags)"
        several = f"    if type(_r) is tuple: {several}"
        wrapped = "    _r = _dispatch.wrap(_op, _kind, _r)"
        lines += ["if type(_r) is not _kind:", *[several][: self.op.c is None], wrapped, several]
        lines += [f"if _r.dtype is not _dtype: {self.leave}"] if self.checked else []
        if self.layouts:
            lines += [f"if _apart: _r = _dispatch.as_operands(_r, {raw})"]
        return [*lines, *([] if self.op.keeps_layout else ["if not _r.flags.c_contiguous: _r = _r.copy()"])]

    def made(self) -> list[str]:
        """The Tensor, with a node where an argument requires grad."""
        view = "view" in self.op.traits
        lines = ["_out = _new(_runtime.tensor)", "_out._data, _out._epoch = _r, Epoch.now"]
        lines += ["_out._history = _out._leaf = _out._writes = _out._view = None"]
        lines += [f"_params = {self.kept}"] if view else []
        if self.op.differentiable:
            edges = "any(_edges)" if self.variadic else self.some(range(self.count))
            kind = "" if self.checked else " and (_r.dtype.kind == 'f' or _dispatch.is_differentiable(_r))"
            params = "_params" if view else self.kept
            lines += [f"if _flags and ({edges}){kind}:", *indented(self.node(params))]
        return [*lines, f"return {f'_runtime.view(_op, {self.names[0]}, _params, _out)' if view else '_out'}"]

    def node(self, params: str) -> list[str]:
        op = "_op.conjugating if _r.dtype.kind == 'c' else _op" if self.op.holomorphic else "_op"
        lines = ["_out._history = _node = Node()", f"_node.op, _node.params = {op}, {params}"]
        lines += ["_node.seq, _node.shape, _node.hooks = _step(), _r.shape, None"]
        lines += self.takes()
        keep, none = ["_node.out = _r", "_node.version = _out._writes = Version()"], "_node.out = _node.version = None"
        if self.variadic:
            lines += [none]
            lines += ["_node.edges, _node.saved, _node.shapes = tuple(_edges), (), None"]
            lines += ["_needs = tuple(map(_given, _edges))"]
            lines += ["_keep, _keep_out, _keep_shapes = _op.plans.get(_needs) or _op.plan(_needs)"]
            lines += ["if _keep:", "    _node.saved = tuple([_x if _k else None for _x, _k in zip(_args, _keep)])"]
            lines += ["    if _outside: _dispatch.refuse_inference(_op, _node)"]
            lines += ["if _keep_shapes: _node.shapes = tuple(map(_shape, _raw))"]
            return [*lines, "if _keep_out:", *indented(keep)]
        uses, names = self.op.uses, self.signature.arguments
        lines += ["_node.edges = (" + "".join([f"_e{i}, " for i in range(self.count)]) + ")"]
        saved, outside = "", []
        for i, (x, name) in enumerate(zip(self.names, names, strict=True)):
            kept = self.required(j for j, use in enumerate(uses) if name in use)
            value = f"(None if {x} is MISSING else {x})" if i >= self.signature.required else x
            saved += {"": "None, ", "True": f"{value}, "}.get(kept, f"{value} if {kept} else None, ")
            outside += [f"_e{i} is None and isinstance({x}, TensorBase) and {x}._writes is INFERENCE"] if kept else []
        some = self.required(j for j, use in enumerate(uses) if use & {*names})
        lines += [f"_node.saved = {self.when(some, f'({saved})', '()')}"]
        if self.count > 1 and outside:
            lines += [f"if {' or '.join(outside)}: _dispatch.refuse_inference(_op, _node)"]
        shapes = [f"getattr(_a{i}, 'shape', ())" if self.count > 1 else "_a0.shape" for i in range(self.count)]
        shaped = self.required(j for j, use in enumerate(uses) if any(u.endswith("_shape") for u in use))
        lines += [f"_node.shapes = {self.when(shaped, '(' + ', '.join(shapes) + ',)', 'None')}"]
        out = self.required(j for j, use in enumerate(uses) if "out" in use)
        return [*lines, *(keep if out == "True" else [none, *([f"if {out}:", *indented(keep)] if out else [])])]

    def takes(self) -> list[str]:
        """What the node of an op that is not this package's notes of its arguments and its result."""
        if self.op.ours:
            return []
        if self.variadic:
            return ["_node.takes, _node.dtypes = tuple([_a.dtype for _a in _raw]), (_r.dtype,)"]
        return [
            "_node.dtypes = (_r.dtype,)",
            "_node.takes = (" + "".join([f"getattr(_a{i}, 'dtype', None), " for i in range(self.count)]) + ")",
        ]

    def some(self, which: Iterable[int]) -> str:
        """The condition that one of some arguments requires grad; "" where there is none."""
        return " or ".join([f"_e{i} is not None" for i in which])

    def required(self, which: Iterable[int]) -> str:
        """The same where it is known that one of all does."""
        found = [*which]
        return "True" if len(found) == self.count else self.some(found)

    def when(self, condition: str, value: str, otherwise: str) -> str:
        return value if condition == "True" else f"{value} if {condition} else {otherwise}" if condition else otherwise

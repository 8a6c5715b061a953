"""The Recorder: what the dispatch talks to while a function is traced."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leafgrad import backends
from leafgrad.backends import Generator
from leafgrad.backends.place import place
from leafgrad.compile import memory, shapes
from leafgrad.compile.graph import (
    Argument,
    Captured,
    Effect,
    Equation,
    Grad,
    Line,
    Live,
    Operand,
    SetGrad,
    SetRequiresGrad,
    Source,
    Value,
    Write,
)
from leafgrad.compile.replay import run
from leafgrad.compile.symbol import Symbol
from leafgrad.errors import TraceError
from leafgrad.ops import messages
from leafgrad.ops.node import Leaf, SymbolBase, Version
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import View, follow

Owner = Argument | Captured


@dataclass
class Borrowed:
    """A tensor from outside as it was before the trace."""

    tensor: Tensor
    data: Any
    state: Any  # the node; of a view its root, history and when that was made
    version: Version | None
    writes: tuple[int, int]  # what the version said

    @classmethod
    def of(cls, t: Any) -> Borrowed:
        v = t._version
        state = (t._root, t._history, t._seen) if isinstance(t, View) else t._node
        return cls(t, t._data, state, v, (0, 0) if v is None else (v.count, v.seq))

    def give_back(self) -> None:
        t: Any = self.tensor
        t._data, t._version = self.data, self.version
        if self.version is not None:
            self.version.count, self.version.seq = self.writes
        if isinstance(t, View):
            t._root, t._history, t._seen = self.state
        else:
            t._node = self.state


class Recorder:
    """The Tracer that the dispatch talks to while a function is traced.

    Args:
        arguments: the tensors among the arguments.
        stand_ins: tensors that the function is given in place of some of them, by index.
    """

    def __init__(self, arguments: Sequence[Tensor], stand_ins: dict[int, Tensor] | None = None) -> None:
        self.arguments = {id(t): i for i, t in reversed(list(enumerate(arguments)))}
        self.tensors = list(arguments)
        for i, t in (stand_ins or {}).items():
            self.arguments[id(t)] = i
            self.tensors[i] = t
        self.equations: list[Equation] = []
        self.inputs: dict[Value, Source] = {}
        self.arrays: dict[Value, Any] = {}  # what the inputs are in this run, and what was computed from them
        self.makers: dict[Value, int] = {}  # the place in `equations` of what makes a value
        self.likes: dict[Value, Value] = {}  # gradients of results: their values in this run are taken to be these
        self.sources: dict[int, Argument | Captured | Grad] = {}  # by id of tensor; kept alive by `outside`
        self.outside: dict[int, Borrowed] = {}  # by id of tensor
        self.cuts: set[Leaf] = set()  # stand for the history that tensors from outside have
        self.touched: dict[Leaf, tuple[Owner | None, Any]] = {}
        self.generators: dict[int, tuple[Generator, Any]] = {}
        self.flags = [t.requires_grad for t in self.tensors]
        self.symbols: list[tuple[weakref.ref[Symbol], Line]] = []

    # ---- asked by the dispatch --------------------------------------------------------------------------------

    def lift(self, tensor: Any) -> Any:
        """The Symbol of a tensor; an external tensor becomes an input of the program."""
        data = tensor._data
        if isinstance(tensor, View):
            return self.lift_view(tensor)
        if isinstance(data, SymbolBase):
            return self.own(data)
        source = self.sources.get(id(tensor)) or self.source(tensor)
        self.sources[id(tensor)] = source
        symbol = self.input(source, data)
        self.borrow(tensor)
        if tensor._node is not None and not isinstance(tensor._node, Leaf):
            cut = Leaf(tensor)
            self.cuts.add(cut)
            tensor._node = cut
        tensor._data = symbol
        return symbol

    def lift_view(self, view: View) -> Any:
        base = view._base
        before = base._data
        root = self.lift(base)
        if view._root is not root:
            if not isinstance(view._data, SymbolBase):
                known = self.outside.get(id(base))
                if view._root is not (before if known is None else known.data):
                    raise TraceError(
                        f"a view of memory that its base no longer has, since base.data was set, at "
                        f"{messages.user_line()}; make the view again"
                    )
                self.borrow(view)
                if view._history is not None and view._seen != math.inf:
                    view._seen = -1  # its history leads outside: to be made anew from the base's
            view._data = follow(root, view._steps)
            view._root = root
        return self.own(view._data)

    def borrow(self, tensor: Tensor) -> None:
        """Remember how a tensor from outside is, to give it back so."""
        if id(tensor) not in self.outside:
            self.outside[id(tensor)] = Borrowed.of(tensor)

    def is_outside(self, tensor: Tensor) -> bool:
        return id(tensor) in self.outside or id(tensor) in self.arguments or not isinstance(tensor._data, Symbol)

    def own(self, symbol: Any) -> Any:
        if isinstance(symbol, Symbol) and symbol.tracer is not self:
            raise stale()
        return symbol

    def source(self, tensor: Tensor) -> Argument | Captured | Grad:
        """Where an external tensor comes from."""
        index = self.arguments.get(id(tensor))
        if index is not None:
            return Argument(index)
        for of, gradient in self.touched.values():
            if gradient is tensor and of is not None:
                return Grad(of)
        return Captured(tensor)

    def input(self, source: Source, array: Any, weak: bool = False) -> Symbol:
        value = Value(tuple(array.shape), array.dtype.name, place(array))
        self.inputs[value] = source
        self.arrays[value] = array
        return self.symbol(value, user_line(), weak)

    def symbol(self, value: Value, line: Line, weak: bool = False) -> Symbol:
        made = Symbol(self, value, weak)
        self.symbols.append((weakref.ref(made), line))
        return made

    def bind(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Record ``op`` on Symbols; run it only if nothing else tells what it makes."""
        operands: list[Operand] = []
        weak = op.name != "to_dtype" and "elementwise" in op.traits
        for a in args:
            if isinstance(a, Symbol):
                self.own(a)
                operands.append(a.value)
                weak = weak and a.weak
            elif hasattr(a, "dtype") and hasattr(a, "shape"):
                raise unknown_history(op.name)
            else:
                operands.append(a)
        self.remember_generators(params)
        try:
            made = shapes.results(op, operands, params)
        except shapes.Unknown:
            result = op.compute(tuple([self.array(v) if isinstance(v, Value) else v for v in operands]), params)
            return self.computed(op, tuple(operands), params, result, weak)
        return self.record(op, tuple(operands), params, made, op.name in shapes.SEVERAL, weak)

    def create(self, op: Any, where: tuple[str, int], params: dict[str, Any]) -> Any:
        """Run an op without array arguments on a device and record it."""
        self.remember_generators(params)
        backend = backends.by_device_type(where[0])
        with backend.device_scope(where[1]):
            result = backend.wrap(op.kernels.get(backend.name, op.forward)(backend.xp, **params))
        return self.computed(op, (), params, result)

    def live(self, read: Callable[[], float]) -> Symbol:
        """A Symbol for a Python number that is read anew at each call of the program."""
        backend = backends.by_device_type("cpu")
        return self.input(Live(read), backend.asarray(float(read()), "float64", 0), weak=True)

    def touch(self, leaf: Leaf) -> None:
        """``leaf.grad`` is about to be read or written."""
        if leaf in self.cuts:
            raise unknown_history("backward")
        if leaf in self.touched:
            return
        owner = leaf.variable
        source = None  # of a tensor that the function made itself
        if owner is not None and self.is_outside(owner):
            found = self.sources.get(id(owner)) or self.source(owner)
            if isinstance(found, Grad):
                raise TraceError(
                    f"the .grad of a .grad cannot be traced, at {messages.user_line()}; detach() the gradient"
                )
            source = self.sources[id(owner)] = found
            self.borrow(owner)
        self.touched[leaf] = source, leaf.grad

    def record(
        self, op: Any, operands: tuple[Any, ...], params: dict[str, Any], made: list[Value], several: bool, weak: bool
    ) -> Any:
        line = user_line()
        self.makers.update(dict.fromkeys(made, len(self.equations)))
        self.equations.append(Equation(op, operands, params, tuple(made), line, several))
        symbols = tuple([self.symbol(v, line, weak) for v in made])
        return symbols if several else symbols[0]

    def computed(
        self, op: Any, operands: tuple[Any, ...], params: dict[str, Any], result: Any, weak: bool = False
    ) -> Any:
        """Record an op with its result in this run."""
        several = type(result) is tuple
        arrays = result if several else (result,)
        values = [Value(tuple(a.shape), a.dtype.name, place(a)) for a in arrays]
        self.arrays.update(zip(values, arrays, strict=True))
        return self.record(op, operands, params, values, several, weak)

    def array(self, value: Value) -> Any:
        """What a value is in this run of the function, with all that it depends on."""
        waiting, needed = [value], set()
        while waiting:
            v = waiting.pop()
            if v in self.likes:
                self.arrays[v] = self.array(self.likes[v])
            if v not in self.arrays and self.makers[v] not in needed:
                needed.add(self.makers[v])
                waiting += self.equations[self.makers[v]].values
        for i in sorted(needed):
            equation = self.equations[i]
            result = run(equation, self.arrays)
            self.arrays.update(zip(equation.outputs, result if equation.several else (result,), strict=True))
        return self.arrays[value]

    def remember_generators(self, params: dict[str, Any]) -> None:
        for p in params.values():
            if isinstance(p, Generator) and id(p) not in self.generators:
                self.generators[id(p)] = p, p.get_state()

    # ---- when the function has returned -----------------------------------------------------------------------

    def effects(self) -> list[Effect]:
        """What the function did to tensors that it did not make."""
        found: list[Effect] = [*self.writes()]
        for leaf, (source, before) in self.touched.items():
            after = leaf.grad
            if after is before or source is None:
                continue
            if after is not None and after._node is not None:
                raise TraceError(
                    "backward(create_graph=True) inside a traced function would leave .grad in a graph that exists "
                    "only while tracing; use leafgrad.autograd.grad(..., create_graph=True) instead"
                )
            if after is not None and self.is_outside(after):
                raise TraceError("a traced function put a tensor from outside into .grad; put a clone() of it there")
            found.append(SetGrad(source, None if after is None else self.lift(after).value))
        for i, (tensor, flag) in enumerate(zip(self.tensors, self.flags, strict=True)):
            if tensor.requires_grad and not flag:
                found.append(SetRequiresGrad(Argument(i)))
        return found

    def writes(self) -> list[Write]:
        """In-place changes of tensors from outside, after checking that a replay can repeat them."""
        found = []
        inputs = {id(s): v for v, s in self.inputs.items()}
        for b in self.outside.values():
            source = self.sources.get(id(b.tensor))
            if source is None or isinstance(b.tensor, View):
                continue
            symbol = b.tensor._data
            if isinstance(symbol, Symbol) and inputs.get(id(source)) is not symbol.value:
                found.append(Write(source, symbol.value))
            node = b.tensor._node
            if (
                node is b.state
                or node in self.cuts
                or (b.state is None and isinstance(source, Argument) and type(node) is Leaf)
            ):
                continue
            raise TraceError(
                f"a traced function changed whether or how a tensor from outside, {messages.describe(b.tensor)}, "
                "requires grad: by writing into it with recording on, detach_() or requires_grad_(). Do that outside, "
                "or compute a new tensor"
            )
        self.check_overlap(found)
        return found

    def check_overlap(self, writes: list[Write]) -> None:
        """A TraceError if memory that is written is also reached through another tensor."""
        written = {id(w.source) for w in writes}
        groups: dict[int, list[tuple[Source, Any]]] = {}
        for value, source in self.inputs.items():
            groups.setdefault(id(memory.owner(self.arrays[value])), []).append((source, self.arrays[value]))
        for group in groups.values():
            for source, array in group:
                if id(source) not in written:
                    continue
                for other, theirs in group:
                    if other is not source and memory.overlap(array, theirs):
                        raise shared(array)

    def restore(self) -> None:
        """Give external tensors their data, gradients and generators their state back."""
        for borrowed in reversed(self.outside.values()):
            borrowed.give_back()
        for leaf, (_, before) in self.touched.items():
            leaf.grad = before
        for tensor, flag in zip(self.tensors, self.flags, strict=True):
            if tensor.is_leaf and not flag:
                tensor._node = None
        for generator, state in self.generators.values():
            generator.set_state(state)


def stale() -> TraceError:
    return TraceError(
        f"a tensor from an earlier trace was kept and is used again, at {messages.user_line()}; return it from the "
        "traced function instead of storing it"
    )


def unknown_history(name: str) -> TraceError:
    return TraceError(
        f"{name}: an array that the program does not know, at {messages.user_line()}. backward() reached a graph that "
        "was recorded outside of the traced function: detach() what comes from there, or move its computation inside"
    )


def shared(array: Any) -> TraceError:
    return TraceError(
        f"a traced function writes into a tensor, {messages.describe(array)}, whose memory it also reaches through "
        "another tensor, made outside by detach(), data or a slice. Use one of the two only, make the other one inside "
        "the function, or clone() it"
    )


PACKAGE = messages.PACKAGE


def user_line() -> Line:
    """The innermost line outside this package."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)

"""The Recorder: what the dispatch talks to while a step is recorded, or followed along what an earlier call recorded.

Ops are not computed. Each is compared with the one that the guide has at this place and answered by a Symbol of its
value; from the first that differs on, ops are recorded anew. Tensors from outside stay as they are: what is done to
them is done to what stands for them here, so no other thread sees it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from leafgrad import backends
from leafgrad.backends import Generator
from leafgrad.backends.place import place
from leafgrad.compile import outside, shapes
from leafgrad.compile.forwards import keeps_state
from leafgrad.compile.graph import (
    Argument,
    Captured,
    Equation,
    Grad,
    Live,
    Number,
    Operand,
    Raw,
    Source,
    Value,
    user_line,
)
from leafgrad.compile.guide import Event, Guide, Input, same
from leafgrad.compile.outside import Outside
from leafgrad.compile.replay import run
from leafgrad.compile.symbol import Symbol
from leafgrad.errors import TraceError
from leafgrad.ops import carriers, messages
from leafgrad.ops.node import SEQ, Leaf, SymbolBase, TensorBase
from leafgrad.tensor import view
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import View, follow

Owner = Argument | Captured
NUMBERS = (int, float)
new = object.__new__
ref = weakref.ref


class Recorder:
    """The Tracer that the dispatch talks to while a function is traced.

    Args:
        arguments: the tensors among the arguments.
        guides: what earlier calls recorded from the same place on.
    """

    fit: ClassVar[set[Any]] = set()  # ops that have been looked at
    wary = False  # whether arrays that share memory with tensors may be read and written meanwhile

    def __init__(self, arguments: Sequence[Tensor], guides: Sequence[Guide] = ()) -> None:
        self.arguments = {id(t): i for i, t in reversed(list(enumerate(arguments)))}
        self.given = list(arguments)
        self.born = next(SEQ)
        self.outside: dict[int, Outside] = {}  # by id of the tensor
        self.inner: dict[int, Outside] = {}  # by id of what stands for it
        self.grads: dict[Leaf, tuple[Owner | None, Any, Any]] = {}  # of leaves that were looked at: before, after
        self.gradients: dict[int, Owner] = {}  # by id of a tensor that was a .grad before
        self.tensors: list[weakref.ref[Tensor]] = []  # made here
        self.generators: dict[int, tuple[Generator, Any]] = {}
        self.waiting: dict[Value, tuple[Any, bool]] = {}  # arrays of earlier parts, inputs when used again; weak or not
        self.begin(guides)

    def begin(self, guides: Sequence[Guide]) -> None:
        """Start a part, which may take the course of one of ``guides``."""
        self.guides = list(guides)
        self.guide: Guide | None = self.guides[0] if self.guides else None
        self.at = 0  # how many events of the guide have come
        self.past: Sequence[Event] = ()  # a guide that was left, to see which numbers differ from it
        self.past_at = 0
        self.fresh: list[Event] = []
        self.weak: set[Value] = set()
        self.copies: set[Value] = set()
        self.arrays: list[Any] = []  # of the inputs, in order
        self.known: dict[Value, Any] = {}  # arrays of inputs, and of what was computed on the way
        self.sources: dict[Value, Source] = {}
        self.likes: dict[Value, Value] = {}  # gradients of results: taken to be like these
        self.symbols: list[weakref.ref[Symbol]] = []

    # ---- the course -------------------------------------------------------------------------------------------

    def expect(self, fits: Callable[[Event], bool]) -> Event | None:
        """The next event, if it fits; else that of another guide with the same past; else None, and no guide."""
        if self.guide is None:
            return None
        before = self.guide.events[self.at - 1] if self.at else None
        for guide in (self.guide, *self.guides):
            if len(guide.events) > self.at and (before is None or guide.events[self.at - 1] is before):
                event = guide.events[self.at]
                if fits(event):
                    self.guide = guide
                    self.at += 1
                    return event
        self.depart()
        return None

    def depart(self) -> None:
        """Go on without a guide."""
        if self.guide is not None:
            self.past, self.past_at = self.guide.events, self.at
            self.fresh = list(self.past[: self.at])
            self.weak, self.copies = set(self.guide.weak), set(self.guide.copies)
            self.guide = None

    @property
    def events(self) -> Sequence[Event]:
        """What has come in this part."""
        return self.fresh if self.guide is None else self.guide.events[: self.at]

    @property
    def equations(self) -> list[Equation]:
        """The ops among them."""
        return [e for e in self.events if isinstance(e, Equation)]

    def symbol(self, value: Value) -> Symbol:
        weak = self.weak if self.guide is None else self.guide.weak
        made = Symbol(self, value, bool(weak) and value in weak)
        self.symbols.append(weakref.ref(made))
        return made

    # ---- tensors ----------------------------------------------------------------------------------------------

    def inside(self, tensor: Any) -> Any:
        """What stands for a tensor; itself if it was made here."""
        data = tensor._data
        if type(data) is Symbol:
            if data.tracer is not self:
                raise stale()
            return tensor
        if isinstance(data, SymbolBase) or id(tensor) in self.inner:
            return tensor
        found = self.outside.get(id(tensor))
        return self.enter(tensor) if found is None else found.inner

    def enter(self, tensor: Tensor) -> Tensor:
        """Let something stand for a tensor from outside."""
        index = self.arguments.get(id(tensor))
        of = self.gradients.get(id(tensor))
        source: Source = Argument(index) if index is not None else Grad(of) if of is not None else Captured(tensor)
        if isinstance(tensor, View) and not (index is not None and id(tensor._base) not in self.outside):
            if tensor._root is not tensor._base._data:
                raise TraceError(
                    f"a view of memory that its base no longer has, since base.data was set, at "
                    f"{messages.user_line()}; make the view again"
                )
            inner: Tensor = outside.view_in(tensor, self.inside(tensor._base))
        else:
            inner = outside.stand_in(tensor)
        self.outside[id(tensor)] = self.inner[id(inner)] = Outside(tensor, inner, source, tensor._node)
        return inner

    def lift(self, tensor: Any) -> Any:
        """The Symbol of a tensor; one from outside becomes an input."""
        inner = self.inside(tensor)
        if isinstance(inner, View):
            return self.lift_view(inner)
        data = inner._data
        if isinstance(data, SymbolBase):
            return data
        found = self.inner[id(inner)]
        self.meet(found)
        array = found.tensor._data
        if self.wary and is_exposed(array):
            array = array.copy()  # somebody may write it before the program reads it
        inner._data = symbol = self.input("tensor", array, found.source)
        found.base = symbol
        return symbol

    def meet(self, found: Outside) -> None:
        """A tensor from outside is about to be read."""

    def lift_view(self, inner: View) -> Any:
        root = self.lift(inner._base)
        if inner._root is not root or not isinstance(inner._data, SymbolBase):
            inner._data = follow(root, inner._steps)
            inner._root = root
        return inner._data

    def made(self, tensor: Tensor) -> None:
        """``tensor`` was made here."""
        self.tensors.append(weakref.ref(tensor))

    def input(self, kind: str, array: Any, source: Source, operand: int = -1, weak: bool = False) -> Symbol:
        """The Symbol of something from outside."""
        shape, dtype, where = tuple(array.shape), array.dtype.name, place(array)
        strides = None if array.flags.c_contiguous else tuple(array.strides)

        def fits(e: Event) -> bool:
            return (
                type(e) is Input
                and e.kind == kind
                and e.operand == operand
                and e.strides == strides
                and (e.value.shape, e.value.dtype, e.value.place) == (shape, dtype, where)
            )

        event = self.expect(fits)
        if event is None:
            value = Value(shape, dtype, where)
            self.fresh.append(Input(value, kind, operand, strides, user_line()))
            if weak:
                self.weak.add(value)
        else:
            assert isinstance(event, Input)
            value = event.value
        self.arrays.append(array)
        self.known[value] = array
        self.sources[value] = source
        return self.symbol(value)

    def live(self, read: Callable[[], float]) -> Symbol:
        """A Symbol for a Python number that is read anew at each call of a program."""
        backend = backends.by_device_type("cpu")
        return self.input("live", backend.asarray(float(read()), "float64", 0), Live(read), weak=True)

    # ---- ops --------------------------------------------------------------------------------------------------

    def follow(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """The Symbol of what an op makes, if the guide has this very op on these very values here; else None."""
        guide = self.guide
        if guide is None:
            return None
        at = self.at
        known, inputs, expected, plain, out, outputs, weak = guide.steps[at]
        if known is not op or len(inputs) != len(args):
            return None
        for a, v in zip(args, inputs, strict=False):
            if a.__class__ is Symbol:
                if a.value is not v or a.tracer is not self:
                    return None
            elif a is not v and not (a.__class__ is v.__class__ and a == v and (a or same(a, v))):
                return None
        if params is not expected and not (params == expected if plain else same(params, expected)):
            return None
        self.at = at + 1
        if out is None:
            return self.answer(outputs, True)
        made = new(Symbol)
        made.tracer = self
        made.value = out
        made.weak = weak
        self.symbols.append(ref(made))
        return made

    def repeat(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """What ``Op.trace`` needs, if the next event is this very op on these very values; else None."""
        inner: list[Any] = []
        raw: list[Any] = []
        outside = self.outside
        for a in args:
            if isinstance(a, TensorBase):
                data = a._data
                if data.__class__ is not Symbol:
                    found = outside.get(id(a))
                    if found is None:
                        return None
                    a = found.inner
                    data = a._data
                if a.__class__ is View and a._root is not a._base._data:
                    return None
                raw.append(data)
            else:
                raw.append(a)
            inner.append(a)
        result = self.follow(op, raw, params)
        return None if result is None else (inner, raw, result)

    def answer(self, outputs: Sequence[Value], several: bool) -> Any:
        """Symbols of what an equation makes."""
        made = tuple([self.symbol(v) for v in outputs])
        return made if several else made[0]

    def bind(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """An op on Symbols, numbers and raw arrays."""
        if op not in self.fit:
            why = self.unfit(op)
            if why is not None:
                return self.at_once(op, args, params, why)
            self.fit.add(op)
        operands = [self.operand(op, a) for a in args]
        self.admit_numbers(op, operands)

        def fits(e: Event) -> bool:
            return (
                type(e) is Equation
                and e.op is op
                and len(e.inputs) == len(operands)
                and all(map(same_operand, operands, e.inputs))
                and same(params, e.params)
            )

        event = self.expect(fits)
        if event is None:
            self.lift_numbers(op, operands, params)
            event = self.record(op, operands, params)
        assert isinstance(event, Equation)
        return self.answer(event.outputs, event.several)

    def unfit(self, op: Any) -> str | None:
        """Why a program cannot run an op; None if it can."""
        return keeps_state(op)

    def at_once(self, op: Any, args: tuple[Any, ...], params: dict[str, Any], why: str) -> Any:
        """A TraceError: programs run the forwards of ops as often as they like."""
        raise TraceError(
            f"op {op.name!r}, at {messages.user_line()}: its forward has state, {why}; a program may run it more "
            "than once, in parts. Make it a function of its arguments"
        )

    def operand(self, op: Any, a: Any) -> Operand:
        """The value of an argument: what earlier parts computed and arrays that no Symbol stands for become inputs."""
        if isinstance(a, Symbol):
            if a.tracer is not self:
                raise stale()
            if a.value in self.waiting:
                array, weak = self.waiting.pop(a.value)
                a.value = self.input("array", array, Raw(), weak=weak).value
            return a.value
        if hasattr(a, "dtype") and hasattr(a, "shape"):
            return self.foreign(op, a)
        number: Operand = a
        return number

    def foreign(self, op: Any, array: Any) -> Value:
        """A TraceError: no program finds the array again."""
        raise unknown_history(op.name)

    def record(self, op: Any, operands: list[Operand], params: dict[str, Any]) -> Equation:
        """A new equation; the op itself is run only if nothing else tells what it makes."""
        weak = op.name != "to_dtype" and "elementwise" in op.traits
        weak = weak and all(v in self.weak for v in operands if isinstance(v, Value))
        self.remember_generators(params)
        several = op.name in shapes.SEVERAL
        try:
            made = shapes.results(op, operands, params)
        except shapes.Unknown:
            result = op.compute(tuple([self.array(v) if isinstance(v, Value) else v for v in operands]), params)
            several = type(result) is tuple
            made = self.values_of(result if several else (result,))
        if weak:
            self.weak.update(made)
        return self.append(Equation(op, tuple(operands), params, tuple(made), user_line(), several))

    def append(self, equation: Equation) -> Equation:
        self.fresh.append(equation)
        return equation

    def values_of(self, arrays: Sequence[Any]) -> list[Value]:
        values = [Value(tuple(a.shape), a.dtype.name, place(a)) for a in arrays]
        self.known.update(zip(values, arrays, strict=True))
        return values

    def create(self, op: Any, where: tuple[str, int], params: dict[str, Any]) -> Any:
        """An op without array arguments, on a device."""

        def fits(e: Event) -> bool:
            if type(e) is Input and e.kind == "constant":
                return True
            return type(e) is Equation and e.op is op and e.place == where and same(params, e.params)

        event = self.expect(fits)
        if isinstance(event, Equation):
            return self.answer(event.outputs, event.several)
        if event is not None:
            self.at -= 1
        self.remember_generators(params)
        backend = backends.by_device_type(where[0])
        with backend.device_scope(where[1]):
            result = backend.wrap(op.kernels.get(backend.name, op.forward)(backend.xp, **params))
        if event is not None or self.varies(op, params, result):
            return self.input("constant", result, Raw())
        made = self.append(Equation(op, (), params, tuple(self.values_of((result,))), user_line()))
        return self.answer(made.outputs, False)

    # ---- numbers that change from call to call ----------------------------------------------------------------

    def admit_numbers(self, op: Any, operands: list[Operand]) -> None:
        """Numbers that the guide takes as inputs."""
        guide = self.guide
        while guide is not None and self.at < len(guide.events):
            event = guide.events[self.at]
            if type(event) is not Input or event.kind != "number" or event.operand >= len(operands):
                return
            number = operands[event.operand]
            if type(number) not in NUMBERS:
                return
            operands[event.operand] = self.number(number, event.operand, event.value.dtype)
            guide = self.guide

    def number(self, number: Any, operand: int, dtype: str) -> Value:
        array = backends.by_device_type("cpu").asarray(float(number), dtype, 0)
        return self.input("number", array, Number(float(number)), operand).value

    def lift_numbers(self, op: Any, operands: list[Operand], params: dict[str, Any]) -> None:
        """Where the guide that was left has the same op with another number, the number becomes an input."""
        numbers: set[int] = set()
        while self.past_at < len(self.past) and isinstance(skipped := self.past[self.past_at], Input):
            if skipped.kind == "number":
                numbers.add(skipped.operand)
            self.past_at += 1
        event = self.past[self.past_at] if self.past_at < len(self.past) else None
        if not isinstance(event, Equation) or event.op is not op or len(event.inputs) != len(operands):
            self.past = ()
            return
        self.past_at += 1
        dtypes = {v.dtype for v in operands if isinstance(v, Value) and v.dtype.startswith("float")}
        on_host = all(v.place[0] == "cpu" for v in operands if isinstance(v, Value))
        if "elementwise" not in op.traits or len(dtypes) != 1 or not on_host:
            return
        for i, (number, before) in enumerate(zip(operands, event.inputs, strict=True)):
            if type(number) in NUMBERS and (i in numbers or (type(before) in NUMBERS and not same(number, before))):
                operands[i] = self.number(number, i, *dtypes)

    def varies(self, op: Any, params: dict[str, Any], result: Any) -> bool:
        """Whether the guide that was left has a constant like this one here, with other elements."""
        at = self.past_at
        event = self.past[at] if at < len(self.past) else None
        if event is None or "random" in op.traits:
            return False
        made = event.value if isinstance(event, Input) else event.outputs[0]
        alike = (made.shape, made.dtype, made.place) == (tuple(result.shape), result.dtype.name, place(result))
        constant = event.kind == "constant" if isinstance(event, Input) else event.op is op and alike
        if not constant:
            self.past = ()
            return False
        self.past_at += 1
        return alike and (isinstance(event, Input) or not same(params, event.params))

    # ---- gradients --------------------------------------------------------------------------------------------

    def grad_of(self, leaf: Leaf) -> Any:
        """The ``.grad`` of a leaf, as it is here."""
        return self.looked_at(leaf)[2]

    def set_grad(self, leaf: Leaf, gradient: Any) -> None:
        """Give a leaf another ``.grad``."""
        source, before, _ = self.looked_at(leaf)
        self.grads[leaf] = source, before, gradient

    def looked_at(self, leaf: Leaf) -> tuple[Owner | None, Any, Any]:
        found = self.grads.get(leaf)
        if found is None:
            owner, source = leaf.variable, None
            if owner is not None and not isinstance(owner._data, SymbolBase):
                source = self.outside[id(owner)].source if self.inside(owner) is not owner else None
            before = leaf.grad
            if isinstance(source, (Argument, Captured)):
                if before is not None:
                    self.gradients.setdefault(id(before), source)
            else:
                source = None
            found = self.grads[leaf] = source, before, before
        return found

    # ---- memory -----------------------------------------------------------------------------------------------

    def shares(self, op: Any, parent: Any, params: dict[str, Any], out: Any) -> bool:
        """Whether ``out``, which a view op makes of ``parent``, is in its memory, as far as strides tell."""
        if type(out._data) is not Symbol:  # what vmap hides
            return True
        if self.guide is not None:
            return out._data.value not in self.guide.copies
        data = self.layout(parent)
        found = data if isinstance(data, SymbolBase) else op.compute((data,), params)
        shared = isinstance(found, SymbolBase) or view.shares(found, data)
        if not shared:
            self.copies.add(out._data.value)
        return shared

    def layout(self, tensor: Any) -> Any:
        """An array with the strides that a tensor has; what is computed lies in order."""
        inner = self.inside(tensor)
        if isinstance(inner, View):
            return follow(self.layout(inner._base), inner._steps)
        if id(inner) in self.inner:
            return self.inner[id(inner)].tensor._data
        data = inner._data
        if not isinstance(data, Symbol):
            return data
        backend = backends.by_device_type(data.value.place[0])
        with backend.device_scope(data.value.place[1]):
            return backend.hollow(data.value.shape, data.value.dtype)

    def array(self, value: Value) -> Any:
        """What a value is in this run of the function, with all that it depends on."""
        events = self.events
        makers = {v: i for i, e in enumerate(events) if isinstance(e, Equation) for v in e.outputs}
        waiting, needed = [value], set[int]()
        while waiting:
            v = waiting.pop()
            if v in self.likes:
                self.known[v] = self.array(self.likes[v])
            if v not in self.known and makers[v] not in needed:
                needed.add(makers[v])
                waiting += events[makers[v]].values
        for i in sorted(needed):
            equation = events[i]
            assert isinstance(equation, Equation)
            result = run(equation, self.known)
            self.known.update(zip(equation.outputs, result if equation.several else (result,), strict=True))
        return self.known[value]

    def remember_generators(self, params: dict[str, Any]) -> None:
        for p in params.values():
            if isinstance(p, Generator) and id(p) not in self.generators:
                self.generators[id(p)] = p, p.get_state()

    def restore_generators(self) -> None:
        """Take back what was drawn to see what ops make."""
        for generator, state in self.generators.values():
            generator.set_state(state)
        self.generators.clear()

    # ---- what a trace cannot do -------------------------------------------------------------------------------

    def written(self, tensor: Any) -> None:
        """Nothing waits for a write here."""

    def reveal(self, tensor: Tensor, what: str) -> Any:
        """A TraceError: here are no values."""
        raise TraceError(
            f"{what} needs a value, but inside a traced function values are known only when the compiled program "
            f"runs, at {messages.user_line()}. Return the tensor and read it outside, branch with leafgrad.where, "
            "or compute with the tensor itself"
        )

    def import_array(self, what: str) -> None:
        """A TraceError: the array would become a part of the program."""
        raise TraceError(
            f"{what} inside a traced function would bake the array into the program, at {messages.user_line()}. "
            "Make the tensor outside and pass it in"
        )

    def interrupt(self, what: str) -> None:
        """A TraceError: no program can do that."""
        raise TraceError(f"{what}: not possible in a traced function, at {messages.user_line()}; do it outside of it")

    def replaced(self, tensor: Tensor, value: Tensor) -> Any:
        """Not reached: ``interrupt`` comes first."""
        raise AssertionError


def same_operand(a: Operand, b: Operand) -> bool:
    """Whether two operands are one value, or the same number."""
    return a is b if isinstance(a, Value) else same(a, b)


def is_exposed(array: Any) -> bool:
    """Whether others may hold the memory of a raw array."""
    return bool(carriers.EXPOSED) and id(carriers.memory_of(array)) in carriers.EXPOSED


def stale() -> TraceError:
    return TraceError(
        f"a tensor from an earlier trace, or of a trace in another thread, is used at {messages.user_line()}; return "
        "it from the traced function instead of storing it"
    )


def unknown_history(name: str) -> TraceError:
    return TraceError(
        f"{name}: an array that the program does not know, at {messages.user_line()}. backward() reached a graph that "
        "was recorded outside of the traced function: detach() what comes from there, or move its computation inside"
    )

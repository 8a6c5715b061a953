"""The Recorder: what the dispatch talks to while a step is recorded.

Ops are not computed: each is answered by a Symbol of its value. Tensors from outside stay as they are: what is done to
them is done to what stands for them here, so no other thread sees it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from leafgrad import backends, modes
from leafgrad.backends.place import place
from leafgrad.compile.ir import shapes
from leafgrad.compile.ir.draws import rewound
from leafgrad.compile.ir.graph import Equation, Operand, Value
from leafgrad.compile.ir.lengths import changed
from leafgrad.compile.ir.lines import user_line
from leafgrad.compile.ir.memory import is_exposed
from leafgrad.compile.ir.sources import Argument, Captured, Grad, Raw, Source
from leafgrad.compile.record import outside
from leafgrad.compile.record.ancestors import NUMBERS, Ancestors, Owner
from leafgrad.compile.record.dynamic import fix_views, takes_dynamic, with_dynamic
from leafgrad.compile.record.events import generators_in
from leafgrad.compile.record.forwards import changes
from leafgrad.compile.record.layouts import Layouts
from leafgrad.compile.record.outside import Outside
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import SymbolicNumber, fixed, holds, settled
from leafgrad.compile.record.watch import is_ours, unwatched
from leafgrad.ops.node import SEQ, GraphNode, Leaf, Node, Output, SymbolBase, TensorBase, Version
from leafgrad.ops.signature import as_now
from leafgrad.signals import held, interruptible
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import follow

R = TypeVar("R")
PLAIN = NUMBERS | {str, SymbolicNumber}  # of which no user's code is called


class Recorder(Layouts):
    """The Tracer that the dispatch talks to while a function is traced.

    Args:
        arguments: the tensors among the arguments.
    """

    fit: ClassVar[set[Any]] = set()  # ops that have been looked at
    differentiates = False  # whether any backward pass was recorded
    wary = False  # whether arrays that share memory with tensors may be read and written meanwhile

    def __init__(self, arguments: Sequence[Tensor]) -> None:
        self.arguments = {id(t): i for i, t in reversed(list(enumerate(arguments)))}
        self.given = list(arguments)
        _ = [t._node for t in arguments]  # of views whose base was written they are made anew, before the call
        self.born = next(SEQ)
        self.outside: dict[int, Outside] = {}  # by id of the tensor
        self.versions: dict[Version, Version] = {}  # in the trace, by those of tensors from outside
        self.grads: dict[Leaf, tuple[Owner | None, Any, Any]] = {}  # of leaves that were looked at: before, after
        self.gradients: dict[int, Owner] = {}  # by id of a tensor that was a .grad before
        self.tensors: list[weakref.ref[Tensor]] = []  # made here
        self.undos: list[Callable[[], None]] = []  # of what the Python does beside, in this part
        self.ancestors = Ancestors()
        self.failed = ""  # by what a program failed, so that tensors have no values
        super().__init__()

    # ---- what kinds of recorders do -----------------------------------------------------------------------------

    def unfit(self, op: Any) -> str | None:
        """Why a program cannot run an op; None if it can."""
        raise NotImplementedError

    def at_once(self, op: Any, args: tuple[Any, ...], params: dict[str, Any], why: str) -> Any:
        """What is done about an op that is unfit."""
        raise NotImplementedError

    def goes_outside(self, what: str) -> None:
        """``what`` reads an array or a node that was made outside of the call, which may be others at the next."""
        raise NotImplementedError

    def meet(self, found: Outside) -> None:
        """A tensor from outside is about to be read."""

    def knows(self, nodes: Sequence[GraphNode]) -> bool:
        """Whether what nodes from outside keep may be inputs of the program."""
        return False

    def differentiate(
        self, nodes: Sequence[GraphNode], through: Iterable[GraphNode], recorded: bool, act: Callable[[], None]
    ) -> None:
        """A backward pass, which finds what was written through ``t.data``. It is watched where it may call others."""
        self.differentiates = True
        self.go_through([node for node in through if type(node) is not Leaf], recorded)
        unwatched = all(map(is_ours_alone, nodes)) and not modes.get() & (modes.WATCH | modes.ANOMALY)
        self.run(None, (), modes.get(), act) if unwatched else act()

    def go_through(self, nodes: Sequence[GraphNode], recorded: bool) -> None:
        """A backward pass is about to go through nodes."""
        for node in nodes if self.unchecked else ():
            self.look_again(node)
        outside = [node for node in nodes if node.seq < self.born]
        if outside and (recorded or not self.knows(outside)):
            self.goes_outside("backward()")

    # ---- tensors ----------------------------------------------------------------------------------------------

    def inside(self, tensor: Any) -> Any:
        """What stands for a tensor; itself if it was made here."""
        data = tensor._data
        if type(data) is Symbol:
            if data.tracer is not self:
                raise data.stale()
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
        view, version = tensor._view, self.versions.get(tensor._writes)
        written = version is not None and version.count > 0
        node = tensor._history if written else self.node_of(tensor)
        apart = view is not None and view.root is not view.base._data  # the base has got other memory since
        lone = index is not None and view is not None and not written and id(view.base) not in self.outside
        if view is not None and not apart and not lone:
            inner = outside.view_in(tensor, self.memory_in(view.base), self.versions)
        else:
            inner = outside.stand_in(tensor, self.versions)
        self.outside[id(tensor)] = self.inner[id(inner)] = Outside(tensor, inner, source, node)
        return inner

    def node_of(self, tensor: Tensor) -> Any:
        """The node of a tensor from outside; that of a view is made anew there, if its base was written since."""
        with modes.untraced():
            return tensor._node

    def memory_in(self, tensor: Any) -> Any:
        """What stands for the memory that a tensor has until the program has run."""
        inner, found = self.inside(tensor), self.outside.get(id(tensor))
        return inner if found is None or found.before is None else found.before

    def alone(self, tensor: Any) -> Any:
        """The View that an argument is for which ``tensor`` stands without its base, or None."""
        found = self.inner.get(id(tensor))
        return None if found is None or tensor._view is not None else found.tensor._view

    def join(self, tensor: Any, history: bool) -> None:
        """The memory of which ``tensor`` is the owner is about to be written, and gets a ``history`` or not."""
        if self.numbers is not None:
            fix_views(self.alive(), tensor)

    def lift(self, tensor: Any) -> Any:
        """The Symbol of a tensor; one from outside becomes an input."""
        inner = self.inside(tensor)
        if inner._view is not None:
            return self.lift_view(inner)
        data = inner._data
        if isinstance(data, SymbolBase) and not self.wary:
            return data
        found = self.inner.get(id(inner))
        if isinstance(data, SymbolBase) and (found is None or found.written or not found.changed()):
            return data
        assert found is not None
        self.meet(found)
        array = found.tensor._data
        if self.wary and is_exposed(array):
            found.snapshot = array = array.copy()  # somebody may write it before the program reads it
        inner._data = symbol = self.input(array, found.source)
        found.base = symbol.value
        return symbol

    def lift_view(self, inner: Tensor) -> Any:
        view = inner._view
        root = self.lift(view.base)
        if view.root is not root or not isinstance(inner._data, SymbolBase):
            if getattr(inner._data, "level", 0) and all(ref() is not inner for ref in self.tensors):
                return follow(root, view.steps)  # of a batch, and kept by a node from outside: for that it stays
            inner._data = follow(root, view.steps)
            view.root = root
        return inner._data

    def made(self, tensor: Tensor) -> None:
        """``tensor`` was made here."""
        self.tensors.append(weakref.ref(tensor))

    def alive(self) -> list[Any]:
        """The tensors made here that somebody holds."""
        return [t for ref in self.tensors if (t := ref()) is not None]

    def changing(self, numbers: dict[str, Any]) -> None:
        """The numbers in a dict may be others at the next call."""
        if self.numbers is not None and not self.numbers.apart:
            self.numbers.declare(numbers)

    def number_of(self, tensor: Tensor, what: str) -> Any:
        """What stands for the element of a tensor that the program computes; None where it must be read at once."""
        return None if self.numbers is None else self.numbers.of(tensor, what)

    def unless_run(self, undo: Callable[[], None]) -> None:
        """``undo()`` takes back what the Python does from here on, if the program of it never runs."""
        self.undos.append(undo)

    def undo(self) -> None:
        """Take it back."""
        while self.undos:
            self.undos.pop()()

    # ---- ops --------------------------------------------------------------------------------------------------

    def trace(self, op: Any, args: tuple[Any, ...], params: dict[str, Any], flags: int) -> Any:
        """An op on tensors."""
        if self.numbers is not None:
            if not takes_dynamic(op, params) or flags & modes.BATCH or (flags & modes.GRAD and args[0].requires_grad):
                params = self.numbers.plain(params)
            args = fixed(args) if flags & modes.BATCH else self.numbers.ready(op, args, raw=False)
        return self.run(op, args, flags, partial(op.trace, args, params, flags))

    def run(self, function: Any, operands: Sequence[Any], flags: int, act: Callable[[], R]) -> R:
        """``act()``, watched only where it may call a user's code: in vmap, under hooks, of numbers and functions."""
        code = getattr(function, "__code__", None)
        if flags & (modes.BATCH | modes.PACK) or not (code is None or is_ours(code.co_filename)):
            return act()
        for a in operands:
            if type(a) not in PLAIN and not isinstance(a, TensorBase):
                return act()
        with unwatched():
            return held(act)

    def bind(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """An op on Symbols, numbers and raw arrays."""
        if self.numbers is not None:
            if (found := with_dynamic(self, op, args, params)) is not None:
                return found
            args, params = self.numbers.ready(op, args, raw=True), self.numbers.plain(params)
        why = None if op in self.fit else self.unfit(op)
        if why is None:
            self.fit.add(op)
        if not op.ours:
            params, why = as_now(params), why or changes(params)
        if why is not None:
            return self.at_once(op, fixed(args), {name: fixed(value) for name, value in params.items()}, why)
        with unwatched():
            return held(self.record, op, args, params)

    def record(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The same of an op that fits into a program."""
        operands = [self.operand(op, a) for a in args]
        if self.numbers is not None:
            self.follow_numbers(op, operands)
        return self.answer(self.equation(op, operands, params))

    def operand(self, op: Any, a: Any) -> Operand:
        """The value of an argument: what earlier parts computed and arrays that no Symbol stands for become inputs."""
        if isinstance(a, Symbol):
            if a.tracer is not self:
                raise a.stale()
            if a.value in self.waiting:
                self.known[a.value], self.sources[a.value] = self.waiting.pop(a.value), Raw()
            return a.value
        if hasattr(a, "dtype") and hasattr(a, "shape"):
            self.goes_outside("backward()" if op is None else op.name)
            return self.input(a.copy() if self.wary and is_exposed(a) else a, Raw()).value
        number: Operand = settled(a) if self.numbers is None else a  # of a recording of another thread
        return number

    def equation(self, op: Any, operands: list[Operand], params: dict[str, Any]) -> Equation:
        """The equation of an op, which itself is run only if nothing else tells what it makes."""
        try:
            made = shapes.predict(op, operands, params)
        except shapes.Unknown:
            params = self.of_this_length(operands, params)
            result = self.result(op, operands, params)
            results = self.values_of(result if type(result) is tuple else (result,), params)
            made = tuple(results) if type(result) is tuple else results[0]
        several = isinstance(made, tuple)
        outputs = made if isinstance(made, tuple) else (made,)
        return Equation(op, tuple(operands), params, outputs, user_line(), several)

    def of_this_length(self, operands: Sequence[Operand], params: dict[str, Any]) -> dict[str, Any]:
        """Parameters of an op that must run to tell what it makes: lengths are those of this call from here on."""
        for v in operands if self.numbers is not None else ():
            fixed(v.shape if isinstance(v, Value) else v)
        return {name: fixed(value) for name, value in params.items()}

    def result(self, op: Any, operands: Sequence[Operand], params: dict[str, Any]) -> Any:
        """What an op makes now, of which nothing is drawn."""
        arrays = tuple([self.array(v) if isinstance(v, Value) else v for v in operands])
        with rewound(generators_in(params)):
            return interruptible(op.compute, arrays, params if self.numbers is None else changed(params, settled))

    def values_of(self, arrays: Sequence[Any], params: dict[str, Any]) -> list[Value]:
        """What stands for results. Random numbers are other ones, if earlier draws have only been followed."""
        values = [Value(tuple(a.shape), a.dtype.name, place(a)) for a in arrays]
        if not generators_in(params):
            self.known.update(zip(values, arrays, strict=True))
        return values

    def create(self, op: Any, where: tuple[str, int], params: dict[str, Any]) -> Any:
        """An op without array arguments, on a device."""
        rule = op.shaping or (shapes.given_shape if is_ours(op.forward.__code__.co_filename) else shapes.unknown)
        if self.numbers is not None:
            params = {k: v if k in shapes.wanted(rule) else fixed(v) for k, v in params.items()}
        backend = backends.by_device_type(where[0])
        with backend.device_scope(where[1]), rewound(generators_in(params)):
            result = op.create(backend, changed(params, settled))
        (made,) = self.values_of((result,), params)
        if holds(params):
            made.shape = tuple(rule(**{name: params[name] for name in shapes.wanted(rule)}))
        return self.answer(Equation(op, (), params, (made,), user_line()))

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
            owner, source = leaf.owner(), None
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


def is_ours_alone(node: GraphNode) -> bool:
    """Whether a backward pass calls nothing but this package's code at a node."""
    return node.hooks is None and (
        type(node) in (Leaf, Output) or (type(node) is Node and getattr(node.op, "ours", False))
    )

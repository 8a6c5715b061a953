"""A call that is recorded, and done: its ops are computed together when it ends or somebody needs a value.

What it does to tensors waits until such a part of it ends; then memory, gradients and tensors become what they are in
an uncompiled call.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from leafgrad import backends, modes
from leafgrad.backends.place import place
from leafgrad.compile.ir.agreement import expect_agreement, is_checked
from leafgrad.compile.ir.effects import complete
from leafgrad.compile.ir.graph import Equation, Operand, Value
from leafgrad.compile.ir.lines import Line, Position, positions_in, user_line
from leafgrad.compile.ir.memory import is_exposed
from leafgrad.compile.ir.sources import Argument, Captured, KeptArray
from leafgrad.compile.record.ancestors import arrays_of
from leafgrad.compile.record.forwards import keeps_state
from leafgrad.compile.record.outside import Outside
from leafgrad.compile.record.part import PartRecorder
from leafgrad.compile.record.shared import can_share, hand_over, heir_of, owner
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import holds
from leafgrad.compile.record.unclosed import must_stay_closed
from leafgrad.compile.record.watch import is_ours
from leafgrad.errors import TraceError
from leafgrad.ops import dispatch
from leafgrad.ops.node import GraphNode, Leaf
from leafgrad.signals import interruptible
from leafgrad.tensor.inplace import overlaps, version
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import stand_in

# What tells where elements lie and with whom they are shared, not only what they are.
OF_MEMORY = frozenset("numpy() __dlpack__() data_ptr() untyped_storage() save() pickling t._base t._version".split())


class LazyRecorder(PartRecorder):
    """Records a call, and does what it does.

    Args:
        arguments: the tensors among the arguments.
        wary: whether NumPy code may meanwhile read and write memory of tensors.

    Attributes:
        careful: whether any op may raise an error by the numbers that it is given.
        tears: what ended a part, or needs Python at each call, and where.
        torn: called where Python is needed.
    """

    fit: ClassVar[set[Any]] = set()

    def __init__(self, arguments: Sequence[Tensor], wary: bool) -> None:
        super().__init__(arguments, wary)
        self.careful = backends.by_device_type("cpu").arithmetic_raises()
        self.strict = False  # whether a tear is an error
        self.code: frozenset[types.CodeType] = frozenset()  # of the function
        self.positions: set[Position] = set()  # in it, of what needs Python at each call
        self.goes_through = True  # whether backward passes through what was computed outside may be closed
        self.tears: list[tuple[str, Line]] = []
        self.torn: Callable[[], None] | None = None
        self.lone: list[Outside] = []  # arguments that are views, without their bases

    def tear(self, what: str) -> None:
        """Note that Python is needed at each call."""
        line = user_line()
        self.tears.append((what, line))
        if self.strict:
            raise must_stay_closed(what, line, "Return the tensor and read it outside, branch with leafgrad.where")
        self.positions |= positions_in(self.code)
        if self.torn is not None:
            self.torn()

    @contextmanager
    def untorn(self) -> Iterator[None]:
        """Within it values are read for no code of the user."""
        noted = self.tears, self.positions, self.strict, self.torn
        self.tears, self.positions, self.strict, self.torn = [], set(), False, None
        try:
            yield
        finally:
            self.tears, self.positions, self.strict, self.torn = noted

    # ---- what needs values ------------------------------------------------------------------------------------

    def reveal(self, tensor: Tensor, what: str) -> Any:
        """The array of a tensor, after everything that was recorded."""
        self.tear(what)
        if what in OF_MEMORY:
            return self.memory_itself(tensor)
        inner = self.inside(tensor)
        found = self.inner.get(id(inner))
        root = inner if inner._view is None else inner._view.base
        outer = self.inner.get(id(root))
        done = type(root._data) is Symbol and root._data.value in self.waiting
        if not done if outer is None else outer.written or outer.before is not None:
            self.flush()
        if found is None and self.lift(inner).value not in self.waiting:  # a view of what was written
            self.flush()
        return self.waiting[inner._data.value] if found is None else found.tensor._data

    def memory_itself(self, tensor: Tensor) -> Any:
        """The array that a tensor has in an uncompiled call, in the memory of its base: somebody may keep it."""
        self.wary = True
        self.flush()
        found = self.inner.get(id(self.inside(tensor)))
        if found is not None:  # what stands for it may be what was asked
            return found.tensor._data
        self.settle_memory(tensor)
        return tensor._data

    def knows(self, nodes: Sequence[GraphNode]) -> bool:
        """Whether they are behind tensors that the call has met, and keep nothing but arrays and numbers."""
        given = [
            (o.source, o.node)
            for o in self.outside.values()
            if isinstance(o.source, Argument | Captured) and o.node is not None and type(o.node) is not Leaf
        ]
        if not self.goes_through or not self.ancestors.know(nodes, given):
            return False
        arrays = [array for node in nodes for array in arrays_of(node)]
        if self.wary and any(map(is_exposed, arrays)):
            return False
        arrays += [self.known[symbol.value] for symbol in self.behind.values() if symbol.value in self.known]
        written = {id(dispatch.memory_of(o.tensor._data)) for o in self.outside.values() if o.written}
        if any(id(dispatch.memory_of(array)) in written for array in arrays):  # which the program writes at its end
            self.ancestors.restore(freed=False)
            return False
        if any(o.written for t in self.ancestors.leaves if (o := self.outside.get(id(t)))):
            return False
        self.unless_run(self.ancestors.restore)
        self.ancestors.lift(nodes, self.kept)
        return True

    def kept(self, array: Any, source: KeptArray, leaf: Any) -> Symbol:
        """The Symbol of an array that a node keeps, in the memory of a leaf perhaps."""
        if leaf is not None:
            found: Symbol = self.lift(leaf)
            return found
        if source not in self.behind:
            self.behind[source] = self.input(array, source)
        return self.behind[source]

    def go_through(self, nodes: Sequence[GraphNode], recorded: bool) -> None:
        """What a backward pass reads of a graph outside has been written by then."""
        torn = len(self.tears)
        super().go_through(nodes, recorded)
        if len(self.tears) > torn:
            self.flush()

    def goes_outside(self, what: str) -> None:
        """Python is needed at each call to see what graph that is."""
        self.tear("backward() through what was computed outside")

    def unfit(self, op: Any) -> str | None:
        """Why an op runs by itself: its forward has state, or the shape of what it makes may depend on values."""
        if (state := keeps_state(op)) is not None:
            return f"in whose forward {state}"
        known = op.shaping is not None or is_ours(op.forward.__code__.co_filename)
        return None if known else "of whose result nothing tells the shape"

    def equation(self, op: Any, operands: list[Operand], params: dict[str, Any]) -> Equation:
        """An op that may refuse elements sees them now, so that its error comes where it does in an uncompiled call."""
        made = super().equation(op, operands, params)
        if (made.raises or not op.ours or self.careful) and made.outputs[0] not in self.known:
            try:
                found = self.result(op, operands, params)
                if is_checked(op) and not any(holds(v.shape) for v in made.outputs):
                    expect_agreement(made, found)
                self.known.update(zip(made.outputs, found if made.several else (found,), strict=True))
            except Exception:
                with suppress(TraceError):
                    self.tear(f"an error of op {op.name!r}")
                raise
        return made

    def at_once(self, op: Any, args: tuple[Any, ...], params: dict[str, Any], why: str) -> Any:
        """The op runs once in each call, in its place."""
        self.interrupt(f"op {op.name!r}, {why}")
        raw = tuple([self.waiting[a.value] if isinstance(a, Symbol) else a for a in args])
        with modes.untraced():
            result = interruptible(op.compute, raw, params)
        return tuple(map(self.symbol_of, result)) if type(result) is tuple else self.symbol_of(result)

    def symbol_of(self, array: Any) -> Symbol:
        """A symbol for what was computed already."""
        value = Value(tuple(array.shape), array.dtype.name, place(array))
        self.waiting[value] = array
        return self.symbol(value)

    def import_array(self, what: str) -> None:
        """The tensor is one from outside, new at each call."""
        self.wary = True
        self.tear(what)

    def interrupt(self, what: str) -> None:
        """All that was recorded is done now."""
        self.tear(what)
        self.flush()

    def set_data(self, tensor: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Which tensor gets the memory of which by ``tensor.data = value``: what stands for it, if that can wait."""
        inner = self.inside(tensor)
        found = self.inner.get(id(inner))
        known = found is None or (
            found.tensor._view is None
            and isinstance(found.source, (Argument, Captured))
            and not (self.wary and is_exposed(found.tensor._data))
        )
        new = known and can_share(inner, value)
        if new and value._data.value not in self.sources and value._data.value not in self.waiting:
            self.take_away(inner)
            self.sharing.add(inner, value)
            if found is not None:
                self.writes.append((len(self.equations), self.inner[id(inner)], value._data.value))
            return inner, value
        self.interrupt("t.data = ...")
        self.reveal(value, "t.data = ...")
        if id(self.inside(value)) not in self.inner:
            self.settle_memory(value)
        if found is None:
            self.take_away(inner)
        else:
            heir = dispatch.alias(tensor._data, tensor._node)
            hand_over(self.alive(), tensor, heir)
            self.release(tensor, heir)
        return tensor, dispatch.alias(value._data)

    def take_away(self, inner: Tensor) -> None:
        """``inner`` is about to get other memory; what it had is that of another tensor from now on."""
        tensors = [*self.alive(), *(o.inner for o in self.outside.values())]
        heir = heir_of(inner)
        hand_over(tensors, inner, heir)
        self.sharing.replace(inner, heir)
        found = self.inner.get(id(inner))
        if found is None or found.before is not None:
            return
        tensor = found.tensor
        found.tensor, found.inner = dispatch.aliases([tensor._data])[0], heir
        found.tensor._history, found.tensor._writes = tensor._history, version(tensor)
        hand_over(tensors, tensor, found.tensor)
        self.outside[id(found.tensor)] = self.inner[id(heir)] = found
        new = Outside(tensor, inner, found.source, found.node, before=heir)
        self.outside[id(tensor)] = self.inner[id(inner)] = new

    def reshaped(self, tensor: Tensor, what: str, change: Callable[[], Any]) -> None:
        """``tensor``, from outside, takes another shape, now; the views of it stay what they are."""
        self.interrupt(what)
        own, before = tensor._view is None, dispatch.alias(tensor._data)
        with modes.untraced():
            change()
        self.release(tensor, tensor._view.base if own and tensor._view is not None else before)

    def release(self, tensor: Tensor, heir: Tensor) -> None:
        """What stands for ``tensor`` stands from now on for ``heir``, which has the memory that it had."""
        found = self.outside.pop(id(tensor), None)
        if found is None:
            return
        self.pass_on(found)
        if found.inner._view is not None:
            self.inner.pop(id(found.inner))
            return
        found.tensor, found.source = heir, Captured(heir)
        self.outside[id(heir)] = found

    def written(self, tensor: Tensor, old: Symbol) -> None:
        """Memory that others hold as an array is written at once."""
        super().written(tensor, old)
        tensor = owner(tensor)
        self.sharing.written(tensor)
        found = self.inner.get(id(tensor))
        if found is not None:
            self.writes.append((len(self.equations), found, tensor._data.value))
            if found.before is not None:
                return
            if overlaps(found.tensor._data):
                self.interrupt("a write into a tensor, of which several elements are in one place,")
            elif self.shared(found) or (self.wary and is_exposed(found.tensor._data)):
                self.flush()

    def meet(self, found: Outside) -> None:
        """A tensor is about to be read: what was written to its memory through others comes first."""
        group = self.owners.setdefault(id(dispatch.memory_of(found.tensor._data)), [])
        if any(o.written and found.overlaps(o) for o in group):
            self.flush()
        group.append(found)

    def enter(self, tensor: Tensor) -> Tensor:
        """Let something stand for a tensor from outside."""
        inner = super().enter(tensor)
        view = self.alone(inner)
        if view is not None and not view.detached and view.root is view.base._data:
            self.lone.append(self.inner[id(inner)])
        return inner

    def join(self, tensor: Tensor, history: bool) -> None:
        """What stands for arguments that are views of the memory becomes views of what stands for their base."""
        super().join(tensor, history)
        same = [o for o in self.lone if o.inner._writes is tensor._writes and o.inner._history is o.node]
        joining = [o for o in same if history or o.node is not None]
        if not joining:
            return
        self.interrupt("a write into an argument that is a view, or of which another one is a view,")
        for o in joining:
            self.lone.remove(o)
            if o.base is not None:  # which others may hold
                self.waiting[o.base] = dispatch.copied(self.waiting[o.base], "K")
            base = self.memory_in(o.tensor._view.base)
            inner, o.base, o.node = stand_in(o.inner, o.tensor, base), None, self.node_of(o.tensor)
            inner._history, inner._view.seen = o.node, base._writes.seq
            for t in self.alive():
                if t._view is not None and t._view._base is inner:
                    t._view.of(inner)

    def shared(self, found: Outside) -> bool:
        """Whether the memory of a tensor is read or written through another one, too."""
        return any(map(found.overlaps, self.owners.get(id(dispatch.memory_of(found.tensor._data)), ())))

    # ---- the end of the call ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Do what is left, and make all tensors that somebody holds ordinary ones."""
        self.ancestors.settle()
        self.ending = True
        try:
            self.flush()
        finally:
            if not self.sources and not self.equations:  # else an op failed, and there is nothing to give
                complete([self.give_gradients, self.settle])

    def fail(self, error: BaseException) -> None:
        """Do what was recorded before the function raised an error. One of a signal is not lost for another one.

        Where there is no memory for what is drawn, or for what the function makes itself, nothing is written either.
        """
        self.ancestors.settle()
        if self.given_up or self.failed:  # of a part that failed what came before is done
            return
        if isinstance(error, MemoryError):
            self.lose(error, True)
        elif isinstance(error, Exception):
            self.finish()
        else:
            with suppress(Exception):  # it may have come between two lines of the recorder
                self.finish()

"""A part of a recorded call, and its end: what was recorded is computed, and written, and recording begins anew."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

from leafgrad import modes
from leafgrad.compile.ir.draws import generators, restore, states
from leafgrad.compile.ir.effects import complete
from leafgrad.compile.ir.graph import Graph, Value
from leafgrad.compile.ir.lengths import changed
from leafgrad.compile.ir.memory import is_exposed, laid_out
from leafgrad.compile.ir.replay import ReplayProgram, run_equation
from leafgrad.compile.ir.sources import Given, Source
from leafgrad.compile.record.events import hollow
from leafgrad.compile.record.outside import Outside
from leafgrad.compile.record.settle import Settler
from leafgrad.compile.record.shared import Shared, set_memory
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import settled
from leafgrad.compile.record.watch import unwatched
from leafgrad.errors import CompileError
from leafgrad.ops import dispatch
from leafgrad.ops.node import SymbolBase
from leafgrad.signals import held, interruptible, raised_by_handler
from leafgrad.tensor.inplace import overlaps
from leafgrad.tensor.tensor import Tensor


class PartRecorder(Settler):
    """Records a call in parts.

    Args:
        arguments: the tensors among the arguments.
        wary: whether NumPy code may meanwhile read and write memory of tensors.

    Attributes:
        ran: whether a part of the call is done.
        given_up: whether nothing is written of what was recorded last.
        ending: whether the function is over.
        undoable: whether somebody can take back what the function itself has done.
        owners: tensors from outside that were read, by whose memory they show.
        writes: what is written, and after how many equations of this part.
    """

    def __init__(self, arguments: Sequence[Tensor], wary: bool) -> None:
        super().__init__(arguments)
        self.wary = wary
        self.ran = False
        self.given_up = False
        self.ending = False
        self.undoable = False
        self.owners: dict[int, list[Outside]] = {}
        self.writes: list[tuple[int, Outside, Value]] = []
        self.sharing = Shared()

    @property
    def can_be_undone(self) -> bool:
        """Whether the call may end as if it had not begun."""
        return self.undoable and not self.ran

    def beware(self) -> None:
        """Code begins of which nobody knows what it reads: arrays that show the memory of tensors, perhaps."""
        if not self.wary and any(is_exposed(o.tensor._data) for o in self.outside.values()):
            self.flush()
        self.wary = True

    def meanwhile(self) -> None:
        """Something is called of which nobody knows what it does: another thread may go on by it."""
        if self.equations or self.writes:
            self.flush()

    def flush(self) -> None:
        """Compute what was recorded, as far as somebody holds it, and write what was written."""
        held(self.end_part)

    def end_part(self) -> None:
        """The same. To compute may take its time, so signals may end it, but where the call is to be done anyway."""
        token = modes.FLAGS.set(modes.get() & ~(modes.TRACE | modes.GRAD | modes.BATCH))
        try:
            writes = [o for o in self.outside.values() if o.inner._view is None and o.written]
            given = [o for o in self.outside.values() if o.before is not None]
            alive = [s for ref in self.symbols if (s := ref()) is not None]
            made = {v for e in self.equations for v in e.outputs}
            for e in self.equations if self.numbers is not None else ():
                e.params = changed(e.params, settled)  # what runs in parts is of this length
            wanted = list(dict.fromkeys([s.value for s in alive if s.value in made]))
            try:
                written = {o.base: o.inner._data.value for o in writes if o.base is not None}
                waits = self.ending and not self.can_be_undone
                with unwatched():
                    found = self.known | (self.computed(wanted) if waits else interruptible(self.computed, wanted))
            except BaseException as error:
                if (of_handler := raised_by_handler(error)) and not (waits or self.can_be_undone):
                    raise  # it is computed at the end of the call
                self.lose(error, of_handler or isinstance(error, (CompileError, MemoryError)))
                if not self.given_up:
                    self.run_up_to_error()
                raise
            before = {s.value for s in alive} & written.keys()  # somebody needs what is about to be overwritten
            found |= {v: dispatch.copied(found[v] if v in found else self.waiting[v], "K") for v in before}
            steps = [partial(self.overwrite, o, o.inner._data.value, found) for o in (*writes, *given)]
            complete([*steps, partial(self.next_part, alive, found)])
        finally:
            modes.FLAGS.reset(token)

    def computed(self, wanted: Sequence[Value]) -> dict[Value, Any]:
        """The arrays of some values of this part."""
        if not wanted and not any(e.must_run for e in self.equations):
            return {}
        inputs: dict[Value, Source] = {v: Given(i) for i, v in enumerate(self.sources)}
        graph = Graph(inputs, tuple(self.equations), tuple(wanted))
        start = states(generators(graph))
        try:
            arrays = ReplayProgram(graph)([self.known[v] for v in inputs])
        except BaseException:
            restore(start)
            raise
        orders = [self.orders.get(v) for v in wanted]
        strides = [None if o is None else hollow(v, o).strides for v, o in zip(wanted, orders, strict=True)]
        return dict(zip(wanted, map(laid_out, arrays, strides), strict=True))

    def lose(self, error: BaseException, all_of_it: bool) -> None:
        """What was recorded will never be computed; of ``all_of_it`` nothing is written."""
        self.failed, self.given_up = f"{type(error).__name__}: {error}", all_of_it
        self.undo()

    def overwrite(self, o: Outside, value: Value, found: dict[Value, Any]) -> None:
        """Put what was computed into the memory of a tensor from outside, or make it that memory."""
        array = found[value] if value in found else self.waiting[value]
        data = o.tensor._data
        if o.before is not None:
            set_memory(o.tensor, array)
        elif overlaps(data):
            old, new = data.copy().view("u1"), array.copy().view("u1")  # bits, which tell 0.0 from -0.0
            changed = (old != new).reshape(*data.shape, -1).any(-1)  # the others lie where one of these does
            data[changed] = array[changed]
        else:
            dispatch.overwrite(data, array)
        o.count()

    def run_up_to_error(self) -> None:
        """One of the ops fails: write what was written before it, and raise what it raises."""
        known = {v: array for v, array in self.known.items() if v in self.sources}
        for i, e in enumerate(self.equations):
            try:
                result = run_equation(e, known)
            except Exception as error:
                error.add_note(f"in the compiled step at {e.line}")
                last = {id(o): (o, value) for at, o, value in self.writes if at <= i}
                complete([partial(self.overwrite, o, value, known) for o, value in last.values()])
                raise
            known.update(zip(e.outputs, result if e.several else (result,), strict=True))

    def next_part(self, alive: list[Symbol], found: dict[Value, Any]) -> None:
        """Let symbols that somebody holds stand for arrays, which become inputs where they are used again."""
        self.ran = True
        self.writes.clear()
        self.undos.clear()
        added: list[Symbol] = []
        memory: dict[Value, Value] = {}  # what stood and stands for memory that was not written, and may be yet
        for o in self.outside.values():
            o.count()
            if o.before is not None:
                o.base, o.before = o.inner._data.value, None
                self.owners.setdefault(id(dispatch.memory_of(o.tensor._data)), []).append(o)
            if o.base is not None and o.inner._view is None:
                if self.wary and is_exposed(o.tensor._data):  # to be read anew at each use
                    o.inner._data, o.base = o.tensor._data, None
                    continue
                symbol = Symbol(self, like(o.inner._data.value))
                if not o.written:
                    memory[o.base] = symbol.value
                o.inner._data, o.base = symbol, symbol.value
                self.waiting[o.base] = o.tensor._data
                added.append(symbol)
        for s in alive:
            if s.value in memory:
                s.value = memory[s.value]
            elif s.value in found:
                value = like(s.value)
                self.waiting[value] = found[s.value]
                s.value = value
        for t in self.alive():
            if t._view is not None and isinstance(t._data, SymbolBase):
                t._view.root = None
        for group in self.sharing.alive():
            for t in group:
                if id(t) not in self.inner:
                    t._data = self.settled(t._data)  # one array for all
                    self.settle_memory(t)
        self.sharing = Shared()
        self.begin()
        self.symbols = [weakref.ref(s) for s in (*alive, *added)]


def like(value: Value) -> Value:
    return Value(value.shape, value.dtype, value.place)

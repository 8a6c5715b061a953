"""How tensors of a recorded call lie in memory, which no array tells yet: strides, views, what was written."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from leafgrad.compile.ir.graph import Value
from leafgrad.compile.ir.lengths import Length, changed
from leafgrad.compile.record.events import Events, hollow
from leafgrad.compile.record.outside import Outside
from leafgrad.compile.record.shared import owner
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import SymbolicNumber, compared, fixed, holds, settled
from leafgrad.ops import dispatch
from leafgrad.ops.node import SymbolBase, TensorBase
from leafgrad.tensor import view
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import follow


class Decision(NamedTuple):
    """Whether the result of an op is in the memory of a view, to which ``steps`` lead from a value of some order."""

    value: Value
    order: tuple[int, ...] | None
    steps: tuple[Any, ...]
    op: Any
    params: dict[str, Any]
    found: bool

    def at(self, change: Callable[[Any], Any]) -> Decision:
        """The same at other sizes."""
        value = Value(tuple(map(change, self.value.shape)), self.value.dtype, self.value.place)
        return self._replace(value=value, steps=changed(self.steps, change), params=changed(self.params, change))

    def lengths(self) -> list[Length]:
        """The lengths in it."""
        found: list[Length] = []
        self.at(lambda part: found.append(part) if type(part) is Length else part)
        return found

    def holds(self) -> bool:
        """Whether it is so."""
        data = follow(hollow(self.value, self.order), self.steps)
        return lies_in(self.op, data, self.params) is self.found


def lies_in(op: Any, data: Any, params: dict[str, Any]) -> bool:
    """Whether what an op makes of an array is in its memory."""
    try:
        return view.shares(op.compute((data,), params), data)
    except MemoryError:  # for a copy
        return False


class Layouts(Events):
    """What a recorder knows of memory.

    Attributes:
        inner: tensors from outside, by id of what stands for them.
        waiting: arrays of earlier parts, inputs when used again.
        orders: of dimensions in memory, outermost first, for values that do not lie in C order.
        unchecked: of what was written through ``t.data``, the elements before and since.
        decisions: which views are in the memory of others, where that depends on sizes.
    """

    def __init__(self) -> None:
        self.inner: dict[int, Outside] = {}
        self.waiting: dict[Value, Any] = {}
        self.orders: dict[Value, tuple[int, ...]] = {}
        self.unchecked: dict[Value, Any] = {}
        self.decisions: list[Decision] = []
        super().__init__()

    def inside(self, tensor: Any) -> Any:
        """What stands for a tensor; itself if it was made here."""
        raise NotImplementedError

    def lift(self, tensor: Any) -> Any:
        """The Symbol of a tensor; one from outside becomes an input."""
        raise NotImplementedError

    def written(self, tensor: Tensor, old: Symbol) -> None:
        """Memory was written, whose elements were ``old``."""
        base = owner(tensor)
        (was, _), (new, _) = dispatch.opened(old), dispatch.opened(base._data)
        if type(was) is not Symbol or len(was.shape) != len(new.shape):  # what vmap hides
            return
        before = self.earlier(was.value)
        order = None if before is None else dispatch.order_of_operands(settled(was.shape), [before])
        self.lay_out(new, self.orders.get(was.value, order))
        if was is old and tensor._writes is not base._writes:
            self.unchecked[old.value] = base._data

    def shares(self, op: Any, parent: Any, params: dict[str, Any]) -> bool:
        """Whether what a view op makes of ``parent`` is in its memory, as far as strides tell."""
        data = self.layout(parent)
        found = lies_in(op, data, changed(params, settled))
        if not (op.never_copies or isinstance(data, SymbolBase) or data.flags.c_contiguous):
            self.decide(parent, op, params, found)
        return found

    def decide(self, parent: Any, op: Any, params: dict[str, Any], found: bool) -> None:
        """Note a decision on the memory of a view; it is bound to these sizes if others decide on strides, too."""
        base, steps = self.inside(parent), tuple[Any, ...]()
        while base._view is not None:
            base, steps = self.inside(base._view.base), (*base._view.steps, *steps)
        value = base._data.value if type(base._data) is Symbol else None
        if value is not None and (holds(value.shape) or value not in self.sources):
            self.decisions.append(Decision(value, self.orders.get(value), steps, op, params, found))
        else:
            fixed([params, *[params for _, params in steps]])

    def layout(self, tensor: Any) -> Any:
        """An array with the strides that a tensor has; inside vmap a batch of them."""
        inner = self.inside(tensor)
        for n in inner._data.shape if self.numbers is not None else ():
            if type(n) is SymbolicNumber:  # strides say nothing of a dimension of one element
                compared(operator.gt, "({} > {})", n, 1)
        if inner._view is not None:
            return follow(self.layout(inner._view.base), changed(inner._view.steps, settled))
        found = self.inner.get(id(inner))
        if found is not None and found.before is None:  # it has not got other memory here
            return found.tensor._data
        return self.array_like(inner._data)

    def array_like(self, data: Any) -> Any:
        """An array with the strides of raw ``data``."""
        if not isinstance(data, Symbol):
            return data.of(self.array_like) if isinstance(data, SymbolBase) else data
        found = self.earlier(data.value)
        return hollow(data.value, self.orders.get(data.value)) if found is None else found

    def earlier(self, value: Value) -> Any:
        """The array that a value had when this part began; None if it is computed here."""
        return self.known[value] if value in self.sources else self.waiting.get(value)

    def lay_out(self, symbol: Any, order: Sequence[int] | None) -> None:
        """What was just computed has its dimensions in this order in memory; None: in their own."""
        data, _ = dispatch.opened(symbol)
        if type(data) is Symbol:
            self.orders.pop(data.value, None)
            if order is not None:
                self.orders[data.value] = dispatch.behind_batches(order, len(data.shape))

    def lay_out_as(self, symbol: Any, operands: Sequence[Any]) -> None:
        """The result of an elementwise op lies in memory as these operands say."""
        data, _ = dispatch.opened(symbol)
        if type(data) is not Symbol or all(map(self.is_in_order, operands)):
            return
        given = [a for a in operands if a is not None]
        arrays = [dispatch.sample(self.layout(a) if isinstance(a, TensorBase) else a) for a in given]
        if all(a is not None for a in arrays):
            self.lay_out(symbol, dispatch.order_of_operands(settled(symbol.shape), arrays))

    def is_in_order(self, operand: Any) -> bool:
        """Whether it is a number, or was computed and lies in C order."""
        if not isinstance(operand, TensorBase):
            return not getattr(operand, "ndim", 0)
        data, _ = dispatch.opened(operand._data)
        computed = type(data) is Symbol and operand._view is None and id(operand) not in self.inner
        return computed and data.value not in self.orders and self.earlier(data.value) is None

    def strides(self, tensor: Any) -> tuple[int, ...] | None:
        """Those of a tensor that was made here, in bytes; None if it lies in order."""
        array = self.layout(tensor)
        return None if isinstance(array, SymbolBase) or array.flags.c_contiguous else tuple(array.strides)

    def look_again(self, node: Any) -> None:
        """Let what a node keeps be what its memory is by now."""
        kept = getattr(node, "saved", None)
        for t in kept if type(kept) is tuple else ():
            if isinstance(t, TensorBase) and t._view is not None:
                self.lift(t)
        outs = getattr(node, "out", None)
        if type(outs) is tuple:
            node.out = tuple(map(self.latest, outs))
        elif outs is not None:
            node.out = self.latest(outs)

    def latest(self, out: Any) -> Any:
        while type(out) is Symbol and out.value in self.unchecked:
            out = self.unchecked[out.value]
        return out

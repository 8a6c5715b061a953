"""Which axis of a value runs along the batch: what an op's chunk rule is given, and what it answers.

A compiled step is run in chunks of the rows of its batch. Where an op declares by ``op.chunk(rule)`` how rows flow
through it, it runs within a chunk, on some of the rows; without a rule, or where the rule returns None, it waits for
all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leafgrad.compile.ir.graph import Equation, Operand, Value
from leafgrad.errors import CompileError
from leafgrad.ops.op import Op
from leafgrad.ops.traits import dims

Axes = Sequence[int | None]  # per input: the axis on which it carries the batch


@dataclass(frozen=True)
class Carried:
    """What an equation does to the batch.

    Attributes:
        axis: the results' batch axis; None if the batch is summed away.
        slices: positions of inputs that do not carry the batch but must be sliced, with the axis.
        resized: the parameter ``shape`` is the result's, and shrinks to the chunk.
    """

    axis: int | None
    slices: dict[int, int] = field(default_factory=dict)
    resized: bool = False


class ChunkCall:
    """A call of an op in which some inputs carry the batch, as the op's chunk rule is given it.

    A rule returns what one of the methods returns: where the batch is in the result, or that results of chunks add up.
    Each method returns None where that cannot be said, as the rule does where the op needs all rows at once::

        row_norm.chunk(lambda call: call.along())  # works along its parameter dim
        dot.chunk(lambda call: call.reduced(additive=True))  # a sum over dim
        embed.chunk(lambda call: call.on(0, 0, None))  # rows of x; the table is whole

    Axes are counted from the front.

    Attributes:
        op: what is called.
        inputs: its arguments: values with ``shape``, ``ndim`` and ``dtype`` (a name), numbers, or None.
        params: its parameters, all of them.
        out: the result, or the first of several.
        axes: for each input the axis on which it carries the batch, or None.
        length: how many rows the batch has.
    """

    def __init__(self, equation: Equation, axes: Axes, length: int) -> None:
        self.op: Op = equation.op
        self.inputs: tuple[Operand, ...] = equation.inputs
        self.params: dict[str, Any] = equation.params
        self.out: Value = equation.out
        self.outputs: tuple[Value, ...] = equation.outputs
        self.axes = tuple(axes)
        self.length = length

    # ---- answers ------------------------------------------------------------------------------------------------

    def on(self, axis: int, *inputs: int | None, resized: bool = False) -> Carried | None:
        """The results have the batch on ``axis``, and the inputs on these axes; None: that input is whole.

        An input that does not carry the batch, but has as many rows there, is cut into chunks, too.

        Args:
            inputs: an axis for each input. Those that are left out are whole.
            resized: the parameter ``shape`` is the shape of the result, and is that of a chunk's.

        Raises:
            CompileError: a result has not as many rows there.
        """
        slices = self._slices(inputs)
        if slices is None:
            return None
        for out in self.outputs:
            if not 0 <= axis < out.ndim or out.shape[axis] != self.length:
                raise CompileError(
                    f"op {self.op.name!r}, chunk rule from {self.op.origins.get('chunk')}: the result should have the "
                    f"batch of {self.length} rows on axis {axis}, but its shape is {out.shape}"
                )
        return Carried(axis, slices, resized)

    def summed(self, *inputs: int | None) -> Carried | None:
        """The results of chunks add up to the result; the inputs have the batch on these axes; None: it is whole."""
        slices = self._slices(inputs)
        return None if slices is None or len(self.outputs) > 1 else Carried(None, slices)

    def kept(self) -> Carried | None:
        """The batch is in the result where it is in the first input; the others are whole."""
        axis = self.axes[0]
        return None if axis is None else self.on(axis, axis)

    def aligned(self, whole: Iterable[int] = ()) -> Carried | None:
        """The inputs broadcast, and the batch is in the result where it is in them: elementwise, or nearly so.

        Args:
            whole: dimensions of the broadcast inputs in which the op looks at all elements: they cannot be cut.
        """
        found = self.broadcast()
        if found is None or found[0] in {d % self._ndim() for d in whole}:
            return None
        return self.on(found[0], *found[1])

    def along(self) -> Carried | None:
        """The inputs broadcast, and the op needs all elements of the dimensions that its parameter ``dim`` names."""
        return self.aligned(dims(self.params["dim"], self._ndim()))

    def reduced(self, additive: bool = False) -> Carried | None:
        """The inputs broadcast, and the dimensions that ``dim`` names go, or keep size 1 where ``keepdim`` is true.

        Args:
            additive: the results of parts of the rows add up to that of all, as a sum does, and a mean does not.
        """
        found = self.broadcast()
        if found is None:
            return None
        (axis, places), ndim = found, self._ndim()
        gone = {d % ndim for d in dims(self.params["dim"], ndim)}
        if axis in gone:
            return self.summed(*places) if additive else None
        return self.on(axis if self.params.get("keepdim", False) else axis - sum(d < axis for d in gone), *places)

    # ---- to find them -------------------------------------------------------------------------------------------

    def broadcast(self, first: int = 0) -> tuple[int, tuple[int | None, ...]] | None:
        """Where the batch is when the inputs from number ``first`` on have been broadcast, and where in each of these.

        None if they carry it in different places.
        """
        inputs, axes = self.inputs[first:], self.axes[first:]
        ndim = self._ndim(first)
        found = {ndim - v.ndim + a for v, a in zip(inputs, axes, strict=True) if isinstance(v, Value) and a is not None}
        if len(found) != 1:
            return None
        (axis,) = found
        before = [axis - ndim + v.ndim if isinstance(v, Value) else -1 for v in inputs]
        return axis, tuple([
            a if isinstance(v, Value) and a >= 0 and v.shape[a] != 1 else None
            for v, a in zip(inputs, before, strict=True)
        ])  # fmt: skip

    def _ndim(self, first: int = 0) -> int:
        return max(v.ndim for v in self.inputs[first:] if isinstance(v, Value))

    def _slices(self, inputs: Axes) -> dict[int, int] | None:
        """The inputs that are to be cut though they do not carry the batch; None if some do not fit."""
        slices: dict[int, int] = {}
        wanted = (*inputs, *[None] * (len(self.inputs) - len(inputs)))
        for i, (v, axis, want) in enumerate(zip(self.inputs, self.axes, wanted, strict=True)):
            if not isinstance(v, Value) or axis == want:
                continue
            if axis is not None or want is None or want >= v.ndim or v.shape[want] != self.length:
                return None
            slices[i] = want
        return slices


def carried(equation: Equation, axes: Axes, length: int) -> Carried | None:
    """What ``equation`` does to a batch of ``length`` that its inputs carry on ``axes``; None: it needs them whole."""
    op = equation.op
    if op.chunking is None or "random" in op.traits:
        return None
    call = ChunkCall(equation, axes, length)
    wrong = partial("op {!r}, chunk rule from {}: {}".format, op.name, op.origins.get("chunk"))
    try:
        found = op.chunking(call)
    except CompileError:
        raise
    except Exception as error:
        raise CompileError(wrong(f"{type(error).__name__}: {error}")) from error
    if found is not None and not isinstance(found, Carried):
        raise CompileError(wrong(f"expected what a method of the call returns, or None, got {found!r}"))
    return found

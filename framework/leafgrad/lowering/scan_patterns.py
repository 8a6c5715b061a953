"""How recurrences are lowered: one kernel for all steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.errors import CompileError
from leafgrad.lowering import expressions
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Scan, ScanStep
from leafgrad.lowering.pattern import Pattern, one_float

if TYPE_CHECKING:
    from leafgrad.lowering.lowering import Lowering


@dataclass(eq=False, repr=False)
class Recurrence(Pattern):
    """Steps along dimension 0, each from the one before."""

    step: ScanStep
    fixed = True

    def fits(self, e: Equation) -> bool:
        return one_float(e) and sized(e, self.step) and not expressions.turns(self.step.code)

    def lower(self, low: Lowering, e: Equation) -> None:
        step = self.step
        arrays = dict(zip(named(e), low.operands(e), strict=True))
        results = [low.new(v) for v in e.outputs]
        given = arrays.pop(step.across)
        rows, hidden = results[0].shape[1], min(f.shape[2] for f in (*arrays.values(), *results) if len(f.shape) == 3)
        matrix, scratch = self.arranged(low, e, given.permute((1, 0)) if step.turned else given, rows)
        ends = dict(zip(step.carried, results[len(step.results) :], strict=False))
        kind = matrix.root.dtype
        carried = {name: ends.get(name) or full(Root((rows, hidden), kind)) for name in step.carried}
        made = dict(zip(step.results, results, strict=False))
        sources = (matrix, *arrays.values())
        low.add(Scan(e, sources, results[0], step, hidden, arrays, made, carried, scratch), *e.outputs)

    def arranged(self, low: Lowering, e: Equation, matrix: Form, rows: int) -> tuple[Form, tuple[Form, ...]]:
        """The matrix as a target wants it, and memory that it needs for so many rows: in order, and none."""
        return matrix if matrix.contiguous else low.ordered(e, matrix), ()


def scan(
    code: str,
    results: Sequence[str],
    carried: Sequence[str] = (),
    *,
    across: str,
    turned: bool = False,
    first: str | None = None,
    reverse: bool = False,
) -> Recurrence:
    """C statements that compute an element of a step of a recurrence, along dimension 0 of arrays (T, N, parts H).

    In them ``x(k)`` is the element, in part k, of the argument named x at this step, ``h(0)`` of one of shape (N, H),
    ``b(k)`` of one of shape (parts H,). ``across(k)`` is the same of a matrix product: of the first result of the step
    before, (N, K), with the argument named ``across``, (K, parts H). The rest is as in `along`.

    Args:
        results: the names of results that have an entry for each step, in order; they are set as ``y(k) = ...``.
        carried: names of variables of an element that a step leaves to the next. They start as the argument of this
            name, (N, H), or as 0, and end as those results of the op that ``results`` does not name.
        turned: the matrix is given transposed.
        first: the argument, (N, K), that is multiplied before the first step; by default ``across(k)`` is 0 there.
        reverse: from the last step to the first.
    """
    return Recurrence(ScanStep(code, tuple(results), tuple(carried), across, turned, first, reverse))


def sized(e: Equation, step: ScanStep) -> bool:
    """Whether arrays and results are of the ranks, and their parts of the sizes, that a recurrence has."""
    for what, name in (("across", step.across), ("first", step.first)):
        if name is not None and name not in e.op.signature.arguments:
            known = ", ".join(e.op.signature.arguments)
            raise CompileError(f"op {e.name!r}, lower rule for 'native': {what}: expected one of {known}, got {name!r}")
    arrays = named(e)
    gates = [v for v in (*arrays.values(), *e.outputs) if v.ndim == 3]
    if not gates or step.across not in arrays or len(e.outputs) < len(step.results):
        return False
    steps, rows, hidden = gates[0].shape[0], gates[0].shape[1], min(v.shape[2] for v in gates)
    height, width = arrays[step.across].shape[:: -1 if step.turned else 1]
    return (
        all(v.shape[:2] == (steps, rows) and not v.shape[2] % hidden for v in gates)
        and all(v.ndim == 3 for v in e.outputs[: len(step.results)])
        and all(v.shape == (rows, hidden) for v in e.outputs[len(step.results) :])
        and height == e.outputs[0].shape[2]
        and not width % hidden
    )


def named(e: Equation) -> dict[str, Value]:
    """The arrays among the arguments."""
    given = zip(e.op.signature.arguments, e.inputs, strict=False)
    return {name: v for name, v in given if isinstance(v, Value)}

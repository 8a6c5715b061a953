"""Which axis of a value runs along the batch, op by op.

A rule looks at one equation whose inputs partly carry the batch (a length, on some axis) and says on which axis
the output carries it, or that the op sums it away, and which further inputs must be sliced along it. No rule, or
a rule that finds no answer, means that the equation needs its inputs whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from leafgrad.compile.graph import Equation, Operand, Value


@dataclass(frozen=True)
class Carried:
    """What an equation does to the batch.

    Attributes:
        axis: the output's batch axis; None if the batch is summed away.
        slices: positions of inputs that do not carry the batch but must be sliced, with the axis.
        shape_parameter: the output's shape is a parameter and shrinks to the chunk.
    """

    axis: int | None
    slices: dict[int, int] = field(default_factory=dict)
    shape_parameter: bool = False


Axes = Sequence[int | None]  # per input: the axis on which it carries the batch
Rule = Callable[[Equation, Axes, int], Carried | None]


def carried(equation: Equation, axes: Axes, length: int) -> Carried | None:
    """What ``equation`` does to a batch of ``length`` that its inputs carry on ``axes``; None: it needs them whole."""
    if len(equation.outputs) != 1 or "random" in equation.op.traits:
        return None
    rule = RULES.get(equation.name)
    if rule is None and "elementwise" in equation.op.traits:
        rule = elementwise
    return rule(equation, axes, length) if rule is not None else None


def elementwise(equation: Equation, axes: Axes, length: int) -> Carried | None:
    return _aligned(equation.inputs, axes, equation.out.ndim, length)


def _aligned(inputs: Sequence[Operand], axes: Axes, ndim: int, length: int, last: int = 0) -> Carried | None:
    """Inputs broadcast from the right, leaving ``last`` trailing dimensions out of it."""
    places = {ndim - v.ndim + a for v, a in zip(inputs, axes, strict=True) if isinstance(v, Value) and a is not None}
    if len(places) != 1:
        return None
    (at,) = places
    if at >= ndim - last:
        return None
    slices = {}
    for i, (v, a) in enumerate(zip(inputs, axes, strict=True)):
        if isinstance(v, Value) and a is None:
            mine = at - (ndim - v.ndim)
            if mine >= 0 and v.shape[mine] == length:
                slices[i] = mine
            elif mine >= 0 and v.shape[mine] != 1:
                return None
    return Carried(at, slices)


def permute(equation: Equation, axes: Axes, length: int) -> Carried | None:
    return None if axes[0] is None else Carried(tuple(equation.params["dims"]).index(axes[0]))


def reshape(equation: Equation, axes: Axes, length: int) -> Carried | None:
    (value,) = equation.values
    axis = axes[0]
    if axis is None:
        return None
    before = math.prod(value.shape[:axis])
    shape = equation.out.shape
    for k, n in enumerate(shape):
        if n == length and math.prod(shape[:k]) == before:
            return Carried(k, shape_parameter=True)
    return None


def expand(equation: Equation, axes: Axes, length: int) -> Carried | None:
    (value,) = equation.values
    axis = axes[0]
    if axis is None:
        return None
    return Carried(axis + equation.out.ndim - value.ndim, shape_parameter=True)


def reduction(equation: Equation, axes: Axes, length: int) -> Carried | None:
    """Ops with ``dim`` (a tuple) and ``keepdim``; only sums may lose the batch."""
    axis, dims = axes[0], tuple(equation.params["dim"])
    if axis is None:
        return None
    if axis in dims:
        return Carried(None) if equation.name == "sum" else None
    keep = equation.params.get("keepdim", False)
    return Carried(axis if keep else axis - sum(d < axis for d in dims))


def sum_to(equation: Equation, axes: Axes, length: int) -> Carried | None:
    (value,) = equation.values
    axis, shape = axes[0], equation.params["shape"]
    if axis is None:
        return None
    at = axis - (value.ndim - len(shape))
    if at < 0 or shape[at] == 1:
        return Carried(None)
    return Carried(at, shape_parameter=True)


def along(equation: Equation, axes: Axes, length: int) -> Carried | None:
    """Ops that work within dimensions ``dim`` or ``dims`` and keep the shape: softmax, cumsum, flip, …"""
    axis, dim = axes[0], equation.params.get("dim", equation.params.get("dims"))
    dims = dim if isinstance(dim, tuple) else (dim,)
    return None if axis is None or axis in dims else Carried(axis)


def matmul(equation: Equation, axes: Axes, length: int) -> Carried | None:
    a, b = equation.inputs[:2]
    if not (isinstance(a, Value) and isinstance(b, Value)) or a.ndim < 2 or b.ndim < 2:
        return None
    i, j = axes[0], axes[1]
    if i == a.ndim - 1 or j == b.ndim - 2:  # the batch is contracted
        if a.ndim != 2 or b.ndim != 2 or i not in (None, 1) or j not in (None, 0):
            return None
        slices = {0: 1} if i is None else {1: 0} if j is None else {}
        return Carried(None, slices)
    ndim = equation.out.ndim
    if i == a.ndim - 2 and j is None:
        return Carried(ndim - 2)
    if j == b.ndim - 1 and i is None:
        return Carried(ndim - 1)
    return _aligned((a, b), (i, j), ndim, length, last=2)


def cat(equation: Equation, axes: Axes, length: int) -> Carried | None:
    found = {a for a in axes if a is not None}
    if len(found) != 1 or equation.params["dim"] in found:
        return None
    (axis,) = found
    return Carried(axis, {i: axis for i, a in enumerate(axes) if a is None})


def new_full(equation: Equation, axes: Axes, length: int) -> Carried | None:
    axis, shape = axes[0], equation.params["shape"]
    if axis is None or len(shape) <= axis or shape[axis] != length:
        return None
    return Carried(axis, shape_parameter=True)


def keeps_axis(equation: Equation, axes: Axes, length: int) -> Carried | None:
    return None if axes[0] is None else Carried(axes[0])


def part(equation: Equation, axes: Axes, length: int) -> Carried | None:
    """A basic index that takes the whole batch."""
    axis, at = axes[0], equation.params["at"]
    source = target = 0  # dimensions of x and of the result that the index has passed
    for entry in at:
        if entry is None:
            target += 1
            continue
        if source == axis:
            return Carried(target) if entry == (0, length, 1) else None
        source += 1
        target += isinstance(entry, tuple)
    return None if axis is None else Carried(target + axis - source)


def unpart(equation: Equation, axes: Axes, length: int) -> Carried | None:
    """Its transpose."""
    axis, at = axes[0], equation.params["at"]
    source = target = 0  # dimensions of x and of the result
    for entry in at:
        if source == axis and entry is not None and isinstance(entry, tuple):
            return Carried(target, shape_parameter=True) if entry == (0, length, 1) else None
        if source == axis and entry is None:
            return None
        source += entry is None or isinstance(entry, tuple)
        target += entry is not None
    return None if axis is None else Carried(target + axis - source, shape_parameter=True)


def pick(equation: Equation, axes: Axes, length: int) -> Carried | None:
    """The targets' batch is that of the scores, which have a dimension of classes more."""
    dim, axis = equation.params["dim"], axes[0]
    if axis == dim:
        return None
    if axis is None:
        return Carried(axes[1], {0: axes[1] + (axes[1] >= dim)}) if axes[1] is not None else None
    at = axis - (axis > dim)
    return Carried(at, {1: at}) if axes[1] in (None, at) else None


def place(equation: Equation, axes: Axes, length: int) -> Carried | None:
    """Its transpose."""
    found = {a for a in axes if a is not None}
    if len(found) != 1:
        return None
    (axis,) = found
    slices = {i: axis for i, a in enumerate(axes) if a is None}
    return Carried(axis + (axis >= equation.params["dim"]), slices, shape_parameter=True)


def index(equation: Equation, axes: Axes, length: int) -> Carried | None:
    """The batch runs along the index arrays, or along a dimension that they do not choose."""
    at = equation.inputs[1:]
    before, width, after = _around(equation, at)
    if axes[0] is None:
        found = _aligned(at, axes[1:], width, length)
        if found is None or found.axis is None:
            return None
        return Carried(len(before) + found.axis, {i + 1: a for i, a in found.slices.items()})
    if any(a is not None for a in axes[1:]) or axes[0] in equation.params["dims"]:
        return None
    return Carried((*before, *[None] * width, *after).index(axes[0]))


def index_sum(equation: Equation, axes: Axes, length: int) -> Carried | None:
    """Its transpose. What is summed over the batch is summed whole, in the order of the elements."""
    before, width, after = _around(equation, equation.inputs[1:])
    if axes[0] is None or any(a is not None for a in axes[1:]):
        return None
    axis = (*before, *[None] * width, *after)[axes[0]]
    return None if axis is None else Carried(axis, shape_parameter=True)


def _around(equation: Equation, at: Sequence[Operand]) -> tuple[list[int], int, list[int]]:
    """Of an index by arrays: the dimensions that stand before them, how many they have, and those behind."""
    dims = equation.params["dims"]
    x, *_ = equation.values
    table = x if equation.name == "index" else equation.out
    kept = [d for d in range(table.ndim) if d not in dims]
    first = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    return kept[:first], max(v.ndim for v in at if isinstance(v, Value)), kept[first:]


def gather(equation: Equation, axes: Axes, length: int) -> Carried | None:
    """Ops in which each row of the batch has index arrays of its own, and all have as many rows."""
    found = {a for a in axes if a is not None}
    values = [v for v in (*equation.inputs, equation.out) if isinstance(v, Value)]
    if len(found) != 1 or equation.params["dim"] in found or any(v.shape[a] != length for v in values for a in found):
        return None
    (axis,) = found
    slices = {i: axis for i, v in enumerate(equation.inputs) if isinstance(v, Value) and axes[i] is None}
    return Carried(axis, slices, shape_parameter=equation.name == "gather_sum")


RULES: dict[str, Rule] = {
    "pick": pick,
    "place": place,
    "index": index,
    "index_sum": index_sum,
    **dict.fromkeys(("gather", "gather_sum", "scatter", "scatter_best"), gather),
    "permute": permute,
    "reshape": reshape,
    "expand": expand,
    "sum_to": sum_to,
    "matmul": matmul,
    "cat": cat,
    "slice": part,
    "unslice": unpart,
    "pad": unpart,
    "new_full": new_full,
    "to_dtype": keeps_axis,
    "clone": keeps_axis,
    **dict.fromkeys(("sum", "prod", "amax", "amin", "mean", "logsumexp"), reduction),
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "cumprod", "flip"), along),
}

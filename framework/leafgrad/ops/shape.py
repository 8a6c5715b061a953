"""Ops that rearrange: reshape, permute, expand and its transpose sum_to, joining, flipping.

What is not a view is a copy: only ops with the trait "view" return memory of their argument.
"""

from __future__ import annotations

import functools
import math
import operator
from itertools import accumulate
from typing import Any

from leafgrad.ops import forms
from leafgrad.ops.abstract import broadcast_shape, reduced
from leafgrad.ops.define import op
from leafgrad.ops.geometry import inverse
from leafgrad.ops.half import total
from leafgrad.ops.shifted import all_samples, behind, in_front, kept_first, shifted
from leafgrad.ops.small import adding_to

Shape = tuple[int, ...]

# ---- views --------------------------------------------------------------------------------------------------------


@op("linear", "view", "complex")
def reshape(xp: Any, x: Any, *, shape: Shape) -> Any:
    """The elements of x, in order, in another shape. (...) -> shape"""
    return x.reshape(shape)


reshape.label = "ViewBackward0"
reshape.vjp(x=lambda g, x_shape: reshape.function(g, shape=x_shape))
reshape.lower("native", lambda c, e: c.view(lambda x, axis: x.reshape(e.out.shape, axis)))


@reshape.shape
def _reshaped(x: Any, *, shape: Shape) -> Any:
    return shape if math.prod(shape) == math.prod(x.shape) else None


@reshape.chunk
def _reshaped_rows(call: Any) -> Any:
    (x,), (axis,), shape = call.inputs, call.axes, call.out.shape
    before = math.prod(x.shape[:axis])
    for k, n in enumerate(shape):
        if n == call.length and math.prod(shape[:k]) == before:
            return call.on(k, axis, resized=True)
    return None


reshape.batched(shifted(shape=in_front))


@op("linear", "view", "complex")
def permute(xp: Any, x: Any, *, dims: tuple[int, ...]) -> Any:
    """x with its dimensions in the order ``dims`` (non-negative, each once)."""
    return x.transpose(dims)


permute.never_copies = True
permute.lower("native", lambda c, e: c.view(lambda x, axis: x.permute(e.params["dims"])))
permute.shape(lambda x, *, dims: tuple([x.shape[d] for d in dims]))
permute.chunk(lambda call: call.on(call.params["dims"].index(call.axes[0]), call.axes[0]))
permute.lower("numpy", lambda writer, equation: writer.permuted(equation))
permute.vjp(x=lambda g, *, dims: permute.function(g, dims=inverse(dims)))
permute.batched(shifted(dims=kept_first))


@op("linear", "view", "complex")
def expand(xp: Any, x: Any, *, shape: Shape) -> Any:
    """x broadcast to ``shape``. (...) -> shape"""
    padded = (1,) * (len(shape) - x.ndim) + x.shape
    if padded == shape:
        return x.reshape(shape)
    out = xp.broadcast_to(x, shape)
    if hasattr(out.flags, "writeable"):  # NumPy's is read-only
        out.flags.writeable = x.flags.writeable
    return out


@expand.kernel("numpy")
def _expand(xp: Any, x: Any, *, shape: Shape) -> Any:
    """As above, without the several Python functions that ``broadcast_to`` is."""
    x = xp.asarray(x) if isinstance(x, xp.generic) else x
    extra = len(shape) - x.ndim
    plain = type(x) is xp.ndarray and x.flags.c_contiguous and extra >= 0 and 0 not in shape
    if not plain or (1,) * extra + x.shape == shape:
        return expand.forward(xp, x, shape=shape)
    strides = [0] * extra
    for n, wide, step in zip(x.shape, shape[extra:], x.strides, strict=True):
        if n != wide and n != 1:
            raise ValueError(f"sizes {n} and {wide} do not broadcast")
        strides.append(step if n != 1 else 0)
    return xp.ndarray(shape, x.dtype, x, 0, strides)


expand.never_copies = True
expand.lower("native", lambda c, e: c.view(lambda x, axis: x.expand(e.out.shape)))
expand.shape(lambda x, *, shape: shape if broadcast_shape((x.shape, shape)) == tuple(shape) else None)
expand.chunk(lambda call: call.on(call.axes[0] + call.out.ndim - call.inputs[0].ndim, call.axes[0], resized=True))


@expand.batched
def _expand_batched(call: Any) -> Any:
    target = call.params["shape"]
    return expand(call.front(0, len(target)), shape=(call.size, *target))


@op("linear", "complex", transpose_of=expand)
def sum_to(xp: Any, x: Any, *, shape: Shape) -> Any:
    """x summed over the dimensions in which it was broadcast from ``shape``; the transpose of expand."""
    return total(x, reduced(x.shape, shape), False).reshape(shape)


@sum_to.kernel("numpy")
def _sum_to(xp: Any, x: Any, *, shape: Shape) -> Any:
    """As above; over leading dimensions in one step."""
    added = adding_to(xp, x.shape, x.dtype, shape)
    if added is not None:
        return added(x)
    lead = x.ndim - len(shape)
    if lead < 1 or x.shape[lead:] != shape or x.dtype.char == "e":
        return sum_to.forward(xp, x, shape=shape)
    if lead > 1 and x.flags.c_contiguous:
        x, lead = x.reshape(math.prod(x.shape[:lead]), *shape), 1
    return xp.add.reduce(x, 0 if lead == 1 else tuple(range(lead)))


sum_to.lower("native", lambda c, e: c.reduction("+", reduced(e.values[0].shape, e.out.shape)))
sum_to.shape(lambda x, *, shape: shape if x.floating else None)
sum_to.lower("numpy", lambda writer, e: writer.total(e, reduced(e.inputs[0].shape, e.params["shape"])))


@sum_to.chunk
def _sum_to_rows(call: Any) -> Any:
    (x,), (axis,), shape = call.inputs, call.axes, call.params["shape"]
    if axis in reduced(x.shape, shape):
        return call.summed(axis)
    return call.on(axis - x.ndim + len(shape), axis, resized=True)


@sum_to.batched
def _sum_to_batched(call: Any) -> Any:
    target = call.params["shape"]
    ones = (1,) * (call.ndim(0) - len(target))
    summed = sum_to(call.args[0], shape=(call.size, *ones, *target))
    return reshape(summed, shape=(call.size, *target)) if ones else summed


# ---- moving elements ----------------------------------------------------------------------------------------------


def in_reverse(x: Any, dims: tuple[int, ...]) -> Any:
    """An array with some dimensions in reverse order, in its memory."""
    key = [slice(None)] * x.ndim
    for d in dims:
        key[d] = slice(None, None, -1)
    return x[tuple(key)]


@op("linear", "complex")
def flip(xp: Any, x: Any, *, dims: tuple[int, ...]) -> Any:
    """x with the order of its elements along ``dims`` reversed."""
    return in_reverse(x, dims).copy()


@op("linear", "complex")
def roll(xp: Any, x: Any, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """x shifted along each of ``dims``; what leaves at one end comes in at the other."""
    return xp.roll(x, shifts, dims)


@roll.kernel("numpy")
def _roll(xp: Any, x: Any, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """As above; along one dimension, both parts joined."""
    if len(dims) != 1 or not x.size:
        return roll.forward(xp, x, shifts=shifts, dims=dims)
    (by,), (dim,) = shifts, dims
    lead, cut = (slice(None),) * dim, -by % x.shape[dim]
    return xp.concatenate((x[(*lead, slice(cut, None))], x[(*lead, slice(cut))]), dim)


flip.vjp(x=lambda g, *, dims: flip(g, dims=dims))
roll.vjp(x=lambda g, *, shifts, dims: roll(g, shifts=tuple(-s for s in shifts), dims=dims))


@roll.rewrite
def _roll_in_parts(graph: Any, equation: Any) -> Any:
    """What leaves at one end, and then the rest, joined."""
    (x,), params = equation.values, equation.params
    for d, by in zip(params["dims"], params["shifts"], strict=True):
        n = x.shape[d]
        if not n or not by % n:
            continue
        cuts = ((n - by % n, n), (0, n - by % n))
        ranges = [tuple([(*cut, 1) if k == d else (0, m, 1) for k, m in enumerate(x.shape)]) for cut in cuts]
        x = graph.emit(cat, *[graph.emit(part, x, at=at) for at in ranges], dim=d)
    return x


flip.lower("native", lambda c, e: c.view(lambda x, axis: x.flip(e.params["dims"])))
for _op in (flip, roll):
    _op.shape(lambda x: x.shape)
    _op.chunk(lambda call: call.aligned(whole=call.params["dims"]))
flip.batched(shifted(dims=behind))
roll.batched(shifted(dims=behind))


# ---- joining and parts --------------------------------------------------------------------------------------------

# A basic index as a hashable parameter: one entry per dimension, an int or (start, stop, step), None inserts one.
Range = tuple[int, int, int]
Index = tuple[int | Range | None, ...]


@functools.lru_cache(maxsize=1024)
def key(at: Index) -> tuple[Any, ...]:
    """``at`` as arrays take it. The ellipsis makes NumPy give views where it would give scalars."""
    return (*[slice(*map(operator.index, part)) if type(part) is tuple else part for part in at], ...)


@op("linear", "view", "complex", name="slice")
def part(xp: Any, x: Any, *, at: Index) -> Any:
    """The part of x that a basic index chooses: ints, ranges with positive steps, None."""
    return x[key(at)]


part.form = forms.slice_form
part.never_copies = True
part.batched(shifted(at=all_samples))


@op("linear", "complex", transpose_of=part)
def unslice(xp: Any, x: Any, *, at: Index, shape: Shape) -> Any:
    """Zeros of ``shape`` with x in the part that ``at`` chooses; the transpose of slice."""
    out = xp.zeros(shape, dtype=x.dtype)
    out[key(at)] = x
    return out


part.lower("native", lambda c, e: c.view(lambda x, axis: x.part(e.params["at"])))
unslice.lower("native", lambda c, e: c.placed(e.params["at"]))
part.lower("numpy", lambda writer, equation: writer.part(equation))
unslice.lower("numpy", lambda writer, equation: writer.placed(equation, 0))
unslice.shape(lambda x, *, shape: shape)


@part.shape
def _part_shape(x: Any, *, at: Index) -> Any:
    left, found = [*x.shape], []
    for entry in at:
        if entry is None:
            found.append(1)
        elif isinstance(entry, tuple):
            n, (start, stop, step) = left.pop(0), entry
            inside = step == 1 and 0 <= start <= stop <= n
            found.append(stop - start if inside else len(range(n)[start:stop:step]))
        elif not -(n := left.pop(0)) <= entry < n:
            return None
    return (*found, *left)


@part.chunk
def _part_rows(call: Any) -> Any:
    """A basic index that takes the whole batch."""
    (axis,), source, target = call.axes, 0, 0  # dimensions of x and of the result that the index has passed
    for entry in call.params["at"]:
        if entry is None:
            target += 1
            continue
        if source == axis:
            return call.on(target, axis) if entry == (0, call.length, 1) else None
        source += 1
        target += isinstance(entry, tuple)
    return call.on(target + axis - source, axis)


def _unpart_rows(call: Any) -> Any:
    """The same, transposed."""
    (axis,), source, target = call.axes, 0, 0  # dimensions of x and of the result
    for entry in call.params["at"]:
        if source == axis and entry is None:
            return None
        if source == axis and isinstance(entry, tuple):
            whole = entry == (0, call.length, 1) and call.params["shape"][target] == call.length
            return call.on(target, axis, resized=True) if whole else None
        source += entry is None or isinstance(entry, tuple)
        target += entry is not None
    return call.on(target + axis - source, axis, resized=True)


unslice.chunk(_unpart_rows)


@op("complex")
def pad(xp: Any, x: Any, *, at: Index, shape: Shape, value: float) -> Any:
    """``value`` in an array of ``shape``, with x in the part that ``at`` chooses."""
    out = xp.full(shape, value, dtype=x.dtype)
    out[key(at)] = x
    return out


pad.label = "ConstantPadNdBackward0"
pad.vjp(x=lambda g, *, at: part(g, at=at))
pad.lower("native", lambda c, e: c.placed(e.params["at"], e.params["value"]))
pad.shape(lambda x, *, shape: shape)
pad.chunk(_unpart_rows)
pad.lower("numpy", lambda writer, equation: writer.placed(equation, equation.params["value"]))
pad.batched(shifted(at=all_samples, shape=in_front))


@op("linear", "promote", "complex")
def cat(xp: Any, *xs: Any, dim: int) -> Any:
    """Arrays of equal shapes, but for ``dim``, one after the other along it."""
    return xp.concatenate(xs, axis=dim)


_joined: tuple[tuple[Shape, ...], int, list[int]] = ((), 0, [0])  # shapes, dim, and where each part starts


def _starts(shapes: tuple[Shape, ...], dim: int) -> list[int]:
    """Where the parts start. Rules ask for it once for each part in turn: it is counted once for all of them."""
    global _joined
    last = _joined
    if last[0] is not shapes or last[1] != dim:
        _joined = last = shapes, dim, [0, *accumulate([shape[dim] for shape in shapes])]
    return last[2]


def _cat_rule(g: Any, xs_shape: tuple[Shape, ...], index: int, *, dim: int) -> Any:
    start = _starts(xs_shape, dim)[index]
    lead = tuple((0, n, 1) for n in xs_shape[index][:dim])
    return part(g, at=(*lead, (start, start + xs_shape[index][dim], 1)))


cat.vjp(xs=_cat_rule)
cat.lower("native", lambda c, e: c.join(e.params["dim"]))


@cat.shape
def _cat_shape(*xs: Any, dim: int) -> Any:
    first = xs[0].shape
    if any((*x.shape[:dim], *x.shape[dim + 1 :]) != (*first[:dim], *first[dim + 1 :]) for x in xs):
        return None
    return (*first[:dim], sum(x.shape[dim] for x in xs), *first[dim + 1 :])


@cat.chunk
def _cat_rows(call: Any) -> Any:
    axis = next(a for a in call.axes if a is not None)
    return None if axis == call.params["dim"] else call.on(axis, *[axis] * len(call.inputs))


cat.lower("numpy", lambda writer, equation: writer.joined(equation))
cat.batched(shifted(dim=behind))


@op("linear", "promote", "complex")
def stack(xp: Any, *xs: Any, dim: int) -> Any:
    """Arrays of one shape along a new dimension, which is ``dim`` of the result."""
    shape = xs[0].shape
    if dim == len(shape) or len({x.shape for x in xs}) > 1:  # which xp refuses
        return xp.stack(xs, axis=dim)
    return xp.concatenate(xs, axis=dim).reshape((*shape[:dim], len(xs), *shape[dim:]))


def _stack_rule(g: Any, xs_shape: tuple[Shape, ...], index: int, *, dim: int) -> Any:
    return part(g, at=(*((0, n, 1) for n in xs_shape[index][:dim]), index))


stack.vjp(xs=_stack_rule)
stack.batched(shifted(dim=behind))


@stack.shape
def _stack_shape(*xs: Any, dim: int) -> Any:
    first = xs[0].shape
    return None if any(x.shape != first for x in xs) else (*first[:dim], len(xs), *first[dim:])


@stack.rewrite
def _stack_of_parts(graph: Any, equation: Any) -> Any:
    """Parts that are one thick, joined: what executors make in its place."""
    dim, shape = equation.params["dim"], equation.inputs[0].shape
    parts = [graph.emit(reshape, x, shape=(*shape[:dim], 1, *shape[dim:])) for x in equation.inputs]
    return graph.emit(cat, *parts, dim=dim)

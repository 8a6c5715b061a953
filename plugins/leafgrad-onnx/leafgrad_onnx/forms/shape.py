"""Forms of ops that make arrays, or rearrange what is in them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.ops import complex as parts, convert, create, cumulative, diagonals, flat, shape
from leafgrad_onnx.writer import OnnxWriter

FAR = (1 << 63) - 1

shape.reshape.lower("onnx", lambda w, e: w.reshape(w(e.inputs[0]), e.out.shape))
shape.permute.lower("onnx", lambda w, e: w.emit("Transpose", w(e.inputs[0]), perm=list(e.params["dims"])))
shape.expand.lower("onnx", lambda w, e: w.expand(w(e.inputs[0]), e.out.shape))
convert.to_dtype.lower("onnx", lambda w, e: w.cast(w(e.inputs[0]), e.out.dtype))
convert.new_full.lower("onnx", lambda w, e: w.filled(e.out.shape, e.params["value"], e.out.dtype))
create.zeros.lower("onnx", lambda w, e: w.filled(e.out.shape, 0, e.out.dtype))
create.empty.lower("onnx", lambda w, e: w.filled(e.out.shape, 0, e.out.dtype))
create.full.lower("onnx", lambda w, e: w.filled(e.out.shape, e.params["value"], e.out.dtype))


@shape.sum_to.lower("onnx")
def _sum_to(w: OnnxWriter, e: Equation) -> str:
    x = e.values[0].shape
    lead = len(x) - e.out.ndim
    gone = tuple([d for d in range(len(x)) if d < lead or (e.out.shape[d - lead] == 1 != x[d])])
    return w.reshape(w.reduce("ReduceSum", w(e.inputs[0]), gone, keepdim=True), e.out.shape)


@shape.part.lower("onnx")
def _slice(w: OnnxWriter, e: Equation) -> str:
    source, at = e.values[0].shape, e.params["at"]
    entries = [entry for entry in at if entry is not None]
    starts, stops, steps, axes, gone = [], [], [], [], []
    for d, (entry, n) in enumerate(zip(entries, source, strict=False)):
        if isinstance(entry, int):
            at_end = entry < 0 or (entry == n - 1 != 0)
            starts.append(entry - n if at_end and entry >= 0 else entry)  # the last one, whatever the size
            stops.append(FAR if starts[-1] == -1 else starts[-1] + 1)
            steps.append(1)
            axes.append(d)
            gone.append(d)
        elif tuple(entry) != (0, n, 1):
            starts.append(entry[0])
            stops.append(FAR if entry[1] == n else entry[1])
            steps.append(entry[2])
            axes.append(d)
    name = w(e.inputs[0])
    if axes:
        name = w.emit("Slice", name, *map(w.ints, (starts, stops, axes, steps)))
    if gone:
        name = w.emit("Squeeze", name, w.ints(gone))
    new, target = [], 0
    for entry in at:
        if entry is None:
            new.append(target)
        target += entry is None or not isinstance(entry, int)
    if new:
        name = w.emit("Unsqueeze", name, w.ints(new))
    return name if axes or new else str(w.emit("Identity", name))


@shape.unslice.lower("onnx")
def _unslice(w: OnnxWriter, e: Equation) -> str:
    return placed(w, e, 0)


@shape.pad.lower("onnx")
def _pad(w: OnnxWriter, e: Equation) -> str:
    return placed(w, e, e.params["value"])


def placed(w: OnnxWriter, e: Equation, value: float) -> str:
    """The result filled with ``value``, with the first argument in the part that ``at`` chooses: padding, if its steps
    are 1, else a write by numbers."""
    x, whole = e.values[0], e.out.shape
    name, entries = w(x), list(e.params["at"])
    entries += [(0, n, 1) for n in whole[len([k for k in entries if k is not None]) :]]
    dims = [entry for entry in entries if entry is not None]
    kept = tuple(
        [1 if isinstance(k, int) else len(range(*slice(*k).indices(n))) for k, n in zip(dims, whole, strict=True)]
    )
    if kept != x.shape:
        name = w.reshape(name, kept)
    for d, (entry, n) in enumerate(zip(dims, whole, strict=True)):
        step = 1 if isinstance(entry, int) else entry[2]
        if step > 1 and kept[d]:  # each element is followed by step - 1 others
            before, after = kept[:d], kept[d + 1 :]
            rows = w.reshape(name, (*before, kept[d], 1, *after))
            pads = [0] * (2 * (len(kept) + 1))
            pads[len(kept) + 1 + d + 1] = step - 1
            rows = w.emit("Pad", rows, w.ints(pads), w.scalar(value, x.dtype))
            name = w.reshape(rows, (*before, kept[d] * step, *after))
            start = slice(*entry).indices(n)[0]
            room = min(n - start, kept[d] * step)
            name = w.emit("Slice", name, w.ints([0]), w.ints([room]), w.ints([d]))
            kept = (*before, room, *after)
    starts = [k % n if isinstance(k, int) else slice(*k).indices(n)[0] for k, n in zip(dims, whole, strict=True)]
    ends = [n - s - k for n, s, k in zip(whole, starts, kept, strict=True)]
    if x.dtype == "bool" or x.dtype in ("int8", "int16", "uint8"):
        wide = w.cast(name, "int32")
        return w.cast(w.emit("Pad", wide, w.ints([*starts, *ends]), w.scalar(int(value), "int32")), x.dtype)
    return str(w.emit("Pad", name, w.ints([*starts, *ends]), w.scalar(value, x.dtype)))


def joined(w: OnnxWriter, names: list[str], dim: int) -> str:
    return str(w.emit("Concat", *names, axis=dim))


shape.cat.lower("onnx", lambda w, e: joined(w, [w(x, e.out.dtype) for x in e.inputs], e.params["dim"]))


@parts.join.lower("onnx of pairs")
def _join(w: OnnxWriter, e: Equation) -> str:
    return joined(w, [w.emit("Unsqueeze", w(x), w.ints([-1])) for x in e.inputs], -1)


for _k, _op in enumerate((parts.real, parts.imag)):
    _op.lower("onnx of pairs", lambda w, e, k=_k: w.emit("Gather", w(e.inputs[0]), w.scalar(k, "int64"), axis=-1))


@shape.stack.lower("onnx")
def _stack(w: OnnxWriter, e: Equation) -> str:
    dim = e.params["dim"]
    return joined(w, [w.emit("Unsqueeze", w(x, e.out.dtype), w.ints([dim])) for x in e.inputs], dim)


@shape.flip.lower("onnx")
def _flip(w: OnnxWriter, e: Equation) -> str:
    dims = e.params["dims"]
    return reversed_along(w, w(e.inputs[0]), dims) if dims else w.emit("Identity", w(e.inputs[0]))


def reversed_along(w: OnnxWriter, name: str, dims: Any) -> str:
    """A value backwards along some dimensions."""
    many = [w.ints([k] * len(dims)) for k in (-1, -FAR)]
    return str(w.emit("Slice", name, *many, w.ints(dims), w.ints([-1] * len(dims))))


@shape.roll.lower("onnx")
def _roll(w: OnnxWriter, e: Equation) -> str:
    name, sizes = w(e.inputs[0]), e.values[0].shape
    for by, d in zip(e.params["shifts"], e.params["dims"], strict=True):
        k = by % sizes[d] if sizes[d] else 0
        if k:
            last = w.emit("Slice", name, w.ints([-k]), w.ints([FAR]), w.ints([d]))
            first = w.emit("Slice", name, w.ints([0]), w.ints([-k]), w.ints([d]))
            name = joined(w, [last, first], d)
    return str(w.emit("Identity", name))


@cumulative.shift.lower("onnx")
def _shift(w: OnnxWriter, e: Equation) -> str:
    x, dim, by = e.values[0], e.params["dim"], e.params["by"]
    if not x.shape or not x.shape[dim]:
        return str(w.emit("Identity", w(x)))
    part = w.emit("Slice", w(x), w.ints([0 if by > 0 else 1]), w.ints([-1 if by > 0 else FAR]), w.ints([dim]))
    fill = w.filled(tuple(1 if d == dim else n for d, n in enumerate(x.shape)), e.params["fill"], x.dtype)
    return joined(w, [fill, part] if by > 0 else [part, fill], dim)


def triangle(w: OnnxWriter, e: Equation, upper: int) -> str:
    """Trilu, in a dtype that runtimes have it for."""
    x, diagonal = e.values[0], w.scalar(e.params["diagonal"], "int64")
    small = x.dtype in ("int8", "int16", "int32", "uint8", "float16")
    kind = "float32" if x.dtype == "float16" else "int64"
    found = w.emit("Trilu", w(x, kind if small else None), diagonal, upper=upper)
    return w.cast(found, x.dtype) if small else found


diagonals.tril.lower("onnx", lambda w, e: triangle(w, e, 0))
diagonals.triu.lower("onnx", lambda w, e: triangle(w, e, 1))


@diagonals.diagonal.lower("onnx")
def _diagonal(w: OnnxWriter, e: Equation) -> str:
    x, dims, offset = e.values[0], e.params["dims"], e.params["offset"]
    rest = [d for d in range(x.ndim) if d not in dims]
    rows, columns, n = x.shape[dims[0]], x.shape[dims[1]], e.out.shape[-1]
    flat = w.emit("Transpose", w(x), perm=[*rest, *dims])
    flat = w.reshape(flat, (*(x.shape[d] for d in rest), rows * columns))
    places = counted(w, max(-offset, 0) * columns + max(offset, 0), columns + 1, n)
    return str(w.emit("Gather", flat, places, axis=len(rest)))


@diagonals.undiagonal.lower("onnx")
def _undiagonal(w: OnnxWriter, e: Equation) -> str:
    x, whole, dims, offset = e.values[0], e.out.shape, e.params["dims"], e.params["offset"]
    rest = [d for d in range(len(whole)) if d not in dims]
    lead = tuple(whole[d] for d in rest)
    rows, columns = whole[dims[0]], whole[dims[1]]
    places = counted(w, max(-offset, 0) * columns + max(offset, 0), columns + 1, x.shape[-1])
    zeros = w.filled((*lead, rows * columns), 0, x.dtype)
    flat = w.emit("ScatterElements", zeros, w.expand(places, x.shape), w(x), axis=len(lead))
    order = [*rest, *dims]
    return str(
        w.emit("Transpose", w.reshape(flat, (*lead, rows, columns)), perm=[order.index(d) for d in range(len(whole))])
    )


def counted(w: OnnxWriter, start: int, step: int, count: int) -> str:
    """start + step * i for i < count, int64."""
    whole = w.emit("Range", *[w.scalar(k, "int64") for k in (0, count, 1)])
    whole = whole if step == 1 else w.emit("Mul", whole, w.scalar(step, "int64"))
    return whole if start == 0 else str(w.emit("Add", whole, w.scalar(start, "int64")))


@create.arange.lower("onnx")
def _arange(w: OnnxWriter, e: Equation) -> str:
    start, step, count, dtype = (e.params[k] for k in ("start", "step", "count", "dtype"))
    if isinstance(start, int) and isinstance(step, int):
        return converted(w, counted(w, start, step, count), "int64", dtype)
    places = w.cast(counted(w, 0, 1, count), "float64")
    scaled = w.emit("Mul", places, w.scalar(float(step), "float64"))
    return converted(w, w.emit("Add", scaled, w.scalar(float(start), "float64")), "float64", dtype)


def converted(w: OnnxWriter, name: str, source: str, dtype: str) -> str:
    return name if source == dtype else w.cast(name, dtype)


def points(w: OnnxWriter, e: Equation) -> str:
    """``count`` points evenly from start to end, in float64, counted from both ends."""
    start, end, count = float(e.params["start"]), float(e.params["end"]), e.params["count"]
    if count < 2:
        return w.filled((count,), start, "float64")
    i = w.cast(counted(w, 0, 1, count), "float64")
    step = w.emit("Div", w.scalar(end - start, "float64"), w.scalar(float(count - 1), "float64"))
    low = w.emit("Add", w.emit("Mul", i, step), w.scalar(start, "float64"))
    back = w.emit("Sub", w.scalar(float(count - 1), "float64"), i)
    high = w.emit("Sub", w.scalar(end, "float64"), w.emit("Mul", back, step))
    return str(w.emit("Where", w.emit("Less", i, w.scalar(float(count // 2), "float64")), low, high))


create.linspace.lower("onnx", lambda w, e: converted(w, points(w, e), "float64", e.out.dtype))


@create.logspace.lower("onnx")
def _logspace(w: OnnxWriter, e: Equation) -> str:
    power = w.emit("Pow", w.scalar(float(e.params["base"]), "float64"), points(w, e))
    return converted(w, power, "float64", e.out.dtype)


@create.eye.lower("onnx")
def _eye(w: OnnxWriter, e: Equation) -> str:
    rows = w.emit("Unsqueeze", counted(w, 0, 1, e.params["rows"]), w.ints([1]))
    return w.cast(w.emit("Equal", rows, counted(w, 0, 1, e.params["columns"])), e.out.dtype)


@create.constant.lower("onnx")
def _constant(w: OnnxWriter, e: Equation) -> str:
    return w.array(np.array(e.params["value"], dtype=e.out.dtype))


@create.triangle.lower("onnx")
def _triangle(w: OnnxWriter, e: Equation) -> str:
    """Row and column numbers of the triangle: where it is not 0, row by row."""
    rows = w.emit("Unsqueeze", counted(w, e.params["offset"], 1, e.params["rows"]), w.ints([1]))
    columns = counted(w, 0, 1, e.params["columns"])
    kind = "LessOrEqual" if e.params["lower"] else "GreaterOrEqual"
    return converted(w, w.emit("NonZero", w.emit(kind, columns, rows)), "int64", e.out.dtype)


@flat.pack.lower("onnx")
def _pack(w: OnnxWriter, e: Equation) -> str:
    return joined(w, [w.reshape(w(x), (math.prod(x.shape),)) for x in e.inputs if isinstance(x, Value)], 0)


@flat.unpack.lower("onnx")
def _unpack(w: OnnxWriter, e: Equation) -> tuple[str, ...]:
    parts, at = [], 0
    for sizes in e.params["shapes"]:
        end = at + math.prod(sizes)
        parts.append(w.reshape(w.emit("Slice", w(e.inputs[0]), w.ints([at]), w.ints([end]), w.ints([0])), sizes))
        at = end
    return tuple(parts)

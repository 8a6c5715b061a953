"""Operators that make arrays, rearrange them, or choose from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import leafgrad
from leafgrad_onnx.errors import OnnxLoadError
from leafgrad_onnx.operators.registry import MOST_BYTES, axis_of, ints, number, operator, room, tensor_of
from leafgrad_onnx.types import NAME


@operator("Constant")
def constant(
    *, value: Any = None, value_float: float | None = None, value_floats: Any = None, value_int: int | None = None,
    value_ints: Any = None,
) -> Any:  # fmt: skip
    if value is not None:
        return value
    for given, dtype in (
        (value_float, "float32"),
        (value_floats, "float32"),
        (value_int, "int64"),
        (value_ints, "int64"),
    ):
        if given is not None:
            return np.array(given, dtype=dtype)
    raise OnnxLoadError("expected a value")


@operator("Shape")
def shape_of(x: Any, *, start: int = 0, end: int | None = None) -> Any:
    return np.array(tuple(x.shape)[start:end], dtype="int64")


@operator("Size")
def size_of(x: Any) -> Any:
    return np.array(math.prod(x.shape), dtype="int64")


@operator("ConstantOfShape", host=(0,))
def constant_of_shape(shape: Any, *, value: Any = None) -> Any:
    value = np.zeros(1, "float32") if value is None else value
    return tensor_of(np.full(room(ints(shape), value.itemsize), value.reshape(-1)[0], dtype=value.dtype))


@operator("EyeLike")
def eye_like(x: Any, *, k: int = 0, dtype: int | None = None) -> Any:
    rows, columns = x.shape
    kind = x.dtype if dtype is None else getattr(leafgrad, NAME[dtype])
    return tensor_of(np.eye(rows, columns, k)).to(kind)


@operator("Range", host=None)
def arange(start: Any, limit: Any, delta: Any) -> Any:
    first, last, step = number(start), number(limit), number(delta)
    if not step or not math.isfinite((last - first) / step):
        raise OnnxLoadError(f"expected a range that ends, got {first}, {last}, {step}")
    count = room((max(math.ceil((last - first) / step), 0),), 8)[0]
    return (np.arange(count) * np.asarray(step, start.dtype) + start.reshape(())).astype(start.dtype)


@operator("Reshape", host=(1,))
def reshape(x: Any, shape: Any = None, *, allowzero: int = 0) -> Any:
    wanted = ints(shape)
    sizes = [x.shape[i] if n == 0 and not allowzero and i < x.ndim else n for i, n in enumerate(wanted)]
    return x.reshape(sizes)


@operator("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    at = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:at]), math.prod(x.shape[at:]))


@operator("Transpose")
def transpose(x: Any, *, perm: list[int] | None = None) -> Any:
    return x.permute(perm if perm is not None else list(range(x.ndim))[::-1])


@operator("Squeeze", host=(1,))
def squeeze(x: Any, dims: Any = None, *, axes: list[int] | None = None) -> Any:
    chosen = axes if dims is None else ints(dims)
    gone = [d for d, n in enumerate(x.shape) if n == 1] if chosen is None else [axis_of(a, x.ndim) for a in chosen]
    for d in gone:
        if x.shape[d] != 1:
            raise OnnxLoadError(f"axis {d} of {list(x.shape)} is not of size 1")
    return x.reshape([n for d, n in enumerate(x.shape) if d not in gone])


@operator("Unsqueeze", host=(1,))
def unsqueeze(x: Any, dims: Any = None, *, axes: list[int] | None = None) -> Any:
    chosen = (axes or []) if dims is None else ints(dims)
    ndim = x.ndim + len(chosen)
    new = {axis_of(a, ndim) for a in chosen}
    if len(new) != len(chosen):
        raise OnnxLoadError(f"expected different axes, got {chosen}")
    left = iter(x.shape)
    return x.reshape([1 if d in new else next(left) for d in range(ndim)])


@operator("Expand", host=(1,))
def expand(x: Any, shape: Any) -> Any:
    whole = room(np.broadcast_shapes(tuple(x.shape), room(ints(shape), 1)), 8)
    return x.expand(whole)


@operator("Tile", host=(1,))
def tile(x: Any, repeats: Any) -> Any:
    times = ints(repeats)
    room([n * k for n, k in zip(x.shape, times, strict=True)], 8)
    return x.repeat(times)


@operator("Concat")
def concat(*xs: Any, axis: int) -> Any:
    room([sum(x.numel() for x in xs)], 8)
    return leafgrad.cat(xs, axis)


@operator("Split", host=(1,))
def split(
    x: Any, sizes: Any = None, *, axis: int = 0, split: list[int] | None = None, num_outputs: int = 0, outputs: int
) -> Any:
    n = x.shape[axis]
    parts = split if sizes is None else ints(sizes)
    if parts is None:
        count = num_outputs or outputs
        each = -(-n // count)
        parts = [min(each, max(n - i * each, 0)) for i in range(count)]
    return tuple(x.split(parts, axis))


@operator("Slice", host=(1, 2, 3, 4))
def slice_(
    x: Any, begin: Any = None, stop: Any = None, dims: Any = None, step: Any = None, *, starts: Any = None,
    ends: Any = None, axes: Any = None,
) -> Any:  # fmt: skip
    first, last = (starts, ends) if begin is None else (ints(begin), ints(stop))
    chosen = axes if dims is None else ints(dims)
    chosen = list(range(len(first))) if chosen is None else [axis_of(a, x.ndim) for a in chosen]
    steps = [1] * len(first) if step is None else ints(step)
    for d, a, b, s in zip(chosen, first, last, steps, strict=True):
        if s == 0:
            raise OnnxLoadError("expected steps other than 0")
        n = x.shape[d]
        low, high = (0, n) if s > 0 else (-1, n - 1)
        a, b = (min(max(k + n if k < 0 else k, low), high) for k in (a, b))
        if s > 0:
            x = x[(slice(None),) * d + (slice(a, max(b, a), s),)]
        else:
            count = max(-((b - a) // -s), 0) if a > b else 0
            bottom = a + (count - 1) * s
            x = x[(slice(None),) * d + (slice(bottom, a + 1, -s) if count else slice(0, 0),)].flip(d)
    return x


@operator("Pad", host=(1, 3))
def pad(
    x: Any, widths: Any = None, value: Any = None, dims: Any = None, *, mode: str = "constant", pads: Any = None,
    fill: float = 0.0,
) -> Any:  # fmt: skip
    given = pads if widths is None else ints(widths)
    chosen = list(range(x.ndim)) if dims is None else [axis_of(a, x.ndim) for a in ints(dims)]
    k = len(chosen)
    before, after = [0] * x.ndim, [0] * x.ndim
    for i, d in enumerate(chosen):
        before[d], after[d] = given[i], given[i + k]
    room([max(n + a + b, 0) for n, a, b in zip(x.shape, before, after, strict=True)], 8)
    for d in range(x.ndim):
        cut = max(-before[d], 0), max(-after[d], 0)
        if any(cut):
            x = x.narrow(d, cut[0], x.shape[d] - sum(cut))
        a, b = max(before[d], 0), max(after[d], 0)
        if a or b:
            x = padded(x, d, a, b, mode, value)
    return x


def padded(x: Any, d: int, before: int, after: int, mode: str, value: Any) -> Any:
    """``x`` longer along one dimension."""
    n = x.shape[d]
    if mode == "constant":
        parts = [x]
        fill = x.new_zeros(()) if value is None else value.reshape(()).to(x.dtype)
        for size, at in ((before, 0), (after, len(parts) + (before > 0))):
            if size:
                parts.insert(at, fill.expand([size if k == d else m for k, m in enumerate(x.shape)]))
        return leafgrad.cat(parts, d)
    places = np.arange(-before, n + after)
    if mode == "edge":
        places = places.clip(0, n - 1)
    elif mode == "wrap":
        places = places % n
    elif mode == "reflect":
        period = max(2 * (n - 1), 1)
        places = places % period
        places = np.where(places >= n, period - places, places)
    else:
        raise OnnxLoadError(f"Pad: unknown mode {mode!r}")
    return x.index_select(d, tensor_of(places))


@operator("Trilu", host=(1,))
def trilu(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    return (leafgrad.triu if upper else leafgrad.tril)(x, number(k, 0))


# ---- by index -----------------------------------------------------------------------------------------------------


def inside(at: Any, size: int) -> Any:
    """Indices of which negative ones count from the end, as int64."""
    at = at.to(leafgrad.int64)
    return leafgrad.where(at < 0, at + size, at)


@operator("Gather")
def gather(x: Any, at: Any, *, axis: int = 0) -> Any:
    d = axis_of(axis, x.ndim)
    room((*x.shape[:d], *at.shape, *x.shape[d + 1 :]), 8)
    return x[(slice(None),) * d + (inside(at, x.shape[d]),)]


@operator("GatherElements")
def gather_elements(x: Any, at: Any, *, axis: int = 0) -> Any:
    return x.gather(axis, inside(at, x.shape[axis]))


@operator("GatherND")
def gather_nd(x: Any, at: Any, *, batch_dims: int = 0) -> Any:
    room((*at.shape[:-1], *x.shape[batch_dims + at.shape[-1] :]), 8)
    keys = tuple(inside(at[..., i], x.shape[batch_dims + i]) for i in range(at.shape[-1]))
    lead = [
        leafgrad.arange(at.shape[b]).reshape([-1 if d == b else 1 for d in range(at.ndim - 1)])
        for b in range(batch_dims)
    ]
    return x[(*lead, *keys)]


REDUCED = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("ScatterElements", "Scatter")
def scatter_elements(x: Any, at: Any, updates: Any, *, axis: int = 0, reduction: str = "none") -> Any:
    at = inside(at, x.shape[axis])
    if reduction == "none":
        return x.scatter(axis, at, updates)
    if reduction == "add":
        return x.scatter_add(axis, at, updates)
    return x.scatter_reduce(axis, at, updates, REDUCED[reduction])


@operator("ScatterND")
def scatter_nd(x: Any, at: Any, updates: Any, *, reduction: str = "none") -> Any:
    depth = at.shape[-1]
    keys = tuple(inside(at[..., i], x.shape[i]) for i in range(depth))
    if reduction == "none":
        return x.index_put(keys, updates)
    if reduction == "add":
        return x.index_put(keys, updates, accumulate=True)
    flat: Any = 0
    size = math.prod(x.shape[:depth])
    for key, n in zip(keys, x.shape, strict=False):
        flat = flat * n + key
    rest = math.prod(x.shape[depth:])
    rows = x.reshape(size, rest)
    where = flat.reshape(-1, 1).expand(-1, rest)
    return rows.scatter_reduce(0, where, updates.reshape(-1, rest), REDUCED[reduction]).reshape(x.shape)


@operator("OneHot", host=(1,))
def one_hot(at: Any, depth: Any, values: Any, *, axis: int = -1) -> Any:
    n = int(number(depth))
    room((*at.shape, n), 8)
    d = axis_of(axis, at.ndim + 1)
    at = at.to(leafgrad.int64).unsqueeze(d)
    at = leafgrad.where(at < 0, at + n, at)
    classes = leafgrad.arange(n).reshape([-1 if k == d else 1 for k in range(at.ndim)])
    return leafgrad.where(at == classes, values[1], values[0])


@operator("NonZero")
def nonzero(x: Any) -> Any:
    return leafgrad.nonzero(x).T


@operator("Compress")
def compress(x: Any, condition: Any, *, axis: int | None = None) -> Any:
    x, d = (x.reshape(-1), 0) if axis is None else (x, axis_of(axis, x.ndim))
    places = leafgrad.nonzero(condition).reshape(-1)
    return x.index_select(d, places)


@operator("ReverseSequence", host=(1,))
def reverse_sequence(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    time = np.arange(x.shape[time_axis]).reshape(-1, 1)
    many = np.asarray(lengths).reshape(1, -1)
    places = np.where(time < many, many - 1 - time, time)
    places = places.T if batch_axis < time_axis else places
    shape = [n if d in (batch_axis, time_axis) else 1 for d, n in enumerate(x.shape)]
    return x.gather(time_axis, tensor_of(places.reshape(shape).copy()).expand(x.shape))


@operator("Unique")
def unique(x: Any, *, axis: int | None = None, sorted: int = 1) -> Any:
    array = x.detach().numpy()
    values, first, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        values, first, counts = np.take(values, order, axis or 0), first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return values, first, inverse, counts


@operator("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = x.shape
    k = blocksize
    if mode == "CRD":
        return x.reshape(n, c // k**2, k, k, h, w).permute(0, 1, 4, 2, 5, 3).reshape(n, c // k**2, h * k, w * k)
    return x.reshape(n, k, k, c // k**2, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // k**2, h * k, w * k)


@operator("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = x.shape
    k = blocksize
    parts = x.reshape(n, c, h // k, k, w // k, k)
    order = (0, 1, 3, 5, 2, 4) if mode == "CRD" else (0, 3, 5, 1, 2, 4)
    return parts.permute(*order).reshape(n, c * k * k, h // k, w // k)


@operator("Einsum")
def einsum(*xs: Any, equation: str) -> Any:
    if math.prod([x.numel() for x in xs]) * 8 > MOST_BYTES:  # it may be too large
        room(leafgrad.einsum(equation, *[leafgrad.empty(x.shape, device="meta") for x in xs]).shape, 8)
    return leafgrad.einsum(equation, *xs)


@operator("Upsample", host=(1,))
def upsample(x: Any, scales: Any, *, mode: str = "nearest") -> Any:
    sizes = room([math.floor(n * s) for n, s in zip(x.shape, np.asarray(scales).tolist(), strict=True)], 8)
    if mode != "nearest":
        raise OnnxLoadError(f"Upsample: mode {mode!r}")
    for d, (n, m) in enumerate(zip(x.shape, sizes, strict=True)):
        places = (np.arange(m) * n // max(m, 1)).astype("int64")
        x = x.index_select(d, tensor_of(places))
    return x


@operator("RandomUniformLike", "RandomUniform")
def uniform(
    x: Any = None, *, low: float = 0.0, high: float = 1.0, dtype: int = 0, seed: float = 0.0, shape: Any = None
) -> Any:
    kind = getattr(leafgrad, NAME[dtype or 1]) if dtype or x is None else x.dtype
    return leafgrad.rand(*room(x.shape if shape is None else shape, 8), dtype=kind) * (high - low) + low


@operator("RandomNormalLike", "RandomNormal")
def normal(
    x: Any = None, *, mean: float = 0.0, scale: float = 1.0, dtype: int = 0, seed: float = 0.0, shape: Any = None
) -> Any:
    kind = getattr(leafgrad, NAME[dtype or 1]) if dtype or x is None else x.dtype
    return leafgrad.randn(*room(x.shape if shape is None else shape, 8), dtype=kind) * scale + mean


@operator("Bernoulli")
def bernoulli(x: Any, *, dtype: int = 0, seed: float = 0.0) -> Any:
    found = leafgrad.bernoulli(x)
    return found.to(getattr(leafgrad, NAME[dtype])) if dtype else found


@operator("Dropout", host=(1, 2))
def dropout(x: Any, share: Any = None, training: Any = None, *, seed: int = 0, ratio: float = 0.5, outputs: int) -> Any:
    on, p = bool(number(training, False)), float(number(share, ratio))
    if not on or p == 0:
        return (x, leafgrad.ones_like(x, dtype=leafgrad.bool))[: max(outputs, 1)] if outputs > 1 else x
    mask = leafgrad.rand(*x.shape) >= p
    y = leafgrad.where(mask, x / (1 - p), leafgrad.zeros_like(x))
    return (y, mask) if outputs > 1 else y

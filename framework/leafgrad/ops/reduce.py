"""Reductions over dimensions. ``dim`` is one, several in a tuple, or None for all; () reduces nothing."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.ops import forms
from leafgrad.ops.abstract import PRECISE
from leafgrad.ops.convert import new_full, to_dtype
from leafgrad.ops.cumulative import cumprod, shift
from leafgrad.ops.define import op
from leafgrad.ops.elementwise import abs, abs_x, div, mul, pow, sqrt, sub
from leafgrad.ops.geometry import inverse
from leafgrad.ops.half import total
from leafgrad.ops.select import where
from leafgrad.ops.shape import expand, permute, reshape
from leafgrad.ops.small import SMALL, adding
from leafgrad.ops.traits import dims

_expand, _reshape = expand.function, reshape.function

Shape = tuple[int, ...]
Dims = int | tuple[int, ...] | None


def kept(shape: Shape, dim: Dims) -> Shape:
    """``shape`` with the reduced dimensions kept at size 1."""
    gone = dims(dim, len(shape))
    return tuple([1 if i in gone else n for i, n in enumerate(shape)])


def broadcast_back(g: Any, x_shape: Shape, dim: Dims) -> Any:
    """The gradient (or value) of a reduction, back in the shape of what was reduced."""
    return _expand(_reshape(g, shape=kept(x_shape, dim)) if g.shape != () else g, shape=x_shape)


def count(x_shape: Shape, dim: Dims) -> int:
    """How many elements go into one of the result."""
    if dim is None or (type(dim) is tuple and len(dim) == len(x_shape)):
        return math.prod(x_shape)
    return math.prod([x_shape[d] for d in dims(dim, len(x_shape))])


def dot(xp: Any, x: Any, y: Any, dim: Dims, keepdim: bool) -> Any:
    """The sum of x * y, arrays of one shape, over ``dim``, without the product in memory."""
    axes, gone = list(range(x.ndim)), dims(dim, x.ndim)
    out = xp.einsum(x, axes, y, axes, [i for i in axes if i not in gone])
    return out.reshape(kept(x.shape, dim)) if keepdim else out


# ---- sums and means -----------------------------------------------------------------------------------------------


@op("linear", "reduction", "complex")
def sum(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """Sum over ``dim``."""
    return total(x, dim, keepdim)


@sum.kernel("numpy")
def _sum(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """As above; small arrays as products. The method of arrays would warn of inf - inf, in a module of NumPy's own."""
    added = adding(xp, x.shape, x.dtype, dim, keepdim)
    if added is not None:
        return added(x)
    return total(x, dim, keepdim) if x.dtype.char == "e" else xp.add.reduce(x, axis=dim, keepdims=keepdim)


sum.form = forms.reduction_form("SumBackward")
sum.vjp(x=lambda g, x_shape, *, dim: broadcast_back(g, x_shape, dim))
sum.lower("native", lambda c, e: c.reduction("+", e.params["dim"]))
sum.chunk(lambda call: call.reduced(additive=True))
sum.lower("numpy", lambda writer, e: writer.total(e, dims(e.params["dim"], e.inputs[0].ndim)))


@op("linear", "reduction", "complex")
def mean(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """Mean over ``dim``; nan over no elements."""
    if x.dtype == "float16":
        return (x.sum(axis=dim, keepdims=keepdim, dtype="float32") / count(x.shape, dim)).astype("float16")
    return x.sum(axis=dim, keepdims=keepdim) / count(x.shape, dim)


@mean.kernel("numpy")
def _mean(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """As above, like ``sum``."""
    if x.dtype.char == "e":
        return mean.forward(xp, x, dim=dim, keepdim=keepdim)
    added = adding(xp, x.shape, x.dtype, dim, keepdim)
    out = xp.add.reduce(x, axis=dim, keepdims=keepdim) if added is None else added(x)
    out /= x.size // (out.size or 1)
    return out


def _mean_x(g: Any, x_shape: Shape, *, dim: Dims) -> Any:
    n = count(x_shape, dim)
    if n > 2048 and g.dtype == "float16":  # which may not hold it
        wide = to_dtype(g, dtype="float32", source="float16") / n
        return broadcast_back(to_dtype(wide, dtype="float16", source="float32"), x_shape, dim)
    return broadcast_back(g / n, x_shape, dim)


mean.form = forms.reduction_form("MeanBackward")
mean.vjp(x=_mean_x)
mean.lower("native", lambda c, e: c.reduction("+", e.params["dim"], mean=True))


@mean.rewrite
def _mean_in_steps(graph: Any, equation: Any) -> Any:
    """A sum over a count; not in float16, whose sums overflow."""
    (x,), params = equation.values, equation.params
    n = count(x.shape, params["dim"])
    return graph.emit(div, graph.emit(sum, x, **params), n * 1.0) if n and x.dtype in PRECISE else None


def averaged(graph: Any, x: Any, dim: Dims) -> Any:
    """The mean of a value of a graph over ``dim``, kept, for rewrite rules."""
    return graph.emit(div, graph.emit(sum, x, dim=dim, keepdim=True), count(x.shape, dim) * 1.0)


@op("reduction")
def nansum(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """Sum over ``dim`` of what is not nan."""
    return total(xp.where(x == x, x, 0), dim, keepdim)


nansum.vjp(x=lambda g, x, x_shape, *, dim: where(x == x, broadcast_back(g, x_shape, dim), 0))
nansum.lower("cuda", lambda c, e: c.reduction("+", e.params["dim"], each="x == x ? x : 0"))
nansum.chunk(lambda call: call.reduced(additive=True))


@op("reduction", "holomorphic")
def prod(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """Product over ``dim``."""
    return x.prod(axis=dim, keepdims=keepdim)


def _prod_x(g: Any, x: Any, x_shape: Shape, *, dim: Dims) -> Any:
    gone = dims(dim, len(x_shape))
    rest = tuple([i for i in range(len(x_shape)) if i not in gone])
    order = rest + gone
    moved = tuple(x_shape[i] for i in order)
    rows = reshape(permute(x, dims=order), shape=(*moved[: len(rest)], count(x_shape, dim)))
    at = len(rest)
    before = shift(cumprod(rows, dim=at), dim=at, by=1, fill=1)
    after = shift(cumprod(rows, dim=at, reverse=True), dim=at, by=-1, fill=1)
    others = permute(reshape(before * after, shape=moved), dims=inverse(order))
    return broadcast_back(g, x_shape, dim) * others


prod.form = forms.reduction_form("ProdBackward")
prod.autocast = "float32"
prod.vjp(x=_prod_x)
prod.lower("native", lambda c, e: c.reduction("*", e.params["dim"]))


# ---- spread -------------------------------------------------------------------------------------------------------


def _moment(xp: Any, x: Any, dim: Dims, correction: float, keepdim: bool) -> Any:
    if x.dtype == "float16":
        return _moment(xp, x.astype("float32"), dim, correction, keepdim)
    n = count(x.shape, dim)
    d = x - x.sum(axis=dim, keepdims=True) / n
    d -= d.sum(axis=dim, keepdims=True) / n  # of numbers far from 0, their mean is rounded to about their own digits
    left = max(n - correction, 0)
    squares = dot(xp, d, d, dim, keepdim)
    return squares / left if left else xp.where(squares > 0, squares + math.inf, math.nan)


def _deviation(x: Any, x_shape: Shape, dim: Dims, correction: float) -> Any:
    """x minus its mean, over n - correction."""
    left = max(count(x_shape, dim) - correction, 0)
    return (x - mean(x, dim=dim, keepdim=True)) * (1 / left if left else math.inf)


@op("reduction")
def var(xp: Any, x: Any, *, dim: Dims, correction: float = 1, keepdim: bool = False) -> Any:
    """Variance over ``dim``: squared deviations from the mean, summed, over n - correction."""
    return _moment(xp, x, dim, correction, keepdim).astype(x.dtype)


@var.kernel("numpy")
def _var(xp: Any, x: Any, *, dim: Dims, correction: float = 1, keepdim: bool = False) -> Any:
    """As above; small arrays in fewer calls, in float64."""
    small = x.dtype.char in "fd" and 0 < x.size <= SMALL
    wide = x.astype("float64", copy=False) if small else x
    average = xp.add.reduce(wide, dim, None, None, True) if small else x
    n = x.size // (average.size or 1)
    if not small or n <= correction:
        return var.forward(xp, x, dim=dim, correction=correction, keepdim=keepdim)
    average /= n
    d = wide - average
    d *= d
    spread = xp.add.reduce(d, dim, None, None, True)
    spread /= n - correction
    return (spread if keepdim else spread.squeeze(dim)).astype(x.dtype, copy=False)


def _var_x(g: Any, x: Any, x_shape: Shape, *, dim: Dims, correction: float) -> Any:
    return broadcast_back(g, x_shape, dim) * (2 * _deviation(x, x_shape, dim, correction))


var.vjp(x=_var_x)


@var.rewrite
def _var_in_steps(graph: Any, equation: Any) -> Any:
    """The sum of squares of x less its mean, over a count."""
    return _spread_in_steps(graph, equation.inputs[0], **equation.params)


def _spread_in_steps(graph: Any, x: Any, dim: Dims, correction: float, keepdim: bool) -> Any:
    left = count(x.shape, dim) - correction
    if x.dtype not in PRECISE or left <= 0 or 0 in x.shape:
        return None
    c = graph.emit(sub, x, averaged(graph, x, dim))
    c = graph.emit(sub, c, averaged(graph, c, dim))
    return graph.emit(div, graph.emit(sum, graph.emit(mul, c, c), dim=dim, keepdim=keepdim), left * 1.0)


@op("reduction")
def std(xp: Any, x: Any, *, dim: Dims, correction: float = 1, keepdim: bool = False) -> Any:
    """Standard deviation over ``dim``, the square root of ``var``. Where it is 0 its gradient is taken as 0."""
    wide = x.astype("float64") if x.dtype == "float32" else x  # whose squares may be too large though the root is not
    return xp.sqrt(_moment(xp, wide, dim, correction, keepdim)).astype(x.dtype)


@std.kernel("numpy")
def _std(xp: Any, x: Any, *, dim: Dims, correction: float = 1, keepdim: bool = False) -> Any:
    """As above; of float32 as ``var``, which is in float64 for small arrays."""
    if x.dtype.char != "f":
        return std.forward(xp, x, dim=dim, correction=correction, keepdim=keepdim)
    wide = _var(xp, x.astype("float64"), dim=dim, correction=correction, keepdim=keepdim)
    return xp.sqrt(wide).astype(x.dtype)


def _per_length(g: Any, length: Any) -> Any:
    """g / length, and 0 where that is 0, also of what is pushed through it or pulled back."""
    return where(length == 0, 0, g) / where(length == 0, 1, length)


std.vjp(
    x=lambda g, out, x, x_shape, *, dim, correction: (
        broadcast_back(_per_length(g, out), x_shape, dim) * _deviation(x, x_shape, dim, correction)
    )
)


@std.rewrite
def _std_in_steps(graph: Any, equation: Any) -> Any:
    """The root of the variance; of float32 in float64, as uncompiled."""
    x = equation.inputs[0]
    if x.dtype != "float32":
        spread = _spread_in_steps(graph, x, **equation.params)
        return None if spread is None else graph.emit(sqrt, spread)
    spread = _spread_in_steps(graph, graph.emit(to_dtype, x, dtype="float64", source="float32"), **equation.params)
    if spread is None:
        return None
    return graph.emit(to_dtype, graph.emit(sqrt, spread), dtype="float32", source="float64")


@op("reduction", "complex")
def norm(xp: Any, x: Any, *, p: float, dim: Dims, keepdim: bool = False) -> Any:
    """(sum of abs(x)**p) ** (1/p) over ``dim``, for finite p; for p = 0 how many are not 0. At 0 its gradient is 0."""
    if x.dtype == "float16":
        return norm.forward(xp, x.astype("float32"), p=p, dim=dim, keepdim=keepdim).astype("float16")
    if p == 2:
        return xp.sqrt(dot(xp, x.conj(), x, dim, keepdim).real)
    size = xp.abs(x)
    if p == 0:
        return (size != 0).sum(axis=dim, keepdims=keepdim).astype(size.dtype)
    return size.sum(axis=dim, keepdims=keepdim) if p == 1 else (size**p).sum(axis=dim, keepdims=keepdim) ** (1 / p)


@norm.kernel("numpy")
def _norm(xp: Any, x: Any, *, p: float, dim: Dims, keepdim: bool = False) -> Any:
    """As above; small arrays as products, which take half of the time of einsum."""
    added = adding(xp, x.shape, x.dtype, dim, keepdim) if p == 2 else None
    return norm.forward(xp, x, p=p, dim=dim, keepdim=keepdim) if added is None else xp.sqrt(added(x * x))


def _norm_x(g: Any, out: Any, x: Any, x_shape: Shape, *, p: float, dim: Dims) -> Any:
    if p == 0:
        return None
    if p == 1:
        return abs_x(broadcast_back(g, x_shape, dim), x)
    if p == 2:
        return x * broadcast_back(_per_length(g, out), x_shape, dim)
    powers = where(x == 0, 0, abs_x(pow(abs(x), p - 1), x))
    return powers * broadcast_back(where(out == 0, 0, g) * pow(where(out == 0, 1, out), 1 - p), x_shape, dim)


norm.label = "LinalgVectorNormBackward0"
norm.vjp(x=_norm_x)
norm.makes = "real"


@norm.rewrite
def _norm_in_steps(graph: Any, equation: Any) -> Any:
    """The root of the sum of squares, or the sum of absolute values."""
    x, p = equation.inputs[0], equation.params["p"]
    params = {name: equation.params[name] for name in ("dim", "keepdim")}
    if x.dtype not in PRECISE or 0 in x.shape or p not in (1, 2):
        return None
    if p == 1:
        return graph.emit(sum, graph.emit(abs, x), **params)
    return graph.emit(sqrt, graph.emit(sum, graph.emit(mul, x, x), **params))


_POWERS = {0: ("x != 0", "x"), 1: ("abs(x)", "x"), 2: ("x * x", "sqrt(x)")}
_POWER = ("pow(abs(x), p)", "pow(x, 1 / p)")
norm.lower("cuda", lambda c, e: c.reduction("+", e.params["dim"], False, *_POWERS.get(e.params["p"], _POWER)))


# ---- largest and smallest -----------------------------------------------------------------------------------------


@op("reduction")
def amax(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """The largest value over ``dim``. Equal ones share the gradient, which is nan where the value is."""
    return x.max(axis=dim, keepdims=keepdim)


@op("reduction")
def amin(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """The smallest value over ``dim``. Equal ones share the gradient, which is nan where the value is."""
    return x.min(axis=dim, keepdims=keepdim)


def share(g: Any, out: Any, x: Any, x_shape: Shape, *, dim: Dims) -> Any:
    """g in equal parts to the elements of x that are ``out``; nan if ``out`` is, since no element is equal to it."""
    mask = where(x == broadcast_back(out, x_shape, dim), new_full(g, shape=(), value=1), 0)
    parts = sum(mask, dim=dim, keepdim=True)
    return reshape(g, shape=kept(x_shape, dim)) / parts * mask


amax.vjp(x=share)
amin.vjp(x=share)
amax.lower("native", lambda c, e: c.reduction("max", e.params["dim"]))
amin.lower("native", lambda c, e: c.reduction("min", e.params["dim"]))


# ---- logic --------------------------------------------------------------------------------------------------------


@op("reduction", "nondifferentiable", "complex")
def any(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """Whether some element over ``dim`` is nonzero. bool"""
    return x.any(axis=dim, keepdims=keepdim)


@op("reduction", "nondifferentiable", "complex")
def all(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """Whether no element over ``dim`` is zero. bool"""
    return x.all(axis=dim, keepdims=keepdim)


@op("reduction", "nondifferentiable", "complex")
def count_nonzero(xp: Any, x: Any, *, dim: Dims) -> Any:
    """How many elements over ``dim`` are nonzero. int64"""
    return (x != 0).sum(axis=dim, dtype="int64")


for _op, _kind in ((any, "max"), (all, "min"), (count_nonzero, "+")):
    _op.lower("cuda", lambda c, e, kind=_kind: c.reduction(kind, e.params["dim"], each="x != 0"))
count_nonzero.chunk(lambda call: call.reduced(additive=True))

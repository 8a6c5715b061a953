"""Reading and writing one class of many, as losses of class scores do."""

from __future__ import annotations

import functools
from typing import Any

from leafgrad.ops import forms
from leafgrad.ops.abstract import PRECISE
from leafgrad.ops.compare import ge, lt, ne
from leafgrad.ops.convert import new_full, to_dtype
from leafgrad.ops.define import op
from leafgrad.ops.elementwise import div, mul, neg, sub
from leafgrad.ops.exponential import exp
from leafgrad.ops.half import total
from leafgrad.ops.index import expect_in_range
from leafgrad.ops.reduce import sum
from leafgrad.ops.refuse import refuse
from leafgrad.ops.select import maximum
from leafgrad.ops.shape import expand, reshape
from leafgrad.ops.small import SMALL, known, repeated, summing
from leafgrad.ops.softmax import log_softmax, lowered, raised, softmax
from leafgrad.ops.traits import ALL

POSITIVE = (1 << 62) - 1
FEW = 64  # numbers that Python looks at sooner than NumPy
NEGATIVE, BEYOND = "Class values must be non-negative.", "Class values must be smaller than num_classes={}."


def _key(xp: Any, shape: tuple[int, ...], target: Any, dim: int, ignore: int) -> tuple[Any, Any]:
    """Where ``target`` is not ignored, and the index arrays of its places in an array of ``shape``.

    A negative class must not count from the end: its sign bit is cut off, which puts it out of range.
    """
    kept = target != ignore
    return kept, _places(xp, shape, xp.where(kept, target, 0) & POSITIVE, dim)


def _places(xp: Any, shape: tuple[int, ...], at: Any, dim: int) -> tuple[Any, ...]:
    """The index arrays of the places ``at`` along ``dim``, one for each of the others."""
    if len(shape) == 2:
        each = xp.arange(shape[1 - dim])
        return (each, at) if dim else (at, each)
    others = [n for d, n in enumerate(shape) if d != dim]
    ladders = [
        xp.arange(n).reshape((1,) * axis + (n,) + (1,) * (len(others) - axis - 1)) for axis, n in enumerate(others)
    ]
    return (*ladders[:dim], at, *ladders[dim:])


def _checked(xp: Any, shape: tuple[int, ...], target: Any, dim: int, ignore: int) -> tuple[Any, Any]:
    """The same after a check of the targets, which ``place`` and slopes have from ops that did it."""
    kept, key = _key(xp, shape, target, dim, ignore)
    expect_in_range(key[dim], shape[dim], dim)
    return kept, key


@op("any_dtype", "raises")
def pick(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """x at the class that ``target`` (int64) names along ``dim``, 0 where it is ``ignore``. (n, c, ...) -> (n, ...)"""
    kept, key = _checked(xp, x.shape, target, dim, ignore)
    return xp.where(kept, x[key], 0)


@op("any_dtype", transpose_of=pick)
def place(xp: Any, v: Any, target: Any, *, shape: tuple[int, ...], dim: int, ignore: int) -> Any:
    """Zeros of ``shape`` with v written where ``pick`` would read; the transpose of pick. (n, ...) -> (n, c, ...)"""
    out = xp.zeros(shape, dtype=v.dtype)
    kept, key = _key(xp, shape, target, dim, ignore)
    out[key] = xp.where(kept, v, 0)
    return out


pick.autocast = "float32"
pick.lower("native", lambda c, e: c.pick(e.params["dim"], e.params["ignore"]))
place.lower("native", lambda c, e: c.place(e.params["dim"], e.params["ignore"]))
place.shape(lambda v, target, *, shape: shape if v.dtype != "bool" else None)


def _classless(x: Any, dim: int) -> tuple[int, ...]:
    """The shape of the targets of scores x."""
    return (*x.shape[:dim], *x.shape[dim + 1 :])


@pick.shape
def _pick_shape(x: Any, target: Any, *, dim: int) -> Any:
    return target.shape if x.dtype != "bool" and _classless(x, dim) == target.shape else None


@pick.chunk
def _pick_rows(call: Any) -> Any:
    """The targets' batch is that of the scores, which have a dimension of classes more."""
    dim, (scores, targets) = call.params["dim"], call.axes
    if scores == dim:
        return None
    at = targets if scores is None else scores - (scores > dim)
    return call.on(at, at + (at >= dim), at)


@place.chunk
def _place_rows(call: Any) -> Any:
    axis = next(a for a in call.axes if a is not None)
    return call.on(axis + (axis >= call.params["dim"]), axis, axis, resized=True)


def _one_class_batched(call: Any) -> Any:
    shape = {"shape": (call.size, *call.params["shape"])} if "shape" in call.params else {}
    return call.again(call.front(0), call.front(1), dim=call.params["dim"] + 1, **shape)


pick.batched(_one_class_batched)
place.batched(_one_class_batched)


# ---- one of many --------------------------------------------------------------------------------------------------


@op("nondifferentiable", "raises")
def one_hot(xp: Any, x: Any, *, classes: int) -> Any:
    """1 at the class that each element of x names, else 0; a RuntimeError for others. (...) -> (..., classes)"""
    refuse.forward(xp, x < 0, error=RuntimeError, message=NEGATIVE)
    refuse.forward(xp, x >= classes, error=RuntimeError, message=BEYOND.format(classes))
    return (x[..., None] == xp.arange(classes)).astype("int64")


@one_hot.kernel("numpy")
def _one_hot(xp: Any, x: Any, *, classes: int) -> Any:
    """As above; few rows are looked up."""
    if 0 < x.size <= FEW and classes <= FEW:
        found = x.reshape(-1).tolist()
        if min(found) >= 0 and max(found) < classes:
            return _unit_rows(xp, classes, "int64").take(x, 0)
    return one_hot.forward(xp, x, classes=classes)


one_hot.batched(lambda call: call.again(call.front(0)))
one_hot.shape(lambda x, *, classes: (*x.shape, classes))


@one_hot.rewrite
def _one_hot_in_steps(graph: Any, equation: Any) -> Any:
    """Comparisons and ``place``, which executors know."""
    (x,), classes = equation.values, equation.params["classes"]
    for bad, message in ((graph.emit(lt, x, 0), NEGATIVE), (graph.emit(ge, x, classes), BEYOND.format(classes))):
        graph.emit(refuse, bad, error=RuntimeError, message=message)
    return graph.emit(place, graph.full(x.shape, 1, x), x, shape=(*x.shape, classes), dim=x.ndim, ignore=-1)


# ---- the mean cross-entropy, whole --------------------------------------------------------------------------------


@op("any_dtype", "raises")
def cross_entropy(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """Mean of -log(softmax(x)) at the target classes that are not ``ignore``; nan if all are. (n, c, ...) -> ()

    What ``log_softmax``, ``pick`` and a mean do, as one op: classifiers spend much of a small step here.
    """
    kept, key = _checked(xp, x.shape, target, dim, ignore)
    picked = log_softmax.forward(xp, x, dim=dim)[key]
    return -xp.where(kept, picked, 0).sum() / kept.sum().astype(x.dtype)


@functools.lru_cache(maxsize=64)
def _unit_rows(xp: Any, classes: int, dtype: Any) -> Any:
    """A row for each class, 1 at its own place: NumPy reads whole rows in a tenth of the time of single places."""
    found = xp.eye(classes, dtype=dtype)
    found.flags.writeable = False
    return found


@functools.lru_cache(maxsize=256)
def _starts(xp: Any, rows: int, classes: int) -> Any:
    """Where each row begins in memory."""
    found = xp.arange(0, rows * classes, classes)
    found.flags.writeable = False
    return found


def _all_count(shape: tuple[int, ...], target: Any, dim: int, ignore: int) -> bool:
    """Whether every target is a class and none is ignored: one look, since negative ones, unsigned, are the largest."""
    classes = shape[dim]
    if target.ndim == 1 and 0 < target.size <= FEW:
        found = target.tolist()
        return not 0 <= ignore < classes and min(found) >= 0 and max(found) < classes
    return target.size > 0 and not 0 <= ignore < classes and bool(target.view("uint64").max() < classes)


@cross_entropy.kernel("numpy")
def _cross_entropy(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """As above; where all targets count, nothing need be taken out."""
    if not _all_count(x.shape, target, dim, ignore):
        return cross_entropy.forward(xp, x, target, dim=dim, ignore=ignore)
    y, now = lowered(xp, x, dim)
    if now == 1 and y.ndim == 2 and y.size <= SMALL and y.dtype.char in "fd" and y.flags.c_contiguous:
        n, classes = y.shape
        losses = xp.log(xp.exp(y).dot(repeated(xp, (classes,), 1, y.dtype)))
        losses -= y.reshape(-1)[target + _starts(xp, n, classes)]
        return repeated(xp, (1, n), 1 / n, y.dtype).dot(losses).reshape(())
    losses = xp.log(xp.add.reduce(xp.exp(y), axis=now) if y.dtype != "float16" else total(xp.exp(y), now, False))
    losses -= y[_places(xp, y.shape, target, now)]
    return xp.add.reduce(losses, None) / known(xp, target.size, x.dtype)


@op("any_dtype", "raises")
def nll_loss(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """Mean of -x at the target classes that are not ``ignore``; nan if all are. (n, c, ...) -> ()"""
    kept, key = _checked(xp, x.shape, target, dim, ignore)
    return (0 - xp.where(kept, x[key], 0).sum()) / kept.sum().astype(x.dtype)  # of zeros 0, not -0


@nll_loss.kernel("numpy")
def _nll_loss(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """As above; of small arrays where all targets count, in fewer calls."""
    plain = x.ndim == 2 and x.size <= SMALL and x.dtype.char in "fd" and x.flags.c_contiguous
    if not plain or dim != 1 or not _all_count(x.shape, target, dim, ignore):
        return nll_loss.forward(xp, x, target, dim=dim, ignore=ignore)
    n, classes = x.shape
    picked = x.reshape(-1)[target + _starts(xp, n, classes)]
    return repeated(xp, (1, n), -1, x.dtype).dot(picked).reshape(()) / known(xp, n, x.dtype)


@op("any_dtype", "nondifferentiable")
def target_weights(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """1 over the count of targets that are not ``ignore``, 0 for the others, be they all. (n, c, ...) -> (n, 1, ...)"""
    kept = target != ignore
    return xp.expand_dims(kept / xp.maximum(kept.sum(), 1), dim).astype(x.dtype)


@op("any_dtype")
def cross_entropy_slope(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """The derivative of ``cross_entropy`` by x: softmax(x) less one at the target class, over the count."""
    _, key = _key(xp, x.shape, target, dim, ignore)
    out = softmax.forward(xp, x, dim=dim)
    out[key] -= 1
    out *= target_weights.forward(xp, x, target, dim=dim, ignore=ignore)
    return out


@cross_entropy_slope.kernel("numpy")
def _slope(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """As above; where all targets count, all have one weight."""
    if not _all_count(x.shape, target, dim, ignore):
        return cross_entropy_slope.forward(xp, x, target, dim=dim, ignore=ignore)
    y, now = lowered(xp, x, dim)
    xp.exp(y, out=y)
    y /= total(y, now, True) if y.dtype == "float16" else summing(xp, y.shape, y.dtype, now)(y)
    if now == 1 and y.ndim == 2 and y.shape[1] <= FEW:
        y -= _unit_rows(xp, y.shape[1], y.dtype).take(target, 0)
    else:
        y[_places(xp, y.shape, target, now)] -= 1
    y *= known(xp, 1 / target.size, y.dtype)
    return y if now == dim else raised(y, now, dim)


def _softmax_rule(g: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    s, h = softmax(x, dim=dim), g * target_weights(x, target, dim=dim, ignore=ignore)
    return s * (h - sum(s * h, dim=(dim,), keepdim=True))


def _nll_rule(g: Any, x_shape: Any, target: Any, target_shape: Any, *, dim: int, ignore: int) -> Any:
    kept = to_dtype(ne(target, ignore), dtype=g.dtype.name, source="bool")
    each = expand(-g / sum(kept, dim=ALL[len(target_shape)]), shape=target_shape)
    return place(each, target, shape=x_shape, dim=dim, ignore=ignore)


nll_loss.label, nll_loss.autocast = "NllLossBackward0", "float32"
nll_loss.vjp(x=_nll_rule)
_slope_of = cross_entropy_slope.function
cross_entropy.form = forms.cross_entropy_form
cross_entropy.autocast = "float32"
cross_entropy.vjp(x=lambda g, x, target, *, dim, ignore: g * _slope_of(x, target, dim=dim, ignore=ignore))
cross_entropy_slope.vjp(x=_softmax_rule)


@nll_loss.shape
@cross_entropy.shape
def _loss_shape(x: Any, target: Any, *, dim: int) -> Any:
    return () if x.floating and _classless(x, dim) == target.shape else None


@target_weights.shape
def _shares_shape(x: Any, target: Any, *, dim: int) -> Any:
    return (*x.shape[:dim], 1, *x.shape[dim + 1 :]) if x.floating and _classless(x, dim) == target.shape else None


@cross_entropy_slope.shape
def _slope_shape(x: Any, target: Any, *, dim: int) -> Any:
    return x.shape if x.floating and _classless(x, dim) == target.shape else None


def _counted(graph: Any, equation: Any) -> tuple[Any, Any]:
    """1 for each target that is not ignored, else 0; and their sum."""
    x, target = equation.values
    flags = graph.emit(ne, target, equation.params["ignore"])
    kept = graph.emit(to_dtype, flags, dtype=x.dtype, source="bool")
    return kept, graph.emit(sum, kept, dim=tuple(range(kept.ndim)))


@nll_loss.rewrite
@cross_entropy.rewrite
def _loss_in_steps(graph: Any, equation: Any) -> Any:
    """The mean of what `pick` takes from the logarithms, negative: steps that share the softmax, and run in chunks."""
    (x, target), params = equation.values, equation.params
    if x.dtype not in PRECISE or 0 in x.shape:
        return None
    logarithms = graph.emit(log_softmax, x, dim=params["dim"]) if equation.op is cross_entropy else x
    picked = graph.emit(pick, logarithms, target, **params)
    total = graph.emit(sum, picked, dim=tuple(range(picked.ndim)))
    return graph.emit(neg, graph.emit(div, total, _counted(graph, equation)[1]))


@cross_entropy_slope.rewrite
def _slope_in_steps(graph: Any, equation: Any) -> Any:
    """Probabilities less one at the targets, over the count."""
    (x, target), params = equation.values, equation.params
    if x.dtype not in PRECISE or 0 in x.shape:
        return None
    dim = params["dim"]
    at = graph.emit(place, graph.full(target.shape, 1.0, x), target, shape=x.shape, **params)
    kept, count = _counted(graph, equation)
    rows = tuple([1 if d == dim else n for d, n in enumerate(x.shape)])
    share = graph.emit(reshape, graph.emit(div, kept, graph.emit(maximum, count, 1)), shape=rows)
    probabilities = graph.emit(exp, graph.emit(log_softmax, x, dim=dim))
    return graph.emit(mul, graph.emit(sub, probabilities, at), share)


# ---- batches: the count of targets is each sample's own -------------------------------------------------------------


def _counts(call: Any, target: Any) -> tuple[Any, Any]:
    """Whether each target counts, as numbers of the scores' dtype, and how many of each sample do."""
    kept = to_dtype(ne(target, call.params["ignore"]), dtype=call.args[0].dtype.name, source="bool")
    return kept, sum(kept, dim=tuple(range(1, len(target.shape))), keepdim=True)


@target_weights.batched
def _shares_batched(call: Any) -> Any:
    target, dim = call.front(1), call.params["dim"] + 1
    kept, count = _counts(call, target)
    shape = tuple(target.shape)
    return reshape(kept / maximum(count, 1), shape=(*shape[:dim], 1, *shape[dim:]))


@nll_loss.batched
@cross_entropy.batched
def _loss_batched(call: Any) -> Any:
    x, target, dim = call.front(0), call.front(1), call.params["dim"] + 1
    logarithms = log_softmax(x, dim=dim) if call.op is cross_entropy else x
    picked = pick(logarithms, target, dim=dim, ignore=call.params["ignore"])
    _, count = _counts(call, target)
    dims = tuple(range(1, len(target.shape)))
    return (0 - sum(picked, dim=dims)) / reshape(count, shape=(call.size,))  # of zeros 0, not -0


@cross_entropy_slope.batched
def _slope_batched(call: Any) -> Any:
    x, target, dim = call.front(0), call.front(1), call.params["dim"] + 1
    ones = new_full(x, shape=tuple(target.shape), value=1)
    hot = place(ones, target, shape=tuple(x.shape), dim=dim, ignore=call.params["ignore"])
    return (softmax(x, dim=dim) - hot) * _shares_batched(call)

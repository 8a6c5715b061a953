"""The logarithm of a sum of exponentials, and what is made of it along a dimension: softmax and its logarithm."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.abstract import PRECISE
from leafgrad.ops.define import op
from leafgrad.ops.elementwise import div, sub
from leafgrad.ops.exponential import exp, log
from leafgrad.ops.half import total
from leafgrad.ops.reduce import Dims, Shape, amax, broadcast_back, sum
from leafgrad.ops.small import SMALL, repeated, summing


@op("float", "reduction", "holomorphic")
def logsumexp(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """log of the sum of exp(x) over ``dim``, without overflow."""
    if not x.size:
        return xp.log(xp.exp(x).sum(axis=dim, keepdims=keepdim))
    top = x.real.max(axis=dim, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)
    result = xp.log(total(xp.exp(x - top), dim, True)) + top
    return result if keepdim else result.sum(axis=dim)


def _logsumexp_x(g: Any, out: Any, x: Any, x_shape: Shape, *, dim: Dims) -> Any:
    return broadcast_back(g, x_shape, dim) * exp(x - broadcast_back(out, x_shape, dim))


logsumexp.vjp(x=_logsumexp_x)
logsumexp.lower("native", lambda c, e: c.normalized("logsumexp", e.params["dim"]))


@op("along")
def softmax(xp: Any, x: Any, *, dim: int) -> Any:
    """exp(x) over its sum along ``dim``. (...) -> (...)"""
    if not x.ndim:
        return xp.exp(x - x)
    if not x.size:
        return xp.ones_like(x)
    y = x - x.max(axis=dim, keepdims=True)
    xp.exp(y, out=y)
    y /= total(y, (dim,), True)
    return y


def _along(x: Any, dim: int) -> Any:
    """The sum along ``dim``, kept; a 0-d value is its own."""
    return sum.function(x, dim=(dim,), keepdim=True) if x.shape else x


def lowered(xp: Any, x: Any, dim: int) -> tuple[Any, int]:
    """A copy of an array, not empty, less its largest along ``dim``; and where that dimension now is.

    Many short rows are put upright, it first: adding whole ones, softmax takes 0.1 to 0.8 of the time (2 to 24 long).
    """
    if x.shape[dim] > 24 or x.size < 64 * x.shape[dim]:
        return x - xp.maximum.reduce(x, dim, None, None, True), dim
    y = x.transpose((dim, *range(dim), *range(dim + 1, x.ndim))).copy()
    y -= xp.maximum.reduce(y, axis=0)
    return y, 0


def raised(y: Any, now: int, dim: int) -> Any:
    """What ``lowered`` may have put upright, with the dimension that is now ``now`` back at ``dim``."""
    return y if now == dim else y.transpose((*range(1, dim + 1), 0, *range(dim + 1, y.ndim))).copy()


@softmax.kernel("numpy")
def _softmax(xp: Any, x: Any, *, dim: int) -> Any:
    """As above; short rows upright."""
    if x.ndim and 0 < x.size < 64 * x.shape[dim] and x.dtype.char != "e":
        y = x - xp.maximum.reduce(x, dim, None, None, True)
        xp.exp(y, y)
        y /= summing(xp, y.shape, y.dtype, dim)(y)
        return y
    if not x.ndim or not x.size:
        return softmax.forward(xp, x, dim=dim)
    y, now = lowered(xp, x, dim)
    xp.exp(y, out=y)
    y /= total(y, now, True)
    return raised(y, now, dim)


softmax.vjp(x=lambda g, out, *, dim: out * (g - _along(g * out, dim)))
softmax.lower("native", lambda c, e: c.normalized("softmax", (e.params["dim"],)))
softmax.shape(lambda x: x.shape if x.floating else None)
softmax.chunk(lambda call: call.along())


def _shifted(graph: Any, equation: Any) -> Any:
    """The argument of a softmax less its largest value; None where the op does something else."""
    (x,), dim = equation.values, equation.params["dim"]
    if x.dtype not in PRECISE or 0 in x.shape or not x.ndim:
        return None
    return graph.emit(sub, x, graph.emit(amax, x, dim=(dim,), keepdim=True))


@softmax.rewrite
def _softmax_in_steps(graph: Any, equation: Any) -> Any:
    """exp(x - max(x)) over its sum: steps that write into buffers."""
    y = _shifted(graph, equation)
    if y is None:
        return None
    y = graph.emit(exp, y)
    return graph.emit(div, y, graph.emit(sum, y, dim=(equation.params["dim"],), keepdim=True))


@op("along")
def log_softmax(xp: Any, x: Any, *, dim: int) -> Any:
    """log(softmax(x)) without overflow. (...) -> (...)"""
    if not x.ndim:
        return x - x
    if not x.size:
        return xp.zeros_like(x)
    y = x - x.max(axis=dim, keepdims=True)
    y -= xp.log(total(xp.exp(y), (dim,), True))
    return y


@log_softmax.kernel("numpy")
def _log_softmax(xp: Any, x: Any, *, dim: int) -> Any:
    """As above; short rows upright."""
    if not x.ndim or not x.size:
        return log_softmax.forward(xp, x, dim=dim)
    y, now = lowered(xp, x, dim)
    short = now == x.ndim - 1 and x.size <= SMALL and x.dtype.char in "fd"
    y -= xp.log(xp.exp(y).dot(repeated(xp, (x.shape[now], 1), 1, x.dtype)) if short else total(xp.exp(y), now, True))
    return raised(y, now, dim)


log_softmax.vjp(x=lambda g, out, *, dim: g - exp(out) * _along(g, dim))
log_softmax.lower("native", lambda c, e: c.normalized("log_softmax", (e.params["dim"],)))
log_softmax.shape(lambda x: x.shape if x.floating else None)
log_softmax.chunk(lambda call: call.along())


@log_softmax.rewrite
def _log_softmax_in_steps(graph: Any, equation: Any) -> Any:
    """x - max(x), less the logarithm of the sum of its exponentials."""
    y = _shifted(graph, equation)
    if y is None:
        return None
    total = graph.emit(sum, graph.emit(exp, y), dim=(equation.params["dim"],), keepdim=True)
    return graph.emit(sub, y, graph.emit(log, total))

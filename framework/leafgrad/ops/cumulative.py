"""Running sums, products and extremes along one dimension, and what their gradients need."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.ops.conjugate import is_complex
from leafgrad.ops.define import op
from leafgrad.ops.exponential import exp, logaddexp
from leafgrad.ops.half import accumulator
from leafgrad.ops.select import where
from leafgrad.ops.shape import in_reverse


def part(x: Any, dim: int, start: int | None, stop: int | None) -> tuple[Any, ...]:
    """The index of x[..., start:stop, ...] along ``dim``."""
    return (slice(None),) * dim + (slice(start, stop),)


@op("along", "complex")
def shift(xp: Any, x: Any, *, dim: int, by: int, fill: float = 0) -> Any:
    """x moved by ``by`` (1 or -1) places along ``dim``; ``fill`` enters, what leaves is lost. (...) -> (...)"""
    out = xp.full(x.shape, fill, dtype=x.dtype)
    n = x.shape[dim]
    out[part(x, dim, max(by, 0), n + min(by, 0))] = x[part(x, dim, max(-by, 0), n - max(by, 0))]
    return out


shift.vjp(x=lambda g, *, dim, by: shift(g, dim=dim, by=-by))
shift.shape(lambda x: x.shape)
shift.chunk(lambda call: call.along())


@shift.lower("cuda")
def _shift_in_cuda(c: Any, e: Any) -> Any:
    source = f"i - ({e.params['by']})"
    code = f"for (long i = 0, j; i < n; i++) {{ j = {source}; out(i) = j >= 0 && j < n ? x(j) : fill; }}"
    return c.along(code, e.params["dim"])


def _run(c: Any, e: Any, start: str, step: str) -> Any:
    """Code that walks along a dimension, leaves at each place j the next ``total``, and goes on from there."""
    way = "n - 1 - i" if e.params.get("reverse") else "i"
    code = f"real total = {start}; for (long i = 0, j; i < n; i++) {{ j = {way}; out(j) = {step}; total = out(j); }}"
    return c.along(code, e.params["dim"], mixed=e.values[0].dtype == e.out.dtype)


@op("linear", "along", "complex")
def cumsum(xp: Any, x: Any, *, dim: int, reverse: bool = False) -> Any:
    """Sums of the elements up to each (or from each on, in reverse) along ``dim``. (...) -> (...)"""
    return _running(xp, xp.cumsum, x, dim, reverse)


cumsum.vjp(x=lambda g, *, dim, reverse: cumsum(g, dim=dim, reverse=not reverse))
cumsum.lower("native", lambda c, e: _run(c, e, "0", "total + x(j)"))
cumsum.shape(lambda x: x.shape if x.floating else None)
cumsum.chunk(lambda call: call.along())


@op("along", "holomorphic")
def cumprod(xp: Any, x: Any, *, dim: int, reverse: bool = False) -> Any:
    """Products of the elements up to each (or from each on, in reverse) along ``dim``. (...) -> (...)"""
    return _running(xp, xp.cumprod, x, dim, reverse)


def _running(xp: Any, function: Any, x: Any, dim: int, reverse: bool) -> Any:
    if not x.ndim:
        return x.copy()
    wide = x.astype(accumulator(x.dtype), copy=False)
    found = in_reverse(function(in_reverse(wide, (dim,)), dim), (dim,)) if reverse else function(wide, dim)
    return found if wide is x else found.astype(x.dtype)


@op("along", "holomorphic")
def recurrence(xp: Any, a: Any, b: Any, *, dim: int, reverse: bool = False) -> Any:
    """y with y[i] = a[i] y[i-1] + b[i] along ``dim`` (y[i+1] in reverse), y = 0 before the first. Of one shape.

    Computed in log2(n) sweeps that double how far back each y reaches: W. D. Hillis and G. L. Steele,
    "Data parallel algorithms", Commun. ACM 29 (1986).
    """
    if reverse:
        return in_reverse(recurrence.forward(xp, in_reverse(a, (dim,)), in_reverse(b, (dim,)), dim=dim), (dim,))
    kind = accumulator(a.dtype)
    a, b, made = a.astype(kind), b.astype(kind), b.dtype
    reach, n = 1, a.shape[dim]
    while reach < n:
        late, early = part(a, dim, reach, None), part(a, dim, None, n - reach)
        b[late] += a[late] * b[early]
        a[late] = a[late] * a[early]
        reach *= 2
    return b.astype(made, copy=False)


def _recurrence_b(g: Any, a: Any, *, dim: int, reverse: bool) -> Any:
    return recurrence(shift(a, dim=dim, by=1 if reverse else -1), g, dim=dim, reverse=not reverse)


def _recurrence_a(g: Any, out: Any, a: Any, *, dim: int, reverse: bool) -> Any:
    return _recurrence_b(g, a, dim=dim, reverse=reverse) * shift(out, dim=dim, by=-1 if reverse else 1)


recurrence.vjp(a=_recurrence_a, b=_recurrence_b)
recurrence.lower("cuda", lambda c, e: _run(c, e, "0", "i ? a(j) * total + b(j) : b(j)"))
recurrence.shape(lambda a, b: b.shape if a.shape == b.shape else None)
recurrence.chunk(lambda call: call.along())


def _cumprod_x(g: Any, out: Any, x: Any, *, dim: int, reverse: bool) -> Any:
    """Right where x is 0 too: x[i] enters each later product once, times all before it and those in between."""
    if not x.shape:
        return g
    by = -1 if reverse else 1
    before = shift(out, dim=dim, by=by, fill=1)
    return before * recurrence(shift(x, dim=dim, by=-by), g, dim=dim, reverse=not reverse)


cumprod.vjp(x=_cumprod_x)
cumprod.lower("cuda", lambda c, e: _run(c, e, "1", "total * x(j)"))
cumprod.shape(lambda x: x.shape if x.floating else None)
cumprod.chunk(lambda call: call.along())


@op("float", "along", "holomorphic")
def logcumsumexp(xp: Any, x: Any, *, dim: int) -> Any:
    """log of the sums of exp(x) up to each element along ``dim``, without overflow. (...) -> (...)

    In log2(n) sweeps, as ``recurrence``; of complex numbers one by one, for the imaginary part depends on the order.
    """
    if not x.ndim:
        return x.copy()
    y, reach, n = x.astype(accumulator(x.dtype)), 1, x.shape[dim]
    if is_complex(x):
        for i in range(1, n):
            y[part(x, dim, i, i + 1)] = logaddexp.forward(xp, x[part(x, dim, i, i + 1)], y[part(x, dim, i - 1, i)])
        return y
    while reach < n:
        late, early = part(x, dim, reach, None), part(x, dim, None, n - reach)
        y[late] = logaddexp.forward(xp, y[late], y[early])
        reach *= 2
    return y.astype(x.dtype, copy=False)


def _gap(x: Any, y: Any) -> Any:
    """x - y, and 0 where both are the same infinity."""
    return where(x == y, 0, x - y)


def _logcumsumexp_x(g: Any, out: Any, x: Any, *, dim: int) -> Any:
    """The sum of g[j] exp(x[i] - out[j]) over j >= i, by a recurrence whose factors are at most 1."""
    if not x.shape:
        return g
    fades = exp(_gap(out, shift(out, dim=dim, by=-1, fill=math.inf)))
    return exp(_gap(x, out)) * recurrence(fades, g, dim=dim, reverse=True)


logcumsumexp.vjp(x=_logcumsumexp_x)
logcumsumexp.lower("cuda", lambda c, e: _run(c, e, "0", "i ? logaddexp(total, x(j)) : x(j)"))
logcumsumexp.shape(lambda x: x.shape if x.floating else None)
logcumsumexp.chunk(lambda call: call.along())


def running_best(xp: Any, better: Any, x: Any, dim: int) -> tuple[Any, Any]:
    """Best value so far and its index, where ``better(new, old)`` lets a later element replace an earlier one."""
    n = x.shape[dim]
    sizes = [1] * x.ndim
    sizes[dim] = n
    index = xp.zeros(x.shape, "int64") + xp.arange(n).reshape(sizes)
    best, reach = x.copy(), 1
    while reach < n:
        late, early = part(x, dim, reach, None), part(x, dim, None, n - reach)
        keep = better(best[late], best[early])
        best[late], index[late] = xp.where(keep, best[late], best[early]), xp.where(keep, index[late], index[early])
        reach *= 2
    return best, index


@op("along", "nondifferentiable")
def cummax(xp: Any, x: Any, *, dim: int) -> Any:
    """Index of the largest element up to each along ``dim``, the last of equal ones; nan counts as largest."""
    return _best_index(xp, lambda new, old: (new >= old) | (new != new), x, dim)


@op("along", "nondifferentiable")
def cummin(xp: Any, x: Any, *, dim: int) -> Any:
    """Index of the smallest element up to each along ``dim``, the last of equal ones; nan counts as smallest."""
    return _best_index(xp, lambda new, old: (new <= old) | (new != new), x, dim)


@cummax.kernel("numpy")
def _cummax(xp: Any, x: Any, *, dim: int) -> Any:
    """As above, in passes that NumPy has."""
    return _last_reached(xp, xp.maximum, x, dim)


@cummin.kernel("numpy")
def _cummin(xp: Any, x: Any, *, dim: int) -> Any:
    """As above, alike."""
    return _last_reached(xp, xp.minimum, x, dim)


def _last_reached(xp: Any, better: Any, x: Any, dim: int) -> Any:
    """The index of the last element up to each that is the best so far; nan is, whatever came before."""
    if not x.ndim:
        return xp.zeros((), "int64")
    index = xp.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - dim - 1))
    return xp.maximum.accumulate(xp.where((x == better.accumulate(x, dim)) | (x != x), index, 0), dim)


def _best(better: str) -> Any:
    code = f"""
        long best = 0;
        for (long i = 0; i < n; i++) {{ if (x(i) {better} x(best) || x(i) != x(i)) best = i; out(i) = best; }}
    """
    return lambda c, e: c.along(code, e.params["dim"], mixed=True)


cummax.lower("cuda", _best(">="))
cummin.lower("cuda", _best("<="))
for _op in (cummax, cummin):
    _op.shape(lambda x: x.like(x.shape, "int64"))
    _op.chunk(lambda call: call.along())


def _best_index(xp: Any, better: Any, x: Any, dim: int) -> Any:
    return running_best(xp, better, x, dim)[1] if x.ndim else xp.zeros((), "int64")

"""Reductions, running sums and products, extremes."""

from __future__ import annotations

import itertools

import numpy as np
from op_table import Row, uniform
from scipy import special as sp

from leafgrad.ops import cumulative, extremes, reduce, softmax

CUBE = [((2, 3, 4),)]
OVER = [{"dim": (0, 1, 2)}, {"dim": (1,)}, {"dim": (0, 2), "keepdim": True}, {"dim": ()}]
ALONG = [{"dim": 0}, {"dim": 1}, {"dim": 2}]
BOTH_WAYS = [{"dim": 1}, {"dim": 1, "reverse": True}, {"dim": 0}]
VARYING = [{**p, "correction": c} for p in OVER[:3] for c in (0, 1)]


def reduced(function):
    """NumPy's ``function`` with PyTorch's names of the parameters."""
    return lambda x, dim, keepdim=False, **params: function(x, axis=dim, keepdims=keepdim, **params)


def p_norm(x, p, dim, keepdim=False):
    if p == 0:
        return np.count_nonzero(x, axis=dim, keepdims=keepdim).astype(x.dtype)
    return (np.abs(x) ** p).sum(axis=dim, keepdims=keepdim) ** (1 / p)


def variance(x, dim, correction, keepdim=False):
    return np.var(x, axis=dim, ddof=correction, keepdims=keepdim)


def with_zeros(rng, dtype):
    """Rows without a zero, with one, and with two, at either end."""
    x = uniform(rng, dtype, (3, 4), 0.5, 1.5)
    x[1, 0] = x[2, 1] = x[2, 3] = 0
    return [((x,), {"dim": d}) for d in ((1,), (0, 1))]


def with_zeros_along(rng, dtype):
    (x,), _ = with_zeros(rng, dtype)[0]
    return [((x,), {"dim": 1, "reverse": r}) for r in (False, True)]


def ties(rng, dtype):
    x = rng.integers(0, 3, (3, 6)).astype(dtype)
    return [((x,), {"dim": d}) for d in (0, 1)]


def running(function):
    def reference(x, dim, reverse=False):
        return np.flip(function(np.flip(x, dim), axis=dim), dim) if reverse else function(x, axis=dim)

    return reference


def recurrence(a, b, dim, reverse=False):
    if reverse:
        return np.flip(recurrence(np.flip(a, dim), np.flip(b, dim), dim), dim)
    a, b = np.moveaxis(a, dim, 0), np.moveaxis(b, dim, 0)
    out, y = [], np.zeros_like(b[0])
    for u, v in zip(a, b, strict=True):
        y = u * y + v
        out.append(y)
    return np.moveaxis(np.array(out), 0, dim)


def shifted(x, dim, by, fill=0):
    out = np.roll(x, by, dim)
    np.moveaxis(out, dim, 0)[0 if by > 0 else -1] = fill
    return out


def last_best(function):
    """Index of the best so far, the last of equal ones."""

    def one(row):
        best = function.accumulate(row)
        return [max(j for j in range(i + 1) if row[j] == best[i]) for i in range(len(row))]

    return lambda x, dim: np.apply_along_axis(one, dim, x)


def kept(function):
    return lambda x, dim: np.expand_dims(np.apply_along_axis(function, dim, x), dim)


def place_of_median(row):
    return np.argsort(row, kind="stable")[(len(row) - 1) // 2]


def place_of_mode(row):
    values, counts = np.unique(row, return_counts=True)
    return np.flatnonzero(row == values[np.argmax(counts)])[-1]


def distinct(x, dim):
    return np.unique(x, return_inverse=True, return_counts=True, axis=dim)


def runs(x, dim):
    rows = list(np.moveaxis(x, dim, 0))
    groups = [list(g) for _, g in itertools.groupby(range(len(rows)), key=lambda i: rows[i].tolist())]
    inverse = [k for k, group in enumerate(groups) for _ in group]
    return np.array([g[0] for g in groups]), np.array(inverse), np.array([len(g) for g in groups])


def lower_median(x):
    return np.sort(x, axis=None)[(x.size - 1) // 2]


ROWS = [
    Row(reduce.sum, reduced(np.sum), CUBE, OVER),
    Row(reduce.mean, reduced(np.mean), CUBE, OVER),
    Row(reduce.nansum, reduced(np.nansum), CUBE, OVER),
    Row(reduce.prod, reduced(np.prod), CUBE, OVER, domain=(0.5, 1.5)),
    Row(reduce.prod, reduced(np.prod), samples=with_zeros, name="prod with zeros"),
    Row(reduce.var, variance, CUBE, VARYING),
    Row(reduce.std, lambda x, **params: np.sqrt(variance(x, **params)), CUBE, VARYING),
    Row(reduce.norm, p_norm, CUBE, [{**q, "p": p} for q in OVER[:3] for p in (1.0, 2.0, 3.0, 0.5)], domain=(0.5, 1.5)),
    Row(reduce.norm, p_norm, CUBE, [{"dim": (1,), "p": 0.0}], order=0, name="norm of order 0"),
    Row(softmax.logsumexp, reduced(sp.logsumexp), CUBE, OVER[:3]),
    Row(softmax.softmax, lambda x, dim: sp.softmax(x, axis=dim), CUBE, ALONG),
    Row(softmax.log_softmax, lambda x, dim: sp.log_softmax(x, axis=dim), CUBE, ALONG),
    Row(reduce.amax, reduced(np.max), CUBE, OVER, order=2),
    Row(reduce.amin, reduced(np.min), CUBE, OVER, order=2),
    Row(reduce.any, reduced(lambda x, **p: np.any(x > 0, **p)), order=0, dtypes=["bool", "int64"],
        samples=lambda rng, dtype: [((rng.integers(0, 2, (2, 3, 4)).astype(dtype),), p) for p in OVER]),
    Row(reduce.all, reduced(lambda x, **p: np.all(x > 0, **p)), order=0, dtypes=["bool", "int64"],
        samples=lambda rng, dtype: [((rng.integers(0, 2, (2, 3, 4)).astype(dtype),), p) for p in OVER]),
    Row(reduce.count_nonzero, lambda x, dim: np.count_nonzero(x, axis=dim), samples=ties, order=0),
    Row(cumulative.cumsum, running(np.cumsum), CUBE, BOTH_WAYS),
    Row(cumulative.cumprod, running(np.cumprod), CUBE, BOTH_WAYS),
    Row(cumulative.cumprod, running(np.cumprod), samples=with_zeros_along, name="cumprod with zeros"),
    Row(cumulative.logcumsumexp, lambda x, dim: np.logaddexp.accumulate(x, axis=dim), CUBE, ALONG),
    Row(cumulative.shift, shifted, CUBE, [{"dim": 1, "by": 1}, {"dim": 2, "by": -1, "fill": 1}]),
    Row(cumulative.recurrence, recurrence, [((2, 5), (2, 5))], BOTH_WAYS),
    Row(cumulative.cummax, last_best(np.maximum), samples=ties, order=0),
    Row(cumulative.cummin, last_best(np.minimum), samples=ties, order=0),
    Row(extremes.argmax, lambda x, dim, keepdim=False: np.argmax(x, axis=dim, keepdims=keepdim), samples=ties, order=0),
    Row(extremes.argmin, lambda x, dim, keepdim=False: np.argmin(x, axis=dim, keepdims=keepdim), samples=ties, order=0),
    Row(extremes.argmax, lambda x, dim, keepdim: np.argmax(x, keepdims=keepdim), CUBE, [{"dim": None, "keepdim": True}],
        order=0, name="argmax of all"),
    Row(extremes.argmedian, kept(place_of_median), samples=ties, order=0),
    Row(extremes.argmode, kept(place_of_mode), samples=ties, order=0),
    Row(extremes.median, lower_median, CUBE, order=2),
    Row(extremes.nanmedian, lower_median, CUBE, order=2),
    Row(extremes.runs, runs, order=0,
        samples=lambda rng, dtype: [((rng.integers(0, 2, (6, 2)).astype(dtype),), {"dim": d}) for d in (0, 1)]),
    Row(extremes.largest, np.max, CUBE, order=2),
    Row(extremes.smallest, np.min, CUBE, order=2),
    Row(extremes.unique, distinct, order=0, name="unique",
        samples=lambda rng, dtype: [((rng.integers(0, 3, (4, 2)).astype(dtype),), {"dim": d}) for d in (None, 0, 1)]),
]  # fmt: skip

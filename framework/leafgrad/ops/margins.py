"""What the scores of a sample's target classes lack of a margin over those of all other classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from leafgrad.ops.abstract import broadcast_shape
from leafgrad.ops.classes import POSITIVE
from leafgrad.ops.define import op
from leafgrad.ops.half import accumulator
from leafgrad.ops.index import expect_in_range
from leafgrad.ops.shape import reshape
from leafgrad.ops.shifted import shifted


def _shortfalls(xp: Any, x: Any, target: Any) -> Iterator[tuple[Any, Any]]:
    """For each place in the lists of targets: the targets there, and what they lack over each class, at least 0.

    One place after the other, so that no array has more elements than x. (n, c), (n, c) -> (n,), (n, c)
    """
    (samples, classes), rows = x.shape, xp.arange(x.shape[0])
    counts = (target != -1).cumprod(axis=1).astype(bool)
    at = xp.where(counts, target, 0) & POSITIVE
    expect_in_range(at, classes, 1)
    others = xp.ones((samples, classes + 1), dtype=bool)
    others[rows[:, None], xp.where(counts, at, classes)] = False
    for j in range(int(counts.sum(axis=1).max()) if x.size else 0):
        short = xp.maximum(1 - x[rows, at[:, j]][:, None] + x, 0)
        yield at[:, j], xp.where(others[:, :classes] & counts[:, j : j + 1], short, 0)


def _flat(xp: Any, x: Any, target: Any) -> tuple[Any, Any]:
    """Both as matrices, float16 as float32."""
    x, target = xp.broadcast_arrays(x.astype(accumulator(x.dtype), copy=False), target)
    matrix = (math.prod(x.shape[:-1]), x.shape[-1])
    return x.reshape(matrix), target.reshape(matrix)


@op("any_dtype", "raises")
def multilabel_margin(xp: Any, x: Any, target: Any) -> Any:
    """The sum over targets t and classes o that are none of max(0, 1 - x[t] + x[o]). (..., c) twice -> (...)

    The targets (int64) of a sample are those before the first -1.
    """
    scores, listed = _flat(xp, x, target)
    out = xp.zeros(len(scores), dtype=scores.dtype)
    for _, short in _shortfalls(xp, scores, listed):
        out += short.sum(axis=1)
    return out.reshape(broadcast_shape((x.shape, target.shape))[:-1]).astype(x.dtype, copy=False)


@op("any_dtype", "nondifferentiable")
def multilabel_margin_slopes(xp: Any, x: Any, target: Any) -> Any:
    """The gradient of each sample's ``multilabel_margin``. (..., c) twice -> (..., c)"""
    scores, listed = _flat(xp, x, target)
    out, rows = xp.zeros(scores.shape, dtype=scores.dtype), xp.arange(len(scores))
    for at, short in _shortfalls(xp, scores, listed):
        out += short > 0
        out[rows, at] -= (short > 0).sum(axis=1)
    return out.reshape(broadcast_shape((x.shape, target.shape))).astype(x.dtype, copy=False)


multilabel_margin.vjp(x=lambda g, x, target: reshape(g, shape=(*g.shape, 1)) * multilabel_margin_slopes(x, target))
multilabel_margin.shape(lambda x, target: broadcast_shape((x.shape, target.shape))[:-1] if x.floating else None)
multilabel_margin_slopes.shape(lambda x, target: broadcast_shape((x.shape, target.shape)) if x.floating else None)
for _op in (multilabel_margin, multilabel_margin_slopes):  # leading dimensions are a batch
    _op.batched(shifted())

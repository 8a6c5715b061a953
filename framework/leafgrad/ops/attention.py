"""Scaled dot-product attention in blocks of queries, and its gradients: the scores are never held whole.

Milakov and Gimelshein (2018), "Online normalizer calculation for softmax", and Dao et al. (2022), "FlashAttention",
keep the normaliser of each query and compute the scores again for the gradients, as is done here. There are no vjp
rules: ``nn/functional/attention.py`` uses these gradients, and the definition for those of higher order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from leafgrad.ops.abstract import PRECISE
from leafgrad.ops.compare import eq, isfinite
from leafgrad.ops.define import op
from leafgrad.ops.diagonals import triu
from leafgrad.ops.elementwise import add, div, mul, sub
from leafgrad.ops.exponential import exp, log
from leafgrad.ops.half import total
from leafgrad.ops.matmul import matmul
from leafgrad.ops.reduce import amax, sum
from leafgrad.ops.select import where
from leafgrad.ops.shape import permute

BLOCK = 1 << 15  # scores of a block: they and their gradients stay in the cache
WHOLE = 1 << 22  # scores that a compiled program holds all at once


class Blocks:
    """The scores block by block: some of the batch with all their queries, or some queries of one of the batch.

    Args:
        q, k: (..., L, E), (..., S, E), with the same batch dimensions.
        mask: bool, true where a key takes part, or what is added to the scores; broadcasts to (..., L, S). Or None.
        causal: a query sees no later key.
    """

    def __init__(self, xp: Any, q: Any, k: Any, mask: Any, scale: float, causal: bool) -> None:
        self.xp, self.scale, self.causal = xp, scale, causal
        self.batch = math.prod(q.shape[:-2])
        self.q, self.k = self.flat(q), self.flat(k)
        self.triangle: tuple[slice, Any] | None = None
        self.mask: Any = None
        self.rows: Any = None
        if mask is not None:
            mask = mask.reshape((1,) * (q.ndim - mask.ndim) + mask.shape)
            lead = mask.shape[:-2]
            self.mask = mask.reshape(math.prod(lead), *mask.shape[-2:])
            own = xp.arange(len(self.mask)).reshape(lead)  # which mask each of the batch has
            self.rows = xp.broadcast_to(own, q.shape[:-2]).reshape(self.batch)

    def flat(self, x: Any) -> Any:
        """(..., n, m) -> (batch, n, m)"""
        return x.reshape(self.batch, *x.shape[-2:])

    def __iter__(self) -> Iterator[tuple[slice, slice, slice]]:
        """Which of the batch, which queries, and how many keys."""
        queries, keys = self.q.shape[1], self.k.shape[1]
        length = max(1, min(queries, BLOCK // max(1, keys)))
        many = max(1, BLOCK // max(1, length * keys)) if length == queries else 1
        for b in range(0, self.batch, many):
            for i in range(0, queries, length):
                seen = min(keys, i + length) if self.causal else keys
                yield slice(b, b + many), slice(i, min(i + length, queries)), slice(0, seen)

    def scores(self, b: slice, i: slice, j: slice) -> Any:
        """q k^T scale + mask of a block."""
        xp = self.xp
        s = (self.q[b, i] * self.scale) @ self.k[b, j].swapaxes(1, 2)
        if self.causal:
            if self.triangle is None or self.triangle[0] != i:  # the same for all of the batch that are one block
                seen = xp.tri(i.stop - i.start, j.stop, i.start, dtype="bool")
                self.triangle = i, self.added(seen, s)
            s += self.triangle[1]
        if self.mask is not None:
            own = self.mask[self.rows[b]]
            own = own if own.shape[1] == 1 else own[:, i]
            s += self.added(own if own.shape[2] == 1 else own[:, :, j], s)
        return s

    def added(self, mask: Any, s: Any) -> Any:
        """A mask as what is added to the scores."""
        return self.xp.where(mask, 0.0, -math.inf).astype(s.dtype) if mask.dtype == "bool" else mask


@op("any_dtype")
def attention(xp: Any, q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool) -> Any:
    """softmax(q k^T scale + mask) v, and the logarithm of each softmax's denominator. Zero where no key takes part.

    (..., L, E), (..., S, E), (..., S, D), broadcasting to (..., L, S) -> (..., L, D), (..., L, 1)
    """
    blocks = Blocks(xp, q, k, mask, scale, causal)
    values = blocks.flat(v)
    out = xp.empty((*blocks.q.shape[:2], v.shape[-1]), dtype=q.dtype)
    norm = xp.zeros((*blocks.q.shape[:2], 1), dtype=q.dtype)
    for b, i, j in blocks if k.shape[-2] else ():
        s = blocks.scores(b, i, j)
        top = s.max(axis=-1, keepdims=True)
        if mask is not None:
            top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
        s -= top
        xp.exp(s, out=s)
        sums = total(s, (-1,), True)
        if mask is not None:
            sums = xp.where(sums == 0, xp.ones_like(sums), sums)
        xp.divide(s @ values[b, j], sums, out=out[b, i])
        norm[b, i] = top + xp.log(sums)
    if not k.shape[-2]:
        out[...] = 0
    return out.reshape(*q.shape[:-1], v.shape[-1]), norm.reshape(*q.shape[:-1], 1)


@op("any_dtype")
def attention_gradients(
    xp: Any, go: Any, q: Any, k: Any, v: Any, result: Any, norm: Any, mask: Any = None, *, scale: float, causal: bool
) -> Any:
    """The gradients of q, k and v, for go of ``attention``'s result, with its normalisers."""
    blocks = Blocks(xp, q, k, mask, scale, causal)
    values, go, norm = blocks.flat(v), blocks.flat(go), blocks.flat(norm)
    along = (go * blocks.flat(result)).sum(axis=-1, keepdims=True)
    dq, dk, dv = [xp.zeros(x.shape, dtype=x.dtype) for x in (blocks.q, blocks.k, values)]
    for b, i, j in blocks if k.shape[-2] else ():
        p = blocks.scores(b, i, j)
        p -= norm[b, i]
        xp.exp(p, out=p)
        part = dv[b, j]
        part += p.swapaxes(1, 2) @ go[b, i]
        d = go[b, i] @ values[b, j].swapaxes(1, 2)
        d -= along[b, i]
        d *= p
        d *= scale
        dq[b, i] = d @ blocks.k[b, j]
        part = dk[b, j]
        part += d.swapaxes(1, 2) @ blocks.q[b, i]
    return dq.reshape(q.shape), dk.reshape(k.shape), dv.reshape(v.shape)


@attention.shape
def _attention_shapes(q: Any, k: Any, v: Any, mask: Any) -> Any:
    a, b, c = q.shape, k.shape, v.shape
    fits = a[:-2] == b[:-2] == c[:-2] and a[-1] == b[-1] and b[-2] == c[-2]
    return [(*a[:-1], c[-1]), (*a[:-1], 1)] if fits and q.floating else None


attention.chunk(lambda call: call.aligned(whole=(-2, -1)))
attention_gradients.shape(lambda go, q, k, v, result, norm, mask: [q, k, v])
attention_gradients.chunk(lambda call: call.aligned(whole=(-2, -1)))


def _scores(graph: Any, equation: Any, q: Any, k: Any, mask: Any = None) -> Any:
    """All scores; None where they are too many, or no query sees the last keys."""
    shape = *q.shape[:-1], k.shape[-2]
    unseen = equation.params["causal"] and shape[-2] < shape[-1]
    if q.dtype not in PRECISE or unseen or not 0 < math.prod(shape) <= WHOLE:
        return None
    s = graph.emit(matmul, graph.emit(mul, q, equation.params["scale"]), _swapped(graph, k))
    if equation.params["causal"]:
        s = graph.emit(add, s, graph.emit(triu, graph.full(shape[-2:], -math.inf, q), diagonal=1))
    if mask is not None and mask.dtype == "bool":
        mask = graph.emit(where, mask, graph.full(mask.shape, 0.0, q), -math.inf)
    return s if mask is None else graph.emit(add, s, mask)


def _swapped(graph: Any, x: Any) -> Any:
    return graph.emit(permute, x, dims=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@attention.rewrite
def _attention_in_steps(graph: Any, equation: Any) -> Any:
    """Products, which threads share, and steps that are merged with their neighbours."""
    q, k, v, *mask = equation.inputs
    s = _scores(graph, equation, q, k, *mask)
    if s is None:
        return None
    masked = mask not in ([], [None])
    top = graph.emit(amax, s, dim=(-1,), keepdim=True)
    if masked:
        top = graph.emit(where, graph.emit(isfinite, top), top, 0.0)
    weights = graph.emit(exp, graph.emit(sub, s, top))
    sums = graph.emit(sum, weights, dim=(-1,), keepdim=True)
    if masked:
        sums = graph.emit(where, graph.emit(eq, sums, 0.0), 1.0, sums)
    return graph.emit(div, graph.emit(matmul, weights, v), sums), graph.emit(add, top, graph.emit(log, sums))


@attention_gradients.rewrite
def _gradients_in_steps(graph: Any, equation: Any) -> Any:
    go, q, k, v, result, norm, *mask = equation.inputs
    s = _scores(graph, equation, q, k, *mask)
    if s is None:
        return None
    weights = graph.emit(exp, graph.emit(sub, s, norm))
    along = graph.emit(sum, graph.emit(mul, go, result), dim=(-1,), keepdim=True)
    d = graph.emit(sub, graph.emit(matmul, go, _swapped(graph, v)), along)
    d = graph.emit(mul, graph.emit(mul, d, weights), equation.params["scale"])
    return (
        graph.emit(matmul, d, k),
        graph.emit(matmul, _swapped(graph, d), q),
        graph.emit(matmul, _swapped(graph, weights), go),
    )


def _batched(call: Any) -> Any:
    """The mask, the last argument, broadcasts; all others have the same leading dimensions."""
    last = len(call.op.signature.arguments) - 1
    ndim = call.ndim(0)
    args = [call.aligned(i, ndim) if i == last else call.front(i) for i in range(len(call.args))]
    return call.op(*args, **call.params)


attention.autocast = "lower"
attention.batched(_batched)
attention_gradients.batched(_batched)

"""Matrix products and systems of equations. Where one factor is the same for all samples, one large product serves."""

from __future__ import annotations

from typing import Any

from leafgrad.batching.call import BatchedCall, size
from leafgrad.ops import linalg, matmul
from leafgrad.ops.elementwise import mul
from leafgrad.ops.shape import reshape


@matmul.matmul.batched
def _matmul(call: BatchedCall) -> Any:
    x, y = call.args
    left, right = call.ndim(0), call.ndim(1)
    if not left or not right:
        raise RuntimeError(matmul.mismatch(call.shape(0), call.shape(1)))
    if call.inside[0] and not call.inside[1] and (right == 1 or right == 2):
        return matmul.matmul(x, y)
    if not call.inside[0] and right == 1 and left <= 2:
        return matmul.matmul(y, matmul.swap(x) if left == 2 else x)
    return _pairwise(call, left, right)


def _pairwise(call: BatchedCall, left: int, right: int) -> Any:
    """A product for each sample. Vectors are made matrices, and the dimension is taken off the result."""
    ndim = max(left, right, 2)
    x = _matrices(call, 0, ndim, row=True)
    y = _matrices(call, 1, ndim, row=False)
    out = mul(x, y) if x.shape[-1] == 1 == y.shape[-2] else matmul.matmul(x, y)
    shape = tuple(out.shape)
    if right == 1:
        shape = shape[:-1]
    if left == 1:
        shape = (*shape[:-2], shape[-1]) if right > 1 else shape[:-1]
    return reshape(out, shape=shape)


def _matrices(call: BatchedCall, i: int, ndim: int, row: bool) -> Any:
    x, shape = call.args[i], call.shape(i)
    if len(shape) == 1:
        shape = (1, *shape) if row else (*shape, 1)
    if call.inside[i]:
        return reshape(x, shape=(call.size, *(1,) * (ndim - len(shape)), *shape))
    return reshape(x, shape=shape)


@matmul.linear.batched
def _linear(call: BatchedCall) -> Any:
    x, weight = call.args[:2]
    bias = call.args[2] if len(call.args) > 2 else None
    if not any(call.inside[1:]):
        return matmul.linear(x, weight, bias)
    if call.ndim(1) != 2:
        raise RuntimeError(f"expected weight to be a matrix (out_features, in_features), got {call.shape(1)}")
    lead, features = call.shape(0)[:-1], call.shape(0)[-1:]
    if call.inside[1]:
        rows = (size(lead), *features)
        x = reshape(x, shape=(call.size, *rows) if call.inside[0] else rows)
        y = matmul.matmul(x, matmul.swap(weight))
        y = reshape(y, shape=(call.size, *lead, y.shape[-1]))
    else:
        y = matmul.linear(x, weight)
    return y if bias is None else y + call.aligned(2, len(lead) + 1)


@matmul.cross.batched
def _cross(call: BatchedCall) -> Any:
    ndim = max(call.ndim(0), call.ndim(1))
    return call.again(call.front(0, ndim), call.front(1, ndim), dim=call.params["dim"] + 1)


@linalg.solve.batched
def _solve(call: BatchedCall) -> Any:
    return call.again(call.front(0), call.front(1))

"""Windows that slide, convolutions, sums over ranges, attention.

A convolution whose kernels are the same for all samples has them all as one larger batch; where each sample has kernels
of its own, the samples are groups of channels.
"""

from __future__ import annotations

from typing import Any

from leafgrad.batching.batched import moved
from leafgrad.batching.call import BatchedCall
from leafgrad.ops import attention, convolution, ranges, windows
from leafgrad.ops.shape import permute, reshape


def each(call: BatchedCall) -> Any:
    """Dimensions before those of the windows are a batch already."""
    return call.op(*[call.front(i) for i in range(len(call.args))], **call.params)


for op in (
    windows.unfold, windows.fold, windows.window_max, windows.window_argmax, windows.window_pick, windows.window_place,
):  # fmt: skip
    op.batched(each)


ranges.range_sum.batched(BatchedCall.along)


# ---- attention ----------------------------------------------------------------------------------------------------


def attended(call: BatchedCall) -> Any:
    """The mask, the last argument, broadcasts; all others have the same leading dimensions."""
    last = len(call.op.signature.arguments) - 1
    ndim = call.ndim(0)
    args = [call.aligned(i, ndim) if i == last else call.front(i) for i in range(len(call.args))]
    return call.op(*args, **call.params)


for op in (attention.attention, attention.attention_gradients):
    op.batched(attended)


# ---- convolutions -------------------------------------------------------------------------------------------------


def merged(x: Any, dim: int) -> Any:
    """The batch, dimension 0, made one with dimension ``dim`` of the samples, before it."""
    shape = tuple(x.shape)
    if dim:
        x = permute(x, dims=moved(len(shape), 0, dim))
    return reshape(x, shape=(*shape[1 : 1 + dim], shape[0] * shape[1 + dim], *shape[2 + dim :]))


def parted(x: Any, dim: int, n: int) -> Any:
    """The inverse of ``merged``, for a batch of n."""
    shape = tuple(x.shape)
    x = reshape(x, shape=(*shape[:dim], n, shape[dim] // n, *shape[dim + 1 :]))
    return permute(x, dims=moved(len(shape) + 1, dim, 0)) if dim else x


def convolved(call: BatchedCall) -> Any:
    if not any(call.inside[1:]):
        return parted(call.again(merged(call.args[0], 0), *call.args[1:]), 0, call.size)
    bias = [None if call.args[i] is None else merged(call.front(i), 0) for i in range(2, len(call.args))]
    x, weight = merged(call.front(0), 1), merged(call.front(1), 0)
    return parted(call.again(x, weight, *bias, groups=call.params["groups"] * call.size), 1, call.size)


for op in (convolution.convolution, convolution.convolution_spread):
    op.batched(convolved)


@convolution.convolution_weight.batched
def _convolution_weight(call: BatchedCall) -> Any:
    x, y = merged(call.front(0), 1), merged(call.front(1), 1)
    return parted(call.again(x, y, groups=call.params["groups"] * call.size), 0, call.size)

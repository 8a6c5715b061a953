"""Sorting, searching, and where along a dimension something is."""

from __future__ import annotations

from typing import Any, NoReturn

from leafgrad.batching.call import BatchedCall, along, size
from leafgrad.ops import extremes, index, reduce, sort
from leafgrad.ops.shape import reshape


def one_dim(call: BatchedCall) -> Any:
    return along(call, call.params["dim"], call.ndim(0))


for op in (sort.argsort, extremes.argmedian, extremes.argmode):
    op.batched(one_dim)


def _rows(call: BatchedCall) -> Any:
    """The elements of each sample."""
    return reshape(call.args[0], shape=(call.size, size(call.shape(0))))


def _median(call: BatchedCall) -> Any:
    rows = _rows(call)
    place = extremes.argmedian(rows, dim=1, skips_nan=call.op is extremes.nanmedian)
    return reshape(index.gather(rows, place, dim=1, inside=True), shape=(call.size,))


for op in (extremes.median, extremes.nanmedian):
    op.batched(_median)


@extremes.largest.batched
def _largest(call: BatchedCall) -> Any:
    return reduce.amax(_rows(call), dim=(1,))


@extremes.smallest.batched
def _smallest(call: BatchedCall) -> Any:
    return reduce.amin(_rows(call), dim=(1,))


@sort.searchsorted.batched
def _searchsorted(call: BatchedCall) -> Any:
    if call.ndim(0) > 1 or not call.inside[0]:
        return call.again(call.front(0) if call.inside[0] or call.ndim(0) > 1 else call.args[0], call.front(1))
    x = call.front(1)
    found = call.again(call.args[0], reshape(x, shape=(call.size, size(call.shape(1)))))
    return reshape(found, shape=tuple(x.shape))


def dynamic(call: BatchedCall) -> NoReturn:
    raise RuntimeError(
        f"vmap: We do not support batching operators that can output dynamic shape: the result of {call.op.name} has a "
        "shape that depends on values, and samples may differ. Choose with leafgrad.where instead of a mask, or run it "
        "outside of vmap"
    )


for op in (index.argwhere, extremes.unique, extremes.runs):
    op.batched(dynamic)

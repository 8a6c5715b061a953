"""One class of many: reading, writing, and the mean cross-entropy, which has a count of its own in each sample."""

from __future__ import annotations

from typing import Any

from leafgrad.batching.call import BatchedCall
from leafgrad.ops import classes
from leafgrad.ops.compare import ne
from leafgrad.ops.convert import new_full, to_dtype
from leafgrad.ops.reduce import log_softmax, softmax, sum
from leafgrad.ops.shape import reshape


@classes.pick.batched
def _pick(call: BatchedCall) -> Any:
    return call.again(call.front(0), call.front(1), dim=call.params["dim"] + 1)


@classes.place.batched
def _place(call: BatchedCall) -> Any:
    shape = (call.size, *call.params["shape"])
    return call.again(call.front(0), call.front(1), shape=shape, dim=call.params["dim"] + 1)


def _counted(call: BatchedCall, target: Any) -> tuple[Any, Any]:
    """Whether each target counts, as numbers of the scores' dtype, and how many of each sample do."""
    kept = to_dtype(ne(target, call.params["ignore"]), dtype=call.args[0].dtype.name, source="bool")
    return kept, sum(kept, dim=tuple(range(1, len(target.shape))), keepdim=True)


@classes.shares.batched
def _shares(call: BatchedCall) -> Any:
    target, dim = call.front(1), call.params["dim"] + 1
    kept, count = _counted(call, target)
    shape = tuple(target.shape)
    return reshape(kept / count, shape=(*shape[:dim], 1, *shape[dim:]))


@classes.cross_entropy.batched
def _cross_entropy(call: BatchedCall) -> Any:
    x, target, dim = call.front(0), call.front(1), call.params["dim"] + 1
    picked = classes.pick(log_softmax(x, dim=dim), target, dim=dim, ignore=call.params["ignore"])
    _, count = _counted(call, target)
    dims = tuple(range(1, len(target.shape)))
    return -sum(picked, dim=dims) / reshape(count, shape=(call.size,))


@classes.cross_entropy_slope.batched
def _slope(call: BatchedCall) -> Any:
    x, target, dim = call.front(0), call.front(1), call.params["dim"] + 1
    ones = new_full(x, shape=tuple(target.shape), value=1)
    hot = classes.place(ones, target, shape=tuple(x.shape), dim=dim, ignore=call.params["ignore"])
    return (softmax(x, dim=dim) - hot) * _shares(call)

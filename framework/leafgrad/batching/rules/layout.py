"""Ops of one array whose parameters name dimensions, sizes or places: the same op with the batch put before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from leafgrad.batching.call import BatchedCall, size
from leafgrad.errors import TraceError
from leafgrad.ops import convert, cumulative, flat, linalg, matrix_exp, reduce, shape, strided
from leafgrad.tensor import inplace, view

Change = Callable[[Any, int], Any]  # a parameter's value for one sample, and the size of the batch -> that for all


def dim(d: int, n: int) -> int:
    return d + 1


def dims(ds: tuple[int, ...], n: int) -> tuple[int, ...]:
    return tuple([d + 1 for d in ds])


def order(ds: tuple[int, ...], n: int) -> tuple[int, ...]:
    return (0, *dims(ds, n))


def sizes(s: tuple[int, ...], n: int) -> tuple[int, ...]:
    return (n, *s)


def places(at: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    return ((0, n, 1), *at)


# Leading dimensions of matrices are a batch already.
MATRICES: Final = (
    shape.tril, shape.triu, linalg.inv, linalg.det, linalg.cofactor, linalg.slogdet, linalg.cholesky, linalg.qr,
    linalg.eigh, linalg.svd, linalg.pinv, matrix_exp.matrix_exp,
)  # fmt: skip

CHANGES: Final[dict[Any, dict[str, Change]]] = {
    **{op: {} for op in MATRICES},
    convert.to_dtype: {},
    convert.to_device: {},
    convert.new_full: {"shape": sizes},
    shape.reshape: {"shape": sizes},
    shape.permute: {"dims": order},
    shape.diagonal: {"dims": dims},
    shape.undiagonal: {"shape": sizes, "dims": dims},
    shape.flip: {"dims": dims},
    shape.roll: {"dims": dims},
    shape.part: {"at": places},
    shape.unpart: {"at": places, "shape": sizes},
    shape.pad: {"at": places, "shape": sizes},
    strided.windows: {"dim": dim},
    strided.unwindow: {"dim": dim, "shape": sizes},
    strided.reinterpret: {},
}


def changed(op: Any, params: dict[str, Any], n: int) -> dict[str, Any]:
    """The parameters of an op for the whole batch."""
    return params | {name: change(params[name], n) for name, change in CHANGES[op].items() if name in params}


def rearranged(call: BatchedCall) -> Any:
    return call.op(call.args[0], **changed(call.op, call.params, call.size))


for op in CHANGES:
    op.batched(rearranged)


@shape.expand.batched
def _expand(call: BatchedCall) -> Any:
    target = call.params["shape"]
    return shape.expand(call.front(0, len(target)), shape=(call.size, *target))


@shape.sum_to.batched
def _sum_to(call: BatchedCall) -> Any:
    target = call.params["shape"]
    ones = (1,) * (call.ndim(0) - len(target))
    summed = shape.sum_to(call.args[0], shape=(call.size, *ones, *target))
    return shape.reshape(summed, shape=(call.size, *target)) if ones else summed


@shape.cat.batched
def _cat(call: BatchedCall) -> Any:
    return shape.cat(*[call.front(i) for i in range(len(call.args))], dim=call.params["dim"] + 1)


@strided.strided.batched
def _strided(call: BatchedCall) -> Any:
    apart = size(call.shape(0))
    return call.again(call.args[0], shape=(call.size, *call.params["shape"]), steps=(apart, *call.params["steps"]))


@strided.unstrided.batched
def _unstrided(call: BatchedCall) -> Any:
    whole = call.params["whole"]
    return call.again(call.args[0], whole=(call.size, *whole), steps=(size(whole), *call.params["steps"]))


# ---- along one dimension ------------------------------------------------------------------------------------------


for op in (
    reduce.softmax, reduce.log_softmax, cumulative.shift, cumulative.cumsum, cumulative.cumprod, cumulative.recurrence,
    cumulative.cummax, cumulative.cummin, cumulative.logcumsumexp,
):  # fmt: skip
    op.batched(BatchedCall.along)


# ---- many arrays as one vector ------------------------------------------------------------------------------------


@flat.pack.batched
def _pack(call: BatchedCall) -> Any:
    rows = [shape.reshape(call.front(i), shape=(call.size, size(call.shape(i)))) for i in range(len(call.args))]
    return shape.cat(*rows, dim=1)


@flat.unpack.batched
def _unpack(call: BatchedCall) -> Any:
    shapes = call.params["shapes"]
    ends = flat.offsets(shapes)
    return tuple([
        shape.reshape(shape.part(call.args[0], at=((0, call.size, 1), (a, b, 1))), shape=(call.size, *s))
        for a, b, s in zip(ends[:-1], ends[1:], shapes, strict=True)
    ])  # fmt: skip


# ---- what writes in place record ----------------------------------------------------------------------------------


@inplace.overwrite.batched
def _overwrite(call: BatchedCall) -> Any:
    return shape.expand(call.front(1, call.ndim(0)), shape=(call.size, *call.shape(0)))


@view.write_view.batched
def _write_view(call: BatchedCall) -> Any:
    steps = []
    ndim = call.ndim(0)
    for op, params in call.params["steps"]:
        if op in CHANGES:
            steps.append((op, changed(op, params, call.size)))
        elif op is shape.expand:
            raise RuntimeError(
                "vmap: more than one element of the written-to tensor refers to a single memory location"
            )
        else:
            raise TraceError(
                "vmap: a write into an input of a vmapped function cannot be traced; write into a clone() of it"
            )
    x = call.front(0)
    ndim = len(view.follow(x, tuple(steps)).shape) - 1
    return view.write_view(x, call.front(1, ndim), steps=tuple(steps))

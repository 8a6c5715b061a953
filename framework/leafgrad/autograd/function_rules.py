"""What a Function says of itself beside its backward: how tangents go through it, and how it runs on a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from leafgrad import modes
from leafgrad.batching.batched import Batch, batches_of
from leafgrad.batching.boundary import enter, leave
from leafgrad.ops.convert import new_full
from leafgrad.tensor.tensor import Tensor


class VmapInfo(NamedTuple):
    """Of the vmap that a Function is called in: how many samples, and what random numbers do."""

    batch_size: int
    randomness: str


@contextmanager
def outside(batch: Batch) -> Iterator[None]:
    """Within it ops do not belong to ``batch``."""
    others = tuple([b for b in modes.BATCHES.get() if b is not batch])
    token, before = modes.BATCHES.set(others), modes.get()
    if not others:
        modes.FLAGS.set(before & ~modes.BATCH)
    try:
        yield
    finally:
        modes.BATCHES.reset(token)
        modes.FLAGS.set(before)


def vmapped(cls: Any, args: tuple[Any, ...]) -> Any:
    """The results of ``cls.vmap`` inside the innermost batch that an argument is in."""
    batches = [b for a in args if isinstance(a, Tensor) for b in batches_of(a._data)]
    batch = max(batches, key=lambda b: b.level)
    in_dims = tuple([0 if isinstance(a, Tensor) and batch in batches_of(a._data) else None for a in args])
    whole = [a if d is None else leave(a, batch=batch, dim=0) for a, d in zip(args, in_dims, strict=True)]
    with outside(batch):
        returned = cls.vmap(VmapInfo(batch.size, batch.randomness), in_dims, *whole)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise RuntimeError(
            f"Expected {cls.__name__}.vmap to have two returns, got {type(returned).__name__}: return the outputs, "
            "and for each the dimension that is the batch, or None"
        )
    outputs, out_dims = returned
    if not isinstance(outputs, tuple):
        return entered(outputs, out_dims, batch)
    dims = out_dims if isinstance(out_dims, (tuple, list)) else (out_dims,) * len(outputs)
    return tuple([entered(o, d, batch) for o, d in zip(outputs, dims, strict=True)])


def entered(output: Any, dim: int | None, batch: Batch) -> Any:
    if dim is None or not isinstance(output, Tensor):
        return output
    return enter(output, batch=batch, dim=dim % output.ndim)


def pushed(node: Any, given: dict[Any, Any]) -> tuple[Any, ...]:
    """The tangents of the outputs of a call of a Function that has a ``jvp``."""
    ctx, some = node.ctx, next(iter(given.values()))
    tangents: list[Any] = [None] * len(ctx.needs_input_grad)
    for place, edge, shape, dtype in zip(node.positions, node.edges, node.shapes, node.inputs, strict=True):
        found = given.get(edge) if edge is not None else None
        if found is None and ctx._materialize and dtype.is_differentiable:
            found = new_full(some.detach(), shape=shape, value=0, dtype=dtype.name)
        tangents[place] = found
    ctx._in_jvp = True
    try:
        result = node.op.jvp(ctx, *tangents)
    finally:
        ctx._in_jvp = False
    result = result if isinstance(result, tuple) else (result,)
    if len(result) != len(node.outputs):
        raise RuntimeError(
            f"{node.op.__name__}.jvp: expected {len(node.outputs)} tangents, one for each output, got {len(result)}"
        )
    for i, (t, output) in enumerate(zip(result, node.outputs, strict=True)):
        if t is not None and output is not None and tuple(t.shape) != output[0]:
            raise RuntimeError(
                f"{node.op.__name__}.jvp: expected tangent {i} to be of size {list(output[0])}, got {list(t.shape)}"
            )
    return result

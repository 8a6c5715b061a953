"""What a Function says of itself beside its backward: how tangents go through it, and how it runs on a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from leafgrad import modes
from leafgrad.autograd.engine import reachable
from leafgrad.autograd.local import Local, node
from leafgrad.batching.batched import Batch, batches_of, for_all_samples, has
from leafgrad.batching.boundary import enter, leave
from leafgrad.ops import dispatch
from leafgrad.ops.convert import new_full
from leafgrad.ops.node import Leaf
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


def every_batch(args: tuple[Any, ...]) -> list[Batch]:
    """The batches that arguments are in."""
    return [b for a in args if isinstance(a, Tensor) for b in batches_of(a._data)]


def innermost(args: tuple[Any, ...]) -> Batch:
    """The innermost batch that an argument is in."""
    return max(every_batch(args), key=lambda b: b.level)


def for_each_sample(out: Tensor, args: tuple[Any, ...]) -> Tensor:
    """An output in all batches that ``args`` are in: ``backward`` mixes its gradient with those of each sample."""
    data = whole = dispatch.raw(out)
    for batch in every_batch(args):
        data = data if has(data, batch) else for_all_samples(data, batch)
    made: Tensor = out if data is whole else dispatch.alias(data.copy())
    return made


def differentiated_within(cls: Any, args: tuple[Any, ...], apart: bool) -> bool:
    """Whether a derivative by ``args`` is taken within the innermost batch that one is in.

    Then derivatives see the call, and so its ``backward`` or ``jvp``; otherwise what its ``vmap`` is made of.
    """
    batch = innermost(args)
    nodes = [n for a in args if isinstance(a, Tensor) and (n := node(a)) is not None and n.seq > batch.seq]
    if not any(isinstance(n, Leaf) and n.seq > batch.seq and is_open(n) for n in reachable(nodes, batch.seq)):
        return False
    if not apart:
        raise RuntimeError(
            f"{cls.__name__}: expected a setup_context beside vmap, since a derivative is taken within vmap, got a "
            "forward that fills ctx, which vmap leaves empty. Please override the setup_context staticmethod, and take "
            "ctx out of the arguments of forward"
        )
    return True


def is_open(leaf: Leaf) -> bool:
    return not isinstance(leaf, Local) or not leaf.closed or leaf.moving


def vmapped(cls: Any, *args: Any) -> Any:
    """The results of ``cls.vmap`` inside the innermost batch that an argument is in."""
    batch = innermost(args)
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
    given = list(zip(whole, in_dims, args, strict=True))
    if not isinstance(outputs, tuple):
        return entered(outputs, out_dims, batch, given)
    dims = out_dims if isinstance(out_dims, (tuple, list)) else (out_dims,) * len(outputs)
    return tuple([entered(o, d, batch, given) for o, d in zip(outputs, dims, strict=True)])


def entered(output: Any, dim: int | None, batch: Batch, given: list[tuple[Any, int | None, Any]]) -> Any:
    """An output of ``cls.vmap`` inside of the batch; an argument itself where it is one that it was given."""
    if dim is None or not isinstance(output, Tensor):
        return output
    dim %= output.ndim
    same = next((arg for whole, at, arg in given if whole is output and at == dim), None)
    return enter(output, batch=batch, dim=dim) if same is None else same


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

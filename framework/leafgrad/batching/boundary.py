"""Where graphs cross the edge of a vmap: the ops that make and unmake batches.

``enter`` and ``leave`` are each other's transpose, and so are ``fill`` and ``total``. A tensor from outside that meets
a batched one goes through ``unbatched``, which computes nothing: it is where gradients of samples are summed, unless
the gradient is taken inside the same vmap, where each sample has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leafgrad import modes
from leafgrad.batching import batched
from leafgrad.batching.batched import ALL, Batch, separate
from leafgrad.ops import dispatch, reduce
from leafgrad.ops.node import TensorBase, Version
from leafgrad.ops.op import Op
from leafgrad.ops.signature import Signature
from leafgrad.ops.transpose import pair


class Boundary(Op):
    """An op that sees the Batched itself, where others see what is inside: it is neither bound nor recorded."""

    straight = False

    def compute(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self.forward(None, *args, **params)


def boundary(*traits: str) -> Any:
    return lambda forward: Boundary(forward, forward.__name__, frozenset(traits), Signature(forward, forward.__name__))


def raw(x: Any) -> Any:
    return x._data if isinstance(x, TensorBase) else x


@boundary("linear", "view", "any_dtype", "complex")
def enter(xp: Any, x: Any, *, batch: Batch, dim: int) -> Any:
    """x with its dimension ``dim`` hidden: a batch of samples."""
    return batched.entered(x, batch, dim)


@boundary("linear", "view", "any_dtype", "complex")
def leave(xp: Any, x: Any, *, batch: Batch, dim: int) -> Any:
    """A batch of samples with the batch as the dimension ``dim``."""
    return batched.left(x if batched.has(x, batch) else batched.for_all_samples(x, batch), batch, dim)


@boundary("linear", "view", "any_dtype", "complex")
def fill(xp: Any, x: Any, *, batch: Batch) -> Any:
    """x for every sample."""
    return x if batched.has(x, batch) else batched.for_all_samples(x, batch)


@boundary("linear", "any_dtype", "complex")
def total(xp: Any, x: Any, *, batch: Batch) -> Any:
    """The sum of the samples."""
    whole = x if batched.has(x, batch) else batched.for_all_samples(x, batch)
    return whole.summed() if whole.batch is batch else reduce.sum(batched.left(whole, batch, 0), dim=(0,))


@boundary("linear", "any_dtype", "complex")
def unbatched(xp: Any, x: Any, *, batches: tuple[Batch, ...]) -> Any:
    """x itself, from outside of ``batches``, about to meet a value inside."""
    return x


pair(leave, enter)
pair(total, fill)
enter.inverse, leave.inverse = leave, enter


def _summed(g: Any, *, batches: tuple[Batch, ...]) -> Any:
    for batch in batches:
        if not separate(batch) and batched.has(raw(g), batch):
            g = total(g, batch=batch)
    return g


unbatched.vjp(x=_summed)
unbatched.transparent = True


# ---- inside or outside --------------------------------------------------------------------------------------------


@contextmanager
def each_sample() -> Iterator[None]:
    """Within it gradients are taken as if inside of every vmap."""
    token = modes.BATCHES.set((*modes.BATCHES.get(), ALL))
    try:
        yield
    finally:
        modes.BATCHES.reset(token)


def unbatched_arguments(args: tuple[Any, ...], raws: tuple[Any, ...]) -> tuple[Any, ...]:
    """``args`` with those that require grad and lack a batch of another going through ``unbatched``."""
    every = list(dict.fromkeys([b for r in raws for b in batched.batches_of(r)]))
    return tuple([handed_over(a, r, every) for a, r in zip(args, raws, strict=True)]) if every else args


def handed_over(arg: Any, data: Any, every: list[Batch]) -> Any:
    if not isinstance(arg, TensorBase) or arg._node is None or not modes.get() & modes.GRAD:
        return arg
    lacking = tuple([b for b in every if not batched.has(data, b)])
    if not lacking:
        return arg
    if arg._writes is None:
        arg._writes = Version()
    out = dispatch.alias(data, unbatched.node((arg,), {"batches": lacking}, (data,), data, (arg._node,), modes.get()))
    out._writes, out._epoch = arg._writes, arg._epoch
    return out

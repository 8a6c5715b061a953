"""Collectives as ops: pure functions of this process's array and those of the others.

All processes run them in the same order, uncompiled and compiled, and the gradient of one is another. The sum over all
processes of what depends on the results is what is differentiated.
"""

from __future__ import annotations

from typing import Any

from leafgrad.distributed.process_group import world
from leafgrad.ops.define import op
from leafgrad.ops.shape import part


def before(call: str, x: Any, *, about: str = "") -> None:
    """Make sure that all processes are here, with arrays of one shape and dtype."""
    world().agree(f"{call}({about}{x.dtype.name} {tuple(x.shape)})")


def exchanged(function: Any, x: Any, *args: Any) -> Any:
    """What a communicator's function makes of ``x``; complex numbers go as pairs, which all of them take."""
    if x.dtype.kind != "c":
        return function(x, *args)
    pairs = x.copy("C")[..., None].view(x.real.dtype)
    return function(pairs, *args).view(x.dtype)[..., 0]


@op("linear", "complex", "collective")
def all_sum(xp: Any, x: Any, *, mean: bool = False, order: int = 0) -> Any:
    """The sum over all processes, or their mean. (...) -> (...)

    ``order`` counts the derivatives: a process that goes backward is not to meet one that went on without.
    """
    before("all_reduce", x, about="gradient, " * order + ("mean of " if mean else "sum of "))
    if world().size == 1:
        return x.copy()
    combined = world().communicator(x).all_reduce
    if not mean:
        return exchanged(combined, x, "sum")
    wide = x.astype("float32") if x.dtype.itemsize == 2 else x  # a sum may overflow where the mean does not
    return (exchanged(combined, wide, "sum") / world().size).astype(x.dtype)


@op("collective")
def all_combine(xp: Any, x: Any, *, how: str) -> Any:
    """The product, minimum or maximum over all processes: ``how`` is "prod", "min" or "max". (...) -> (...)

    A nan of one process is in the result, as within one process; MPI and NCCL leave open what they make of it.
    """
    before("all_reduce", x, about=f"{how} of ")
    if world().size == 1:
        return x.copy()
    combined = world().communicator(x).all_reduce
    found = combined(x, how)
    if how != "prod" and x.dtype.kind not in "biu":
        found[combined(xp.isnan(x).astype("uint8"), "max") > 0] = float("nan")
    return found


@op("linear", "complex", "collective")
def from_rank(xp: Any, x: Any, *, src: int) -> Any:
    """The array of process ``src``. (...) -> (...)"""
    before("broadcast", x, about=f"from rank {src}, ")
    return x.copy() if world().size == 1 else exchanged(world().communicator(x).broadcast, x, src)


@op("linear", "complex", "collective")
def all_stacked(xp: Any, x: Any) -> Any:
    """The arrays of all processes. (...) -> (processes, ...)"""
    before("all_gather", x)
    return x.copy()[None] if world().size == 1 else exchanged(world().communicator(x).all_gather, x)


@all_sum.shape
@all_combine.shape
@from_rank.shape
def _same_shape(x: Any, **params: Any) -> Any:
    return x.shape


@all_stacked.shape
def _stacked_shape(x: Any) -> Any:
    return world().size, *x.shape


def _from_rank_rule(g: Any, *, src: int) -> Any:
    total = all_sum(g, order=1)
    return total if world().rank == src else total * 0


def _stacked_rule(g: Any) -> Any:
    return part(all_sum(g, order=1), at=(world().rank,))


all_sum.vjp(x=lambda g, *, mean, order: all_sum(g, mean=mean, order=order + 1))
from_rank.vjp(x=_from_rank_rule)
all_stacked.vjp(x=_stacked_rule)

all_sum.batched(lambda call: call.elementwise())
all_combine.batched(lambda call: call.elementwise())
from_rank.batched(lambda call: call.elementwise())

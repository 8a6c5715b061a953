"""Batching rules for ops that do the same with one dimension more, if parameters that speak of dimensions pass over it.

``flip.batched(shifted(dims=behind))``: ``flip`` does with a batch what it does with a sample, 1 added to all ``dims``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Change = Callable[[Any, int], Any]  # a parameter's value for one sample, and the size of the batch -> that for all


def behind(dim: Any, n: int = 0) -> Any:
    """A dimension, or several, with the batch in front; negative ones count from the end, where nothing changes."""
    if isinstance(dim, (tuple, list)):
        return tuple([behind(d) for d in dim])
    return dim + 1 if dim >= 0 else dim


def in_front(shape: tuple[int, ...], n: int) -> tuple[int, ...]:
    """A shape with the batch in front."""
    return (n, *shape)


def kept_first(dims: tuple[int, ...], n: int) -> tuple[int, ...]:
    """A permutation that leaves the batch where it is."""
    return (0, *behind(dims))


def all_samples(at: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """A basic index, as ``slice`` has it, of all samples."""
    return ((0, n, 1), *at)


class Shifted:
    """A batching rule: the op itself, with the batch in front of every argument and some parameters changed.

    Other arguments broadcast to the first. One with more dimensions would move those that parameters speak of.
    """

    def __init__(self, changes: dict[str, Change]) -> None:
        self.changes = changes

    def changed(self, params: dict[str, Any], n: int) -> dict[str, Any]:
        """The parameters for a batch of n."""
        return params | {name: change(params[name], n) for name, change in self.changes.items() if name in params}

    def __call__(self, call: Any) -> Any:
        ndim = call.ndim(0) if self.changes else call.widest()
        if call.widest() > ndim:
            return call.without_rule()
        args = [call.front(i, ndim) for i in range(len(call.args))]
        return call.op(*args, **self.changed(call.params, call.size))


def shifted(**changes: Change) -> Shifted:
    """A rule for ``op.batched``, of an op to which dimensions in front of those that it works on are a batch already.

    Args:
        changes: for each parameter that speaks of dimensions, how it changes: ``behind``, ``in_front``, ``kept_first``,
            ``all_samples``, or a function of the value for one sample and the size of the batch.
    """
    return Shifted(changes)

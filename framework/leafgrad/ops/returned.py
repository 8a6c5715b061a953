"""What the vjp rules of others return: brought to the dtype of the argument, in memory of its own.

A rule may return what it was given, of which the engine makes a ``.grad`` that is written in place; and Python's
numbers and comparisons make float64, integers and booleans of a gradient. Rules of this package are tested instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import dispatch, messages
from leafgrad.ops.node import GraphNode, Node, SymbolBase, TensorBase

Pulled = Sequence[tuple[GraphNode, Any]]
Pull = Callable[[Node, Any, set[GraphNode] | None], Pulled]

_to_dtype: Any
_clone: Any


def adopt_casts(to_dtype: Any, clone: Any) -> None:
    """Make these the ops that convert and copy; they are ops themselves, so they come later."""
    global _to_dtype, _clone
    _to_dtype, _clone = to_dtype, clone


def fitting(pull: Pull, recorded: bool = False) -> Pull:
    """``Op.pull``, or ``Op.pull_recorded``, of an op whose rules are not this package's."""

    def fitted(node: Node, g: Any, needed: set[GraphNode] | None) -> Pulled:
        held = [*kept(node)]  # before a rule may release it
        return gradients(node, needed, pull(node, g, needed), held, recorded)

    return fitted


def kept(node: Node) -> Iterator[Any]:
    """What a node's rules are given beside the gradient."""
    yield from node.saved if type(node.saved) is tuple else ()
    yield from node.out if type(node.out) is tuple else (node.out,)
    yield from node.params.values()


def gradients(
    node: Node, needed: set[GraphNode] | None, pulled: Pulled, held: Sequence[Any], recorded: bool
) -> list[tuple[GraphNode, Any]]:
    """Each edge with what its rule returned, as a gradient: a Tensor where it is ``recorded``, else a raw value."""
    wanted = [i for i, e in enumerate(node.edges) if e is not None and (needed is None or e in needed)]
    found, takes = [], getattr(node, "takes", ())
    memories = {id(m) for m in map(memory, held) if m is not None}
    for i, (edge, value) in zip(wanted, pulled, strict=True):
        if isinstance(value, TensorBase) and not recorded:
            remedy = "an array or symbol, as g is: write the rule with operators, ops and functions of leafgrad.rules"
            raise messages.bad_gradient(node, edge, "returned a Tensor", remedy)
        data: Any = getattr(value, "_data", value)
        if hasattr(data, "dtype") and recorded == isinstance(value, TensorBase):  # the engine refuses all else
            if i < len(takes) and takes[i] is not None and data.dtype != takes[i]:
                dtype = dtypes.of(SimpleNamespace(dtype=takes[i]))
                value = _to_dtype(value, dtype=dtype.name, source=dtypes.of(data).name)
            elif memories and id(memory(value)) in memories:
                value = _clone(value)
        found.append((edge, value))
    return found


def memory(value: Any) -> Any:
    """The array whose memory a value shows, perhaps in a batch; None of what shows none that is known."""
    data = getattr(value, "_data", value)
    data = data.memory() if isinstance(data, SymbolBase) else data
    return dispatch.memory_of(data) if hasattr(data, "base") else None

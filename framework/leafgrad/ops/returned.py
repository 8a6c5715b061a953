"""What the vjp rules of others return: brought to the dtype of the argument, in memory of its own.

A rule may return what it was given, or an array that it keeps, of which the engine makes a ``.grad`` that is written in
place; and Python's numbers and comparisons make float64, integers and booleans of a gradient. Rules of this package are
tested instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from leafgrad import dtypes
from leafgrad.ops import dispatch, messages
from leafgrad.ops.node import GraphNode, Node, SymbolBase, TensorBase
from leafgrad.ops.runtime import runtime
from leafgrad.ops.shared import Sole, is_shared

Pulled = Sequence[tuple[GraphNode, Any]]
Pull = Callable[[Node, Any, set[GraphNode] | None], Pulled]

NOWHERE: Final = {id(None)}


def fitting(pull: Pull, recorded: bool = False) -> Pull:
    """``Op.pull``, or ``Op.pull_recorded``, of an op whose rules are not this package's."""

    def fitted(node: Node, g: Any, needed: set[GraphNode] | None) -> Pulled:
        saved, out = node.saved, node.out  # before a rule may release them
        return gradients(node, g, pull(node, g, needed), kept(saved, out, node.params), recorded)

    return fitted


def kept(saved: Any, out: Any, params: dict[str, Any]) -> list[Any]:
    """What a node's rules are given beside the gradient."""
    found = [*saved] if type(saved) is tuple else []
    if out is not None:
        found += out if type(out) is tuple else (out,)
    return [*found, *params.values()] if params else found


def gradients(node: Node, g: Any, pulled: Pulled, held: Sequence[Any], recorded: bool) -> Pulled:
    """Each edge with what its rule made of ``g``, as a gradient: a Tensor where it is ``recorded``, else raw."""
    found, takes, edges, i = [], getattr(node, "takes", ()), node.edges, -1
    memories = memories_of(held)
    for (edge, value), (_, sole) in zip(pulled, [(edge, Sole()) for edge, _ in pulled], strict=True):
        i = edges.index(edge, i + 1)  # they come in the order of arguments
        if isinstance(value, TensorBase) and not recorded:
            remedy = "an array or symbol, as g is: write the rule with operators, ops and functions of leafgrad.rules"
            raise messages.bad_gradient(node, edge, "returned a Tensor", remedy)
        elsewhere = not (value is g or isinstance(value, SymbolBase)) and is_shared(value, sole)
        data: Any = value._data if isinstance(value, TensorBase) else value
        if isinstance(value, TensorBase) == recorded and hasattr(data, "dtype"):  # the engine refuses all else
            dtype = takes[i] if i < len(takes) else None
            if dtype is not None and data.dtype is not dtype and data.dtype != dtype:
                want = dtypes.named(dtype).name
                value = runtime.to_dtype(value, dtype=want, source=dtypes.of(data).name)
            elif memories or elsewhere:
                shown = id(memory(data))
                if shown in memories or (elsewhere and shown not in memories_of(g if type(g) is tuple else (g,))):
                    value = runtime.clone(value)
        found.append((edge, value))
    return found


def memories_of(values: Sequence[Any]) -> set[int]:
    """The memories that values show, by id."""
    return {id(m) for m in map(memory, values)} - NOWHERE


def memory(value: Any) -> Any:
    """The array whose memory a value shows, perhaps in a batch; None of what shows none that is known."""
    data = value._data if isinstance(value, TensorBase) else value
    data = data.memory() if isinstance(data, SymbolBase) else data
    return dispatch.memory_of(data) if hasattr(data, "base") else None

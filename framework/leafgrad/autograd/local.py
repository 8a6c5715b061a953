"""Leaves of one derivative: what ``func.grad`` and its kin differentiate by, inside the graph around them.

A Local is a leaf to the function that is differentiated, and passes gradients on to where its value came from, so that
derivatives nest. When its derivative is done it is closed: then it alone is no reason to require grad.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leafgrad.autograd import engine
from leafgrad.ops import dispatch
from leafgrad.ops.node import Epoch, GraphNode, Leaf
from leafgrad.tensor.tensor import Tensor


class Passing:
    """What a Local does backward: nothing."""

    @staticmethod
    def pull(node: GraphNode, g: Any, needed: set[GraphNode] | None) -> list[tuple[GraphNode, Any]]:
        return [(edge, g) for edge in node.edges if needed is None or edge in needed]

    pull_recorded = pull


class Local(Leaf):
    """A leaf with a past: ``edges`` leads to the node that its tensor had outside, if there is one."""

    __slots__ = ("closed", "fixed", "moving")

    op = Passing

    def __init__(self, tensor: Any, outside: GraphNode | None) -> None:
        super().__init__(tensor)
        self.edges = () if outside is None else (outside,)
        self.closed = False
        self.moving = False  # whether it is a dual's, which has a tangent
        self.fixed = True

    def release(self) -> None:
        """It keeps nothing."""


def local(x: Tensor, recorded: bool) -> Tensor:
    """The same values and memory as a leaf of its own.

    Args:
        recorded: connect it with what ``x`` was computed from.
    """
    if not x.dtype.is_differentiable:
        raise RuntimeError(f"only Tensors of floating point dtype can require gradients, got {x.dtype}")
    x = dispatch.inside(x)
    out: Tensor = dispatch.detach(x)
    out._epoch = Epoch.now  # it belongs to the derivative
    out._leaf = out._node = Local(out, x._node if recorded else None)
    return out


def close(tensors: Iterable[Tensor]) -> None:
    """The derivative by these leaves is done."""
    for t in tensors:
        if isinstance(t._leaf, Local):
            t._leaf.closed = True


def open_to(tensors: Iterable[Any], duals: bool = True) -> set[GraphNode]:
    """The nodes before these tensors from which a gradient could flow to an open leaf, or a tangent come of a dual."""
    nodes = dict.fromkeys([node(t) for t in tensors if isinstance(t, Tensor)])
    order = engine.reachable([n for n in nodes if n is not None])
    leaves: set[GraphNode] = {
        n for n in order if isinstance(n, Leaf) and not (isinstance(n, Local) and n.closed and not (duals and n.moving))
    }
    needed, _ = engine.leading_to(order, leaves) if leaves else (set(), None)
    return needed


def settled(values: list[Any], recorded: bool, duals: bool = True) -> list[Any]:
    """Results of a derivative, detached where no open leaf could have a gradient of them, and no dual moves them."""
    wanted = open_to(values, duals) if recorded else set()
    return [v.detach() if isinstance(v, Tensor) and v.requires_grad and node(v) not in wanted else v for v in values]


def node(t: Tensor) -> GraphNode | None:
    """Where a tensor is in the graph, in the trace if one runs."""
    found: GraphNode | None = dispatch.inside(t)._node
    return found

"""GradientEdge: a place in the graph where a gradient passes, without the tensor that was computed there."""

from __future__ import annotations

from typing import Any, NamedTuple

from leafgrad import dtypes
from leafgrad.ops import dispatch
from leafgrad.ops.conjugate import Conjugating
from leafgrad.ops.node import GraphNode, Leaf, Output
from leafgrad.ops.op import Op
from leafgrad.tensor.graph import Node, node_for
from leafgrad.tensor.tensor import Tensor


class GradientEdge(NamedTuple):
    """Output ``output_nr`` of ``node``; ``backward`` and ``grad`` take it where they take a tensor.

    Attributes:
        node: what computed it; an AccumulateGrad for a leaf.
        output_nr: which of its outputs.
        ownership_token: ignored.
    """

    node: Node
    output_nr: int
    ownership_token: Any = None

    def recorded(self) -> GraphNode:
        """Where its gradient arrives."""
        source: Any = self.node._recorded
        if not isinstance(source, GraphNode):
            raise RuntimeError(f"{self.node.name()} is a part of another operation in leafgrad; use the tensor")
        if hasattr(source, "ends"):
            node: Any = source
            return Output.of(node, self.output_nr, output_shapes(node)[self.output_nr])
        return source


def output_shapes(node: Any) -> list[Any]:
    """The shape of each output of a node that has ``ends``, None for one that can have no gradient."""
    if isinstance(node.op, (Op, Conjugating)):
        return [tuple(s) for s in node.shape]
    if isinstance(node.op, type):
        return [o[0] if o is not None and dtypes.BY_NAME[o[1]].is_differentiable else None for o in node.outputs]
    return list(node.op.shapes)


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of ``tensor`` passes.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    node = dispatch.inside(tensor)._node
    if node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    if isinstance(node, Output):
        return GradientEdge(node_for(node.source), node.index)
    assert isinstance(node, GraphNode | Leaf)
    return GradientEdge(node_for(node), 0)

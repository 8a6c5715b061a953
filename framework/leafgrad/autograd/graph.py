"""The graph as users see it: ``isinstance(t.grad_fn, Node)``."""

from leafgrad.ops.node import GraphNode as Node

__all__ = ["Node"]

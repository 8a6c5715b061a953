"""``torch.fx``: there is no symbolic tracing, and what asks for it is an error. ``wrap`` marks nothing."""

from __future__ import annotations

from typing import TypeVar

from leafgrad.compat.absent import refused, refused_class

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "symbolic_trace", "wrap"]

T = TypeVar("T")

REMEDY = "leafgrad.trace shows a function as a program, leafgrad.compile runs it as one"

Graph, Node = refused_class("torch.fx.Graph", REMEDY), refused_class("torch.fx.Node", REMEDY)
GraphModule, Proxy = refused_class("torch.fx.GraphModule", REMEDY), refused_class("torch.fx.Proxy", REMEDY)
Interpreter, Tracer = refused_class("torch.fx.Interpreter", REMEDY), refused_class("torch.fx.Tracer", REMEDY)
Transformer = refused_class("torch.fx.Transformer", REMEDY)
symbolic_trace = refused("torch.fx.symbolic_trace", REMEDY)


def wrap(fn_or_name: T) -> T:
    """``fn_or_name``: there is no tracing from which to keep it."""
    return fn_or_name

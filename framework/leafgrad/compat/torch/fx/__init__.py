"""``torch.fx``: programs as lists of Nodes, made by hand or by a call with Proxies, and run as Python code."""

from leafgrad.compat.torch.fx.graph import Graph
from leafgrad.compat.torch.fx.graph_module import GraphModule, Interpreter, Transformer, symbolic_trace
from leafgrad.compat.torch.fx.node import Node, map_arg
from leafgrad.compat.torch.fx.proxy import Proxy, Tracer, wrap

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "map_arg",
    "symbolic_trace",
    "wrap",
]

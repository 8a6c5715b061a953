"""Pictures of graphs: what autograd recorded, and compiled programs. ``leafgrad.utils.graph`` draws both."""

from leafgrad.pictures.drawing import Drawing
from leafgrad.pictures.graphs import graph

__all__ = ["Drawing", "graph"]

"""``torch.fx.node``: the class that ``torch.fx`` has."""

from leafgrad.compat.torch.fx import Node

__all__ = ["Node"]

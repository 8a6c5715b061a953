"""How a tensor shows in a notebook: what it is as a small table, and its elements as printed."""

from __future__ import annotations

from leafgrad.tensor.methods import attach
from leafgrad.tensor.tensor import Tensor


def as_html(self: Tensor) -> str:
    """HTML for notebooks: dtype, shape, device and place in the graph, above the repr."""
    from html import escape  # its table of names takes its time to import

    node = self.grad_fn
    facts = {
        "dtype": str(self.dtype),
        "shape": str(tuple(self.shape)),
        "device": str(self.device),
        "grad_fn" if node else "requires_grad": node.name() if node else str(self.requires_grad),
    }
    names = "".join(f"<th>{name}</th>" for name in facts)
    values = "".join(f"<td>{escape(value)}</td>" for value in facts.values())
    table = f'<table style="font-family: monospace"><tr>{names}</tr><tr>{values}</tr></table>'
    return f'{table}<pre style="font-family: monospace">{escape(repr(self))}</pre>'


attach("_repr_html_", as_html)

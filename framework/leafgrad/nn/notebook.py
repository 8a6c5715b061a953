"""How a module shows in a notebook: a tree that folds."""

from __future__ import annotations

from typing import Any


def tree(module: Any, name: str = "") -> str:
    """A module and those below it as nested ``<details>``, each with the number of its parameters."""
    from html import escape  # its table of names takes its time to import

    label = escape(f"({name}): " if name else "") + f"<code>{escape(heading(module))}</code>{count(module)}"
    below = [tree(child, key) for key, child in module.named_children()]
    if not below:
        return f'<div style="margin-left: 1em">{label}</div>'
    folded = "" if name else " open"
    return f'<details{folded} style="margin-left: 1em"><summary>{label}</summary>{"".join(below)}</details>'


def heading(module: Any) -> str:
    """The class, and what the module says of itself."""
    return f"{type(module).__name__}({module.extra_repr()})"


def count(module: Any) -> str:
    """How many numbers a module learns, its children's included."""
    total = sum(parameter.numel() for parameter in module.parameters())
    return f" <small>{total:,} parameters</small>" if total else ""

"""How a module shows beside its repr: in a notebook as a tree that folds, and as a table of its parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leafgrad.nn.parameter import UninitializedTensor


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
    total = amount(module.parameters())[0]
    return f" <small>{total} parameters</small>" if total != "0" else ""


def summary(module: Any) -> str:
    """A line for each module below that has parameters of its own, or nothing below it; then what they all have."""
    from leafgrad.tensor.printing import PrintedText

    rows = [("module", "class", "parameters", "bytes")]
    for name, part in module.named_modules():
        own = list(part.parameters(recurse=False))
        if own or not part._modules:
            rows.append((name or "(itself)", type(part).__name__, *amount(own)))
    wide = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}  {d:>{wide[3]}}".rstrip() for a, b, c, d in rows
    ]  # fmt: skip
    every = list(module.parameters())
    frozen = [p for p in every if not p.requires_grad]
    lines.append("{} parameters in {} bytes".format(*amount(every)))
    if any(isinstance(p, UninitializedTensor) for p in every):
        lines[-1] += ", and those that are made at the first call"
    lines[-1] += f", {amount(frozen)[0]} of them frozen" * bool(frozen)
    if buffers := list(module.buffers()):
        lines[-1] += "; buffers: {} numbers in {} bytes".format(*amount(buffers))
    return PrintedText("\n".join(lines))


def amount(tensors: Iterable[Any]) -> tuple[str, str]:
    """How many numbers, and how many bytes. What is lazy has neither yet."""
    known = [t for t in tensors if not isinstance(t, UninitializedTensor)]
    return f"{sum(t.numel() for t in known):,}", f"{sum(t.numel() * t.element_size() for t in known):,}"

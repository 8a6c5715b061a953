"""Pairs of ops that are each other's transpose, and what of one follows from the other.

Both are linear in their first argument. The others are the same, and so are the parameters, but for ``shape``: an op
that has it makes an array of that shape.
"""

from __future__ import annotations

from typing import Any

from leafgrad.ops import messages
from leafgrad.ops.abstract import Abstract, Shape
from leafgrad.ops.declarations import Declarations
from leafgrad.ops.shifted import Shifted, in_front


def pair(op: Declarations, partner: Declarations) -> None:
    """Declare what follows of ``op``, and of its ``partner`` unless that has a rule of its own for its first argument.

    Raises:
        OpDefinitionError: their arguments or parameters do not fit, or the partner has its rule from another op.
    """
    if not isinstance(partner, Declarations):
        raise messages.definition(op.name, f"transpose_of: expected an op, got {partner!r}")
    if partner.transpose is not None:
        raise messages.definition(
            op.name, f"transpose_of: {partner.name!r} has its gradient from {partner.transpose.name!r} already"
        )
    ours, theirs = op.signature, partner.signature
    alike = (len(ours.arguments), ours.variadic) == (len(theirs.arguments), theirs.variadic)
    linear = len(ours.arguments) > ours.variadic  # there is a first argument
    if not (linear and alike and ours.parameters.keys() ^ theirs.parameters.keys() <= {"shape"}):
        raise messages.definition(
            op.name,
            f"transpose_of: expected a first argument, and apart from it and from shape the same as "
            f"{partner.name}({theirs}), got ({ours})",
        )
    given = f"vjp {theirs.arguments[0]}" in partner.origins
    for one, other in ((op, partner),) if given else ((op, partner), (partner, op)):
        derive(one, other)


def derive(op: Declarations, partner: Any) -> None:
    """Declare of ``op`` what follows from its ``partner``."""
    op.transpose, origin = partner, f"transpose of {partner.name}"
    first, *others = op.signature.arguments
    if f"vjp {first}" not in op.origins:
        sources = ["g", *[f"args[{i}]" for i in range(1, len(others) + 1)]]
        if op.signature.variadic:
            sources[-1] = f"*args[{len(others)}:]"
        sources += [f"{p}=shapes[0]" if p == "shape" else f"{p}=params[{p!r}]" for p in partner.signature.parameters]
        reads = {"g", *others} | ({f"{first}_shape"} if "shape" in partner.signature.parameters else set())
        op.calls[first] = partner, tuple(sources)
        op.uses = (frozenset(reads), *op.uses[1:])
        op.origins[f"vjp {first}"] = origin
    if op.shaping is None and "shape" in op.signature.parameters:
        op.shaping, op.origins["shape"] = made, origin
    if op.batching is None and isinstance(partner.batching, Shifted):
        changes = {name: change for name, change in partner.batching.changes.items() if name != "shape"}
        if "shape" in op.signature.parameters:
            changes["shape"] = in_front
        op.batching, op.origins["batched"] = Shifted(changes), origin


def made(*arguments: Abstract | None, shape: Shape) -> Shape:
    """The shape rule of an op that is told what to make."""
    return shape

"""Copies of fields, which keep to each other: of another size, at other times, or as those of one problem."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from leafgrad_pinn.field import Derivative, Field


def copied(fields: Iterable[Field]) -> dict[str, Field]:
    """A copy of each field, by name: they share networks with copies, and are derivatives of copies."""
    copies = {field.name: copy.copy(field) for field in fields}
    for field in copies.values():
        field.shared = tuple(copies[other.name] for other in field.shared if other.name in copies)
        if isinstance(field, Derivative):
            field.of = copies[field.of.name]
    return copies

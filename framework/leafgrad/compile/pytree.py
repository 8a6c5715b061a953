"""Nested tuples, lists and dicts of arguments and results, flat and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of nested tuples, lists and dicts, and a structure that compares equal for equal nesting."""
    leaves: list[Any] = []
    return leaves, _walk(tree, leaves)


def _walk(tree: Any, leaves: list[Any]) -> Any:
    kind = type(tree)
    if kind is dict:
        return kind, tuple(tree), tuple([_walk(v, leaves) for v in tree.values()])
    if kind in (tuple, list) or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return kind, len(tree), tuple([_walk(v, leaves) for v in tree])
    leaves.append(tree)
    return None


def unflatten(structure: Any, leaves: Iterator[Any]) -> Any:
    """The tree of that structure with these leaves."""
    if structure is None:
        return next(leaves)
    kind, keys, parts = structure
    children = [unflatten(p, leaves) for p in parts]
    if kind is dict:
        return dict(zip(keys, children, strict=True))
    return kind(*children) if hasattr(kind, "_fields") else kind(children)

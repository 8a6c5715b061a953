"""Pytrees, the nested tuples, lists and dicts of arguments and results: flat and back, and a value for each leaf."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

DICTS = (dict, OrderedDict, defaultdict)
CONTAINERS = (tuple, list, dict)


class StructureMismatch(Exception):
    """Two pytrees do not have the same structure."""


def is_tuple(value: Any) -> bool:
    """Whether a tuple is a node of pytrees: plain or with named fields, not a class of its own such as a size.

    Nor one that has attributes besides, which would be lost.
    """
    named = isinstance(value, tuple) and hasattr(value, "_fields")
    return type(value) is tuple or (named and not getattr(value, "__dict__", None))


def with_parts(value: tuple[Any, ...], parts: Iterable[Any]) -> tuple[Any, ...]:
    """A tuple of the class of ``value``, whatever that is constructed of, with its attributes and other parts."""
    made = tuple.__new__(type(value), parts)
    if own := getattr(value, "__dict__", None):
        vars(made).update(own)
    return made


def parts_of(tree: Any) -> list[Any]:
    """What a tuple, list or dict holds, in the order in which Python keeps it: a class may have an ``__iter__``."""
    if isinstance(tree, dict):
        return [*tree.values()]
    return [*(tuple if isinstance(tree, tuple) else list).__iter__(tree)]


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of nested tuples, lists and dicts, and a structure that compares equal for equal nesting."""
    leaves: list[Any] = []
    return leaves, _walk(tree, leaves)


def _walk(tree: Any, leaves: list[Any]) -> Any:
    kind: Any = type(tree)
    keys: Any = None
    default_factory = kinds = None
    if kind in DICTS:
        keys, default_factory = tuple(tree), getattr(tree, "default_factory", None)
        kinds = [*map(type, keys)] if {*map(type, keys)} - {str} else None  # 1 and True are equal
    elif kind is not list and not is_tuple(tree):
        leaves.append(tree)
        return None
    parts: list[Any] = []
    for value in parts_of(tree):
        if isinstance(value, CONTAINERS):
            parts.append(_walk(value, leaves))
        else:
            leaves.append(value)
            parts.append(None)
    return kind, len(parts) if keys is None else keys, tuple(parts), default_factory, kinds


def unflatten(structure: Any, leaves: Iterator[Any]) -> Any:
    """The pytree of that structure with these leaves."""
    if structure is None:
        return next(leaves)
    kind, keys, parts, default_factory, _ = structure
    children = [unflatten(p, leaves) for p in parts]
    if kind in DICTS:
        made = zip(keys, children, strict=True)
        return defaultdict(default_factory, made) if kind is defaultdict else kind(made)
    return kind(children) if kind is list else tuple.__new__(kind, children)


def containers(tree: Any, kinds: Any = ()) -> list[Any]:
    """The lists and dicts in nested results; what is of other ``kinds``, too."""
    found: list[Any] = []
    seen: set[int] = set()  # what may be within itself
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if type(part) is list or type(part) in DICTS or isinstance(part, kinds):
            found.append(part)
            if id(part) in seen:
                continue
            seen.add(id(part))
        if type(part) in DICTS or isinstance(part, (list, tuple)):
            waiting += parts_of(part)
    return found


def mapped(function: Any, tree: Any) -> Any:
    """The pytree with ``function`` applied to each leaf."""
    leaves, structure = flatten(tree)
    return unflatten(structure, iter([function(leaf) for leaf in leaves]))


def for_each_leaf(prefix: Any, structure: Any) -> list[Any]:
    """One value for each leaf of ``structure``: a value of ``prefix`` stands for all leaves below its place.

    Raises:
        StructureMismatch: ``prefix`` branches where ``structure`` does not, or otherwise.
    """
    if structure is None:
        if type(prefix) in DICTS or type(prefix) is list or is_tuple(prefix):
            raise StructureMismatch
        return [prefix]
    kind, keys, parts, *_ = structure
    if type(prefix) in DICTS:
        if kind not in DICTS or set(prefix) != set(keys):
            raise StructureMismatch
        return [v for key, p in zip(keys, parts, strict=True) for v in for_each_leaf(prefix[key], p)]
    if type(prefix) is list or is_tuple(prefix):
        if kind in DICTS or len(prefix) != len(parts) or type(prefix) is not kind:
            raise StructureMismatch
        return [v for each, p in zip(prefix, parts, strict=True) for v in for_each_leaf(each, p)]
    return [v for p in parts for v in for_each_leaf(prefix, p)]


def outline(structure: Any) -> str:
    """A structure in an error's words: ``(*, {'a': *})``."""
    if structure is None:
        return "*"
    kind, keys, parts, *_ = structure
    inner = [outline(p) for p in parts]
    if kind in DICTS:
        return "{" + ", ".join([f"{k!r}: {p}" for k, p in zip(keys, inner, strict=True)]) + "}"
    if kind is list:
        return "[" + ", ".join(inner) + "]"
    return "(" + ", ".join(inner) + ("," if len(inner) == 1 else "") + ")"

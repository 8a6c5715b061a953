"""What the parts of a call's arguments are called: ``x``, ``batch.u``, ``pairs[0]``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad.batching import pytree
from leafgrad.compile.run.left import subtrees
from leafgrad.tensor.tensor import Tensor


def paths_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """A name for each leaf of ``flatten((args, kwargs))``, in its order."""
    found: list[str] = []
    for name, value in zip(positional(function, len(args)), args, strict=True):
        walk(value, name, found)
    for name, value in kwargs.items():
        walk(value, name, found)
    return found


def positional(function: Callable[..., Any], count: int) -> list[str]:
    """The names of the first ``count`` positional arguments of a function."""
    try:
        parameters = list(inspect.signature(getattr(function, "forward", function)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in kinds][:count]
    rest = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), "argument")
    return names + [f"{rest}[{i}]" for i in range(count - len(names))]


def walk(value: Any, path: str, found: list[str]) -> None:
    if type(value) in pytree.DICTS:
        for key, part in value.items():
            plain = isinstance(key, str) and key.isidentifier()
            walk(part, f"{path}.{key}" if plain else f"{path}[{key!r}]", found)
    elif type(value) is list or pytree.is_tuple(value):
        fields = getattr(value, "_fields", None)
        for i, part in enumerate(value):
            walk(part, f"{path}.{fields[i]}" if fields else f"{path}[{i}]", found)
    else:
        found.append(path)


def roots(
    function: Any, leaves: Sequence[Any], paths: Sequence[str], tuples: Sequence[Any] = ()
) -> list[tuple[Any, str]]:
    """Where a function may begin to read: itself, and objects and classes of tensors and tuples among its arguments."""
    name = "self" if not hasattr(function, "__name__") else function.__name__
    objects = [(leaf, path) for leaf, path in zip(leaves, paths, strict=True) if not isinstance(leaf, Tensor)]
    kinds = {type(value) for value in (*leaves, *tuples) if isinstance(value, (Tensor, tuple))} - {Tensor}
    return [(function, name), *objects, *[(kind, kind.__name__) for kind in kinds]]


def named_tuples(given: Any) -> list[Any]:
    """The tuples with named fields among arguments."""
    return [tree for tree in subtrees([given]) if isinstance(tree, tuple) and type(tree) is not tuple]

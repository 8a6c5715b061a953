"""``argnums`` and what functions return, checked in the words that PyTorch uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.batching import pytree
from leafgrad.func.level import Level
from leafgrad.tensor.tensor import Tensor

Argnums = int | tuple[int, ...]


def positions(argnums: Any, count: int) -> tuple[int, ...]:
    """The arguments that ``argnums`` names, of ``count``."""
    if not isinstance(argnums, (int, tuple)) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    given = argnums if isinstance(argnums, tuple) else (argnums,)
    if not given:
        raise RuntimeError("argnums must be non-empty")
    for n in given:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
    found = tuple([n % count for n in given])
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def chosen_arguments(
    level: Level, args: tuple[Any, ...], argnums: Argnums, kwargs: dict[str, Any], writable: bool = False
) -> tuple[tuple[Any, ...], Any]:
    """All arguments with those of ``argnums`` as leaves, and these alone as ``argnums`` has them: one or a tuple.

    Args:
        writable: let the function write into the leaves, too, and not only into all other arguments.
    """
    at = positions(argnums, len(args))
    leaves = {i: level.differentiable(args[i]) for i in at}
    level.give([a for i, a in enumerate(args) if i not in leaves] + [kwargs])
    passed = {i: level.writable(args[i], leaf) if writable else leaf for i, leaf in leaves.items()}
    every = tuple([passed.get(i, a) for i, a in enumerate(args)])
    return every, leaves[at[0]] if isinstance(argnums, int) else tuple([leaves[i] for i in at])


def with_aux(result: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    """The output and the rest, None without ``has_aux``."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def tensors(values: Any, what: str) -> tuple[list[Tensor], Any]:
    """Nested results, flat; an error if there is none, or something else among them."""
    leaves, structure = pytree.flatten(values)
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(f"{what}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{what}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return leaves, structure


def named(function: Callable[..., Any], like: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` under the name of the one that it differentiates."""
    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        if hasattr(like, attribute):
            setattr(function, attribute, getattr(like, attribute))
    return function

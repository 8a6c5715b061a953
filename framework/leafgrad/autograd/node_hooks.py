"""Hooks of nodes in a backward pass: before the gradients of a node's outputs pass through it, and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import modes
from leafgrad.ops import dispatch, forms
from leafgrad.ops.convert import clone
from leafgrad.ops.node import Hooks, TensorBase
from leafgrad.tensor.handle import RemovableHandle
from leafgrad.tensor.tensor import Tensor

Gradients = tuple[Any, ...]


def register_settled_hook(tensor: Tensor, hook: Callable[[], None]) -> RemovableHandle:
    """Call ``hook()`` once after each backward pass that added to the ``.grad`` of leaves that have it.

    Returns:
        A handle whose ``remove()`` takes the hook away.
    """
    return RemovableHandle(tensor._for_hook(hook, "register_settled_hook").settled, hook)


def run_before(hooks: Hooks, g: Any, recorded: bool) -> Any:
    """The gradients of a node's outputs after its prehooks."""
    several = g if type(g) is tuple else (g,)
    found = through(hooks.before, (), several, "prehook", recorded)
    return found if type(g) is tuple else found[0]


def run_after(hooks: Hooks, node: Any, pulled: Any, g: Any, recorded: bool) -> Any:
    """The gradients that a node passes on after its hooks, which see one for each edge that is shown, or None."""
    order = forms.places_of(node)
    assert order is not None
    places: list[int] = []
    for edge, _ in pulled:  # two edges of x * x lead to one node
        places.append(next(k for k, i in enumerate(order) if node.edges[i] is edge and k not in places))
    inputs: list[Any] = [None] * len(order)
    for k, (_, ge) in zip(places, pulled, strict=True):
        inputs[k] = ge
    outputs = shown(g if type(g) is tuple else (g,), recorded)
    found = through(hooks.after, (outputs,), tuple(inputs), "hook", recorded)
    return [(edge, found[k]) for k, (edge, _) in zip(places, pulled, strict=True)]


def through(functions: Any, others: tuple[Any, ...], gradients: Gradients, what: str, recorded: bool) -> Gradients:
    """``gradients`` as the functions leave them, each called with them and ``others``."""
    first = given = shown(gradients, recorded)
    for function in list(functions.values()):
        with modes.set_grad_enabled(recorded):
            given = replaced_gradients(function(given, *others), given, what)
    return tuple([
        old if new is before else taken(new, recorded)
        for old, before, new in zip(gradients, first, given, strict=True)
    ])  # fmt: skip


def shown(gradients: Gradients, recorded: bool) -> Gradients:
    """Gradients as hooks see them: Tensors, which they may keep."""
    return tuple([
        g if recorded or g is None else dispatch.alias(clone(dispatch.array(g))) for g in gradients
    ])  # fmt: skip


def taken(t: Any, recorded: bool) -> Any:
    """A gradient from a hook as the pass goes on with it."""
    return t if recorded or t is None else clone(dispatch.raw(t))


def check_fits(new: Any, old: Any, what: str) -> None:
    """An error if a hook's gradient is of another size or dtype than the one in whose place it is."""
    for name, had, got in (
        ("size", list(old._data.shape), list(new._data.shape)),
        ("type", str(old.dtype), str(new.dtype)),
    ):
        if had != got:
            raise RuntimeError(f"{what} has changed the {name} of value: expected a gradient of {had}, got {got}")


def replaced_gradients(new: Any, before: Gradients, what: str) -> Gradients:
    """What a hook returned in place of ``before``: nothing, or as many gradients that fit."""
    if new is None:
        return before
    new = tuple(new) if isinstance(new, (tuple, list)) else (new,)
    if len(new) != len(before):
        raise RuntimeError(
            f"{what} has returned an incorrect number of values (got {len(new)}, but expected {len(before)})"
        )
    for old, g in zip(before, new, strict=True):
        if g is not None and not isinstance(g, TensorBase):
            raise TypeError(f"{what}: expected it to return Tensors or None, got {type(g).__name__}")
        if g is not None and old is not None:
            check_fits(g, old, what)
    return new

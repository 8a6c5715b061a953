"""The graph as programs see it: its nodes and edges, hooks on several tensors, and what becomes of saved tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal
from weakref import WeakKeyDictionary, WeakSet

from leafgrad.autograd import engine
from leafgrad.autograd.edge import GradientEdge, get_gradient_edge
from leafgrad.autograd.saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from leafgrad.ops import dispatch
from leafgrad.tensor import inplace
from leafgrad.tensor.graph import Node
from leafgrad.tensor.handle import RemovableHandle
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Let autograd know that something else wrote into the memory of ``tensor``, or of several."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if t._writes is dispatch.INFERENCE_VERSION:
            raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed; clone() it")
        inplace.version(dispatch.inside(t)).bump()


class MultiHandle:
    """Takes one hook away from several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Take the hook away. Doing it twice does no harm."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: Literal["all", "any"] = "all"
) -> MultiHandle:
    """Call ``fn`` once in each backward pass, with the gradients of all ``tensors`` or with the first that comes.

    Args:
        tensors: each requires grad.
        fn: with mode ``"all"``, called with a list of gradients, None for tensors that get none, when all that the pass
            will compute are there; with ``"any"``, with the first gradient.

    Returns:
        A handle whose ``remove()`` takes the hook away.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        first = First(fn)
        return MultiHandle([t.register_hook(first.arrived) for t in tensors if t.requires_grad])
    gathering = Gathering(tensors, fn)
    return MultiHandle([t.register_hook(partial(gathering.arrived, i)) for i, t in enumerate(tensors)])


class First:
    """Calls a function with the first gradient of each backward pass, which runs in one thread."""

    def __init__(self, fn: Callable[[Tensor], None]) -> None:
        self.fn = fn
        self.done: WeakSet[engine.Pass] = WeakSet()

    def arrived(self, g: Tensor) -> None:
        """A gradient is there."""
        now = engine.PASS.get()
        if now not in self.done:
            self.done.add(now)
            self.fn(g)


class Gathering:
    """Calls a function with all gradients of each backward pass."""

    def __init__(self, tensors: Sequence[Tensor], fn: Callable[[list[Tensor | None]], None]) -> None:
        self.nodes = [dispatch.inside(t)._node for t in tensors]
        self.fn = fn
        self.found: WeakKeyDictionary[engine.Pass, dict[int, Tensor]] = WeakKeyDictionary()

    def arrived(self, i: int, g: Tensor) -> None:
        """The gradient of tensor ``i`` is there."""
        now = engine.PASS.get()
        found = self.found.setdefault(now, {})
        found[i] = g
        if len(found) == sum(now.comes_to(node) for node in self.nodes):
            self.fn([found.get(i) for i in range(len(self.nodes))])

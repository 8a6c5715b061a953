"""Forward mode with dual tensors: values that carry the tangent with which they move.

A dual tensor is a leaf of the recorded graph, and a tangent is pushed through the graph when it is asked for, once
through each node: what is computed from duals must be recorded. A Function that has a ``jvp`` asks when it is applied.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from leafgrad import modes
from leafgrad.autograd import api, forward
from leafgrad.autograd.local import Local, close, local, node, open_to, settled
from leafgrad.ops.node import GraphNode
from leafgrad.tensor.public import publish
from leafgrad.tensor.tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class DualLevel:
    """The tangents that are known: of duals, and of what was computed from them so far as anybody asked."""

    def __init__(self) -> None:
        self.flow: WeakKeyDictionary[GraphNode, Any] = WeakKeyDictionary()
        self.recorded = False  # whether tangents of duals require grad
        self.asked = False  # whether a tangent is being made, by gradients that have none

    def tangent(self, tensor: Tensor) -> Tensor | None:
        """The tangent of a tensor, recorded where it could be differentiated; None where it depends on no dual."""
        end = node(tensor)
        if end is None or not self.flow:
            return None
        if end not in self.flow:
            self.asked = True
            try:
                forward.advance(end, self.flow, self.recorded or bool(open_to([tensor], duals=False)))
            finally:
                self.asked = False
        found: Tensor | None = self.flow.get(end)
        return found

    def moving(self, tensor: Tensor, tangent: Tensor | None) -> Tensor:
        """The same values, memory and gradient with this tangent instead of that which ``tensor`` has."""
        out = local(tensor, True)
        close([out])  # a tangent alone is no reason to require grad
        self.flow[out._node], out._node.moving = tangent, tangent is not None
        return out

    def move(self, tensors: Iterable[Any]) -> bool:
        """Whether gradients that are computed of these would have tangents."""
        return not self.asked and any(isinstance(t, Tensor) and self.tangent(t) is not None for t in tensors)

    def plain(self, gradients: Iterable[Tensor | None]) -> tuple[Tensor | None, ...]:
        """Recorded gradients as those that were not, with their tangents."""
        return tuple([
            g if g is None else g.detach() if (t := self.tangent(g)) is None else self.moving(g.detach(), t.detach())
            for g in gradients
        ])  # fmt: skip

    def end(self) -> None:
        """Nothing moves any more."""
        for leaf in self.flow:
            if isinstance(leaf, Local):
                leaf.moving = False


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, which is None where it depends on no dual tensor."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a level of forward mode; returns its number, 0."""
    if api.DUALS.get() is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment; nest leafgrad.func.jvp instead")
    level = DualLevel()
    api.DUALS.set(level)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: tensors made in it have no tangents any more."""
    known = api.DUALS.get()
    if known is None:
        raise RuntimeError("Trying to exit a forward AD level that was not entered: call enter_dual_level() first")
    known.end()
    api.DUALS.set(None)


class dual_level:
    """``with dual_level():`` within it tensors may have tangents."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """``tensor`` with a tangent of its shape and device: whatever is computed from it has one, too.

    Raises:
        RuntimeError: no level was entered, recording is off, or the tangent does not fit. ValueError: no floats.
    """
    known = api.DUALS.get()
    if known is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not t.dtype.is_differentiable:
            raise ValueError(f"Expected {name} to be floating point, but got: {t.dtype}")
    if not modes.is_grad_enabled():
        raise RuntimeError(
            "make_dual: tangents follow the recorded graph, and recording is off; leave no_grad(), or use enable_grad()"
        )
    tangent = forward.fitting_tangent(0, tensor, tangent)
    if known.tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported: take unpack_dual(tensor).primal"
        )
    dual = known.moving(tensor, tangent)
    known.recorded = known.recorded or tangent.requires_grad
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """``tensor`` without and with its tangent alone: ``(primal, tangent)``."""
    known = api.DUALS.get()
    tangent = None if known is None else known.tangent(tensor)
    if known is None or tangent is None:
        return UnpackedDualTensor(tensor, None)
    (primal,) = settled([tensor], True, duals=False)
    if primal.requires_grad:
        primal = known.moving(primal, None)
    return UnpackedDualTensor(
        primal, *settled([tangent], True, duals=False) if modes.is_grad_enabled() else (tangent.detach(),)
    )


publish(globals())

"""Forward mode with dual tensors: values that carry the tangent with which they move.

A dual tensor is a leaf of the recorded graph, and a tangent is pushed through the graph when it is asked for: what is
computed from duals must be recorded.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import NamedTuple

from leafgrad import modes
from leafgrad.autograd import engine, forward
from leafgrad.autograd.local import close, local, node, open_to, settled
from leafgrad.tensor.public import publish
from leafgrad.tensor.tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

Duals = list[tuple[Tensor, Tensor]]  # what make_dual gave, with the tangents

_duals: ContextVar[Duals | None] = ContextVar("leafgrad_duals", default=None)


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, which is None where it depends on no dual tensor."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a level of forward mode; returns its number, 0."""
    if _duals.get() is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment; nest leafgrad.func.jvp instead")
    _duals.set([])
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: tensors made in it have no tangents any more."""
    if _duals.get() is None:
        raise RuntimeError("Trying to exit a forward AD level that was not entered: call enter_dual_level() first")
    _duals.set(None)


class dual_level:
    """``with dual_level():`` within it tensors may have tangents."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """``tensor`` with a tangent of its shape, dtype and device: whatever is computed from it has one, too.

    Raises:
        RuntimeError: no level was entered, recording is off, or the tangent does not fit. ValueError: no floats.
    """
    duals = _duals.get()
    if duals is None:
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
    forward.check_tangent(0, tensor, tangent)
    dual = local(tensor, True)
    close([dual])  # a tangent alone is no reason to require grad
    duals.append((dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """``tensor`` without and with its tangent alone: ``(primal, tangent)``."""
    duals = _duals.get() or []
    end = node(tensor)
    if end is None or not duals:
        return UnpackedDualTensor(tensor, None)
    order = engine.reachable([end])
    needed, _ = engine.leading_to(order, {dual._node for dual, _ in duals})
    if end not in needed:
        return UnpackedDualTensor(tensor, None)
    (primal,) = settled([tensor], True)
    recorded = modes.is_grad_enabled() and (bool(open_to([tensor])) or any(t.requires_grad for _, t in duals))
    pairs = [(dual, t) for dual, t in duals if dual._node in needed]
    found = forward.push((tensor,), tuple(d for d, _ in pairs), tuple(t for _, t in pairs), recorded)
    return UnpackedDualTensor(primal, *settled(list(found), recorded))


publish(globals())

"""Gradients clipped, in place."""

from __future__ import annotations

from collections.abc import Iterable

from leafgrad import modes
from leafgrad.ops.messages import warn
from leafgrad.tensor.creation import zeros
from leafgrad.tensor.joining import stack
from leafgrad.tensor.public import publish
from leafgrad.tensor.tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Tensors = Tensor | Iterable[Tensor]


def _gradients(parameters: Tensors) -> list[Tensor]:
    return [p.grad for p in _chosen(parameters) if p.grad is not None]


def _chosen(parameters: Tensors) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        return [parameters]
    if callable(parameters):  # a module, or its method
        kind = type(parameters).__name__
        raise TypeError(f"clip_grad: parameters: expected Tensors, got a {kind}; pass model.parameters()")
    return list(parameters)


@modes.no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors as one vector, 0-d.

    Args:
        norm_type: p of the p-norm; ``float("inf")`` for the greatest absolute value.
        error_if_nonfinite: raise if the norm is nan or inf (reads it from the device).
        foreach: has no effect.
        tensors: one or several.

    Raises:
        RuntimeError: with ``error_if_nonfinite``, the norm is not finite.
    """
    parts = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not parts:
        return zeros(())
    norm_type = float(norm_type)
    total = stack([t.norm(norm_type).to(parts[0].device) for t in parts]).norm(norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@modes.no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients together, in place, by ``max_norm / total_norm`` if that is less than 1.

    Args:
        total_norm: what ``get_total_norm`` gave.
        foreach: has no effect.
        parameters: one or several.
        max_norm: what the norm shall not exceed.
    """
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for g in _gradients(parameters):
        g.mul_(factor.to(g.device))


@modes.no_grad()
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients together, in place, so that their norm as one vector is at most ``max_norm``.

    Args:
        norm_type: p of the p-norm; ``float("inf")`` for the greatest absolute value.
        error_if_nonfinite: raise if the norm is nan or inf (reads it from the device).
        foreach: has no effect.

    Returns:
        The norm before, a 0-d tensor.

    Raises:
        RuntimeError: with ``error_if_nonfinite``, the norm is not finite.
    """
    chosen = _chosen(parameters)
    total = get_total_norm(_gradients(chosen), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(chosen, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The same as ``clip_grad_norm_``, under its name of old."""
    warn(
        "`leafgrad.nn.utils.clip_grad_norm` is now deprecated in favor of `leafgrad.nn.utils.clip_grad_norm_`.",
        FutureWarning,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@modes.no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Cut every element of every gradient off at ±``clip_value``, in place. ``foreach`` has no effect."""
    for g in _gradients(parameters):
        g.clamp_(-float(clip_value), float(clip_value))


publish(globals())

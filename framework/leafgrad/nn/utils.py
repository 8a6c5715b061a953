"""Gradients clipped, and parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from leafgrad import modes
from leafgrad.tensor.creation import zeros
from leafgrad.tensor.joining import cat, stack
from leafgrad.tensor.public import publish
from leafgrad.tensor.tensor import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    chosen = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in chosen if p.grad is not None]


@modes.no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale all gradients together, in place, so that their norm as one vector is at most ``max_norm``.

    Args:
        norm_type: p of the p-norm; ``float("inf")`` for the greatest absolute value.
        error_if_nonfinite: raise if the norm is nan or inf (reads it from the device).

    Returns:
        The norm before, a 0-d tensor.

    Raises:
        RuntimeError: with ``error_if_nonfinite``, the norm is not finite.
    """
    gradients = _gradients(parameters)
    if not gradients:
        return zeros(())
    total = stack([g.norm(norm_type).to(gradients[0].device) for g in gradients]).norm(norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for g in gradients:
        g.mul_(factor.to(g.device))
    return total


@modes.no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Cut every element of every gradient off at ±``clip_value``, in place."""
    for g in _gradients(parameters):
        g.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flattened and joined in order. Gradients flow through it."""
    return cat([p.reshape(-1) for p in parameters])


@modes.no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of ``vec`` into the parameters, in order.

    Raises:
        TypeError: ``vec`` is not a Tensor. RuntimeError: it has too few elements.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vec: expected a Tensor, got {type(vec).__name__}")
    chosen = list(parameters)
    needed = sum(p.numel() for p in chosen)
    if vec.numel() < needed:
        raise RuntimeError(f"vector_to_parameters: vec: expected at least {needed} elements, got {vec.numel()}")
    start = 0
    for p in chosen:
        p.copy_(vec[start : start + p.numel()].reshape(p.shape))
        start += p.numel()


publish(globals())

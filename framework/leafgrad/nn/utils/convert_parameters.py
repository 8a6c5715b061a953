"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from leafgrad import modes
from leafgrad.tensor.joining import cat
from leafgrad.tensor.public import publish
from leafgrad.tensor.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flattened and joined in order. Gradients flow through it."""
    return cat([p.reshape(-1) for p in parameters])


@modes.no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make the parameters parts of ``vec``, in order: as in PyTorch, they share its memory from now on.

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
        p.data = vec[start : start + p.numel()].reshape(p.shape)
        start += p.numel()


publish(globals())

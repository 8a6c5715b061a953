"""Distances of vectors, and the angle between them."""

from __future__ import annotations

from leafgrad.tensor.arguments import expect_real, expect_tensor
from leafgrad.tensor.creation import triu_indices
from leafgrad.tensor.shapes import broadcast_tensors
from leafgrad.tensor.tensor import Tensor

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along ``dim``, which is reduced. Norms count as at least ``eps``.

    As in PyTorch, the gradient takes a shorter one for the norm that it is, plus what is missing.
    """
    for name, x in (("x1", x1), ("x2", x2)):
        expect_real(expect_tensor(x, name, "cosine_similarity"), "cosine_similarity")
    if x1.shape != x2.shape:
        x1, x2 = broadcast_tensors(x1, x2)
    # each by its own length first: a product of lengths may be infinite, or 0, where the cosine is neither
    lengths = [x.norm(2, dim, keepdim=True) for x in (x1, x2)]
    lengths = [n + (eps - n).clamp(min=0).detach() for n in lengths]  # whose slope stays that of a length
    return ((x1 / lengths[0]) * (x2 / lengths[1])).sum(dim)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension. (..., size), (..., size) -> (...)"""
    return (expect_tensor(x1, "x1", "pairwise_distance") - x2 + eps).norm(p, -1, keepdim)


def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norm distances between all rows: 0 to 1, 0 to 2, ..., 1 to 2, ... (n, size) -> (n (n - 1) / 2,)

    Raises:
        RuntimeError: not two dimensions, or a negative ``p``.
    """
    if expect_real(expect_tensor(input, "input", "pdist"), "pdist").ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    first, second = triu_indices(input.shape[0], input.shape[0], 1, device=input.device)
    difference = input[first] - input[second]
    return difference.norm(p if input.shape[1] else 1, -1)  # of no numbers there is no largest, but a sum

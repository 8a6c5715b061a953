"""Dropout."""

from __future__ import annotations

from leafgrad.ops.elementwise import mul
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.inplace import update
from leafgrad.tensor.random import rand_like
from leafgrad.tensor.tensor import Tensor

__all__ = ["dropout"]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability ``p`` and scale the others by 1 / (1 - p); the mean stays. (...) -> (...)

    Srivastava et al. (2014). Does nothing unless ``training``.

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """
    expect_tensor(input, "input", "dropout")
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    keep = 1 - p
    noise = (rand_like(input.detach()) < keep).to(input.dtype) * (1 / keep if keep else 0.0)
    return update(input, mul, noise) if inplace else input * noise

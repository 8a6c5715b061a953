"""``torch.distributions.utils``: what distributions of others are made of."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from leafgrad import dtypes
from leafgrad.distributions.bernoulli import clamp_probs
from leafgrad.distributions.distribution import lazy_property
from leafgrad.nn import functional as F
from leafgrad.tensor.data import tensor
from leafgrad.tensor.random import randn
from leafgrad.tensor.shapes import broadcast_tensors
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "_standard_normal", "_sum_rightmost", "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs",
    "probs_to_logits",
]  # fmt: skip


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors and numbers in one shape; numbers take dtype and device of the first tensor.

    Raises:
        ValueError: something is neither.
    """
    if not all(isinstance(value, (Tensor, numbers.Number)) for value in values):
        raise ValueError("Input arguments must all be instances of Number or torch.Tensor.")
    like = next((value for value in values if isinstance(value, Tensor)), None)
    options = {"dtype": dtypes.get_default_dtype()} if like is None else {"dtype": like.dtype, "device": like.device}
    return tuple(broadcast_tensors(*[v if isinstance(v, Tensor) else tensor(v, **options) for v in values]))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds, or of log probabilities along the last dimension."""
    return logits.sigmoid() if is_binary else F.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The reverse of ``logits_to_probs``."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Samples of the standard normal distribution."""
    return randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last ``dim`` dimensions."""
    return value.reshape((*value.shape[:-dim], -1)).sum(-1) if dim else value

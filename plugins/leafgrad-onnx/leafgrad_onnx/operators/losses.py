"""Operators that compare predictions with targets."""

from __future__ import annotations

from typing import Any

import leafgrad
from leafgrad_onnx.operators.registry import operator


@operator("NegativeLogLikelihoodLoss")
def nll_loss(
    x: Any, target: Any, weight: Any = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Any:
    at = target.to(leafgrad.int64)
    counts = leafgrad.ones_like(at, dtype=leafgrad.bool) if ignore_index is None else at != ignore_index
    at = leafgrad.where(counts, at, leafgrad.zeros_like(at))
    shares = counts.to(x.dtype) if weight is None else weight[at] * counts.to(x.dtype)
    losses = -x.gather(1, at.unsqueeze(1)).squeeze(1) * shares
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / shares.sum()


@operator("SoftmaxCrossEntropyLoss")
def cross_entropy(
    x: Any, target: Any, weight: Any = None, *, ignore_index: int | None = None, reduction: str = "mean", outputs: int
) -> Any:
    logs = leafgrad.log_softmax(x, 1)
    loss = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    return (loss, logs) if outputs > 1 else loss

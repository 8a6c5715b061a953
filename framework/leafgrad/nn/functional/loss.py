"""Losses. ``reduction`` is "mean", "sum", or "none" for one loss per element."""

from __future__ import annotations

from leafgrad.nn.functional.classification import cross_entropy, nll_loss, reduced
from leafgrad.ops import messages
from leafgrad.ops.activation import logsigmoid
from leafgrad.ops.select import where
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.pointwise import xlogy
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
]


def _difference(input: Tensor, target: Tensor, function: str) -> Tensor:
    """input - target, with a warning where their sizes differ: (n,) and (n, 1) broadcast to (n, n) unnoticed."""
    expect_tensor(input, "input", function)
    expect_tensor(target, "target", function)
    if input.shape != target.shape:
        messages.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
        )
    return input - target


def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """(input - target)^2. Shapes: the same for both."""
    return reduced(_difference(input, target, "mse_loss").square(), reduction)


def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """|input - target|. Shapes: the same for both."""
    return reduced(_difference(input, target, "l1_loss").abs(), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d^2 / (2 beta) where d = |input - target| is below ``beta``, else d - beta / 2.

    Raises:
        ValueError: ``beta`` is negative.
    """
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta: expected a number >= 0, got {beta}")
    distance = _difference(input, target, "smooth_l1_loss").abs()
    if beta == 0:
        return reduced(distance, reduction)
    return reduced(where(distance < beta, distance.square() * (0.5 / beta), distance - 0.5 * beta), reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """d^2 / 2 where d = |input - target| is at most ``delta``, else delta (d - delta / 2). Huber (1964).

    Raises:
        ValueError: ``delta`` is not positive.
    """
    if delta <= 0:
        raise ValueError(f"huber_loss: delta: expected a number > 0, got {delta}")
    distance = _difference(input, target, "huber_loss").abs()
    loss = where(distance <= delta, distance.square() * 0.5, (distance - 0.5 * delta) * delta)
    return reduced(loss, reduction)


def kl_div(input: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target (log target - input): the divergence of ``exp(input)`` from ``target``, elementwise.

    Args:
        input: logarithms of probabilities.
        target: probabilities, or their logarithms if ``log_target``.
        reduction: also "batchmean", the sum divided by the size of the first dimension, which is the divergence
            in the mathematical sense.
    """
    expect_tensor(input, "input", "kl_div")
    expect_tensor(target, "target", "kl_div")
    if reduction == "mean":
        messages.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides "
            "only by the batch size, and aligns with the KL math definition."
        )
    loss = target.exp() * (target - input) if log_target else xlogy(target, target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss
    return reduced(loss, reduction)


def _log(x: Tensor) -> Tensor:
    """log x, at least -100; at 0 the slope is 1e12, so that a saturated output still gets a gradient."""
    zero = x == 0
    return where(zero, (x - x.detach()) * 1e12 - 100.0, where(zero, 1.0, x).log().clamp(min=-100.0))


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """-(target log input + (1 - target) log(1 - input)), the logarithms clamped at -100.

    Args:
        input: probabilities; outside [0, 1] the loss is nan.
        target: probabilities, of the same shape.
        weight: a factor for each element; broadcasts.

    Raises:
        ValueError: the shapes differ.
    """
    expect_tensor(input, "input", "binary_cross_entropy")
    expect_tensor(target, "target", "binary_cross_entropy")
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    loss = -(target * _log(input) + (1 - target) * _log(1 - input))
    return reduced(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """``binary_cross_entropy`` of ``sigmoid(input)``, without its rounding errors.

    Args:
        input: logits.
        target: probabilities, of the same shape.
        weight: a factor for each element; broadcasts.
        pos_weight: a factor for the positive part of each element; broadcasts.

    Raises:
        ValueError: the shapes differ.
    """
    expect_tensor(input, "input", "binary_cross_entropy_with_logits")
    expect_tensor(target, "target", "binary_cross_entropy_with_logits")
    if input.shape != target.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    positive = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * input - logsigmoid(input) * positive
    return reduced(loss if weight is None else loss * weight, reduction)

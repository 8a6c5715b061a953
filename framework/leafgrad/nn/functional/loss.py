"""Losses. ``reduction`` is "mean", "sum", or "none" for one loss per element."""

from __future__ import annotations

import math

from leafgrad.nn.functional.reduction import Flag, chosen_reduction, reduced
from leafgrad.ops import messages
from leafgrad.ops.activation import logsigmoid
from leafgrad.ops.elementwise import bent_square
from leafgrad.ops.exponential import binary_entropy
from leafgrad.ops.marks import shown_as
from leafgrad.ops.refuse import refuse
from leafgrad.ops.select import where
from leafgrad.tensor.arguments import expect_fitting, expect_real, expect_tensor
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.creation import full_like
from leafgrad.tensor.pointwise import xlogy
from leafgrad.tensor.shapes import broadcast_tensors
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
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
        if not (input.ndim and target.ndim):  # then the dtype of the one without counts as much as the other's
            input, target = broadcast_tensors(input, target)
    return input - target


def _check_weight(weight: Tensor, input: Tensor, loss: Tensor) -> None:
    """A ValueError unless there is a weight for each element of ``input``, each of which has one loss."""
    if not weight.shape == input.shape == loss.shape:
        raise ValueError(
            f"Weights and input must have the same size, and so must the target, got {list(weight.shape)} for an input "
            f"{list(input.shape)} and losses {list(loss.shape)}"
        )


def _weighted(loss: Tensor, weight: Tensor | None, input: Tensor, reduction: str) -> Tensor:
    """``loss`` with a factor for each element; their mean is over the sum of the factors."""
    if weight is None:
        return reduced(loss, reduction)
    _check_weight(weight, input, loss)
    if reduction == "mean":
        return (loss * weight).sum() / weight.sum()
    return reduced(loss * weight, reduction)


@shown_as("MseLossBackward0", "input", "target")
@autocast("float32")
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)^2. Shapes: the same for all.

    Args:
        weight: a factor for each element; "mean" divides by their sum.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "mse_loss")
    loss = expect_real(_difference(input, target, "mse_loss"), "mse_loss").square()
    return _weighted(loss, weight, input, reduction)


@autocast("float32")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|. Shapes: the same for all.

    Args:
        weight: a factor for each element; "mean" divides by their sum.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "l1_loss")
    return _weighted(_difference(input, target, "l1_loss").abs(), weight, input, reduction)


@shown_as("SmoothL1LossBackward0", "input", "target")
@autocast("float32")
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d^2 / (2 beta) where d = |input - target| is below ``beta``, else d - beta / 2.

    Raises:
        ValueError: ``beta`` is negative.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "smooth_l1_loss")
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta: expected a number >= 0, got {beta}")
    difference = expect_real(_difference(input, target, "smooth_l1_loss"), "smooth_l1_loss")
    return reduced(difference.abs() if beta == 0 else bent_square(difference, end=beta) / beta, reduction)


@shown_as("HuberLossBackward0", "input", "target")
@autocast("float32")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """d^2 / 2 where d = |input - target| is at most ``delta``, else delta (d - delta / 2). Huber (1964).

    Args:
        weight: a factor for each element.

    Raises:
        RuntimeError: ``delta`` is not positive. ValueError: ``weight`` has another shape.
    """
    if delta <= 0:
        raise RuntimeError(f"huber_loss: delta: expected a number > 0, got {delta}")
    loss = bent_square(expect_real(_difference(input, target, "huber_loss"), "huber_loss"), end=delta)
    if weight is not None:
        _check_weight(weight, input, loss)
    return reduced(loss if weight is None else loss * weight, reduction)


@autocast("float32")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target (log target - input): the divergence of ``exp(input)`` from ``target``, elementwise.

    Args:
        input: logarithms of probabilities.
        target: probabilities, or their logarithms if ``log_target``.
        reduction: also "batchmean", the sum divided by the size of the first dimension, which is the divergence
            in the mathematical sense.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "kl_div")
    for name, t in (("input", input), ("target", target)):
        if expect_tensor(t, name, "kl_div").dtype.is_complex:
            raise RuntimeError(f"kl_div: Complex inputs not supported, got {name} of {t.dtype}")
    if reduction == "mean":
        messages.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides "
            "only by the batch size, and aligns with the KL math definition."
        )
    loss = target.exp() * (target - input) if log_target else xlogy(target, target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss.sum()
    return reduced(loss, reduction, "'batchmean', ")


@shown_as("BinaryCrossEntropyBackward0", "input", "target")
@autocast("float32")
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """-(target log input + (1 - target) log(1 - input)), the logarithms clamped at -100.

    Args:
        input: probabilities. Where they are 0 or 1, slopes are as if they were 1e-12 away from it.
        target: probabilities, of the same shape.
        weight: a factor for each element; broadcasts to the shape of ``input``.

    Raises:
        ValueError: the shapes differ. RuntimeError: ``weight`` does not fit; on the CPU, something is outside [0, 1].
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "binary_cross_entropy")
    expect_tensor(input, "input", "binary_cross_entropy")
    expect_tensor(target, "target", "binary_cross_entropy")
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    for name, p in (("input", input.detach()), ("target", target.detach())):
        if p.device.type == "cpu":  # another device would be waited for
            outside = f"all elements of {name} should be between 0 and 1; apply sigmoid to logits"
            refuse(((p >= 0) & (p <= 1)).logical_not(), error=RuntimeError, message=outside)
    if weight is not None:
        expect_fitting(weight, input._data.shape, "weight", "binary_cross_entropy")
    loss = binary_entropy(input, target)
    return reduced(loss if weight is None else loss * weight, reduction)


@shown_as("BinaryCrossEntropyWithLogitsBackward0", "input", "target")
@autocast("float32")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """``binary_cross_entropy`` of ``sigmoid(input)``, without its rounding errors.

    Args:
        input: logits.
        target: probabilities, of the same shape.
        weight: a factor for each element; broadcasts to the shape of ``input``.
        pos_weight: a factor for the positive part of each element; broadcasts likewise.

    Raises:
        ValueError: the shapes differ. RuntimeError: a weight does not fit.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "binary_cross_entropy_with_logits")
    expect_tensor(input, "input", "binary_cross_entropy_with_logits")
    expect_tensor(target, "target", "binary_cross_entropy_with_logits")
    if input.shape != target.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    for name, given in (("weight", weight), ("pos_weight", pos_weight)):
        if given is not None:
            expect_fitting(given, input._data.shape, name, "binary_cross_entropy_with_logits")
    positive = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * input - logsigmoid(input) * positive
    return reduced(loss if weight is None else loss * weight, reduction)


@autocast("float32")
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + exp(-target input)), for a target of 1 or -1. Shapes: the same for both.

    Raises:
        RuntimeError: ``target`` does not broadcast to the shape of ``input``.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "soft_margin_loss")
    shape = expect_tensor(input, "input", "soft_margin_loss")._data.shape
    expect_fitting(target, shape, "target", "soft_margin_loss")
    return reduced(-logsigmoid(target * input), reduction)


# ---- likelihoods of counts and of measurements ---------------------------------------------------------------------


@autocast("float32")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Flag = None,
    eps: float = 1e-8,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the logarithm of the probability of ``target`` under a Poisson distribution. Shapes: the same for both.

    Args:
        input: the logarithm of the expected count, or without ``log_input`` the count itself.
        full: add log(target!), by Stirling's formula, where ``target`` is above 1.
        eps: added to a count before its logarithm is taken.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "poisson_nll_loss")
    expect_tensor(input, "input", "poisson_nll_loss")
    expect_tensor(target, "target", "poisson_nll_loss")
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        many = where(target > 1, target, 1)
        stirling = many * many.log() - many + 0.5 * (many * (2 * math.pi)).log()
        loss = loss + where(target > 1, stirling, 0.0)
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Minus the logarithm of the density of ``target`` under a normal distribution. Shapes: the same for both.

    Nix and Weigend (1994).

    Args:
        input: the expected value.
        var: the variance: a number, or a tensor of the shape of ``input``, without the last dimension, or with it of
            size 1. Below ``eps`` it counts as ``eps``, which gradients ignore.
        full: add log(2 pi) / 2.

    Raises:
        ValueError: the shape of ``var`` does not fit, or one is negative.
    """
    expect_tensor(input, "input", "gaussian_nll_loss")
    variance = var if isinstance(var, Tensor) else full_like(input.detach(), var)
    if variance.shape != input.shape:
        if variance.shape == input.shape[:-1]:
            variance = variance.unsqueeze(-1)
        elif variance.ndim != input.ndim or [n for n, m in zip(variance.shape, input.shape, strict=True) if n != m] != [
            1
        ]:
            raise ValueError(f"var is of incorrect size: got {list(variance.shape)} for an input {list(input.shape)}")
    plain = variance.detach()
    refuse(plain < 0, error=ValueError, message="var has negative entry/entries")
    variance = variance + where(plain < eps, eps - plain, 0.0)
    loss = 0.5 * (variance.log() + (input - target).square() / variance)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)

"""Losses that want scores, distances or angles apart by a margin."""

from __future__ import annotations

from collections.abc import Callable

from leafgrad.dtypes import int64
from leafgrad.nn.functional.activation import relu
from leafgrad.nn.functional.distance import pairwise_distance
from leafgrad.nn.functional.reduction import Flag, chosen_reduction, reduced
from leafgrad.ops.activation import logsigmoid
from leafgrad.ops.margins import multilabel_margin
from leafgrad.ops.select import where
from leafgrad.tensor.arguments import expect_real, expect_tensor
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.comparison import minimum
from leafgrad.tensor.creation import arange
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _expect_tensors(function: str, **tensors: Tensor) -> None:
    for name, value in tensors.items():
        expect_real(expect_tensor(value, name, function), function)


# ---- of pairs -------------------------------------------------------------------------------------------------------


@autocast("float32")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """A distance where ``target`` is 1, what it lacks of ``margin`` where it is -1. Shapes: the same for both."""
    reduction = chosen_reduction(size_average, reduce, reduction, "hinge_embedding_loss")
    _expect_tensors("hinge_embedding_loss", input=input, target=target)
    near = where(target != -1, input, 0.0)
    far = where(target != 1, (margin - input).clamp(min=0), 0.0)
    return reduced(near + far, reduction)


@autocast("float32")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """What input1 - input2 lacks of ``margin`` where ``target`` is 1, and input2 - input1 where it is -1.

    Raises:
        RuntimeError: the numbers of dimensions differ, or the shapes do not broadcast.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "margin_ranking_loss")
    _expect_tensors("margin_ranking_loss", input1=input1, input2=input2, target=target)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced((-target * (input1 - input2) + float(margin)).clamp(min=0), reduction)


@autocast("float32")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where ``target`` is 1, max(0, cos - margin) where it is -1; cos is that of the angle of two vectors.

    Args:
        input1, input2: (batch, size) or (size,).
        target: (batch,) or ().

    Raises:
        RuntimeError: the shapes do not fit.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "cosine_embedding_loss")
    _expect_tensors("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    if target.ndim > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported, got {target.ndim}D")
    if not input1.ndim == input2.ndim == target.ndim + 1:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    eps = 1e-12
    lengths = ((input1.square().sum(-1) + eps) * (input2.square().sum(-1) + eps)).sqrt()
    cos = (input1 * input2).sum(-1) / lengths
    loss = where(target == 1, 1 - cos, where(target == -1, (cos - margin).clamp(min=0), 0.0))
    return reduced(loss, reduction)


# ---- of triplets ----------------------------------------------------------------------------------------------------


@autocast("float32")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), d the p-norm distance. (..., size) -> (...)

    Balntas et al. (2016).

    Args:
        eps: added to differences.
        swap: take d(positive, negative) where that is less than d(anchor, negative).

    Raises:
        ValueError: ``margin`` is not positive. RuntimeError: the numbers of dimensions differ.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "triplet_margin_loss")

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction, "triplet_margin_loss")


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``triplet_margin_loss`` of any distance, by default ``pairwise_distance``.

    Raises:
        ValueError: ``margin`` is not positive. RuntimeError: the numbers of dimensions differ.
    """
    distance = pairwise_distance if distance_function is None else distance_function
    function = "triplet_margin_with_distance_loss"
    return _triplet(anchor, positive, negative, distance, margin, swap, reduction, function)


def _triplet(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
    function: str,
) -> Tensor:
    for name, t in (("anchor", anchor), ("positive", positive), ("negative", negative)):
        expect_tensor(t, name, function)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if not isinstance(near, Tensor):
        raise TypeError(f"{function}: distance_function: expected it to return a Tensor, got {type(near).__name__}")
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp(min=0), reduction)


# ---- of class scores ------------------------------------------------------------------------------------------------


@autocast("float32")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over the classes of max(0, margin - input[target] + input[class])^p, but the target class itself.

    Args:
        input: (batch, classes) or (classes,).
        target: class numbers, int64. (batch,) or ()
        p: 1 or 2.
        weight: a factor for each target class. (classes,)

    Raises:
        ValueError: another ``p``, or ``weight`` is no vector. RuntimeError: the shapes do not fit, or a target is no
            class.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "multi_margin_loss")
    _expect_tensors("multi_margin_loss", input=input, target=target)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported, got {p}")
    if input.ndim == 1 and target.shape == (1,):
        input = input.unsqueeze(0)
    if input.ndim not in (1, 2) or target.shape != input.shape[:-1]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size {list(input.shape[:-1])}, but got {list(target.shape)}. Input has shape "
            f"{list(input.shape)}."
        )
    classes = input.shape[-1]
    if weight is not None and expect_tensor(weight, "weight", "multi_margin_loss")._data.shape != (classes,):
        if weight.ndim != 1:
            raise ValueError(f"weight must be one-dimensional, expected size [{classes}], got {list(weight.shape)}")
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    at = _class_numbers(target, "multi_margin_loss").unsqueeze(-1)
    short = relu(margin - input.gather(-1, at) + input)
    if p == 2:
        short = short.square()
    if weight is not None:
        short = short * weight[at]
    own = arange(classes, device=input.device) == at
    loss: Tensor = where(own, 0.0, short)
    return reduced(loss.sum(-1) / classes, reduction)


def _class_numbers(target: Tensor, function: str) -> Tensor:
    if target.dtype is not int64:
        raise RuntimeError(
            f"{function}: target: expected class numbers of dtype int64, got {target.dtype}; convert with .long()"
        )
    return target


@autocast("float32")
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
) -> Tensor:
    """Sum over target classes t and others o of max(0, 1 - input[t] + input[o]), over the number of classes.

    Args:
        input: (batch, classes), (classes,) or (), one class.
        target: class numbers, int64, of the same shape; those from the first -1 on do not count.

    Raises:
        RuntimeError: the shapes do not fit, or a target is no class.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "multilabel_margin_loss")
    _expect_tensors("multilabel_margin_loss", input=input, target=target)
    if target.shape != input.shape or input.ndim > 2:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    input, target = (input, target) if input.ndim else (input.unsqueeze(0), target.unsqueeze(0))
    loss: Tensor = multilabel_margin(input, _class_numbers(target, "multilabel_margin_loss"))
    return reduced(loss / input.shape[-1], reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over the classes of the binary cross-entropy of sigmoid(input) and ``target``. (..., classes) -> (...)

    Args:
        weight: a factor for each class. (classes,)

    Raises:
        RuntimeError: ``target`` or ``weight`` has more dimensions than ``input``, or that has none.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "multilabel_soft_margin_loss")
    _expect_tensors("multilabel_soft_margin_loss", input=input, target=target)
    if not input.ndim:
        raise RuntimeError("multilabel_soft_margin_loss: input: expected at least 1 dimension (the classes), got 0")
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    if loss.ndim != input.ndim:  # PyTorch then sums over another dimension
        raise RuntimeError(
            f"multilabel_soft_margin_loss: expected target and weight of at most {input.ndim} dimensions, as input "
            f"{list(input.shape)} has them, got losses of size {list(loss.shape)}"
        )
    return reduced(loss.sum(-1) / input.shape[-1], reduction)

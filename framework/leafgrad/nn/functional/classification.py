"""Losses of class scores: negative log-likelihood and cross-entropy."""

from __future__ import annotations

from leafgrad.dtypes import BY_ARRAY_DTYPE, dtype, float32, float64, int64, of
from leafgrad.nn.functional.linear import linear
from leafgrad.nn.functional.reduction import Flag, chosen_reduction, reduced
from leafgrad.ops import classes
from leafgrad.ops.marks import mark
from leafgrad.ops.select import where
from leafgrad.tensor.arguments import expect_tensor, first_of
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.creation import ones_like
from leafgrad.tensor.reductions import log_softmax
from leafgrad.tensor.tensor import Tensor

__all__ = ["cross_entropy", "linear_cross_entropy", "nll_loss"]

Sizes = tuple[int, ...]
_cross_entropy, _nll_loss = classes.cross_entropy.function, classes.nll_loss.function


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    ignore_index: int = -100,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """-input at the class that ``target`` names. (classes,) and (), or (batch, classes, ...) and (batch, ...)

    Args:
        input: logarithms of probabilities.
        target: class numbers, int64.
        weight: a factor for each class. (classes,)
        ignore_index: a target of this value counts for nothing.
        reduction: "mean" divides by the sum of the weights that counted.

    Raises:
        ValueError, RuntimeError: shapes or dtypes do not fit. IndexError: a target is not a class.
    """
    reduction = chosen_reduction(size_average, reduce, reduction, "nll_loss")
    scores = expect_tensor(input, "input", "nll_loss")._data.shape
    named = expect_tensor(target, "target", "nll_loss")._data.shape
    if named == (1,) and len(scores) == 1:
        target, named = target.reshape(()), ()  # as PyTorch takes it
    dim = _class_dim(scores, named, target.dtype, "nll_loss")
    _check_weight(weight, scores[dim], "nll_loss")
    if weight is None and reduction == "mean" and len(scores) > 1 and scores[dim] and input.dtype in (float32, float64):
        try:
            return _nll_loss(input, target, dim=dim, ignore=ignore_index)
        except IndexError:
            raise _no_class(input, target, dim, ignore_index) from None
    return _nll_in_steps(input, target, weight, ignore_index, reduction, dim)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    ignore_index: int = -100,
    reduce: Flag = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross-entropy of ``softmax(input)`` and ``target``. (classes,), or (batch, classes, ...)

    Args:
        input: logits.
        target: class numbers, int64, of the shape of ``input`` without classes; or probabilities, of its whole shape.
        weight: a factor for each class. (classes,)
        ignore_index: a target class of this value counts for nothing.
        reduction: "mean" divides by the sum of the weights that counted; for probabilities by the number of targets.
        label_smoothing: how much of each target is spread evenly over all classes, in [0, 1].

    Raises:
        ValueError, RuntimeError: shapes or dtypes do not fit, or ``ignore_index`` beside probabilities. IndexError: a
            target is not a class.
    """
    if size_average is not None or reduce is not None:
        reduction = chosen_reduction(size_average, reduce, reduction, "cross_entropy")
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if not (isinstance(input, Tensor) and isinstance(target, Tensor)):
        expect_tensor(input, "input", "cross_entropy")
        expect_tensor(target, "target", "cross_entropy")
    shape = input._data.shape
    probabilities = target._data.shape == shape and len(shape) > 0
    if probabilities and not target.dtype.is_floating_point:
        given = "" if input.dtype.is_floating_point else f", and an input of {input.dtype}, where scores belong"
        expected = "Expected floating point type for target with class probabilities"
        raise RuntimeError(f"{expected}, got {target.dtype}{given}")
    if probabilities and ignore_index >= 0:
        raise RuntimeError(
            f"cross_entropy: ignore_index is for targets that are classes, but got {ignore_index} and class "
            "probabilities; leave it out"
        )
    if probabilities:
        dim = 0 if len(shape) == 1 else 1
    else:
        if len(shape) == 1 and target._data.shape == (1,):
            target = target.reshape(())
        kind = BY_ARRAY_DTYPE.get(target._data.dtype) or of(target._data)
        dim = 0 if len(shape) == 1 else 1
        if kind is not int64 or target._data.shape != shape[:dim] + shape[dim + 1 :] or not shape:
            dim = _class_dim(shape, target._data.shape, kind, "cross_entropy")
    if weight is not None:
        _check_weight(weight, shape[dim], "cross_entropy")
    plain = weight is None and not (probabilities or label_smoothing)
    if plain and reduction == "mean" and len(shape) > 1 and shape[dim]:
        try:
            return _cross_entropy(input, target, dim=dim, ignore=ignore_index)
        except IndexError:
            raise _no_class(input, target, dim, ignore_index) from None
    return _cross_entropy_in_steps(input, target, weight, ignore_index, reduction, label_smoothing, dim)


@autocast("float32")
def _nll_in_steps(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, dim: int
) -> Tensor:
    loss, counted = _picked(input, target, weight, ignore_index, dim)
    out = _over_targets(loss, counted, target, ignore_index, reduction)
    return out if input._node is None else mark(out, "NllLossBackward0", input)


@autocast("float32")
def _cross_entropy_in_steps(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    dim: int,
) -> Tensor:
    count = input._data.shape[dim]
    logarithms = log_softmax(input, dim)
    if target._data.shape == input._data.shape:  # probabilities
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / count
        loss = -(target * _weighted(logarithms, weight, dim)).sum(dim)
        return reduced(loss, reduction)
    loss, counted = _picked(logarithms, target, weight, ignore_index, dim)
    if label_smoothing:
        even = -_weighted(logarithms, weight, dim).sum(dim)
        even = where(target != ignore_index, even, 0.0)
        loss = loss * (1 - label_smoothing) + even * (label_smoothing / count)
    return _over_targets(loss, counted, target, ignore_index, reduction)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross-entropy of ``softmax(linear(input, linear_weight))`` and ``target``.

    Args:
        input: (in,) or (batch, in).
        linear_weight: (classes, in), or (classes, ..., in) for a target of each place in (...).
        target: as in ``cross_entropy``. The other arguments are, too.
        linear_bias: (classes,) or (classes, ...).
        weight, ignore_index, label_smoothing: as in ``cross_entropy``.

    Raises:
        RuntimeError: ``ignore_index`` beside probabilities. As ``linear`` and ``cross_entropy``.
    """
    if expect_tensor(linear_weight, "linear_weight", "linear_cross_entropy").ndim < 2:
        raise RuntimeError(
            f"linear_cross_entropy: linear_weight: expected (classes, ..., in), got {linear_weight.ndim} dimensions"
        )
    expect_tensor(target, "target", "linear_cross_entropy")
    *classes_and_places, size = linear_weight.shape
    if expect_tensor(input, "input", "linear_cross_entropy").ndim not in ((1, 2) if linear_weight.ndim == 2 else (2,)):
        raise RuntimeError(
            "linear_cross_entropy: input: expected (in,) or (batch, in), the latter where each place has a target, "
            f"got {list(input.shape)} with linear_weight {list(linear_weight.shape)}"
        )
    bias = None
    if linear_bias is not None:
        given = list(expect_tensor(linear_bias, "linear_bias", "linear_cross_entropy").shape)
        if given != classes_and_places:
            raise RuntimeError(f"linear_cross_entropy: linear_bias: expected size {classes_and_places}, got {given}")
        bias = linear_bias.reshape(-1)
    logits = linear(input, linear_weight.reshape(-1, size), bias)
    logits = logits.reshape(*input.shape[:-1], *classes_and_places)
    if ignore_index is None:
        ignore_index = -100
    elif target.shape == logits.shape:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    return cross_entropy(
        logits, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    )


def _weighted(x: Tensor, weight: Tensor | None, dim: int) -> Tensor:
    if weight is None:
        return x
    return x * weight.reshape((-1,) + (1,) * (x.ndim - dim - 1))


def _class_dim(scores: Sizes, named: Sizes, kind: dtype, function: str) -> int:
    """The dimension of the classes, by the sizes of ``input`` and ``target``, and the dtype of targets."""
    if not scores:
        raise ValueError(f"{function}: input: expected at least 1 dimension (the classes), got a 0-d tensor")
    dim = 0 if len(scores) == 1 else 1
    expected = scores[:dim] + scores[dim + 1 :]
    if named != expected:
        if len(scores) > 1 and named and scores[0] != named[0]:
            raise ValueError(f"Expected input batch_size ({scores[0]}) to match target batch_size ({named[0]}).")
        raise RuntimeError(
            f"{function}: target: expected size {list(expected)} for an input of size {list(scores)}, got {list(named)}"
            + ("; the input, scores of each class, comes first" if kind.is_floating_point else "")
        )
    if kind is not int64:
        raise RuntimeError(
            f"{function}: target: expected class numbers of dtype int64, got {kind}; convert with .long()"
        )
    return dim


def _check_weight(weight: Tensor | None, classes: int, function: str) -> None:
    if weight is not None and expect_tensor(weight, "weight", function)._data.shape != (classes,):
        raise RuntimeError(
            f"{function}: weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {list(weight.shape)}"
        )


def _no_class(input: Tensor, target: Tensor, dim: int, ignore_index: int) -> IndexError:
    """The error of a target that is no class, which an op calls an index out of range."""
    count = input.shape[dim]
    wrong = first_of(target, lambda n: n != ignore_index and not 0 <= n < count)
    return IndexError(
        f"Target{wrong} is out of bounds: expected classes from 0 to {count - 1}, or ignore_index={ignore_index}"
    )


def _over_targets(loss: Tensor, counted: Tensor, target: Tensor, ignore_index: int, reduction: str) -> Tensor:
    """The losses reduced; each for itself they are 0 where ignored, and not -0."""
    if reduction == "mean":
        return loss.sum() / counted.sum()
    return reduced(where(target == ignore_index, 0.0, loss) if reduction == "none" else loss, reduction)


def _picked(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, dim: int) -> tuple[Tensor, Tensor]:
    """-input at the target classes times their weights, and these weights; both 0 where ignored."""
    try:
        loss = -classes.pick(_weighted(input, weight, dim), target, dim=dim, ignore=ignore_index)
    except IndexError:
        if input.shape[dim] or (target != ignore_index).any():
            raise _no_class(input, target, dim, ignore_index) from None
        return (none := input.sum(dim)), none  # without classes there is nothing to ignore
    if weight is None:
        return loss, (target != ignore_index).to(input.dtype)
    return loss, classes.pick(_weighted(ones_like(input), weight, dim), target, dim=dim, ignore=ignore_index)

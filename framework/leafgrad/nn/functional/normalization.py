"""Normalisation over the batch, over features, over channels, and to unit length."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from leafgrad import dtypes, modes
from leafgrad.dtypes import FLOATING
from leafgrad.ops.elementwise import add
from leafgrad.ops.marks import mark, shown_as
from leafgrad.ops.normalize import affine, standardize
from leafgrad.ops.reduce import mean, var
from leafgrad.ops.traits import ALL
from leafgrad.tensor.arguments import expect_differentiable, expect_floating, expect_real, expect_tensor
from leafgrad.tensor.creation import zeros
from leafgrad.tensor.formats import channels_last, follow, keeps_channels_last
from leafgrad.tensor.inplace import update
from leafgrad.tensor.joining import cat
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

Sizes = tuple[int, ...]
_mean, _var, _standardize, _times_plus = mean.function, var.function, standardize.function, affine.function

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "rms_norm"]


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is None:
        return x if bias is None else x + bias
    return x * weight if bias is None else _times_plus(x, weight, bias)


def _affine_channels(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """x times a weight and plus a bias of each channel. (batch, channels, ...), (channels,), (channels,)"""
    after = (1,) * (len(x._data.shape) - 2)
    if after:
        weight, bias = (None if t is None else reshaped(t, (math.prod(t._data.shape), *after)) for t in (weight, bias))
    return _affine(x, weight, bias)


def _check_channels(input: Tensor, function: str, **per_channel: Tensor | None) -> None:
    """A RuntimeError unless what there is of each channel is a vector with one element for each."""
    channels = input._data.shape[1]
    for name, value in per_channel.items():
        if value is not None and value._data.shape != (channels,):
            raise RuntimeError(
                f"{function}: {name} should contain {channels} elements not {value.numel()}: expected size "
                f"[{channels}], one for each channel of input, its dimension 1, got {list(value.shape)}"
            )


def _vector(value: Tensor | None) -> Tensor | None:
    return value if value is None or len(value._data.shape) == 1 else value.reshape(-1)


def _check_both(function: str, running_mean: Tensor | None, running_var: Tensor | None) -> None:
    if (running_mean is None) != (running_var is None):
        given = "running_var" if running_mean is None else "running_mean"
        raise ValueError(
            f"{function}: running_mean and running_var must either both be None or neither be None, got {given} alone"
        )


@functools.lru_cache(maxsize=256)
def _last(ndim: int, normalized_shape: Sizes, weight: Sizes | None, bias: Sizes | None = None) -> Sizes:
    """The last of ``ndim`` dimensions that are normalized; a RuntimeError unless parameters are as expected."""
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given != normalized_shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(given)} and "
                f"normalized_shape = {list(normalized_shape)}"
            )
    return ALL[ndim][ndim - len(normalized_shape) :]


def _expect_last(shape: Sizes, normalized_shape: Sizes) -> None:
    """A RuntimeError unless an input of ``shape`` has these last dimensions."""
    if not normalized_shape or shape[-len(normalized_shape) :] != normalized_shape:
        sizes = "".join(f", {n}" for n in normalized_shape)
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [*{sizes}], but got input of "
            f"size {list(shape)}"
        )


# ---- over the batch, and over each element of it -------------------------------------------------------------------


@keeps_channels_last
@shown_as("NativeBatchNormBackward0", "input", "weight", "bias")
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel shifted and scaled to mean 0 and variance 1. (batch, channels, ...) -> the same

    Ioffe and Szegedy (2015). In training the mean and variance are the batch's, and the running ones move towards
    them (with the unbiased variance) by ``momentum``, in place; else the running ones are used.

    Args:
        weight, bias: factor and summand of each channel. (channels,)

    Raises:
        ValueError: training with one value per channel; one running statistic of two; an ``eps`` that is negative, or
            in training 0. RuntimeError: no running statistics outside training.
    """
    if len(expect_floating(input, "batch_norm", NotImplementedError)._data.shape) < 2:
        raise ValueError(f"batch_norm: input: expected at least 2 dimensions, (batch, channels, ...), got {input.ndim}")
    weight, bias = _vector(weight), _vector(bias)  # PyTorch counts their elements alone
    _check_channels(input, "batch_norm", running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if not eps >= 0 or (training and not eps):
        expected = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm: eps must be {expected}, got {eps}")
    if training:
        _check_both("batch_norm", running_mean, running_var)
        sizes = input._data.shape
        if (count := sizes[0] * math.prod(sizes[2:])) == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
        if not count:
            return _affine_channels(input, weight, bias)
        dims = (0, *range(2, len(sizes)))
        if running_mean is not None and running_var is not None:
            with modes.no_grad():
                _move(running_mean, momentum, _mean(input, dim=dims))
                _move(running_var, momentum, _var(input, dim=dims))
        return _affine_channels(_standardize(input, dim=dims, eps=eps), weight, bias)
    if running_mean is None or running_var is None:
        missing = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"batch_norm: {missing} must be defined in evaluation mode; pass both, or training=True")
    shape = (-1,) + (1,) * (input.ndim - 2)
    scale = (running_var + eps).rsqrt()
    scale = scale if weight is None else scale * weight
    out = _affine_channels(input - running_mean.reshape(shape), scale, bias)
    return follow(out, channels_last(input))


def _move(running: Tensor, momentum: float | Tensor, value: Tensor) -> None:
    """Move a running statistic towards a value, in place; where nothing is recorded."""
    update(running, add, (value - running) * momentum)


@shown_as("NativeBatchNormBackward0", "input", "weight", "bias")
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each element shifted and scaled to mean 0 and variance 1. (batch, channels, ...) -> the same

    Ulyanov, Vedaldi and Lempitsky (2016). The running statistics, if any, move towards the averages over the batch;
    without ``use_input_stats`` they are used.

    Raises:
        ValueError: one value per channel, fewer than 3 dimensions, or one running statistic of two.
        RuntimeError: no running statistics, and not ``use_input_stats``.
    """
    if expect_floating(input, "instance_norm", NotImplementedError).ndim < 3:
        raise ValueError(
            f"instance_norm: input: expected at least 3 dimensions, (batch, channels, ...), got {input.ndim}"
        )
    _check_channels(
        input, "instance_norm", running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats=False")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    _check_both("instance_norm", running_mean, running_var)
    dims = tuple(range(2, input.ndim))
    count = math.prod(input.shape[2:])
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if running_mean is not None and running_var is not None:
        with modes.no_grad():
            _move(running_mean, momentum, input.mean((0, *dims)))
            _move(running_var, momentum, input.var(dims).mean(0))
    return _affine_channels(_standardize(input, dim=dims, eps=eps), weight, bias)


@keeps_channels_last
@shown_as("NativeGroupNormBackward0", "input", "weight", "bias")
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Each group of channels of each element shifted and scaled to mean 0 and variance 1. (batch, channels, ...)

    Wu and He (2018).

    Args:
        num_groups: into how many groups the channels are divided.
        weight, bias: factor and summand of each channel. (channels,)

    Raises:
        RuntimeError: the channels cannot be divided like this. ValueError: one element, with one value per group.
    """
    if expect_floating(input, "group_norm", NotImplementedError).ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}: (batch, channels, ...)"
        )
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    batch, channels, *others = shape = input._data.shape
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(shape)} and num_groups={num_groups}"
        )
    if batch * (channels // num_groups) * math.prod(others) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(shape)}")
    _check_channels(input, "group_norm", weight=weight, bias=bias)
    groups = reshaped(input, (batch, num_groups, channels // num_groups * math.prod(others)))
    return _affine_channels(alone(reshaped(_standardize(groups, dim=(2,), eps=eps), shape)), weight, bias)


# ---- over features -------------------------------------------------------------------------------------------------


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The last dimensions shifted and scaled to mean 0 and variance 1. (..., *normalized_shape) -> the same

    Ba, Kiros and Hinton (2016).

    Raises:
        RuntimeError: the last dimensions of ``input`` are not ``normalized_shape``.
    """
    if not (isinstance(input, Tensor) and input._data.dtype in FLOATING):
        expect_floating(input, "layer_norm", NotImplementedError)
    given = None if weight is None else weight._data.shape, None if bias is None else bias._data.shape
    shape, last = input._data.shape, tuple(normalized_shape)
    if not last or shape[-len(last) :] != last:
        _expect_last(shape, last)
    dims = _last(len(shape), last, *given)
    out, kind = _standardize(input, dim=dims, eps=eps), input._data.dtype
    if weight is not None and bias is not None and kind == weight._data.dtype and kind == bias._data.dtype:
        return _times_plus(out, weight, bias)  # which is shown as layer norm
    return mark(_affine(out, weight, bias), "NativeLayerNormBackward0", input, weight, bias)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The last dimensions divided by the root of their mean square. (..., *normalized_shape) -> the same

    Zhang and Sennrich (2019).

    Args:
        eps: added to the mean square; that of the dtype (float32 for float16 and bfloat16) by default.

    Raises:
        RuntimeError: the last dimensions of ``input`` are not ``normalized_shape``.
    """
    expect_differentiable(input, "rms_norm", NotImplementedError)
    _expect_last(input._data.shape, tuple(normalized_shape))
    dims = _last(input._data.ndim, tuple(normalized_shape), None if weight is None else weight._data.shape)
    kind = dtypes.float32 if input.dtype in dtypes.REDUCED else input.dtype.to_real()
    small = dtypes.finfo(kind).eps if eps is None else eps
    if input.dtype.is_complex:  # its squares, not those of its magnitude
        return _affine(input * (input.square().mean(dims, keepdim=True) + small).rsqrt(), weight, None)
    return _affine(_standardize(input, dim=dims, eps=small, centered=False), weight, None)


# ---- over neighbouring channels, and to unit length ----------------------------------------------------------------


@keeps_channels_last
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input / (k + alpha * m)**beta, m the mean square of ``size`` neighbouring channels. (batch, channels, ...)

    Krizhevsky, Sutskever and Hinton (2012). Beyond the first and the last channel there are zeros.

    Raises:
        ValueError: fewer than 3 dimensions. RuntimeError: ``size`` is not positive.
    """
    if expect_real(expect_tensor(input, "input", "local_response_norm"), "local_response_norm").ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)")
    if size < 1:
        raise RuntimeError(f"local_response_norm: size: expected a number greater than zero, got {size}")
    channels = input.shape[1]
    squares = input * input
    if size > 1:
        others = input.shape[2:]
        before, after = (
            zeros(input.shape[0], n, *others, dtype=input.dtype, device=input.device)
            for n in (size // 2, (size - 1) // 2)
        )
        padded = cat([before, squares, after], 1)
        squares = padded.narrow(1, 0, channels)
        for start in range(1, size):
            squares = squares + padded.narrow(1, start, channels)
    return input / (squares * (alpha / size) + k).pow(beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """``input`` divided by its p-norm along ``dim``, which counts as at least ``eps``. (...) -> (...)"""
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)

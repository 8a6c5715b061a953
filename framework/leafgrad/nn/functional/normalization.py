"""Normalisation over the batch, over features, and to unit length."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leafgrad import modes
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.tensor import Tensor

__all__ = ["batch_norm", "cosine_similarity", "layer_norm", "normalize"]


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
        ValueError: training with one value per channel. RuntimeError: no running statistics outside training.
    """
    if expect_tensor(input, "input", "batch_norm").ndim < 2:
        raise ValueError(f"batch_norm: input: expected at least 2 dimensions, (batch, channels, ...), got {input.ndim}")
    shape = (1, input.shape[1]) + (1,) * (input.ndim - 2)
    if training:
        count = input.shape[0] * math.prod(input.shape[2:])
        if count <= 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
        dims = tuple(i for i in range(input.ndim) if i != 1)
        mean = input.mean(dims, keepdim=True)
        centered = input - mean
        var = (centered * centered).mean(dims, keepdim=True)
        _move(running_mean, mean, momentum)
        _move(running_var, var.detach() * (count / (count - 1)), momentum)
    elif running_mean is None or running_var is None:
        raise RuntimeError("batch_norm: expected running_mean and running_var when training=False, got None")
    else:
        centered = input - running_mean.reshape(shape)
        var = running_var.reshape(shape)
    return _affine(
        centered * (var + eps).rsqrt(),
        None if weight is None else weight.reshape(shape),
        None if bias is None else bias.reshape(shape),
    )


def _move(running: Tensor | None, value: Tensor, momentum: float | Tensor) -> None:
    """Move a running statistic towards a value, in place."""
    if running is not None:
        with modes.no_grad():
            running.add_((value.reshape(running.shape) - running) * momentum)


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is not None:
        x = x * weight
    return x if bias is None else x + bias


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
    expect_tensor(input, "input", "layer_norm")
    expected = tuple(normalized_shape)
    if not expected or tuple(input.shape[-len(expected) :]) != expected:
        sizes = "".join(f", {n}" for n in expected)
        raise RuntimeError(
            f"Given normalized_shape={list(expected)}, expected input with shape [*{sizes}], but got input of size "
            f"{list(input.shape)}"
        )
    dims = tuple(range(input.ndim - len(expected), input.ndim))
    centered = input - input.mean(dims, keepdim=True)
    var = (centered * centered).mean(dims, keepdim=True)
    return _affine(centered * (var + eps).rsqrt(), weight, bias)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """``input`` divided by its p-norm along ``dim``, which counts as at least ``eps``. (...) -> (...)"""
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along ``dim``, which is reduced. Norms count as at least ``eps``."""
    lengths = x1.norm(2, dim).clamp(min=eps) * x2.norm(2, dim).clamp(min=eps)
    return (x1 * x2).sum(dim) / lengths

"""Layers that normalise over the batch or over features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad.dtypes import int64
from leafgrad.nn import functional as F, init
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.creation import empty, ones, zeros
from leafgrad.tensor.tensor import Tensor

__all__ = ["BatchNorm1d", "LayerNorm"]


def _reset(module: Any) -> None:
    """Make factors 1 and summands 0."""
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)


class BatchNorm1d(Module):
    """Shifts and scales each channel to mean 0 and variance 1 over the batch. (N, C) or (N, C, L) -> the same

    Ioffe and Szegedy (2015). In evaluation mode running averages take the place of the batch's mean and variance.

    Args:
        num_features: the number of channels, C.
        eps: added to the variance.
        momentum: how far the running averages move towards each batch's; None averages over all batches alike.
        affine: learn a factor (``weight``) and a summand (``bias``) for each channel.
        bias: False leaves the summand out.
        track_running_stats: False keeps no running averages and uses the batch's own in evaluation mode too.

    Attributes:
        running_mean, running_var: (C,). The variance is the unbiased one.
        num_batches_tracked: how many batches they have seen.
    """

    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        where = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(empty(num_features, **where)) if wanted else None)
        self.register_buffer("running_mean", zeros(num_features, **where) if track_running_stats else None)
        self.register_buffer("running_var", ones(num_features, **where) if track_running_stats else None)
        count = zeros((), dtype=int64, device=device) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget all batches."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget all batches, and make factors 1 and summands 0."""
        self.reset_running_stats()
        _reset(self)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C) or (N, C, L) -> the same"""
        if expect_tensor(input, "input", "BatchNorm1d").ndim not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.ndim}D input)")
        if input.shape[1] != self.num_features:
            raise RuntimeError(f"input: expected {self.num_features} channels in dimension 1, got {input.shape[1]}")
        factor: float | Tensor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / self.num_batches_tracked
        return F.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            factor,
            self.eps,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class LayerNorm(Module):
    """Shifts and scales the last dimensions of each element to mean 0 and variance 1. (..., *shape) -> the same

    Ba, Kiros and Hinton (2016).

    Args:
        normalized_shape: the sizes of the last dimensions; an int for one.
        eps: added to the variance.
        elementwise_affine: learn a factor (``weight``) and a summand (``bias``) of this shape.
        bias: False leaves the summand out.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            parameter = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make factors 1 and summands 0."""
        _reset(self)

    def forward(self, input: Tensor) -> Tensor:
        """(..., *normalized_shape) -> the same"""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )

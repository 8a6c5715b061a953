"""Layers that normalise over features, over groups of channels, and over neighbouring channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad.nn import functional as F, init
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.ops.scalars import as_ints
from leafgrad.tensor.creation import empty
from leafgrad.tensor.tensor import Tensor

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class Affine(Module):
    """Base of what may learn a factor (``weight``) and a summand (``bias``). They start as 1 and 0."""

    weight: Parameter | None
    bias: Parameter | None

    def _learn(self, shape: tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make factors 1 and summands 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


def sizes(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(as_ints(normalized_shape))


class LayerNorm(Affine):
    """Shifts and scales the last dimensions of each element to mean 0 and variance 1. (..., *shape) -> the same

    Ba, Kiros and Hinton (2016).

    Args:
        normalized_shape: the sizes of the last dimensions; an int for one.
        eps: added to the variance.
        elementwise_affine: learn a factor (``weight``) and a summand (``bias``) of this shape.
        bias: False leaves the summand out.
    """

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
        self.normalized_shape = sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._learn(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """(..., *normalized_shape) -> the same"""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Affine):
    """Divides the last dimensions of each element by the root of their mean square. (..., *shape) -> the same

    Zhang and Sennrich (2019).

    Args:
        normalized_shape: the sizes of the last dimensions; an int for one.
        eps: added to the mean square; that of the dtype by default.
        elementwise_affine: learn a factor (``weight``) of this shape.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make factors 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """(..., *normalized_shape) -> the same"""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Affine):
    """Shifts and scales each group of channels to mean 0 and variance 1. (batch, channels, ...) -> the same

    Wu and He (2018).

    Args:
        num_groups: into how many groups the channels are divided.
        num_channels: the number of channels, a multiple of it.
        eps: added to the variance.
        affine: learn a factor (``weight``) and a summand (``bias``) for each channel.
        bias: False leaves the summand out.

    Raises:
        ValueError: ``num_channels`` is no multiple of ``num_groups``.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups <= 0 or num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._learn((num_channels,), affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """(batch, num_channels, ...) -> the same"""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Divides by the mean square of neighbouring channels. (batch, channels, ...) -> the same

    See ``functional.local_response_norm``.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """(batch, channels, ...) -> the same"""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"

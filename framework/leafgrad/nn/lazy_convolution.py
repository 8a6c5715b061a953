"""Convolutions that learn the number of their input channels from the first call."""

from __future__ import annotations

from typing import Any

from leafgrad.nn import init
from leafgrad.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvNd,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    TransposedConvolution,
)
from leafgrad.nn.functional.windows import Size
from leafgrad.nn.lazy import LazyModuleMixin
from leafgrad.nn.parameter import UninitializedParameter, UninitializedTensor
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]


class LazyChannels(LazyModuleMixin, ConvNd):
    """Base: a convolution whose ``in_channels`` is the number of channels of its first input."""

    def _wait(self, device: Any, dtype: Any) -> None:
        for name in [name for name, p in self._parameters.items() if p is not None]:
            setattr(self, name, UninitializedParameter(device=device, dtype=dtype))

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Make ``weight`` and ``bias`` for an input like this, unless they were loaded."""
        n, name = self.dims, type(self).__name__
        if expect_tensor(input, "input", name).ndim not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
                f"{list(input.shape)}"
            )
        waiting = self.has_uninitialized_params()
        self.in_channels = channels = input.shape[-n - 1]
        if channels % self.groups:
            raise ValueError(f"{name}: in_channels must be divisible by groups, got {channels} and {self.groups}")
        first, second = (channels, self.out_channels) if self.transposed else (self.out_channels, channels)
        if isinstance(self.weight, UninitializedTensor):
            self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if isinstance(self.bias, UninitializedTensor):
            self.bias.materialize((self.out_channels,))
        if waiting:
            self.reset_parameters()


class LazyConvolution(LazyChannels):
    """Base of those that are not transposed."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        with init.skipped():
            ConvNd.__init__(self, 0, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode)
        self._wait(device, dtype)


class LazyTransposedConvolution(LazyChannels, TransposedConvolution):
    """Base of those that are."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = kernel_size, stride, padding, output_padding
        with init.skipped():
            TransposedConvolution.__init__(self, 0, out_channels, *sizes, groups, bias, dilation, padding_mode)
        self._wait(device, dtype)


class LazyConv1d(LazyConvolution, Conv1d):
    """A Conv1d whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = Conv1d


class LazyConv2d(LazyConvolution, Conv2d):
    """A Conv2d whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = Conv2d


class LazyConv3d(LazyConvolution, Conv3d):
    """A Conv3d whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(LazyTransposedConvolution, ConvTranspose1d):
    """A ConvTranspose1d whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(LazyTransposedConvolution, ConvTranspose2d):
    """A ConvTranspose2d whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(LazyTransposedConvolution, ConvTranspose3d):
    """A ConvTranspose3d whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = ConvTranspose3d

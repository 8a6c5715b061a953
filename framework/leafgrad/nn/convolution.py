"""Convolution layers, their transposes, and layers that take windows out and add them up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad.nn import functional as F, init
from leafgrad.nn.functional.windows import Size, Sizes, batched, per_dim
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.ops.geometry import window_span
from leafgrad.tensor.arguments import integer, shape
from leafgrad.tensor.creation import empty
from leafgrad.tensor.tensor import Tensor

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Fold", "Unfold"]

MODES = ("zeros", "reflect", "replicate", "circular")


class ConvNd(Module):
    """Base of the convolution layers. Weight and bias start uniform over ±1 / sqrt(inputs of each output).

    Args:
        kernel_size, stride, dilation: an int, or one for each dimension.
        padding: likewise, on both sides; or ``"valid"`` for none, ``"same"`` for a result as large as the input.
        groups: parts of the channels of input and output; each part sees its like alone.
        bias: False leaves the bias out.
        padding_mode: what the padding holds: ``"zeros"``, or what ``functional.pad`` calls ``"reflect"``,
            ``"replicate"`` and ``"circular"``.
        device, dtype: of the parameters; the defaults if None.
    """

    weight: Parameter
    bias: Parameter | None
    function: Callable[..., Tensor]
    dims = 0
    transposed = False

    def __init__(
        self,
        in_channels: int,
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
        super().__init__()
        n, name = self.dims, type(self).__name__
        _check_channels(name, in_channels, out_channels, groups)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_dim(kernel_size, n, "kernel_size", name)
        self.stride = per_dim(stride, n, "stride", name)
        self.padding = padding if isinstance(padding, str) else per_dim(padding, n, "padding", name)
        self.dilation = per_dim(dilation, n, "dilation", name)
        self.output_padding = (0,) * n
        self.groups = groups
        self.padding_mode = padding_mode
        _check_padding(name, self.padding, self.stride, padding_mode)
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        size = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(empty(size, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        inputs = self.weight.shape[1] * math.prod(self.kernel_size)
        if self.bias is not None and inputs:
            init.uniform_(self.bias, -1 / math.sqrt(inputs), 1 / math.sqrt(inputs))

    def forward(self, input: Tensor) -> Tensor:
        """(n, in_channels, ...) or (in_channels, ...) -> (n, out_channels, ...) or (out_channels, ...)"""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The same with other parameters, which classes that derive them from the layer's call."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._margins(), self.padding_mode), 0
        return self.function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def _margins(self) -> Sizes:
        """``padding`` as ``F.pad`` takes it."""
        pairs = [(p, p) for p in self.padding] if isinstance(self.padding, tuple) else [(0, 0)] * self.dims
        if self.padding == "same":
            reach = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            pairs = [(r // 2, r - r // 2) for r in reach]
        return tuple(margin for pair in reversed(pairs) for margin in pair)

    def extra_repr(self) -> str:
        zeros, ones = (0,) * self.dims, (1,) * self.dims
        usual = {"padding": zeros, "dilation": ones, "output_padding": zeros, "groups": 1}
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        parts += [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _check_channels(name: str, in_channels: int, out_channels: int, groups: int) -> None:
    if integer(groups, "groups", name) <= 0:
        raise ValueError(f"{name}: groups must be a positive integer, got {groups}")
    for which, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        if integer(channels, which, name) % groups:
            raise ValueError(f"{name}: {which} must be divisible by groups, got {channels} and {groups}")


def _check_padding(name: str, padding: Sizes | str, stride: Sizes, mode: str) -> None:
    if isinstance(padding, str):
        if padding not in ("valid", "same"):
            raise ValueError(f"{name}: Invalid padding string {padding!r}, should be one of 'valid', 'same'")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError(f"{name}: padding='same' is not supported for strided convolutions, got stride {stride}")
    if mode not in MODES:
        raise ValueError(f"{name}: padding_mode must be one of {', '.join(MODES)}, but got padding_mode={mode!r}")


class Conv1d(ConvNd):
    """The product of each window of the input with each kernel, plus a bias: ``functional.conv1d``, see ``Conv2d``.

    (n, in_channels, l) or (in_channels, l) -> (n, out_channels, m) or (out_channels, m)
    """

    dims = 1
    function = staticmethod(F.conv1d)


class Conv2d(ConvNd):
    """The product of each window of the input with each kernel, plus a bias: ``functional.conv2d``.

    (n, in_channels, h, w) or (in_channels, h, w) -> (n, out_channels, h', w') or (out_channels, h', w')

    Attributes:
        weight: (out_channels, in_channels / groups, *kernel_size).
        bias: (out_channels,), or None.

    Raises:
        ValueError: groups that do not divide the channels, an unknown padding.
    """

    dims = 2
    function = staticmethod(F.conv2d)


class Conv3d(ConvNd):
    """The product of each window of the input with each kernel, plus a bias: ``functional.conv3d``, see ``Conv2d``.

    (n, in_channels, d, h, w) or (in_channels, d, h, w) -> (n, out_channels, d', h', w') or (out_channels, d', h', w')
    """

    dims = 3
    function = staticmethod(F.conv3d)


# ---- transposes -----------------------------------------------------------------------------------------------------


class TransposedConvolution(ConvNd):
    """Base of the transposes of convolution layers.

    Args:
        kernel_size, stride, padding, dilation, groups, bias: of that ``Conv2d``, as there.
        output_padding: how much larger the output is on one side; less than ``stride`` or ``dilation``.
        padding_mode: ``"zeros"``.
        device, dtype: of the parameters; the defaults if None.
    """

    transposed = True

    def __init__(
        self,
        in_channels: int,
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
        name = type(self).__name__
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {name}, got {padding_mode!r}')
        margins, extra = (
            per_dim(sizes, self.dims, which, name)
            for sizes, which in ((padding, "padding"), (output_padding, "output_padding"))
        )
        super().__init__(
            *(in_channels, out_channels, kernel_size, stride, margins, dilation, groups, bias, padding_mode),
            device=device,
            dtype=dtype,
        )
        self.output_padding = extra

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """(n, in_channels, ...) or (in_channels, ...) -> (n, out_channels, ...) or (out_channels, ...)

        Args:
            output_size: takes the place of ``output_padding``: the sizes of the output, with or without the leading
                dimensions.
        """
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return self.function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _extra(self, input: Tensor, sizes: Sequence[int]) -> Sizes:
        """The output padding that leads to an output of ``sizes``."""
        n, name = self.dims, type(self).__name__
        batched(input, n, name)
        output_size = shape((sizes,), name, "output_size")
        if len(output_size) == input.ndim:
            output_size = output_size[-n:]
        if len(output_size) != n:
            raise ValueError(
                f"{name}: for {input.ndim}D input, output_size must have {n} or {input.ndim} elements "
                f"(got {len(output_size)})"
            )
        assert isinstance(self.padding, tuple)
        removed = [2 * p for p in self.padding]
        least = tuple(map(window_span, input.shape[-n:], self.kernel_size, self.stride, removed, self.dilation))
        most = tuple(m + s - 1 for m, s in zip(least, self.stride, strict=True))
        if any(not a <= m <= b for a, m, b in zip(least, output_size, most, strict=True)):
            raise ValueError(
                f"{name}: requested an output size of {output_size}, but valid sizes range from {list(least)} to "
                f"{list(most)} (for an input of {list(input.shape[-n:])})"
            )
        return tuple(m - a for m, a in zip(output_size, least, strict=True))


class ConvTranspose1d(TransposedConvolution):
    """The gradient of a ``Conv1d`` as a layer: ``functional.conv_transpose1d``, see ``ConvTranspose2d``.

    (n, in_channels, l) or (in_channels, l) -> (n, out_channels, m) or (out_channels, m)
    """

    dims = 1
    function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(TransposedConvolution):
    """The gradient of a ``Conv2d`` as a layer: ``functional.conv_transpose2d``.

    (n, in_channels, h, w) or (in_channels, h, w) -> (n, out_channels, h', w') or (out_channels, h', w')

    Attributes:
        weight: (in_channels, out_channels / groups, *kernel_size).
        bias: (out_channels,), or None.

    Raises:
        ValueError: groups that do not divide the channels, another padding mode.
    """

    dims = 2
    function = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(TransposedConvolution):
    """The gradient of a ``Conv3d`` as a layer: ``functional.conv_transpose3d``, see ``ConvTranspose2d``.

    (n, in_channels, d, h, w) or (in_channels, d, h, w) -> (n, out_channels, d', h', w') or (out_channels, d', h', w')
    """

    dims = 3
    function = staticmethod(F.conv_transpose3d)


# ---- windows --------------------------------------------------------------------------------------------------------


class Unfold(Module):
    """The elements of all windows, those of one in a column: ``functional.unfold``. (n, c, h, w) -> (n, c k, m)

    Args:
        padding: zeros at either end.
    """

    def __init__(self, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """(n, c, h, w) or (c, h, w) -> (n, c * kernel, windows) or (c * kernel, windows)"""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """Columns as ``Unfold`` makes them, added up where they came from: ``functional.fold``.

    Args:
        padding: zeros at either end.
    """

    def __init__(
        self, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """(n, c * kernel, windows) or (c * kernel, windows) -> (n, c, *output_size) or (c, *output_size)"""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )

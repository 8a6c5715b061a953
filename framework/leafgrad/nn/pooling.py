"""Pooling layers: the largest, the mean or the p-norm of windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leafgrad.nn import functional as F
from leafgrad.nn.functional.windows import Size, Wanted, per_dim
from leafgrad.nn.module import Module
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


# ---- the largest ----------------------------------------------------------------------------------------------------


class MaxPool(Module):
    """Base of the layers that take the largest element of each window.

    Args:
        stride: from one window to the next; by default ``kernel_size``.
        padding: on both sides, at most half a window. Padding never wins.
        dilation: from one element of a window to the next.
        return_indices: also return where each was found, for ``MaxUnpool2d`` and its like.
        ceil_mode: also count a window that sticks out at the end.
    """

    function: Callable[..., Any]

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """(n, c, ...) or (c, ...) -> (n, c, ...) or (c, ...); with ``return_indices`` twice that"""
        return self.function(
            *(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(MaxPool):
    """The largest element of each window: ``functional.max_pool1d``. (n, c, l) or (c, l) -> (n, c, m) or (c, m)"""

    function = staticmethod(F.max_pool1d)


class MaxPool2d(MaxPool):
    """The largest element of each window: ``functional.max_pool2d``. (n, c, h, w) or (c, h, w) -> …"""

    function = staticmethod(F.max_pool2d)


class MaxPool3d(MaxPool):
    """The largest element of each window: ``functional.max_pool3d``. (n, c, d, h, w) or (c, d, h, w) -> …"""

    function = staticmethod(F.max_pool3d)


class MaxUnpool(Module):
    """Base of the layers that put largest elements back where they were found, among zeros."""

    function: Callable[..., Tensor]
    dims = 0

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        super().__init__()
        n, name = self.dims, type(self).__name__
        self.kernel_size = per_dim(kernel_size, n, "kernel_size", name)
        self.stride = self.kernel_size if stride is None else per_dim(stride, n, "stride", name)
        self.padding = per_dim(padding, n, "padding", name)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """(n, c, ...) or (c, ...), and indices of that size -> (n, c, ...) or (c, ...)"""
        return self.function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(MaxUnpool):
    """The elements that ``MaxPool1d`` found, back in their places: ``functional.max_unpool1d``."""

    dims = 1
    function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(MaxUnpool):
    """The elements that ``MaxPool2d`` found, back in their places: ``functional.max_unpool2d``."""

    dims = 2
    function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(MaxUnpool):
    """The elements that ``MaxPool3d`` found, back in their places: ``functional.max_unpool3d``."""

    dims = 3
    function = staticmethod(F.max_unpool3d)


# ---- the mean -------------------------------------------------------------------------------------------------------


class AvgPool1d(Module):
    """The mean of each window: ``functional.avg_pool1d``. (n, c, l) or (c, l) -> (n, c, m) or (c, m)

    Args:
        stride, padding, ceil_mode, count_include_pad: as in ``AvgPool2d``.
    """

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = per_dim(kernel_size, 1, "kernel_size", "AvgPool1d")
        self.stride = self.kernel_size if stride is None else per_dim(stride, 1, "stride", "AvgPool1d")
        self.padding = per_dim(padding, 1, "padding", "AvgPool1d")
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """(n, c, l) or (c, l) -> (n, c, m) or (c, m)"""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool(Module):
    """Base of the layers that take the mean of each window over two and three dimensions.

    Args:
        stride: from one window to the next; by default ``kernel_size``.
        padding: zeros on both sides, at most half a window.
        ceil_mode: also count a window that sticks out at the end.
        count_include_pad: whether the zeros count as elements.
        divisor_override: what the sums are divided by, in place of the number of elements.
    """

    function: Callable[..., Tensor]

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """(n, c, ...) or (c, ...) -> (n, c, ...) or (c, ...)"""
        return self.function(
            *(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad),
            divisor_override=self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(AvgPool):
    """The mean of each window: ``functional.avg_pool2d``. (n, c, h, w) or (c, h, w) -> (n, c, h', w') or (c, h', w')"""

    function = staticmethod(F.avg_pool2d)


class AvgPool3d(AvgPool):
    """The mean of each window: ``functional.avg_pool3d``. (n, c, d, h, w) or (c, d, h, w) -> …"""

    function = staticmethod(F.avg_pool3d)


# ---- the p-norm -----------------------------------------------------------------------------------------------------


class LPPool(Module):
    """Base of the layers that take the p-norm of each window, p = ``norm_type``.

    Args:
        stride: from one window to the next; by default ``kernel_size``.
        ceil_mode: also count a window that sticks out at the end.
    """

    function: Callable[..., Tensor]

    def __init__(
        self, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """(n, c, ...) or (c, ...) -> (n, c, ...) or (c, ...)"""
        return self.function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(LPPool):
    """The p-norm of each window: ``functional.lp_pool1d``. (n, c, l) or (c, l) -> (n, c, m) or (c, m)"""

    function = staticmethod(F.lp_pool1d)


class LPPool2d(LPPool):
    """The p-norm of each window: ``functional.lp_pool2d``. (n, c, h, w) or (c, h, w) -> …"""

    function = staticmethod(F.lp_pool2d)


class LPPool3d(LPPool):
    """The p-norm of each window: ``functional.lp_pool3d``. (n, c, d, h, w) or (c, d, h, w) -> …"""

    function = staticmethod(F.lp_pool3d)


# ---- as many windows as are asked for -------------------------------------------------------------------------------


class AdaptiveAvgPool(Module):
    """Base of the layers that take the means of windows that cover the input.

    Args:
        output_size: how many windows: an int, or one for each dimension, where None keeps the dimension as it is.
    """

    function: Callable[..., Tensor]

    def __init__(self, output_size: Wanted) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """(n, c, ...) or (c, ...) -> (n, c, *output_size) or (c, *output_size)"""
        return self.function(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """The means of ``output_size`` windows: ``functional.adaptive_avg_pool1d``."""

    function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """The means of ``output_size`` windows: ``functional.adaptive_avg_pool2d``."""

    function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(AdaptiveAvgPool):
    """The means of ``output_size`` windows: ``functional.adaptive_avg_pool3d``."""

    function = staticmethod(F.adaptive_avg_pool3d)


class AdaptiveMaxPool(Module):
    """Base of the layers that take the largest elements of windows that cover the input.

    Args:
        output_size: how many windows: an int, or one for each dimension, where None keeps the dimension as it is.
        return_indices: also return where each was found.
    """

    function: Callable[..., Any]

    def __init__(self, output_size: Wanted, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """(n, c, ...) or (c, ...) -> (n, c, *output_size) or (c, *output_size); with ``return_indices`` twice that"""
        return self.function(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """The largest elements of ``output_size`` windows: ``functional.adaptive_max_pool1d``."""

    function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """The largest elements of ``output_size`` windows: ``functional.adaptive_max_pool2d``."""

    function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(AdaptiveMaxPool):
    """The largest elements of ``output_size`` windows: ``functional.adaptive_max_pool3d``."""

    function = staticmethod(F.adaptive_max_pool3d)


# ---- by chance ------------------------------------------------------------------------------------------------------


class FractionalMaxPool(Module):
    """Base of the layers that take the largest element of windows whose places are drawn by chance. Graham (2014).

    Args:
        output_size: an int, or one for each dimension; or else
        output_ratio: its ratio to the size of the input, between 0 and 1.
        return_indices: also return where each was found.
        _random_samples: the chance; see ``functional.fractional_max_pool2d``.
    """

    function: Callable[..., Any]

    def __init__(
        self,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"{type(self).__name__}: expected one of output_size and output_ratio, got both or neither"
            )
        self.kernel_size = kernel_size
        self.output_size = output_size
        self.output_ratio = output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        """(n, c, ...) or (c, ...) -> (n, c, *output_size) or (c, *output_size); with ``return_indices`` twice that"""
        return self.function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(FractionalMaxPool):
    """Over two dimensions: ``functional.fractional_max_pool2d``."""

    function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(FractionalMaxPool):
    """Over three dimensions: ``functional.fractional_max_pool3d``."""

    function = staticmethod(F.fractional_max_pool3d)

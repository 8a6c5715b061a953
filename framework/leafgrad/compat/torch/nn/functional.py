"""What ``torch.nn.functional`` has beside leafgrad's: older names, and pooling that always gives indices."""

from __future__ import annotations

from typing import Any

from leafgrad.compat.torch.overrides import (
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)
from leafgrad.nn import functional as F
from leafgrad.ops.messages import warn
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def with_indices(name: str) -> Any:
    """A pooling function of leafgrad's with ``return_indices=True``."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return getattr(F, name)(*args, **{**kwargs, "return_indices": True})

    function.__name__ = function.__qualname__ = f"{name}_with_indices"
    function.__doc__ = f"``{name}`` with ``return_indices=True``."
    return function


max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    with_indices(f"max_pool{n}d") for n in (1, 2, 3)
)
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = (
    with_indices(f"adaptive_max_pool{n}d") for n in (1, 2, 3)
)


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Older name of ``interpolate``.

    Args:
        size, scale_factor, mode, align_corners: as of ``interpolate``.
    """
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """``interpolate`` with ``mode="nearest"``.

    Args:
        size, scale_factor: as of ``interpolate``.
    """
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return F.interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """``interpolate`` with ``mode="bilinear", align_corners=True``.

    Args:
        size, scale_factor: as of ``interpolate``.
    """
    warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return F.interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)

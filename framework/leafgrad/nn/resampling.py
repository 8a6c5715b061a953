"""Layers for larger and smaller images: interpolation, and exchanging channels for resolution."""

from __future__ import annotations

from collections.abc import Sequence

from leafgrad.nn import functional as F
from leafgrad.nn.module import Module
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "ChannelShuffle",
    "PixelShuffle",
    "PixelUnshuffle",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class Upsample(Module):
    """The input resampled to another size: ``functional.interpolate``. (n, c, ...) -> (n, c, *size)

    Args:
        size: of the output, for each dimension after n and c or for all; or else
        scale_factor: how many times larger it is, rounded down.
        mode: ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"``, ``"trilinear"``, ...
        align_corners: whether the centres of the first and last elements stay in place.
        recompute_scale_factor: True takes the scale from the sizes, which ``scale_factor`` gives only rounded.
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: float | tuple[float, ...] | None = None
        if isinstance(scale_factor, Sequence):
            self.scale_factor = tuple(float(s) for s in scale_factor)
        elif scale_factor:
            self.scale_factor = float(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(n, c, ...) -> (n, c, *size)"""
        return F.interpolate(
            *(input, self.size, self.scale_factor, self.mode, self.align_corners),
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        size = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """``Upsample`` with ``mode="nearest"``. (n, c, h, w) -> (n, c, h', w')"""

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """``Upsample`` with ``mode="bilinear"`` and aligned corners. (n, c, h, w) -> (n, c, h', w')"""

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """Channels spread over r x r pixels, r = ``upscale_factor``: Shi et al. (2016)."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(..., c r r, h, w) -> (..., c, h r, w r)"""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """The inverse of ``PixelShuffle``. (..., c, h r, w r) -> (..., c r r, h, w), r = ``downscale_factor``"""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(..., c, h r, w r) -> (..., c r r, h, w)"""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels dealt out: the first of each of ``groups`` groups, the second of each, ...: Zhang et al. (2018)."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """(n, c, ...) -> (n, c, ...)"""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"

"""Larger and smaller images: interpolation, and exchanging channels for resolution."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from ctypes import c_float
from typing import Any

from leafgrad.dtypes import float64
from leafgrad.nn.functional.average_pooling import resized
from leafgrad.ops.marks import shown_as
from leafgrad.ops.ranges import range_sum
from leafgrad.tensor.arguments import expect_floating, expect_tensor, integer
from leafgrad.tensor.data import tensor
from leafgrad.tensor.formats import keeps_channels_last
from leafgrad.tensor.rearranging import separate
from leafgrad.tensor.tensor import Tensor

__all__ = ["channel_shuffle", "interpolate", "pixel_shuffle", "pixel_unshuffle"]

Taps = list[tuple[list[int], list[float]]]

# ---- interpolation --------------------------------------------------------------------------------------------------

# The modes, and for how many dimensions after batch and channels each is.
MODES = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "area": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
    "bicubic": (2,),
}
SMOOTH = ("linear", "bilinear", "bicubic", "trilinear")


@keeps_channels_last
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """``input`` resampled to another size. (n, c, ...) -> (n, c, *size), with one to three dimensions after c

    Args:
        size: of the result, for each dimension or for all; or else
        scale_factor: how many times larger it is, rounded down.
        mode: ``"nearest"`` and ``"nearest-exact"`` (whose places are centred) take the nearest element, ``"area"``
            the mean of all that a new one covers; ``"linear"`` is for one dimension, ``"bilinear"`` and ``"bicubic"``
            (Keys 1981, a = -0.75) for two, ``"trilinear"`` for three.
        align_corners: of the last four: whether the centres of the first and the last elements stay in place, rather
            than the outer edges of these. None is False.
        recompute_scale_factor: True takes the scale from the sizes, which ``scale_factor`` gives only rounded.
        antialias: with "bilinear" and "bicubic" (a = -0.5), where the result is smaller, widen the filter to what a new
            element covers, so that no detail is skipped.

    Raises:
        ValueError: both of ``size`` and ``scale_factor``, or neither, or not one for each dimension.
        NotImplementedError: a mode that is unknown, or not for these dimensions. RuntimeError: a size below 1.
    """
    n = expect_tensor(input, "input", "interpolate").ndim - 2
    _check_mode(n, mode, align_corners, antialias)
    length = tuple(input.shape[2:])
    new, scales = _sizes(length, size, scale_factor, recompute_scale_factor)
    if min(*length, *new, 1) < 1 or 0 in input.shape[1:]:
        raise RuntimeError(
            f"interpolate: Input and output sizes should be greater than 0, but got input {list(input.shape)} and "
            f"output size {list(new)}"
        )
    if mode == "area":
        return resized(input, length, new, "interpolate")
    if mode in SMOOTH:
        expect_floating(input, "interpolate", NotImplementedError)
    for d, scale in enumerate(scales):
        if length[d] == new[d] and (antialias or mode.endswith("linear")):
            scale = None  # all stay in their places, as in PyTorch
        along = length[d], new[d], scale, bool(align_corners)
        taps = _filters(mode, *along) if antialias else _taps(mode, *along, input.dtype is float64)
        input = _weighted(input, 2 + d, taps)
    return input


def _check_mode(n: int, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if antialias and not (mode in ("bilinear", "bicubic") and n == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input, got "
            f"mode {mode!r} and {n + 2} dimensions"
        )
    if align_corners is not None and mode not in SMOOTH:
        raise ValueError(
            "interpolate: align_corners option can only be set with the interpolating modes: "
            f"{' | '.join(SMOOTH)}, got {mode!r}"
        )
    if mode not in MODES:
        raise NotImplementedError(f"interpolate: mode: expected one of {', '.join(MODES)}, got {mode!r}")
    if n not in MODES[mode]:
        expected = " or ".join(f"{2 + k}D" for k in MODES[mode])
        raise NotImplementedError(f"interpolate: Got {n + 2}D input, but {mode} mode needs {expected} input")


def _sizes(length: tuple[int, ...], size: Any, scale: Any, recompute: bool | None) -> tuple[tuple[int, ...], list[Any]]:
    """The new size, and for each dimension the scale to compute with; None stands for the ratio of the sizes."""
    n = len(length)
    if size is not None and scale is not None:
        raise ValueError("interpolate: only one of size or scale_factor should be defined, got both")
    if size is not None:
        if recompute:
            raise ValueError("interpolate: recompute_scale_factor is not meaningful with an explicit size.")
        each = _one_each(size, length, "size")
        return tuple(integer(s, "size", "interpolate") for s in each), [None] * n
    if scale is None:
        raise ValueError("interpolate: either size or scale_factor should be defined, got neither")
    factors = [float(s) for s in _one_each(scale, length, "scale_factor")]
    new = tuple(math.floor(m * s) for m, s in zip(length, factors, strict=True))
    return new, [None] * n if recompute else list(factors)


def _one_each(value: Any, length: tuple[int, ...], name: str) -> tuple[Any, ...]:
    if not isinstance(value, (tuple, list)):
        return (value,) * len(length)
    if len(value) != len(length):
        raise ValueError(
            f"interpolate: Input and {name} must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(length)} and {name} {tuple(value)}"
        )
    return tuple(value)


@functools.lru_cache(maxsize=1024)
def _taps(mode: str, n: int, size: int, scale: float | None, align: bool, double: bool) -> Taps | list[int]:
    """The places from which each of ``size`` new elements comes, with their weights if they are several."""
    if mode.startswith("nearest"):
        return _nearest(n, size, scale, 0.5 if mode == "nearest-exact" else 0.0, double)
    step = _step(n, size, scale, align)
    centres = [i * step if align else (i + 0.5) * step - 0.5 for i in range(size)]
    if mode == "bicubic":
        floors, offsets = [math.floor(c) for c in centres], range(-1, 3)
    else:
        centres = [max(c, 0.0) for c in centres]
        floors, offsets = [min(int(c), n - 1) for c in centres], range(2)
    weigh = _cubic if mode == "bicubic" else _linear
    return [
        (
            [min(max(f + o, 0), n - 1) for f in floors],
            [weigh(abs(c - f - o)) for c, f in zip(centres, floors, strict=True)],
        )
        for o in offsets
    ]


def _step(n: int, size: int, scale: float | None, align: bool) -> float:
    """How far apart new elements are, in old ones."""
    if align:
        return (n - 1) / (size - 1) if size > 1 else 0.0
    return 1 / scale if scale else n / size


@functools.lru_cache(maxsize=64)
def _filters(mode: str, n: int, size: int, scale: float | None, align: bool) -> Taps:
    """As ``_taps``, with filters as wide as new elements are apart."""
    step = _step(n, size, scale, align)
    width = max(step, 1.0)
    reach = width * (2 if mode == "bicubic" else 1)
    each = []
    for i in range(size):
        centre = step * (i + 0.5)
        places = range(max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), n))
        distances = [abs(j + 0.5 - centre) / width for j in places]
        row = [_cubic(d, -0.5) if mode == "bicubic" else max(1 - d, 0.0) for d in distances]
        whole = sum(row) or 1.0
        each.append((places, [w / whole for w in row]))
    longest = max(len(places) for places, _ in each)
    return [
        ([p[min(k, len(p) - 1)] for p, _ in each], [row[k] if k < len(row) else 0.0 for _, row in each])
        for k in range(longest)
    ]


def _nearest(n: int, size: int, scale: float | None, centre: float, double: bool) -> list[int]:
    """As PyTorch rounds, to float32 and not quite as precisely as it could: equally near elements depend on it."""
    step = 1 / scale if scale else n / size
    step = step if double else c_float(step).value
    return [min(int(c_float((i + centre) * step).value), n - 1) for i in range(size)]


def _linear(distance: float) -> float:
    return 1 - distance


def _cubic(distance: float, a: float = -0.75) -> float:
    if distance >= 2:
        return 0.0
    if distance <= 1:
        return ((a + 2) * distance - (a + 3)) * distance * distance + 1
    return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a


def _weighted(input: Any, dim: int, taps: Any) -> Tensor:
    """The sum over taps of the elements at its places along ``dim`` times its weights."""
    if isinstance(taps[0], int):
        return _picked(input, dim, taps)
    total: Any = None
    for places, weights in taps:
        if any(weights):
            factor = tensor(weights, dtype=input.dtype, device=input.device)
            part = _picked(input, dim, places) * factor.reshape(-1, *(1,) * (input.ndim - 1 - dim))
            total = part if total is None else total + part
    result: Tensor = total
    return result


def _picked(input: Tensor, dim: int, places: list[int]) -> Tensor:
    """The elements at ascending ``places`` along ``dim``."""
    return range_sum(input, ranges=tuple((i, i + 1) for i in places), dim=dim)


# ---- channels for resolution ----------------------------------------------------------------------------------------


@keeps_channels_last
@shown_as("PixelShuffleBackward0")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels spread over r x r pixels, r = ``upscale_factor``: Shi et al. (2016).

    (..., c r r, h, w) -> (..., c, h r, w r)

    Raises:
        RuntimeError: fewer than three dimensions, or channels that r**2 does not divide.
    """
    r = _factor(input, upscale_factor, "pixel_shuffle", "upscale_factor")
    *rest, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    n, apart = len(rest), input.reshape(*rest, c // (r * r), r, r, h, w)
    spread = apart.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return separate(spread.reshape(*rest, c // (r * r), h * r, w * r))


@keeps_channels_last
@shown_as("PixelUnshuffleBackward0")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of ``pixel_shuffle``. (..., c, h r, w r) -> (..., c r r, h, w), r = ``downscale_factor``

    Raises:
        RuntimeError: fewer than three dimensions, or a height or width that r does not divide.
    """
    r = _factor(input, downscale_factor, "pixel_unshuffle", "downscale_factor")
    *rest, c, h, w = input.shape
    for name, place, size in (("height", -2, h), ("width", -1, w)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({place})={size} "
                f"is not divisible by {r}"
            )
    n, apart = len(rest), input.reshape(*rest, c, h // r, r, w // r, r)
    gathered = apart.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return separate(gathered.reshape(*rest, c * r * r, h // r, w // r))


def _factor(input: Any, factor: Any, function: str, name: str) -> int:
    if expect_tensor(input, "input", function).ndim < 3:
        raise RuntimeError(
            f"{function} expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if integer(factor, name, function) < 1:
        raise RuntimeError(f"{function} expects a positive {name}, but got {factor}")
    return int(factor)


@shown_as("NativeChannelShuffleBackward0")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels dealt out: the first of each of ``groups`` groups, the second of each, ... Zhang et al. (2018).

    (n, c, ...) -> (n, c, ...)

    Raises:
        RuntimeError: fewer than three dimensions, or channels that ``groups`` does not divide.
    """
    if expect_tensor(input, "input", "channel_shuffle").ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if integer(groups, "groups", "channel_shuffle") < 1:
        raise RuntimeError(
            f"channel_shuffle: Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    n, c, *rest = input.shape
    if c % groups:
        raise RuntimeError(
            f"channel_shuffle: Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    return separate(input.reshape(n, groups, c // groups, *rest).transpose(1, 2).reshape(n, c, *rest))

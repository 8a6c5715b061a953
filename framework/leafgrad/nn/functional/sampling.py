"""Images read at any places: ``grid_sample``, and the places of an affine map."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from leafgrad.dtypes import int64
from leafgrad.ops import messages
from leafgrad.ops.activation import hardtanh
from leafgrad.ops.select import where
from leafgrad.tensor.arguments import expect_floating, expect_tensor, integer
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.creation import linspace, ones, zeros
from leafgrad.tensor.joining import stack
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

__all__ = ["affine_grid", "grid_sample"]

Taps = list[tuple[Any, Any]]  # places along one dimension, as floats without decimals, and their weights


def _aligned(align_corners: bool | None, function: str) -> bool:
    if align_corners is None:
        messages.warn(
            f"Default {function} behavior has changed to align_corners=False since 1.3.0. Please specify "
            "align_corners=True if the old behavior is desired."
        )
    return bool(align_corners)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """For each element of an image, the place that an affine map sends it to; -1 and 1 are the edges.

    (n, 2, 3) -> (n, h, w, 2), or (n, 3, 4) -> (n, d, h, w, 3): x comes first

    Args:
        theta: the maps.
        size: of the image: (n, c, h, w) or (n, c, d, h, w).
        align_corners: whether -1 and 1 are the centres of the outermost elements, or their outer edges.

    Raises:
        ValueError: the dtype or shape of ``theta``, or ``size``, does not fit. RuntimeError: a size below 1.
    """
    aligned = _aligned(align_corners, "affine_grid")
    expect_floating(theta, "affine_grid", ValueError)
    lengths = [integer(n, "size", "affine_grid") for n in size]
    n, dims = sum(lengths[:1]), lengths[2:]
    if len(dims) not in (2, 3) or tuple(theta.shape) != (n, len(dims), len(dims) + 1):
        raise ValueError(
            f"Expected a batch of 2D affine matrices of shape Nx2x3 for a size of 4 numbers, or of Nx3x4 for one of 5, "
            f"but got theta of shape {tuple(theta.shape)} and size {tuple(lengths)}"
        )
    if min(lengths) <= 0:
        raise RuntimeError(f"Expected non-zero, positive output size. Got {tuple(lengths)}")
    parts = []
    for k, m in enumerate(reversed(dims)):
        axis = linspace(-1, 1, m, dtype=theta.dtype, device=theta.device) if m > 1 else zeros(1, dtype=theta.dtype)
        axis = axis.to(theta.device) * (1 if aligned else (m - 1) / m)
        shape = [1] * len(dims)
        shape[len(dims) - 1 - k] = m
        parts.append(axis.reshape(shape).expand(dims))
    base = stack([*parts, ones(*dims, dtype=theta.dtype, device=theta.device)], -1).reshape(1, -1, len(dims) + 1)
    return (base @ theta.transpose(1, 2)).reshape(n, *dims, len(dims))


@autocast("float32")
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """``input`` at the places of ``grid``, where -1 and 1 are the edges of the image.

    (n, c, h, w), (n, h', w', 2) -> (n, c, h', w'), or (n, c, d, h, w), (n, d', h', w', 3) -> (n, c, d', h', w')

    Args:
        grid: the places; x, along the last dimension of ``input``, comes first.
        mode: ``"bilinear"``, between the nearest elements of each dimension; ``"nearest"``; or ``"bicubic"``, for
            images of two dimensions (Keys 1981, a = -0.75).
        padding_mode: what is outside: ``"zeros"``, the ``"border"`` carried on, or its ``"reflection"``; in these two
            nan counts as -1.
        align_corners: whether -1 and 1 are the centres of the outermost elements, or their outer edges.

    Raises:
        ValueError: an unknown mode. RuntimeError: shapes or dtypes do not fit.
    """
    for name, value, known in (
        ("mode", mode, ("bilinear", "nearest", "bicubic")),
        ("padding_mode", padding_mode, ("zeros", "border", "reflection")),
    ):
        if value not in known:
            raise ValueError(f"nn.functional.grid_sample(): expected {name} to be one of {known}, but got: '{value}'")
    aligned = _aligned(align_corners, "grid_sample")
    _check(input, grid, mode)
    sizes, flat = tuple(input.shape[2:]), input.reshape(*input.shape[:2], math.prod(input.shape[2:]))
    places = [_unscaled(grid[..., -1 - d], n, aligned) for d, n in enumerate(sizes)]
    taps = [
        [_chosen(place, share, size) for place, share in _taps(x, size, mode, padding_mode, aligned)]
        for x, size in zip(places, sizes, strict=True)
    ]
    n, c, out = *input.shape[:2], tuple(grid.shape[1:-1])
    many = math.prod(out)
    total: Any = None
    for corner in itertools.product(*taps):
        at, outside, weight = corner[0]
        for (place, beyond, share), size in zip(corner[1:], sizes[1:], strict=True):
            at, outside, weight = at * size + place, outside | beyond, share * weight
        index = at.reshape(n, 1, many).expand(n, c, many)
        part = flat.gather(2, index) * where(outside, 0, weight).reshape(n, 1, many)
        total = part if total is None else total + part
    result: Tensor = alone(total.reshape(n, c, *out))
    return result


def _chosen(place: Any, share: Any, size: int) -> tuple[Any, Any, Any]:
    """Of one tap the element, the first where there is none; whether it is outside; and its weight."""
    outside = (place < 0) | (place > size - 1)
    return where(outside | place.isnan(), 0, place).to(int64), outside, share


def _check(input: Tensor, grid: Tensor, mode: str) -> None:
    function = "grid_sample"
    expect_floating(expect_tensor(input, "input", function), function)
    m = input.ndim - 2
    if expect_tensor(grid, "grid", function).dtype is not input.dtype:
        raise RuntimeError(
            f"grid_sample(): expected input and grid to have same dtype, but input has {input.dtype} and grid has "
            f"{grid.dtype}"
        )
    if m not in (2, 3) or grid.ndim != m + 2 or grid.shape[0] != input.shape[0] or grid.shape[-1] != m:
        raise RuntimeError(
            "grid_sample(): expected (n, c, h, w) and (n, h', w', 2), or (n, c, d, h, w) and (n, d', h', w', 3), but "
            f"got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(f"grid_sample(): expected input to have non-empty spatial dimensions, got {input.shape}")
    if mode == "bicubic" and m != 2:
        raise RuntimeError("grid_sample(): bicubic interpolation only supports 4D input")


def _unscaled(x: Any, size: int, aligned: bool) -> Any:
    """From [-1, 1] to the numbers of elements."""
    return (x + 1) * ((size - 1) / 2) if aligned else ((x + 1) * size - 1) / 2


def _taps(x: Any, size: int, mode: str, padding: str, aligned: bool) -> Taps:
    if mode == "bicubic":
        first = x.detach().floor()
        t = x - first
        found = zip(range(-1, 3), (_cubic(t + 1), _cubic(t), _cubic(1 - t), _cubic(2 - t)), strict=True)
        return [(_padded(first + k, size, padding, aligned), weight) for k, weight in found]
    x = _padded(x, size, padding, aligned)
    if mode == "nearest":
        return [(where(x.isnan(), -1, x.detach().round()), x * 0 + 1)]  # nan is outside
    first = x.detach().floor()
    return [(first, first + 1 - x), (first + 1, x - first)]


def _cubic(distance: Any) -> Any:
    """The weight at a distance in [0, 2]; both halves of the polynomial."""
    a = -0.75
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return where(distance.detach() <= 1, near, far)


def _padded(x: Any, size: int, padding: str, aligned: bool) -> Any:
    """Places outside, led back into the image, nan to its first element; there they have no gradient."""
    if padding == "zeros":
        return x
    x = where(x.isnan(), 0, x)
    if padding == "reflection":
        low, span = (0.0, size - 1) if aligned else (-0.5, size)
        if not span:
            return x * 0
        away = (x - low).abs()
        turns = (away.detach() / span).floor()
        rest = away - turns * span
        x = where(turns % 2 == 0, rest, span - rest) + low
    return hardtanh(x, min_val=0.0, max_val=float(size - 1))

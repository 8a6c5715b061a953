"""The largest element of windows whose places are drawn by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leafgrad.dtypes import int64
from leafgrad.nn.functional.windows import Size, at_least, expect_filled, per_dim
from leafgrad.ops.rounding import floor
from leafgrad.tensor.arguments import expect_floating
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.creation import arange
from leafgrad.tensor.joining import cat
from leafgrad.tensor.random import rand
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d"]

Ratio = float | Sequence[float]
Found = Tensor | tuple[Tensor, Tensor]


@autocast("float32")
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Found:
    """The largest element of overlapping windows, from one to the next by steps drawn by chance. Graham (2014).

    (n, c, h, w) or (c, h, w) -> (n, c, h', w') or (c, h', w')

    Args:
        output_size: an int, or one for each dimension; or else
        output_ratio: its ratio to the size of the input, between 0 and 1, rounded down.
        return_indices: also return where each was found, as a number among the h * w elements of its channel (int64).
        _random_samples: the chance: numbers in [0, 1), (n, c, 2), first for w; or (n, c, 3), first for d.

    Raises:
        ValueError: neither or both of ``output_size`` and ``output_ratio``, or a ratio that is not between 0 and 1.
        RuntimeError: more windows than fit. NotImplementedError: integers.
    """
    return _fractional(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


@autocast("float32")
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Found:
    """``fractional_max_pool2d`` over three dimensions. (n, c, d, h, w) or (c, d, h, w) -> (n, c, d', h', w') or …"""
    return _fractional(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def _fractional(
    n: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, indices: bool, samples: Any
) -> Found:
    function = f"fractional_max_pool{n}d"
    expect_filled(expect_floating(input, function, NotImplementedError), n, function)
    kernel = at_least(1, per_dim(kernel_size, n, "kernel_size", function), "kernel_size", function)
    length = tuple(input.shape[-n:])
    size = _sizes(length, output_size, output_ratio, function)
    for m, k, s in zip(length, kernel, size, strict=True):
        if s + k - 1 > m:
            raise RuntimeError(f"{function}: expected output_size + kernel_size - 1 of at most {m}, got {s} and {k}")
    x = input if input.ndim == n + 2 else input.unsqueeze(0)
    if samples is None:
        samples = rand(*x.shape[:2], n, dtype=x.dtype, device=x.device)
    numbers: Any = 0
    for d, (m, k, s) in enumerate(zip(length, kernel, size, strict=True)):
        places = _starts(samples[..., 1 - d if n == 2 else d], m, k, s).unsqueeze(-1) + arange(k, device=x.device)
        shape = [*x.shape[:2], *[1] * (2 * n)]
        shape[2 + d], shape[2 + n + d] = s, k
        numbers = numbers * m + places.reshape(shape)
    flat = x.reshape(*x.shape[:2], math.prod(length))
    numbers = numbers.reshape(*x.shape[:2], math.prod(size), math.prod(kernel))
    elements = flat.detach().gather(2, numbers.flatten(2)).reshape(numbers.shape)
    at = numbers.gather(3, elements.argmax(3, keepdim=True)).squeeze(3)
    result = (*input.shape[:-n], *size)
    largest: Tensor = alone(flat.gather(2, at).reshape(result))
    return (largest, alone(at.reshape(result))) if indices else largest


def _sizes(length: tuple[int, ...], output_size: Any, ratio: Any, function: str) -> tuple[int, ...]:
    n = len(length)
    if (output_size is None) == (ratio is None):
        raise ValueError(f"{function} requires specifying either an output_size or an output_ratio")
    if ratio is None:
        return at_least(1, per_dim(output_size, n, "output_size", function), "output_size", function)
    ratios = (ratio,) * n if isinstance(ratio, (int, float)) else tuple(ratio)
    if len(ratios) != n or not all(0 < r < 1 for r in ratios):
        raise ValueError(f"{function}: output_ratio must be between 0 and 1 (got {ratio})")
    return tuple(int(m * r) for m, r in zip(length, ratios, strict=True))


def _starts(chance: Any, length: int, kernel: int, size: int) -> Any:
    """Where windows begin: by steps of the mean length, rounded down from a random start; the last at the end."""
    last = chance.new_full((*chance.shape, 1), length - kernel)
    if size == 1:
        return last.to(int64)
    step = (length - kernel) / (size - 1)
    u = chance.unsqueeze(-1)
    places = floor((arange(size - 1, dtype=chance.dtype, device=chance.device) + u) * step) - floor(u * step)
    return cat([places, last], -1).to(int64)

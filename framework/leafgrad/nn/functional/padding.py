"""Margins around the last dimensions: of one value, or continued from within."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad.dtypes import contiguous_format
from leafgrad.ops import shape as ops
from leafgrad.tensor.arguments import expect_tensor, shape as sizes
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.formats import keeps_channels_last
from leafgrad.tensor.rearranging import constant_pad
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.writes import value_for

__all__ = ["pad"]

MODES = ("constant", "reflect", "replicate", "circular")


@keeps_channels_last
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """``input`` with margins around its last dimensions. (...) -> (...)

    Args:
        pad: (before, after) for the last dimension, then for the one before it, ...; negative ones cut off.
        mode: what is in the margins: ``"constant"``, the ``value``; ``"reflect"``, the elements mirrored at the one on
            the edge; ``"replicate"``, the element on the edge; ``"circular"``, what is at the other end. All but the
            first are for the last dimension of 2 or 3, the last two of 3 or 4, and the last three of 4 or 5.
        value: of ``"constant"``, by default 0.

    Raises:
        RuntimeError: not two numbers for each dimension, or larger margins than the elements can fill.
        NotImplementedError: an unknown mode, or dimensions that it is not for.
    """
    if not isinstance(pad, (tuple, list)):
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}")
    margins = sizes((pad,), "pad", "pad")
    ndim = expect_tensor(input, "input", "pad").ndim
    if len(margins) % 2:
        raise RuntimeError(f"pad: Padding length must be divisible by 2, got {len(margins)} in {list(margins)}")
    if len(margins) > 2 * ndim:
        raise RuntimeError(
            "pad: Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(margins)} and input of dimension {ndim}"
        )
    if mode == "constant":
        return constant_pad(input, margins, 0 if value is None else value_for(input, value, "pad: value"))
    if mode not in MODES:
        raise NotImplementedError(f"pad: Unrecognised padding mode {mode}; expected one of {', '.join(MODES)}")
    if value:
        raise RuntimeError(f'pad: Padding mode "{mode}" doesn\'t take in value argument, got {value}')
    n = len(margins) // 2
    if n not in (1, 2, 3) or ndim not in (n + 1, n + 2):
        raise NotImplementedError(
            f"pad: Padding size {len(margins)} is not supported for {ndim}D input tensor. mode={mode!r} takes (before, "
            "after) for 1 to 3 last dimensions, and one or two dimensions before these"
        )
    as_it_is = mode == "circular" or (mode, n) == ("reflect", 3)
    return (_continued if as_it_is else autocast("float32")(_continued))(input, margins, mode)


def _continued(input: Tensor, margins: tuple[int, ...], mode: str) -> Tensor:
    """``pad`` with margins from within, dimension by dimension; memory of its own."""
    for i in range(len(margins) // 2):
        before, after = margins[2 * i : 2 * i + 2]
        d, cut = input.ndim - 1 - i, (min(before, 0), min(after, 0))
        if mode == "circular":  # wraps what is left; the others continue the whole, and are then cut
            input = _part(input, d, -cut[0], input.shape[d] + cut[1])
        n = input.shape[d]
        _check(input, d, before, after, mode)
        parts = [input]
        if before > 0:
            parts.insert(0, _margin(input, d, before, n, mode, True))
        if after > 0:
            parts.append(_margin(input, d, after, n, mode, False))
        if len(parts) > 1:
            input = ops.cat(*parts, dim=d)
        if mode != "circular" and cut != (0, 0):
            input = _part(input, d, -cut[0], input.shape[d] + cut[1])
    return input.contiguous() if max(margins) > 0 else input.clone(memory_format=contiguous_format)


def _check(input: Tensor, d: int, before: int, after: int, mode: str) -> None:
    n, most = input.shape[d], max(before, after)
    room = {"reflect": n - 1, "circular": n, "replicate": most if n else 0}[mode]
    if most > max(room, 0):
        why = "less than the corresponding input dimension, so " if mode == "reflect" else ""
        raise RuntimeError(
            f"pad: mode {mode!r}: Padding size should be {why}at most {max(room, 0)}, as the input dimension has "
            f"size {n}, but got: padding ({before}, {after}) at dimension {d} of input {list(input.shape)}"
        )


def _margin(input: Tensor, d: int, width: int, n: int, mode: str, first: bool) -> Any:
    """What goes before the ``first`` or after the last of n elements along d."""
    if mode == "circular":
        return _part(input, d, n - width, n) if first else _part(input, d, 0, width)
    if mode == "reflect":
        near = _part(input, d, 1, width + 1) if first else _part(input, d, n - 1 - width, n - 1)
        return ops.flip(near, dims=(d,))
    edge = _part(input, d, 0, 1) if first else _part(input, d, n - 1, n)
    return ops.expand(edge, shape=(*input.shape[:d], width, *input.shape[d + 1 :]))


def _part(input: Tensor, d: int, start: int, stop: int) -> Tensor:
    """The elements from ``start`` to ``stop`` along d."""
    if (start, stop) == (0, input.shape[d]):
        return input
    if start > stop:
        raise RuntimeError(f"pad: expected to cut off at most the {input.shape[d]} elements of dimension {d}")
    return ops.part(input, at=(*((0, m, 1) for m in input.shape[:d]), (start, stop, 1)))

"""The functions of `torch.fft`, on pairs in the place of complex numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from numbers import Real
from typing import Any

import leafgrad
from leafgrad import Tensor
from leafgrad_fft.ops import TRANSPOSED, fft_complex, fft_real, fft_real_inverse

Dims = int | Sequence[int] | None


# ---- checking arguments -------------------------------------------------------------------------------------------


def _expect(function: str, input: Any, pairs: bool) -> int:
    """The number of dimensions of ``input``, that of the pairs not counted."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{function}: input: expected a Tensor, got {type(input).__name__}")
    if pairs and (input.ndim == 0 or input.shape[-1] != 2):
        raise RuntimeError(
            f"{function}: input: expected complex numbers as a last dimension of size 2, the real and the imaginary "
            f"part, got shape {tuple(input.shape)}; make it with leafgrad.stack([real, imag], dim=-1), or use rfft for "
            "real numbers"
        )
    return input.ndim - pairs


def _int(function: str, name: str, value: Any) -> int:
    """``value`` if it is an integer, else a TypeError."""
    if not isinstance(value, bool):
        with suppress(TypeError):
            return operator.index(value)
    raise TypeError(f"{function}: {name}: expected an int, got {value!r} ({type(value).__name__})")


def _one(function: str, n: Any) -> list[int] | None:
    """The sizes of a transform along one dimension, of which -1 is none."""
    if n is None:
        return None
    if (points := _int(function, "n", n)) < 1:
        raise RuntimeError(f"{function}: n: expected at least one point, got {points}")
    return [points]


def _norm(function: str, norm: str | None) -> str:
    if norm not in (None, *TRANSPOSED):
        raise RuntimeError(f"{function}: norm: expected 'backward', 'ortho' or 'forward', got {norm!r}")
    return norm or "backward"


def _dims(function: str, ndim: int, dim: Dims, s: Any) -> tuple[tuple[int, ...], list[int | None]]:
    """The dimensions, each counted from behind, and how many points each shall have; None as many as there are."""
    if s is not None:
        given = s if isinstance(s, Sequence) and not isinstance(s, str) else [s]
        s = [None if n is None else _int(function, "s", n) for n in given]
    if dim is None:
        dim = range(-(ndim if s is None else len(s)), 0)
    found: list[int] = []
    for d in dim if isinstance(dim, Sequence) and not isinstance(dim, str) else [dim]:
        d = _int(function, "dim", d)
        if not -ndim <= d < ndim:
            raise IndexError(f"{function}: dim: expected a dimension from {-ndim} to {ndim - 1}, got {d}")
        found.append(d - ndim if d >= 0 else d)
    if len({*found}) < len(found):
        raise RuntimeError(f"{function}: dim: expected each dimension once, got {tuple(found)}")
    if s is not None and len(s) != len(found):
        raise RuntimeError(f"{function}: s: expected {len(found)} sizes, one for each of dim, got {len(s)}")
    if not found:
        raise RuntimeError(f"{function}: dim: expected at least one dimension")
    return tuple(found), [None] * len(found) if s is None else [None if n == -1 else n for n in s]


def _sized(function: str, input: Tensor, dims: tuple[int, ...], sizes: Sequence[int | None], pairs: bool) -> Tensor:
    """``input`` cut, or filled up with zeros, at the end of each of ``dims``."""
    for d, n in zip(dims, sizes, strict=True):
        at = d - pairs
        have = input.shape[at]
        n = have if n is None else n
        if n < 1:
            raise RuntimeError(f"{function}: expected at least one point along dimension {d}, got {n}")
        if n < have:
            input = input.narrow(at, 0, n)
        elif n > have:
            input = leafgrad.nn.functional.pad(input, (0, 0) * (-at - 1) + (0, n - have))
    return input


# ---- along several dimensions -------------------------------------------------------------------------------------


def _complex(function: str, input: Tensor, s: Any, dim: Dims, norm: str | None, inverse: bool) -> Tensor:
    ndim = _expect(function, input, True)
    (dims, sizes), norm = _dims(function, ndim, dim, s), _norm(function, norm)
    input = _sized(function, input, dims, sizes, True)
    result: Tensor = fft_complex(input, dims=dims, inverse=inverse, norm=norm)
    return result


def _real(function: str, input: Tensor, s: Any, dim: Dims, norm: str | None) -> Tensor:
    ndim = _expect(function, input, False)
    (dims, sizes), norm = _dims(function, ndim, dim, s), _norm(function, norm)
    input = _sized(function, input, dims, sizes, False)
    result: Tensor = fft_real(input, dim=dims[-1], norm=norm)
    return fft_complex(result, dims=dims[:-1], inverse=False, norm=norm) if len(dims) > 1 else result


def _real_inverse(function: str, input: Tensor, s: Any, dim: Dims, norm: str | None) -> Tensor:
    ndim = _expect(function, input, True)
    (dims, sizes), norm = _dims(function, ndim, dim, s), _norm(function, norm)
    n = 2 * (input.shape[dims[-1] - 1] - 1) if sizes[-1] is None else sizes[-1]
    if n < 1:
        raise RuntimeError(
            f"{function}: expected at least one point along dimension {dims[-1]}, got {n}; give its size"
        )
    input = _sized(function, input, dims, [*sizes[:-1], n // 2 + 1], True)
    if len(dims) > 1:
        input = fft_complex(input, dims=dims[:-1], inverse=True, norm=norm)
    result: Tensor = fft_real_inverse(input, n=n, dim=dims[-1], norm=norm)
    return result


def fftn(input: Tensor, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform of complex numbers. (..., n1, n2, 2) -> the same

    Args:
        input: complex numbers as pairs (real, imaginary), its last dimension.
        s: sizes of the transformed dimensions, which are cut or filled up with zeros to them; None or -1 keeps one.
        dim: the dimensions, that of the pairs not counted: -1 is the last before it. By default all, or the last
            ``len(s)``.
        norm: "backward" (None) scales the inverse by 1 / n, "forward" the transform, "ortho" both by 1 / sqrt(n).

    Raises:
        RuntimeError: the last dimension is not of size 2, no points, unknown norm, repeated dimensions, or another
            number of sizes than of dimensions. IndexError: a dimension that there is not.
    """
    return _complex("fftn", input, s, dim, norm, False)


def ifftn(input: Tensor, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `fftn`, whose arguments it takes. (..., n1, n2, 2) -> the same"""
    return _complex("ifftn", input, s, dim, norm, True)


def rfftn(input: Tensor, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """`fftn` of real numbers: of its last dimension the first n // 2 + 1 coefficients, which tell the others.

    (..., n1, n2) -> (..., n1, n2 // 2 + 1, 2)
    """
    return _real("rfftn", input, s, dim, norm)


def irfftn(input: Tensor, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`; the last of ``s`` is the size of the result, by default the even 2 (m - 1).

    (..., n1, m, 2) -> (..., n1, n2)
    """
    return _real_inverse("irfftn", input, s, dim, norm)


# ---- along one and two --------------------------------------------------------------------------------------------


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`fftn` along one dimension. (..., n, 2) -> (..., n, 2)"""
    return _complex("fft", input, _one("fft", n), dim, norm, False)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`ifftn` along one dimension. (..., n, 2) -> (..., n, 2)"""
    return _complex("ifft", input, _one("ifft", n), dim, norm, True)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`rfftn` along one dimension. (..., n) -> (..., n // 2 + 1, 2)"""
    return _real("rfft", input, _one("rfft", n), dim, norm)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`irfftn` along one dimension. (..., m, 2) -> (..., n), n = 2 (m - 1) by default"""
    return _real_inverse("irfft", input, _one("irfft", n), dim, norm)


def fft2(input: Tensor, s: Any = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`fftn` along two dimensions. (..., n1, n2, 2) -> the same"""
    return _complex("fft2", input, s, dim, norm, False)


def ifft2(input: Tensor, s: Any = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`ifftn` along two dimensions. (..., n1, n2, 2) -> the same"""
    return _complex("ifft2", input, s, dim, norm, True)


def rfft2(input: Tensor, s: Any = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`rfftn` along two dimensions. (..., n1, n2) -> (..., n1, n2 // 2 + 1, 2)"""
    return _real("rfft2", input, s, dim, norm)


def irfft2(input: Tensor, s: Any = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`irfftn` along two dimensions. (..., n1, m, 2) -> (..., n1, n2)"""
    return _real_inverse("irfft2", input, s, dim, norm)


# ---- frequencies --------------------------------------------------------------------------------------------------


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequency of each coefficient of `fft` of n points at distance d, in cycles per unit of d. -> (n,)

    Raises:
        TypeError: n is no integer, or d no number. RuntimeError: n is negative.
    """
    n = _points("fftfreq", n, d)
    k = leafgrad.arange(n, dtype=dtype or leafgrad.get_default_dtype(), device=device)
    return (k - n * (k >= (n + 1) // 2)) / (n * d)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequency of each coefficient of `rfft`. -> (n // 2 + 1,)

    Raises:
        TypeError: n is no integer, or d no number. RuntimeError: n is negative.
    """
    n = _points("rfftfreq", n, d)
    return leafgrad.arange(n // 2 + 1, dtype=dtype or leafgrad.get_default_dtype(), device=device) / (n * d)


def _points(function: str, n: Any, d: Any) -> int:
    """How many points there are, as an int."""
    n = _int(function, "n", n)
    if n < 0:
        raise RuntimeError(f"{function}: n: expected no negative number of points, got {n}")
    if not isinstance(d, (Real, Tensor)):
        raise TypeError(f"{function}: d: expected the distance of points, a number, got {d!r}")
    return n

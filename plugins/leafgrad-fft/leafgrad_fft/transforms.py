"""The functions of `torch.fft`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any

import leafgrad
from leafgrad import Tensor
from leafgrad.ops.dispatch import takes_out
from leafgrad_fft.ops import TRANSPOSED, fft_complex, fft_real, fft_real_inverse

Dims = int | Sequence[int] | None
OTHER = {"backward": "forward", "ortho": "ortho", "forward": "backward"}  # of a transform that runs the other way


# ---- checking arguments -------------------------------------------------------------------------------------------


def _expect(function: str, input: Any, pick: str) -> Tensor:
    """``input`` as the transform takes it: complex, or real of a floating dtype."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{function}: input: expected a Tensor, got {type(input).__name__}")
    if input.dtype in (leafgrad.float16, leafgrad.bfloat16):
        raise RuntimeError(f"{function}: Unsupported dtype {input.dtype}; convert it with .float()")
    if not input.dtype.is_complex and not input.dtype.is_floating_point:
        input = input.to(leafgrad.get_default_dtype())
    if pick == "real" and input.dtype.is_complex:
        name, real = (function, "real") if function in ("rfft", "ihfft") else (f"{function[:-1]}n", "real-valued")
        raise RuntimeError(f"{name} expects a {real} input tensor, but got {input.dtype}; use fft for complex numbers")
    return input.to(input.dtype.to_complex()) if pick == "complex" else input


def expect_int(function: str, name: str, value: Any) -> int:
    """``value`` if it is an integer, else a TypeError."""
    if not isinstance(value, bool):
        with suppress(TypeError):
            return operator.index(value)
    raise TypeError(f"{function}: {name}: expected an int, got {value!r} ({type(value).__name__})")


def _one(function: str, n: Any) -> list[int] | None:
    """The sizes of a transform along one dimension, of which -1 is none."""
    if n is None:
        return None
    if (points := expect_int(function, "n", n)) < 1:
        raise _no_points(function, points, "for n")
    return [points]


def _no_points(function: str, n: int, where: str) -> RuntimeError:
    return RuntimeError(f"{function}: Invalid number of data points ({n}) specified; expected at least one {where}")


def _norm(function: str, norm: str | None) -> str:
    if norm not in (None, *TRANSPOSED):
        raise RuntimeError(f"{function}: norm: expected 'backward', 'ortho' or 'forward', got {norm!r}")
    return norm or "backward"


def _dims(function: str, ndim: int, dim: Dims, s: Any) -> tuple[tuple[int, ...], list[int | None]]:
    """The dimensions, each counted from behind, and how many points each shall have; None as many as there are."""
    if s is not None:
        given = s if isinstance(s, Sequence) and not isinstance(s, str) else [s]
        s = [None if n is None else expect_int(function, "s", n) for n in given]
    if dim is None:
        if s is not None and len(s) > ndim:
            raise RuntimeError(f"{function}: s: got {len(s)} values but input tensor only has {ndim} dimensions")
        dim = range(-(ndim if s is None else len(s)), 0)
    found: list[int] = []
    for d in dim if isinstance(dim, Sequence) and not isinstance(dim, str) else [dim]:
        d = expect_int(function, "dim", d)
        if not -ndim <= d < ndim:
            raise IndexError(
                f"{function}: dim: Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
                f"{d})"
            )
        found.append(d - ndim if d >= 0 else d)
    if len({*found}) < len(found):
        raise RuntimeError(f"{function}: dim: FFT dims must be unique, got {tuple(found)}")
    if s is not None and len(s) != len(found):
        raise RuntimeError(
            f"{function}: dim and shape arguments must have the same length, got {len(found)} dimensions and {len(s)} "
            "sizes"
        )
    return tuple(found), [None] * len(found) if s is None else [None if n == -1 else n for n in s]


def _expect_dims(function: str, dims: tuple[int, ...]) -> None:
    if not dims:
        raise RuntimeError(f"{function} must transform at least one axis, but got dim=()")


def _sized(function: str, input: Tensor, dims: tuple[int, ...], sizes: Sequence[int | None]) -> Tensor:
    """``input`` cut, or filled up with zeros, at the end of each of ``dims``."""
    for d, n in zip(dims, sizes, strict=True):
        have = input.shape[d]
        n = have if n is None else n
        if n < 1:
            raise _no_points(function, n, f"along dimension {d}")
        if n < have:
            input = input.narrow(d, 0, n)
        elif n > have:
            input = leafgrad.nn.functional.pad(input, (0, 0) * (-d - 1) + (0, n - have))
    return input


# ---- along several dimensions -------------------------------------------------------------------------------------


def _complex(function: str, input: Tensor, s: Any, dim: Dims, norm: str | None, inverse: bool) -> Tensor:
    input = _expect(function, input, "complex")
    (dims, sizes), norm = _dims(function, input.ndim, dim, s), _norm(function, norm)
    if not dims:
        return input.clone()
    input = _sized(function, input, dims, sizes)
    result: Tensor = fft_complex(input, dims=dims, inverse=inverse, norm=norm)
    return result


def _real(function: str, input: Tensor, s: Any, dim: Dims, norm: str | None) -> Tensor:
    input = _expect(function, input, "real")
    (dims, sizes), norm = _dims(function, input.ndim, dim, s), _norm(function, norm)
    _expect_dims(function, dims)
    input = _sized(function, input, dims, sizes)
    result: Tensor = fft_real(input, dim=dims[-1], norm=norm)
    return fft_complex(result, dims=dims[:-1], inverse=False, norm=norm) if len(dims) > 1 else result


def _real_inverse(function: str, input: Tensor, s: Any, dim: Dims, norm: str | None) -> Tensor:
    input = _expect(function, input, "complex")
    (dims, sizes), norm = _dims(function, input.ndim, dim, s), _norm(function, norm)
    _expect_dims(function, dims)
    n = 2 * (input.shape[dims[-1]] - 1) if sizes[-1] is None else sizes[-1]
    if n < 1:
        raise _no_points(function, n, f"along dimension {dims[-1]}; give its size")
    input = _sized(function, input, dims, [*sizes[:-1], n // 2 + 1])
    if len(dims) > 1:
        input = fft_complex(input, dims=dims[:-1], inverse=True, norm=norm)
    result: Tensor = fft_real_inverse(input, n=n, dim=dims[-1], norm=norm)
    return result


@takes_out
def fftn(input: Tensor, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform of real or complex numbers. (..., n1, n2) -> the same, complex

    Args:
        input: float32, float64, complex64 or complex128; integers become the default dtype.
        s: sizes of the transformed dimensions, which are cut or filled up with zeros to them; None or -1 keeps one.
        dim: the dimensions. By default all, or the last ``len(s)``.
        norm: "backward" (None) scales the inverse by 1 / n, "forward" the transform, "ortho" both by 1 / sqrt(n).

    Raises:
        RuntimeError: 16 bits, no points, unknown norm, repeated dimensions, or another
            number of sizes than of dimensions. IndexError: a dimension that there is not.
    """
    return _complex("fftn", input, s, dim, norm, False)


@takes_out
def ifftn(input: Tensor, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `fftn`, whose arguments it takes. (..., n1, n2) -> the same"""
    return _complex("ifftn", input, s, dim, norm, True)


@takes_out
def rfftn(input: Tensor, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """`fftn` of real numbers: of its last dimension the first n // 2 + 1 coefficients, which tell the others.

    (..., n1, n2) -> (..., n1, n2 // 2 + 1)
    """
    return _real("rfftn", input, s, dim, norm)


@takes_out
def irfftn(input: Tensor, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`; the last of ``s`` is the size of the result, by default the even 2 (m - 1).

    (..., n1, m) -> (..., n1, n2)
    """
    return _real_inverse("irfftn", input, s, dim, norm)


# ---- along one and two --------------------------------------------------------------------------------------------


@takes_out
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`fftn` along one dimension. (..., n) -> (..., n)"""
    return _complex("fft", input, _one("fft", n), dim, norm, False)


@takes_out
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`ifftn` along one dimension. (..., n) -> (..., n)"""
    return _complex("ifft", input, _one("ifft", n), dim, norm, True)


@takes_out
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`rfftn` along one dimension. (..., n) -> (..., n // 2 + 1)"""
    return _real("rfft", input, _one("rfft", n), dim, norm)


@takes_out
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`irfftn` along one dimension. (..., m) -> (..., n), n = 2 (m - 1) by default"""
    return _real_inverse("irfft", input, _one("irfft", n), dim, norm)


@takes_out
def fft2(input: Tensor, s: Any = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`fftn` along two dimensions. (..., n1, n2) -> the same"""
    return _complex("fft2", input, s, dim, norm, False)


@takes_out
def ifft2(input: Tensor, s: Any = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`ifftn` along two dimensions. (..., n1, n2) -> the same"""
    return _complex("ifft2", input, s, dim, norm, True)


@takes_out
def rfft2(input: Tensor, s: Any = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`rfftn` along two dimensions. (..., n1, n2) -> (..., n1, n2 // 2 + 1)"""
    return _real("rfft2", input, s, dim, norm)


@takes_out
def irfft2(input: Tensor, s: Any = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`irfftn` along two dimensions. (..., n1, m) -> (..., n1, n2)"""
    return _real_inverse("irfft2", input, s, dim, norm)


# ---- of real signals in frequency ---------------------------------------------------------------------------------


@takes_out
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The real transform of a signal that is its own conjugate in reverse, of which the first half is given.

    (..., m) -> (..., n), n = 2 (m - 1) by default
    """
    norm = _norm("hfft", norm)
    return _real_inverse("hfft", _expect("hfft", input, "complex").conj(), _one("hfft", n), dim, OTHER[norm])


@takes_out
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft`, of real numbers. (..., n) -> (..., n // 2 + 1)"""
    return _real("ihfft", input, _one("ihfft", n), dim, OTHER[_norm("ihfft", norm)]).conj()


@takes_out
def hfftn(input: Tensor, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """`hfft` along several dimensions, of the last of which half is given. (..., n1, m) -> (..., n1, n2)"""
    norm = OTHER[_norm("hfftn", norm)]
    return _real_inverse("hfftn", _expect("hfftn", input, "complex").conj(), s, dim, norm)


@takes_out
def ihfftn(input: Tensor, s: Sequence[int] | None = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `hfftn`, of real numbers. (..., n1, n2) -> (..., n1, n2 // 2 + 1)"""
    return _real("ihfftn", input, s, dim, OTHER[_norm("ihfftn", norm)]).conj()


@takes_out
def hfft2(input: Tensor, s: Any = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`hfftn` along two dimensions. (..., n1, m) -> (..., n1, n2)"""
    norm = OTHER[_norm("hfft2", norm)]
    return _real_inverse("hfft2", _expect("hfft2", input, "complex").conj(), s, dim, norm)


@takes_out
def ihfft2(input: Tensor, s: Any = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """`ihfftn` along two dimensions. (..., n1, n2) -> (..., n1, n2 // 2 + 1)"""
    return _real("ihfft2", input, s, dim, OTHER[_norm("ihfft2", norm)]).conj()


# ---- shifts and frequencies ---------------------------------------------------------------------------------------


def fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The coefficient of frequency 0 in the middle of each of ``dim``, by default all. (...) -> (...)"""
    return _shifted("fftshift", input, dim, lambda n: n // 2)


def ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The inverse of `fftshift`. (...) -> (...)"""
    return _shifted("ifftshift", input, dim, lambda n: -(n // 2))


def _shifted(function: str, input: Tensor, dim: Dims, by: Callable[[int], int]) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"{function}: input: expected a Tensor, got {type(input).__name__}")
    dims = _dims(function, input.ndim, dim, None)[0] if input.ndim else ()
    return leafgrad.roll(input, [by(input.shape[d]) for d in dims], [*dims]) if dims else input


@takes_out
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequency of each coefficient of `fft` of n points at distance d, in cycles per unit of d. -> (n,)

    Raises:
        TypeError: n is no integer, or d no number. RuntimeError: n is negative.
    """
    n = _points("fftfreq", n, d)
    k = leafgrad.arange(n, dtype=dtype or leafgrad.get_default_dtype(), device=device)
    return (k - n * (k >= (n + 1) // 2)) / (n * d)


@takes_out
def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequency of each coefficient of `rfft`. -> (n // 2 + 1,)

    Raises:
        TypeError: n is no integer, or d no number. RuntimeError: n is negative.
    """
    n = _points("rfftfreq", n, d)
    return leafgrad.arange(n // 2 + 1, dtype=dtype or leafgrad.get_default_dtype(), device=device) / (n * d)


def _points(function: str, n: Any, d: Any) -> int:
    """How many points there are, as an int."""
    n = expect_int(function, "n", n)
    if n < 0:
        raise RuntimeError(f"{function}: n: expected no negative number of points, got {n}")
    if not isinstance(d, (Real, Tensor)):
        raise TypeError(f"{function}: d: expected the distance of points, a number, got {d!r}")
    return n

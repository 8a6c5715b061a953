"""The transforms along dimensions of whole size, as ops: linear, and each the other's transpose.

Dimensions are counted from behind, so that a batch in front changes nothing. Rules hold for
complex numbers as they stand: they give J^H g, the transpose of what an op does to real and imaginary parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leafgrad import op

if TYPE_CHECKING:
    from leafgrad.func import BatchedCall

TRANSPOSED: Final = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The scaling of the transpose, which runs in the other direction: each scales in the same direction as before."""


def complex_beside(dtype: Any) -> str:
    """The complex dtype beside one of real numbers."""
    return "complex64" if dtype == "float32" else "complex128"


@op("linear", "complex", "float", name="fft_complex")
def fft_complex(xp: Any, x: Any, *, dims: tuple[int, ...], inverse: bool, norm: str) -> Any:
    """The discrete Fourier transform along ``dims``, or its inverse. (...) -> (...) complex"""
    transform = xp.fft.ifftn if inverse else xp.fft.fftn
    return transform(x, axes=dims, norm=norm).astype(x.dtype, copy=False)


fft_complex.shape(lambda x: x.shape)
fft_complex.chunk(lambda call: call.aligned(whole=[*call.params["dims"]]))
fft_complex.vjp(
    x=lambda g, *, dims, inverse, norm: fft_complex(g, dims=dims, inverse=not inverse, norm=TRANSPOSED[norm])
)


def with_size(shape: tuple[int, ...], dim: int, n: int) -> tuple[int, ...]:
    """``shape`` with ``n`` elements in ``dim``, which is negative."""
    at = len(shape) + dim
    return (*shape[:at], n, *shape[at + 1 :])


def counts(xp: Any, n: int, dim: int, like: Any) -> Any:
    """How many of n coefficients each of the first n // 2 + 1 stands for, ready to broadcast: 1, 2, 2, ..., 2 or 1."""
    counts = xp.full((n // 2 + 1, *(1,) * (-dim - 1)), 2, dtype=like.real.dtype)
    counts[0] = 1
    if n % 2 == 0:
        counts[-1] = 1
    return counts


@op("linear", "complex", "float", name="fft_real")
def fft_real(xp: Any, x: Any, *, dim: int, norm: str, doubled: bool = False) -> Any:
    """The first n // 2 + 1 coefficients of the transform of real numbers along ``dim``.

    With ``doubled``, times how many coefficients each stands for. (..., n) -> (..., n // 2 + 1) complex for dim = -1
    """
    z = xp.fft.rfft(x, axis=dim, norm=norm).astype(complex_beside(x.dtype), copy=False)
    return z * counts(xp, x.shape[dim], dim, z) if doubled else z


@op("linear", "complex", "float", name="fft_real_inverse")
def fft_real_inverse(xp: Any, x: Any, *, n: int, dim: int, norm: str, halved: bool = False) -> Any:
    """The n real numbers with these n // 2 + 1 coefficients along ``dim``.

    With ``halved``, divided by how many coefficients each stands for. (..., n // 2 + 1) -> (..., n) real for dim = -1
    """
    z = x / counts(xp, n, dim, x) if halved else x
    return xp.fft.irfft(z, n, axis=dim, norm=norm).astype(x.real.dtype, copy=False)


@fft_real.shape
def _half(x: Any, *, dim: int) -> Any:
    """(..., n) -> (..., n // 2 + 1) for dim = -1"""
    return x.like(with_size(x.shape, dim, x.shape[dim] // 2 + 1), complex_beside(x.dtype))


fft_real_inverse.shape(
    lambda x, *, n, dim: x.like(with_size(x.shape, dim, n), "float32" if x.dtype == "complex64" else "float64")
)
fft_real.chunk(lambda call: call.aligned(whole=[call.params["dim"]]))
fft_real_inverse.chunk(lambda call: call.aligned(whole=[call.params["dim"]]))

fft_real.makes, fft_real_inverse.makes = "complex", "real"
fft_real.vjp(
    x=lambda g, x_shape, *, dim, norm, doubled: fft_real_inverse(
        g, n=x_shape[dim], dim=dim, norm=TRANSPOSED[norm], halved=not doubled
    )
)
fft_real_inverse.vjp(
    x=lambda g, *, n, dim, norm, halved: fft_real(g, dim=dim, norm=TRANSPOSED[norm], doubled=not halved)
)

OPS: Final = (fft_complex, fft_real, fft_real_inverse)


def _as_it_is(call: BatchedCall) -> Any:
    """On a batch: dimensions counted from behind are the same."""
    return call.again(call.args[0])


for _op in OPS:
    _op.batched(_as_it_is)

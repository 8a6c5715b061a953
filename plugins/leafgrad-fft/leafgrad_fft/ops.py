"""The transforms along dimensions of whole size, as ops: linear, and each the other's transpose.

A complex number is a pair, the last dimension of an array. Dimensions are counted from behind, -1 being the last
before the pair, so that a batch in front changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leafgrad import op

if TYPE_CHECKING:
    from leafgrad.func import BatchedCall

TRANSPOSED: Final = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The scaling of the transpose, which runs in the other direction: each scales in the same direction as before."""


def as_complex(xp: Any, x: Any) -> Any:
    """Pairs as complex numbers; float16 as complex64. (..., 2) -> (...)"""
    if x.shape[-1:] != (2,):
        raise ValueError(
            f"expected pairs, real and imaginary parts, in a last dimension of size 2, got shape {x.shape}"
        )
    x = x.astype("float32") if x.dtype == "float16" else x
    return xp.ascontiguousarray(x).view("complex64" if x.dtype == "float32" else "complex128")[..., 0]


def as_pairs(xp: Any, z: Any, dtype: Any) -> Any:
    """Complex numbers as pairs. (...) -> (..., 2)"""
    z = xp.ascontiguousarray(z)
    return z.view(z.real.dtype).reshape(*z.shape, 2).astype(dtype, copy=False)


@op("linear", "float", name="fft_complex")
def fft_complex(xp: Any, x: Any, *, dims: tuple[int, ...], inverse: bool, norm: str) -> Any:
    """The discrete Fourier transform along ``dims``, or its inverse. (..., 2) -> (..., 2)"""
    transform = xp.fft.ifftn if inverse else xp.fft.fftn
    return as_pairs(xp, transform(as_complex(xp, x), axes=dims, norm=norm), x.dtype)


fft_complex.shape(lambda x: x.shape)
fft_complex.chunk(lambda call: call.aligned(whole=[-1, *[d - 1 for d in call.params["dims"]]]))
fft_complex.vjp(
    x=lambda g, *, dims, inverse, norm: fft_complex(g, dims=dims, inverse=not inverse, norm=TRANSPOSED[norm])
)


def with_size(shape: tuple[int, ...], dim: int, n: int) -> tuple[int, ...]:
    """``shape`` with ``n`` elements in ``dim``, which is negative."""
    at = len(shape) + dim
    return (*shape[:at], n, *shape[at + 1 :])


def _counts(xp: Any, n: int, dim: int, like: Any) -> Any:
    """How many of n coefficients each of the first n // 2 + 1 stands for, ready to broadcast: 1, 2, 2, ..., 2 or 1."""
    counts = xp.full((n // 2 + 1, *(1,) * (-dim - 1)), 2, dtype=like.real.dtype)
    counts[0] = 1
    if n % 2 == 0:
        counts[-1] = 1
    return counts


@op("linear", "float", name="fft_real")
def fft_real(xp: Any, x: Any, *, dim: int, norm: str, doubled: bool = False) -> Any:
    """The first n // 2 + 1 coefficients of the transform of real numbers along ``dim``.

    With ``doubled``, times how many coefficients each stands for. (..., n) -> (..., n // 2 + 1, 2) for dim = -1
    """
    z = xp.fft.rfft(x.astype("float32") if x.dtype == "float16" else x, axis=dim, norm=norm)
    return as_pairs(xp, z * _counts(xp, x.shape[dim], dim, z) if doubled else z, x.dtype)


@op("linear", "float", name="fft_real_inverse")
def fft_real_inverse(xp: Any, x: Any, *, n: int, dim: int, norm: str, halved: bool = False) -> Any:
    """The n real numbers with these n // 2 + 1 coefficients along ``dim``.

    With ``halved``, divided by how many coefficients each stands for. (..., n // 2 + 1, 2) -> (..., n) for dim = -1
    """
    z = as_complex(xp, x)
    return xp.fft.irfft(z / _counts(xp, n, dim, z) if halved else z, n, axis=dim, norm=norm).astype(x.dtype, copy=False)


@fft_real.shape
def _half(x: Any, *, dim: int) -> Any:
    """(..., n) -> (..., n // 2 + 1, 2) for dim = -1"""
    return (*with_size(x.shape, dim, x.shape[dim] // 2 + 1), 2)


fft_real_inverse.shape(lambda x, *, n, dim: with_size(x.shape[:-1], dim, n))
fft_real.chunk(lambda call: call.aligned(whole=[call.params["dim"]]))
fft_real_inverse.chunk(lambda call: call.aligned(whole=[-1, call.params["dim"] - 1]))

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

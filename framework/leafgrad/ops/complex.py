"""Complex numbers: their parts, conjugates and angles, and what makes them of real ones.

Beside each op that is not holomorphic stands what its rule is by: L is a real loss and g = dL/dx + i dL/dy.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import conjugate
from leafgrad.ops.convert import to_dtype
from leafgrad.ops.define import op
from leafgrad.ops.elementwise import abs
from leafgrad.ops.runtime import runtime
from leafgrad.ops.select import where
from leafgrad.ops.shifted import shifted


@op("elementwise", "linear", "complex")
def conj(xp: Any, x: Any) -> Any:
    """The complex conjugate of x. (...) -> (...)"""
    return xp.conj(x)


conj.vjp(x=lambda g: conj(g))


@op("linear", "view", "complex", "any_dtype")
def real(xp: Any, x: Any) -> Any:
    """The real part of x, in its memory. (...) -> (...) real"""
    return x.real


@op("linear", "view", "complex", "any_dtype")
def imag(xp: Any, x: Any) -> Any:
    """The imaginary part of x, which is complex, in its memory. (...) -> (...) real"""
    return x.imag


@op("elementwise", "linear", "complex", "any_dtype")
def join(xp: Any, x: Any, y: Any) -> Any:
    """x + iy of real x and y of one dtype. (...), (...) -> (...) complex"""
    like = xp.copysign(x, y)  # of their shape, and in memory as the results of other elementwise ops
    out = xp.empty_like(like, dtype="complex128" if like.dtype == "float64" else "complex64")
    out.real[...], out.imag[...] = x, y
    return out


def _as_complex(g: Any) -> Any:
    kind = dtypes.of(getattr(g, "_data", g))
    return to_dtype(g, dtype=kind.to_complex().name, source=kind.name)


def kind(some: Any, dtype: Any) -> str | None:
    """The dtype for ``new_full`` of ``some``, a gradient, to make numbers that are complex as ``dtype`` is, or real.

    None where those of ``some`` are so already. ``dtype`` is that of a raw array.
    """
    found = dtypes.of(getattr(some, "_data", some))
    if found.is_complex is (dtype.kind == "c"):
        return None
    return (found.to_real() if found.is_complex else found.to_complex()).name


real.vjp(x=lambda g: _as_complex(g))
runtime.conj, runtime.real = conj, real
imag.vjp(x=lambda g: _as_complex(g) * 1j)
join.vjp(x=lambda g: real(g), y=lambda g: imag(g))


@op("linear", "view", "complex", "any_dtype")
def view_as_real(xp: Any, x: Any) -> Any:
    """Real and imaginary part along a last dimension, in the memory of x. (...) complex -> (..., 2)"""
    return x[..., None].view("float64" if x.dtype == "complex128" else "float32")


@op("linear", "view", "complex", "any_dtype")
def view_as_complex(xp: Any, x: Any) -> Any:
    """The last dimension, of size 2, as real and imaginary part, in the memory of x. (..., 2) -> (...) complex"""
    kind = "complex128" if x.dtype == "float64" else "complex64"
    if x.strides[-1] != x.itemsize or any(step % (2 * x.itemsize) for step in x.strides[:-1]):
        x = x.copy()  # it cannot share memory
    return x.view(kind)[..., 0]


view_as_real.vjp(x=lambda g: join(g[..., 0], g[..., 1]))
view_as_complex.vjp(x=lambda g: view_as_real(g))
for _op in (real, imag, view_as_real, view_as_complex):
    _op.batched(shifted())


@op("elementwise", "complex")
def sgn(xp: Any, x: Any) -> Any:
    """x over its absolute value, 0 at 0 and nan where that is infinite. (...) -> (...)"""
    size = xp.abs(x)
    whole = xp.where(size == 0, 1, xp.where(size == math.inf, math.nan, size))
    # NumPy's complex x / whole makes zeros positive.
    out = join.forward(xp, x.real / whole, x.imag / whole) if x.dtype.kind == "c" else x / whole
    return xp.where(size == 0, 0, out).astype(x.dtype)


def _sgn_x(g: Any, out: Any, x: Any) -> Any:
    """(g - out Re(conj(out) g)) / abs(x): what of g does not lead away from 0."""
    size = abs(x)
    rest = g - out * conjugate.real_part(conj(out) * g)
    return where(size == 0, 0, rest / where(size == 0, 1, size))


sgn.vjp(x=_sgn_x)


@op("elementwise", "complex", "float")
def angle(xp: Any, x: Any) -> Any:
    """The angle of x with the positive real axis, in [-pi, pi]; nan of what is nan. (...) -> (...) real"""
    if x.dtype.kind == "c":
        return xp.angle(x)
    return xp.where(xp.isnan(x), x, xp.where(x < 0, xp.pi, 0)).astype(x.dtype)


def _angle_x(g: Any, x: Any) -> Any:
    """i g x / abs(x)**2; 0 for real x, and at 0."""
    if not conjugate.is_complex(x):
        return g * 0
    size = real(x * conj(x))
    return where(size == 0, 0, _as_complex(g) * x * 1j / where(size == 0, 1, size))


angle.vjp(x=_angle_x)
abs.makes = angle.makes = "real"
join.makes = "complex"

"""Complex numbers: made, taken apart, and conjugated."""

from __future__ import annotations

from typing import Any

from leafgrad import dtypes
from leafgrad.ops import complex as complex_ops
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.methods import attach
from leafgrad.tensor.pointwise import sign
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


@public(out="cast")
def angle(input: Tensor) -> Tensor:
    """The angle with the positive real axis, in [-pi, pi]; nan stays. (...) -> (...) of a floating dtype"""
    return complex_ops.angle(expect_tensor(input, "input", "angle"))


@public(only="leafgrad")
def real(input: Tensor) -> Tensor:
    """The real part, a view; ``input`` itself if it is real. (...) -> (...)"""
    return complex_ops.real(input) if is_complex(input) else input


@public
@public(name="conj_physical", out="exact", inplace=True)
def conj(input: Tensor) -> Tensor:
    """The complex conjugate, in memory of its own; ``input`` itself if it is real. (...) -> (...)"""
    return complex_ops.conj(input) if is_complex(input) else input


@public(also="resolve_neg")
def resolve_conj(input: Tensor) -> Tensor:
    """``input``: conjugates are computed at once, never on reading. (...) -> (...)"""
    return expect_tensor(input, "input", "resolve_conj")


@public(only="leafgrad")
def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view. (...) -> (...). RuntimeError for a real tensor, as in PyTorch."""
    if is_complex(input):
        return complex_ops.imag(input)
    raise RuntimeError("imag is not implemented for tensors with non-complex dtypes; that of a real one is 0")


@public(also="is_neg")
def is_conj(input: Tensor) -> bool:
    """False: conjugates are computed at once, never on reading."""
    expect_tensor(input, "input", "is_conj")
    return False


@public
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex64 or complex128."""
    return dtypes.of(expect_tensor(input, "input", "is_complex")._data).is_complex


@public(only="leafgrad", out="exact")
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """``real + 1j * imag`` of two tensors of one dtype, float32 or float64. (...), (...) -> (...) complex

    Args:
        real, imag: tensors of one dtype.

    Raises:
        RuntimeError: another dtype, or two.
    """
    kinds = [expect_tensor(t, name, "complex").dtype for t, name in ((real, "real"), (imag, "imag"))]
    if kinds[0] is not kinds[1] or kinds[0] not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(
            "complex: Expected both inputs to be Float or Double tensors of one dtype but got "
            f"{kinds[0]} and {kinds[1]}"
        )
    return complex_ops.join(real, imag)


@public(only="leafgrad", out="exact")
@autocast("float32")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """``abs * exp(1j * angle)`` of two tensors of one dtype, float32 or float64. (...), (...) -> (...) complex

    Args:
        abs, angle: tensors of one dtype.
    """
    kinds = [expect_tensor(t, name, "polar").dtype for t, name in ((abs, "abs"), (angle, "angle"))]
    if kinds[0] is not kinds[1]:
        raise RuntimeError(f"polar: Expected abs and angle of one dtype but got {kinds[0]} and {kinds[1]}")
    return complex(abs * angle.cos(), abs * angle.sin())


@public(only="leafgrad")
def view_as_real(input: Tensor) -> Tensor:
    """The parts of a complex tensor along a last dimension, a view. (...) complex -> (..., 2)"""
    if not is_complex(input):
        raise RuntimeError(f"view_as_real is only supported for complex tensors, got {input.dtype}")
    return complex_ops.view_as_real(input)


@public(only="leafgrad")
@autocast("float32")
def view_as_complex(input: Tensor) -> Tensor:
    """The last dimension of float32 or float64 numbers as the two parts of complex ones, a view. (..., 2) -> (...)

    Raises:
        RuntimeError: another dtype, a last dimension that is not 2, or strides that do not allow it.
    """
    kind = expect_tensor(input, "input", "view_as_complex").dtype
    if kind not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"view_as_complex is only supported for float32 and float64 tensors, got {kind}")
    if not input.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions, the last of size 2")
    if input.shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, got size {list(input.shape)}")
    steps = input.stride()
    if input.numel() and steps[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1; call contiguous() first")
    if input.numel() and any(s % 2 for s in steps[:-1]):
        raise RuntimeError(
            f"Tensor must have a stride divisible by 2 for all but last dimension, got {steps}; call contiguous() first"
        )
    return complex_ops.view_as_complex(input)


@public(out="exact", inplace=True)
def sgn(input: Tensor) -> Tensor:
    """``input`` over its absolute value, 0 at 0; the sign of real numbers. (...) -> (...)"""
    return complex_ops.sgn(input) if is_complex(input) else sign(input)


def _set_part(part: Any) -> Any:
    """What ``x.real = value`` does: the part is written, in place."""

    def write(self: Tensor, value: Any) -> None:
        if value is not (view := part(self)):
            view.copy_(value) if isinstance(value, Tensor) else view.fill_(value)

    return write


attach("real", property(real, _set_part(real)))
attach("imag", property(imag, _set_part(imag)))
attach("mH", property(lambda self: conj(self.mT), doc="The last two dimensions exchanged, conjugated."))


def _H(input: Tensor) -> Tensor:
    if input.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {input.ndim}-D tensor.")
    return conj(input.mT)


attach("H", property(_H, doc="A matrix, transposed and conjugated. (n, m) -> (m, n)"))

"""Functions that are a few others put together: differences, integrals, membership, covariance and the like."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import complex as complex_ops, divisors, exponential, promotion
from leafgrad.ops.exponential import logaddexp
from leafgrad.ops.refuse import refuse
from leafgrad.tensor.arguments import cast, expect_floating, expect_tensor, integer, number, one_dim
from leafgrad.tensor.creation import inferred
from leafgrad.tensor.joining import cat
from leafgrad.tensor.methods import attach
from leafgrad.tensor.pointwise import clamp, isinf, sign
from leafgrad.tensor.public import public
from leafgrad.tensor.signatures import binary
from leafgrad.tensor.sorting import searchsorted, sort
from leafgrad.tensor.tensor import Tensor


@public(out="cast")
def angle(input: Tensor) -> Tensor:
    """The angle with the positive real axis, in [-pi, pi]; nan stays. (...) -> (...) of a floating dtype"""
    return complex_ops.angle(expect_tensor(input, "input", "angle"))


gcd = binary(divisors.gcd, out="cast", inplace=True)
lcm = binary(divisors.lcm, out="cast", inplace=True)


@public(only="leafgrad")
def clone(input: Tensor) -> Tensor:
    """A copy in memory of its own; gradients flow through it. (...) -> (...)"""
    return expect_tensor(input, "input", "clone").clone()


@public(only="leafgrad")
def detach(input: Tensor) -> Tensor:
    """The same memory as a tensor that does not require grad. (...) -> (...)"""
    return expect_tensor(input, "input", "detach").detach()


# ---- differences and integrals ------------------------------------------------------------------------------------


@public(out="cast")
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The ``n``-th differences of neighbours along ``dim``; != for bool. (..., m, ...) -> (..., m - n, ...)

    Args:
        prepend, append: tensors put before and after ``input`` along ``dim`` first, unless ``n`` is 0.

    Raises:
        RuntimeError: ``n`` is negative, or ``input`` has no dimension.
    """
    if not expect_tensor(input, "input", "diff").ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional, got a 0-d tensor")
    if integer(n, "n", "diff") < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    d = one_dim(input, dim, "diff")
    if n == 0:
        return input.clone()
    parts = [x for x in (prepend, input, append) if x is not None]
    result = cat(parts, d) if len(parts) > 1 else input
    for _ in range(min(n, result.shape[d])):
        later, earlier = result.narrow(d, 1, result.shape[d] - 1), result.narrow(d, 0, result.shape[d] - 1)
        result = later != earlier if result.dtype is dtypes.bool_ else later - earlier
    return result


def _areas(function: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> tuple[Tensor, int]:
    """The area under each pair of neighbours along ``dim``, and that dimension."""
    d = one_dim(expect_tensor(y, "y", function), dim, function)
    y = _floating(y, x)
    if not y.ndim:
        raise RuntimeError(f"{function}: expected y to have at least one dimension, got a 0-d tensor")
    n = max(y.shape[d] - 1, 0)
    means = (y.narrow(d, min(1, y.shape[d]), n) + y.narrow(d, 0, n)) * 0.5
    if x is None:
        return means * number(1 if dx is None else dx, "dx", function), d
    if dx is not None:
        raise TypeError(f"{function}(): expected one of x and dx, got both")
    if expect_tensor(x, "x", function).ndim == 1:
        if x.shape[0] != y.shape[d]:
            raise RuntimeError(f"{function}: There must be one x value for each sample point, got {x.shape[0]}")
        x = x.reshape([-1 if i == d else 1 for i in range(y.ndim)])
    return means * diff(_floating(x, y), dim=d - y.ndim), d


def _floating(x: Tensor, other: Tensor | None = None) -> Tensor:
    """Integers as floats, of the dtype of ``other`` if it has some, of which no sum and no difference wraps around."""
    if x.dtype.is_differentiable:
        return x
    kind = x.dtype if other is None else expect_tensor(other, "x", "trapezoid").dtype
    return x.to(kind if kind.is_differentiable else dtypes.get_default_dtype())


@public(only="leafgrad")
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral of ``y`` along ``dim`` by the trapezoidal rule. (..., n, ...) -> (..., ...)

    Args:
        x: where ``y`` was sampled, (n,) or broadcastable to ``y``.
        dx: the distance of the samples instead; 1 by default.

    Raises:
        RuntimeError: sizes do not go together. TypeError: both ``x`` and ``dx``.
    """
    areas, d = _areas("trapezoid", y, x, dx, dim)
    return areas.sum(d)


@public(only="leafgrad")
def trapz(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The same as ``trapezoid``."""
    return trapezoid(y, x, dx=dx, dim=dim)


@public(only="leafgrad")
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral of ``y`` up to each sample but the first. (..., n, ...) -> (..., n - 1, ...). As ``trapezoid``."""
    areas, d = _areas("cumulative_trapezoid", y, x, dx, dim)
    return areas.cumsum(d)


# ---- element by element -------------------------------------------------------------------------------------------


@public
def positive(input: Tensor) -> Tensor:
    """``input`` itself. RuntimeError for bool."""
    if expect_tensor(input, "input", "positive").dtype is dtypes.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported; convert it with .to(dtype)")
    return input


@public(also="special.logit", out="cast", inplace=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid. With ``eps``, x is first clamped to [eps, 1 - eps]. (...) -> (...)"""
    x = expect_tensor(input, "input", "logit")
    return exponential.logit(x, eps=None if eps is None else number(eps, "eps", "logit"))


@public(out="cast")
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """log2(2^input + 2^other), without overflow. (...), (...) -> (...)"""
    for name, x in (("input", input), ("other", other)):
        expect_floating(expect_tensor(x, name, "logaddexp2"), "logaddexp2", NotImplementedError)
    kind = promotion.result_type((input, other))
    return logaddexp(cast(input, kind) * math.log(2), cast(other, kind) * math.log(2)) / math.log(2)


@public(out="cast", inplace=True)
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """``input * 2**other``. (...), (...) -> (...), floating"""
    expect_tensor(input, "input", "ldexp")
    power = 2.0 ** expect_tensor(other, "other", "ldexp")
    return input * power


@public(out="exact")
def isposinf(input: Tensor) -> Tensor:
    """Whether elements are +inf. (...) -> (...) bool"""
    return isinf(expect_tensor(input, "input", "isposinf")) & (input > 0)


@public(out="exact")
def isneginf(input: Tensor) -> Tensor:
    """Whether elements are -inf. (...) -> (...) bool"""
    return isinf(expect_tensor(input, "input", "isneginf")) & (input < 0)


@public
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0. (...) -> (...) bool"""
    if expect_tensor(input, "input", "isreal").dtype.is_complex:
        return imag(input) == 0
    return (expect_tensor(input, "input", "isreal") == input) | (input != input)


@public(only="leafgrad", out="exact")
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each of ``elements`` is among ``test_elements``; not, with ``invert``. One of the two may be a number.

    Args:
        assume_unique: accepted; the result does not depend on it.
    """
    one = elements if isinstance(elements, Tensor) else expect_tensor(test_elements, "test_elements", "isin")
    x, among = (
        t if isinstance(t, Tensor) else one.new_full((), number(t, name, "isin"), dtype=inferred(t))
        for name, t in (("elements", elements), ("test_elements", test_elements))
    )
    if not among.numel():
        return x.new_full(x.shape, invert, dtype=dtypes.bool_)
    ordered = sort(among.reshape(-1)).values
    found: Tensor = ordered[clamp(searchsorted(ordered, x), max=ordered.shape[0] - 1)] == x
    return ~found if invert else found


# ---- covariance ---------------------------------------------------------------------------------------------------


@public
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Covariances of variables (rows) over observations (columns). (n, m) -> (n, n); (m) or (1, m) -> ()

    Args:
        correction: subtracted from the number of observations.
        fweights: how often each observation was made, integers. (m,)
        aweights: how much each observation counts. (m,)

    Raises:
        RuntimeError: more than two dimensions; weights that do not fit, are negative, or not of such a dtype.
    """
    if expect_tensor(input, "input", "cov").ndim > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got {input.ndim}")
    x = _floating(input)
    x = x if x.ndim == 2 else x.reshape(1, -1)
    taken = integer(correction, "correction", "cov")
    weights = _weights(x.shape[1], fweights, aweights)
    if weights is None:
        centered = x - x.mean(1, keepdim=True)
        return (centered @ conj(centered.mT) / max(x.shape[1] - taken, 0)).squeeze()
    total = weights.sum()
    centered = x - (x * weights).sum(1, keepdim=True) / total
    unit = 1 if aweights is None else (weights * aweights).sum() / total
    result: Tensor = (centered * weights) @ conj(centered.mT) / clamp(total - taken * unit, min=0)
    return result.squeeze()


def _weights(count: int, fweights: Tensor | None, aweights: Tensor | None) -> Tensor | None:
    """The product of the weights of ``count`` observations."""
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        whole = not expect_tensor(weights, name, "cov").dtype.is_floating_point
        if weights.ndim > 1 or weights.numel() != count:
            raise RuntimeError(f"cov(): expected {name} to have {count} elements, got shape {list(weights.shape)}")
        if whole is not (name == "fweights") or weights.dtype is dtypes.bool_:
            kind = "integral" if name == "fweights" else "floating point"
            raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {weights.dtype} dtype")
        refuse(weights < 0, error=RuntimeError, message=f"cov(): {name} cannot be negative")
    return fweights if aweights is None else aweights if fweights is None else fweights * aweights


@public
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlation of variables (rows) over observations (columns). (n, m) -> (n, n); (m) or (1, m) -> ()"""
    c = cov(input)
    if not c.ndim:
        return c / c
    deviation = c.diagonal().sqrt()
    return clamp(c / deviation.reshape(-1, 1) / deviation, -1, 1)


# ---- types --------------------------------------------------------------------------------------------------------


@public(only="leafgrad")
def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype in which arithmetic on two tensors or numbers would be done."""
    for name, value in (("tensor1", tensor1), ("tensor2", tensor2)):
        if not isinstance(value, Tensor):
            number(value, name, "result_type")
    return promotion.result_type((tensor1, tensor2))


@public(only="leafgrad")
def can_cast(from_: dtypes.dtype, to: dtypes.dtype) -> bool:
    """Whether promotion allows a conversion: to the same category (bool < integer < floating) or a higher one."""
    return dtypes.check(from_, "from_").category <= dtypes.check(to, "to").category


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


@public(only="leafgrad")
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """``real + 1j * imag`` of two tensors of one dtype, float32 or float64. (...), (...) -> (...) complex

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


@public(only="leafgrad")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """``abs * exp(1j * angle)`` of two tensors of one dtype, float32 or float64. (...), (...) -> (...) complex"""
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
def view_as_complex(input: Tensor) -> Tensor:
    """The last dimension of float32 or float64 numbers as the two parts of complex ones, a view. (..., 2) -> (...)

    Raises:
        RuntimeError: another dtype, a last dimension that is not 2, or strides that do not allow it.
    """
    kind = expect_tensor(input, "input", "view_as_complex").dtype
    if kind not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"view_as_complex is only supported for float32 and float64 tensors, got {kind}")
    if not input.ndim or input.shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, got size {list(input.shape)}")
    steps = input.stride()
    if input.numel() and (steps[-1] != 1 or any(s % 2 for s in steps[:-1])):
        raise RuntimeError(
            "Tensor must have a last dimension with stride 1, and others divisible by 2; call contiguous() first"
        )
    return complex_ops.view_as_complex(input)


@public(out="exact", inplace=True)
def sgn(input: Tensor) -> Tensor:
    """``input`` over its absolute value, 0 at 0; the sign of real numbers. (...) -> (...)"""
    return complex_ops.sgn(input) if is_complex(input) else sign(input)


@public
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same size."""
    return bool(
        expect_tensor(input, "input", "is_same_size").shape == expect_tensor(other, "other", "is_same_size").shape
    )


def _set_part(part: Any) -> Any:
    """What ``x.real = value`` does: the part is written, in place."""

    def write(self: Tensor, value: Any) -> None:
        if value is not (view := part(self)):
            view.copy_(value) if isinstance(value, Tensor) else view.fill_(value)

    return write


attach("real", property(real, _set_part(real)))
attach("imag", property(imag, _set_part(imag)))
attach("itemsize", property(lambda self: self.dtype.itemsize, doc="Bytes of one element."))
attach("nbytes", property(lambda self: self.numel() * self.dtype.itemsize, doc="Bytes of all elements."))
attach("mH", property(lambda self: conj(self.mT), doc="The last two dimensions exchanged, conjugated."))


def _H(input: Tensor) -> Tensor:
    if input.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {input.ndim}-D tensor.")
    return conj(input.mT if input.ndim else input)


attach("H", property(_H, doc="A matrix, transposed and conjugated. (n, m) -> (m, n)"))

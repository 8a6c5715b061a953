"""Functions that work element by element. Arguments broadcast; dtypes are promoted as in PyTorch."""

from __future__ import annotations

import math
from typing import Any, overload

from leafgrad import dtypes
from leafgrad.ops import (
    activation,
    compare,
    divisors,
    elementwise as ew,
    exponential,
    half,
    inverse_erf,
    narrow,
    rounding,
    select,
    special,
    trigonometric,
)
from leafgrad.ops.complex import view_as_complex, view_as_real
from leafgrad.ops.conjugate import is_complex
from leafgrad.ops.convert import new_full
from leafgrad.ops.marks import mark, shown_as
from leafgrad.ops.promotion import result_type, without_bools
from leafgrad.ops.scalars import as_number
from leafgrad.tensor.arguments import cast, expect_floating, expect_real, expect_tensor, integer, number
from leafgrad.tensor.creation import converted
from leafgrad.tensor.inplace import in_place
from leafgrad.tensor.methods import attach
from leafgrad.tensor.public import public
from leafgrad.tensor.signatures import binary, unary
from leafgrad.tensor.tensor import Tensor

# ---- ops that are public functions and methods as they are --------------------------------------------------------

abs = unary(ew.abs, also="absolute", out="exact", inplace=True)
exp = unary(exponential.exp, out="cast", inplace=True)
exp2 = unary(exponential.exp2, also="special.exp2", out="cast", inplace=True)
expm1 = unary(exponential.expm1, also="special.expm1", out="cast", inplace=True)
neg = unary(ew.neg, also="negative", out="exact", inplace=True)
copysign = binary(ew.copysign, out="cast", inplace=True)
hypot = binary(ew.hypot, out="cast", inplace=True)
logaddexp = binary(exponential.logaddexp, out="cast")
mul = binary(ew.mul, also="multiply", out="cast", inplace=True)
nextafter = binary(ew.nextafter, out="cast", inplace=True)
reciprocal = unary(ew.reciprocal, out="cast", inplace=True)
rsqrt = unary(ew.rsqrt, out="cast", inplace=True)
sign = unary(ew.sign, out="exact", inplace=True)
sqrt = unary(ew.sqrt, out="cast", inplace=True)
square = unary(ew.square, out="cast", inplace=True)
log = unary(exponential.log, out="cast", inplace=True)
log10 = unary(exponential.log10, out="cast", inplace=True)
log1p = unary(exponential.log1p, also="special.log1p", out="cast", inplace=True)
log2 = unary(exponential.log2, out="cast", inplace=True)
acos = unary(trigonometric.acos, also="arccos", out="cast", inplace=True)
acosh = unary(trigonometric.acosh, also="arccosh", out="cast", inplace=True)
cos = unary(trigonometric.cos, out="cast", inplace=True)
cosh = unary(trigonometric.cosh, out="cast", inplace=True)
asin = unary(trigonometric.asin, also="arcsin", out="cast", inplace=True)
asinh = unary(trigonometric.asinh, also="arcsinh", out="cast", inplace=True)
sin = unary(trigonometric.sin, out="cast", inplace=True)
sinh = unary(trigonometric.sinh, out="cast", inplace=True)
atan = unary(trigonometric.atan, also="arctan", out="cast", inplace=True)
atanh = unary(trigonometric.atanh, also="arctanh", out="cast", inplace=True)
tan = unary(trigonometric.tan, out="cast", inplace=True)
tanh = unary(trigonometric.tanh, out="cast", inplace=True)
atan2 = binary(trigonometric.atan2, also="arctan2", out="cast", inplace=True)
erf = unary(special.erf, also="special.erf", out="cast", inplace=True)
erfc = unary(special.erfc, name="erfc", also="special.erfc", out="cast", inplace=True)
erfinv = unary(inverse_erf.inverse_erf, name="erfinv", also="special.erfinv", out="cast", inplace=True)
relu = unary(activation.relu, inplace=True)
sigmoid = unary(exponential.sigmoid, also="special.expit", out="cast", inplace=True)
ceil = unary(rounding.ceil, out="exact", inplace=True)
floor = unary(rounding.floor, out="exact", inplace=True)
frac = unary(rounding.frac, out="exact", inplace=True)
trunc = unary(rounding.trunc, also="fix", out="exact", inplace=True)
floor_divide = binary(rounding.floor_divide, out="cast", inplace=True)
fmod = binary(rounding.fmod, out="cast", inplace=True)
remainder = binary(rounding.remainder, out="cast", inplace=True)
gcd = binary(divisors.gcd, out="cast", inplace=True)
lcm = binary(divisors.lcm, out="cast", inplace=True)
signbit = unary(compare.signbit, out="exact")
bitwise_not = unary(compare.bitwise_not, out="exact", inplace=True)
logical_not = unary(compare.logical_not, out="cast", inplace=True)
logical_and = binary(compare.logical_and, out="cast", inplace=True)
logical_or = binary(compare.logical_or, out="cast", inplace=True)
logical_xor = binary(compare.logical_xor, out="cast", inplace=True)
bitwise_and = binary(compare.bitwise_and, out="cast", inplace=True)
bitwise_or = binary(compare.bitwise_or, out="cast", inplace=True)
bitwise_xor = binary(compare.bitwise_xor, out="cast", inplace=True)
bitwise_left_shift = binary(compare.bitwise_left_shift, out="cast", inplace=True)
bitwise_right_shift = binary(compare.bitwise_right_shift, out="cast", inplace=True)


# ---- arithmetic with parameters -----------------------------------------------------------------------------------


@public(out="cast", inplace=True)
def add(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """``input + alpha * other``. (...), (...) -> (...)

    Raises:
        RuntimeError: shapes do not broadcast, or a float ``alpha`` with integer tensors.
    """
    if alpha != 1:
        return mark(_with_scaled(ew.add, input, other, alpha), "AddBackward0", input, other)
    result: Tensor = ew.add(input, other)
    return result


@public(also="subtract", out="cast", inplace=True)
def sub(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """``input - alpha * other``. (...), (...) -> (...). RuntimeError as for ``add``, and for bools."""
    if alpha != 1:
        return mark(_with_scaled(ew.sub, input, other, alpha), "SubBackward0", input, other)
    result: Tensor = ew.sub(input, other)
    return result


@public(only="leafgrad")
@shown_as("RsubBackward1")
def rsub(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """``other - alpha * input``. (...), (...) -> (...)"""
    return sub(other, input, alpha=alpha)


def _rounded(number: float, kind: dtypes.dtype) -> float:
    """The number of a dtype of 16 bits that is nearest to another one."""
    return half.nearest(number) if kind is dtypes.float16 else float(narrow.rounded(number))


def _with_scaled(op: Any, input: Any, other: Any, alpha: float) -> Any:
    kind = result_type(without_bools(op, (input, other)))
    if isinstance(alpha, float) and not kind.is_differentiable:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if kind in dtypes.REDUCED:  # rounded once, but for the numbers, which are of that dtype
        factor = _rounded(converted(alpha, kind, f"{op.name}: alpha"), kind)
        x, y = (cast(t, dtypes.float32) if isinstance(t, Tensor) else _rounded(t, kind) for t in (input, other))
        return cast(op(x, y * factor), kind)
    y = cast(other, kind) * alpha if isinstance(other, Tensor) else other * alpha
    return op(input, y if kind is not dtypes.bool_ else cast(y, kind) if isinstance(y, Tensor) else bool(y))


@public(also="divide", out="cast", inplace=True)
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """``input / other``. (...), (...) -> (...)

    Args:
        rounding_mode: None divides truly, integers as floats; ``"trunc"`` rounds towards zero, ``"floor"`` down,
            and both keep integers and have zero gradients.

    Raises:
        RuntimeError: shapes do not broadcast, another ``rounding_mode``, or integers divided by the number 0.
    """
    modes = {None: ew.div, "trunc": rounding.div_trunc, "floor": rounding.div_floor}
    if rounding_mode not in modes:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}"
        )
    result: Tensor = modes[rounding_mode](input, other)
    return result


@public(out="cast", inplace=True)
def true_divide(input: Any, other: Any) -> Tensor:
    """``input / other``, integers as floats. (...), (...) -> (...)"""
    result: Tensor = ew.div(input, other)
    return result


@public(out="cast", inplace=True)
def pow(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent``. (...), (...) -> (...)"""
    return ew.pow(input, exponent)


@public(out="exact", inplace=True)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 where ``input`` < 0, 1 where it is > 0, and ``values`` where it is 0; tensors of one dtype. It has no gradient.

    Raises:
        RuntimeError: the dtypes differ. TypeError: a number.
    """
    if expect_tensor(input, "input", "heaviside").dtype is not expect_tensor(values, "values", "heaviside").dtype:
        raise RuntimeError(f"heaviside: values: expected dtype {input.dtype}, like input's, got {values.dtype}")
    return ew.heaviside(input, values)


@public(out="exact", inplace=True)
def float_power(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent`` in float64, or complex128 of complex numbers. (...), (...) -> (...)"""
    kind = dtypes.complex128 if is_complex(input) or is_complex(exponent) else dtypes.float64
    double = [
        cast(a, kind) if isinstance(a, Tensor) else number(a, name, "float_power", kind.is_complex) * 1.0
        for a, name in ((input, "input"), (exponent, "exponent"))
    ]
    return ew.pow(*double)


@public(out="cast", inplace=True)
@shown_as("AddcmulBackward0", "input", "tensor1", "tensor2")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``. All broadcast."""
    kind, (x, y, z) = _in_one_dtype(input, tensor1, tensor2, value, "addcmul")
    result = x + (y * z if value == 1 else y * z * value)
    return cast(result, kind) if kind in dtypes.REDUCED else result


@public(out="cast", inplace=True)
@shown_as("AddcdivBackward0", "input", "tensor1", "tensor2")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``. All broadcast. RuntimeError if both are integers."""
    for name, t in (("tensor1", tensor1), ("tensor2", tensor2)):
        expect_tensor(t, name, "addcdiv")
    if not (tensor1.dtype.is_differentiable or tensor2.dtype.is_differentiable):
        raise RuntimeError(
            "addcdiv: Integer division with addcdiv is no longer supported; expected floating tensors, got "
            f"{tensor1.dtype} and {tensor2.dtype}; convert one with .float()"
        )
    kind, (x, y, z) = _in_one_dtype(input, tensor1, tensor2, value, "addcdiv")
    result = x + (y / z if value == 1 else y / z * value)
    return cast(result, kind) if kind in dtypes.REDUCED else result


def _in_one_dtype(input: Any, tensor1: Any, tensor2: Any, value: float, function: str) -> tuple[Any, list[Tensor]]:
    """The dtype in which three tensors meet, and they in it (16 bits in float32): nothing is rounded on the way."""
    given = ("input", input), ("tensor1", tensor1), ("tensor2", tensor2)
    tensors = [t if isinstance(t, Tensor) else expect_tensor(t, name, function) for name, t in given]
    kind, second, third = [dtypes.of(t._data) for t in tensors]
    if not (kind is second is third and kind.is_floating_point):
        kind = result_type(tuple(tensors))
    if kind is dtypes.bool_:
        raise NotImplementedError(f"{function}: expected integers or floats, got bools; convert one with .long()")
    if isinstance(value, float) and not kind.is_differentiable:
        raise RuntimeError("For integral input tensors, argument value must not be a floating point number.")
    wide = dtypes.float32 if kind in dtypes.REDUCED else kind
    return kind, [cast(t, wide) for t in tensors]


@public(out="cast", inplace=True)
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """``input + weight * (end - input)``, exact at both ends. (...), (...), (...) -> (...), floating

    Args:
        weight: a number, or a tensor of the same dtype.

    Raises:
        RuntimeError: the dtypes differ, or shapes do not broadcast. NotImplementedError: integers.
    """
    if not expect_tensor(input, "input", "lerp").dtype.is_complex:
        expect_floating(input, "lerp", NotImplementedError)
    for name, t in (("end", expect_tensor(end, "end", "lerp")), ("weight", weight)):
        if isinstance(t, Tensor) and t.dtype is not input.dtype and (t.ndim or name == "end"):
            raise RuntimeError(f"lerp: {name}: expected dtype {input.dtype}, like input's, got {t.dtype}")
    w = weight if isinstance(weight, Tensor) else number(weight, "weight", "lerp", input.dtype.is_complex)
    return ew.lerp(input, end, w)


@public(out="cast", inplace=True)
@shown_as("Deg2RadBackward0")
def deg2rad(input: Tensor) -> Tensor:
    """Degrees to radians. (...) -> (...)"""
    return expect_real(expect_tensor(input, "input", "deg2rad"), "deg2rad") * (math.pi / 180)


@public(out="cast", inplace=True)
@shown_as("Rad2DegBackward0")
def rad2deg(input: Tensor) -> Tensor:
    """Radians to degrees. (...) -> (...)"""
    return expect_real(expect_tensor(input, "input", "rad2deg"), "rad2deg") * (180 / math.pi)


@public(also="special.sinc", out="cast", inplace=True)
def sinc(input: Tensor) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0. (...) -> (...)"""
    return special.sinc(expect_tensor(input, "input", "sinc"))


@public(also="special.xlogy", out="cast", inplace=True)
def xlogy(input: Any, other: Any) -> Tensor:
    """``input * log(other)``, and 0 where ``input`` is 0 unless ``other`` is nan. (...), (...) -> (...)"""
    result: Tensor = exponential.xlogy(*both_tensors(input, other, "xlogy"))
    return result


def both_tensors(x: Any, y: Any, function: str) -> tuple[Any, Any]:
    """Numbers as 0-d tensors of the dtype that they and the other make."""
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return x, y
    like = x if isinstance(x, Tensor) else expect_tensor(y, "other", function)
    kind = result_type((x, y))
    x, y = (
        a if isinstance(a, Tensor) else new_full(like, shape=(), value=number(a, "other", function), dtype=kind.name)
        for a in (x, y)
    )
    return x, y


# ---- choosing and rounding ----------------------------------------------------------------------------------------


@public(also="clip", out="cast", inplace=True)
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """``input``, but at least ``min`` and at most ``max``. (...) -> (...)

    Args:
        min, max: numbers, tensors that broadcast, or None for no bound; not both None. If min > max, max wins.

    Raises:
        RuntimeError: both bounds are None.
    """
    expect_tensor(input, "input", "clamp")
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    return select.clamp.function(input, min, max)


@public(out="cast", inplace=True)
@shown_as("ClampMinBackward0")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """``input``, but at least ``min``, a number or a tensor. (...) -> (...)"""
    return clamp(input, min)


@public(out="cast", inplace=True)
@shown_as("ClampMaxBackward0")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """``input``, but at most ``max``, a number or a tensor. (...) -> (...)"""
    return clamp(input, None, max)


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Any, other: Any) -> Tensor: ...
@public(only="leafgrad", out="exact")
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """``input`` where ``condition`` holds, else ``other``. All broadcast.

    Args:
        condition: bool tensor.
        input, other: tensors or numbers. Without both, ``where(condition)`` is ``nonzero(condition, as_tuple=True)``.

    Raises:
        RuntimeError: ``condition`` is not bool, or shapes do not broadcast. TypeError: one of the two is missing.
    """
    if (input is None) != (other is None):
        raise TypeError("where(): expected where(condition) or where(condition, input, other), got two arguments")
    if input is None:
        return condition.nonzero(as_tuple=True)
    if expect_tensor(condition, "condition", "where")._data.dtype.kind != "b":
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}; "
            "compare it, e.g. condition != 0"
        )
    if isinstance(input, Tensor) and isinstance(other, Tensor) and input._data.dtype is other._data.dtype:
        return select.where.function(condition, input, other)
    kind = result_type((input, other))
    input, other = (a if isinstance(a, Tensor) else as_number(a) for a in (input, other))
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        input = new_full(condition, shape=(), value=input, dtype=kind.name)
    pair = (input, "input"), (other, "other")
    x, y = (cast(a, kind) if isinstance(a, Tensor) else _fitting(a, kind, name) for a, name in pair)
    return select.where.function(condition, x, y)


def _fitting(value: Any, kind: dtypes.dtype, name: str) -> Any:
    """A number that a dtype can hold, else a RuntimeError: where() of NumPy would wrap it."""
    if kind.category == 1 and not dtypes.iinfo(kind).min <= value <= dtypes.iinfo(kind).max:
        raise RuntimeError(f"where: {name}: value cannot be converted to type {kind} without overflow, got {value}")
    return value


attach("where", lambda self, condition, other: where(condition, self, other))


@public(also="special.round", out="exact", inplace=True)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """``input`` rounded to ``decimals`` places, halves to the even neighbour. (...) -> (...)"""
    decimals = integer(decimals, "decimals", "round")
    return rounding.round(expect_tensor(input, "input", "round"), decimals=decimals)


@public(out="exact", inplace=True)
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """``input`` with nan and infinities replaced. (...) -> (...)

    Args:
        nan: in place of nan; 0 by default.
        posinf, neginf: in place of inf and -inf; by default the largest and smallest number of the dtype.
    """
    x = expect_tensor(input, "input", "nan_to_num")
    if x.dtype.is_complex:
        return view_as_complex(nan_to_num(view_as_real(x), nan, posinf, neginf))
    return select.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


# ---- activations that PyTorch has at the top; the others are in nn.functional -------------------------------------


@public(only="leafgrad")
def selu(input: Tensor) -> Tensor:
    """Scaled elu of self-normalising networks (Klambauer et al. 2017). (...) -> (...)"""
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return activation.elu(expect_tensor(input, "input", "selu"), alpha=alpha, scale=scale)


@public(only="leafgrad")
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """max(x, 0) + min(alpha expm1(x / alpha), 0), smooth at 0. (...) -> (...)"""
    if not alpha:
        raise RuntimeError("ZeroDivisionError: celu(): alpha: expected a number other than 0")
    return activation.elu(expect_tensor(input, "input", "celu"), alpha=alpha, scale=1.0, input_scale=1 / alpha)


# ---- put together of others -----------------------------------------------------------------------------------------


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


# ---- in-place operators of Python ----------------------------------------------------------------------------------

_OPERATORS: dict[str, Any] = {
    "__iadd__": ew.add, "__isub__": ew.sub, "__imul__": mul, "__itruediv__": ew.div, "__ifloordiv__": floor_divide,
    "__imod__": remainder, "__ipow__": pow, "__iand__": bitwise_and, "__ior__": bitwise_or, "__ixor__": bitwise_xor,
    "__ilshift__": bitwise_left_shift, "__irshift__": bitwise_right_shift,
}  # fmt: skip
for _name, _op in _OPERATORS.items():
    attach(_name, in_place(_op, _name), module=__name__)

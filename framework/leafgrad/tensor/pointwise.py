"""Functions that work element by element. Arguments broadcast; dtypes are promoted as in PyTorch."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import (
    activation,
    compare,
    elementwise as ew,
    exponential,
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
from leafgrad.tensor.arguments import cast, expect_differentiable, expect_real, expect_tensor, integer, number
from leafgrad.tensor.inplace import in_place
from leafgrad.tensor.methods import attach, method
from leafgrad.tensor.signatures import binary, unary
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "addcdiv", "addcmul", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "celu",
    "clamp", "clamp_max", "clamp_min", "clip", "copysign", "cos", "cosh", "deg2rad", "div", "divide", "eq",
    "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "float_power", "floor", "floor_divide", "fmax", "fmin",
    "fmod", "frac", "ge", "greater", "greater_equal", "gt", "heaviside", "hypot", "isfinite",
    "isinf", "isnan", "le", "lerp", "less", "less_equal", "log", "log1p", "log2", "log10", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "maximum", "minimum", "mul", "multiply",
    "nan_to_num", "ne", "neg", "negative", "nextafter", "not_equal", "pow", "rad2deg", "reciprocal", "relu",
    "remainder", "round", "rsqrt", "rsub", "selu", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sqrt",
    "square", "sub", "subtract", "tan", "tanh", "true_divide", "trunc", "where", "xlogy",
]  # fmt: skip

# ---- ops that are public functions and methods as they are --------------------------------------------------------

abs, exp, exp2, expm1, neg = unary(ew.abs, exponential.exp, exponential.exp2, exponential.expm1, ew.neg)
copysign, hypot, logaddexp, mul = binary(ew.copysign, ew.hypot, exponential.logaddexp, ew.mul)
(nextafter,) = binary(ew.nextafter)
reciprocal, rsqrt, sign, sqrt, square = unary(ew.reciprocal, ew.rsqrt, ew.sign, ew.sqrt, ew.square)
log, log10, log1p, log2 = unary(exponential.log, exponential.log10, exponential.log1p, exponential.log2)
acos, acosh, cos, cosh = unary(trigonometric.acos, trigonometric.acosh, trigonometric.cos, trigonometric.cosh)
asin, asinh, sin, sinh = unary(trigonometric.asin, trigonometric.asinh, trigonometric.sin, trigonometric.sinh)
atan, atanh, tan, tanh = unary(trigonometric.atan, trigonometric.atanh, trigonometric.tan, trigonometric.tanh)
(atan2,) = binary(trigonometric.atan2)
erf, erfc, erfinv = unary(special.erf, special.erfc, inverse_erf.inverse_erf)
relu, sigmoid = unary(activation.relu, exponential.sigmoid)
ceil, floor, frac, trunc = unary(rounding.ceil, rounding.floor, rounding.frac, rounding.trunc)
floor_divide, fmod, remainder = binary(rounding.floor_divide, rounding.fmod, rounding.remainder)
fmax, fmin, maximum, minimum = binary(select.fmax, select.fmin, select.maximum, select.minimum)
eq, ge, gt, le, lt, ne = binary(compare.eq, compare.ge, compare.gt, compare.le, compare.lt, compare.ne)
isfinite, isinf, isnan, signbit = unary(compare.isfinite, compare.isinf, compare.isnan, compare.signbit)
bitwise_not, logical_not = unary(compare.bitwise_not, compare.logical_not)
logical_and, logical_or, logical_xor = binary(compare.logical_and, compare.logical_or, compare.logical_xor)
bitwise_and, bitwise_or, bitwise_xor = binary(compare.bitwise_and, compare.bitwise_or, compare.bitwise_xor)
bitwise_left_shift, bitwise_right_shift = binary(compare.bitwise_left_shift, compare.bitwise_right_shift)

_METHODS = [
    abs, acos, acosh, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or,
    bitwise_right_shift, bitwise_xor, ceil, copysign, cos, cosh, eq, erf, exp, exp2, expm1, floor, floor_divide, fmax,
    fmin, fmod, frac, ge, gt, hypot, isfinite, isinf, isnan, le, log, log10, log1p, log2, logaddexp,
    logical_and, logical_not, logical_or, logical_xor, lt, maximum, minimum, mul, ne, neg, nextafter, reciprocal, relu,
    remainder, rsqrt, sigmoid, sign, signbit, sin, sinh, sqrt, square, tan, tanh, trunc,
]  # fmt: skip

for _op in _METHODS:
    attach(_op.name, _op.function)
attach("erfc", erfc.function)
attach("erfinv", erfinv.function)

# ---- arithmetic with parameters -----------------------------------------------------------------------------------


@method
def add(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """``input + alpha * other``. (...), (...) -> (...)

    Raises:
        RuntimeError: shapes do not broadcast, or a float ``alpha`` with integer tensors.
    """
    if alpha != 1:
        return mark(_with_scaled(ew.add, input, other, alpha), "AddBackward0", input, other)
    result: Tensor = ew.add(input, other)
    return result


@method
def sub(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """``input - alpha * other``. (...), (...) -> (...). RuntimeError as for ``add``, and for bools."""
    if alpha != 1:
        return mark(_with_scaled(ew.sub, input, other, alpha), "SubBackward0", input, other)
    result: Tensor = ew.sub(input, other)
    return result


@method
@shown_as("RsubBackward1")
def rsub(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """``other - alpha * input``. (...), (...) -> (...)"""
    return sub(other, input, alpha=alpha)


def _with_scaled(op: Any, input: Any, other: Any, alpha: float) -> Any:
    kind = result_type(without_bools(op, (input, other)))
    if isinstance(alpha, float) and not kind.is_differentiable:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if kind is dtypes.bfloat16:  # rounded once
        x, y = (cast(t, dtypes.float32) if isinstance(t, Tensor) else t for t in (input, other))
        return cast(op(x, y * narrow.rounded(alpha)), kind)
    return op(input, other * alpha)


@method
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


@method
def true_divide(input: Any, other: Any) -> Tensor:
    """``input / other``, integers as floats. (...), (...) -> (...)"""
    result: Tensor = ew.div(input, other)
    return result


@method
def pow(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent``. (...), (...) -> (...)"""
    result: Tensor = ew.pow(input, exponent)
    return result


@method
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 where ``input`` < 0, 1 where it is > 0, and ``values`` where it is 0; tensors of one dtype. It has no gradient.

    Raises:
        RuntimeError: the dtypes differ. TypeError: a number.
    """
    if expect_tensor(input, "input", "heaviside").dtype is not expect_tensor(values, "values", "heaviside").dtype:
        raise RuntimeError(f"heaviside: values: expected dtype {input.dtype}, like input's, got {values.dtype}")
    result: Tensor = ew.heaviside(input, values)
    return result


@method
def float_power(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent`` in float64, or complex128 of complex numbers. (...), (...) -> (...)"""
    kind = dtypes.complex128 if is_complex(input) or is_complex(exponent) else dtypes.float64
    double = [
        cast(a, kind) if isinstance(a, Tensor) else number(a, name, "float_power", kind.is_complex) * 1.0
        for a, name in ((input, "input"), (exponent, "exponent"))
    ]
    result: Tensor = ew.pow(*double)
    return result


@method
@shown_as("AddcmulBackward0", "input", "tensor1", "tensor2")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``. All broadcast."""
    kind, (x, y, z) = _in_one_dtype(input, tensor1, tensor2, value, "addcmul")
    result: Tensor = x + (y * z if value == 1 else y * z * value)
    return cast(result, kind) if kind is dtypes.bfloat16 else result


@method
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
    result: Tensor = x + (y / z if value == 1 else y / z * value)
    return cast(result, kind) if kind is dtypes.bfloat16 else result


def _in_one_dtype(input: Any, tensor1: Any, tensor2: Any, value: float, function: str) -> tuple[Any, list[Tensor]]:
    """The dtype in which three tensors meet, and they in it (bfloat16 in float32): nothing is rounded on the way."""
    given = ("input", input), ("tensor1", tensor1), ("tensor2", tensor2)
    tensors = [expect_tensor(t, name, function) for name, t in given]
    kind = result_type(tuple(tensors))
    if kind is dtypes.bool_:
        raise NotImplementedError(f"{function}: expected integers or floats, got bools; convert one with .long()")
    if isinstance(value, float) and not kind.is_differentiable:
        raise RuntimeError("For integral input tensors, argument value must not be a floating point number.")
    wide = dtypes.float32 if kind is dtypes.bfloat16 else kind
    return kind, [cast(t, wide) for t in tensors]


@method
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """``input + weight * (end - input)``, exact at both ends. (...), (...), (...) -> (...), floating

    Args:
        weight: a number, or a tensor of the same dtype.

    Raises:
        RuntimeError: the dtypes differ, or shapes do not broadcast. NotImplementedError: integers.
    """
    expect_differentiable(expect_tensor(input, "input", "lerp"), "lerp", NotImplementedError)
    for name, t in (("end", expect_tensor(end, "end", "lerp")), ("weight", weight)):
        if isinstance(t, Tensor) and t.dtype is not input.dtype and (t.ndim or name == "end"):
            raise RuntimeError(f"lerp: {name}: expected dtype {input.dtype}, like input's, got {t.dtype}")
    w = weight if isinstance(weight, Tensor) else number(weight, "weight", "lerp", input.dtype.is_complex)
    result: Tensor = ew.lerp(input, end, w)
    return result


@method
@shown_as("Deg2RadBackward0")
def deg2rad(input: Tensor) -> Tensor:
    """Degrees to radians. (...) -> (...)"""
    result: Tensor = expect_real(expect_tensor(input, "input", "deg2rad"), "deg2rad") * (math.pi / 180)
    return result


@method
@shown_as("Rad2DegBackward0")
def rad2deg(input: Tensor) -> Tensor:
    """Radians to degrees. (...) -> (...)"""
    result: Tensor = expect_real(expect_tensor(input, "input", "rad2deg"), "rad2deg") * (180 / math.pi)
    return result


@method
def sinc(input: Tensor) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0. (...) -> (...)"""
    result: Tensor = special.sinc(expect_tensor(input, "input", "sinc"))
    return result


@method
def xlogy(input: Any, other: Any) -> Tensor:
    """``input * log(other)``, and 0 where ``input`` is 0 unless ``other`` is nan. (...), (...) -> (...)"""
    result: Tensor = exponential.xlogy(*_both_tensors(input, other, "xlogy"))
    return result


def _both_tensors(x: Any, y: Any, function: str) -> tuple[Any, Any]:
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


@method
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
    result: Tensor = select.clamp.function(input, min, max)
    return result


@method
@shown_as("ClampMinBackward0")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """``input``, but at least ``min``, a number or a tensor. (...) -> (...)"""
    return clamp(input, min)


@method
@shown_as("ClampMaxBackward0")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """``input``, but at most ``max``, a number or a tensor. (...) -> (...)"""
    return clamp(input, None, max)


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
    if not isinstance(condition, Tensor):
        expect_tensor(condition, "condition", "where")
    if dtypes.of(condition._data) is not dtypes.bool_:
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}; "
            "compare it, e.g. condition != 0"
        )
    if isinstance(input, Tensor) and isinstance(other, Tensor) and input._data.dtype is other._data.dtype:
        return select.where.function(condition, input, other)
    kind = result_type((input, other))
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


@method
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """``input`` rounded to ``decimals`` places, halves to the even neighbour. (...) -> (...)"""
    decimals = integer(decimals, "decimals", "round")
    result: Tensor = rounding.round(expect_tensor(input, "input", "round"), decimals=decimals)
    return result


@method
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
    result: Tensor = select.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)
    return result


# ---- activations that PyTorch has at the top; the others are in nn.functional -------------------------------------


def selu(input: Tensor) -> Tensor:
    """Scaled elu of self-normalising networks (Klambauer et al. 2017). (...) -> (...)"""
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    result: Tensor = activation.elu(expect_tensor(input, "input", "selu"), alpha=alpha, scale=scale)
    return result


def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """max(x, 0) + min(alpha expm1(x / alpha), 0), smooth at 0. (...) -> (...)"""
    if not alpha:
        raise RuntimeError("ZeroDivisionError: celu(): alpha: expected a number other than 0")
    x = expect_tensor(input, "input", "celu")
    result: Tensor = activation.elu(x, alpha=alpha, scale=1.0, input_scale=1 / alpha)
    return result


# ---- other names, and in-place variants ---------------------------------------------------------------------------

_ALIASES: dict[str, Any] = {
    "absolute": abs, "arccos": acos, "arccosh": acosh, "arcsin": asin, "arcsinh": asinh, "arctan": atan,
    "arctan2": atan2, "arctanh": atanh, "clip": clamp, "divide": div, "fix": trunc, "greater": gt,
    "greater_equal": ge, "less": lt, "less_equal": le, "multiply": mul, "negative": neg, "not_equal": ne,
    "subtract": sub,
}  # fmt: skip
absolute, arccos, arccosh, arcsin, arcsinh = abs, acos, acosh, asin, asinh
arctan, arctan2, arctanh = atan, atan2, atanh
clip, divide, fix, greater, greater_equal, less, less_equal = clamp, div, trunc, gt, ge, lt, le
multiply, negative, not_equal, subtract = mul, neg, ne, sub

for _name, _function in _ALIASES.items():
    attach(_name, getattr(_function, "function", _function))

_IN_PLACE = """
    abs absolute acos acosh add addcdiv addcmul arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan
    atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp
    clamp_max clamp_min clip copysign cos cosh deg2rad div divide eq erf erfc erfinv exp exp2 expm1 fix float_power
    floor floor_divide fmod frac ge greater greater_equal gt heaviside hypot le lerp less less_equal log log10 log1p
    log2 logical_and logical_not logical_or logical_xor lt mul multiply nan_to_num ne neg negative nextafter not_equal
    pow rad2deg reciprocal relu remainder round rsqrt sigmoid sign sin sinc sinh sqrt square sub subtract tan tanh
    true_divide trunc xlogy
""".split()


_OPERATORS: dict[str, Any] = {
    "__iadd__": ew.add, "__isub__": ew.sub, "__imul__": mul, "__itruediv__": ew.div, "__ifloordiv__": floor_divide,
    "__imod__": remainder, "__ipow__": pow, "__iand__": bitwise_and, "__ior__": bitwise_or, "__ixor__": bitwise_xor,
    "__ilshift__": bitwise_left_shift, "__irshift__": bitwise_right_shift,
}  # fmt: skip
for _name, _op in (_OPERATORS | {f"{name}_": globals()[name] for name in _IN_PLACE}).items():
    attach(_name, in_place(_op, _name))

"""Operators that work element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import leafgrad
from leafgrad.nn import functional as F
from leafgrad_onnx.errors import OnnxLoadError
from leafgrad_onnx.operators.registry import met, operator
from leafgrad_onnx.types import NAME

PLAIN = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan",
    "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor",
    "IsNaN": "isnan", "Log": "log", "Neg": "neg", "Not": "logical_not", "Reciprocal": "reciprocal",
    "Relu": "relu", "Round": "round", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh",
    "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh", "BitwiseNot": "bitwise_not", "Det": "det",
}  # fmt: skip
PAIRS = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor",
    "Equal": "eq", "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge",
    "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
}  # fmt: skip


def plain(name: str) -> Any:
    function = getattr(leafgrad, name)
    return lambda x: function(x)


def pair(name: str) -> Any:
    function = getattr(leafgrad, name)

    def run(x: Any, y: Any, *, axis: int | None = None, broadcast: int = 0) -> Any:
        if axis is not None and broadcast:  # of opsets before 7: y's dimensions are x's from axis on
            y = y.reshape(*y.shape, *(1,) * (x.ndim - axis - y.ndim))
        return function(*met(x, y))

    return run


for _onnx, _name in PLAIN.items():
    operator(_onnx)(plain(_name))
for _onnx, _name in PAIRS.items():
    operator(_onnx)(pair(_name))


@operator("Div")
def div(x: Any, y: Any) -> Any:
    met(x, y)
    if x.dtype.is_floating_point:
        return x / y
    return leafgrad.div(x, y, rounding_mode="trunc").to(x.dtype)


@operator("Mod")
def mod(x: Any, y: Any, *, fmod: int = 0) -> Any:
    met(x, y)
    return leafgrad.fmod(x, y) if fmod else leafgrad.remainder(x, y)


@operator("Pow")
def power(x: Any, y: Any) -> Any:
    met(x, y)
    if x.dtype != y.dtype and not x.dtype.is_floating_point and y.dtype.is_floating_point:
        return (x.to(leafgrad.float64) ** y.to(leafgrad.float64)).to(x.dtype)
    return x ** y.to(x.dtype)


def folded(function: Any) -> Any:
    def run(*xs: Any) -> Any:
        found = xs[0]
        for x in xs[1:]:
            met(found, x)
            found = function(found, x)
        return found.clone() if len(xs) == 1 else found

    return run


operator("Max")(folded(leafgrad.maximum))
operator("Min")(folded(leafgrad.minimum))
operator("Sum")(folded(leafgrad.add))


@operator("Mean")
def mean(*xs: Any) -> Any:
    return folded(leafgrad.add)(*xs) / len(xs)


@operator("Where")
def where(condition: Any, x: Any, y: Any) -> Any:
    met(condition, x, y)
    return leafgrad.where(condition, x, y)


@operator("IsInf")
def isinf(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    found = leafgrad.isinf(x)
    if not detect_negative:
        found = found & (x > 0)
    return found if detect_positive else found & (x < 0)


@operator("Clip")
def clip(x: Any, low: Any = None, high: Any = None, *, min: float | None = None, max: float | None = None) -> Any:
    for bound, greater in ((low if low is not None else min, True), (high if high is not None else max, False)):
        if bound is None:
            continue
        bound = bound if hasattr(bound, "dtype") else leafgrad.tensor(bound, dtype=x.dtype)
        x = leafgrad.maximum(x, bound) if greater else leafgrad.minimum(x, bound)
    return x


@operator("Cast")
def cast(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    if to not in NAME:
        raise OnnxLoadError(f"leafgrad has no dtype like number {to} of ONNX's")
    return x.to(getattr(leafgrad, NAME[to]))


@operator("CastLike")
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return x.to(like.dtype)


@operator("BitShift")
def bit_shift(x: Any, y: Any, *, direction: str) -> Any:
    return leafgrad.bitwise_left_shift(x, y) if direction == "LEFT" else leafgrad.bitwise_right_shift(x, y)


# ---- activations --------------------------------------------------------------------------------------------------


@operator("LeakyRelu")
def leaky_relu(x: Any, *, alpha: float = 0.01) -> Any:
    return F.leaky_relu(x, alpha)


@operator("Elu")
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    return F.elu(x, alpha)


@operator("Celu")
def celu(x: Any, *, alpha: float = 1.0) -> Any:
    return F.celu(x, alpha)


@operator("Selu")
def selu(x: Any, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Any:
    return leafgrad.where(x > 0, x * gamma, (leafgrad.exp(x) * alpha - alpha) * gamma)


@operator("PRelu")
def prelu(x: Any, slope: Any) -> Any:
    met(x, slope)
    return leafgrad.where(x < 0, x * slope, x)


@operator("Gelu")
def gelu(x: Any, *, approximate: str = "none") -> Any:
    return F.gelu(x, approximate=approximate)


@operator("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return (x * alpha + beta).clamp(0, 1)


@operator("HardSwish")
def hard_swish(x: Any) -> Any:
    return F.hardswish(x)


@operator("Softplus")
def softplus(x: Any) -> Any:
    return leafgrad.logaddexp(x, leafgrad.zeros_like(x))


@operator("Softsign")
def softsign(x: Any) -> Any:
    return x / (1 + x.abs())


@operator("Mish")
def mish(x: Any) -> Any:
    return F.mish(x)


@operator("Swish")
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    return x * leafgrad.sigmoid(x * alpha)


@operator("ThresholdedRelu")
def thresholded_relu(x: Any, *, alpha: float = 1.0) -> Any:
    return leafgrad.where(x > alpha, x, leafgrad.zeros_like(x))


@operator("Shrink")
def shrink(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    zero = leafgrad.zeros_like(x)
    return leafgrad.where(x < -lambd, x + bias, leafgrad.where(x > lambd, x - bias, zero)).to(x.dtype)


def along(function: Any) -> Any:
    """A softmax; before opset 13 over all dimensions from ``axis`` on."""

    def run(x: Any, *, axis: int | None = None, opset: int) -> Any:
        if opset >= 13:
            return function(x, -1 if axis is None else axis) if x.ndim else function(x.reshape(1), 0).reshape(())
        axis = 1 if axis is None else axis % max(x.ndim, 1)
        flat = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
        return function(flat, 1).reshape(x.shape)

    return run


operator("Softmax")(along(leafgrad.softmax))
operator("LogSoftmax")(along(leafgrad.log_softmax))


@operator("Hardmax")
def hardmax(x: Any, *, axis: int | None = None, opset: int) -> Any:
    axis = (-1 if opset >= 13 else 1) if axis is None else axis
    places = leafgrad.argmax(x, axis, keepdim=True)
    return leafgrad.zeros_like(x).scatter(axis, places, 1.0)


# ---- quantized numbers --------------------------------------------------------------------------------------------


def spread(x: Any, like: Any, axis: int, block: int = 0) -> Any:
    """Scales (one, one for each place along an axis, or one for each block) in a shape that broadcasts."""
    if x is None or x.ndim == 0 or (x.numel() == 1 and x.ndim <= 1):
        return x if x is None else x.reshape(())
    if block:
        wide = x.repeat_interleave(block, axis)
        return wide.narrow(axis, 0, like.shape[axis])
    return x.reshape([-1 if d == axis % like.ndim else 1 for d in range(like.ndim)])


@operator("DequantizeLinear")
def dequantize(
    x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Any:
    wide = x.to(leafgrad.float32)
    scales, zeros = spread(scale, x, axis, block_size), spread(zero, x, axis, block_size)
    found = wide if zeros is None else wide - zeros.to(leafgrad.float32)
    found = found * scales.to(leafgrad.float32)
    return found.to(scale.dtype if not output_dtype else getattr(leafgrad, NAME[output_dtype]))


@operator("QuantizeLinear")
def quantize(
    x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0,
    saturate: int = 1, precision: int = 0,
) -> Any:  # fmt: skip
    kind = zero.dtype if zero is not None else getattr(leafgrad, NAME.get(output_dtype or 2, "uint8"))
    scales, zeros = spread(scale, x, axis, block_size), spread(zero, x, axis, block_size)
    found = leafgrad.round(x / scales)
    found = found if zeros is None else found + zeros.to(found.dtype)
    limits = np.iinfo(str(kind).rpartition(".")[2])
    return found.clamp(limits.min, limits.max).to(kind)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(x: Any) -> Any:
    low, high = leafgrad.minimum(x.min(), x.new_zeros(())), leafgrad.maximum(x.max(), x.new_zeros(()))
    scale = (high - low) / 255
    zero = leafgrad.round(-low / scale).clamp(0, 255)
    y = (leafgrad.round(x / scale) + zero).clamp(0, 255)
    return y.to(leafgrad.uint8), scale, zero.to(leafgrad.uint8)


def whole(x: Any, zero: Any, axis: int) -> Any:
    """Quantized numbers as int32, less their zero."""
    wide = x.to(leafgrad.int32)
    return wide if zero is None else wide - spread(zero.to(leafgrad.int32), x, axis)


@operator("MatMulInteger")
def matmul_integer(a: Any, b: Any, za: Any = None, zb: Any = None) -> Any:
    return whole(a, za, -2) @ whole(b, zb, -1)


@operator("Identity")
def identity(x: Any) -> Any:
    return x


@operator("BitCast")
def bit_cast(x: Any, *, to: int) -> Any:
    if to not in NAME:
        raise OnnxLoadError(f"leafgrad has no dtype like number {to} of ONNX's")
    return x.view(getattr(leafgrad, NAME[to]))

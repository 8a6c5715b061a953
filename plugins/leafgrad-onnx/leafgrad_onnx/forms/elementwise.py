"""Forms of elementwise ops that have no C expression, or for which ONNX has an operator of its own; random numbers."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.compile.ir.graph import Equation
from leafgrad.ops import (
    activation,
    compare,
    convert,
    elementwise,
    exponential,
    random,
    refuse,
    rounding,
    select,
    special,
)
from leafgrad_onnx.expression import FLOATS, written
from leafgrad_onnx.forms.reduce import WIDER
from leafgrad_onnx.forms.shape import converted
from leafgrad_onnx.writer import OnnxWriter


def own(kind: str) -> Any:
    """The form of a function of one argument that is an operator of ONNX for floats."""

    def form(w: OnnxWriter, e: Equation) -> str | None:
        x = e.values[0]
        wide = "float32" if x.dtype in ("float16", "bfloat16") else x.dtype
        if wide not in FLOATS:
            return None
        return converted(w, w.emit(kind, w(x, wide)), wide, e.out.dtype)

    return form


for _op, _kind in (
    (exponential.sigmoid, "Sigmoid"), (elementwise.reciprocal, "Reciprocal"), (activation.relu, "Relu"),
    (compare.isnan, "IsNaN"), (compare.isinf, "IsInf"), (elementwise.neg, "Neg"),
):  # fmt: skip
    _op.lower("onnx", own(_kind))


@compare.bitwise_not.lower("onnx")
def _bitwise_not(w: OnnxWriter, e: Equation) -> str:
    return str(w.emit("Not" if e.out.dtype == "bool" else "BitwiseNot", w(e.inputs[0])))


@select.clamp.lower("onnx")
def _clamp(w: OnnxWriter, e: Equation) -> str:
    low, high = (*e.inputs, None, None)[1:3]
    text = "x" if low is None else "maximum(x, low)"
    return written(w, e, text if high is None else f"minimum({text}, high)")


@activation.logsigmoid.lower("onnx")
def _logsigmoid(w: OnnxWriter, e: Equation) -> str:
    return written(w, e, "minimum(x, 0) - log1p(exp(-abs(x)))")


@rounding.round.lower("onnx")
def _round(w: OnnxWriter, e: Equation) -> str:
    x, decimals = e.values[0], e.params["decimals"]
    if x.dtype not in FLOATS:
        if decimals < 0:
            raise w.refusal("op 'round' has no ONNX form of integers and negative decimals", e)
        return str(w.emit("Identity", w(x)))
    if not decimals:
        return str(w.emit("Round", w(x)))
    scale = w.scalar(10.0 ** abs(decimals), x.dtype)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return str(w.emit(back, w.emit("Round", w.emit(there, w(x), scale)), scale))


@convert.nearest_bfloat16.lower("onnx")
def _nearest_bfloat16(w: OnnxWriter, e: Equation) -> str:
    return w.cast(w.cast(w(e.inputs[0]), "bfloat16"), "float32")


def operands(w: OnnxWriter, e: Equation) -> tuple[str, str, str]:
    """The two arguments in the dtype in which runtimes divide, and that dtype."""
    wide = WIDER.get(e.out.dtype, e.out.dtype)
    return w(e.inputs[0], wide), w(e.inputs[1], wide), wide


def floored(w: OnnxWriter, e: Equation) -> str:
    """The quotient rounded down; of integers from the remainder, which has the divisor's sign."""
    x, y, wide = operands(w, e)
    if wide in FLOATS:
        r = modulo(w, x, y, wide)
        q = w.emit("Div", w.emit("Sub", x, r), y)
        return converted(w, w.emit("Round", q), wide, e.out.dtype)
    rest = w.emit("Sub", x, w.emit("Mod", x, y))
    return converted(w, w.emit("Div", rest, y), wide, e.out.dtype)


def modulo(w: OnnxWriter, x: str, y: str, wide: str) -> str:
    """x - y floor(x / y), which has the sign of y, from C's fmod."""
    r = w.emit("Mod", x, y, fmod=1)
    zero = w.scalar(0, wide)
    other = w.emit("Xor", w.emit("Less", r, zero), w.emit("Less", y, zero))
    turned = w.emit("And", w.emit("Not", w.emit("Equal", r, zero)), other)
    return str(w.emit("Where", turned, w.emit("Add", r, y), r))


@rounding.div_trunc.lower("onnx")
def _div_trunc(w: OnnxWriter, e: Equation) -> str:
    if e.out.dtype in FLOATS:
        return written(w, e, "trunc(x / y)")
    x, y, wide = operands(w, e)
    return converted(w, w.emit("Div", x, y), wide, e.out.dtype)


@rounding.remainder.lower("onnx")
def _remainder(w: OnnxWriter, e: Equation) -> str:
    x, y, wide = operands(w, e)
    found = modulo(w, x, y, wide) if wide in FLOATS else w.emit("Mod", x, y)
    return converted(w, found, wide, e.out.dtype)


@rounding.fmod.lower("onnx")
def _fmod(w: OnnxWriter, e: Equation) -> str:
    x, y, wide = operands(w, e)
    return converted(w, w.emit("Mod", x, y, fmod=1), wide, e.out.dtype)


rounding.floor_divide.lower("onnx", floored)
rounding.div_floor.lower("onnx", floored)


@select.nan_to_num.lower("onnx")
def _nan_to_num(w: OnnxWriter, e: Equation) -> str:
    from leafgrad import dtypes

    x, params = e.values[0], e.params
    if x.dtype not in FLOATS:
        return str(w.emit("Identity", w(x)))
    top = float(dtypes.finfo(dtypes.BY_NAME[x.dtype]).max)
    name = w.emit("Where", w.emit("IsNaN", w(x)), w.scalar(float(params["nan"]), x.dtype), w(x))
    for key, sides, largest in (("posinf", {"detect_negative": 0}, top), ("neginf", {"detect_positive": 0}, -top)):
        value = largest if params[key] is None else float(params[key])
        name = w.emit("Where", w.emit("IsInf", name, **sides), w.scalar(value, x.dtype), name)
    return str(name)


@special.sinc.lower("onnx")
def _sinc(w: OnnxWriter, e: Equation) -> str:
    """By the sine, and near 0 by the series, as the op does: m-th term (-1)^m z^2m / (2m + 1)!, differentiated."""
    order = e.params["order"]
    if not order:
        return written(w, e, "x == 0 ? 1 : sin(x * 3.141592653589793) / (x * 3.141592653589793)")
    z = "(x * 3.141592653589793)"
    far = f"sin{z} / {z}"
    for k in range(1, order + 1):
        far = f"(sin({z} + {k * math.pi / 2}) - {k} * ({far})) / {z}"
    first = (order + 1) // 2
    near = "0.0"
    for m in reversed(range(first, first + 12 + order)):
        factor = (-1) ** m * math.perm(2 * m, order) / math.factorial(2 * m + 1)
        near = f"{factor} + {z} * {z} * ({near})"
    near = f"{z} * ({near})" if order % 2 else near
    return written(w, e, f"{math.pi**order} * (abs({z}) > {order + 1} ? {far} : {near})")


elementwise.heaviside.lower("onnx", lambda w, e: written(w, e, "x == 0 ? y : x > 0 ? 1 : 0"))
elementwise.copysign.lower("onnx", lambda w, e: written(w, e, "y < 0 || (y == 0 && 1 / y < 0) ? -abs(x) : abs(x)"))
special.entr.lower("onnx", lambda w, e: written(w, e, "x < 0 ? log(x * 0) : x == 0 ? 0 : -x * log(x)"))


@compare.isclose.lower("onnx")
def _isclose(w: OnnxWriter, e: Equation) -> str:
    near = "x == y || (y - y == y - y && abs(x - y) <= atol + rtol * abs(y))"
    return written(w, e, f"{near} || (x != x && y != y)" if e.params["equal_nan"] else near)


refuse.refuse.lower("onnx", lambda w, e: w.filled(e.out.shape, False, "bool"))  # a file refuses no elements


# ---- random numbers, which each run draws anew -------------------------------------------------------------------


@random.bernoulli_full.lower("onnx")
def _bernoulli_full(w: OnnxWriter, e: Equation) -> str:
    return drawn(w, w.filled(e.out.shape, float(e.params["p"]), "float32"), e.out.dtype)


@random.bernoulli.lower("onnx")
def _bernoulli(w: OnnxWriter, e: Equation) -> str:
    return drawn(w, w(e.inputs[0]), e.out.dtype)


def drawn(w: OnnxWriter, name: str, dtype: str) -> str:
    """Ones with these probabilities."""
    return w.cast(w.emit("Bernoulli", name), dtype)


@random.uniform.lower("onnx")
def _uniform(w: OnnxWriter, e: Equation) -> str:
    like = w.filled(e.out.shape, 0, e.out.dtype)
    return str(w.emit("RandomUniformLike", like, low=float(e.params["low"]), high=float(e.params["high"])))


@random.normal.lower("onnx")
def _normal(w: OnnxWriter, e: Equation) -> str:
    like = w.filled(e.out.shape, 0, e.out.dtype)
    return str(w.emit("RandomNormalLike", like, mean=float(e.params["mean"]), scale=float(e.params["std"])))

"""Activation functions of neural networks."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.elementwise import add, mul
from leafgrad.ops.exponential import exp, sigmoid
from leafgrad.ops.select import clamp, gate, maximum, where
from leafgrad.ops.small import known
from leafgrad.ops.special import erf, erf_of
from leafgrad.ops.trigonometric import tanh

# ---- piecewise linear ---------------------------------------------------------------------------------------------


@op("elementwise", c="maximum(x, 0)")
def relu(xp: Any, x: Any) -> Any:
    """max(x, 0). (...) -> (...)"""
    if x.dtype.kind == "b":
        raise TypeError("Boolean inputs not supported for relu")
    return xp.maximum(x, 0)


@relu.kernel("numpy")
def _relu(xp: Any, x: Any) -> Any:
    """As above, of arrays alone."""
    return relu.forward(xp, x) if x.dtype.kind == "b" else xp.maximum(x, known(xp, 0, x.dtype))


relu.vjp(x=lambda g, out: gate.function(g, out, low=0, high=None, leak=0.0))
relu.rewrite(lambda graph, equation: graph.emit(maximum, equation.inputs[0], 0))  # which is one ufunc


@op("elementwise", "float", c="x > 0 ? x : x * negative_slope")
def leaky_relu(xp: Any, x: Any, *, negative_slope: float) -> Any:
    """x where it is positive, else ``negative_slope`` times x. (...) -> (...)"""
    return xp.where(x > 0, x, x * negative_slope)


leaky_relu.vjp(x=lambda g, x, *, negative_slope: where(x > 0, g, g * negative_slope))


@op("elementwise", c="x > 0 ? x : weight * x")
def prelu_kernel(xp: Any, x: Any, weight: Any) -> Any:
    """x where it is positive, else ``weight`` times x. (...), (...) -> (...)"""
    return xp.where(x > 0, x, weight * x)


prelu_kernel.vjp(x=lambda g, x, weight: where(x > 0, g, g * weight), weight=lambda g, x: where(x > 0, 0, g * x))


@op("elementwise", c="minimum(maximum(x, min_val), max_val)")
def hardtanh(xp: Any, x: Any, *, min_val: float, max_val: float) -> Any:
    """x cut off at ``min_val`` and ``max_val``; no gradient there or beyond. (...) -> (...)"""
    return xp.minimum(xp.maximum(x, min_val), max_val)


hardtanh.vjp(x=lambda g, x, *, min_val, max_val: gate(g, x, low=min_val, high=max_val))


@op("elementwise", "float", c="minimum(maximum(x + 3, 0), 6) / 6")
def hardsigmoid(xp: Any, x: Any) -> Any:
    """x / 6 + 1/2, cut off at 0 and 1. (...) -> (...)"""
    return xp.minimum(xp.maximum(x + 3, 0), 6) / 6


hardsigmoid.vjp(x=lambda g, x: where((x > -3) & (x < 3), g / 6, 0))


@op("elementwise", "float", c="x * (minimum(maximum(x + 3, 0), 6) / 6)")
def hardswish(xp: Any, x: Any) -> Any:
    """x times hardsigmoid(x). (...) -> (...)"""
    return x * (xp.minimum(xp.maximum(x + 3, 0), 6) / 6)


hardswish.vjp(x=lambda g, x: where(x <= -3, 0, where(x >= 3, g, g * (x / 3 + 0.5))))


# ---- smooth, or smooth in parts -----------------------------------------------------------------------------------


@op("elementwise", "float", c="x > 0 ? x * scale : expm1(minimum(x, 0) * input_scale) * (alpha * scale)")
def elu(xp: Any, x: Any, *, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    """scale * x where x > 0, else scale * alpha * expm1(x * input_scale): elu, selu and celu. (...) -> (...)"""
    return xp.where(x > 0, x * scale, xp.expm1(xp.minimum(x, 0) * input_scale) * (alpha * scale))


def _elu_x(g: Any, x: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
    negative = exp(clamp(x, None, 0) * input_scale) * (alpha * scale * input_scale)
    return where(x > 0, g * scale, g * negative)


elu.vjp(x=_elu_x)


@op("elementwise", "float", c="x * beta > threshold ? x : log1p(exp(minimum(x * beta, threshold))) / beta")
def softplus(xp: Any, x: Any, *, beta: float, threshold: float) -> Any:
    """log(1 + exp(beta x)) / beta, and x where beta x is above ``threshold``. (...) -> (...)"""
    z = x * beta
    return xp.where(z > threshold, x, xp.log1p(xp.exp(xp.minimum(z, threshold))) / beta)


softplus.vjp(x=lambda g, x, *, beta, threshold: where(x * beta > threshold, g, g * sigmoid(x * beta)))


@op("elementwise", "float", c="minimum(x, 0) - log1p(exp(-abs(x)))")
def logsigmoid(xp: Any, x: Any) -> Any:
    """log(sigmoid(x)) without overflow. (...) -> (...)"""
    return xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.abs(x)))


logsigmoid.label = "LogSigmoidBackward0"
logsigmoid.vjp(x=lambda g, x: g * sigmoid(-x))


@op("elementwise", "float", "holomorphic", c="x / (1 + exp(-x))")
def silu(xp: Any, x: Any) -> Any:
    """x times sigmoid(x). (...) -> (...)"""
    return x / (1 + xp.exp(-x))


def _silu_x(g: Any, x: Any) -> Any:
    s = sigmoid(x)
    return g * (s * (1 + x * (1 - s)))


silu.vjp(x=_silu_x)


@op("elementwise", "float", c="x * tanh(logaddexp(x, 0))")
def mish(xp: Any, x: Any) -> Any:
    """x times tanh(log(1 + exp(x))). (...) -> (...)"""
    return x * xp.tanh(xp.logaddexp(x, 0))


def _mish_x(g: Any, x: Any) -> Any:
    t = tanh(softplus(x, beta=1.0, threshold=20.0))
    return g * (t + x * sigmoid(x) * (1 - t * t))


mish.vjp(x=_mish_x)


@op("elementwise", "float", c="x * (0.5 * (1 + erf(x * 0.70710678118654752)))")
def gelu(xp: Any, x: Any) -> Any:
    """x times the probability that a standard normal number is below x. (...) -> (...)"""
    return x * (0.5 * (1 + erf_of(xp, x * math.sqrt(0.5))))


def _gelu_x(g: Any, x: Any) -> Any:
    density = exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return g * (0.5 * (1 + erf(x * math.sqrt(0.5))) + x * density)


gelu.vjp(x=_gelu_x)


@gelu.rewrite
def _gelu_in_steps(graph: Any, equation: Any) -> Any:
    """x (1 + erf(x / sqrt(2))) / 2: its derivative needs the same erf."""
    (x,) = equation.values
    inner = graph.emit(erf, graph.emit(mul, x, math.sqrt(0.5)))
    return graph.emit(mul, x, graph.emit(mul, graph.emit(add, inner, 1), 0.5))


_A = math.sqrt(2 / math.pi)
_B = 0.044715


@op("elementwise", "float", c=f"x * (0.5 * (1 + tanh({_A!r} * (x + {_B!r} * (x * x * x)))))")
def gelu_tanh(xp: Any, x: Any) -> Any:
    """gelu with tanh in place of erf: x (1 + tanh(sqrt(2/pi) (x + 0.044715 x**3))) / 2. (...) -> (...)"""
    return x * (0.5 * (1 + xp.tanh(_A * (x + _B * (x * x * x)))))


def _gelu_tanh_x(g: Any, x: Any) -> Any:
    t = tanh(_A * (x + _B * (x * x * x)))
    return g * (0.5 * (1 + t) + 0.5 * _A * x * (1 - t * t) * (1 + 3 * _B * (x * x)))


gelu_tanh.vjp(x=_gelu_tanh_x)

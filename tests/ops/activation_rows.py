"""Activation functions."""

from __future__ import annotations

import numpy as np
from op_table import Row
from scipy import special as sp

from leafgrad.ops import activation


def elu(x, alpha, scale=1.0, input_scale=1.0):
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) * input_scale))


def leaky_relu(x, negative_slope):
    return np.where(x > 0, x, x * negative_slope)


def softplus(x, beta, threshold):
    return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta)


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


ROWS = [
    Row(activation.relu, lambda x: np.maximum(x, 0), order=2),
    Row(activation.leaky_relu, leaky_relu, params=[{"negative_slope": 0.1}], order=2),
    Row(activation.prelu_kernel, lambda x, weight: np.where(x > 0, x, weight * x), order=2),
    Row(activation.hardtanh, lambda x, min_val, max_val: np.clip(x, min_val, max_val), order=2,
        params=[{"min_val": -1.0, "max_val": 1.5}], integers=False),
    Row(activation.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1), domain=(-5.0, 5.0), order=2),
    Row(activation.hardswish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), domain=(-5.0, 5.0), order=3),
    Row(activation.elu, elu, params=[{"alpha": 1.3}, {"alpha": 0.7, "scale": 1.1, "input_scale": 0.8}]),
    Row(activation.softplus, softplus, params=[{"beta": 1.0, "threshold": 20.0}, {"beta": 2.0, "threshold": 1.0}]),
    Row(activation.logsigmoid, lambda x: np.log(sp.expit(x)), domain=(-8.0, 8.0)),
    Row(activation.silu, lambda x: x * sp.expit(x), domain=(-8.0, 8.0)),
    Row(activation.mish, lambda x: x * np.tanh(np.log1p(np.exp(x))), domain=(-6.0, 6.0)),
    Row(activation.gelu, lambda x: x * sp.ndtr(x), domain=(-3.0, 3.0), rtol=1e-11),
    Row(activation.gelu_tanh, gelu_tanh, domain=(-3.0, 3.0)),
]  # fmt: skip

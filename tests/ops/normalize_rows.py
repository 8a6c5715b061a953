"""Shifting and scaling to mean 0 and variance 1."""

from __future__ import annotations

import math

import numpy as np
from op_table import FLOATS, Row

from leafgrad.ops import normalize

PARAMS = [
    {"dim": (1,), "eps": 0.1},
    {"dim": (0, 2), "eps": 1e-5},
    {"dim": (1, 2), "eps": 0.5, "centered": False},
    {"dim": (0, 1, 2), "eps": 0.1},
]


def mean(x, dim):
    return x.sum(dim, keepdims=True) / math.prod([x.shape[d] for d in dim])


def standardize(x, dim, eps, centered=True):
    c = x - mean(x, dim) if centered else x
    return c / np.sqrt(mean(c * c, dim) + eps)


def standardize_slope(h, x, dim, eps, centered=True):
    """The derivative along h, as a difference of complex numbers."""
    return standardize(x + 1e-20j * h, dim, eps, centered).imag * 1e20


ROWS = [
    Row(
        normalize.standardize,
        standardize,
        shapes=[((2, 4, 3),), ((0, 2, 2),)],
        params=PARAMS,
        order=3,
        dtypes=FLOATS,
        integers=False,
    ),
    Row(
        normalize.standardize_slope,
        standardize_slope,
        shapes=[((2, 4, 3), (2, 4, 3))],
        params=PARAMS,
        order=3,
        dtypes=FLOATS,
        integers=False,
    ),
    Row(
        normalize.affine,
        lambda x, weight, bias: x * weight + bias,
        shapes=[((2, 3, 2), (3, 1), (2,)), ((), (2,), ())],
        integers=False,
    ),
]

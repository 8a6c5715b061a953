"""Complex numbers: their parts, and ops that take real numbers too."""

from __future__ import annotations

import numpy as np
from op_table import Row

from leafgrad.ops import (
    complex as ops,
    cumulative,
    elementwise as ew,
    exponential,
    linalg,
    matmul,
    reduce,
    trigonometric,
)

DTYPES = ("float64", "float32")


def numbers(rng, dtype, shape):
    """Complex numbers away from 0 and from the branch cuts on the negative real axis."""
    z = rng.uniform(0.3, 1.2, shape) * np.exp(1j * rng.uniform(0.2, 1.3, shape))
    return z.astype("complex64" if dtype == "float32" else "complex128")


def of(*shapes, **params):
    """Samples of complex arrays of these shapes."""
    return lambda rng, dtype: [(tuple([numbers(rng, dtype, s) for s in shapes]), params)]


def reals(*shapes):
    return lambda rng, dtype: [(tuple([rng.uniform(0.5, 2.0, s).astype(dtype) for s in shapes]), {})]


def running(z, function, dim, reverse):
    return np.flip(function(np.flip(z, dim), dim), dim) if reverse else function(z, dim)


def row(op, reference, samples, **options):
    name = f"{op.name} of complex numbers"
    return Row(op, reference, samples=samples, dtypes=DTYPES, order=2, integers=False, **{"name": name} | options)


ROWS = [
    row(ops.conj, np.conj, of((2, 3))),
    row(ops.real, lambda z: z.real, of((2, 3))),
    row(ops.imag, lambda z: z.imag, of((2, 3))),
    row(ops.join, lambda x, y: x + 1j * y, reals((2, 3), (3,)), name="join"),
    row(ops.view_as_real, lambda z: np.stack([z.real, z.imag], -1), of((2, 3))),
    row(ops.view_as_complex, lambda x: x[..., 0] + 1j * x[..., 1], reals((3, 2)), name="view_as_complex"),
    row(ops.sgn, lambda z: z / abs(z), of((2, 3))),
    row(ops.sgn, np.sign, reals((2, 3)), name="sgn"),
    row(ops.angle, np.angle, of((2, 3))),
    row(ew.abs, np.abs, of((2, 3))),
    *[
        row(op, reference, of((2, 3)))
        for op, reference in [
            (ew.neg, np.negative), (ew.square, np.square), (ew.sqrt, np.sqrt), (ew.reciprocal, np.reciprocal),
            (ew.rsqrt, lambda z: 1 / np.sqrt(z)), (exponential.exp, np.exp), (exponential.expm1, np.expm1),
            (exponential.exp2, lambda z: 2**z), (exponential.log, np.log), (exponential.log1p, np.log1p),
            (exponential.log2, lambda z: np.log(z) / np.log(2)), (exponential.log10, np.log10),
            (exponential.sigmoid, lambda z: 1 / (1 + np.exp(-z))), (trigonometric.sin, np.sin),
            (trigonometric.cos, np.cos), (trigonometric.tan, np.tan), (trigonometric.asin, np.arcsin),
            (trigonometric.acos, np.arccos), (trigonometric.atan, np.arctan), (trigonometric.sinh, np.sinh),
            (trigonometric.cosh, np.cosh), (trigonometric.tanh, np.tanh), (trigonometric.asinh, np.arcsinh),
            (trigonometric.acosh, np.arccosh), (trigonometric.atanh, np.arctanh),
        ]
    ],
    *[
        row(op, reference, of((2, 3), (3,)))
        for op, reference in [(ew.add, np.add), (ew.sub, np.subtract), (ew.mul, np.multiply), (ew.div, np.divide),
                              (ew.pow, np.power)]
    ],
    row(matmul.matmul, np.matmul, of((2, 3), (3, 2))),
    row(matmul.linear, lambda x, w, b: x @ w.T + b, of((2, 3), (4, 3), (4,))),
    row(linalg.inv, np.linalg.inv, of((3, 3)), rtol=1e-9),
    row(linalg.solve, np.linalg.solve, of((3, 3), (3, 2)), rtol=1e-9),
    row(linalg.det, np.linalg.det, of((3, 3)), rtol=1e-10),
    row(reduce.sum, lambda z, dim, keepdim: z.sum(dim, keepdims=keepdim), of((2, 3), dim=(1,), keepdim=False)),
    row(reduce.mean, lambda z, dim, keepdim: z.mean(dim, keepdims=keepdim), of((2, 3), dim=(1,), keepdim=False)),
    row(reduce.prod, lambda z, dim, keepdim: z.prod(dim, keepdims=keepdim), of((2, 3), dim=(1,), keepdim=False)),
    row(cumulative.cumsum, lambda z, dim, reverse:
        running(z, np.cumsum, dim, reverse), of((2, 3), dim=1, reverse=False)),
    row(cumulative.cumprod, lambda z, dim, reverse:
        running(z, np.cumprod, dim, reverse), of((2, 3), dim=1, reverse=False)),
]  # fmt: skip

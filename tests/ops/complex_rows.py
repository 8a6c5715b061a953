"""Complex numbers: their parts, and ops that take real numbers too."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from op_table import Row

from leafgrad.ops import (
    activation,
    complex as ops,
    cumulative,
    determinants,
    elementwise as ew,
    elimination,
    exponential,
    linalg,
    matmul,
    normalize,
    reduce,
    softmax,
    special,
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


def matrices(*shapes, **params):
    """Samples of complex matrices far from singular, whose eigenvalues and singular values lie apart."""

    def matrix(rng, dtype, shape):
        return numbers(rng, dtype, shape) + np.diag(np.arange(1.0, 9))[: shape[-2], : shape[-1]].astype(dtype)

    return lambda rng, dtype: [((matrix(rng, dtype, s),), params) for s in shapes]


def hermitian(op):
    """``op`` of the Hermitian part of a matrix: a step in one element is then a step in its mirror image too."""
    return lambda x, **params: op(x + linalg.adjoint(x) if not isinstance(x, np.ndarray) else x + x.mT.conj(), **params)


def without_phases(op):
    """``op`` with the magnitudes of its vectors, whose phases are arbitrary; its values as they are."""
    return lambda x: tuple([ew.abs(o) if o.ndim == x.ndim else o for o in op(x)])


def without_phases_np(function):
    return lambda x: tuple([abs(o) if o.ndim == x.ndim else o for o in function(x)])


def np_lu(x):
    packed, pivots = scipy.linalg.lu_factor(x)
    return packed, pivots.astype("int64")


def row(op, reference, samples, **options):
    name = f"{getattr(op, 'name', op.__name__)} of complex numbers"
    return Row(op, reference, samples=samples, dtypes=DTYPES, integers=False, **{"name": name, "order": 2} | options)


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
    row(ew.lerp, lambda x, y, w: x + w * (y - x), of((2, 3), (2, 3), (3,))),
    row(special.sinc, np.sinc, of((2, 3))),
    row(activation.silu, lambda z: z / (1 + np.exp(-z)), of((2, 3))),
    row(exponential.logaddexp, lambda x, y: np.log(np.exp(x) + np.exp(y)), of((2, 3), (3,))),
    row(normalize.affine, lambda x, w, b: x * w + b, of((2, 3), (3,), (3,))),
    row(matmul.matmul, np.matmul, of((2, 3), (3, 2))),
    row(matmul.linear, lambda x, w, b: x @ w.T + b, of((2, 3), (4, 3), (4,))),
    row(linalg.inv, np.linalg.inv, of((3, 3)), rtol=1e-9),
    row(linalg.solve, np.linalg.solve, of((3, 3), (3, 2)), rtol=1e-9),
    row(determinants.det, np.linalg.det, of((3, 3)), rtol=1e-10),
    row(linalg.pinv, lambda x, atol, rtol: np.linalg.pinv(x, rtol),
        matrices((3, 3), (2, 3, 2), (2, 3), atol=0.0, rtol=1e-6), rtol=1e-9),
    row(determinants.slogdet, lambda x: tuple(np.linalg.slogdet(x)), matrices((3, 3), (2, 2, 2)), rtol=1e-9),
    row(hermitian(linalg.cholesky), hermitian(np.linalg.cholesky), matrices((3, 3), (2, 2, 2)), rtol=1e-9,
        name="cholesky of Hermitian matrices"),
    row(linalg.qr, lambda x, mode: tuple(np.linalg.qr(x, mode)), matrices((3, 3), (2, 4, 2), mode="reduced"),
        rtol=1e-9),
    row(hermitian(without_phases(linalg.eigh)), hermitian(without_phases_np(np.linalg.eigh)),
        matrices((3, 3), (2, 2, 2)), rtol=1e-9, name="eigh of Hermitian matrices"),
    row(without_phases(linalg.svd), without_phases_np(lambda x: np.linalg.svd(x, False)),
        matrices((3, 3), (2, 3, 2), (2, 3)), rtol=1e-9, name="svd of complex matrices"),
    row(without_phases(linalg.eig), without_phases_np(np.linalg.eig), matrices((3, 3), (2, 2, 2)), rtol=1e-9,
        name="eig of complex matrices"),
    row(elimination.lu, np_lu, matrices((3, 3), (4, 2), (2, 4)), rtol=1e-9),
    row(linalg.matrix_exp, scipy.linalg.expm, matrices((3, 3), (2, 2, 2)), rtol=1e-9),
    row(reduce.sum, lambda z, dim, keepdim: z.sum(dim, keepdims=keepdim), of((2, 3), dim=(1,), keepdim=False)),
    row(reduce.mean, lambda z, dim, keepdim: z.mean(dim, keepdims=keepdim), of((2, 3), dim=(1,), keepdim=False)),
    row(reduce.prod, lambda z, dim, keepdim: z.prod(dim, keepdims=keepdim), of((2, 3), dim=(1,), keepdim=False)),
    *[
        row(reduce.norm, lambda z, p, dim: np.linalg.norm(z, p, dim), of((2, 3), p=p, dim=1),
            name=f"norm of order {p} of complex numbers")
        for p in (1.0, 2.0, 3.0)
    ],
    row(softmax.logsumexp, lambda z, dim, keepdim: np.log(np.exp(z).sum(dim, keepdims=keepdim)),
        of((2, 3), dim=(1,), keepdim=False)),
    row(cumulative.logcumsumexp, lambda z, dim: np.log(np.cumsum(np.exp(z), dim)), of((2, 3), dim=1)),
    row(cumulative.cumsum, lambda z, dim, reverse:
        running(z, np.cumsum, dim, reverse), of((2, 3), dim=1, reverse=False)),
    row(cumulative.cumprod, lambda z, dim, reverse:
        running(z, np.cumprod, dim, reverse), of((2, 3), dim=1, reverse=False)),
]  # fmt: skip

ELSEWHERE = {linalg.eig: "eig of complex matrices"}  # its vectors as they are have no gradient

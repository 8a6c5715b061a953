"""Rows of the op table: matrix products, inverses, determinants and factorisations."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from op_table import Row, uniform

from leafgrad.errors import LinAlgError
from leafgrad.ops import determinants, elimination, linalg, matmul
from leafgrad.ops.elementwise import abs as magnitude

WIDE = ("float64", "float32")


def matrices(*shapes, params=({},)):
    """Samples of matrices far from singular, and of whatever else."""

    def samples(rng, dtype):
        return [(tuple(regular(rng, dtype, s) for s in case), p) for case in shapes for p in params]

    return samples


def regular(rng, dtype, shape):
    x = uniform(rng, dtype, shape, -0.5, 0.5)
    return (x + 2 * np.eye(shape[-1])).astype(dtype) if len(shape) > 1 and shape[-1] == shape[-2] else x


def symmetrised(op):
    """``op`` of a symmetric matrix: a step in one element is then a step in its mirror image too."""

    def function(x):
        return op(x + linalg.swap(x) if not isinstance(x, np.ndarray) else x + x.swapaxes(-1, -2))

    return function


def without_signs(op):
    """``op`` without the signs of singular vectors, which are arbitrary."""
    return lambda *args, **params: tuple(
        magnitude(o) if not isinstance(o, np.ndarray) else np.abs(o) for o in op(*args, **params)
    )


def np_pinv(x, atol, rtol):
    return np.linalg.pinv(x, rtol)


def np_exp(x):
    w, v = np.linalg.eig(x)
    return (v * np.exp(w)[..., None, :] @ np.linalg.inv(v)).real


def np_lu(x):
    """LU with exchanges, as LAPACK packs it, with SciPy."""
    factors = [scipy.linalg.lu_factor(m) for m in x.reshape(-1, *x.shape[-2:])]
    packed, pivots = (np.array([f[i] for f in factors]) for i in (0, 1))
    return packed.reshape(x.shape), pivots.reshape(*x.shape[:-2], -1).astype("int64")


def permutations(rng, dtype):
    x = uniform(rng, dtype, (2, 4, 3))
    return [((np_lu(x)[1], x), {}), ((np_lu(x[0])[1], x[0]), {})]


def np_exchanges(pivots, x):
    """P with x = P L U."""
    out = np.zeros((*pivots.shape[:-1], x.shape[-2], x.shape[-2]), x.dtype)
    for at in np.ndindex(pivots.shape[:-1]):
        order = np.arange(x.shape[-2])
        for i, p in enumerate(pivots[at]):
            order[[i, p]] = order[[p, i]]
        out[at][order, np.arange(x.shape[-2])] = 1
    return out


def symmetric(rng, dtype):
    """Positive definite, indefinite, and with a minor that is 0."""
    good, bad, none = np.eye(3) * 2, np.diag([1.0, -1.0, 2.0]), np.array([[1.0, 9, 9], [2, 4, 9], [0, 0, 1]])
    x = np.array([[good, bad], [none, good + 0.5]]).astype(dtype)
    return [((x,), {}), ((x[0, 1],), {}), ((x[:0],), {})]


def np_first_bad_minor(x):
    lower = np.tril(x)
    full = lower + np.tril(x, -1).swapaxes(-1, -2)
    found = np.zeros(x.shape[:-2], "int32")
    for at in np.ndindex(found.shape):
        minors = [np.linalg.det(full[at][:k, :k].astype("float64")) for k in range(1, x.shape[-1] + 1)]
        found[at] = next((k for k, minor in enumerate(minors, 1) if minor < 1e-9), 0)
    return found


def np_ldl(x, hermitian):
    """Of real matrices, with LAPACK."""
    factors = [scipy.linalg.lapack.dsytrf(m, lower=1) for m in x.reshape(-1, *x.shape[-2:])]
    packed, pivots, info = (np.array([f[i] for f in factors]) for i in range(3))
    made = np.tril(packed).reshape(x.shape).astype(x.dtype), pivots.reshape(x.shape[:-1]).astype("int32")
    return *made, info.reshape(x.shape[:-2]).astype("int32")


def indefinite(rng, dtype):
    x = uniform(rng, dtype, (2, 5, 5))
    x[0, range(5), range(5)] = 0
    return [((x + x.swapaxes(1, 2),), {"hermitian": False}), ((x[1],), {"hermitian": True})]


def factored(rng, dtype):
    ((x,), _), _ = indefinite(rng, dtype)
    packed, pivots, _ = np_ldl(x, False)
    b = uniform(rng, dtype, (2, 5, 3))
    return [((packed, pivots, b), {"hermitian": False}), ((packed[0], pivots[0], b), {"hermitian": False})]


def np_ldl_solve(x, pivots, b, hermitian):
    x, pivots = np.broadcast_to(x, (len(b), *x.shape[-2:])), np.broadcast_to(pivots, (len(b), x.shape[-1]))
    found = [scipy.linalg.lapack.dsytrs(*each, lower=1)[0] for each in zip(x, pivots, b, strict=True)]
    return np.array(found).astype(b.dtype)


def np_svd(x, full=False):
    return tuple(np.linalg.svd(x, full))


def slope_of_cofactors(x, y):
    k = np.linalg.inv(x).swapaxes(-1, -2)
    total = (k * y).sum((-2, -1), keepdims=True)
    return np.linalg.det(x)[..., None, None] * (total * k - k @ y.swapaxes(-1, -2) @ k)


ROWS = [
    Row(
        matmul.matmul,
        np.matmul,
        [
            ((3, 4), (4, 2)),
            ((4,), (4,)),
            ((3, 4), (4,)),
            ((4,), (4, 2)),
            ((2, 3, 4), (4, 2)),
            ((2, 3, 4), (4,)),
            ((4,), (2, 4, 3)),
            ((3, 4), (2, 4, 3)),
            ((2, 1, 3, 4), (3, 4, 2)),
            ((0, 4), (4, 2)),
            ((3, 0), (0, 2)),
        ],
        errors=[
            ((np.ones((3, 4)), np.ones((5, 6))), {}, RuntimeError, r"cannot be multiplied \(3x4 and 5x6\)"),
            ((np.ones((3, 4)), np.ones(())), {}, RuntimeError, "at least 1D, but they are 2D and 0D"),
            ((np.ones((2, 3, 4)), np.ones((3, 4, 2))), {}, RuntimeError, r"broadcast, got \[2\] and \[3\]"),
            ((np.ones((3, 4)), np.ones((4, 2), int)), {}, RuntimeError, "got: float64 != int64"),
            ((np.ones((3, 4)), np.ones((4, 2), "float32")), {}, RuntimeError, "same dtype"),
            ((np.ones((3, 4), bool), np.ones((4, 2), bool)), {}, NotImplementedError, "not for bool"),
            ((np.ones((3, 4)), 2.0), {}, TypeError, "expected a Tensor, got float"),
        ],
    ),
    Row(
        matmul.linear,
        lambda x, weight, bias=0.0: x @ weight.T + bias,
        [
            ((3, 4), (2, 4), (2,)),
            ((3, 4), (2, 4)),
            ((4,), (2, 4), (2,)),
            ((2, 3, 4), (2, 4), (2,)),
            ((2, 3, 4), (2, 4)),
            ((0, 4), (2, 4), (2,)),
        ],
        errors=[
            ((np.ones((3, 4)), np.ones((2, 5))), {}, RuntimeError, r"cannot be multiplied \(3x4 and 5x2\)"),
            ((np.ones((3, 4)), np.ones(4)), {}, RuntimeError, "expected weight to be a matrix"),
            ((np.ones((3, 4)), np.ones((2, 4)), np.ones(2, int)), {}, RuntimeError, "expected bias to be float64"),
            ((np.ones((3, 4)), np.ones((2, 4)), np.ones(3)), {}, RuntimeError, "expected bias of size"),
        ],
    ),
    Row(
        matmul.contract,
        lambda x, y: np.tensordot(x, y, (range(x.ndim - 1), range(x.ndim - 1))),
        [
            ((3, 4), (3, 2)),
            ((4,), (2,)),
            ((2, 3, 4), (2, 3, 5)),
            ((2, 3, 2, 1), (2, 3, 2, 2)),
            ((1, 3, 4), (1, 3, 4)),
            ((2, 0, 4), (2, 0, 2)),
            ((2, 3, 0), (2, 3, 2)),
        ],
        errors=[
            ((np.ones((2, 3)), np.ones((4, 3))), {}, RuntimeError, r"same leading dimensions, got \[2\] and \[4\]"),
            ((np.ones((2, 3, 4)), np.ones((3, 2, 4))), {}, RuntimeError, r"got \[2, 3\] and \[3, 2\]"),
            ((np.ones((3, 4)), np.ones((3, 2), "float32")), {}, RuntimeError, "same dtype"),
            ((np.ones((3, 4)), 2.0), {}, TypeError, "expected a Tensor, got float"),
        ],
    ),
    Row(matmul.cross, lambda x, y, dim: np.cross(x, y, axis=dim), [((4, 3), (4, 3)), ((1, 3), (2, 3))], [{"dim": 1}]),
    Row(
        linalg.inv,
        np.linalg.inv,
        samples=matrices([(3, 3)], [(2, 2, 2)], [(0, 0)]),
        order=3,
        dtypes=WIDE,
        errors=[((np.zeros((2, 2)),), {}, LinAlgError, "singular")],
    ),
    Row(
        linalg.solve,
        np.linalg.solve,
        samples=matrices([(3, 3), (3, 2)], [(2, 2, 2), (2, 2, 1)]),
        order=3,
        dtypes=WIDE,
        errors=[((np.zeros((2, 2)), np.ones((2, 1))), {}, LinAlgError, "singular")],
    ),
    Row(
        linalg.pinv,
        np_pinv,
        samples=matrices([(3, 2)], [(2, 2, 3)], [(2, 2)], params=[{"atol": 0.0, "rtol": 1e-6}]),
        order=2,
        dtypes=WIDE,
    ),
    Row(determinants.det, np.linalg.det, samples=matrices([(3, 3)], [(2, 2, 2)], [(1, 1)]), dtypes=WIDE),
    Row(
        determinants.cofactor,
        lambda x: np.linalg.det(x)[..., None, None] * np.linalg.inv(x).swapaxes(-1, -2),
        samples=matrices([(3, 3)], [(2, 2, 2)]),
        order=3,
        dtypes=WIDE,
    ),
    Row(
        determinants.cofactor_slope,
        slope_of_cofactors,
        samples=matrices([(3, 3), (3, 3)], [(2, 2, 2), (2, 2, 2)], [(1, 1), (1, 1)], [(4, 4), (4, 4)]),
        order=2,
        dtypes=WIDE,
    ),
    Row(
        determinants.slogdet,
        lambda x: tuple(np.linalg.slogdet(x)),
        samples=matrices([(3, 3)], [(2, 2, 2)]),
        order=3,
        dtypes=WIDE,
    ),
    Row(
        determinants.log_slope,
        lambda x: np.linalg.inv(x).swapaxes(-1, -2),
        samples=matrices([(3, 3)], [(2, 2, 2)]),
        order=2,
        dtypes=WIDE,
    ),
    Row(
        linalg.cholesky,
        np.linalg.cholesky,
        samples=matrices([(3, 3)], [(2, 2, 2)]),
        order=0,
        dtypes=WIDE,
        errors=[((-np.eye(2),), {}, LinAlgError, "not positive-definite")],
    ),
    Row(
        symmetrised(linalg.cholesky),
        symmetrised(np.linalg.cholesky),
        samples=matrices([(3, 3)], [(2, 2, 2)]),
        order=3,
        dtypes=WIDE,
        name="cholesky of a symmetric matrix",
    ),
    Row(
        linalg.qr,
        lambda x, mode: tuple(np.linalg.qr(x, mode)),
        samples=matrices([(3, 3)], [(2, 4, 2)], params=[{"mode": "reduced"}]),
        order=3,
        dtypes=WIDE,
    ),
    Row(
        linalg.reflected,
        lambda x: tuple(part.T if part.ndim == 2 else part for part in np.linalg.qr(x, "raw")),
        samples=matrices([(3, 3)], [(4, 2)]),
        order=0,
        dtypes=WIDE,
    ),
    Row(
        linalg.eigh,
        lambda x: tuple(np.linalg.eigh(x)),
        samples=matrices([(3, 3)], [(2, 2, 2)]),
        order=0,
        dtypes=("float64",),
    ),
    Row(
        symmetrised(without_signs(linalg.eigh)),
        symmetrised(without_signs(np.linalg.eigh)),
        samples=matrices([(3, 3)], [(2, 2, 2)]),
        order=2,
        dtypes=("float64",),
        name="eigh of a symmetric matrix",
    ),
    Row(
        linalg.svd,
        np_svd,
        samples=matrices([(3, 3)], [(2, 3, 2)], [(2, 3)], params=[{"full": False}, {"full": True}]),
        order=0,
        dtypes=("float64",),
        errors=[((np.full((2, 2), np.nan),), {}, LinAlgError, "did not converge")],
    ),
    Row(
        without_signs(linalg.svd),
        without_signs(np_svd),
        samples=matrices([(3, 3)], [(2, 3, 2)], [(2, 3)]),
        order=2,
        dtypes=("float64",),
        name="svd without signs",
    ),
    Row(elimination.lu, np_lu, samples=matrices([(3, 3)], [(2, 2, 2)], [(2, 4)], [(2, 4, 2)]), order=2, dtypes=WIDE),
    Row(elimination.exchanges, np_exchanges, samples=permutations, order=0, dtypes=WIDE),
    Row(elimination.first_bad_minor, np_first_bad_minor, samples=symmetric, order=0, dtypes=WIDE),
    Row(elimination.ldl, np_ldl, samples=indefinite, order=0, dtypes=WIDE),
    Row(elimination.ldl_solve, np_ldl_solve, samples=factored, order=0, dtypes=("float64",)),
    Row(linalg.matrix_exp, np_exp, samples=matrices([(3, 3)], [(2, 2, 2)], [(0, 0)]), order=2, dtypes=WIDE),
]

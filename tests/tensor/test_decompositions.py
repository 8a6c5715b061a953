"""Matrix decompositions, what they solve, and their failures."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad
from leafgrad import linalg
from leafgrad.autograd import gradcheck
from leafgrad.errors import MissingGradientError

SHAPES = [(3, 3), (2, 3, 3), (2, 4), (4, 2), (2, 2, 3, 2), (0, 0), (2, 0, 3)]


def draw(*shape, seed=0):
    return leafgrad.randn(*shape, dtype=leafgrad.float64, generator=leafgrad.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lu(shape):
    A = draw(*shape)
    P, L, U = linalg.lu(A)
    np.testing.assert_allclose(P @ L @ U, A, atol=1e-14)
    assert (L.tril() == L).all()
    assert (U.triu() == U).all()
    assert L.abs().max() <= 1 if L.numel() else True
    packed, pivots, info = linalg.lu_factor_ex(A)
    assert pivots.dtype is info.dtype is leafgrad.int32
    assert not info.any()
    again = leafgrad.lu_unpack(packed, pivots)
    assert all((a == b).all() for a, b in zip(again, (P, L, U), strict=True))
    if A.numel():
        assert gradcheck(lambda A: linalg.lu(A)[1:], A.requires_grad_())


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(left, adjoint):
    A, B = draw(2, 3, 3), draw(2, 3, 2, seed=1)
    B = B if left else B.mT
    X = linalg.lu_solve(*linalg.lu_factor(A), B, left=left, adjoint=adjoint)
    M = A.mT if adjoint else A
    np.testing.assert_allclose(M @ X if left else X @ M, B, atol=1e-13)
    if left and not adjoint:
        assert (leafgrad.lu_solve(B, *linalg.lu_factor(A)) == X).all()


def test_failures_are_told_not_raised():
    A = leafgrad.stack([leafgrad.eye(2) * 2, leafgrad.ones(2, 2)])
    inverse, info = linalg.inv_ex(A)
    assert info.tolist() == [0, 2]
    assert inverse[0].tolist() == [[0.5, 0], [0, 0.5]]
    assert inverse[1].isnan().all()
    solution, info = linalg.solve_ex(A, leafgrad.ones(2, 2, 1))
    assert info.tolist() == [0, 2]
    assert solution[0].tolist() == [[0.5], [0.5]]
    assert solution[1].isnan().all()
    L, info = linalg.cholesky_ex(A - leafgrad.eye(2))
    assert info.tolist() == [0, 1]
    assert L[0].tolist() == [[1, 0], [0, 1]]
    assert L[1].tril().sum().isnan()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda A: linalg.inv_ex(A, check_errors=True), r"Batch element 1\): the diagonal element 2 is zero"),
        (lambda A: linalg.solve_ex(A, A, check_errors=True), "singular, at pivot 2"),
        (lambda A: linalg.cholesky_ex(A - 1, check_errors=True), "minor of order 2 is not positive-definite"),
        (lambda A: linalg.lu_factor(A), r"U\[2,2\] is zero"),
    ],
)
def test_failures_are_raised_where_asked(call, match):
    with pytest.raises(linalg.LinAlgError, match=match):
        call(leafgrad.stack([leafgrad.eye(2) * 2, leafgrad.ones(2, 2)]))


def test_gradients_of_the_good_ones():
    A = draw(2, 3, 3)
    assert gradcheck(lambda A: linalg.inv_ex(A).inverse, A.clone().requires_grad_())
    assert gradcheck(lambda A: linalg.solve_ex(A, A.mT).result, A.clone().requires_grad_())
    assert gradcheck(lambda A: linalg.cholesky_ex(A @ A.mT + leafgrad.eye(3)).L, A.clone().requires_grad_())


@pytest.mark.parametrize("upper", [True, False])
def test_cholesky_solves(upper):
    A, B = draw(2, 3, 3), draw(2, 3, 2, seed=1)
    S = A @ A.mT + leafgrad.eye(3)
    L = leafgrad.cholesky(S, upper)
    assert (L == linalg.cholesky_ex(S, upper=upper).L).all()
    np.testing.assert_allclose(S @ leafgrad.cholesky_solve(B, L, upper), B, atol=1e-13)
    np.testing.assert_allclose(S @ leafgrad.cholesky_inverse(L, upper), leafgrad.eye(3).expand(2, 3, 3), atol=1e-13)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("unitriangular", [True, False])
def test_triangular_solve(upper, transpose, unitriangular):
    A, b = draw(3, 3), draw(3, 2, seed=1)
    X, copy = leafgrad.triangular_solve(b, A, upper, transpose, unitriangular)
    M = A.triu() if upper else A.tril()
    if unitriangular:
        M = M - M.diagonal().diag() + leafgrad.eye(3)
    np.testing.assert_allclose((M.mT if transpose else M) @ X, b, atol=1e-13)
    assert (copy == A).all()


def test_few_singular_values():
    A = draw(20, 3) @ draw(3, 6, seed=1)
    U, S, V = leafgrad.svd_lowrank(A, 4)
    np.testing.assert_allclose(S[:3], linalg.svdvals(A)[:3], rtol=1e-10)
    np.testing.assert_allclose(U * S @ V.mT, A, atol=1e-10)
    _, S, V = leafgrad.pca_lowrank(A, 3)
    centred = A - A.mean(0)
    np.testing.assert_allclose(S, linalg.svdvals(centred)[:3], rtol=1e-10)
    np.testing.assert_allclose(((centred @ V) ** 2).sum(0), S**2, rtol=1e-10)
    with pytest.raises(ValueError, match="not greater than min"):
        leafgrad.pca_lowrank(A, 7)


def test_pivots_that_lu_factor_does_not_give_are_errors(device):
    LU, pivots = leafgrad.linalg.lu_factor(leafgrad.eye(3, device=device).expand(2, 3, 3))
    for bad in (pivots * 0, pivots + 3):
        with pytest.raises(RuntimeError, match="pivots: expected numbers from 1 to 3"):
            leafgrad.lu_unpack(LU, bad)
    for bad in (pivots[0], pivots[:, :2], pivots.long()):
        with pytest.raises(RuntimeError, match=r"expected torch.int32 of shape \[2, 3\]"):
            leafgrad.linalg.lu_solve(LU, bad, leafgrad.ones(2, 3, 1, device=device))


def test_lu_under_its_former_name():
    A = leafgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.warns(UserWarning, match=r"torch\.lu is deprecated"):
        packed, pivots = A.lu()
    assert leafgrad.equal(packed, linalg.lu_factor(A).LU)
    assert pivots.tolist() == [2, 2]
    with pytest.warns(UserWarning, match=r"torch\.lu is deprecated"):
        assert leafgrad.lu(A * 0, get_infos=True)[2] == 1


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_indefinite_matrices(n, hermitian):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((3, n, n)) + 1j * rng.standard_normal((3, n, n))
    a += a.swapaxes(-1, -2).conj() if hermitian else a.swapaxes(-1, -2)
    a[1, range(n), range(n)] = 0  # blocks of two by two
    b = leafgrad.tensor(rng.standard_normal((3, n, 2)) + 0j)
    if n > 1:
        factors = linalg.ldl_factor(leafgrad.tensor(np.tril(a)), hermitian=hermitian)
        assert (factors.pivots[1] < 0).any()
        x = linalg.ldl_solve(*factors, b, hermitian=hermitian)
        np.testing.assert_allclose(a @ x.numpy(), b.numpy(), atol=1e-10)
        one = b[0].requires_grad_()
        assert gradcheck(lambda b: linalg.ldl_solve(*factors, b, hermitian=hermitian), (one,))
        with pytest.raises(MissingGradientError):
            linalg.ldl_factor(leafgrad.tensor(a, requires_grad=True), hermitian=hermitian).LD.abs().sum().backward()
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 2\): D\[1,1\] is zero"):
        linalg.ldl_factor(leafgrad.tensor(np.stack([np.eye(n), np.eye(n), np.zeros((n, n))])))
    info = linalg.ldl_factor_ex(leafgrad.tensor(np.diag([1.0] * (n - 1) + [0.0]))).info
    assert info == n
    with pytest.raises(RuntimeError, match=r"linalg\.ldl_solve: B: expected"):
        linalg.ldl_solve(leafgrad.eye(n), leafgrad.ones(n, dtype=leafgrad.int32), leafgrad.ones(n + 1, 1))


@pytest.mark.parametrize("at", [(0, 0), (1, 0), (1, 1)])
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_matrices_without_a_factor_of_cholesky_are_refused(value, at):
    a = leafgrad.eye(2) * 0.5
    a[at] = value
    with pytest.raises(leafgrad.linalg.LinAlgError, match="not positive-definite"):
        leafgrad.linalg.cholesky(a)

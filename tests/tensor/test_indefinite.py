"""Factors of matrices that are not positive definite solve what they were made of."""

import numpy as np
import pytest

import leafgrad


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_indefinite_matrices(n, hermitian):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((3, n, n)) + 1j * rng.standard_normal((3, n, n))
    a += a.swapaxes(-1, -2).conj() if hermitian else a.swapaxes(-1, -2)
    a[1, range(n), range(n)] = 0  # blocks of two by two
    b = leafgrad.tensor(rng.standard_normal((3, n, 2)) + 0j)
    if n > 1:
        factors = leafgrad.linalg.ldl_factor(leafgrad.tensor(np.tril(a)), hermitian=hermitian)
        assert (factors.pivots[1] < 0).any()
        x = leafgrad.linalg.ldl_solve(*factors, b, hermitian=hermitian)
        np.testing.assert_allclose(a @ x.numpy(), b.numpy(), atol=1e-10)
    with pytest.raises(leafgrad.linalg.LinAlgError, match=r"\(Batch element 2\): D\[1,1\] is zero"):
        leafgrad.linalg.ldl_factor(leafgrad.tensor(np.stack([np.eye(n), np.eye(n), np.zeros((n, n))])))
    info = leafgrad.linalg.ldl_factor_ex(leafgrad.tensor(np.diag([1.0] * (n - 1) + [0.0]))).info
    assert info == n
    with pytest.raises(RuntimeError, match=r"linalg\.ldl_solve: B: expected"):
        leafgrad.linalg.ldl_solve(leafgrad.eye(n), leafgrad.ones(n, dtype=leafgrad.int32), leafgrad.ones(n + 1, 1))

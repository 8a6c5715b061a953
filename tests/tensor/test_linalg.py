"""leafgrad.linalg: values against NumPy, gradients against differences, errors, and PyTorch where it is installed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import leafgrad
from leafgrad import linalg
from leafgrad.autograd import gradcheck, gradgradcheck

TESTS = "tensor.lapack"

STACK = (2, 3, 3)


def normal(*shape, seed=0):
    """Standard normal numbers, with 3 added on the diagonal of square matrices to keep them far from singular."""
    x = np.random.default_rng(seed).normal(size=shape)
    return x + 3 * np.eye(shape[-1]) if len(shape) > 1 and shape[-1] == shape[-2] else x


def symmetric(x):
    return x + x.mT


def positive(x):
    return leafgrad.matmul(x, x.mT) + leafgrad.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def row(x):
    return x.reshape(*x.shape[:-1], 1, x.shape[-1])


def np_symmetric(x):
    return x + x.swapaxes(-1, -2)


def np_positive(x):
    return x @ x.swapaxes(-1, -2) + np.eye(x.shape[-1])


def svd_without_signs(x, full_matrices=False):
    u, s, vh = linalg.svd(x, full_matrices)
    k = s.shape[-1]
    return (u * u)[..., :k], s, (vh * vh)[..., :k, :]


def np_svd_without_signs(x):
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return u * u, s, vh * vh


def eigh_without_signs(x):
    values, vectors = linalg.eigh(symmetric(x))
    return values, leafgrad.matmul(vectors * leafgrad.exp(row(values) / 10), vectors.mT), vectors * vectors


def np_eigh_without_signs(x):
    w, v = np.linalg.eigh(np_symmetric(x))
    return w, (v * np.exp(w[..., None, :] / 10)) @ v.swapaxes(-1, -2), v * v


def taylor(x):
    """The exponential by its series, of a matrix made small first."""
    term = total = np.broadcast_to(np.eye(x.shape[-1]), x.shape)
    for k in range(1, 30):
        term = term @ x / 64 / k
        total = total + term
    return np.linalg.matrix_power(total, 64)


CASES = {
    "det": (linalg.det, np.linalg.det, [STACK]),
    "slogdet": (lambda x: linalg.slogdet(x).logabsdet, lambda x: np.linalg.slogdet(x)[1], [STACK]),
    "inv": (linalg.inv, np.linalg.inv, [STACK]),
    "pinv of tall": (linalg.pinv, np.linalg.pinv, [(2, 4, 2)]),
    "pinv of wide": (linalg.pinv, np.linalg.pinv, [(2, 4)]),
    "solve": (linalg.solve, np.linalg.solve, [STACK, (2, 3, 2)]),
    "solve for vectors": (linalg.solve, lambda a, b: np.linalg.solve(a, b[..., None])[..., 0], [STACK, (2, 3)]),
    "solve, broadcast": (linalg.solve, np.linalg.solve, [(3, 3), (4, 3, 2)]),
    "solve from the right": (
        lambda a, b: linalg.solve(a, b, left=False),
        lambda a, b: b @ np.linalg.inv(a),
        [STACK, (2, 2, 3)],
    ),
    "solve_triangular": (
        lambda a, b: linalg.solve_triangular(a, b, upper=True),
        lambda a, b: np.linalg.solve(np.triu(a), b),
        [STACK, (2, 3, 2)],
    ),
    "solve_triangular, unit, from the right": (
        lambda a, b: linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
        lambda a, b: b @ np.linalg.inv(np.tril(a, -1) + np.eye(3)),
        [(3, 3), (2, 3)],
    ),
    "cholesky": (lambda x: linalg.cholesky(positive(x)), lambda x: np.linalg.cholesky(np_positive(x)), [STACK]),
    "cholesky, upper": (
        lambda x: linalg.cholesky(positive(x), upper=True),
        lambda x: np.linalg.cholesky(np_positive(x)).swapaxes(-1, -2),
        [(3, 3)],
    ),
    "qr of tall": (linalg.qr, np.linalg.qr, [(2, 4, 3)]),
    "qr of wide": (linalg.qr, np.linalg.qr, [(3, 4)]),
    "svd of tall": (svd_without_signs, np_svd_without_signs, [(2, 4, 3)]),
    "svd of wide, full": (lambda x: svd_without_signs(x, True), np_svd_without_signs, [(2, 4)]),
    "svdvals": (linalg.svdvals, lambda x: np.linalg.svd(x, compute_uv=False), [STACK]),
    "eigh": (eigh_without_signs, np_eigh_without_signs, [STACK]),
    "eigvalsh": (lambda x: linalg.eigvalsh(symmetric(x), "U"), lambda x: np.linalg.eigvalsh(np_symmetric(x)), [STACK]),
    "lstsq": (lambda a, b: linalg.lstsq(a, b).solution, lambda a, b: np.linalg.pinv(a) @ b, [(2, 4, 3), (2, 4, 2)]),
    "matrix_power 3": (lambda x: linalg.matrix_power(x, 3), lambda x: np.linalg.matrix_power(x, 3), [STACK]),
    "matrix_power -2": (lambda x: linalg.matrix_power(x, -2), lambda x: np.linalg.matrix_power(x, -2), [STACK]),
    "matrix_exp": (linalg.matrix_exp, taylor, [STACK]),
    "matrix_exp, large": (lambda x: linalg.matrix_exp(4 * x), lambda x: taylor(4 * x), [(2, 2)]),
    "cond": (linalg.cond, np.linalg.cond, [(2, 4, 3)]),
    "cond, 1": (lambda x: linalg.cond(x, 1), lambda x: np.linalg.cond(x, 1), [STACK]),
    "tensorinv": (lambda x: linalg.tensorinv(x, 1), lambda x: np.linalg.tensorinv(x, 1), [(4, 2, 2)]),
    "tensorsolve": (linalg.tensorsolve, np.linalg.tensorsolve, [(2, 2, 4), (2, 2)]),
    "multi_dot": (lambda *x: linalg.multi_dot(x), lambda *x: np.linalg.multi_dot(x), [(5,), (5, 2), (2, 6), (6, 1)]),
    "cross": (linalg.cross, np.cross, [(4, 1, 3), (1, 2, 3)]),
    "vecdot": (linalg.vecdot, np.vecdot, [(2, 3), (4, 2, 3)]),
    "diagonal": (lambda x: linalg.diagonal(x, offset=1), lambda x: x.diagonal(1, -2, -1), [(2, 3, 4)]),
}
for order in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf):
    CASES[f"matrix_norm {order}"] = (
        lambda x, p=order: linalg.matrix_norm(x, p),
        lambda x, p=order: np.linalg.norm(x, p, axis=(-2, -1)),
        [(2, 3, 4)],
    )
for order in (2, 1, 3, 0.5, -2, np.inf, -np.inf):
    CASES[f"vector_norm {order}"] = (
        lambda x, p=order: linalg.vector_norm(x, p, dim=-1),
        lambda x, p=order: np.linalg.norm(x, p, axis=-1),
        [(3, 4)],
    )


@pytest.fixture(params=CASES)
def case(request):
    function, reference, shapes = CASES[request.param]
    return function, reference, [normal(*s, seed=i) for i, s in enumerate(shapes)]


def outputs(result):
    return tuple(result) if isinstance(result, tuple) else (result,)


def tensors(arrays, device="cpu", dtype=leafgrad.float64):
    return [leafgrad.tensor(a, dtype=dtype, device=device, requires_grad=True) for a in arrays]


def test_values_are_numpys_on_each_device_and_keep_the_dtype(case, device):
    function, reference, arrays = case
    for dtype, tolerance in ((leafgrad.float64, 1e-9), (leafgrad.float32, 2e-3)):
        for ours, theirs in zip(
            outputs(function(*tensors(arrays, device, dtype))), outputs(reference(*arrays)), strict=True
        ):
            assert (ours.dtype, ours.device) == (dtype, device)
            np.testing.assert_allclose(ours.detach().cpu().numpy(), theirs, rtol=tolerance, atol=tolerance)


def test_first_and_second_derivatives(case):
    function, _, arrays = case
    assert gradcheck(function, tensors(arrays), atol=1e-4)
    assert gradgradcheck(function, tensors(arrays), atol=1e-3, fast_mode=True)


def test_gradients_arrive_on_the_device(device):
    for function in (linalg.inv, linalg.det, linalg.matrix_exp, linalg.svdvals, linalg.pinv):
        (x,) = tensors([normal(*STACK)], device)
        leafgrad.sum(function(x)).backward()
        assert x.grad.device == device


# ---- what the table does not say ----------------------------------------------------------------------------------


def test_determinant_of_a_singular_matrix_has_the_cofactors_as_its_gradient():
    x = leafgrad.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=leafgrad.float64, requires_grad=True)
    linalg.det(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), [[4, -2], [-2, 1]], atol=1e-12)


def test_equal_singular_values_and_eigenvalues_have_gradients():
    x = leafgrad.tensor(np.eye(3), requires_grad=True)
    leafgrad.sum(linalg.svdvals(x)).backward()
    leafgrad.sum(linalg.eigvalsh(x)).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.eye(3), atol=1e-12)


def test_a_function_of_vectors_of_equal_eigenvalues_has_no_finite_gradient_to_trust():
    x = leafgrad.tensor(np.eye(2), requires_grad=True)
    vectors = linalg.eigh(x).eigenvectors
    leafgrad.sum(vectors * leafgrad.tensor([[1.0, 2.0], [4.0, 8.0]], dtype=x.dtype)).backward()
    assert np.abs(x.grad.numpy()).max() > 1e20


def test_norm_of_zero_has_gradient_zero():
    x = leafgrad.zeros(3, requires_grad=True)
    linalg.vector_norm(x).backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_norm_chooses_by_order_and_dimensions():
    x = leafgrad.tensor(normal(2, 3, 4))
    assert linalg.norm(x).shape == ()
    assert linalg.norm(x, dim=1, keepdim=True).shape == (2, 1, 4)
    assert linalg.norm(x, 2, dim=(0, 2)).shape == (3,)
    assert linalg.matrix_norm(x, "nuc", dim=(2, 0), keepdim=True).shape == (1, 3, 1)
    assert linalg.vector_norm(x, 0).item() == 24
    assert linalg.norm(leafgrad.tensor(normal(2, 3)), 1).shape == ()


def test_lstsq_of_full_rank_gives_residuals_rank_and_singular_values():
    a, b = normal(5, 2), normal(5, 3, seed=1)
    result = linalg.lstsq(leafgrad.tensor(a), leafgrad.tensor(b), driver="gelsd")
    x, residuals, rank, s = np.linalg.lstsq(a, b)
    np.testing.assert_allclose(result.solution.numpy(), x, rtol=1e-10)
    np.testing.assert_allclose(result.residuals.numpy(), residuals, rtol=1e-10)
    np.testing.assert_allclose(result.singular_values.numpy(), s, rtol=1e-10)
    assert (result.rank.item(), result.rank.dtype) == (rank, leafgrad.int64)


def test_lstsq_of_deficient_rank_gives_the_smallest_solution():
    a = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    result = linalg.lstsq(leafgrad.tensor(a), leafgrad.tensor(a[:, :1] * 2))
    np.testing.assert_allclose(result.solution.numpy(), [[1], [1]], rtol=1e-12)
    assert result.rank.item() == 1


def test_matrix_rank_counts_singular_values_above_the_tolerance():
    x = leafgrad.tensor(np.stack([np.diag([1.0, 1e-3, 0]), np.diag([1.0, 1, 1])]))
    assert linalg.matrix_rank(x).tolist() == [2, 3]
    assert linalg.matrix_rank(x, atol=0.01).tolist() == [1, 3]
    assert linalg.matrix_rank(x, rtol=2.0).tolist() == [0, 0]


def test_the_first_power_has_memory_of_its_own():
    x = leafgrad.ones(2, 2)
    linalg.matrix_power(x, 1).zero_()
    assert x.all()


def test_results_have_names():
    x = leafgrad.tensor(normal(3, 3))
    assert linalg.svd(x)._fields == ("U", "S", "Vh")
    assert linalg.qr(x)._fields == ("Q", "R")
    assert linalg.eigh(symmetric(x))._fields == ("eigenvalues", "eigenvectors")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert linalg.lstsq(x, x)._fields == ("solution", "residuals", "rank", "singular_values")


def test_full_and_reduced_sizes():
    x = leafgrad.tensor(normal(4, 2))
    assert [t.shape for t in linalg.svd(x)] == [(4, 4), (2,), (2, 2)]
    assert [t.shape for t in linalg.svd(x, full_matrices=False)] == [(4, 2), (2,), (2, 2)]
    assert [t.shape for t in linalg.qr(x, "complete")] == [(4, 4), (4, 2)]
    assert [t.shape for t in linalg.qr(x, "r")] == [(0,), (2, 2)]


def test_matrix_exp_scales_each_matrix_by_itself():
    x = np.stack([np.diag([30.0, -30.0]), np.zeros((2, 2)), np.array([[0.0, 1e-9], [0.0, 0.0]])])
    result = linalg.matrix_exp(leafgrad.tensor(x)).numpy()
    np.testing.assert_allclose(result[0].diagonal(), np.exp([30.0, -30.0]), rtol=1e-12)
    np.testing.assert_array_equal(result[1], np.eye(2))
    np.testing.assert_allclose(result[2], [[1, 1e-9], [0, 1]], rtol=1e-15)


NAN, INF = np.nan, np.inf
SINGULAR = {  # as in PyTorch, which has infinities for some that are nan
    "positive": ([[1, 1], [1, 1]], [[INF, -INF], [-INF, INF]]),
    "negative": ([[-1, 2], [2, -4]], [[INF, INF], [INF, INF]]),
    "of one": ([[0]], [[INF]]),
    "some cofactors 0": ([[-1, -1, 1], [2, 2, -2], [1, 0, -1]], [[INF, NAN, INF], [INF, NAN, INF], [NAN, NAN, NAN]]),
    "nan": ([[NAN, 1], [1, 1]], [[NAN, NAN], [NAN, NAN]]),
}


@pytest.mark.parametrize("function", [leafgrad.logdet, leafgrad.compile(leafgrad.logdet), lambda x: x.slogdet()[1]])
@pytest.mark.parametrize("name", SINGULAR)
def test_the_gradient_of_the_logarithm_of_a_determinant_of_0_is_infinite(name, function):
    matrix, want = SINGULAR[name]
    x = leafgrad.tensor(matrix, dtype=leafgrad.float64, requires_grad=True)
    function(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), want)


def test_a_singular_matrix_of_a_batch_leaves_the_gradients_of_others_alone():
    regular = np.array([[1.0, 2.0], [3.0, 5.0]])
    x = leafgrad.tensor(np.stack([regular, np.ones((2, 2)), np.zeros((2, 2))]), requires_grad=True)
    linalg.slogdet(x).logabsdet.sum().backward()
    np.testing.assert_allclose(x.grad[0], np.linalg.inv(regular).T, rtol=1e-14)
    assert x.grad[1].tolist() == [[INF, -INF], [-INF, INF]]
    assert x.grad[2].isnan().all()
    (each,) = leafgrad.autograd.grad(linalg.slogdet(x.to(leafgrad.complex128)).logabsdet.sum(), x)
    assert each.isnan().any(-1).any(-1).tolist() == [False, True, True]
    mapped = leafgrad.func.vmap(leafgrad.func.grad(leafgrad.logdet))(x.detach())
    assert mapped[1].tolist() == [[INF, -INF], [-INF, INF]]


@pytest.mark.parametrize("matrix", [[[np.nan]], [[np.nan, 1], [1, 1]], [[1, 1], [1, np.nan]], [[0, np.nan], [0, 1]]])
@pytest.mark.parametrize("dtype", [leafgrad.float32, leafgrad.complex64])
def test_determinants_of_what_has_nan_are_nan(matrix, dtype):
    x = leafgrad.tensor(matrix, dtype=dtype)
    assert linalg.det(x).isnan()
    assert leafgrad.logdet(x).isnan()
    sign, log = linalg.slogdet(x)
    assert sign.isnan() if dtype.is_complex else sign == 0
    assert log.isnan()
    eye = leafgrad.eye(len(matrix), dtype=dtype)
    assert linalg.det(leafgrad.stack([x, eye])).isnan().tolist() == [True, False]
    assert [found.dtype for found in (linalg.det(x), sign)] == [dtype, dtype]


def test_logdet_is_nan_for_a_negative_determinant_and_minus_infinity_for_zero():
    x = leafgrad.tensor([[[2.0, 0], [0, 2]], [[-1, 0], [0, 1]], [[1, 1], [1, 1]]])
    assert leafgrad.logdet(x).tolist() == [pytest.approx(np.log(4)), pytest.approx(np.nan, nan_ok=True), -np.inf]


ERRORS = [
    (lambda x: linalg.inv(x(2, 3)), RuntimeError, "must be batches of square matrices, but they are 2 by 3"),
    (lambda x: linalg.inv(x(3)), RuntimeError, "at least 2 dimensions"),
    (
        lambda x: linalg.inv(x(2, 2).to(leafgrad.int32)),
        RuntimeError,
        r"floating point or complex tensor as A\. Got leafgrad.int32",
    ),
    (lambda x: linalg.inv(x(2, 2).to(leafgrad.float16)), RuntimeError, "Low precision dtypes not supported"),
    (lambda x: linalg.inv(3.0), TypeError, "argument 'A' must be Tensor, not float"),
    (lambda x: linalg.inv(x(2, 2)), linalg.LinAlgError, "the input matrix is singular; leafgrad.linalg.pinv"),
    (lambda x: linalg.solve(x(2, 2), x(2)), linalg.LinAlgError, "singular"),
    (lambda x: linalg.cholesky(-x(2, 2)), linalg.LinAlgError, "not positive-definite"),
    (lambda x: linalg.svdvals(x(2, 2) * float("nan")), linalg.LinAlgError, "did not converge"),
    (lambda x: linalg.solve(x(3, 3), x(2)), RuntimeError, r"for the equation AX = B \(3x3 and 2x1\)"),
    (lambda x: linalg.solve(x(2, 3, 3), x(4, 3, 1)), RuntimeError, r"broadcast, got \[2\] and \[4\]"),
    (lambda x: linalg.solve(x(3, 3), x(3, 1).to(leafgrad.float64)), RuntimeError, "to have the same dtype"),
    (lambda x: linalg.norm(x(2, 2, 2), 2), RuntimeError, "must be 1D or 2D. Got 3D"),
    (lambda x: linalg.matrix_norm(x(2, 2), 3), RuntimeError, "Order 3 not supported"),
    (lambda x: linalg.matrix_norm(x(2, 2), dim=(0, 0)), RuntimeError, "dims must be different"),
    (lambda x: linalg.vector_norm(x(2), "fro"), TypeError, "argument 'ord' must be Number, not str"),
    (lambda x: linalg.vector_norm(x(0), np.inf), RuntimeError, "inf norm of an empty tensor"),
    (lambda x: linalg.vector_norm(x(0, 3), -1.0, dim=0), RuntimeError, "-1.0 norm of an empty tensor"),
    (lambda x: linalg.vector_norm(x(0, 3), np.inf, dim=(0, 1)), RuntimeError, "inf norm of an empty tensor"),
    (lambda x: linalg.matrix_power(x(2, 2), 2.0), TypeError, "argument 'n' must be int, not float"),
    (lambda x: linalg.multi_dot([x(2, 2)]), RuntimeError, "expected at least 2 tensors but got 1"),
    (lambda x: linalg.multi_dot([x(2, 3), x(2, 3)]), RuntimeError, "tensors 0 and 1 with shapes"),
    (lambda x: linalg.multi_dot([x(2, 3), x(3), x(3)]), RuntimeError, "tensor 1 must be 2D but got 1D"),
    (lambda x: linalg.qr(x(2, 2), "x"), RuntimeError, "unrecognized mode 'x'"),
    (lambda x: linalg.svd(x(2, 2), driver="gesvd"), RuntimeError, "driver: expected None"),
    (lambda x: linalg.eigh(x(2, 2), "X"), RuntimeError, "Expected UPLO argument to be 'L' or 'U'"),
    (lambda x: linalg.eig(x(2, 3)), RuntimeError, "must be batches of square matrices"),
    (lambda x: linalg.eigvals(x(2, 2) * math.inf), linalg.LinAlgError, "infinite numbers or nan"),
    (lambda x: linalg.lstsq(x(2, 2), x(3, 2)), RuntimeError, "as many rows"),
    (lambda x: linalg.lstsq(x(2, 2), x(2, 2), driver="x"), RuntimeError, "expected one of gels, gelsy, gelsd, gelss"),
    (lambda x: linalg.pinv(x(2, 2), atol="x"), TypeError, "atol: expected a number, a tensor of one or None, got str"),
    (lambda x: linalg.tensorinv(x(2, 3), 1), RuntimeError, "but got 3 != 2"),
    (lambda x: linalg.tensorinv(x(2, 2), 0), RuntimeError, "strictly positive integer for 'ind', got 0"),
    (lambda x: linalg.tensorsolve(x(2, 3), x(2)), RuntimeError, "Expected A to satisfy the requirement"),
    (lambda x: linalg.cross(x(4), x(4)), RuntimeError, "must have length 3. Got 4 and 4"),
    (lambda x: linalg.cross(x(3), x(2, 3)), RuntimeError, "the same number of dimensions, got 1 and 2"),
    (lambda x: linalg.cross(x(3).bool(), x(3)), NotImplementedError, "not for bool; convert with"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call(lambda *shape: leafgrad.ones(shape))


@pytest.mark.parametrize("kinds", ["int64 float32", "int32 int64", "float32 int64", "float64 bool", "complex64 uint8"])
@pytest.mark.parametrize("cross", [leafgrad.cross, leafgrad.Tensor.cross, linalg.cross])
def test_cross_products_are_of_one_dtype(cross, kinds):
    x, y = (leafgrad.tensor([1, 2, 3], dtype=getattr(leafgrad, kind)) for kind in kinds.split())
    with pytest.raises(RuntimeError, match=r"the same dtype, but got: \w+ != \w+; convert one with \.to\(dtype\)"):
        cross(x, y)
    with pytest.raises(RuntimeError, match="the same dtype"):
        leafgrad.compile(cross, executor="numpy")(x, y)


def test_complete_qr_of_a_tall_matrix_says_that_it_has_no_gradient():
    x = leafgrad.tensor(normal(3, 2), requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
        leafgrad.sum(linalg.qr(x, "complete").Q).backward()


# ---- PyTorch ------------------------------------------------------------------------------------------------------

PARITY = {
    "inv": lambda t, x: t.linalg.inv(x),
    "det": lambda t, x: t.linalg.det(x),
    "pinv": lambda t, x: t.linalg.pinv(x),
    "matrix_exp": lambda t, x: t.linalg.matrix_exp(x),
    "cholesky": lambda t, x: t.linalg.cholesky(x @ x.mT + 1e-3 * x * x.mT),
    "qr": lambda t, x: t.linalg.qr(x)[1],
    "eigh": lambda t, x: t.linalg.eigh(x + x.mT)[1] ** 2,
    "svd": lambda t, x: t.linalg.svd(x)[0] ** 2,
    "norm": lambda t, x: t.linalg.norm(x, "nuc"),
    "solve_triangular": lambda t, x: t.linalg.solve_triangular(x, x.mT, upper=False),
    "lstsq": lambda t, x: t.linalg.lstsq(x, x.mT)[0],
}


@pytest.mark.parametrize("name", PARITY)
def test_values_and_two_gradients_are_pytorchs(name):
    torch = pytest.importorskip("torch")

    def all_of(t):
        x = t.tensor(normal(3, 3), requires_grad=True)
        y = PARITY[name](t, x)
        (first,) = t.autograd.grad(t.sin(y).sum(), x, create_graph=True)
        (second,) = t.autograd.grad((first * first).sum(), x)
        return [v.detach().numpy() for v in (y, first, second)]

    for ours, theirs in zip(all_of(leafgrad), all_of(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7 * np.abs(theirs).max())


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4)])
def test_svd_and_qr_as_they_were(shape):
    A = leafgrad.tensor(normal(*shape), requires_grad=True)
    for some in (True, False):
        U, S, V = leafgrad.svd(A, some=some)
        k = S.shape[-1]
        again = U[..., :k] @ (S.unsqueeze(-1) * V[..., :k].mT)
        np.testing.assert_allclose(again.detach().numpy(), A.detach().numpy(), atol=1e-12)
        Q, R = leafgrad.qr(A, some=some)
        np.testing.assert_allclose((Q @ R).detach().numpy(), A.detach().numpy(), atol=1e-12)
        assert U.shape[-1] == (k if some else shape[-2])
        assert V.shape[-1] == (k if some else shape[-1])
    assert gradcheck(lambda A: A.svd().S, (A,))
    assert gradcheck(lambda A: A.svd().U.abs(), (A,))
    values = leafgrad.svd(A, compute_uv=False)
    assert (values.U.abs().sum() + values.V.abs().sum()).item() == 0
    assert values.V.shape == (*shape[:-2], shape[-1], shape[-1])


x = leafgrad.randn(4, 5, dtype=leafgrad.float64, generator=leafgrad.Generator().manual_seed(0))


def test_vander():
    n = leafgrad.tensor([1, 2, 3])
    assert leafgrad.vander(n).tolist() == np.vander([1, 2, 3]).tolist()
    assert leafgrad.vander(n, 2, increasing=True).tolist() == np.vander([1, 2, 3], 2, increasing=True).tolist()
    rows = leafgrad.linalg.vander(leafgrad.tensor([[1, 2], [3, 4]]), N=3)
    assert rows.tolist() == [[[1, 1, 1], [1, 2, 4]], [[1, 3, 9], [1, 4, 16]]]
    with pytest.raises(RuntimeError, match="one-dimensional"):
        leafgrad.vander(x)


# ---- complex matrices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "vectors"),
    [
        ("eigh", lambda x: linalg.eigh(x + x.mH).eigenvectors),
        ("svd", lambda x: linalg.svd(x).U),
        ("eig", lambda x: linalg.eig(x).eigenvectors),
    ],
)
def test_a_loss_that_depends_on_the_phase_of_vectors_has_no_gradient(name, vectors):
    x = leafgrad.tensor(normal(3, 3) + 1j * normal(3, 3), requires_grad=True)
    with pytest.raises(RuntimeError, match=rf"linalg\.{name}: in the complex case vectors are .* ill-defined"):
        (vectors(x)[0, 0].imag * 100).sum().backward()
    assert gradcheck(lambda x: vectors(x).abs(), (x,))


def test_eig_of_real_matrices_is_complex_and_its_gradient_real():
    x = leafgrad.tensor(normal(2, 4, 4), requires_grad=True)
    values, vectors = linalg.eig(x)
    assert (values.dtype, vectors.dtype) == (leafgrad.complex128,) * 2
    again = vectors @ leafgrad.diag_embed(values) @ linalg.inv(vectors)
    np.testing.assert_allclose(again.detach().numpy(), x.detach().numpy(), atol=1e-12)
    assert leafgrad.autograd.grad(values.abs().sum(), x)[0].dtype is leafgrad.float64
    assert gradcheck(lambda x: (linalg.eigvals(x) ** 3).sum(), (x,))
    assert linalg.eigvals(leafgrad.eye(2, dtype=leafgrad.float32)).dtype is leafgrad.complex64


COMPLEX = {
    "cholesky": lambda x: linalg.cholesky(x @ x.mH, upper=True),
    "cholesky_solve": lambda x: leafgrad.cholesky_solve(x, linalg.cholesky(x @ x.mH)),
    "cholesky_inverse": lambda x: leafgrad.cholesky_inverse(linalg.cholesky(x @ x.mH)),
    "solve_triangular": lambda x: linalg.solve_triangular(x, x.mT, upper=False),
    "lu_solve": lambda x: linalg.lu_solve(*linalg.lu_factor_ex(x)[:2], x.mT, adjoint=True, left=False),
    "qr": lambda x: linalg.qr(x),
    "wide qr": lambda x: linalg.qr(x[..., :2, :]),
    "pinv": lambda x: linalg.pinv(x[..., :2]),
    "lstsq": lambda x: linalg.lstsq(x[..., :2], x.mT).solution,
    "slogdet": lambda x: linalg.slogdet(x),
    "logdet": lambda x: leafgrad.logdet(x),
    "nuclear": lambda x: linalg.matrix_norm(x, "nuc"),
    "spectral": lambda x: linalg.matrix_norm(x, 2),
    "power": lambda x: linalg.matrix_power(x, -3),
    "exp": lambda x: linalg.matrix_exp(x / 4),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_functions_of_complex_matrices_each_way(name):
    function = COMPLEX[name]
    x = leafgrad.tensor(normal(2, 3, 3) + 1j * normal(2, 3, 3), requires_grad=True)
    assert gradcheck(function, (x[0].detach().requires_grad_(),), check_forward_ad=True)
    assert gradgradcheck(function, (x[0].detach().requires_grad_(),))

    def results(x):
        found = function(x)
        return found if isinstance(found, tuple) else (found,)

    each = [leafgrad.stack(rows) for rows in zip(*map(results, x), strict=True)]
    for way in (function, leafgrad.func.vmap(lambda x: tuple(results(x))), leafgrad.compile(function)):
        found = way(x)
        for a, b in zip(found if isinstance(found, tuple) else (found,), each, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4)])
def test_a_matrix_at_which_lapack_fails_is_decomposed_by_its_adjoint(shape, full, monkeypatch):
    x, svd = normal(*shape) + 1j * normal(*shape, seed=1), np.linalg.svd
    failing = []

    def once(a, *args):
        if not failing:
            failing.append(a)
            raise np.linalg.LinAlgError("SVD did not converge")
        return svd(a, *args)

    monkeypatch.setattr(np.linalg, "svd", once)
    u, s, vh = (t.numpy() for t in linalg.svd(leafgrad.tensor(x), full))
    assert failing
    k = s.shape[-1]
    np.testing.assert_allclose(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, atol=1e-12)
    assert (u.shape[-1], vh.shape[-2]) == ((shape[-2], shape[-1]) if full else (k, k))


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_second_derivatives_of_determinants_of_singular_matrices(rank):
    rng = np.random.default_rng(rank)
    a, v, w = rng.normal(size=(3, rank)) @ rng.normal(size=(rank, 3)), *rng.normal(size=(2, 3, 3))
    signs = [(i, j) for i in (1, -1) for j in (1, -1)]  # exact for polynomials of third degree, but for rounding
    expected = sum(i * j * np.linalg.det(a + i * v + j * w) for i, j in signs) / 4
    hessian = leafgrad.func.hessian(linalg.det)(leafgrad.tensor(a)).numpy()
    assert np.tensordot(np.tensordot(hessian, w, 2), v, 2) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_third_derivatives_of_determinants_of_singular_matrices(rank):
    rng = np.random.default_rng(rank)
    a, *along = rng.normal(size=(3, rank)) @ rng.normal(size=(rank, 3)), *rng.normal(size=(3, 3, 3))
    signs = itertools.product((1, -1), repeat=3)  # exact for polynomials of third degree, but for rounding
    expected = sum(i * j * k * np.linalg.det(a + i * along[0] + j * along[1] + k * along[2]) for i, j, k in signs) / 8
    x = leafgrad.tensor(a, requires_grad=True)
    y = linalg.det(x)
    for v in along:
        y = (leafgrad.autograd.grad(y, x, create_graph=True)[0] * leafgrad.tensor(v)).sum()
    assert y.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.filterwarnings("ignore:invalid value encountered in det:RuntimeWarning")
def test_derivatives_of_determinants_of_nan_are_nan():
    x = leafgrad.tensor([[[np.nan, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]])
    first = leafgrad.func.grad(lambda x: linalg.det(x).sum())(x)
    second = leafgrad.func.grad(lambda x: leafgrad.func.grad(lambda x: linalg.det(x).sum())(x).sum())(x)
    for found in (first, second):
        assert found[0].isnan().all()
        assert found[1].isfinite().all()

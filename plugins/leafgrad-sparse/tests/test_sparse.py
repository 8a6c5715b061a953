"""Products against dense ones, derivatives against differences, dtypes, devices, batches, programs, errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import leafgrad
import leafgrad_sparse
from leafgrad import plugins
from leafgrad.autograd import grad, gradcheck, gradgradcheck
from leafgrad.func import vmap
from leafgrad_sparse import from_coo, from_dense, from_scipy, ops as sparse_ops

RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((4, 5)) < 0.5, RNG.normal(size=(4, 5)), 0)
DENSE[2] = 0  # a row without elements
MATRICES = {
    "csr": sparse.csr_array(DENSE),
    "csc": sparse.csc_matrix(DENSE),
    "coo": sparse.coo_array(DENSE),
    "empty": sparse.csr_array((4, 5)),
    "duplicates": sparse.coo_array(([1.0, 2.0, 3.0, 4.0], ([3, 0, 3, 0], [1, 4, 1, 2])), (4, 5)),
}
matrices = pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
SHAPES = [(5,), (5, 1), (5, 3), (2, 5, 3), (2, 0, 5, 3), (5, 0)]


def of(matrix, device="cpu", dtype=None, transposed=False):
    made = from_scipy(matrix, device=device, dtype=dtype)
    return made.T if transposed else made


@matrices
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float32", 1e-6), ("float16", 5e-3)])
def test_products_are_those_of_the_dense_matrix(matrix, shape, transposed, dtype, tolerance, device):
    a = of(matrix, device, getattr(leafgrad, dtype), transposed)
    dense = matrix.toarray().T if transposed else matrix.toarray()
    x = RNG.normal(size=[{5: dense.shape[1]}.get(n, n) for n in shape]).astype(dtype)
    y = a @ leafgrad.tensor(x, device=device)
    assert (y.dtype.name, y.device) == (dtype, device)
    np.testing.assert_allclose(y.cpu().numpy(), dense @ x.astype("float64"), rtol=tolerance, atol=tolerance)


@matrices
def test_there_and_back(matrix):
    a = from_scipy(matrix)
    assert (a.shape, a.nnz, a.dtype) == ((4, 5), sparse.csr_array(matrix).nnz, leafgrad.float64)
    for made, expected in [(a, matrix.toarray()), (a.T, matrix.toarray().T)]:
        np.testing.assert_array_equal(made.to_scipy().toarray(), expected)
        np.testing.assert_array_equal(made.to_dense().numpy(), expected)
        np.testing.assert_array_equal(expected[made.rows.numpy(), made.columns.numpy()], made.values.numpy())
    np.testing.assert_array_equal(from_dense(leafgrad.tensor(matrix.toarray())).to_dense().numpy(), matrix.toarray())


@pytest.mark.parametrize("shape", [(5,), (5, 2), (2, 5, 2)])
@pytest.mark.parametrize("transposed", [False, True])
def test_derivatives(shape, transposed):
    a = of(MATRICES["csr"], transposed=transposed)
    x = leafgrad.tensor(RNG.normal(size=[{5: a.shape[1]}.get(n, n) for n in shape]), requires_grad=True)
    values = a.values.clone().detach().requires_grad_()

    def function(values, x):
        return (a.with_values(values) @ x) ** 3

    assert gradcheck(function, (values, x))
    assert gradgradcheck(function, (values, x))

    def second(values, x):
        first = grad(function(values, x).sum(), [values, x], create_graph=True)
        return grad(sum((g * g).sum() for g in first), [values, x], create_graph=True)

    assert gradcheck(second, (values, x), atol=1e-3, fast_mode=True)


def test_gradients_are_those_of_the_dense_product(device):
    a = of(MATRICES["csr"], device).requires_grad_()
    x = leafgrad.tensor(RNG.normal(size=(5, 3)), device=device, requires_grad=True)
    g = leafgrad.tensor(RNG.normal(size=(4, 3)), device=device)
    to_values, to_x = grad(a @ x, [a.values, x], g)
    expected = (g @ x.detach().T)[a.rows.long(), a.columns.long()]
    np.testing.assert_allclose(to_values.cpu().numpy(), expected.cpu().numpy(), rtol=1e-13)
    np.testing.assert_allclose(to_x.cpu().numpy(), DENSE.T @ g.cpu().numpy(), rtol=1e-13)


PLACES = (np.array([0, 0, 1, 3]), np.array([1, 4, 0, 4]), np.array([0, 2, 3, 3, 4]))
VALUES, TALL, WIDE = RNG.normal(size=4), RNG.normal(size=(4, 2)), RNG.normal(size=(3, 5, 2))


def sparse_product(values, dense, rows, columns, starts, *, shape, transposed):
    matrix = sparse.csr_array((values, columns, starts), shape).toarray()
    return (matrix.T if transposed else matrix) @ dense


def sampled_product(left, right, rows, columns, starts, *, shape):
    return (left @ np.swapaxes(right, -1, -2))[..., rows, columns]


# Op, samples, reference.
ROWS = [
    (
        sparse_ops.sparse_matmul,
        [
            ((VALUES, WIDE, *PLACES), {"shape": (4, 5), "transposed": False}),
            ((VALUES, TALL, *PLACES), {"shape": (4, 5), "transposed": True}),
        ],
        sparse_product,
    ),
    (
        sparse_ops.sampled_matmul,
        [((TALL, WIDE[0], *PLACES), {"shape": (4, 5)}), ((np.stack([TALL] * 3), WIDE, *PLACES), {"shape": (4, 5)})],
        sampled_product,
    ),
]


@pytest.mark.parametrize(("op", "samples", "reference"), ROWS, ids=lambda row: getattr(row, "name", ""))
def test_ops(op, samples, reference, device):
    for args, params in samples:
        tensors = [leafgrad.tensor(a, device=device) for a in args]
        np.testing.assert_allclose(op(*tensors, **params).cpu().numpy(), reference(*args, **params), rtol=1e-13)
        first, second, *places = [leafgrad.tensor(a, requires_grad=a.dtype.kind == "f") for a in args]

        def function(x, y, op=op, places=places, params=params):
            return op(x, y, *places, **params) ** 2

        assert gradcheck(function, (first, second), check_forward_ad=True)
        assert gradgradcheck(function, (first, second), check_fwd_over_rev=True)


def test_a_batch_of_places_is_refused():
    x, y, rows, *others = [leafgrad.tensor(a) for a in (TALL, WIDE[0], *PLACES)]
    with pytest.raises(RuntimeError, match="sampled_matmul: expected the places of one matrix, got a batch of them"):
        vmap(lambda rows: sparse_ops.sampled_matmul(x, y, rows, *others, shape=(4, 5)))(leafgrad.stack([rows, rows]))


def test_gradients_flow_through_assembly_and_to_dense():
    rows, columns = [3, 0, 3, 0], [1, 4, 1, 2]
    values = leafgrad.tensor([1.0, 2.0, 3.0, 4.0], dtype=leafgrad.float64, requires_grad=True)
    x = leafgrad.tensor(RNG.normal(size=5))
    assert gradcheck(lambda v: (from_coo(rows, columns, v, (4, 5)) @ x) ** 2, (values,))
    assert gradcheck(lambda v: from_coo(rows, columns, v, (4, 5)).T.to_dense() ** 2, (values,))
    (g,) = grad(from_dense(leafgrad.diag(values)).values.sum(), values)
    assert g.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("of_values", [False, True])
@pytest.mark.parametrize("of_x", [False, True])
def test_batches_and_their_gradients(transposed, of_values, of_x):
    a = of(MATRICES["csr"], transposed=transposed)
    values, x = RNG.normal(size=(3, a.nnz)), RNG.normal(size=(3, a.shape[1], 2))
    args = [leafgrad.tensor(v if b else v[0]) for v, b in [(values, of_values), (x, of_x)]]
    if not (of_values or of_x):
        return

    def gradients(v, x):
        v, x = v.clone().requires_grad_(), x.clone().requires_grad_()
        y = a.with_values(v) @ x
        return (y, *grad((y**3).sum(), [v, x]))

    def product(v, x):
        return leafgrad.func.grad(lambda v, x: ((a.with_values(v) @ x) ** 3).sum(), (0, 1))(v, x)

    found = vmap(product, (0 if of_values else None, 0 if of_x else None))(*args)
    for k in range(3):
        _, *expected = gradients(args[0][k] if of_values else args[0], args[1][k] if of_x else args[1])
        for f, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(f[k].numpy(), e.numpy(), rtol=1e-13)


def test_compiled_and_eager_agree(device):
    a = of(MATRICES["csr"], device)
    values, x = a.values.clone().requires_grad_(), leafgrad.tensor(RNG.normal(size=(5, 2)), device=device)

    def step(values, x):
        y = a.with_values(leafgrad.sin(values)) @ x
        return grad((y * y).sum(), values)[0]

    compiled = leafgrad.compile(step)
    for _ in range(3):
        np.testing.assert_allclose(compiled(values, x).cpu().numpy(), step(values, x).cpu().numpy(), rtol=1e-13)


def test_the_kernel_of_cupy_does_what_the_forward_does(monkeypatch):
    """With scipy.sparse in the place of cupyx.scipy.sparse, which has the same classes."""
    monkeypatch.setattr(sparse_ops, "cuda_library", lambda: sparse)
    a = of(MATRICES["csr"])
    args = [t.numpy() for t in (a.values, leafgrad.ones(5, 2, dtype=leafgrad.float64), a.rows, a.columns)]
    args.append(MATRICES["csr"].indptr)
    op = sparse_ops.sparse_matmul
    found, expected = (f(np, *args, shape=(4, 5), transposed=False) for f in (op.kernels["cupy"], op.forward))
    np.testing.assert_array_equal(found, expected)


def test_dtypes_and_devices_of_the_matrix(device):
    a = from_scipy(sparse.csr_array(DENSE != 0))
    assert a.dtype is leafgrad.float32
    moved = a.to(device, leafgrad.float64)
    assert (moved.device, moved.dtype, moved.rows.device) == (device, leafgrad.float64, device)
    assert repr(a) == f"SparseMatrix(shape=(4, 5), nnz={a.nnz}, dtype=leafgrad.float32, device='cpu')"


def test_what_is_made_of_scipys_matrix_is_a_copy():
    matrix = sparse.csr_array(DENSE)
    a = from_scipy(matrix)
    matrix.data[:] = 0
    assert a.values.abs().min() > 0
    a.to_scipy().data[:] = 0
    assert a.values.abs().min() > 0


ONE = leafgrad.ones(1)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda a: a @ leafgrad.ones(4), RuntimeError, r"A of shape \(4, 5\) and x of shape \(4,\) do not go together"),
        (
            lambda a: a @ leafgrad.ones(5, dtype=leafgrad.float32),
            RuntimeError,
            r"both of one dtype .* convert one of them",
        ),
        (lambda a: a @ np.ones(5), TypeError, r"A @ x: x: expected a Tensor, got ndarray"),
        (lambda a: a.with_values(ONE), RuntimeError, r"with_values: values: expected floating numbers of shape"),
        (lambda a: a.with_values(np.ones(1)), TypeError, r"with_values: values: expected a Tensor, got ndarray"),
        (lambda a: from_scipy(DENSE), TypeError, r"from_scipy: expected a matrix of scipy.sparse, got ndarray"),
        (lambda a: from_scipy(sparse.csr_array(DENSE * 1j)), TypeError, r"from_scipy: expected real numbers"),
        (lambda a: from_coo([4], [0], ONE, (4, 5)), RuntimeError, r"rows: expected integers from 0 to 3, got 4 to 4"),
        (lambda a: from_coo([0], [-1], ONE, (4, 5)), RuntimeError, r"columns: expected integers from 0 to 4, got -1"),
        (
            lambda a: from_coo([0, 1], [0], ONE, (4, 5)),
            RuntimeError,
            r"rows: expected one for each value, shape \(1,\)",
        ),
        (lambda a: from_coo([0.5], [0], ONE, (4, 5)), TypeError, r"rows: expected integers, got float64"),
        (lambda a: from_coo([0], [0], ONE.int(), (4, 5)), TypeError, r"values: expected a Tensor of floating numbers"),
        (lambda a: from_dense(ONE), RuntimeError, r"from_dense: expected a Tensor of 2 dimensions, got 1"),
    ],
)
def test_what_is_refused(call, error, match):
    with pytest.raises(error, match=match):
        call(from_scipy(MATRICES["csr"]))


def test_the_entry_point_is_found():
    plugins.load()
    (found,) = [p for p in plugins.status() if p.name == "sparse"]
    assert (found.distribution, found.status) == ("leafgrad-sparse", "active")
    assert plugins.op("sparse_matmul") is leafgrad_sparse.leafgrad_ops()[0]

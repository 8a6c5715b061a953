"""Ops and products by the conformance kit, with dense products as the reference; formats, devices, errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import leafgrad
import leafgrad_sparse
from leafgrad import plugins
from leafgrad.autograd import grad, gradcheck
from leafgrad.func import vmap
from leafgrad.testing import check_op, fake
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
def test_products_are_those_of_the_dense_matrix(matrix, shape, transposed):
    a = of(matrix, transposed=transposed)
    dense = matrix.toarray().T if transposed else matrix.toarray()
    x = RNG.normal(size=[{5: dense.shape[1]}.get(n, n) for n in shape])
    np.testing.assert_allclose((a @ leafgrad.tensor(x)).numpy(), dense @ x, rtol=1e-14, atol=1e-14)


@matrices
def test_there_and_back(matrix):
    a = from_scipy(matrix)
    assert (a.shape, a.nnz, a.dtype) == ((4, 5), sparse.csr_array(matrix).nnz, leafgrad.float64)
    for made, expected in [(a, matrix.toarray()), (a.T, matrix.toarray().T)]:
        np.testing.assert_array_equal(made.to_scipy().toarray(), expected)
        np.testing.assert_array_equal(made.to_dense().numpy(), expected)
        np.testing.assert_array_equal(expected[made.rows.numpy(), made.columns.numpy()], made.values.numpy())
    np.testing.assert_array_equal(from_dense(leafgrad.tensor(matrix.toarray())).to_dense().numpy(), matrix.toarray())


PLACES = (np.array([0, 0, 1, 3]), np.array([1, 4, 0, 4]), np.array([0, 2, 3, 3, 4]))
VALUES, TALL, WIDE = RNG.normal(size=4), RNG.normal(size=(4, 2)), RNG.normal(size=(3, 5, 2))


def sparse_product(values, dense, *, shape, transposed):
    rows, columns, _ = PLACES
    matrix = np.zeros((*values.shape[:-1], *shape))
    matrix[..., rows, columns] = values
    return (np.swapaxes(matrix, -1, -2) if transposed else matrix) @ dense


def sampled_product(left, right, *, shape):
    rows, columns, _ = PLACES
    return (left @ np.swapaxes(right, -1, -2))[..., rows, columns]


fake.register()
fake.on_host(sparse_ops.sparse_matmul)
DEVICES = [leafgrad.device(d) for d in ("cpu", "fake:0")]


def on_places(op):
    """The op as a function of what is no constant."""
    places = {d: [leafgrad.tensor(p, device=d) for p in PLACES] for d in DEVICES}

    def function(x, y, **params):
        return op(x, y, *places[y.device], **params)

    function.__name__ = op.name
    return function


def of_matrix(name, product):
    """A product with a matrix as a function of its values and of the dense tensor."""
    at = {d: of(MATRICES["csr"], d) for d in DEVICES}

    def function(values, x):
        return product(at[x.device].with_values(values), x)

    def reference(values, x):
        return product(at[DEVICES[0]].with_values(leafgrad.tensor(values)).to_dense().numpy(), x)

    function.__name__ = name
    return function, reference


def dense(*shapes):
    """Values of the matrix with dense arrays of these shapes."""
    return [((RNG.normal(size=np.count_nonzero(DENSE)), RNG.normal(size=s)), {}) for s in shapes]


def row(name, product, *shapes):
    function, reference = of_matrix(name, product)
    return function, dense(*shapes), reference


# Function, samples, reference.
ROWS = [
    (
        on_places(sparse_ops.sparse_matmul),
        [
            ((VALUES, WIDE), {"shape": (4, 5), "transposed": False}),
            ((VALUES, TALL), {"shape": (4, 5), "transposed": True}),
            ((np.stack([VALUES] * 3), WIDE), {"shape": (4, 5), "transposed": False}),
            ((VALUES, WIDE[:0]), {"shape": (4, 5), "transposed": False}),
        ],
        sparse_product,
    ),
    (
        on_places(sparse_ops.sampled_matmul),
        [((TALL, WIDE[0]), {"shape": (4, 5)}), ((np.stack([TALL] * 3), WIDE), {"shape": (4, 5)})],
        sampled_product,
    ),
    row("A @ x", lambda a, x: (a @ x) ** 2, (5,), (5, 2), (2, 5, 2)),
    row("A.T @ x", lambda a, x: (a.T @ x) ** 2, (4,), (4, 1)),
    row("x @ A", lambda a, x: (x @ a) ** 2, (4,), (2, 4), (3, 2, 4)),
]


@pytest.mark.parametrize(("function", "samples", "reference"), ROWS, ids=[row[0].__name__ for row in ROWS])
def test_products(function, samples, reference):
    check_op(function, samples, reference, executors=["numpy"])


def test_products_and_their_gradients_run_in_chunks():
    a, rows = of(MATRICES["csr"]), 300_000  # that no cache holds

    def step(values, x):
        y = a.with_values(leafgrad.sin(values)) @ leafgrad.sin(x)
        return grad((y * y).sum(), [values, x])

    values, x = a.values.clone().requires_grad_(), leafgrad.tensor(RNG.normal(size=(rows, 5, 2)), requires_grad=True)
    compiled = leafgrad.compile(step, executor="numpy")
    for _ in range(3):
        for found, expected in zip(compiled(values, x), step(values, x), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)
    assert "not chunked" not in compiled.explain()
    assert f"loop over {rows} rows" in compiled.explain()


def test_a_batch_of_places_is_refused():
    x, y, rows, *others = [leafgrad.tensor(a) for a in (TALL, WIDE[0], *PLACES)]
    with pytest.raises(RuntimeError, match="sampled_matmul: expected the places of one matrix, got a batch of them"):
        vmap(lambda rows: sparse_ops.sampled_matmul(x, y, rows, *others, shape=(4, 5)))(leafgrad.stack([rows, rows]))


@pytest.mark.parametrize("count", [2, 4])
def test_values_of_an_inner_batch_times_vectors_of_an_outer_one(count):
    places, values = ([0, 2, 1], [1, 0, 1]), leafgrad.arange(6.0, dtype=leafgrad.float64).reshape(2, 3)
    vectors = leafgrad.arange(2.0 * count, dtype=leafgrad.float64).reshape(count, 2) - 2

    def products(made):
        return vmap(lambda x: vmap(lambda v: made(v) @ x)(values))(vectors)

    def dense(v):
        return leafgrad.zeros(3, 2, dtype=v.dtype).index_put(tuple(map(leafgrad.tensor, places)), v)

    assert leafgrad.equal(products(lambda v: from_coo(*places, v, (3, 2))), products(dense))


def test_gradients_flow_through_assembly_and_to_dense():
    rows, columns = [3, 0, 3, 0], [1, 4, 1, 2]
    values = leafgrad.tensor([1.0, 2.0, 3.0, 4.0], dtype=leafgrad.float64, requires_grad=True)
    x = leafgrad.tensor(RNG.normal(size=5))
    assert gradcheck(lambda v: (from_coo(rows, columns, v, (4, 5)) @ x) ** 2, (values,))
    assert gradcheck(lambda v: from_coo(rows, columns, v, (4, 5)).T.to_dense() ** 2, (values,))
    (g,) = grad(from_dense(leafgrad.diag(values)).values.sum(), values)
    assert g.tolist() == [1, 1, 1, 1]


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
        (lambda a: np.ones(4) @ a, TypeError, r"x @ A: x: expected a Tensor, got ndarray"),
        (lambda a: leafgrad.ones(5) @ a, RuntimeError, r"x @ A: A of shape \(4, 5\) and x of shape \(5,\) do not go"),
        (lambda a: leafgrad.ones(4) + a, TypeError, r"expected a Tensor or a number, got SparseMatrix"),
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
        (lambda a: from_coo([0], [0], ONE, 3), TypeError, r"shape: expected two integers \(m, n\), got 3"),
        (lambda a: from_coo([0], [0], ONE, (4, 5.0)), TypeError, r"shape: expected two integers \(m, n\), got"),
        (lambda a: from_coo([0], [0], ONE, (4, -5)), RuntimeError, r"shape: expected no negative sizes, got"),
        (lambda a: from_coo([0], [0], ONE, (2**40, 2**40)), RuntimeError, r"shape: expected less than 2\*\*63 places"),
        (lambda a: from_coo([[0], [1, 2]], [0], ONE, (4, 5)), TypeError, r"rows: expected integers in one dimension"),
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

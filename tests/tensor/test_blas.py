"""Products of vectors, matrices and tensors: values against NumPy, gradients, errors, PyTorch where it is installed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import leafgrad
from leafgrad import linalg
from leafgrad.autograd import gradcheck, gradgradcheck

TESTS = "tensor.einsum"

CASES = {
    "matmul": (leafgrad.matmul, np.matmul, [(2, 3, 4), (4, 2)]),
    "@": (lambda a, b: a @ b, np.matmul, [(3,), (3, 4)]),
    "mm": (leafgrad.mm, np.matmul, [(2, 3), (3, 4)]),
    "bmm": (leafgrad.bmm, np.matmul, [(2, 2, 3), (2, 3, 4)]),
    "mv": (leafgrad.mv, np.matmul, [(2, 3), (3,)]),
    "dot": (leafgrad.dot, np.dot, [(3,), (3,)]),
    "vdot": (leafgrad.vdot, np.dot, [(3,), (3,)]),
    "inner": (leafgrad.inner, np.inner, [(2, 3), (4, 5, 3)]),
    "inner of a scalar": (leafgrad.inner, np.multiply, [(), (2, 3)]),
    "outer": (leafgrad.outer, np.outer, [(3,), (4,)]),
    "ger": (leafgrad.ger, np.outer, [(3,), (4,)]),
    "kron": (leafgrad.kron, np.kron, [(2, 3), (4, 1)]),
    "kron, batch": (leafgrad.kron, np.kron, [(2,), (3, 1, 2)]),
    "cross": (lambda a, b: leafgrad.cross(a, b, dim=0), lambda a, b: np.cross(a, b, axis=0), [(3, 4), (3, 1)]),
    "trace": (leafgrad.trace, np.trace, [(3, 4)]),
    "addmm": (lambda c, a, b: leafgrad.addmm(c, a, b, beta=0.5, alpha=2), lambda c, a, b: c / 2 + 2 * a @ b,
              [(4,), (2, 3), (3, 4)]),
    "addmv": (leafgrad.addmv, lambda c, a, b: c + a @ b, [(1,), (2, 3), (3,)]),
    "addr": (leafgrad.addr, lambda c, a, b: c + np.outer(a, b), [(2, 1), (2,), (3,)]),
    "baddbmm": (leafgrad.baddbmm, lambda c, a, b: c + a @ b, [(2, 2), (3, 2, 4), (3, 4, 2)]),
    "addbmm": (leafgrad.addbmm, lambda c, a, b: c + (a @ b).sum(0), [(2, 2), (3, 2, 4), (3, 4, 2)]),
    "cdist": (leafgrad.cdist, lambda a, b: np.linalg.norm(a[..., None, :] - b[..., None, :, :], axis=-1),
              [(2, 3, 2), (4, 2)]),
    "tensordot": (leafgrad.tensordot, np.tensordot, [(2, 3, 4), (3, 4, 5)]),
    "tensordot of pairs": (
        lambda a, b: leafgrad.tensordot(a, b, ([0, -2], [1, 0])),
        lambda a, b: np.tensordot(a, b, ([0, -2], [1, 0])),
        [(2, 3, 4), (3, 2)],
    ),
    "tensordot of none": (
        lambda a, b: leafgrad.tensordot(a, b, 0), lambda a, b: np.tensordot(a, b, 0), [(2,), (3,)]
    ),
}  # fmt: skip


EQUATIONS = {
    "ij,jk": [(2, 3), (3, 4)],
    "i j , j k -> k i": [(2, 3), (3, 4)],
    "ba": [(2, 3)],
    "ii": [(3, 3)],
    "ii->i": [(3, 3)],
    "iii->i": [(2, 2, 2)],
    "ij->": [(2, 3)],
    ",": [(), ()],
    "i,->i": [(3,), ()],
    "i,j->ji": [(2,), (3,)],
    "i,i,i": [(3,), (3,), (3,)],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "bn,anm,bm->ba": [(2, 5), (3, 5, 4), (2, 4)],
    "ij,kj,lk,ml->im": [(2, 3), (4, 3), (5, 4), (6, 5)],
    "iij,jk": [(3, 3, 2), (2, 4)],
    "...ij,...jk->...ik": [(6, 2, 3), (3, 4)],
    "...ij,jk": [(2, 2, 3), (3, 4)],
    "...,...": [(2, 3), (3,)],
    "a...b->b...": [(2, 3, 4)],
    "aBc,cB->a": [(2, 3, 4), (4, 3)],
    "Ba,aA": [(2, 3), (3, 4)],
    "ij,k->": [(2, 3), (4,)],
    "ij,jk->ik": [(2, 0), (0, 4)],
}


for equation, sizes in EQUATIONS.items():
    CASES[f"einsum {equation}"] = (
        lambda *x, e=equation: leafgrad.einsum(e, *x),
        lambda *x, e=equation: np.einsum(e, *x),
        sizes,
    )


def normal(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=s) for s in shapes]


def tensors(arrays, device="cpu", dtype=leafgrad.float64):
    return [leafgrad.tensor(a, dtype=dtype, device=device, requires_grad=True) for a in arrays]


@pytest.fixture(params=CASES)
def case(request):
    function, reference, shapes = CASES[request.param]
    return function, reference, normal(*shapes)


def test_values_are_numpys_on_each_device_and_keep_the_dtype(case, device):
    function, reference, arrays = case
    for dtype, tolerance in ((leafgrad.float64, 1e-12), (leafgrad.float32, 1e-5), (leafgrad.float16, 3e-2)):
        ours, theirs = function(*tensors(arrays, device, dtype)), reference(*arrays)
        assert (ours.dtype, ours.device, ours.shape) == (dtype, device, np.shape(theirs))
        np.testing.assert_allclose(ours.detach().cpu().numpy(), theirs, rtol=tolerance, atol=tolerance)


def test_first_and_second_derivatives(case):
    function, _, arrays = case
    assert gradcheck(function, tensors(arrays))
    assert gradgradcheck(function, tensors(arrays), fast_mode=True)


def test_integers_multiply_exactly(device):
    a = leafgrad.tensor([[2**40, 1], [3, -(2**40)]], device=device)
    assert leafgrad.matmul(a, a).tolist() == [[2**80 % 2**64 + 3, 0], [0, 2**80 % 2**64 + 3]]
    assert leafgrad.einsum("ij,kj->ik", a, a).dtype is leafgrad.int64
    assert leafgrad.trace(a.to(leafgrad.int32)).dtype is leafgrad.int64
    small = leafgrad.full((2, 3), 100, dtype=leafgrad.uint8, device=device)
    total = leafgrad.einsum("ij->i", small)
    assert (total.tolist(), total.dtype) == ([300, 300], leafgrad.int64)
    product = leafgrad.tensordot(small, small[:1], 1)
    assert (product.tolist(), product.dtype) == ([[300 * 100 % 256] * 3] * 2, leafgrad.uint8)


def test_einsum_takes_lists_and_integer_labels():
    a, b = tensors(normal((2, 3), (3, 4)))
    want = (a @ b).tolist()
    assert leafgrad.einsum("ij,jk", [a, b]).tolist() == want
    assert leafgrad.einsum(a, [0, 51], b, [51, 7]).tolist() == want
    assert leafgrad.einsum(a, [..., 1], b, [1, 0], [..., 0]).tolist() == want


def test_einsum_broadcasts_dimensions_of_size_one():
    a, b = normal((2, 1), (3, 4))
    ours = leafgrad.einsum("ij,jk->ik", leafgrad.tensor(a), leafgrad.tensor(b))
    np.testing.assert_allclose(ours.numpy(), np.broadcast_to(a, (2, 3)) @ b)


def test_beta_zero_leaves_nan_out():
    nan = leafgrad.full((2, 2), float("nan"))
    one = leafgrad.ones(2, 2)
    assert leafgrad.addmm(nan, one, one, beta=0).tolist() == [[2, 2], [2, 2]]


def test_in_place_variants_write_into_the_tensor():
    c, a, b = tensors(normal((2, 4), (2, 3), (3, 4)))
    c = c.detach()
    want = leafgrad.addmm(c, a, b, beta=2, alpha=3).detach().numpy().copy()
    assert c.addmm_(a, b, beta=2, alpha=3) is c
    np.testing.assert_array_equal(c.detach().numpy(), want)
    assert c.grad_fn is not None


def test_chain_matmul_is_deprecated():
    a, b = tensors(normal((2, 3), (3, 4)))
    with pytest.warns(UserWarning, match="use leafgrad.linalg.multi_dot"):
        assert leafgrad.chain_matmul(a, b).tolist() == (a @ b).tolist()
    with pytest.warns(UserWarning, match="multi_dot"):
        assert leafgrad.chain_matmul(a).data_ptr() != a.data_ptr()


def test_multi_dot_multiplies_in_the_cheapest_order():
    sizes = [30, 35, 15, 5, 10, 20, 25]  # the example of Cormen et al.: ((A1 (A2 A3)) ((A4 A5) A6))
    from leafgrad.tensor.blas import _best_splits

    split = _best_splits(sizes)
    assert (split[0, 5], split[0, 2], split[3, 5]) == (2, 0, 4)
    matrices = [leafgrad.ones(n, m) for n, m in itertools.pairwise(sizes)]
    assert linalg.multi_dot(matrices)[0, 0].item() == 35 * 15 * 5 * 10 * 20


def test_a_shared_weight_gets_the_sum_over_the_batch_as_one_product():
    x, w = tensors(normal((5, 2, 3), (3, 4)))
    y = leafgrad.matmul(x, w)
    assert repr(y.grad_fn).startswith("<UnsafeViewBackward0")
    (gw,) = leafgrad.autograd.grad(leafgrad.sum(y), w)
    np.testing.assert_allclose(gw.numpy(), np.repeat(x.detach().numpy().sum((0, 1))[:, None], 4, axis=1))


ERRORS = [
    (lambda x: x(3, 4) @ x(5, 6), RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(3x4 and 5x6\)"),
    (lambda x: x(3, 4) @ x(4, 3).to(leafgrad.int64), RuntimeError, "expected m1 and m2 to have the same dtype"),
    (lambda x: leafgrad.matmul(x(2), 2.0), TypeError, "argument 'other' must be Tensor, not float"),
    (lambda x: leafgrad.matmul([1.0], x(2)), TypeError, "argument 'input' must be Tensor, not list"),
    (lambda x: leafgrad.mm(x(4), x(4, 2)), RuntimeError, "mm: input must be a matrix, got 1D"),
    (lambda x: leafgrad.mm(x(2, 4), x(4)), RuntimeError, "mm: mat2 must be a matrix, got 1D"),
    (lambda x: leafgrad.bmm(x(2, 4), x(2, 4, 2)), RuntimeError, "input must be a 3D tensor, got 2D"),
    (lambda x: leafgrad.bmm(x(2, 3, 4), x(1, 4, 5)), RuntimeError, r"to be: \[2, 4\] but got: \[1, 4\]"),
    (lambda x: leafgrad.mv(x(2, 3), x(2, 3)), RuntimeError, "vec must be a vector, got 2D"),
    (lambda x: leafgrad.dot(x(2, 3), x(3)), RuntimeError, "1D tensors expected, but got 2D and 1D"),
    (lambda x: leafgrad.dot(x(2), x(3)), RuntimeError, r"inconsistent tensor size, expected tensor \[2\]"),
    (lambda x: leafgrad.outer(x(2, 2), x(3)), RuntimeError, "outer: input must be a vector"),
    (lambda x: leafgrad.inner(x(2), x(3)), RuntimeError, r"but got shapes \[2\] and \[3\]"),
    (lambda x: leafgrad.addmm(x(3), x(2, 2), x(2, 2)), RuntimeError, "3"),
    (
        lambda x: leafgrad.addmm(x(2).to(leafgrad.float64), x(2, 2), x(2, 2)),
        RuntimeError,
        "expected input to have the dtype",
    ),
    (lambda x: leafgrad.trace(x(2, 2, 2)), RuntimeError, "expected a matrix, but got tensor with dim 3"),
    (lambda x: leafgrad.cross(x(2), x(2)), RuntimeError, "no dimension of size 3"),
    (lambda x: leafgrad.cdist(x(2, 3), x(2, 4)), RuntimeError, "the same number of columns. x1: 3 x2: 4"),
    (lambda x: leafgrad.cdist(x(2, 3), x(3)), RuntimeError, "x2 got: 1D"),
    (lambda x: leafgrad.cdist(x(2, 3), x(2, 3), -1), RuntimeError, "non-negative p values, got -1"),
    (lambda x: leafgrad.tensordot(x(2), x(2), 3), RuntimeError, "got dims=3"),
    (lambda x: leafgrad.tensordot(x(2), x(2), -1), RuntimeError, "expects dims >= 0, but got dims=-1"),
    (lambda x: leafgrad.tensordot(x(2), x(3), 1), RuntimeError, "first has size 2 in dim 0 and second has size 3"),
    (lambda x: leafgrad.tensordot(x(2, 2), x(2), ([0, 1], [0])), RuntimeError, "should have same length"),
    (lambda x: leafgrad.tensordot(x(2, 2), x(2, 2), ([0, 0], [0, 1])), RuntimeError, "appears multiple times"),
    (lambda x: leafgrad.tensordot(x(2), x(2), ([1], [0])), IndexError, "Dimension out of range"),
    (lambda x: leafgrad.einsum("ij,jk", x(2, 3), x(4, 5)), RuntimeError, "subscript j has size 4 for operand 1"),
    (lambda x: leafgrad.einsum("ii", x(2, 3)), RuntimeError, "sizes don't match, 3 != 2"),
    (lambda x: leafgrad.einsum("ij", x(2), x(2)), RuntimeError, "more operands were provided"),
    (lambda x: leafgrad.einsum("i,i", x(2)), RuntimeError, "fewer operands were provided"),
    (lambda x: leafgrad.einsum("ijk", x(2, 3)), RuntimeError, r"\(3\) does not match .* \(2\) for operand 0 and no"),
    (lambda x: leafgrad.einsum("i...jk", x(2, 3)), RuntimeError, r"\(3\) does not match .* \(2\) for operand 0$"),
    (lambda x: leafgrad.einsum("i->ii", x(2)), RuntimeError, "appears more than once in the output"),
    (lambda x: leafgrad.einsum("i->j", x(2)), RuntimeError, "output subscript j does not appear"),
    (lambda x: leafgrad.einsum("i1", x(2, 3)), RuntimeError, "invalid subscript '1' given at index 1"),
    (lambda x: leafgrad.einsum("i..j", x(2, 3)), RuntimeError, "found '.' for operand 0"),
    (lambda x: leafgrad.einsum("", []), RuntimeError, "fewer operands"),
    (lambda x: leafgrad.einsum(x(2)), ValueError, "must specify the equation string"),
    (lambda x: leafgrad.einsum(x(2), [52]), ValueError, r"not within the valid range \[0, 52\): 52"),
    (lambda x: leafgrad.einsum("i", [1.0]), TypeError, r"argument 'operands\[0\]' must be Tensor, not float"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call(lambda *shape: leafgrad.ones(shape))


def test_integers_refuse_fractions():
    a = leafgrad.ones((2, 2), dtype=leafgrad.int64)
    with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
        leafgrad.addmm(a, a, a, alpha=0.5)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_and_its_gradients_are_pytorchs(equation):
    torch = pytest.importorskip("torch")

    def all_of(t):
        xs = [t.tensor(a, requires_grad=True) for a in normal(*EQUATIONS[equation])]
        y = t.einsum(equation, *xs)
        grads = t.autograd.grad(t.sin(y).sum(), xs)
        return [v.detach().numpy() for v in (y, *grads)]

    for ours, theirs in zip(all_of(leafgrad), all_of(torch), strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_einsum_of_complex_numbers_sums_them_as_they_are():
    z = leafgrad.tensor([[1 + 2j, 3j], [4.0, 5 - 1j]])
    assert leafgrad.einsum("ij->", z).item() == 10 + 4j
    assert leafgrad.tensordot(leafgrad.tensor([[[2j]]]), z.reshape(2, 1, 2), ([0, 1], [2, 0])).item() == (10 + 4j) * 2j
    assert leafgrad.addmm(z, z, z, beta=0.5).dtype is leafgrad.complex64


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "float16"])
def test_sums_of_products_keep_the_dtype_of_the_matrices(dtype):
    c, a, b = (np.arange(math.prod(n)).reshape(n) % 5 for n in ((2, 4), (3, 2, 5), (3, 5, 4)))
    found = leafgrad.addbmm(*(leafgrad.tensor(x).to(getattr(leafgrad, dtype)) for x in (c, a, b)), beta=2, alpha=3)
    assert str(found.dtype) == f"leafgrad.{dtype}"
    np.testing.assert_array_equal(found.numpy(), (2 * c + 3 * (a @ b).sum(0)).astype(dtype))


@pytest.mark.parametrize("kinds", [*itertools.product(["int32", "float32", "int64", "bool"], repeat=3)])
def test_addr_promotes_all_that_it_is_given(kinds):
    input, *vectors = (getattr(leafgrad, kind) for kind in kinds)
    out = leafgrad.addr(leafgrad.ones(2, 2).to(input), *(leafgrad.ones(2).to(kind) for kind in vectors))
    kind = leafgrad.promote_types(input, leafgrad.promote_types(*vectors))
    assert (out.dtype, out.tolist()) == (kind, [[1 if kind is leafgrad.bool else 2] * 2] * 2)

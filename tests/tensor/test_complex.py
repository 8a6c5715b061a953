"""Functions of complex numbers: values and gradients of both orders are PyTorch's, in both dtypes."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from parity import agree, flat, gradients

import leafgrad
from leafgrad.autograd import gradcheck

TESTS = "ops.conjugate"

OF_ONE = """
    abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh argwhere asin asinh atan atanh atleast_1d
    atleast_2d atleast_3d block_diag clone conj conj_physical corrcoef cos cosh count_nonzero cov det detach diag
    diag_embed diagflat diagonal diff exp exp2 expm1 fliplr flipud imag inverse isfinite isinf isnan isreal log log10
    log1p log2 logdet logical_not matrix_exp mean neg negative nonzero numel ones_like pinverse positive prod
    ravel real reciprocal resolve_conj resolve_neg rsqrt sgn sigmoid sin sinc sinh slogdet sqrt square squeeze std
    std_mean sum t tan tanh trace trapezoid tril triu unbind var var_mean view_as_real zeros_like is_complex all any
    is_floating_point adjoint
"""
OF_TWO = """
    add dist div divide eq equal float_power inner isclose kron logaddexp logical_and logical_or logical_xor matmul mm
    mul multiply ne not_equal pow rsub sub subtract true_divide allclose
"""
LINALG = "cond det inv matrix_exp matrix_norm norm pinv slogdet svdvals vector_norm matrix_rank"
EXPRESSIONS = """
    z + 2j | 2j - z | z * 1.5 | z / w | 1 / z | z ** 2 | z ** w | z ** 1.5 | 2 ** z | -z | z @ w | abs(z) | z == w
    z != w | z.H | z.mT | z.mH | z.T | z.real | z.imag | z.conj().imag | z.abs().sum() | z.angle() | z.numel()
    z[1] | z[:, 1:] | z[[0, 2, 0]] | z[z.abs() > 1] | z.sum(0) | z.sum(1, keepdim=True) | z.mean(0)
    z.mean(1, keepdim=True) | z.prod(0) | z.prod(1, keepdim=True) | z.std(0) | z.var(1) | z.var(0, correction=0)
    z.cumsum(0) | z.cumprod(1) | z.norm() | z.norm(1) | z.norm(3, dim=0) | z.norm(float("inf"))
    z.norm(0, dim=1).detach() | t.logsumexp(z, 0) | t.logcumsumexp(z, 1) | t.cumulative_trapezoid(z)
    t.gradient(z)[0] | t.lerp(z, w, 0.3) | t.lerp(z, w, 0.8j) | t.lerp(z, w, z * w) | t.addcmul(z, z, w, value=0.5)
    t.addcdiv(z, z, w, value=2j) | t.addmm(z, z, w, beta=0.5, alpha=2j) | t.addmv(z[0], z, w[1])
    t.addbmm(z, z[None], w[None]) | t.baddbmm(z[None], z[None], w[None], beta=2) | t.bmm(z[None], w[None])
    t.dot(z[0], w[0]) | t.vdot(z[0], w[0]) | t.linalg.vecdot(z, w) | t.outer(z[0], w[1]) | t.mv(z, w[0])
    t.linalg.cross(z, w) | t.tensordot(z, w, 1) | t.einsum("ij,kj->ik", z, w.conj()) | t.einsum("ii->", z)
    t.einsum("ij,ij->", z, w) | t.linalg.multi_dot([z, w, z]) | t.where(z.real > 0.6, z, w)
    t.masked_fill(z, z.real > 0.6, 2j) | z.masked_select(z.imag > 0.5) | z.masked_scatter(z.imag > 0.5, w)
    t.gather(z, 0, i) | z.scatter(0, i, w) | z.scatter_add(0, j, w) | z.index_select(1, j[0])
    z.index_add(0, j[1], w) | z.index_copy(0, p, w) | z.index_fill(0, j[1], 1j) | z.index_put((i[0],), w)
    z.take(j) | t.take_along_dim(z, i, 1) | t.roll(z, 1, 0) | t.rot90(z) | t.flip(z, (0,)) | z.repeat(2, 1)
    z.repeat_interleave(2, 0) | t.tile(z, (2, 2)) | z.expand(2, 3, 3) | z.reshape(9) | z.view(-1) | z.flatten()
    z.transpose(0, 1) | z.permute(1, 0) | z.unsqueeze(1) | z.unfold(0, 2, 1) | z.narrow(1, 1, 2) | z.select(0, 1)
    z.split(2)[1] | z.chunk(2)[0] | t.cat([z, w]) | t.stack([z, w], 1) | t.hstack([z, w]) | t.vstack([z, w])
    t.dstack([z, w]) | t.diagonal_scatter(z, w[0]) | t.triu(z, 1) | t.tril(z, -1) | t.movedim(z, 0, 1)
    t.meshgrid(z[0], w[0], indexing="ij") | t.cartesian_prod(z[0], w[0]) | t.renorm(z, 2, 0, 1.0)
    t.polar(z.abs(), z.angle()) | t.complex(z.real, w.imag) | t.view_as_complex(t.view_as_real(z) * 2)
    t.real(z * w) | t.atan2(z.imag, z.real) | t.linalg.solve(z, w) | t.linalg.solve_triangular(z, w, upper=True)
    t.linalg.cholesky(z @ z.mH) | t.linalg.eigvalsh(z + z.mH) | t.linalg.eigh(z + z.mH)[1].abs()
    t.linalg.svd(z)[0].abs() | t.linalg.svd(z)[2].abs() | t.linalg.qr(z) | t.linalg.eigvals(z).sum()
    t.linalg.eig(z)[1].abs().sum(1) | t.linalg.lu(z) | t.linalg.lu_factor(z)[0] | t.linalg.lstsq(z[:, :2], w)[0]
    t.linalg.pinv(z[:2]) | t.linalg.matrix_power(z, 3) | t.linalg.matrix_power(z, -2) | t.linalg.matrix_power(z, 0)
    t.linalg.householder_product(z, w[0]) | t.orgqr(z[:, :2], w[0, :2]) | t.ormqr(z[:, :2], w[0, :2], w)
    t.ormqr(z, w[0], w, left=False) | t.ormqr(z, w[0], w, transpose=True) | t.ormqr(z, w[0], w[:2], False, True)
    z.sum_to_size(1, 3) | z.sum_to_size(3) | t.norm(z, "nuc") | t.combinations(z[0], 2)
    t.linalg.ldl_factor(z.detach())[0] | t.linalg.ldl_factor(z.detach(), hermitian=True)[1]
    t.linalg.ldl_solve(*t.linalg.ldl_factor(z.detach()), w.detach()) | t.linalg.ldl_factor_ex(z.detach() * 0).info
    t.linalg.matrix_rank(t.stack([z, w]), rtol=z[0, :2].abs())
    t.linalg.pinv(z, rtol=t.tensor(0.1)) | t.geqrf(z.detach())[0]
    t.linalg.lu_solve(*t.linalg.lu_factor(z), w) | t.func.vmap(t.linalg.lu_factor)(t.stack([z, w]))[0]
    t.linalg.matrix_norm(z, "nuc") | t.linalg.matrix_norm(z, 1) | t.linalg.tensorsolve(z, w[0]) | t.linalg.inv(z).H
    t.cholesky_solve(w, t.linalg.cholesky(z @ z.mH).tril()) | t.linalg.vander(z[0])
    F.conv1d(z[None], w[:, :, None]) | F.conv1d(z[None], w[None, :, :2], stride=2, padding=1)
    F.conv2d(z[None, None], w[None, None, :2]) | F.conv_transpose1d(z[None], w[:, :, None], stride=2)
    F.conv3d(z[None, None, None], w[None, None, None, :1, :2]) | F.linear(z, w, z[0]) | F.pad(z, (1, 1))
    F.pad(z[None], (1, 1), mode="circular") | F.unfold(z[None, None], 2) | F.normalize(z)
    F.rms_norm(z, (3,), w[0]) | F.l1_loss(z, w) | F.pairwise_distance(z, w) | F.triplet_margin_loss(z, w, z * w)
    F.pixel_shuffle(z.reshape(1, 9, 1, 1), 3) | F.tanhshrink(z) | F.softsign(z) | t.linspace(0, 2, 5, dtype=z.dtype)
    t.full_like(z, 2j) | z.new_ones(2) | z.new_full((2,), 1j) | z.to(t.complex64) | z.to(t.complex128)
"""
# Those that PyTorch does not differentiate for complex numbers: their gradients are checked without it.
VALUES = """
    t.nan_to_num(z) | F.silu(z) | t.select_scatter(z, w[0], 0, 1) | t.slice_scatter(z, w[:2], 0, 1)
    z.scatter_reduce(0, j, w, "sum") | z.scatter_reduce(0, j, w, "mean") | z.scatter_reduce(0, j, w, "prod")
    F.bilinear(z, w, t.stack([z, w]))
"""


def calls():
    """The functions by name: each of a library t, its nn.functional F, complex z and w, indices i, j (repeated), p."""
    found = {name: f"t.{name}(z)" for name in OF_ONE.split()}
    found |= {f"{name} of two": f"t.{name}(z, w)" for name in OF_TWO.split()}
    found |= {f"linalg.{name}": f"t.linalg.{name}(z)" for name in LINALG.split()}
    found |= {text: text for text in expressions(EXPRESSIONS + VALUES)}
    return {name: compile(text, name, "eval") for name, text in found.items()}


def expressions(table):
    return [text.strip() for text in table.replace("\n", "|").split("|") if text.strip()]


CALLS = calls()
ORDINARY = [*list(CALLS)[::4], *expressions(VALUES)]  # without PyTorch


def operands():
    rng = np.random.default_rng(0)
    z, w = rng.uniform(0.3, 1.2, (2, 3, 3)) * np.exp(1j * rng.uniform(0.2, 1.3, (2, 3, 3)))
    return z + np.diag([1.0, 2.0, 3.0]), w


def of(t, name, z, w):
    i, j = t.tensor([[0, 2, 1], [1, 1, 0], [2, 0, 2]]), t.tensor([[0, 2, 1], [1, 2, 1], [2, 2, 0]])
    names = {"t": t, "F": t.nn.functional, "z": z, "w": w, "i": i, "j": j, "p": i[0]}
    return flat(eval(CALLS[name], names))


def test_there_are_as_many_functions_as_promised():
    assert len(CALLS) > 200


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("name", CALLS if importlib.util.find_spec("torch") else [])
def test_values_and_two_gradients_are_pytorchs(name, dtype):
    torch = pytest.importorskip("torch")
    grad = name not in expressions(VALUES)
    given = {t: [t.tensor(a.astype(dtype), requires_grad=grad) for a in operands()] for t in (torch, leafgrad)}
    left, right = (of(t, name, *given[t]) for t in (torch, leafgrad))
    for order in range(3):
        assert len(left) == len(right)
        for e, a in zip(left, right, strict=True):
            close(e, a, dtype, order)
        left, right = ([r for r in results if getattr(r, "requires_grad", False)] for results in (left, right))
        if not left or order == 2:
            break
        left, right = (
            [g for g in gradients(t, results, given[t]) if g is not None]
            for t, results in ((torch, left), (leafgrad, right))
        )


def close(expected, actual, dtype, order):
    """As ``agree`` does, to the digits that are left in a derivative of this order."""
    if dtype == "complex128" or not hasattr(expected, "dtype"):
        return agree(expected, actual, 1e-9 * 100**order)
    assert str(expected.dtype).removeprefix("torch.") == actual.dtype.name
    e = expected.numpy(force=True)
    scale = np.abs(e[np.isfinite(e)]).max(initial=1)
    np.testing.assert_allclose(actual.detach().numpy(), e, rtol=1e-4 * 10**order, atol=1e-5 * 10**order * scale)


@pytest.mark.parametrize("name", ORDINARY)
def test_gradients_are_differences_of_values(name):
    given = [leafgrad.tensor(a, requires_grad=True) for a in operands()]

    def differentiable(z, w):
        return tuple([r for r in of(leafgrad, name, z, w) if getattr(r, "requires_grad", False)])

    if differentiable(*given):
        assert gradcheck(differentiable, given, check_forward_ad=True, check_batched_grad=False)


@pytest.mark.parametrize(
    "cast",
    [
        lambda z: z.to(leafgrad.float32),
        lambda z: leafgrad.tensor(z.numpy(), dtype=leafgrad.float32),
        lambda z: z.sum(dtype=leafgrad.float32),
        lambda z: leafgrad.softmax(z, 0, dtype=leafgrad.float64),
        lambda z: leafgrad.zeros(2).copy_(z),
        lambda z: leafgrad.zeros(2).__setitem__(0, z[0]),
    ],
)
def test_a_lost_imaginary_part_is_a_warning(cast):
    with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
        cast(leafgrad.tensor([1 + 2j, 3.0]))


def test_python_numbers_of_complex_ones():
    z = leafgrad.tensor([1 + 2j, 3.0])
    assert (complex(z[0]), float(z[1]), int(z[1]), bool(z[0])) == (1 + 2j, 3.0, 3, True)
    for kind in (float, int):
        with pytest.raises(RuntimeError, match=r"cannot be converted to type \w+ without overflow, got \(1\+2j\)"):
            kind(z[0])


@pytest.mark.parametrize(
    "call",
    [
        lambda z, F: F.dropout(z, 0.5),
        lambda z, F: F.dropout2d(z[None, None], 0.5),
        lambda z, F: F.max_unpool1d(z, leafgrad.tensor([[0, 2], [1, 3]]), 2),
        lambda z, F: F.embedding_bag(leafgrad.tensor([[0, 1]]), z, mode="sum"),
    ],
)
def test_layers_that_pytorch_has_for_real_numbers_alone(call):
    with pytest.raises(NotImplementedError, match=r"not implemented for leafgrad\.complex64"):
        call(leafgrad.tensor([[1 + 2j, 3.0], [1j, 2.0]]), leafgrad.nn.functional)
    z = leafgrad.tensor([1 + 2j, 3.0])
    assert (leafgrad.nn.functional.dropout(z, 0.5, training=False) == z).all()
    assert (leafgrad.nn.functional.dropout(z, 1.0) == 0).all()


def test_conversions():
    x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    assert (x.cfloat().dtype, x.cdouble().dtype) == (leafgrad.complex64, leafgrad.complex128)
    assert leafgrad.autograd.grad((x.cdouble() * 1j).imag.sum(), x)[0].tolist() == [1.0, 1.0]


def test_what_factorisations_refuse():
    z = leafgrad.tensor([[1 + 2j, 3.0], [1j, 2.0]])
    with pytest.raises(RuntimeError, match=r"A: expected \(..., m, n\) with m >= n"):
        leafgrad.linalg.householder_product(z[:1], z[0, :1])
    with pytest.raises(RuntimeError, match=r"tau \(..., k\) with k <= m and k <= n, got \[2, 2\] and \[3\]"):
        leafgrad.linalg.householder_product(z, z.new_ones(3))
    with pytest.raises(RuntimeError, match=r"tau dtype .*complex128 does not match A dtype"):
        leafgrad.linalg.householder_product(z, z.new_ones(2).cdouble())
    with pytest.raises(RuntimeError, match="ormqr: other: expected 2 rows of "):
        leafgrad.ormqr(z, z[0], z.new_ones(3, 1))
    with pytest.raises(RuntimeError, match=r"size \{\[3\]\} is not expandable to size \{\[2, 2\]\}"):
        z.sum_to_size(3)


def test_a_batch_with_a_matrix_without_factors():
    def factors(a):
        return leafgrad.linalg.lu_factor(a)[0]

    assert leafgrad.vmap(factors)(leafgrad.eye(2).expand(3, 2, 2)).shape == (3, 2, 2)
    with pytest.raises(leafgrad.linalg.LinAlgError, match=r"U\[i,i\] is zero"):
        leafgrad.vmap(factors)(leafgrad.stack([leafgrad.eye(2), leafgrad.zeros(2, 2)]))
    with pytest.raises(leafgrad.linalg.LinAlgError, match=r"\(Batch element 1\): U\[1,1\] is zero"):
        factors(leafgrad.stack([leafgrad.eye(2), leafgrad.zeros(2, 2)]))


@pytest.mark.parametrize(
    "call", ["max", "sort", "argmax", "floor", "sign", "round", "median", "relu", "softmin", "cummax"]
)
def test_what_needs_an_order_refuses(call):
    z = leafgrad.tensor([1 + 2j, 3.0])
    with pytest.raises((NotImplementedError, RuntimeError), match=r"not implemented for|expected"):
        (getattr(leafgrad, call, None) or getattr(leafgrad.nn.functional, call))(
            z, *([0] if call in ("cummax", "softmin") else [])
        )
    with pytest.raises(NotImplementedError, match="not implemented for"):
        _ = z < z

"""Public reductions, extremes, running sums and products, softmax, quantiles."""

from __future__ import annotations

import math
import warnings

import numpy as np
import parity
import pytest

import leafgrad
from leafgrad.ops import reduce, softmax

CUBE = np.random.default_rng(0).normal(size=(3, 4, 2))
TIES = np.array([[1.0, 3.0, 3.0, 2.0], [2.0, 2.0, 2.0, 2.0], [5.0, 1.0, 1.0, 5.0]])
INTS = np.random.default_rng(1).integers(-4, 5, (5, 3))
NANS = np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, 3.0]])

# ---- what they give -------------------------------------------------------------------------------------------------


@pytest.fixture
def x(device):
    return leafgrad.tensor([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]], device=device)


def test_sums_and_means(x):
    assert x.sum().item() == 21
    assert x.sum(0).tolist() == [5, 8, 8]
    assert x.sum((0, 1), keepdim=True).tolist() == [[21]]
    assert x.sum(()).item() == 21
    assert x.mean(-1).tolist() == pytest.approx([8 / 3, 13 / 3])
    assert x.prod().item() == 720
    assert leafgrad.nansum(x / 0 * 0).item() == 0
    assert x.var(unbiased=False).item() == pytest.approx(np.var([1, 5, 2, 4, 3, 6]))
    assert x.std(0).tolist() == pytest.approx(np.std([[1, 5, 2], [4, 3, 6]], 0, ddof=1).tolist())
    var, mean = leafgrad.var_mean(x, 1, correction=0)
    assert mean.tolist() == pytest.approx(x.mean(1).tolist())
    assert var.tolist() == pytest.approx(x.var(1, correction=0).tolist())
    std, mean = leafgrad.std_mean(x)
    assert (std.item(), mean.item()) == pytest.approx((x.std().item(), 3.5))


def test_extremes_along_a_dimension_are_named(x):
    found = x.max(1)
    assert found.values.tolist() == [5, 6]
    assert found.indices.tolist() == [1, 2]
    values, indices = x.min(dim=0, keepdim=True)
    assert values.tolist() == [[1, 3, 2]]
    assert indices.tolist() == [[0, 1, 0]]
    assert x.max().item() == 6
    assert x.max(x.flip(0)).tolist() == [[4, 5, 6], [4, 5, 6]]
    assert x.amax((0, 1)).item() == 6
    assert leafgrad.aminmax(x, dim=1).min.tolist() == [1, 3]
    assert x.argmax().item() == 5
    assert x.argmin(1, keepdim=True).tolist() == [[0], [1]]
    assert x.median().item() == 3
    assert x.median(1).values.tolist() == [2, 4]
    assert leafgrad.mode(leafgrad.tensor([2, 1, 1, 2], device=x.device)).values.item() == 1
    assert x.cummax(1).indices.tolist() == [[0, 1, 1], [0, 0, 2]]
    assert x.cummin(1).values.tolist() == [[1, 1, 1], [4, 3, 3]]


def test_logic_counts_and_norms(x):
    assert (x > 5).any().item() is True
    assert (x > 1).all(dim=1).tolist() == [False, True]
    assert x.any(()).shape == x.shape
    assert (x > 2).count_nonzero(0).tolist() == [1, 2, 1]
    assert x.norm().item() == pytest.approx(math.sqrt(91))
    assert x.norm(1, dim=1).tolist() == [8, 13]
    assert x.norm(math.inf).item() == 6
    assert x.norm(-math.inf).item() == 1
    assert x.norm(0).item() == 6
    assert leafgrad.dist(x, x + 1, 1).item() == 6


def test_unique(device):
    x = leafgrad.tensor([[2, 1], [2, 3], [2, 1]], device=device)
    values, inverse, counts = leafgrad.unique(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3]
    assert inverse.tolist() == [[1, 0], [1, 2], [1, 0]]
    assert counts.tolist() == [2, 3, 1]
    rows, counts = x.unique(dim=0, return_counts=True)
    assert rows.tolist() == [[2, 1], [2, 3]]
    assert counts.tolist() == [2, 1]


def test_softmax_neither_overflows_nor_loses_small_numbers(device):
    x = leafgrad.tensor([1000.0, 0.0, -math.inf], device=device)
    assert x.softmax(0).tolist() == [1, 0, 0]
    assert x.log_softmax(0).tolist() == [0, -1000, -math.inf]
    assert x.logsumexp(0).item() == 1000
    assert leafgrad.logsumexp(leafgrad.full((2,), -math.inf, device=device), 0).item() == -math.inf


@pytest.mark.parametrize(("shape", "dim"), [((64, 3), 1), ((3, 64), 0), ((9, 24, 8), 1), ((70, 25), 1), ((2, 3), 1)])
def test_softmax_along_short_rows_is_what_it_says(shape, dim, device):
    x = np.random.default_rng(0).standard_normal(shape) * 5
    p = np.exp(x) / np.exp(x).sum(dim, keepdims=True)
    for layout in (
        leafgrad.tensor(x, device=device),
        leafgrad.tensor(x.T.copy(), device=device).permute(*range(x.ndim)[::-1]),
    ):
        found = layout.softmax(dim), layout.log_softmax(dim)
        for given, expected in zip(found, (p, np.log(p)), strict=True):
            assert given.is_contiguous()
            np.testing.assert_allclose(given.cpu().numpy(), expected, rtol=1e-9)


def test_float16_is_added_up_in_float32(device):
    x = leafgrad.full((20_000,), 3.0, dtype=leafgrad.float16, device=device)
    assert x.sum().item() == 60_000
    assert x.mean().item() == 3
    assert x.norm().item() == pytest.approx(3 * math.sqrt(20_000), rel=1e-3)
    assert x.var().item() == 0
    assert x.softmax(0).sum().item() == pytest.approx(1, rel=2e-2)


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_are_those_of_numpy(interpolation, device):
    x = leafgrad.tensor(CUBE, device=device)
    for q in (0.0, 0.3, 0.5, 1.0):
        want = np.quantile(CUBE, q, axis=1, method=interpolation)
        np.testing.assert_allclose(leafgrad.quantile(x, q, 1, interpolation=interpolation).tolist(), want)
    both = leafgrad.quantile(x, leafgrad.tensor([0.25, 0.75], dtype=leafgrad.float64, device=device), keepdim=True)
    assert both.shape == (2, 1, 1, 1)


# ---- gradients ------------------------------------------------------------------------------------------------------


def test_equal_extremes_share_the_gradient_unless_an_index_names_one():
    x = leafgrad.tensor([2.0, 1.0, 2.0], requires_grad=True)
    for f in (leafgrad.max, leafgrad.amax):
        assert leafgrad.autograd.grad(f(x), x)[0].tolist() == [0.5, 0, 0.5]
    assert leafgrad.autograd.grad(x.max(0).values, x)[0].tolist() == [1, 0, 0]
    assert leafgrad.autograd.grad(x.median(), x)[0].tolist() == [0.5, 0, 0.5]


@pytest.mark.parametrize("g", [math.nan, math.inf])
@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_gradients_without_a_value_reach_what_was_chosen_alone(t, name, g):
    x = t.tensor([3.0, 1.0, 2.0], requires_grad=True)
    found = getattr(x, name)()
    found.backward(t.tensor(g))
    chosen = x.detach() == found.detach()
    assert x.grad[~chosen].tolist() == [0, 0]
    assert x.grad[chosen].tolist() == pytest.approx([g], nan_ok=True)


def test_products_with_zeros_have_gradients_of_every_order():
    x = leafgrad.tensor([0.0, 2.0, 0.0, 3.0], dtype=leafgrad.float64, requires_grad=True)
    assert leafgrad.autograd.grad(x.prod(), x)[0].tolist() == [0, 0, 0, 0]
    (g,) = leafgrad.autograd.grad(x.prod(), x, create_graph=True)
    (h,) = leafgrad.autograd.grad(g[0], x, create_graph=True)
    assert h.tolist() == [0, 0, 6, 0]
    (k,) = leafgrad.autograd.grad(h[2], x)
    assert k.tolist() == [0, 3, 0, 2]
    assert leafgrad.autograd.grad(x.cumprod(0).sum(), x)[0].tolist() == [3, 0, 0, 0]


OPS = [(name, {}) for name in "sum mean nansum prod var std logsumexp amax amin".split()]


@pytest.mark.parametrize(("name", "given"), [*OPS, *(("norm", {"p": p}) for p in (1, 2, 3.0))])
@pytest.mark.parametrize("shape", [(3, 4), ()])
@pytest.mark.parametrize("dim", [0, -1, None, (-1,), (), [-1]])
def test_as_ops_reductions_take_any_dim_and_so_do_their_gradients(name, given, shape, dim):
    op = softmax.logsumexp if name == "logsumexp" else getattr(reduce, name)
    x = leafgrad.tensor(np.random.default_rng(0).uniform(0.5, 1.5, shape), requires_grad=True)
    over = range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    counted = tuple(d % len(shape) for d in over) if shape else ()

    def derivatives(dim):
        y = op(x, dim=dim, keepdim=True, **given)
        (g,) = leafgrad.autograd.grad((y * y).sum(), x, create_graph=True)
        return y, g, *leafgrad.autograd.grad((g * g).sum(), x)

    for found, expected in zip(derivatives(dim), derivatives(counted), strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [leafgrad.float64, leafgrad.complex128])
@pytest.mark.parametrize(
    "call",
    [leafgrad.std, *(lambda x, p=p: leafgrad.norm(x, p) for p in (1.5, 2.0, 3.0)), lambda x: leafgrad.dist(x, x)],
)
def test_norm_and_std_have_derivatives_zero_where_they_are_zero(call, dtype):
    x = leafgrad.zeros(3, dtype=dtype, requires_grad=True)
    (g,) = leafgrad.autograd.grad(call(x), x, create_graph=True)
    assert g.tolist() == [0, 0, 0]
    assert leafgrad.func.jvp(call, (x.detach(),), (leafgrad.arange(1.0, 4.0).to(dtype),))[1].tolist() == 0
    if call is leafgrad.std:
        assert leafgrad.autograd.grad(g.real.sum(), x)[0].tolist() == [0, 0, 0]


def test_norms_of_complex_numbers_have_second_derivatives_where_some_are_zero():
    z = leafgrad.tensor([0, 2 + 0j], requires_grad=True)
    for length in (z.norm(), leafgrad.linalg.vector_norm(z), leafgrad.linalg.matrix_norm(z[None])):
        (g,) = leafgrad.autograd.grad(length, z, create_graph=True)
        assert leafgrad.autograd.grad(g[0].real + 2 * g[1].imag, z)[0].tolist() == [0.5, 1j]


def test_in_place_running_sums():
    x = leafgrad.tensor([1.0, 2.0, 3.0])
    assert x.cumsum_(0) is x
    assert x.tolist() == [1, 3, 6]
    assert x.cumprod_(0).tolist() == [1, 3, 18]


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "exception", "pattern"),
    [
        (lambda x: x.sum(5), IndexError, r"expected to be in range of \[-2, 1\], but got 5"),
        (lambda x: x[0, 0].sum(1), IndexError, r"expected to be in range of \[-1, 0\], but got 1"),
        (lambda x: x.sum((0, 0)), RuntimeError, "dim 0 appears multiple times"),
        (lambda x: x.sum("a"), TypeError, "'dim' .*must be int.*, not str"),
        (lambda x: x.sum(1.5), TypeError, "'dim' .*must be int.*, not float"),
        (lambda x: x.sum(0, 1), TypeError, "'keepdim' .*must be bool, not int"),
        (lambda x: x.long().mean(), RuntimeError, "Got: leafgrad.int64"),
        (lambda x: x.long().std(), RuntimeError, "only support floating point"),
        (lambda x: x.long().softmax(0), NotImplementedError, "expected a floating point dtype, got leafgrad.int64"),
        (lambda x: x.var(0, True, correction=1), TypeError, "one of unbiased and correction"),
        (lambda x: x[:0].amax(0), IndexError, "amax.*dim 0 to have non-zero size"),
        (lambda x: x[:0].max(), RuntimeError, "Specify the reduction dim"),
        (lambda x: x[:0].argmax(), IndexError, "argmax"),
        (lambda x: x[:0].median(0), IndexError, "median"),
        (lambda x: x.norm("row"), RuntimeError, "expected a number"),
        (lambda x: x.long().norm(), RuntimeError, "floating"),
        (lambda x: x.quantile(2), RuntimeError, r"range \[0, 1\] but got 2"),
        (lambda x: x.quantile(0.5, interpolation="cubic"), RuntimeError, "linear, lower, higher, midpoint, nearest"),
        (lambda x: x.long().quantile(0.5), RuntimeError, "float or double"),
        (lambda x: leafgrad.sum(3), TypeError, "'input' .*must be Tensor, not int"),
        (lambda x: x.cumsum(2), IndexError, r"\[-2, 1\], but got 2\), in cumsum"),
        (lambda x: x.unique(dim=2), IndexError, "unique"),
        (lambda x: x.logsumexp(3), IndexError, "logsumexp"),
        (lambda x: x.sum(dtype="float32"), TypeError, "leafgrad.float32"),
    ],
)
def test_errors(call, exception, pattern, x):
    with pytest.raises(exception, match=pattern):
        call(x)


@pytest.mark.parametrize("rows", [50, 3000])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
def test_a_variance_is_that_of_what_is_far_from_zero(rows, offset, device):
    values = (np.random.default_rng(0).normal(size=(rows, 7)) + offset).astype("float32")
    x, expected = leafgrad.tensor(values, device=device), values.astype("float64").var(0, ddof=1)
    compiled = leafgrad.compile(lambda x: (x.var(0), x.std(0)))
    for _ in range(4):
        found = compiled(x)
    for variance, deviation in ((x.var(0), x.std(0)), found):
        np.testing.assert_allclose(variance.cpu().numpy(), expected, rtol=1e-5)
        np.testing.assert_allclose(deviation.cpu().numpy(), np.sqrt(expected), rtol=1e-5)
    same = leafgrad.full((rows, 7), 123456.7, device=device)
    assert same.var(0).abs().max() < 1e-9
    assert same.std(0).abs().max() < 1e-4


def test_too_few_elements_for_a_variance_warn():
    for f in (leafgrad.var, leafgrad.std):
        with pytest.warns(UserWarning, match="degrees of freedom"):
            assert math.isnan(f(leafgrad.ones(1)).item())


# ---- the same as PyTorch --------------------------------------------------------------------------------------------

SEVERAL = "sum mean nansum nanmean std var amax amin logsumexp norm".split()
FOUND = "max min median mode cummax cummin".split()


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("dim", [0, -1, (0, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_agree_with_pytorch(name, dim, keepdim):
    parity.compare(lambda lib, x: getattr(lib, name)(x, dim=dim, keepdim=keepdim), CUBE)


@pytest.mark.parametrize("name", ["sum", "prod", "all", "any", "nansum", "amax", "logsumexp"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "bool", "uint8", "float32", "float16"])
def test_dtypes_of_reductions_agree_with_pytorch(name, dtype):
    if (name, dtype) in (("logsumexp", "bool"), ("nansum", "bool")):
        pytest.skip("PyTorch has none")
    parity.compare(lambda lib, x: getattr(lib, name)(x, dim=0), np.abs(INTS).astype(dtype), order=0)


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("dim", [0, 1])
def test_extremes_agree_with_pytorch(name, dim):
    parity.compare(lambda lib, x: tuple(getattr(lib, name)(x, dim)), TIES, order=1)
    parity.compare(lambda lib, x: tuple(getattr(lib, name)(x, dim)), CUBE)
    parity.compare(lambda lib, x: tuple(getattr(lib, name)(x, 0)), np.array(1.5))
    if name != "mode":
        parity.compare(lambda lib, x: tuple(getattr(lib, name)(x, 0)), np.array([1.0, np.nan, 3.0, 0.0]), order=0)


@pytest.mark.parametrize(
    ("call", "array", "order"),
    [
        (lambda lib, x: x.sum(), CUBE, 1),
        (lambda lib, x: x.prod(), np.array([2.0, 0.0, 3.0]), 3),
        (lambda lib, x: x.prod(1), CUBE, 3),
        (lambda lib, x: x.cumprod(1), CUBE, 3),
        (lambda lib, x: x.cumprod(0), np.array([2.0, 0.0, 3.0]), 1),
        (lambda lib, x: x.cumsum(-1), CUBE, 1),
        (lambda lib, x: x.cumsum(0), INTS.astype("int32"), 0),
        (lambda lib, x: x.softmax(1), CUBE, 3),
        (lambda lib, x: x.log_softmax(-1), CUBE, 3),
        (lambda lib, x: x.softmax(0), np.array(2.0), 2),
        (lambda lib, x: x.var(correction=2), CUBE, 3),
        (lambda lib, x: x.std(0, False), CUBE, 3),
        (lambda lib, x: x.std(), np.ones(3), 1),
        (lambda lib, x: x.norm(3, dim=1), CUBE, 3),
        (lambda lib, x: x.norm(1.5), np.array([0.0, 1.0, 2.0]), 1),
        (lambda lib, x: x.norm(math.inf), TIES, 1),
        (lambda lib, x: x.max(), TIES, 1),
        (lambda lib, x: x.median(), TIES, 1),
        (lambda lib, x: x.max(), NANS, 1),
        (lambda lib, x: x.nanmean(1), NANS, 1),
        (lambda lib, x: x.nansum(), NANS, 1),
        (lambda lib, x: x.logsumexp((0, 1)), CUBE, 3),
        (lambda lib, x: x.argmax(), TIES, 0),
        (lambda lib, x: x.argmin(1, True), TIES, 0),
        (lambda lib, x: x.count_nonzero((0, 1)), INTS, 0),
        (lambda lib, x: x.quantile(0.3, 1), CUBE, 1),
        (lambda lib, x: x.quantile(0.5), NANS, 0),
        (lambda lib, x: lib.unique(x, return_inverse=True, return_counts=True), INTS, 0),
        (lambda lib, x: lib.unique(x, dim=1, return_inverse=True), INTS % 2, 0),
        (lambda lib, x: lib.var_mean(x, (0, 2)), CUBE, 2),
        (lambda lib, x: tuple(lib.aminmax(x, dim=1)), CUBE, 2),
    ],
)
def test_other_reductions_agree_with_pytorch(call, array, order):
    parity.compare(call, array, order=order)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "nansum", "any", "all", "var", "logsumexp"])
def test_reductions_of_nothing_agree_with_pytorch(name):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*degrees of freedom")
        parity.compare(lambda lib, x: getattr(lib, name)(x, 0), np.zeros((0, 3)), order=0)


@pytest.mark.parametrize("none", [(), []])
def test_all_and_any_over_no_dimensions_reduce_nothing(t, none):
    x = t.tensor([[0.0, 2.0]])
    for function in (t.all, t.any):
        assert function(x, none).tolist() == function(x, dim=none, keepdim=True).tolist() == [[False, True]]

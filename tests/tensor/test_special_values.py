"""Values and gradients at nan, inf, 0 and the ends of a domain, as PyTorch has them; and mathematics where it errs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad
from leafgrad.nn import functional as F

nan, inf = math.nan, math.inf


def same(actual, expected, rtol=1e-12):
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=rtol, atol=0)


def slopes(function, *values, dtype=leafgrad.float64):
    """The value, and the gradients of its sum."""
    inputs = [leafgrad.tensor(v, dtype=dtype, requires_grad=True) for v in values]
    out = function(*inputs)
    return out, *leafgrad.autograd.grad(out.sum(), inputs)


# ---- activations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", [F.relu, F.relu6, F.hardtanh, F.hardshrink, F.softshrink, lambda x: F.threshold(x, 0.5, 9.0)]
)
def test_nan_keeps_its_gradient(function):
    value, g = slopes(function, [nan, 0.75])
    same(value[0], nan)
    same(g, [1.0, 1.0])


def test_what_is_linear_in_parts_has_the_slope_of_one_part_at_nan():
    same(slopes(lambda x: F.leaky_relu(x, 0.25), [nan, 0.75])[1], [0.25, 1.0])
    same(slopes(F.hardsigmoid, [nan, 0.75])[1], [0.0, 1 / 6])


def test_where_shrinking_begins():
    value, g = slopes(lambda x: F.hardshrink(x, 0.5), [-0.6, -0.5, 0.0, 0.5, 0.6, inf])
    same(value, [-0.6, 0, 0, 0, 0.6, inf])
    same(g, [1, 0, 0, 0, 1, 1])
    value, g = slopes(lambda x: F.softshrink(x, 0.5), [-0.75, -0.5, 0.0, 0.5, 0.75, -inf])
    same(value, [-0.25, 0, 0, 0, 0.25, -inf])
    same(g, [1, 0, 0, 0, 1, 1])


# ---- signs and steps ------------------------------------------------------------------------------------------------


def test_nan_has_no_sign():
    x = leafgrad.tensor([nan, -inf, -0.0, 2.0])
    assert x.sign().tolist() == [0, -1, 0, 1]
    assert x.sgn().tolist() == [0, -1, 0, 1]
    assert leafgrad.tensor([3, 0], dtype=leafgrad.uint8).sign().tolist() == [1, 0]


def test_heaviside_of_nan_is_0():
    x, y = leafgrad.tensor([nan, 0.0, 1.0, -1.0, -0.0]), leafgrad.tensor([2.0, nan, nan, nan, 4.0])
    same(leafgrad.heaviside(x, y), [0, nan, 1, 0, 4])


# ---- reductions -----------------------------------------------------------------------------------------------------


def test_norm_of_order_0_counts_nan():
    x = leafgrad.tensor([[nan, 1.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    for counted in (x.norm(0, dim=1), leafgrad.linalg.vector_norm(x, 0, dim=1)):
        assert counted.tolist() == [2, 0]
        assert counted.requires_grad
        assert leafgrad.autograd.grad(counted.sum(), x, allow_unused=True) == (None,)


@pytest.mark.parametrize("function", [leafgrad.amax, leafgrad.amin])
def test_the_gradient_of_an_extreme_that_is_nan(function):
    _, g = slopes(lambda x: function(x, 1), [[nan, 1.0], [2.0, 2.0]])
    same(g, [[nan, nan], [0.5, 0.5]])


@pytest.mark.parametrize("function", [leafgrad.max, leafgrad.min, leafgrad.median])
def test_the_extreme_of_all_gives_nans_their_shares(function):
    _, g = slopes(function, [nan, 1.0, nan])
    same(g, [0.5, 0, 0.5])


def test_mode_takes_nan_for_a_value():
    x = leafgrad.tensor([[nan, nan, 1.0, 2.0, nan], [nan, 1.0, nan, 1.0, 2.0], [2.0, nan, 3.0, 1.0, 3.0]])
    found = x.mode()
    same(found.values, [nan, 1, 3])
    assert found.indices.tolist() == [4, 3, 4]


def test_quantiles_beside_infinity():
    x = leafgrad.tensor([-inf, 0.0, inf, inf])
    q = leafgrad.tensor([0.0, 0.3, 0.6, 1.0])
    same(x.quantile(q, interpolation="lower"), [-inf, -inf, 0, inf])
    same(x.quantile(q, interpolation="higher"), [-inf, 0, inf, inf])
    same(x.quantile(q, interpolation="nearest"), [-inf, 0, inf, inf])


def test_std_whose_squares_are_too_large():
    value, g = slopes(leafgrad.std, [1e30, -1e30, 0.0], dtype=leafgrad.float32)
    same(value, 1e30, rtol=1e-6)
    same(g, [0.5, -0.5, 0], rtol=1e-6)


def test_lerp_of_float16_far_apart():
    x, y = leafgrad.tensor([60000.0, 1.0]).half(), leafgrad.tensor([-60000.0, 3.0]).half()
    assert leafgrad.lerp(x, y, 0.3).tolist() == [24000, 1.599609375]
    assert leafgrad.lerp(x, y, leafgrad.tensor([0.6, 0.0]).half()).tolist() == [-12008, 1]


def test_lerp_is_of_floats_of_one_dtype():
    x = leafgrad.ones(2)
    with pytest.raises(RuntimeError, match="lerp: weight: expected dtype"):
        leafgrad.lerp(x, x, leafgrad.ones(2, dtype=leafgrad.float64))
    with pytest.raises(NotImplementedError, match="floating"):
        leafgrad.lerp(x.long(), x.long(), 0.5)


# ---- logarithms -----------------------------------------------------------------------------------------------------


def test_slopes_of_logit_at_the_ends_of_its_domain():
    value, g = slopes(leafgrad.logit, [0.0, 1.0, 0.5, -1.0, nan])
    same(value, [-inf, inf, 0, nan, nan])
    same(g, [inf, inf, 4, nan, nan])
    value, g = slopes(lambda x: leafgrad.logit(x, 0.1), [0.0, 0.05, 0.5, 2.0, nan])
    low = math.log(0.1 / 0.9)
    same(value, [low, low, 0, -low, nan])
    same(g, [0, 0, 4, 0, nan])


def test_slopes_of_binary_cross_entropy_at_0_and_1():
    p, t = [0.0, 1.0, 0.0, 1.0, 0.5, 1e-30], [0.0, 1.0, 1.0, 0.0, 0.25, 0.5]
    value, gp, gt = slopes(lambda p, t: F.binary_cross_entropy(p, t, reduction="none"), p, t)
    same(value, [0, 0, 100, 100, math.log(2), 15 * math.log(10)])
    same(gp, [0, 0, -1e12, 1e12, 1, -5e11])
    same(gt, [inf, -inf, inf, -inf, 0, 30 * math.log(10)])


@pytest.mark.parametrize(
    ("p", "t", "name"), [([0.5, 1.5], [0.0, 0.0], "input"), ([nan], [0.0], "input"), ([0.5], [-0.5], "target")]
)
def test_probabilities_outside_0_to_1(p, t, name):
    with pytest.raises(RuntimeError, match=f"all elements of {name} should be between 0 and 1"):
        F.binary_cross_entropy(leafgrad.tensor(p), leafgrad.tensor(t))


# ---- losses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["huber_loss", "smooth_l1_loss"])
def test_losses_that_are_straight_far_out_are_so_at_infinity(name):
    loss = getattr(F, name)
    value, gx, gy = slopes(lambda x, y: loss(x, y, reduction="none"), [inf, -inf, nan, 1.0], [0.0, 0.0, 0.0, inf])
    same(value, [inf, inf, nan, inf])
    same(gx, [1, -1, nan, -1])
    same(gy, [-1, 1, nan, 1])


@pytest.mark.parametrize("options", [{}, {"weight": leafgrad.tensor([1.0, 2.0])}, {"label_smoothing": 0.1}])
def test_cross_entropy_of_ignored_targets_alone(options):
    x = leafgrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    loss = F.cross_entropy(x, leafgrad.tensor([-100, -100]), **options)
    assert math.isnan(loss.item())
    loss.backward()
    if not options:
        assert x.grad.tolist() == [[0, 0], [0, 0]]


def test_cross_entropy_of_ignored_targets_alone_has_no_curvature():
    x = leafgrad.tensor([[1.0, 2.0]], requires_grad=True)
    (g,) = leafgrad.autograd.grad(F.cross_entropy(x, leafgrad.tensor([-100])), x, create_graph=True)
    (h,) = leafgrad.autograd.grad(g.sum(), x)
    assert h.tolist() == [[0, 0]]


@pytest.mark.parametrize("function", [leafgrad.maximum, leafgrad.minimum])
def test_both_get_the_gradient_of_an_extreme_that_is_nan(function):
    _, gx, gy = slopes(function, [nan, 1.0, 1.0, 2.0], [0.0, nan, 1.0, 3.0])
    same(gx[:3], [1, 1, 0.5])
    same(gy[:3], [1, 1, 0.5])
    same(gx + gy, [2, 2, 1, 1])


def test_softmax_of_infinity_alone():
    for x in (inf, nan):
        assert math.isnan(leafgrad.tensor(x).softmax(0).item())
        assert math.isnan(leafgrad.tensor(x).log_softmax(0).item())
    assert leafgrad.tensor(3.0).softmax(0).item() == 1


def test_median_finds_the_first_nan():
    assert leafgrad.tensor([[1.0, nan, nan], [3.0, 1.0, 2.0]]).median(1).indices.tolist() == [1, 2]


def test_every_nan_is_unique():
    values, inverse, counts = leafgrad.tensor([nan, 1.0, nan, 1.0]).unique(return_inverse=True, return_counts=True)
    same(values, [1, nan, nan])
    assert counts.tolist() == [2, 1, 1]
    assert inverse.tolist()[1::2] == [0, 0]


def test_logaddexp2_of_two_dtypes_is_computed_in_the_larger():
    x, y = leafgrad.tensor([0.3, 2.0], dtype=leafgrad.float64), leafgrad.tensor([1.0, 0.5])
    same(leafgrad.logaddexp2(x, y), np.logaddexp2([0.3, 2.0], [1.0, 0.5]), rtol=1e-14)


def test_hardswish_of_float16_does_not_overflow():
    assert F.hardswish(leafgrad.tensor([60000.0, -4.0]).half()).tolist() == [60000, 0]
    _, g = slopes(F.hardswish, [nan, -3.0, 3.0])
    same(g, [nan, 0, 1])


def test_a_measurement_of_infinite_variance():
    x, var = leafgrad.tensor([1.0]), leafgrad.tensor([inf], requires_grad=True)
    loss = F.gaussian_nll_loss(x, x, var)
    assert loss.item() == inf
    loss.backward()
    assert var.grad.tolist() == [0]


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_the_gradient_of_a_scattered_extreme_that_is_nan(reduce):
    at = leafgrad.tensor([0, 0, 1])
    _, gx, gv = slopes(lambda x, v: x.scatter_reduce(0, at, v, reduce), [1.0, 2.0], [nan, 1.0, 2.0])
    same(gx, [nan, 0.5])
    same(gv, [nan, nan, 0.5])


def test_nans_do_not_count_in_the_median_that_equal_ones_share():
    _, g = slopes(leafgrad.nanmedian, [nan, 1.0, 3.0, 1.0, nan])
    same(g, [0, 0.5, 0, 0.5, 0])


def test_slopes_of_products_with_logarithms_at_0():
    value, g = slopes(leafgrad.special.entr, [0.0, 1.0, -1.0])
    same(value, [0, 0, -inf])
    same(g, [inf, -1, nan])
    _, gx, gy = slopes(leafgrad.special.xlog1py, [0.0, 2.0], [3.0, 1.0])
    same(gx, [math.log(4), math.log(2)])
    same(gy, [0, 1])


def test_the_angle_of_the_origin_has_derivatives_zero():
    x, y = (leafgrad.zeros(1, requires_grad=True) for _ in range(2))
    first = leafgrad.autograd.grad(leafgrad.atan2(x, y), (x, y), create_graph=True)
    second = leafgrad.autograd.grad(first[0] + 2 * first[1], (x, y))
    assert [g.item() for g in (*first, *second)] == [0, 0, 0, 0]


def test_isin_where_nan_is_among_what_is_looked_for():
    inf, nan = math.inf, math.nan
    x = leafgrad.tensor([nan, inf, -inf, 1.0, -1.0, 0.0])
    for among in ([nan, inf, -inf, 1.0, -1.0], [nan, inf], [nan, 1.0, nan], [nan], [-inf, nan, -1.0, nan, 0.0]):
        found = [v in among and v == v for v in x.tolist()]
        assert leafgrad.isin(x, leafgrad.tensor(among)).tolist() == found
        assert leafgrad.isin(x, leafgrad.tensor(among), invert=True).tolist() == [not f for f in found]


def test_functions_of_two_numbers_take_what_pytorch_does():
    assert leafgrad.logaddexp2(leafgrad.tensor(3.0), leafgrad.tensor([3])).tolist() == [4]
    assert leafgrad.special.xlog1py(2.0, leafgrad.tensor([0.0, math.e - 1])).tolist() == pytest.approx([0, 2])
    assert leafgrad.special.xlog1py(leafgrad.tensor([1]), 0).tolist() == [0]
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        leafgrad.special.xlog1py(1.0, 2.0)
    with pytest.raises(NotImplementedError, match="expected a floating point dtype"):
        leafgrad.logaddexp2(leafgrad.tensor([1]), leafgrad.tensor([2]))


def test_threshold_of_integers_stays_one():
    x = leafgrad.tensor([3, -1])
    found = leafgrad.nn.functional.threshold(x, 0.5, 2.7)
    assert (found.dtype, found.tolist()) == (leafgrad.int64, [3, 2])


def test_nansum_in_another_dtype_leaves_nan_out_first():
    x = leafgrad.tensor([nan, 1.5])
    for dtype, expected in ((leafgrad.bool, True), (leafgrad.int64, 1), (leafgrad.uint8, 1), (leafgrad.float64, 1.5)):
        found = leafgrad.nansum(x, dtype=dtype)
        assert (found.dtype, found.item()) == (dtype, expected)
        assert leafgrad.nansum(x[:1], dtype=dtype).item() == 0

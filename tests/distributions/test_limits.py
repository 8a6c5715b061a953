"""Distributions where their formulas divide 0 by 0, or what is small by what is smaller: values and derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import leafgrad
from leafgrad import distributions as d
from leafgrad.autograd import grad, gradcheck, gradgradcheck
from leafgrad.distributions.limits import expm1_over, log1p_over

TESTS = """
distributions.bernoulli distributions.continuous_bernoulli distributions.derived
distributions.gamma distributions.ratios
"""

DTYPES = [leafgrad.float32, leafgrad.float64]


def near(dtype):
    return 1e-5 if dtype is leafgrad.float32 else 1e-10


# ---- trials until success -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_entropy_of_rare_success(dtype):
    p = np.array([1e-30, 1e-17, 1e-10, 1e-8, 1e-7, 0.1, 0.5, 0.9])
    want = -np.log(p) - (1 - p) / p * np.log1p(-p)
    rate = leafgrad.tensor(p, dtype=dtype, requires_grad=True)
    found = d.Geometric(probs=rate).entropy()
    np.testing.assert_allclose(found.detach().numpy(), want, rtol=near(dtype))
    slope = grad(found.sum(), rate)[0].numpy()
    np.testing.assert_allclose(slope, np.where(p < 1e-6, -1 / p, np.log1p(-p) / p**2), rtol=1e-4)
    assert d.Geometric(probs=leafgrad.tensor(1.0, dtype=dtype)).entropy().item() == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_entropy_of_rare_success_by_logits(dtype):
    at = leafgrad.tensor([-1000.0, -80.0, -40.0, 0.3, 40.0, 80.0], dtype=dtype, requires_grad=True)
    entropy = d.Geometric(logits=at).entropy()
    assert entropy.tolist() == pytest.approx(
        [1001, 81, 41, stats.geom(1 / (1 + math.exp(-0.3))).entropy(), 41 * math.exp(-40), 81 * math.exp(-80)],
        rel=near(dtype),
    )
    assert grad(entropy.sum(), at)[0][:3].tolist() == pytest.approx([-1, -1, -1], rel=near(dtype))


# ---- quotients ------------------------------------------------------------------------------------------------------

QUOTIENTS = {"log1p": (log1p_over, np.log1p), "expm1": (expm1_over, np.expm1)}


@pytest.mark.parametrize("name", QUOTIENTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_with_a_limit(name, dtype):
    function, reference = QUOTIENTS[name]
    k = np.array([-0.2, -0.0301, -0.0299, -1e-5, -1e-20, 1e-20, 1e-9, 0.02999, 0.03001, 0.4])
    x = leafgrad.tensor(1.5, dtype=dtype)
    found = function(x, leafgrad.tensor(k, dtype=dtype))
    np.testing.assert_allclose(found.numpy(), reference(1.5 * k) / k, rtol=near(dtype))
    zero = leafgrad.zeros(3, dtype=dtype)
    assert function(leafgrad.tensor([0.0, 1.5, math.inf], dtype=dtype), zero).tolist() == [0, 1.5, math.inf]


@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients_with_a_limit_have_derivatives_of_both_orders(name):
    function, _ = QUOTIENTS[name]
    x = leafgrad.tensor([[0.0], [0.3], [2.0]], dtype=leafgrad.float64, requires_grad=True)
    k = leafgrad.tensor([-0.1, -1e-3, 0.0, 1e-9, 0.014, 0.5], dtype=leafgrad.float64, requires_grad=True)
    assert gradcheck(function, (x, k))
    assert gradgradcheck(function, (x, k))


# ---- excesses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0.0, 1e-9, -1e-7, 1e-6, 1e-5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_concentration_of_excesses_has_a_gradient_at_0(k, dtype):
    """Those at 0: what they change by up to ``k`` is below the tolerance."""
    c = leafgrad.tensor(k, dtype=dtype, requires_grad=True)
    p = d.GeneralizedPareto(leafgrad.tensor(0.0, dtype=dtype), leafgrad.tensor(1.0, dtype=dtype), c)
    z = leafgrad.tensor(5.0, dtype=dtype)
    slopes = [grad(y, c)[0].item() for y in (p.log_prob(z), p.cdf(z), p.icdf(leafgrad.tensor(0.9, dtype=dtype)))]
    assert slopes == pytest.approx([7.5, -12.5 * math.exp(-5), math.log(10) ** 2 / 2], rel=1e-3)
    leafgrad.manual_seed(0)
    assert grad(p.rsample((20000,)).mean(), c)[0].item() == pytest.approx(1, rel=0.1)


def test_excesses_far_out():
    k = leafgrad.tensor([-0.5, 0.0, 0.5], dtype=leafgrad.float64)
    p = d.GeneralizedPareto(leafgrad.tensor(0.0, dtype=leafgrad.float64), 1.0, k)
    assert p.icdf(leafgrad.tensor(1.0, dtype=leafgrad.float64)).tolist() == [2, math.inf, math.inf]
    far = leafgrad.tensor([2.0, math.inf, math.inf], dtype=leafgrad.float64)
    assert p.cdf(far).tolist() == [1, 1, 1]
    assert p.log_prob(far).tolist() == [-math.inf] * 3


# ---- shares of even odds --------------------------------------------------------------------------------------------

EVEN = [0.5, 0.5 + 1e-9, 0.5001, 0.4991, 0.499, 0.495, 0.45, 0.3, 0.26, 0.74]


def slopes_of(p, x=0.3):
    """By p, of the distribution function and its inverse, at x."""
    ratio = np.log(p) - np.log1p(-p)
    h, step = 1e-2, np.array([-2, -1, 1, 2])
    at, weights = ratio + h * (step + 0.01), np.array([1, -8, 8, -1]) / (12 * h)
    cdf, icdf = np.expm1(at * x) / np.expm1(at), np.log1p(x * np.expm1(at)) / at
    by_p = 1 / p + 1 / (1 - p)
    return weights @ cdf * by_p, weights @ icdf * by_p


@pytest.mark.parametrize("p", EVEN)
@pytest.mark.parametrize("dtype", DTYPES)
def test_shares_of_even_odds_have_gradients(p, dtype):
    probs = leafgrad.tensor(p, dtype=dtype, requires_grad=True)
    share, x = d.ContinuousBernoulli(probs=probs), leafgrad.tensor(0.3, dtype=dtype)
    found = [grad(y, probs, retain_graph=True)[0].item() for y in (share.cdf(x), share.icdf(x))]
    assert found == pytest.approx(slopes_of(p), rel=1e-3)
    assert share.icdf(share.cdf(x)).item() == pytest.approx(0.3, rel=10 * near(dtype))
    logits = leafgrad.tensor(0.0, dtype=dtype, requires_grad=True)
    leafgrad.manual_seed(0)
    drawn = d.ContinuousBernoulli(logits=logits).rsample((20000,))
    assert grad(drawn.mean(), logits)[0].item() == pytest.approx(1 / 12, rel=0.02)


def test_shares_of_even_odds_have_second_derivatives():
    logits = leafgrad.tensor([-0.9, -0.01, 0.0, 1e-6, 0.5, 1.5], dtype=leafgrad.float64, requires_grad=True)
    x = leafgrad.tensor(0.3, dtype=leafgrad.float64)
    for name in ("cdf", "icdf"):
        assert gradcheck(lambda a, name=name: getattr(d.ContinuousBernoulli(logits=a), name)(x), (logits,))
        assert gradgradcheck(lambda a, name=name: getattr(d.ContinuousBernoulli(logits=a), name)(x), (logits,))


# p, mean, variance, entropy; distribution function, its inverse and logarithm of the density at 1/8, by mpmath.
SHARES = [
    (
        2**-10,
        0.14331136917472303,
        0.019840127730770395,
        -0.94369050667273656,
        0.58006746578704085,
        0.019247075653013407,
        1.0705973548955625,
    ),
    (
        0.375,
        0.45761518897121769,
        0.082257228090816334,
        -0.010802175431019055,
        0.15464323503678683,
        0.10041253218544104,
        0.18071053681128419,
    ),
    (
        0.5 - 2**-10,
        0.49967447883552909,
        0.083333269754922382,
        -6.3578425195530907e-7,
        0.1252137275971595,
        0.12478658520485111,
        0.0014642098282357685,
    ),
    (
        0.5 + 2**-15,
        0.50001017252605177,
        0.083333333271245162,
        -6.2088171772099897e-10,
        0.12499332438164118,
        0.1250066759239528,
        -4.5776988126061294e-5,
    ),
    (
        0.5 + 2**-9,
        0.50065104431578316,
        0.08333307901821122,
        -2.543153500207414e-6,
        0.12457316920702279,
        0.12542808348658162,
        -0.0029322455573848817,
    ),
    (
        0.96875,
        0.74212665711337087,
        0.050356883830633605,
        -0.38097809931537049,
        0.017870085191546069,
        0.45374211529135871,
        -1.7382269447586374,
    ),
    (
        1 - 2**-16,
        0.90984669513880183,
        0.0081151104671468382,
        -1.4062589152413291,
        4.5777647794343952e-5,
        0.81250937269802804,
        -7.297957491373157,
    ),
]


@pytest.mark.parametrize(("dtype", "tolerance"), [(leafgrad.float32, 1e-5), (leafgrad.float64, 1e-12)])
@pytest.mark.parametrize(("p", "mean", "variance", "entropy", "below", "quantile", "density"), SHARES)
def test_shares_of_all_odds(p, mean, variance, entropy, below, quantile, density, dtype, tolerance):
    share, x = d.ContinuousBernoulli(leafgrad.tensor(p, dtype=dtype)), leafgrad.tensor(0.125, dtype=dtype)
    found = share.mean, share.variance, share.entropy(), share.cdf(x), share.icdf(x), share.log_prob(x)
    want = mean, variance, entropy, below, quantile, density
    np.testing.assert_allclose([v.item() for v in found], want, rtol=tolerance)


def test_shares_of_far_odds():
    """Moments of exp(1000 x), which p in (0, 1) cannot say."""
    share = d.ContinuousBernoulli(logits=leafgrad.tensor([-1000.0, 1000.0]))
    np.testing.assert_allclose(share.mean.numpy(), [0.001, 0.999], rtol=1e-6)
    np.testing.assert_allclose(share.variance.numpy(), [1e-6, 1e-6], rtol=1e-6)
    np.testing.assert_allclose(share.entropy().numpy(), [1 - math.log(1000)] * 2, rtol=1e-6)


# ---- shares of small numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(1e-3, 1e-3), (0.01, 0.01), (0.67, 0.03), (4.36, 0.14), (2.0, 3.0)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_shares_of_small_concentrations(a, b, dtype):
    leafgrad.manual_seed(0)
    p = d.Beta(leafgrad.tensor(a, dtype=dtype), leafgrad.tensor(b, dtype=dtype))
    drawn = p.sample((20_000,))
    assert ((drawn > 0) & (drawn < 1) & p.log_prob(drawn).isfinite()).all().item()
    at = np.linspace(0.001, 0.999, 999)  # beyond, shares meet the last numbers before 0 and 1
    found = np.searchsorted(np.sort(drawn.numpy()), at, "right") / 20_000
    assert np.abs(found - stats.beta(a, b).cdf(at)).max() < 1.95 / math.sqrt(20_000)  # once in a thousand seeds


@pytest.mark.parametrize(("a", "b"), [(0.01, 0.02), (0.3, 0.5)])
def test_derivatives_of_shares_of_small_concentrations(a, b):
    leafgrad.manual_seed(0)
    one, zero = (leafgrad.tensor(x, dtype=leafgrad.float64, requires_grad=True) for x in (a, b))
    mean = d.Beta(one.expand(60_000), zero.expand(60_000)).rsample().mean()
    found = [slope.item() for slope in grad(mean, (one, zero))]
    assert found == pytest.approx([b / (a + b) ** 2, -a / (a + b) ** 2], rel=0.03)


def test_the_slopes_of_the_end_of_kumaraswamys_numbers(t):
    one, zero = t.tensor(2.0, requires_grad=True), t.tensor(3.0, requires_grad=True)
    end = t.distributions.Kumaraswamy(one, zero).icdf(t.tensor(1.0))
    assert end.item() == 1
    assert [slope.item() for slope in t.autograd.grad(end, (one, zero))] == [0, 0]

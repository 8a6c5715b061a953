"""Binomial and multinomial counts, angles, shares, matrices, relaxed classes: densities, samples, gradients."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

import leafgrad
from leafgrad import distributions as d
from leafgrad.autograd import gradcheck
from leafgrad.distributions import constraints


def t(array, **options):
    return leafgrad.tensor(np.asarray(array, dtype="float64"), **options)


def close(found, expected, tolerance=1e-9):
    np.testing.assert_allclose(found.detach().cpu().numpy(), expected, rtol=tolerance, atol=tolerance)


N, P = np.array([0.0, 1.0, 7.0, 40.0, 1000.0]), np.array([0.5, 0.1, 0.93, 0.3, 0.6])
COVARIANCE = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.5]])
FACTOR, DIAGONAL = np.array([[1.0, 0.2], [0.5, -0.4], [0.3, 1.0]]), np.array([0.5, 1.0, 2.0])


def test_binomial_is_scipys(device):
    p, reference = d.Binomial(t(N, device=device), t(P, device=device)), stats.binom(N, P)
    values = np.array([0.0, 1.0, 3.0, 12.0, 600.0])
    close(p.log_prob(t(values, device=device)), reference.logpmf(values))
    close(p.mean, reference.mean())
    close(p.variance, reference.var())
    leafgrad.manual_seed(0)
    drawn = p.sample((20000,)).cpu().numpy()
    assert (drawn == drawn.round()).all()
    assert ((drawn >= 0) & (drawn <= N)).all()
    assert (np.abs(drawn.mean(0) - reference.mean()) <= 5 * reference.std() / math.sqrt(20000)).all()
    assert (np.abs(drawn.var(0)[1:] / reference.var()[1:] - 1) < 0.05).all()
    for i in range(1, 4):  # the distribution function where it has its steps
        at = np.arange(N[i] + 1)
        found = (drawn[:, i, None] <= at).mean(0)
        assert np.abs(found - stats.binom(N[i], P[i]).cdf(at)).max() < 0.015
    same = d.Binomial(3, t([0.2, 0.7], device=device))
    close(same.entropy(), stats.binom(3, [0.2, 0.7]).entropy())
    assert same.enumerate_support().shape == (4, 2)
    assert same.expand((4, 2)).sample().shape == (4, 2)
    with pytest.raises(NotImplementedError, match="Inhomogeneous total count"):
        p.entropy()
    with pytest.raises(ValueError, match="within the support"):
        same.log_prob(t([4.0, 0.0], device=device))


def test_counts_outside_the_support_have_no_mass():
    outside = t([-3.0, -1.0, 9.0])
    assert d.Binomial(4, t(0.3), validate_args=False).log_prob(outside).tolist() == [-math.inf] * 3
    assert d.Poisson(t(0.3), validate_args=False).log_prob(outside[:2]).tolist() == [-math.inf] * 2


def test_multinomial_counts_may_be_fewer_than_the_trials():
    p = d.Multinomial(3, t([0.4, 0.6]))
    close(p.log_prob(t([1.0, 1.0])), np.log(2 * 0.4 * 0.6))
    with pytest.raises(ValueError, match="within the support"):
        p.log_prob(t([2.0, 2.0]))


def test_binomial_numbers():
    leafgrad.manual_seed(0)
    count, prob = leafgrad.full((3, 1), 5.0), leafgrad.tensor([0.0, 0.5, 1.0])
    drawn = leafgrad.binomial(count, prob)
    assert drawn.shape == (3, 3)
    assert (drawn[:, 0].tolist(), drawn[:, 2].tolist()) == ([0] * 3, [5] * 3)
    generator = leafgrad.Generator().manual_seed(3)
    first = leafgrad.binomial(count, prob, generator=generator)
    assert first.equal(leafgrad.binomial(count, prob, generator=leafgrad.Generator().manual_seed(3)))
    for bad in [(-count, prob), (count, prob + 0.5), (count, prob.double()), (count.long(), prob)]:
        with pytest.raises(RuntimeError, match="binomial"):
            leafgrad.binomial(*bad)


def test_multinomial_is_scipys():
    weights = np.array([[0.2, 0.3, 0.0, 0.5], [0.1, 0.2, 0.3, 0.4]])
    p = d.Multinomial(9, t(weights * 3))
    values = np.array([[2, 3, 0, 4], [1, 2, 3, 3]])
    close(p.log_prob(t(values)), [stats.multinomial(9, w).logpmf(v) for w, v in zip(weights, values, strict=True)])
    close(p.entropy(), [stats.multinomial(9, w).entropy() for w in weights])
    leafgrad.manual_seed(0)
    for trials in (9, 3):  # more than outcomes, and fewer
        drawn = d.Multinomial(trials, t(weights * 3)).sample((20000,))
        assert (drawn.sum(-1) == trials).all()
        assert not drawn[:, 0, 2].any()
        covariances = [np.cov(drawn[:, i].numpy().T) for i in range(2)]
        for w, found in zip(weights, covariances, strict=True):
            assert np.abs(found - trials * (np.diag(w) - np.outer(w, w))).max() < 0.1
    assert d.Multinomial(0, t(weights)).sample((2,)).tolist() == [[[0.0] * 4] * 2] * 2
    with pytest.raises(ValueError, match="within the support"):
        p.log_prob(t([1, 2, 3, 4]))
    with pytest.raises(NotImplementedError, match="inhomogeneous"):
        d.Multinomial(t(3), t(weights))


@pytest.mark.parametrize("k", [1e-6, 0.3, 4.0, 60.0, 199.0, 201.0, 3000.0])
def test_von_mises_is_scipys(k):
    p, reference = d.VonMises(t(0.7), t(k)), stats.vonmises(k, 0.7)
    values = np.linspace(-3, 3, 9)
    close(p.log_prob(t(values)), reference.logpdf(values), 1e-10)
    leafgrad.manual_seed(0)
    drawn = p.sample((20000,)).numpy()
    assert (np.abs(drawn) <= math.pi).all()
    cosine = np.cos(drawn - 0.7)
    assert abs(cosine.mean() - (1 - p.variance.item())) < 5 * cosine.std() / math.sqrt(20000) + 1e-12
    assert abs(np.sin(drawn - 0.7).mean()) < 5 * np.sin(drawn - 0.7).std() / math.sqrt(20000)


def test_low_rank_multivariate_normal_is_the_full_one():
    loc, value = np.array([1.0, -2.0, 0.5]), np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 2.0]])
    p = d.LowRankMultivariateNormal(t(loc), t(FACTOR), t(DIAGONAL))
    full = d.MultivariateNormal(t(loc), t(FACTOR @ FACTOR.T + np.diag(DIAGONAL)))
    for ask in (
        lambda p: p.log_prob(t(value)), lambda p: p.entropy(), lambda p: p.variance, lambda p: p.scale_tril,
        lambda p: p.precision_matrix, lambda p: d.kl_divergence(p, d.MultivariateNormal(t(loc * 0), t(COVARIANCE))),
        lambda p: d.kl_divergence(d.MultivariateNormal(t(loc * 0), t(COVARIANCE)), p),
    ):  # fmt: skip
        close(ask(p), ask(full).numpy())
    leafgrad.manual_seed(0)
    drawn = p.sample((20000,)).numpy()
    assert np.abs(np.cov(drawn.T) - full.covariance_matrix.numpy()).max() < 0.1
    assert p.expand((2,)).rsample((4,)).shape == (4, 2, 3)
    with pytest.raises(ValueError, match="cov_factor must be a batch of matrices with shape 3 x m"):
        d.LowRankMultivariateNormal(t(loc), t(FACTOR[:2]), t(DIAGONAL))


def test_wishart_is_scipys():
    p, reference = d.Wishart(t(5.5), t(COVARIANCE)), stats.wishart(5.5, COVARIANCE)
    value = np.array([[3.0, 0.5, 0.1], [0.5, 2.0, -0.3], [0.1, -0.3, 4.0]])
    close(p.log_prob(t(value)), reference.logpdf(value))
    close(p.entropy(), reference.entropy())
    close(p.mean, reference.mean())
    close(p.mode, reference.mode())
    close(p.variance, reference.var())
    given = {"precision_matrix": np.linalg.inv(COVARIANCE), "scale_tril": np.linalg.cholesky(COVARIANCE)}
    for name, matrix in given.items():
        close(d.Wishart(5.5, **{name: t(matrix)}).log_prob(t(value)), reference.logpdf(value))
    leafgrad.manual_seed(0)
    drawn = p.sample((20000,))
    assert np.abs(drawn.mean(0).numpy() - reference.mean()).max() < 0.15
    assert np.abs(drawn.var(0).numpy() / reference.var() - 1).max() < 0.1
    other = d.Wishart(t([4.0, 7.0]), t(COVARIANCE * 0.7 + np.eye(3)))
    found = (p.log_prob(drawn).unsqueeze(-1) - other.log_prob(drawn.unsqueeze(1))).mean(0)
    close(d.kl_divergence(p, other), found.numpy(), 0.05)
    with pytest.raises(ValueError, match="greater than ndim - 1 = 2"):
        d.Wishart(2.0, t(COVARIANCE))


def test_generalized_pareto_is_scipys():
    k = np.array([-0.4, -0.1, 0.0, 0.3, 0.7])
    p, reference = d.GeneralizedPareto(1.5, t(0.8), t(k)), stats.genpareto(k, 1.5, 0.8)
    values = np.array([1.6, 2.0, 3.0])[:, None]
    close(p.log_prob(t(values)), reference.logpdf(values))
    close(p.cdf(t(values)), reference.cdf(values))
    close(p.icdf(t([[0.1], [0.9]])), reference.ppf([[0.1], [0.9]]))
    close(p.mean, reference.mean())
    close(p.entropy(), reference.entropy())
    assert p.variance.tolist()[-1] == math.inf
    close(p.variance[:4], reference.var()[:4])
    with pytest.raises(ValueError, match="within the support"):
        p.log_prob(t(4.0))


def test_the_mode_of_kumaraswamy_is_where_its_density_is_largest():
    a, b = t([2.0, 1.5, 1.0, 3.0, 0.5, 1.0]).requires_grad_(), t([3.0, 4.0, 2.0, 1.0, 3.0, 1.0]).requires_grad_()
    mode = d.Kumaraswamy(a, b).mode
    close(mode[:4], [0.2**0.5, 0.1 ** (2 / 3), 0.0, 1.0])
    assert mode[4:].isnan().all()  # without a peak
    mode[:2].sum().backward()
    close(b.grad[:2], [-(0.2**1.5), -2 / 3 * 1.5 * 0.1 ** (2 / 3) / 5])
    assert a.grad[2:].tolist() == b.grad[2:].tolist() == [0, 0, 0, 0]


def test_the_share_below_0_of_weibull_is_0():
    p = d.Weibull(t(1.0), t([2.0, 0.5]))
    assert p.cdf(t(0.0)).tolist() == [0, 0]
    with pytest.raises(ValueError, match="within the support"):
        p.cdf(t(-1.0))
    with pytest.raises(ValueError, match="within the support"):
        p.log_prob(t(0.0))


# ---- of what others are made of -------------------------------------------------------------------------------------

SINGLE = {
    "ContinuousBernoulli": (lambda: d.ContinuousBernoulli(t(0.2)), 0, 1),
    "ContinuousBernoulli near 1/2": (lambda: d.ContinuousBernoulli(t(0.5003)), 0, 1),
    "Kumaraswamy": (lambda: d.Kumaraswamy(t(2.5), t(1.7)), 0, 1),
    "InverseGamma": (lambda: d.InverseGamma(t(6.0), t(2.0)), 0, 60),
    "FisherSnedecor": (lambda: d.FisherSnedecor(t(6.0), t(14.0)), 0, 200),
    "RelaxedBernoulli": (lambda: d.RelaxedBernoulli(t(0.9), t(0.3)), 0, 1),
    "VonMises": (lambda: d.VonMises(t(0.0), t(2.5)), -math.pi, math.pi),
    "GeneralizedPareto": (lambda: d.GeneralizedPareto(t(0.0), t(1.0), t(-0.2)), 0, 5),
}  # fmt: skip


@pytest.mark.parametrize("name", SINGLE)
def test_densities_have_mass_1_and_the_moments_and_samples(name):
    make, low, high = SINGLE[name]
    p = make()
    middle = (np.arange(400000) + 0.5) / 400000 * (high - low) + low
    density = p.log_prob(t(middle)).exp().numpy() * (high - low) / 400000
    assert density.sum() == pytest.approx(1, abs=2e-4)
    mean = (density * middle).sum()
    spread = (density * (middle - mean) ** 2).sum()
    if name not in ("RelaxedBernoulli", "VonMises"):
        assert p.mean.item() == pytest.approx(mean, rel=1e-3)
        assert p.variance.item() == pytest.approx(spread, rel=1e-2)
    if name in ("ContinuousBernoulli", "Kumaraswamy", "InverseGamma", "GeneralizedPareto"):
        entropy = -(density * np.log(density * 400000 / (high - low), where=density > 0, out=density * 0)).sum()
        assert p.entropy().item() == pytest.approx(entropy, abs=1e-3)
    leafgrad.manual_seed(0)
    drawn = p.sample((20000,)).numpy()
    assert abs(drawn.mean() - mean) < 5 * math.sqrt(spread / 20000)
    assert p.support.check(t(drawn)).all()
    assert p.expand((3,)).sample((2,)).shape == (2, 3)


def test_shares_and_correlations():
    leafgrad.manual_seed(0)
    relaxed = d.RelaxedOneHotCategorical(t(0.5), t([0.2, 0.3, 0.5]))
    drawn = relaxed.sample((20000,))
    close(drawn.sum(-1), 1.0)
    close((drawn.argmax(-1).unsqueeze(-1) == leafgrad.arange(3)).double().mean(0), [0.2, 0.3, 0.5], 0.02)
    logistic = d.LogisticNormal(t([0.3, -0.5]), t([0.6, 0.9]))
    assert (logistic.batch_shape, logistic.event_shape, logistic.sample((4,)).shape) == ((), (3,), (4, 3))
    x = logistic.sample((5,))
    base = d.Normal(t([0.3, -0.5]), t([0.6, 0.9])).log_prob(logistic.transforms[0].inv(x)).sum(-1)
    slope = logistic.transforms[0].log_abs_det_jacobian(logistic.transforms[0].inv(x), x)
    close(logistic.log_prob(x), (base - slope).numpy())
    straight = d.OneHotCategoricalStraightThrough(t([0.2, 0.3, 0.5], requires_grad=True))
    assert straight.rsample((6,)).requires_grad
    close(straight.rsample((6,)).sum(-1), 1.0)
    lkj = d.LKJCholesky(2, t(1.7))
    angle = np.linspace(-0.999, 0.999, 20001)
    factors = np.zeros((angle.size, 2, 2))
    factors[:, 0, 0], factors[:, 1, 0], factors[:, 1, 1] = 1, angle, np.sqrt(1 - angle**2)
    # The density of the correlation itself, by the slope of the factor's element.
    mass = np.trapezoid(lkj.log_prob(t(factors)).exp().numpy(), angle)
    assert mass == pytest.approx(1, abs=5e-3)
    wide = d.LKJCholesky(4, t(2.0)).sample((4000,))
    assert constraints.corr_cholesky.check(wide).all()
    correlation = (wide @ wide.mT)[:, [3, 3, 2], [0, 2, 1]].numpy()
    assert np.abs(correlation.mean(0)).max() < 0.03
    assert np.abs(correlation.var(0) * (2 * 2 + 4 - 1) - 1).max() < 0.1  # Beta(eta + n/2 - 1), from -1 to 1


GRADIENTS = {
    "Binomial": lambda a, b: d.Binomial(9, logits=a).log_prob(t([2.0, 8.0])),
    "Multinomial": lambda a, b: d.Multinomial(5, logits=a).log_prob(t([2.0, 3.0])),
    "ContinuousBernoulli": lambda a, b: d.ContinuousBernoulli(logits=a).log_prob(t([0.2, 0.8])),
    "VonMises": lambda a, b: d.VonMises(a, b.exp() * t([1.0, 300.0])).log_prob(t([0.2, 1.8])),
    "Wishart": lambda a, b: d.Wishart(b.exp() + 3, t(np.eye(2)) + 0.1 * a.outer(a)).log_prob(t(COVARIANCE[:2, :2])),
    "LowRankMultivariateNormal": lambda a, b: d.LowRankMultivariateNormal(a, b[:, None], b.exp()).log_prob(t([1, 2])),
    "Kumaraswamy": lambda a, b: d.Kumaraswamy(a.exp(), b.exp()).log_prob(t([0.3, 0.6])),
    "InverseGamma": lambda a, b: d.InverseGamma(a.exp(), b.exp()).log_prob(t([0.3, 0.6])),
    "FisherSnedecor": lambda a, b: d.FisherSnedecor(a.exp(), b.exp()).log_prob(t([0.3, 0.6])),
    "GeneralizedPareto": lambda a, b: d.GeneralizedPareto(0.0, a.exp(), b).log_prob(t([0.3, 0.6])),
    "RelaxedBernoulli": lambda a, b: d.RelaxedBernoulli(b.exp(), logits=a).log_prob(t([0.3, 0.6])),
    "RelaxedOneHotCategorical": lambda a, b: d.RelaxedOneHotCategorical(t(0.7), logits=a).log_prob(t([0.3, 0.7])),
    "LogisticNormal": lambda a, b: d.LogisticNormal(a, b.exp()).log_prob(t([0.3, 0.2, 0.5])),
    "LKJCholesky": lambda a, b: d.LKJCholesky(2, a.exp()).log_prob(t([[1.0, 0.0], [0.6, 0.8]])),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_log_probabilities(name):
    inputs = t([0.3, -0.7], requires_grad=True), t([0.2, 0.5], requires_grad=True)
    assert gradcheck(GRADIENTS[name], inputs)


def test_an_exponential_family_knows_its_entropy_by_its_normalizer():
    class Rate(d.ExponentialFamily):
        arg_constraints: ClassVar = {"rate": constraints.positive}

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, x):
            return -(-x).log()

    close(Rate(t([0.5, 3.0])).entropy(), d.Exponential(t([0.5, 3.0])).entropy().numpy())


# ---- transforms and their registry ----------------------------------------------------------------------------------


def test_the_registry_takes_constraints_of_others():
    class Even(constraints.Constraint):
        pass

    registry = d.constraint_registry.ConstraintRegistry()
    registry.register(Even, lambda constraint: d.AffineTransform(0.0, 2.0))
    assert registry(Even()) == d.AffineTransform(0.0, 2.0)
    with pytest.raises(NotImplementedError, match="Cannot transform Even constraints"):
        d.transform_to(Even())
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass"):
        registry.register(3, None)(lambda constraint: None)


LEADS_TO = {
    "real": constraints.real,
    "positive": constraints.positive,
    "nonnegative": constraints.nonnegative,
    "greater_than": constraints.greater_than(2.0),
    "less_than": constraints.less_than(-1.0),
    "unit_interval": constraints.unit_interval,
    "interval": constraints.interval(-1.0, 3.0),
    "half_open_interval": constraints.half_open_interval(2.0, 3.0),
    "simplex": constraints.simplex,
    "corr_cholesky": constraints.corr_cholesky,
    "independent": constraints.independent(constraints.positive, 1),
    "cat": constraints.cat([constraints.positive, constraints.less_than(-1.0)], -1, [1, 2]),
    "stack": constraints.stack([constraints.positive, constraints.less_than(-1.0)], 0),
}
OF_MATRICES = ("lower_cholesky", "positive_definite", "positive_semidefinite")


@pytest.mark.parametrize("registry", [d.biject_to, d.transform_to], ids=["biject_to", "transform_to"])
@pytest.mark.parametrize("name", LEADS_TO)
def test_transforms_lead_to_their_constraints(name, registry):
    x = t([[-2.0, 0.5, 1.5], [3.0, -0.1, -4.0]])
    assert LEADS_TO[name].check(registry(LEADS_TO[name])(x)).all()


@pytest.mark.parametrize("name", OF_MATRICES)
def test_transforms_lead_to_matrices(name):
    constraint = getattr(constraints, name)
    assert constraint.check(d.transform_to(constraint)(t([[-2.0, 0.5], [1.5, -0.1]]))).all()
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        d.biject_to(constraint)


def test_a_compiled_step_checks_arguments_and_values_at_each_call():
    step = leafgrad.compile(lambda scale, x: d.Exponential(scale).log_prob(x).sum())
    for _ in range(3):
        step(t([1.0, 2.0]), t([3.0, 4.0]))
    with pytest.raises(ValueError, match="rate"):
        step(t([1.0, -2.0]), t([3.0, 4.0]))
    with pytest.raises(ValueError, match="value"):
        step(t([1.0, 2.0]), t([-3.0, 4.0]))


def test_transforms_are_equal_by_what_they_do():
    assert d.ExpTransform() == d.ExpTransform() != d.SigmoidTransform()
    assert d.AffineTransform(1.0, t([2.0])) == d.AffineTransform(1.0, t([2.0]))
    assert d.AffineTransform(1.0, 2.0) != d.AffineTransform(1.0, 3.0)
    assert d.ExpTransform().inv == d.ExpTransform().inv
    assert d.ExpTransform().with_cache() == d.ExpTransform()
    assert d.ComposeTransform([d.ExpTransform()]) == d.ComposeTransform([d.ExpTransform()])


def test_transforms_of_events_sum_their_slopes():
    x = t(np.linspace(-1, 1, 12).reshape(2, 2, 3))
    exp = d.IndependentTransform(d.ExpTransform(), 2)
    close(exp.log_abs_det_jacobian(x, exp(x)), x.sum((-2, -1)).numpy())
    chain = d.ComposeTransform([d.ExpTransform(), d.ReshapeTransform((2, 3), (6,)), d.AffineTransform(0.0, 2.0)])
    y = chain(x)
    assert (y.shape, chain.domain.event_dim, chain.codomain.event_dim) == ((2, 6), 2, 1)
    close(chain.log_abs_det_jacobian(x, y), (x.sum((-2, -1)) + 6 * math.log(2)).numpy())
    assert chain.inverse_shape((4, 6)) == (4, 2, 3)
    assert d.CorrCholeskyTransform().inverse_shape((2, 4, 4)) == (2, 6)
    twice = d.ComposeTransform([d.TanhTransform()] * 2)
    close(twice.log_abs_det_jacobian(x, twice(x)), np.log((1 - np.tanh(x) ** 2) * (1 - np.tanh(np.tanh(x)) ** 2)))
    made = d.TransformedDistribution(d.Normal(t([0.0, 1.0]), 1.0), d.StickBreakingTransform())
    assert (made.batch_shape, made.event_shape, made.sample((4,)).shape) == ((), (3,), (4, 3))
    with pytest.raises(ValueError, match="transforms must be a Transform"):
        d.TransformedDistribution(d.Normal(0.0, 1.0), [3])


def test_reparametrized_parameters_move_freely():
    """A fit by gradient descent of a covariance and shares through ``transform_to``."""
    target = t(COVARIANCE)
    free = leafgrad.zeros(3, 3, dtype=leafgrad.float64, requires_grad=True)
    to_matrix = d.transform_to(constraints.positive_definite)
    optimizer = leafgrad.optim.Adam([free], lr=0.05)
    for _ in range(300):
        optimizer.zero_grad()
        ((to_matrix(free) - target) ** 2).sum().backward()
        optimizer.step()
    assert np.abs(to_matrix(free).detach().numpy() - COVARIANCE).max() < 1e-3


@pytest.mark.parametrize("make", [
    lambda x: d.VonMises(x, x + 0.5), lambda x: d.Binomial(5, x.sigmoid()), lambda x: d.Kumaraswamy(x + 1, x + 2),
    lambda x: d.InverseGamma(x + 2, x + 1), lambda x: d.LogisticNormal(x, x + 1),
    lambda x: d.FisherSnedecor(x + 2, x + 9),
])  # fmt: skip
def test_compiled_steps_draw_what_uncompiled_ones_draw(make):
    def draws(f):
        leafgrad.manual_seed(5)
        return [f(t([0.5, 1.0, 2.0])).tolist() for _ in range(6)]

    def step(x):
        return make(x).sample((4,))

    assert draws(leafgrad.compile(step, executor="replay")) == draws(step)


FAMILIES = [
    d.Normal(t([0.3, -1.0]), t([2.0, 0.5])),
    d.Bernoulli(t([0.3, 0.9])),
    d.Gamma(t([2.0, 0.5]), t([3.0, 1.0])),
    d.Chi2(t([3.0, 5.0])),
    d.Beta(t([2.0, 0.5]), t([3.0, 1.0])),
    d.Dirichlet(t([[2.0, 0.5, 1.0], [1.0, 2.0, 3.0]])),
    d.Exponential(t([2.0, 0.5])),
    d.ContinuousBernoulli(t([0.3, 0.9, 0.5, 0.4999])),
    d.Wishart(t([4.0, 5.0]), covariance_matrix=t([[2.0, 0.5], [0.5, 1.0]])),
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
def test_natural_parameters_give_the_entropy(family):
    assert isinstance(family, d.ExponentialFamily)
    close(d.ExponentialFamily.entropy(family), family.entropy().numpy())


@pytest.mark.parametrize("dtype", [leafgrad.float32, leafgrad.float64])
def test_continuous_trials_of_far_logits_are_finite(dtype):
    p = d.ContinuousBernoulli(logits=leafgrad.tensor([20.0, 40.0, -40.0, -800.0], dtype=dtype))
    value = leafgrad.tensor(0.9, dtype=dtype)
    for found in (p.mean, p.variance, p.entropy(), p.log_prob(value), p.rsample((9,)), p.cdf(value)):
        assert found.isfinite().all()
    assert ((p.mean > 0) & (p.mean < 1)).all()


def test_the_entropy_of_poisson_has_no_closed_form():
    poisson = d.Poisson(t(2.0))
    assert isinstance(poisson, d.ExponentialFamily)
    assert poisson._log_normalizer(*poisson._natural_params).item() == pytest.approx(2.0)
    with pytest.raises(NotImplementedError, match="no closed form"):
        poisson.entropy()

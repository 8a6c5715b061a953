"""Distributions: against SciPy and by sampling, through gradients, compiled, and by their errors."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from scipy import special, stats

import leafgrad
from leafgrad import distributions as d
from leafgrad.ops.gamma import standard_gamma_grad

TESTS = "distributions.*"

LOC = np.array([[0.5, -1.0], [2.0, 0.0], [-0.3, 1.5]])
SCALE = np.array([0.7, 1.6])
PROBS = np.array([[0.2, 0.7], [0.5, 0.9], [0.35, 0.1]])
CLASSES = np.array([[0.1, 0.2, 0.3, 0.4], [1.0, 1.0, 1.0, 5.0]])
COVARIANCE = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.8]])


def t(array, **options):
    return leafgrad.tensor(np.asarray(array, dtype="float64"), **options)


# name -> make(), SciPy's, values
CONTINUOUS = {
    "Normal": (lambda **o: d.Normal(t(LOC, **o), t(SCALE, **o)), stats.norm(LOC, SCALE), LOC + 0.3),
    "LogNormal": (lambda **o: d.LogNormal(t(LOC, **o), t(SCALE, **o)), stats.lognorm(SCALE, scale=np.exp(LOC)), PROBS),
    "Uniform": (lambda **o: d.Uniform(t(LOC, **o), t(LOC + SCALE, **o)), stats.uniform(LOC, SCALE), LOC + PROBS / 2),
    "Laplace": (lambda **o: d.Laplace(t(LOC, **o), t(SCALE, **o)), stats.laplace(LOC, SCALE), LOC + PROBS - 0.5),
    "Exponential": (lambda **o: d.Exponential(t(PROBS, **o)), stats.expon(scale=1 / PROBS), LOC**2 + 0.1),
    "HalfNormal": (lambda **o: d.HalfNormal(t(SCALE + 0 * LOC, **o)), stats.halfnorm(0, SCALE + 0 * LOC), LOC**2 + 0.1),
    "Gumbel": (lambda **o: d.Gumbel(t(LOC, **o), t(SCALE, **o)), stats.gumbel_r(LOC, SCALE), LOC + PROBS),
    "Weibull": (
        lambda **o: d.Weibull(t(SCALE, **o), t(PROBS + 1, **o)), stats.weibull_min(PROBS + 1, scale=SCALE), PROBS,
    ),
    "Pareto": (
        lambda **o: d.Pareto(t(SCALE, **o), t(PROBS + 30, **o)), stats.pareto(PROBS + 30, scale=SCALE), PROBS + 2,
    ),
}  # fmt: skip
WITHOUT_CDF = {
    "Gamma": (
        lambda **o: d.Gamma(t(PROBS * 4, **o), t(SCALE, **o)), stats.gamma(PROBS * 4, scale=1 / SCALE), LOC**2 + 0.1,
    ),
    "Chi2": (lambda **o: d.Chi2(t(PROBS * 4, **o)), stats.chi2(PROBS * 4), LOC**2 + 0.1),
    "Beta": (lambda **o: d.Beta(t(PROBS * 4, **o), t(SCALE, **o)), stats.beta(PROBS * 4, SCALE), PROBS),
    "StudentT": (
        lambda **o: d.StudentT(t(PROBS * 4 + 5, **o), t(LOC, **o), t(SCALE, **o)),
        stats.t(PROBS * 4 + 5, LOC, SCALE), LOC + PROBS,
    ),
}  # fmt: skip
DISCRETE = {
    "Bernoulli": (lambda **o: d.Bernoulli(t(PROBS, **o)), stats.bernoulli(PROBS), np.array([0, 1.0])),
    "Bernoulli of logits": (
        lambda **o: d.Bernoulli(logits=t(LOC, **o)), stats.bernoulli(1 / (1 + np.exp(-LOC))), np.array([0, 1.0]),
    ),
    "Geometric": (lambda **o: d.Geometric(t(PROBS, **o)), stats.geom(PROBS, -1), np.array([0, 3.0])),
}  # fmt: skip
COUNTS = {
    "Poisson": (lambda **o: d.Poisson(t(PROBS * 20, **o)), stats.poisson(PROBS * 20), np.array([0, 3.0])),
    "NegativeBinomial": (
        lambda **o: d.NegativeBinomial(t(SCALE * 3, **o), t(PROBS, **o)), stats.nbinom(SCALE * 3, 1 - PROBS),
        np.array([0, 3.0]),
    ),
}  # fmt: skip
WITH_ENTROPY = {**CONTINUOUS, **WITHOUT_CDF, **DISCRETE}
SCALARS = {**WITH_ENTROPY, **COUNTS}


def close(found, expected, tolerance=1e-10):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", SCALARS)
def test_moments_and_probabilities_are_scipys(name):
    make, reference, values = SCALARS[name]
    p = make()
    close(p.mean, reference.mean())
    close(p.variance, reference.var())
    close(p.stddev, reference.std())
    if name in WITH_ENTROPY:
        close(p.entropy(), reference.entropy(), 1e-8)
        close(p.perplexity(), np.exp(reference.entropy()), 1e-7)
    counts = name in DISCRETE or name in COUNTS
    close(p.log_prob(t(values)), reference.logpmf(values) if counts else reference.logpdf(values))
    assert p.batch_shape == (3, 2)
    assert p.event_shape == ()


@pytest.mark.parametrize("name", CONTINUOUS)
def test_cdf_and_icdf_are_scipys_and_undo_one_another(name):
    make, reference, values = CONTINUOUS[name]
    p = make()
    close(p.cdf(t(values)), reference.cdf(values))
    close(p.icdf(t(PROBS)), reference.ppf(PROBS))
    close(p.cdf(p.icdf(t(PROBS))), PROBS)


@pytest.mark.parametrize("name", SCALARS)
def test_samples_have_the_moments(name, device):
    leafgrad.manual_seed(0)
    make, reference, _ = SCALARS[name]
    p = make(device=device)
    drawn = p.sample((6000,))
    assert drawn.shape == (6000, 3, 2)
    assert (drawn.device, drawn.dtype) == (device, leafgrad.float64)
    assert not drawn.requires_grad
    values = drawn.cpu().numpy()
    assert (np.abs(values.mean(0) - reference.mean()) < 6 * reference.std() / math.sqrt(6000)).all()
    if name in CONTINUOUS and name != "LogNormal":
        assert (np.abs(values.std(0) / reference.std() - 1) < 0.1).all()


def test_distributions_without_moments():
    cauchy, half = d.Cauchy(t(LOC), t(SCALE)), d.HalfCauchy(t(SCALE))
    close(cauchy.log_prob(t(PROBS)), stats.cauchy(LOC, SCALE).logpdf(PROBS))
    close(half.log_prob(t(PROBS)), stats.halfcauchy(0, SCALE).logpdf(PROBS))
    close(cauchy.cdf(t(PROBS)), stats.cauchy(LOC, SCALE).cdf(PROBS))
    close(half.icdf(t(PROBS)), stats.halfcauchy(0, SCALE).ppf(PROBS))
    close(cauchy.entropy(), np.log(4 * np.pi * SCALE) + 0 * LOC)
    close(half.entropy(), np.log(2 * np.pi * SCALE))
    assert cauchy.mean.isnan().all().item()
    assert half.mean.isinf().all().item()
    assert d.StudentT(t([0.5, 1.5, 3.0])).variance.tolist() == pytest.approx([math.nan, math.inf, 3.0], nan_ok=True)
    df = t([0.5, 1.0, 1.5, 2.0, 5.0], requires_grad=True)
    variance = d.StudentT(df).variance
    assert variance.dtype is df.dtype
    close(leafgrad.autograd.grad(variance.sum(), df)[0], [0, 0, 0, 0, -2 / 9])
    assert d.Pareto(1.0, t([0.5, 1.5, 3.0])).mean.tolist() == [math.inf, 3.0, 1.5]
    assert d.Weibull(1.0, t([0.5, 1.0, 2.0])).mode.tolist() == pytest.approx([0, 0, math.sqrt(0.5)])


def test_dirichlet():
    p = d.Dirichlet(t(CLASSES * 3))
    for found, a in zip([p.mean, p.variance], ["mean", "var"], strict=True):
        close(found, [getattr(stats.dirichlet(row), a)() for row in CLASSES * 3])
    close(p.entropy(), [stats.dirichlet(row).entropy() for row in CLASSES * 3])
    close(
        p.log_prob(t([0.1, 0.2, 0.3, 0.4])), [stats.dirichlet(row).logpdf([0.1, 0.2, 0.3, 0.4]) for row in CLASSES * 3]
    )
    assert d.Dirichlet(t([0.5, 0.2])).mode.tolist() == [1.0, 0.0]
    leafgrad.manual_seed(0)
    drawn = p.sample((6000,))
    close(drawn.sum(-1), 1.0)
    assert np.abs(drawn.mean(0).numpy() - p.mean.numpy()).max() < 0.02
    assert np.abs(drawn.var(0).numpy() - p.variance.numpy()).max() < 0.01
    assert p.expand((5, 2)).sample((3,)).shape == (3, 5, 2, 4)
    tiny = d.Dirichlet(leafgrad.full((1000, 3), 1e-3)).sample()
    assert not tiny.isnan().any().item()


GAMMAS = {
    "Gamma": (lambda a: d.Gamma(a, 2.0), lambda a: stats.gamma(a, scale=0.5)),
    "Beta": (lambda a: d.Beta(a, 1.5), lambda a: stats.beta(a, 1.5)),
    "Chi2": (lambda a: d.Chi2(a), lambda a: stats.chi2(a)),
}


@pytest.mark.parametrize("name", GAMMAS)
@pytest.mark.parametrize("a", [0.3, 1.0, 4.0, 60.0])
def test_means_of_derivatives_of_samples_are_derivatives_of_means(name, a):
    make, reference = GAMMAS[name]
    leafgrad.manual_seed(0)
    leaf = t(a, requires_grad=True)
    drawn = make(leaf.expand(40_000)).rsample()
    drawn.mean().backward()
    expected = (reference(a + 1e-4).mean() - reference(a - 1e-4).mean()) / 2e-4
    assert leaf.grad.item() == pytest.approx(expected, rel=0.05, abs=1e-3)
    assert stats.kstest(drawn.detach().numpy(), reference(a).cdf).pvalue > 1e-4


def test_the_derivative_of_gamma_numbers_is_that_at_a_fixed_probability():
    rng = np.random.default_rng(0)
    a, u = np.exp(rng.uniform(-3, 8, 400)), rng.uniform(0.01, 0.99, 400)
    h = a * 1e-4
    at = [special.gammaincinv(a + k * h, u) for k in (-2, -1, 0, 1, 2)]
    expected = (8 * (at[3] - at[1]) - (at[4] - at[0])) / (12 * h)
    np.testing.assert_allclose(standard_gamma_grad(t(a), t(at[2])).numpy(), expected, rtol=1e-7)
    of_logarithms = standard_gamma_grad(t(a), t(np.log(at[2])), log=True)
    np.testing.assert_allclose(of_logarithms.numpy(), expected / at[2], rtol=1e-7)
    assert standard_gamma_grad(t(1e-3), t(-5e3), log=True).item() == pytest.approx(5e6, rel=1e-3)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_gradients_flow_through_samples_and_log_probabilities(name):
    make, _, values = CONTINUOUS[name]

    def loss(*parameters):
        p = type(make())(*parameters)
        leafgrad.manual_seed(1)
        return p.rsample((2,)), p.log_prob(t(values)), p.entropy()

    p = make(requires_grad=True)
    leaves = [getattr(p, name).detach().clone().requires_grad_() for name in p.arg_constraints]
    leafgrad.autograd.gradcheck(loss, leaves)


def test_categorical(device):
    leafgrad.manual_seed(0)
    probs = CLASSES / CLASSES.sum(-1, keepdims=True)
    for p in (d.Categorical(t(CLASSES, device=device)), d.Categorical(logits=t(np.log(CLASSES) + 7, device=device))):
        assert np.allclose(p.probs.cpu().numpy(), probs)
        drawn = p.sample((4000,)).cpu()
        assert (drawn.shape, drawn.dtype) == ((4000, 2), leafgrad.int64)
        shares = np.stack([(drawn == k).to(leafgrad.float64).mean(0).numpy() for k in range(4)], -1)
        assert np.abs(shares - probs).max() < 0.04
        values = leafgrad.tensor([[3, 0], [1, 1]], device=device)
        expected = np.log(np.stack([probs[0][[3, 1]], probs[1][[0, 1]]], -1))
        assert np.allclose(p.log_prob(values).cpu().numpy(), expected)
        assert np.allclose(p.entropy().cpu().numpy(), -(probs * np.log(probs)).sum(-1))
        assert p.mode.tolist() == [3, 3]
        assert p.mean.isnan().all().item()
        assert p.enumerate_support().shape == (4, 2)
        assert p.enumerate_support(expand=False).flatten().tolist() == [0, 1, 2, 3]
        assert p.expand((5, 2)).sample().shape == (5, 2)
    assert d.Categorical(t(CLASSES[0])).sample().shape == ()


def test_one_hot_categorical():
    p = d.OneHotCategorical(t(CLASSES))
    drawn = p.sample((7,))
    assert drawn.shape == (7, 2, 4)
    assert drawn.sum(-1).tolist() == [[1.0, 1.0]] * 7
    close(p.log_prob(drawn), p.probs.log().detach().numpy()[[[0, 1]] * 7, drawn.argmax(-1).numpy()])
    close(p.variance, p.mean.numpy() * (1 - p.mean.numpy()))
    assert p.mode.argmax(-1).tolist() == [3, 3]
    assert (p.event_shape, p.enumerate_support().shape) == ((4,), (4, 2, 4))


def test_multivariate_normal():
    mean, values = np.array([1.0, -2.0, 0.5]), np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 2.0]])
    reference = stats.multivariate_normal(mean, COVARIANCE)
    given = {
        "covariance_matrix": COVARIANCE,
        "precision_matrix": np.linalg.inv(COVARIANCE),
        "scale_tril": np.linalg.cholesky(COVARIANCE),
    }
    for name, matrix in given.items():
        p = d.MultivariateNormal(t(mean), **{name: t(matrix)})
        for other, expected in given.items():
            close(getattr(p, other), expected)
        close(p.log_prob(t(values)), reference.logpdf(values))
        close(p.entropy(), reference.entropy())
        close(p.variance, np.diag(COVARIANCE))
        leafgrad.manual_seed(0)
        drawn = p.sample((8000,)).numpy()
        assert np.abs(np.cov(drawn.T) - COVARIANCE).max() < 0.15
        assert p.expand((2, 4)).sample((3,)).shape == (3, 2, 4, 3)
    batch = d.MultivariateNormal(t(np.zeros((4, 1, 3))), t(np.stack([COVARIANCE, COVARIANCE * 2])))
    assert (batch.batch_shape, batch.log_prob(t(np.zeros(3))).shape) == ((4, 2), (4, 2))


@pytest.mark.parametrize("samples", [(), (4,), (0,), (2, 4)])
@pytest.mark.parametrize(("factors", "means"), [((), ()), ((), (3,)), ((3,), ()), ((3,), (2, 3)), ((2, 1), (1, 3))])
def test_densities_of_batches_of_multivariate_normals(samples, factors, means):
    random = np.random.default_rng(0)
    factor, mean = np.tril(random.random((*factors, 2, 2))) + np.eye(2), random.random((*means, 2))
    batch = np.broadcast_shapes(factors, means)
    values = random.random((*samples, *batch, 2))
    found = d.MultivariateNormal(t(mean), scale_tril=t(factor)).log_prob(t(values))
    moved = np.linalg.solve(factor, (values - mean)[..., None])[..., 0]
    halves = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
    close(found, -0.5 * (moved**2).sum(-1) - halves - math.log(2 * math.pi))
    assert found.shape == (*samples, *batch)


def test_gradients_of_the_multivariate_normal():
    leaves = t(np.array([0.5, -1.0, 0.3]), requires_grad=True), t(np.linalg.cholesky(COVARIANCE), requires_grad=True)

    def function(loc, factor):
        p = d.MultivariateNormal(loc, scale_tril=factor.tril(), validate_args=False)
        q = d.MultivariateNormal(t(np.zeros(3)), t(np.eye(3)))
        leafgrad.manual_seed(0)
        return p.rsample((2,)), p.log_prob(t(np.ones(3))), d.kl_divergence(p, q)

    leafgrad.autograd.gradcheck(function, leaves)


def test_independent_sums_over_the_last_dimensions():
    base = d.Normal(t(LOC), t(SCALE))
    p = d.Independent(base, 1)
    assert (p.batch_shape, p.event_shape) == ((3,), (2,))
    close(p.log_prob(t(LOC)), base.log_prob(t(LOC)).sum(-1).numpy())
    close(p.entropy(), base.entropy().sum(-1).numpy())
    assert p.rsample((4,)).shape == (4, 3, 2)
    assert p.expand((5, 3)).batch_shape == (5, 3)
    assert p.support.event_dim == 1
    whole = d.Independent(base, 2)
    assert whole.log_prob(t(LOC)).shape == ()
    assert d.Independent(d.Bernoulli(t(PROBS)), 0).enumerate_support().shape == (2, 3, 2)


# ---- divergences ----------------------------------------------------------------------------------------------------

PAIRS = {
    "Normal": lambda: (d.Normal(0.5, 1.5), d.Normal(-0.2, 0.8)),
    "LogNormal": lambda: (d.LogNormal(0.5, 0.5), d.LogNormal(-0.2, 0.8)),
    "Uniform": lambda: (d.Uniform(0.0, 1.0), d.Uniform(-1.0, 3.0)),
    "Uniform, Normal": lambda: (d.Uniform(0.0, 1.0), d.Normal(0.2, 0.8)),
    "Laplace": lambda: (d.Laplace(0.5, 1.5), d.Laplace(-0.2, 0.8)),
    "Exponential": lambda: (d.Exponential(2.0), d.Exponential(0.7)),
    "Gamma": lambda: (d.Gamma(2.5, 1.5), d.Gamma(1.2, 0.7)),
    "Chi2": lambda: (d.Chi2(2.5), d.Chi2(4.0)),
    "Beta": lambda: (d.Beta(2.5, 1.5), d.Beta(1.2, 0.7)),
    "Dirichlet": lambda: (d.Dirichlet(t(CLASSES[0] * 9)), d.Dirichlet(t(CLASSES[1]))),
    "Poisson": lambda: (d.Poisson(2.0), d.Poisson(0.7)),
    "Cauchy": lambda: (d.Cauchy(0.5, 1.5), d.Cauchy(-0.2, 0.8)),
    "HalfCauchy": lambda: (d.HalfCauchy(1.5), d.HalfCauchy(2.0)),
    "HalfNormal": lambda: (d.HalfNormal(1.5), d.HalfNormal(2.0)),
    "Gumbel": lambda: (d.Gumbel(0.5, 0.8), d.Gumbel(-0.2, 1.5)),
    "Pareto": lambda: (d.Pareto(1.5, 2.5), d.Pareto(1.2, 1.5)),
    "Bernoulli": lambda: (d.Bernoulli(0.3), d.Bernoulli(0.6)),
    "Geometric": lambda: (d.Geometric(0.3), d.Geometric(0.6)),
    "Categorical": lambda: (d.Categorical(t(CLASSES[0])), d.Categorical(t(CLASSES[1]))),
    "OneHotCategorical": lambda: (d.OneHotCategorical(t(CLASSES[0])), d.OneHotCategorical(t(CLASSES[1]))),
    "MultivariateNormal": lambda: (
        d.MultivariateNormal(t(np.zeros(3)), t(COVARIANCE)), d.MultivariateNormal(t(np.ones(3)), t(np.eye(3))),
    ),
    "Independent": lambda: (
        d.Independent(d.Normal(t(LOC[0]), t(SCALE)), 1), d.Independent(d.Normal(t(LOC[1]), t(SCALE)), 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_divergences_are_means_of_log_ratios(name):
    leafgrad.manual_seed(0)
    p, q = PAIRS[name]()
    drawn = p.sample((40_000,))
    ratio = (p.log_prob(drawn) - q.log_prob(drawn)).to(leafgrad.float64)
    error = 6 * ratio.std().item() / 200 + 1e-6
    assert d.kl_divergence(p, q).item() == pytest.approx(ratio.mean().item(), abs=error)
    assert d.kl_divergence(p, p).item() == pytest.approx(0, abs=1e-6)


MIXED = {
    "Beta": lambda: d.Beta(2.5, 1.5),
    "ContinuousBernoulli": lambda: d.ContinuousBernoulli(t(0.3)),
    "Exponential": lambda: d.Exponential(1.3),
    "Gamma": lambda: d.Gamma(2.5, 1.2),
    "Gumbel": lambda: d.Gumbel(0.4, 0.7),
    "Laplace": lambda: d.Laplace(0.4, 0.7),
    "Normal": lambda: d.Normal(0.4, 0.7),
    "Pareto": lambda: d.Pareto(0.2, 4.5),
    "Uniform": lambda: d.Uniform(0.25, 0.9),
    "Bernoulli": lambda: d.Bernoulli(0.3),
    "Poisson": lambda: d.Poisson(1.3),
}


@pytest.mark.parametrize("name", MIXED)
def test_divergences_from_other_kinds(name):
    leafgrad.manual_seed(0)
    p, finite = MIXED[name](), 0
    drawn = p.sample((40_000,))
    for other in MIXED.keys() - {name}:
        q = MIXED[other]()
        try:
            found = d.kl_divergence(p, q).item()
        except NotImplementedError:
            continue
        if not q.support.check(drawn).all():
            assert found == math.inf, other
        else:
            finite += 1
            ratio = (p.log_prob(drawn) - q.log_prob(drawn)).to(leafgrad.float64)
            assert found == pytest.approx(ratio.mean().item(), abs=6 * ratio.std().item() / 200), other
    assert finite >= (name != "Poisson")


def test_divergences_where_one_has_no_mass():
    assert d.kl_divergence(d.Uniform(0.0, 2.0), d.Uniform(0.0, 1.0)).item() == math.inf
    assert d.kl_divergence(d.Normal(0.0, 1.0), d.Uniform(0.0, 1.0)).item() == math.inf
    assert d.kl_divergence(d.Bernoulli(0.5), d.Bernoulli(1.0)).item() == math.inf
    assert d.kl_divergence(d.Bernoulli(0.0), d.Bernoulli(0.5)).item() == pytest.approx(math.log(2))
    half, one = t([0.5, 0.5]), t([1.0, 0.0])
    assert d.kl_divergence(d.Categorical(half), d.Categorical(one)).item() == math.inf


def test_divergences_of_transformed_distributions_are_those_of_their_bases():
    bent = [d.transforms.ExpTransform(), d.transforms.AffineTransform(1.0, 2.0)]
    a, b = d.Normal(t([0.0, 1.0]), t([1.0, 2.0])), d.Normal(t([0.5, -1.0]), t([1.5, 1.0]))
    p, q = d.TransformedDistribution(a, bent), d.TransformedDistribution(b, bent)
    assert d.kl_divergence(p, q).tolist() == d.kl_divergence(a, b).tolist()
    whole = [d.TransformedDistribution(d.Independent(x, 1), bent) for x in (a, b)]
    assert d.kl_divergence(*whole).item() == pytest.approx(d.kl_divergence(a, b).sum().item())
    for other in (d.TransformedDistribution(b, bent[:1]), whole[1]):
        with pytest.raises(NotImplementedError):
            d.kl_divergence(p, other)


def test_the_formula_of_the_nearest_types_is_taken():
    class Special(d.Normal):
        pass

    @d.register_kl(Special, d.Normal)
    def special(p, q):
        return leafgrad.tensor(7.0)

    assert d.kl_divergence(Special(0.0, 1.0), d.Normal(0.0, 1.0)).item() == 7.0
    assert d.kl_divergence(d.Normal(0.0, 1.0), Special(0.0, 1.0)).item() == 0.0
    with pytest.raises(NotImplementedError, match="p type Bernoulli and q type Uniform"):
        d.kl_divergence(d.Bernoulli(0.5), d.Uniform(0.0, 1.0))
    with pytest.raises(TypeError, match="type_q to be a Distribution subclass"):
        d.register_kl(d.Normal, 3)


# ---- what all have in common ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCALARS)
def test_an_expanded_batch_is_the_same_many_times(name):
    make, _, values = SCALARS[name]
    p = make().expand((4, 3, 2))
    assert p.batch_shape == (4, 3, 2)
    assert p.sample((2,)).shape == (2, 4, 3, 2)
    for row in p.log_prob(t(values)):
        close(row, make().log_prob(t(values)).numpy())


def test_numbers_and_tensors_as_parameters():
    p = d.Normal(0, 1)
    assert (p.loc.dtype, p.batch_shape) == (leafgrad.float32, ())
    assert d.Normal(t(LOC), 1).scale.dtype is leafgrad.float64
    assert repr(p) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(d.Independent(d.Normal(t(LOC), 1.0), 1)).startswith("Independent(Normal(loc: leafgrad.Size([3, 2])")
    assert d.Bernoulli(0.5).mode.isnan().item()
    assert d.Uniform(0.0, 1.0).mode.isnan().item()
    assert [f().item() for f in (lambda: d.Exponential(2.0).mode, lambda: d.Geometric(0.5).mode)] == [0, 0]


def test_a_compiled_step_through_samples_and_divergences():
    """A step of a variational fit; traced functions run without the checks, and draw anew at each call."""
    results = []
    for compiled in (False, True):
        leafgrad.manual_seed(0)
        loc, log_scale = leafgrad.zeros(2, requires_grad=True), leafgrad.zeros(2, requires_grad=True)
        optimizer = leafgrad.optim.Adam([loc, log_scale], lr=0.1)
        target = leafgrad.tensor([1.0, -1.0])

        def step(loc=loc, log_scale=log_scale, optimizer=optimizer, target=target):
            optimizer.zero_grad()
            q = d.Independent(d.Normal(loc, log_scale.exp()), 1)
            prior = d.Independent(d.Normal(leafgrad.zeros(2), 2.0), 1)
            z = q.rsample((16,))
            loss = ((z - target) ** 2).sum(-1).mean() + 0.1 * d.kl_divergence(q, prior) - 0.01 * q.entropy()
            loss.backward()
            optimizer.step()

        call = leafgrad.compile(step) if compiled else step
        for _ in range(20):
            call()
        results.append(loc.tolist() + log_scale.tolist())
    assert results[1] == pytest.approx(results[0], rel=1e-4)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: d.Normal(0.0, -1.0), ValueError, r"parameter scale .* distribution Normal\(loc: 0.0, scale: -1.0\) "
            r"to satisfy the constraint GreaterThan\(lower_bound=0.0\), but found invalid values:\n-1.0"),
        (lambda: d.Normal("a", 1.0), ValueError, "must all be instances of Number or Tensor, got str"),
        (lambda: d.Normal(leafgrad.zeros(2), leafgrad.ones(3)), RuntimeError, "broadcast"),
        (lambda: d.Normal(0.0, 1.0).log_prob(1.0), ValueError, "argument to log_prob must be a Tensor, got float"),
        (lambda: d.Normal(0.0, 1.0).log_prob(leafgrad.tensor(math.nan)), ValueError, r"the support \(Real\(\)\)"),
        (lambda: d.Normal(leafgrad.zeros(3), 1.0).log_prob(leafgrad.zeros(2)), ValueError, "not broadcastable"),
        (lambda: d.Normal(0.0, 1.0).sample(2), TypeError, "sample"),
        (lambda: d.Uniform(1.0, 0.0), ValueError, r"parameter low .* LessThan\(upper_bound=0.0\)"),
        (lambda: d.Uniform(0.0, 1.0).log_prob(leafgrad.tensor(2.0)), ValueError, r"Interval\(lower_bound=0.0, upper_"),
        (lambda: d.Bernoulli(2.0), ValueError, r"parameter probs .* Interval\(lower_bound=0.0, upper_bound=1.0\)"),
        (lambda: d.Bernoulli(0.5, 0.5), ValueError, "Either `probs` or `logits` must be specified, but not both"),
        (lambda: d.Bernoulli(0.5).rsample(), NotImplementedError, "Bernoulli has no samples that depend"),
        (lambda: d.Bernoulli(0.5).log_prob(leafgrad.tensor(0.5)), ValueError, r"support \(Boolean\(\)\)"),
        (lambda: d.Geometric(0.0), ValueError, "to be positive"),
        (lambda: d.Categorical(), ValueError, "Either `probs` or `logits`"),
        (lambda: d.Categorical(leafgrad.tensor(1.0)), ValueError, "`probs` parameter must be at least one-dimensional"),
        (lambda: d.Categorical(leafgrad.tensor([-1.0, 2.0])), ValueError, r"parameter probs .* Simplex\(\)"),
        (lambda: d.Categorical(leafgrad.ones(3)).log_prob(leafgrad.tensor(3)), ValueError, "IntegerInterval"),
        (lambda: d.OneHotCategorical(leafgrad.ones(3)).log_prob(leafgrad.ones(2)), ValueError, "match event_shape"),
        (lambda: d.MultivariateNormal(leafgrad.zeros(2)), ValueError, "Exactly one of covariance_matrix"),
        (lambda: d.MultivariateNormal(leafgrad.zeros(2), -leafgrad.eye(2)), ValueError, r"PositiveDefinite\(\)"),
        (lambda: d.MultivariateNormal(leafgrad.zeros(2), scale_tril=leafgrad.ones(2, 2)), ValueError, "LowerCholesky"),
        (lambda: d.MultivariateNormal(leafgrad.tensor(1.0), leafgrad.eye(2)), ValueError, "loc must be at least one"),
        (lambda: d.MultivariateNormal(leafgrad.zeros(2), leafgrad.zeros(2)), ValueError, "at least two-dimensional"),
        (lambda: d.Independent(d.Normal(0.0, 1.0), 1), ValueError, "actual 1 vs 0"),
        (lambda: d.Independent(d.Bernoulli(t(PROBS)), 1).enumerate_support(), NotImplementedError, "cartesian product"),
        (lambda: d.Distribution().mean, NotImplementedError, "Distribution has no mean"),
        (lambda: d.Distribution.set_default_validate_args("no"), ValueError, "expected True or False, got 'no'"),
        (lambda: d.constraints.dependent.check(leafgrad.ones(1)), ValueError, "dependent constraint"),
    ],
)  # fmt: skip
def test_errors_say_what_was_expected(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_checks_can_be_left_out():
    assert d.Normal(0.0, -1.0, validate_args=False).scale.item() == -1.0
    assert d.Uniform(0.0, 1.0, validate_args=False).log_prob(leafgrad.tensor(2.0)).item() == -math.inf
    d.Distribution.set_default_validate_args(False)
    try:
        assert d.Normal(0.0, -1.0).expand((2,)).scale.tolist() == [-1.0, -1.0]
    finally:
        d.Distribution.set_default_validate_args(True)


def test_constraints_by_themselves():
    c = d.constraints
    for shape in ((2, 3), (1, 3), (3, 1)):
        assert c.symmetric.check(leafgrad.ones(4, *shape)).tolist() == [False] * 4
    assert c.lower_cholesky.check(leafgrad.eye(2)).item()
    assert c.one_hot.check(leafgrad.eye(3)).all().item()
    assert c.positive_definite.check(leafgrad.stack([leafgrad.eye(2), -leafgrad.eye(2)])).tolist() == [True, False]
    assert c.positive_integer.check(leafgrad.tensor([0.0, 1.0, 1.5])).tolist() == [False, True, False]
    assert c.real_vector.check(leafgrad.tensor([[1.0, math.nan], [0.0, 1.0]])).tolist() == [False, True]
    assert [c.real.is_discrete, c.boolean.is_discrete, c.simplex.event_dim] == [False, True, 1]
    assert repr(c.independent(c.positive, 2)) == "IndependentConstraint(GreaterThan(lower_bound=0.0), 2)"


def test_each_part_has_a_constraint():
    c = d.constraints
    with pytest.raises(ValueError, match="stack: expected as many parts in dimension 0 as constraints, 2, got 3"):
        c.stack([c.positive, c.positive], 0).check(leafgrad.ones(3, 2))
    with pytest.raises(ValueError, match="cat: expected as many parts in dimension 1 as constraints, 1, got 2"):
        c.cat([c.positive], 1, [1, 1]).check(leafgrad.ones(3, 2))


def test_a_dependent_parameter_is_not_checked():
    class Point(d.Distribution):
        arg_constraints: ClassVar = {"v": d.constraints.dependent, "width": d.constraints.positive}

        def __init__(self, v, width):
            self.v, self.width = leafgrad.tensor(v), leafgrad.tensor(width)
            super().__init__()

    assert Point(1.0, 2.0).v.item() == 1.0
    with pytest.raises(ValueError, match="parameter width"):
        Point(1.0, -2.0)

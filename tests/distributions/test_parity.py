"""Distributions against PyTorch's, where it is installed: probabilities, moments, divergences, shapes, error types."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
import leafgrad.distributions

torch = pytest.importorskip("torch")

R = np.random.default_rng(1)
LOC, SCALE, PROBS, CLASSES = (
    R.normal(size=(3, 2)), R.uniform(0.5, 2, 2), R.uniform(0.1, 0.9, (3, 2)), R.uniform(0.1, 1, (3, 4)),
)  # fmt: skip
ROOT = R.normal(size=(3, 3))
MATRIX = ROOT @ ROOT.T + np.eye(3)
CORRELATION = MATRIX / np.sqrt(np.diag(MATRIX)) / np.sqrt(np.diag(MATRIX))[:, None]
SHARES, THREE = R.dirichlet([1, 2, 3, 4], (2, 3)), R.dirichlet([1, 2, 3], (2, 3))
COINS = (R.uniform(size=(5, 3, 2)) > 0.5) * 1.0

# name -> p, another distribution q, values; from the module D and the function t that makes tensors
CASES = {
    "Normal": lambda D, t: (D.Normal(t(LOC), t(SCALE)), D.Normal(t(LOC + 0.3), 1.2), LOC[None] + 0.5),
    "LogNormal": lambda D, t: (D.LogNormal(t(LOC), t(SCALE)), D.LogNormal(t(LOC + 0.3), 1.2), PROBS[None]),
    "Uniform": lambda D, t: (D.Uniform(t(LOC - 5), t(LOC + 5)), D.Uniform(t(LOC - 6), t(LOC + 6)), LOC[None] + 1),
    "Laplace": lambda D, t: (D.Laplace(t(LOC), t(SCALE)), D.Laplace(t(LOC + 0.3), 1.2), LOC[None] - 0.2),
    "Exponential": lambda D, t: (D.Exponential(t(PROBS)), D.Exponential(t(PROBS + 0.3)), PROBS[None] * 3),
    "Bernoulli": lambda D, t: (D.Bernoulli(t(PROBS)), D.Bernoulli(logits=t(LOC)), COINS),
    "Geometric": lambda D, t: (D.Geometric(t(PROBS)), D.Geometric(t(PROBS * 0.5)), COINS * 4),
    "Gamma": lambda D, t: (D.Gamma(t(PROBS * 3), t(SCALE)), D.Gamma(t(PROBS * 9), 1.2), PROBS[None] * 3),
    "Chi2": lambda D, t: (D.Chi2(t(PROBS * 6)), D.Chi2(t(PROBS + 2)), PROBS[None] * 3),
    "Beta": lambda D, t: (D.Beta(t(PROBS * 3), t(SCALE)), D.Beta(t(PROBS), 1.2), PROBS[None]),
    "Dirichlet": lambda D, t: (D.Dirichlet(t(CLASSES * 2)), D.Dirichlet(t(CLASSES[:1] + 2)), SHARES),
    "Dirichlet below 1": lambda D, t: (D.Dirichlet(t(CLASSES / 2)), D.Dirichlet(t(CLASSES[::-1] / 3)), SHARES),
    "StudentT": lambda D, t: (D.StudentT(t(PROBS * 4), t(LOC), 1.3), D.StudentT(t(PROBS)), LOC[None] + 0.5),
    "Poisson": lambda D, t: (D.Poisson(t(PROBS * 4)), D.Poisson(t(PROBS)), COINS * 3),
    "NegativeBinomial": lambda D, t: (
        D.NegativeBinomial(t(PROBS * 9), t(PROBS)), D.NegativeBinomial(3.0, logits=t(LOC)), COINS * 4,
    ),
    "Cauchy": lambda D, t: (D.Cauchy(t(LOC), t(SCALE)), D.Cauchy(t(LOC + 0.3), 1.2), LOC[None] - 0.2),
    "HalfCauchy": lambda D, t: (D.HalfCauchy(t(SCALE + 0 * PROBS)), D.HalfCauchy(1.2), PROBS[None]),
    "HalfNormal": lambda D, t: (D.HalfNormal(t(SCALE + 0 * PROBS)), D.HalfNormal(1.2), PROBS[None]),
    "Gumbel": lambda D, t: (D.Gumbel(t(LOC), t(SCALE)), D.Gumbel(t(LOC + 0.3), 1.2), LOC[None] - 0.2),
    "Weibull": lambda D, t: (D.Weibull(t(SCALE), t(PROBS + 1)), D.Weibull(1.0, t(PROBS)), PROBS[None]),
    "Pareto": lambda D, t: (D.Pareto(t(SCALE), t(PROBS * 4)), D.Pareto(t(SCALE - 0.2), t(PROBS)), PROBS[None] + 2),
    "Categorical": lambda D, t: (D.Categorical(t(CLASSES)), D.Categorical(logits=t(CLASSES)), COINS[:, :, 0]),
    "OneHotCategorical": lambda D, t: (
        D.OneHotCategorical(t(CLASSES)), D.OneHotCategorical(logits=t(CLASSES)), np.eye(4)[[[0, 1, 3]]],
    ),
    "MultivariateNormal": lambda D, t: (
        D.MultivariateNormal(t(LOC[:, :1] + np.zeros(3)), t(MATRIX)),
        D.MultivariateNormal(t(np.zeros(3)), precision_matrix=t(MATRIX)), np.stack([LOC.T, LOC.T + 1])[:, :1],
    ),
    "Binomial": lambda D, t: (D.Binomial(7, t(PROBS)), D.Binomial(t(np.full((3, 2), 7.0)), logits=t(LOC)), COINS * 4),
    "Multinomial": lambda D, t: (
        D.Multinomial(7, t(CLASSES)), D.Multinomial(7, logits=t(CLASSES)), np.array([[[1, 2, 0, 4]], [[7, 0, 0, 0]]]),
    ),
    "ContinuousBernoulli": lambda D, t: (
        D.ContinuousBernoulli(t(PROBS)), D.ContinuousBernoulli(logits=t(LOC)), PROBS[None],
    ),
    "ContinuousBernoulli near 1/2": lambda D, t: (
        D.ContinuousBernoulli(t(0.5 + LOC / 3000)), D.ContinuousBernoulli(t(0.5 + 0 * LOC)), PROBS[None],
    ),
    "LowRankMultivariateNormal": lambda D, t: (
        D.LowRankMultivariateNormal(t(LOC[:, :1] + np.zeros(3)), t(ROOT[:, :2]), t(SCALE[0] + np.arange(3.0))),
        D.LowRankMultivariateNormal(t(np.zeros(3)), t(ROOT[:, 1:]), t(np.ones(3))),
        np.stack([LOC.T, LOC.T + 1])[:, :1],
    ),
    "LowRankMultivariateNormal and MultivariateNormal": lambda D, t: (
        D.LowRankMultivariateNormal(t(LOC[:, :1] + np.zeros(3)), t(ROOT[:, :2]), t(SCALE[0] + np.arange(3.0))),
        D.MultivariateNormal(t(np.zeros(3)), t(MATRIX)), np.stack([LOC.T, LOC.T + 1])[:, :1],
    ),
    "Wishart": lambda D, t: (
        D.Wishart(t(6.5), t(MATRIX)), D.Wishart(4.0, precision_matrix=t(MATRIX)),
        np.stack([MATRIX, np.eye(3) * 2]),
    ),
    "Kumaraswamy": lambda D, t: (D.Kumaraswamy(t(PROBS * 3), t(SCALE)), D.Kumaraswamy(1.5, t(SCALE)), PROBS[None]),
    "InverseGamma": lambda D, t: (
        D.InverseGamma(t(PROBS * 3), t(SCALE)), D.InverseGamma(t(PROBS * 9), 1.2), PROBS[None] * 3,
    ),
    "FisherSnedecor": lambda D, t: (
        D.FisherSnedecor(t(PROBS * 6), t(SCALE * 5)), D.FisherSnedecor(3.0, t(SCALE)), PROBS[None] * 3,
    ),
    "LogisticNormal": lambda D, t: (
        D.LogisticNormal(t(LOC), t(SCALE)), D.LogisticNormal(t(LOC + 0.3), 1.2), THREE,
    ),
    "RelaxedBernoulli": lambda D, t: (
        D.RelaxedBernoulli(t(0.7), t(PROBS)), D.RelaxedBernoulli(t(0.7), logits=t(LOC)), PROBS[None],
    ),
    "RelaxedOneHotCategorical": lambda D, t: (
        D.RelaxedOneHotCategorical(t(0.7), t(CLASSES)), D.RelaxedOneHotCategorical(t(0.7), logits=t(CLASSES)), SHARES,
    ),
    "OneHotCategoricalStraightThrough": lambda D, t: (
        D.OneHotCategoricalStraightThrough(t(CLASSES)), D.OneHotCategoricalStraightThrough(logits=t(CLASSES)),
        np.eye(4)[[[0, 1, 3]]],
    ),
    "LKJCholesky": lambda D, t: (
        D.LKJCholesky(3, t(SCALE)), D.LKJCholesky(3, 1.5), np.linalg.cholesky(CORRELATION)[None, None],
    ),
    "Independent": lambda D, t: (
        D.Independent(D.Normal(t(LOC), t(SCALE)), 1), D.Independent(D.Normal(t(LOC), 2.0), 1), LOC[None] + 0.5,
    ),
}  # fmt: skip

WITHOUT_CDF = {"Gamma", "Chi2", "InverseGamma"}
ROUGH = {  # PyTorch's is computed in float32, or that of even odds
    ("Multinomial", "entropy"): 1e-6,
    ("Multinomial", "perplexity"): 1e-6,
    ("ContinuousBernoulli near 1/2", "cdf"): 1e-2,
    ("ContinuousBernoulli near 1/2", "icdf"): 1e-2,
}
QUESTIONS = {
    "log_prob": lambda D, p, q, v: p.log_prob(v),
    "cdf": lambda D, p, q, v: p.cdf(v),
    "icdf": lambda D, p, q, v: p.icdf(v * 0 + 0.3),
    "entropy": lambda D, p, q, v: p.entropy(),
    "perplexity": lambda D, p, q, v: p.perplexity(),
    "mean": lambda D, p, q, v: p.mean,
    "mode": lambda D, p, q, v: p.mode,
    "variance": lambda D, p, q, v: p.variance,
    "stddev": lambda D, p, q, v: p.stddev,
    "divergence": lambda D, p, q, v: D.kl_divergence(p, q),
    "divergence the other way": lambda D, p, q, v: D.kl_divergence(q, p),
    "support": lambda D, p, q, v: p.enumerate_support(),
    "support of one": lambda D, p, q, v: p.enumerate_support(expand=False),
    "expand": lambda D, p, q, v: p.expand((2, *p.batch_shape)).log_prob(v[:1]),
    "shape of samples": lambda D, p, q, v: p.sample((4, 5)) * 0,
    "shape of samples with gradients": lambda D, p, q, v: p.rsample((4, 5)) * 0,
    "flags": lambda D, p, q, v: (p.has_rsample, p.has_enumerate_support, tuple(p.batch_shape), tuple(p.event_shape)),
}


def answers(library, name):
    def t(array):
        return library.tensor(np.asarray(array), dtype=library.float64)

    p, q, values = CASES[name](library.distributions, t)
    for what, ask in QUESTIONS.items():
        try:
            yield what, ask(library.distributions, p, q, t(values))
        except NotImplementedError:
            yield what, None


@pytest.mark.filterwarnings("ignore:Singular sample detected")  # PyTorch's Wishart
@pytest.mark.parametrize("name", CASES)
def test_distributions_give_pytorchs_answers(name):
    for (what, theirs), (_, ours) in zip(answers(torch, name), answers(leafgrad, name), strict=True):
        if what == "cdf" and name in WITHOUT_CDF:
            assert ours is None
        elif (name, what) == ("Kumaraswamy", "mode"):
            assert theirs.isnan().all()  # wherever there is one
        elif isinstance(theirs, torch.Tensor):
            assert isinstance(ours, leafgrad.Tensor), what
            assert (tuple(ours.shape), ours.dtype.name) == (tuple(theirs.shape), str(theirs.dtype)[6:]), what
            rtol = ROUGH.get((name, what), 1e-9)
            np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=rtol, atol=1e-12, err_msg=what)
        else:
            assert ours == theirs, what


KINDS = {
    "Bernoulli": lambda D, a, b: D.Bernoulli(a),
    "Beta": lambda D, a, b: D.Beta(a + 0.5, b),
    "Binomial": lambda D, a, b: D.Binomial(3, a),
    "ContinuousBernoulli": lambda D, a, b: D.ContinuousBernoulli(a),
    "Exponential": lambda D, a, b: D.Exponential(b),
    "Gamma": lambda D, a, b: D.Gamma(a + 1, b),
    "Gumbel": lambda D, a, b: D.Gumbel(a, b),
    "Laplace": lambda D, a, b: D.Laplace(a, b),
    "Normal": lambda D, a, b: D.Normal(a, b),
    "Pareto": lambda D, a, b: D.Pareto(a, b + 0.7),
    "Poisson": lambda D, a, b: D.Poisson(b),
    "Uniform": lambda D, a, b: D.Uniform(a - 0.29, a - 0.29 + b * 0.5),
}


def divergence(library, name, other):
    a, b = (library.tensor(x, dtype=library.float64) for x in ([0.3, 0.8, 0.45], [1.2, 0.7, 2.1]))
    p, q = KINDS[name](library.distributions, a, b), KINDS[other](library.distributions, a.flip(0), b + 0.2)
    try:
        return library.distributions.kl_divergence(p, q).tolist()
    except NotImplementedError:
        return None


@pytest.mark.parametrize("name", KINDS)
def test_divergences_of_all_pairs(name):
    for other in KINDS:
        expected, found = divergence(torch, name, other), divergence(leafgrad, name, other)
        assert (found is None) == (expected is None), other
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=other)


BAD = {
    "scale": lambda t, D: D.Normal(0.0, -1.0),
    "text": lambda t, D: D.Normal("a", 1.0),
    "number": lambda t, D: D.Normal(0.0, 1.0).log_prob(1.0),
    "nan": lambda t, D: D.Normal(0.0, 1.0).log_prob(t(float("nan"))),
    "shapes": lambda t, D: D.Normal(t([0.0, 1.0]), t([1.0, 1.0, 1.0])),
    "value's shape": lambda t, D: D.Normal(t([0.0, 1.0, 2.0]), 1.0).log_prob(t([0.0, 1.0])),
    "sample shape": lambda t, D: D.Normal(0.0, 1.0).sample(2),
    "ends": lambda t, D: D.Uniform(1.0, 0.0),
    "outside": lambda t, D: D.Uniform(0.0, 1.0).cdf(t(2.0)),
    "both": lambda t, D: D.Bernoulli(0.5, 0.5),
    "probability": lambda t, D: D.Bernoulli(2.0),
    "rsample": lambda t, D: D.Bernoulli(0.5).rsample(),
    "icdf": lambda t, D: D.Bernoulli(0.5).icdf(t(0.5)),
    "none": lambda t, D: D.Categorical(),
    "weights": lambda t, D: D.Categorical(t([-1.0, 2.0])),
    "0-d": lambda t, D: D.Categorical(t(1.0)),
    "class": lambda t, D: D.Categorical(t([1.0, 1.0])).log_prob(t(2.0)),
    "no matrix": lambda t, D: D.MultivariateNormal(t([0.0, 0.0])),
    "negative matrix": lambda t, D: D.MultivariateNormal(t([0.0]), t([[-1.0]])),
    "dims": lambda t, D: D.Independent(D.Normal(0.0, 1.0), 1),
    "pair": lambda t, D: D.kl_divergence(D.Bernoulli(0.5), D.Normal(0.0, 1.0)),
    "register": lambda t, D: D.register_kl(3, D.Normal),
    "mean": lambda t, D: D.Distribution(validate_args=False).mean,
}


def outcome(library, case):
    try:
        BAD[case](library.tensor, library.distributions)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("case", BAD)
def test_errors_are_of_pytorchs_types(case):
    expected = outcome(torch, case)
    assert expected is not None
    assert outcome(leafgrad, case) is expected


def test_von_mises_is_pytorchs_to_its_polynomials():
    """PyTorch's Bessel functions are good to 1e-7."""

    def t(array):
        return torch.tensor(np.asarray(array), dtype=torch.float64)

    k, x = np.geomspace(1e-3, 2e3, 40), np.linspace(-3, 3, 7)[:, None]
    theirs, ours = torch.distributions.VonMises(t(0.3), t(k)), leafgrad.distributions.VonMises(0.3, leafgrad.tensor(k))
    np.testing.assert_allclose(ours.log_prob(leafgrad.tensor(x)), theirs.log_prob(t(x)), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.variance, theirs.variance, rtol=1e-4, atol=1e-6)


VALUES = R.normal(size=(2, 6))
CONSTRAINTS = {
    "real": lambda c, t: c.real,
    "real_vector": lambda c, t: c.real_vector,
    "positive": lambda c, t: c.positive,
    "nonnegative": lambda c, t: c.nonnegative,
    "greater_than": lambda c, t: c.greater_than(t(SCALE[:1])),
    "greater_than_eq": lambda c, t: c.greater_than_eq(-2.0),
    "less_than": lambda c, t: c.less_than(t(SCALE[:1])),
    "unit_interval": lambda c, t: c.unit_interval,
    "interval": lambda c, t: c.interval(-1.0, t(SCALE[:1])),
    "half_open_interval": lambda c, t: c.half_open_interval(-1.0, 3.0),
    "simplex": lambda c, t: c.simplex,
    "corr_cholesky": lambda c, t: c.corr_cholesky,
    "lower_cholesky": lambda c, t: c.lower_cholesky,
    "positive_definite": lambda c, t: c.positive_definite,
    "independent": lambda c, t: c.independent(c.positive, 1),
    "cat": lambda c, t: c.cat([c.positive, c.unit_interval], -1, [2, 4]),
    "stack": lambda c, t: c.stack([c.positive, c.less_than(3.0)], 0),
}


def mapped(library, name, registry):
    def t(array):
        return library.tensor(np.asarray(array), dtype=library.float64)

    constraint = CONSTRAINTS[name](library.distributions.constraints, t)
    square = name in ("lower_cholesky", "positive_definite")
    x = t(ROOT if square else VALUES).requires_grad_()
    transform = getattr(library.distributions, registry)(constraint)
    y = transform(x)
    (slope,) = library.autograd.grad((y * y * x.sum()).sum(), x, retain_graph=True)
    yield from (y, slope, transform.inv(y), constraint.check(y))
    yield tuple(transform.forward_shape(x.shape)), tuple(transform.inverse_shape(y.shape)), transform.bijective
    if transform.bijective:
        yield transform.log_abs_det_jacobian(x, y)
        yield library.autograd.grad(transform.log_abs_det_jacobian(x, transform(x)).sum() + x.sum(), x)[0]


@pytest.mark.parametrize(
    ("name", "registry"),
    [(name, "transform_to") for name in CONSTRAINTS]
    + [(name, "biject_to") for name in CONSTRAINTS if name not in ("lower_cholesky", "positive_definite")],
)
def test_transforms_to_constraints_are_pytorchs(name, registry):
    for theirs, ours in zip(mapped(torch, name, registry), mapped(leafgrad, name, registry), strict=True):
        if isinstance(theirs, torch.Tensor):
            np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-8, atol=1e-11)
        else:
            assert ours == theirs

"""What every distribution has: parameters that follow from those that were given."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import distributions as d

MATRIX = np.array([[2.0, 0.3], [0.3, 1.0]])
FOLLOWING = {
    "Bernoulli": (lambda z: d.Bernoulli(logits=z), [0.5, -1.0], lambda p: p.entropy()),
    "Binomial": (lambda z: d.Binomial(4, logits=z), [0.5, -1.0], lambda p: p.mean),
    "Categorical": (lambda z: d.Categorical(logits=z), [0.5, -1.0, 2.0], lambda p: p.entropy()),
    "NegativeBinomial": (lambda z: d.NegativeBinomial(3.0, z), [0.3, 0.6], lambda p: p.log_prob(0 * p.probs)),
    "covariance": (lambda z: d.MultivariateNormal(z[0], z @ z.T), MATRIX, lambda p: p.precision_matrix),
    "precision": (lambda z: d.MultivariateNormal(z[0], None, z @ z.T), MATRIX, lambda p: p.covariance_matrix),
}


@pytest.mark.parametrize("mode", [leafgrad.no_grad, leafgrad.inference_mode])
@pytest.mark.parametrize("name", FOLLOWING)
def test_parameters_that_follow_keep_their_history_wherever_they_were_first_asked_for(name, mode):
    make, at, asked = FOLLOWING[name]
    z = leafgrad.tensor(np.asarray(at), requires_grad=True)
    expected = leafgrad.autograd.grad(asked(make(z)).sum(), z)[0]
    assert expected.any()
    p = make(z)
    with mode():
        p.sample()
        asked(p)
    assert leafgrad.allclose(leafgrad.autograd.grad(asked(p).sum(), z)[0], expected)


@pytest.mark.parametrize("family", [d.Bernoulli, d.Geometric, d.ContinuousBernoulli, d.NegativeBinomial, d.Categorical])
def test_distributions_remember_which_parameter_was_given(family):
    logits = leafgrad.tensor([-45.8, 40.0], dtype=leafgrad.float64)
    before = (3.0,) if family is d.NegativeBinomial else ()
    p = family(*before, logits=logits)
    assert p.probs.shape == p.param_shape == (2,)
    again = p.expand((2,) if p.batch_shape else ())
    assert again.logits.equal(p.logits)


@pytest.mark.parametrize("compiler", [lambda step: step, leafgrad.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    "density",
    [
        lambda v: d.Normal(2.0, v).log_prob(v * 2),
        lambda v: d.Beta(v, v + 1).log_prob(v / 3),
        lambda v: d.Categorical(v).log_prob(leafgrad.tensor(1)),
        lambda v: d.MultivariateNormal(v, leafgrad.eye(3) * v[0]).log_prob(v * 2),
        lambda v: d.kl_divergence(d.Gamma(v, 1.0), d.Gamma(2.0, v)),
    ],
    ids=["Normal", "Beta", "Categorical", "MultivariateNormal", "Gamma"],
)
def test_arguments_are_checked_of_each_sample_of_a_batch(density, compiler):
    x = leafgrad.tensor([[0.1, 0.5, 0.9], [0.4, 0.3, 0.7]])
    batched = compiler(leafgrad.vmap(density))
    assert leafgrad.allclose(batched(x), leafgrad.stack([density(row) for row in x]))
    with pytest.raises(ValueError, match=r"Expected (parameter|value argument)"):
        batched(x * leafgrad.tensor([-1.0, 1.0, 1.0]))

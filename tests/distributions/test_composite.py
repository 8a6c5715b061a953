"""Transforms, what they make of distributions, and mixtures, against closed forms and numerical integrals."""

from __future__ import annotations

import math

import pytest

import leafgrad as lg
from leafgrad import distributions as D
from leafgrad.autograd import grad

x = lg.linspace(0.1, 2.0, 7, dtype=lg.float64)
TRANSFORMS = [
    D.ExpTransform(), D.SigmoidTransform(), D.SoftplusTransform(), D.TanhTransform(), D.AffineTransform(1.0, -2.0),
    D.AffineTransform(1.0, lg.full((7,), 2.0, dtype=lg.float64)), D.PowerTransform(3.0), D.PowerTransform(-0.5),
    D.ComposeTransform([D.AffineTransform(0.0, 0.5), D.TanhTransform(), D.ExpTransform()]), D.ExpTransform().inv,
    D.identity_transform,
]  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS, ids=repr)
def test_transforms_invert_and_know_their_slope(transform):
    at = x.clone().requires_grad_()
    y = transform(at)
    (slope,) = grad(y.sum(), at)
    assert lg.allclose(transform.log_abs_det_jacobian(at, y).exp(), slope.abs())
    assert lg.allclose(transform.inv(y), at)
    assert lg.allclose(transform.inv.log_abs_det_jacobian(y, at).exp(), 1 / slope.abs())
    assert transform.inv.inv is transform or repr(transform).endswith(".inv")
    assert transform.domain.check(at).all()
    assert transform.codomain.check(y).all()
    assert ((slope > 0) == (lg.as_tensor(transform.sign) > 0)).all()


@pytest.mark.parametrize("dtype", [lg.float32, lg.float64])
@pytest.mark.parametrize("transform", [D.SigmoidTransform(), D.StickBreakingTransform()])
def test_shares_of_far_numbers_are_not_0_and_have_a_density(transform, dtype):
    far = lg.tensor([[-1000.0], [-100.0], [0.0], [40.0], [1000.0]], dtype=dtype)
    y = transform(far)
    assert (y > 0).all()
    assert transform.log_abs_det_jacobian(far, y).isfinite().all()
    assert transform.inv(y).isfinite().all()
    assert D.SigmoidTransform().inv(lg.tensor([0.0, 1.0], dtype=dtype)).isfinite().all()


def test_samples_of_relaxed_trials_have_a_density():
    lg.manual_seed(0)
    trials = D.RelaxedBernoulli(lg.tensor(0.1), logits=lg.zeros(2000))
    assert trials.log_prob(trials.rsample()).isfinite().all()


def test_a_cache_keeps_the_last_pair():
    tanh = D.TanhTransform(cache_size=1)
    far = lg.tensor([30.0])
    y = tanh(far)
    assert tanh.inv(y) is far
    assert tanh(far) is y
    assert D.TanhTransform().inv(y).isinf().all()
    with pytest.raises(ValueError, match="cache_size must be 0 or 1, got 2"):
        D.ExpTransform(cache_size=2)


def test_transformed_normal_is_the_log_normal():
    loc, scale = lg.tensor(0.3, requires_grad=True), lg.tensor(0.7)
    made, known = D.TransformedDistribution(D.Normal(loc, scale), D.ExpTransform()), D.LogNormal(loc, scale)
    v = lg.tensor([0.2, 1.0, 3.0])
    assert lg.allclose(made.log_prob(v), known.log_prob(v))
    assert lg.allclose(grad(made.log_prob(v).sum(), loc)[0], grad(known.log_prob(v).sum(), loc)[0])
    lg.manual_seed(0)
    drawn = made.rsample((3,))
    lg.manual_seed(0)
    assert lg.allclose(drawn, known.rsample((3,)))
    assert drawn.requires_grad
    assert not made.sample().requires_grad
    with pytest.raises(ValueError, match="within the support"):
        made.log_prob(lg.tensor(-1.0))


def test_transformed_shapes_and_distribution_functions():
    base = D.Normal(lg.zeros(2), 1.0)
    made = D.TransformedDistribution(base, [D.AffineTransform(lg.ones(3, 1), -2.0)])
    assert (made.batch_shape, made.event_shape, made.sample((4,)).shape) == ((3, 2), (), (4, 3, 2))
    assert lg.allclose(made.cdf(made.icdf(lg.full((3, 2), 0.2))), lg.tensor(0.2))
    assert lg.allclose(made.cdf(lg.tensor(2.0)), D.Normal(1.0, 2.0).cdf(lg.tensor(2.0)))
    assert made.expand((5, 3, 2)).log_prob(lg.zeros(5, 3, 2)).shape == (5, 3, 2)
    joint = D.TransformedDistribution(D.Independent(base, 1), [D.TanhTransform()])
    assert joint.log_prob(lg.tensor([0.1, 0.2])).shape == ()


def test_mixtures_integrate_to_one_and_have_the_moments_of_their_density():
    weights, means, widths = lg.tensor([0.2, 0.8]), lg.tensor([-1.0, 2.0]), lg.tensor([0.5, 1.0])
    mixture = D.MixtureSameFamily(D.Categorical(weights), D.Normal(means, widths))
    at = lg.linspace(-12, 12, 4001)
    density = mixture.log_prob(at).exp()
    assert lg.trapezoid(density, at).item() == pytest.approx(1, abs=1e-4)
    mean = lg.trapezoid(density * at, at)
    assert mixture.mean.item() == pytest.approx(mean.item(), abs=1e-3)
    assert mixture.variance.item() == pytest.approx(lg.trapezoid(density * (at - mean) ** 2, at).item(), abs=1e-2)
    assert mixture.cdf(lg.tensor(0.5)).item() == pytest.approx(
        lg.trapezoid(density[at <= 0.5], at[at <= 0.5]).item(), abs=1e-2
    )
    lg.manual_seed(0)
    drawn = mixture.sample((20000,))
    assert drawn.mean().item() == pytest.approx(mean.item(), abs=0.05)
    assert drawn.std().item() == pytest.approx(math.sqrt(mixture.variance.item()), abs=0.05)


def test_mixtures_of_events_and_errors():
    joint = D.MixtureSameFamily(
        D.Categorical(lg.ones(3, 4)), D.Independent(D.Normal(lg.zeros(3, 4, 2), lg.ones(3, 4, 2)), 1)
    )
    assert (joint.batch_shape, joint.event_shape, joint.sample((5,)).shape) == ((3,), (2,), (5, 3, 2))
    assert lg.allclose(joint.log_prob(lg.zeros(3, 2)), lg.tensor(-math.log(2 * math.pi)))
    assert joint.mean.shape == joint.variance.shape == (3, 2)
    assert joint.expand((6, 3)).sample().shape == (6, 3, 2)
    with pytest.raises(ValueError, match="instance of Categorical, got Normal"):
        D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(lg.zeros(2), 1.0))
    with pytest.raises(ValueError, match="2 components"):
        D.MixtureSameFamily(D.Categorical(lg.ones(2)), D.Normal(lg.zeros(3), 1.0))


def test_distributions_show_the_name_of_their_own_class():
    normal = D.Normal(lg.zeros(2), lg.ones(2))

    class TanhNormal(D.TransformedDistribution):
        pass

    class Rows(D.Independent):
        pass

    assert repr(TanhNormal(normal, [])).startswith("TanhNormal(Normal(loc: ")
    assert repr(Rows(normal, 1)).startswith("Rows(Normal(loc: ")


def test_mixtures_show_their_parts_in_lines(t):
    d = t.distributions
    mixture = d.MixtureSameFamily(d.Categorical(t.ones(2)), d.Normal(t.zeros(2), t.ones(2)))
    size = f"{t.__name__}.Size([2])"
    assert repr(mixture) == (
        f"MixtureSameFamily(\n  Categorical(probs: {size}, logits: {size}),\n  Normal(loc: {size}, scale: {size}))"
    )

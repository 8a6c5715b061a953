"""Schemes of weights and rules for points, against their formulas."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.points import sizes
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.weights.scheme import reweigh

DOMAIN = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)


def heat():
    u = pinn.Field("u", DOMAIN, pinn.MLP(5, 1))
    inside = pinn.Interior(lambda u: u.t - u.xx, n=64)
    soft = [pinn.Dirichlet(0, n=16), pinn.Initial(lambda x: lg.sin(math.pi * x), n=16, weight=5.0)]
    return pinn.Problem(u, [inside, *soft])


@pytest.fixture
def trainee():
    return Trainee(heat(), 0, lg.float64, "cpu")


def squares_of(trainee):
    return trainee.objective.terms(trainee.flat, trainee.batches, trainee.weights)[1]


def test_causal_weights_fall_with_time(trainee):
    squares = squares_of(trainee)
    reweigh([pinn.Causal(epsilon=0.3, intervals=4)], trainee, squares)
    t, r2 = trainee.batches[0]["points"][:, 1].numpy(), squares[0].numpy()
    at = (4 * t).astype(int)
    losses = [r2[at == i].mean() for i in range(4)]
    expected = [math.exp(-0.3 * sum(losses[:i])) for i in at]
    assert np.allclose(trainee.weights[0].numpy(), expected)
    assert all((w.numpy() == 1).all() for w in trainee.weights[1:])


def test_an_automatic_epsilon_starts_at_the_least_weight_and_grows(trainee):
    causal = pinn.Causal(least=0.05, growth=2)
    reweigh([causal], trainee, squares_of(trainee))
    assert np.isclose(trainee.weights[0].numpy().min(), 0.05)
    first = trainee.notes["Causal 0"]
    for times in (10, 100, 100):
        reweigh([causal], trainee, [square * 1e-12 for square in squares_of(trainee)])
        assert np.isclose(trainee.notes["Causal 0"], times * first)


def test_gradient_norms_are_balanced(trainee):
    scheme = pinn.GradNorm(every=3, mean=0.5)
    norms = np.array(trainee.objective.norms(trainee.flat, trainee.batches, trainee.weights).tolist())
    reweigh([scheme], trainee, squares_of(trainee))
    first = norms.sum() / norms
    assert np.allclose([float(w[0]) for w in trainee.weights], first)
    trainee.put(trainee.flat * 1.5)
    norms = np.array(trainee.objective.norms(trainee.flat, trainee.batches, trainee.ones()).tolist())
    for _ in range(2):
        reweigh([scheme], trainee, squares_of(trainee))
        assert np.allclose([float(w[0]) for w in trainee.weights], first)
    reweigh([scheme], trainee, squares_of(trainee))
    assert np.allclose([float(w[0]) for w in trainee.weights], 0.5 * first + 0.5 * norms.sum() / norms)


def test_kernel_traces_are_balanced(trainee):
    traces = np.array(trainee.objective.traces(trainee.flat, trainee.batches, trainee.weights).tolist())
    reweigh([pinn.NTK()], trainee, squares_of(trainee))
    assert np.allclose([float(w[-1]) for w in trainee.weights], traces.sum() / traces)


def test_self_adaptive_weights_ascend(trainee):
    squares = squares_of(trainee)
    scheme = pinn.SelfAdaptive(lr=0.1, most=3.0)
    m = np.ones(64)
    share = squares[0].numpy() / squares[0].numpy().mean()
    for _ in range(3):
        reweigh([scheme], trainee, squares)
        m = np.minimum(m * (1 + 0.2 * share), 3.0)
        assert np.allclose(trainee.weights[0].numpy(), m**2)
    assert m.max() == 3.0


def test_residual_based_attention(trainee):
    squares = squares_of(trainee)
    scheme = pinn.RBA(lr=0.2, decay=0.9)
    m, size = np.ones(64), np.sqrt(squares[0].numpy())
    for _ in range(3):
        reweigh([scheme], trainee, squares)
        m = 0.9 * m + 0.2 * size / size.max()
        assert np.allclose(trainee.weights[0].numpy(), m**2)
    trainee.take(trainee.batches)  # other points: their multipliers begin anew
    reweigh([scheme], trainee, squares)
    assert np.allclose(trainee.weights[0].numpy(), (0.9 + 0.2 * size / size.max()) ** 2)


def test_schemes_multiply(trainee):
    squares = squares_of(trainee)
    found = []
    for schemes in ([pinn.Causal(epsilon=0.5)], [pinn.RBA()], [pinn.Causal(epsilon=0.5), pinn.RBA()]):
        trainee.take(trainee.batches)
        reweigh(schemes, trainee, squares)
        found.append(trainee.weights[0].numpy().copy())
    assert np.allclose(found[0] * found[1], found[2])


@pytest.mark.parametrize("scheme", [pinn.SelfAdaptive(), pinn.RBA()])
def test_a_residual_of_zero_keeps_weights_finite(scheme, trainee):
    reweigh([scheme], trainee, [square * 0 for square in squares_of(trainee)])
    assert all(bool(w.isfinite().all()) for w in trainee.weights)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [pinn.Adam, pinn.LBFGS, pinn.SSBroyden, pinn.LevenbergMarquardt])
@pytest.mark.parametrize("scheme", [pinn.Causal(), pinn.GradNorm(), pinn.RBA()], ids=lambda s: s.name)
def test_weights_work_with_stages(stage, scheme):
    options = {} if stage in (pinn.Adam, pinn.LevenbergMarquardt) else {"hold": 10}
    sol = heat().solve(stage(12, weights=scheme, **options))
    assert np.isfinite(sol.run.history[-1]["loss"])
    assert sol.run.reasons[0]


def test_rad_prefers_large_residuals():
    rad, rng = pinn.RAD(k=1.0, c=0.0), np.random.default_rng(0)
    size = np.where(np.arange(1000) < 100, 9.0, 1.0)
    chosen = np.concatenate([rad.choose(size, 50, rng) for _ in range(200)])
    assert abs((chosen < 100).mean() - 0.5) < 0.04  # 100 * 9 of 100 * 9 + 900 * 1
    assert len(set(rad.choose(np.r_[1.0, np.zeros(9)], 5, rng))) == 5
    assert len(rad.choose(np.full(10, np.nan), 5, rng)) == 5


def test_r3_keeps_what_is_above_the_mean(trainee):
    old = trainee.batches[0]["points"].numpy().copy()
    size = sizes(trainee, 0, {"points": old})
    pinn.R3().renew(trainee, 0, 0)
    new = trainee.batches[0]["points"].numpy()
    same = (old == new).all(1)
    assert np.array_equal(same, size > size.mean())
    assert len(new) == 64


@pytest.mark.every(3)
@pytest.mark.parametrize("rule", [pinn.Fresh(10), pinn.R3(10), pinn.RAD(every=10)])
@pytest.mark.parametrize(
    "stage", [pinn.Adam(35), pinn.LBFGS(35, block=7), pinn.SSBroyden(35)], ids=lambda s: type(s).__name__
)
def test_points_come_anew_on_time(stage, rule, monkeypatch):
    from dataclasses import replace

    steps = []
    renew = type(rule).renew
    monkeypatch.setattr(type(rule), "renew", lambda self, t, n, s: (steps.append(s), renew(self, t, n, s))[1])
    heat().solve(replace(stage, points=rule))
    assert steps[0] == 0
    assert all(10 <= b - a < 17 for a, b in pairwise(steps))
    assert len(steps) >= 3

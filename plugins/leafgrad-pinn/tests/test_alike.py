"""Conditions with the same equation are one batch in programs, and none of them is another's for that."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.trainee import Trainee

SQUARE = pinn.Box(x=(0, 1), y=(0, 2))


def poisson(u, x):
    return u.lap + x


def rate(x, y):
    return x * y


def conditions():
    spots = {"x": np.array([0.2, 0.5]), "y": np.array([1.0, 0.5])}
    return [
        pinn.Interior(poisson, n=12, weight=3),
        pinn.Interior(poisson, n=5, of=pinn.Disk(0.2, x=0.5, y=1), name="disk"),
        pinn.Interior(lambda u: u.x * u.y, n=4, name="another"),
        pinn.Interior(poisson, points=spots, weights=np.array([2.0, 0.5]), name="spots"),
        pinn.Interior(poisson, n=6, loss=pinn.Huber(0.1), name="robust"),
        pinn.Dirichlet(0, "x_min", n=5, weight=10),
        pinn.Dirichlet(0.0, "x_max", n=7),
        pinn.Dirichlet(1, "y_min", n=3),
        pinn.Neumann(rate, "y_max", n=3),
        pinn.Neumann(rate, "x_max", n=4),
        pinn.Robin(rate, "y_max", a=1, b=2, n=3),
        pinn.Robin(rate, "x_max", a=1, b=3, n=3),
    ]


@pytest.fixture
def trainee():
    u = pinn.Field("u", SQUARE, net=pinn.MLP(4, 1))
    return Trainee(pinn.Problem(u, conditions()), 0, lg.float64, "cpu")


def test_those_of_one_function_or_number_are_together(trainee):
    assert trainee.objective.equations.alike == [[0, 1], [2], [3], [4], [5, 6], [7], [8, 9], [10], [11]]


def test_terms_and_squares_are_those_of_each_alone(trainee):
    rng = np.random.default_rng(0)
    trainee.weights = [lg.tensor(rng.uniform(0.5, 2, len(weight))) for weight in trainee.weights]
    gradient, terms, squares = trainee.objective.gradient(trainee.flat, trainee.batches, trainee.weights)
    total = 0.0
    for index, (batch, weight) in enumerate(zip(trainee.batches, trainee.weights, strict=True)):
        alone = trainee.system(index, batch).square().sum(1)
        term = trainee.problem.conditions[index].weight * (weight * alone).mean()
        assert np.allclose(squares[index].numpy(), alone.detach().numpy(), rtol=1e-12)
        assert terms[index].item() == pytest.approx(term.item(), rel=1e-12)
        total = total + term
    slopes = lg.autograd.grad(total, list(trainee.system.parameters()))
    assert np.allclose(gradient.numpy(), lg.cat([s.reshape(-1) for s in slopes]).numpy(), rtol=1e-10, atol=1e-14)


@pytest.mark.slow
def test_other_points_and_weights_are_seen_at_once(trainee):
    def loss():
        return float(trainee.objective.terms(trainee.flat, trainee.batches, trainee.weights)[0].sum())

    first = loss()
    trainee.weights[6] = trainee.weights[6] * 2
    second = loss()
    assert second != first
    with lg.no_grad():
        trainee.batches[6]["points"].mul_(0.5)  # in place
    third = loss()
    assert third != second
    trainee.take([{name: t.clone() for name, t in batch.items()} for batch in trainee.batches])
    assert loss() not in (second, third)
    assert loss() == pytest.approx(third - float(trainee.objective.terms(
        trainee.flat, trainee.batches, trainee.weights)[0][6]), rel=1e-12)  # fmt: skip


@pytest.mark.slow
def test_numbers_of_points_may_change_where_conditions_are_together(trainee):
    trainee.objective.terms(trainee.flat, trainee.batches, trainee.weights)
    batches = [{name: t[: 2 + index % 3] for name, t in batch.items()} for index, batch in enumerate(trainee.batches)]
    trainee.take(batches)
    _, squares = trainee.objective.terms(trainee.flat, trainee.batches, trainee.weights)
    for index, batch in enumerate(batches):
        assert np.allclose(squares[index].numpy(), trainee.system(index, batch).square().sum(1).detach().numpy())


def test_units_of_each_are_kept():
    def heat(u):
        return u.xx - 2

    rod = pinn.Interval("x", 0, 100)  # metres: residuals are divided by sizes that differ between the two
    u = pinn.Field("u", rod, net=pinn.MLP(4, 1), scale=1000)
    part = pinn.Interval("x", 0, 1)
    problem = pinn.Problem(u, [pinn.Interior(heat, n=8), pinn.Interior(heat, n=8, of=part, name="part"),
                               pinn.Dirichlet(0)])  # fmt: skip
    trainee = Trainee(problem, 0, lg.float64, "cpu")
    assert trainee.objective.equations.alike[0] == [0, 1]
    _, squares = trainee.objective.terms(trainee.flat, trainee.batches, trainee.weights)
    for index in (0, 1):
        alone = trainee.system(index, trainee.batches[index]).square().sum(1)
        assert np.allclose(squares[index].numpy(), alone.detach().numpy(), rtol=1e-12)

"""What residuals leave undetermined, beside posteriors that are known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn

LINE = pinn.Interval("x", 0, 1)
AT = np.array([0, 0.25, 0.5, 1])


def regression(functions, x, y, at):
    """Least squares of some functions: the fit at points, and its standard deviation."""
    columns, there = (np.stack([f(z) for f in functions], 1) for z in (x, at))
    fit, (left,), _, _ = np.linalg.lstsq(columns, y, rcond=None)
    inverse = np.linalg.inv(columns.T @ columns) * left / (len(x) - len(functions))
    return there @ fit, np.sqrt(np.einsum("ij,jk,ik->i", there, inverse, there))


def straight(seed, steps, count=50):
    """A straight line, u'' = 0, through noisy data."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, count)
    y = 1 + 2 * x + 0.1 * rng.standard_normal(count)
    u = pinn.Field("u", LINE, net=pinn.MLP(4, 1))
    conditions = [pinn.Interior(lambda u: u.xx, n=30, sampler="grid"), pinn.Data({"x": x}, {"u": y})]
    solution = pinn.Problem(u, conditions).solve(pinn.LevenbergMarquardt(steps))
    return solution, *regression([np.ones_like, lambda x: x], x, y, AT)


def test_a_straight_line_has_the_deviation_of_linear_regression(tmp_path):
    solution, fit, expected = straight(0, 30)
    assert np.allclose(solution(AT), fit, atol=0.1 * expected.min())
    assert np.allclose(solution.deviation(AT, by="residuals"), expected, rtol=0.02)
    solution.save(tmp_path / "u.safetensors")
    with pytest.raises(ValueError, match="expected a solution as it was solved"):
        pinn.Solution.load(tmp_path / "u.safetensors").deviation(AT, by="residuals")
    with pytest.raises(ValueError, match="by: expected 'seeds' or 'residuals', got 'laplace'"):
        solution.deviation(AT, by="laplace")
    with pytest.raises(ValueError, match="expected points inside"):
        solution.deviation(2.0, by="residuals")


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_say():
    covered = []
    for seed in range(30):
        solution, _, _ = straight(seed, 30)
        covered.append(np.abs(solution(AT) - (1 + 2 * AT)) < 1.96 * solution.deviation(AT, by="residuals"))
    assert 0.88 < np.mean(covered) < 0.995


@pytest.mark.slow
def test_a_field_and_the_unknown_in_its_equation():
    rng = np.random.default_rng(1)
    x, t = rng.uniform(0, 1, 60), rng.uniform(0, 0.3, 60)
    data = np.exp(-0.7 * np.pi**2 * t) * np.sin(np.pi * x) + 0.02 * rng.standard_normal(60)
    k = pinn.Unknown("k", 0.5)
    u = pinn.Field("u", LINE * pinn.Time("t", 0, 0.3), net=pinn.MLP(10, 1), boundary=pinn.Hard(0),
                   initial=pinn.Hard(lambda x: lg.sin(math.pi * x)))  # fmt: skip
    conditions = [pinn.Interior(lambda u: u.t - k * u.xx, n=150), pinn.Data({"x": x, "t": t}, {"u": data})]
    solution = pinn.Problem(u, conditions, k).solve(pinn.LevenbergMarquardt(60))
    found = solution.run.unknowns["k"]

    def exact(x, t):
        return np.exp(-found * np.pi**2 * t) * np.sin(np.pi * x)

    slopes = np.pi**2 * t * exact(x, t)  # by k
    expected = np.sqrt(np.square(data - exact(x, t)).sum() / 59 / (slopes @ slopes))
    assert solution.run.deviations["k"] == pytest.approx(expected, rel=0.05)
    there = np.array([0.1, 0.5, 0.9]), np.array([0.05, 0.15, 0.3])
    by_k = np.pi**2 * there[1] * exact(*there) * expected
    assert np.allclose(solution.deviation(*there, by="residuals"), by_k, rtol=0.15)


def test_as_many_data_as_they_determine_say_nothing_of_their_errors():
    u = pinn.Field("u", LINE, net=pinn.MLP(4, 1))
    given = pinn.Data({"x": np.array([0.3, 0.6])}, {"u": np.array([0.1, 0.4])})
    solution = pinn.Problem(u, [pinn.Interior(lambda u: u.xx, n=30), given]).solve(pinn.LevenbergMarquardt(13))
    with pytest.raises(ValueError, match="expected residuals that say how large errors are"):
        solution.deviation(AT, by="residuals")


def test_complex_fields_and_parts():
    half = pinn.Interval("x", 0, 0.6)
    u = pinn.Field("u", LINE, net=pinn.MLP(3, 1), part=half)
    solution = pinn.Problem(u, [pinn.Interior(lambda u: u - 1, n=30, of=half)]).solve(pinn.LevenbergMarquardt(2))
    found = solution.deviation(np.array([0.3, 0.9]), by="residuals")
    assert found[0] > 0
    assert np.isnan(found[1])
    wave = pinn.ComplexField("w", LINE, net=pinn.MLP(3, 1))
    both = pinn.Problem(wave, [pinn.Interior(lambda w, x: w - 1j * w.x, n=30)]).solve(pinn.LevenbergMarquardt(2))
    assert both.deviation(0.5, by="residuals") > 0


def test_a_soft_initial_value_leaves_errors_that_of_a_hard_one():
    t = np.linspace(0, 2, 40)
    data = pinn.Data({"t": t}, {"v": np.exp(-1.5 * t) + 0.02 * np.random.default_rng(0).normal(size=40)})
    deviations = []
    for hard, soft in ((pinn.Hard(1), []), (None, [pinn.Initial(1)])):
        k = pinn.Unknown("k", 1.0, positive=True)
        v = pinn.Field("v", pinn.Time("t", 0, 2), net=pinn.MLP(8, 1), initial=hard)
        law = pinn.Interior(lambda v, k=k: v.t + k * v, n=60, weight=100)
        sol = pinn.Problem(v, [law, data, *soft], unknowns=k).solve(pinn.LevenbergMarquardt(19))
        deviations.append([sol.run.deviations["k"], *sol.deviation([0.5, 1.5], by="residuals")])
    assert np.allclose(*deviations, rtol=0.05)


def test_data_that_are_met_exactly_say_nothing_of_their_errors():
    u = pinn.Field("u", LINE, net=pinn.MLP(4, 1))
    conditions = [pinn.Interior(lambda u: u.xx, n=30), pinn.Data({"x": [0.2, 0.8]}, {"u": [1, 2]})]
    sol = pinn.Problem(u, conditions).solve(pinn.LevenbergMarquardt(6))
    with pytest.raises(ValueError, match="expected residuals that say how large errors are"):
        sol.deviation(0.5, by="residuals")


def test_deviations_are_the_same_without_gradients():
    u = pinn.Field("u", LINE, net=pinn.MLP(3, 1), boundary=pinn.Hard(lambda x: pinn.d(x**3, x)))
    sol = pinn.Problem(u, pinn.Interior(lambda u: u.xx - 1, n=20)).solve(pinn.Adam(1))
    expected = sol.deviation(0.3, by="residuals")
    with lg.no_grad():
        assert sol.deviation(0.3, by="residuals") == expected

"""Estimates of errors without a reference, beside the errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn import estimate, linearised

X = pinn.Interval("x", 0, 1)


def close(sol, factor=1.5):
    """Whether each field's estimate is near its error."""
    assert sol.errors.estimated, sol.run.unestimated
    for name, (error,) in sol.errors.l2.items():
        assert error / factor < sol.errors.estimated[name] < factor * error


@pytest.mark.parametrize("hard", [False, True])
def test_a_nonlinear_equation(hard):
    """u'' = u^3 + f, u = exp(x)."""
    u = pinn.Field("u", X, pinn.MLP(6, 1), boundary=pinn.Hard(lambda x: 1 + (math.e - 1) * x) if hard else None)
    equation = pinn.Interior(lambda u, x: u.xx - u**3 - lg.exp(x) + lg.exp(3 * x), n=20)
    conditions = [equation] if hard else [equation, pinn.Dirichlet(lambda x: lg.exp(x), n=2)]
    truth = pinn.references.exact(X, u=lambda x: np.exp(x))
    close(pinn.Problem(u, conditions).solve(pinn.GaussNewton(8), reference=truth))


@pytest.mark.every(2)
@pytest.mark.parametrize("soft", [False, True])
def test_windows_hand_errors_on(soft):
    domain = pinn.Time("t", 0, 4)
    u = pinn.Field("u", domain, pinn.MLP(6, 1), initial=None if soft else pinn.Hard(1, rate=0))
    conditions = [pinn.Interior(lambda u: u.tt + u, n=20)] + [pinn.Initial(1, rate=0)] * soft
    truth = pinn.references.exact(domain, u=lambda t: np.cos(t))
    close(pinn.Problem(u, conditions).solve(pinn.GaussNewton(5), windows=2, reference=truth))


@pytest.mark.slow
def test_derivatives_of_expressions_and_periodic_coordinates():
    """(u^2)_x + u_t + f = 0, u = exp(-t) (2 + sin x), on a ring."""
    ring = pinn.Interval("x", 0, 2 * math.pi, periodic=True) * pinn.Time("t", 0, 1)

    def equation(u, x, t):
        s, e = lg.sin(x), lg.exp(-t)
        return pinn.d(u * u, x) + u.t + e * (2 + s) - 2 * e * e * (2 + s) * lg.cos(x)

    u = pinn.Field("u", ring, pinn.MLP(8, 1, embed=pinn.Periodic(x=1)), initial=pinn.Hard(lambda x: 2 + lg.sin(x)))
    truth = pinn.references.exact(ring, u=lambda x, t: np.exp(-t) * (2 + np.sin(x)))
    close(pinn.Problem(u, pinn.Interior(equation, n=100)).solve(pinn.GaussNewton(8), reference=truth))


def test_fields_that_are_derivatives_and_unknowns():
    """s' = v, v' = -k s from data of v."""
    domain, t = pinn.Time("t", 0, 3), np.linspace(0, 3, 30)
    s = pinn.Field("s", domain, pinn.MLP(6, 1))
    v = pinn.Derivative("v", s, "t")
    k = pinn.Unknown("k", 1.5)
    conditions = [pinn.Interior(lambda s, v: v.t + k * s, n=30), pinn.Data({"t": t}, {"v": 2 * np.cos(2 * t)})]
    truth = pinn.references.exact(domain, s=lambda t: np.sin(2 * t), v=lambda t: 2 * np.cos(2 * t))
    close(pinn.Problem([s, v], conditions, k).solve(pinn.LevenbergMarquardt(8), reference=truth), 5)


@pytest.mark.parametrize("amplitude", [1e-6, 1e6])
def test_fields_that_are_derivatives_in_other_units(amplitude):
    """p'' = -A pi^2 sin(pi x): v = p' is as large as the terms of p, and so is what is wrong with it."""
    p = pinn.Field("p", X, pinn.MLP(6, 1))
    v = pinn.Derivative("v", p, "x")
    load = pinn.Interior(lambda p, x: p.xx + amplitude * math.pi**2 * lg.sin(math.pi * x), n=20)
    truth = pinn.references.exact(X, v=lambda x: amplitude * math.pi * np.cos(math.pi * x))
    problem = pinn.Problem([p, v], [load, pinn.Dirichlet(0, field="p")])
    close(problem.solve(pinn.LevenbergMarquardt(6), reference=truth), 1.2)


def test_equations_that_have_changed_since_have_no_estimate():
    x, around, sols = np.linspace(0, 1, 101), {"k": 0}, []
    for k in (1, 2):
        around["k"] = k
        for equation in (lambda u: u.xx - 2 * around["k"], lambda u, k=k: u.xx - 2 * k):
            conditions = [pinn.Interior(equation, n=20), pinn.Dirichlet(lambda x, k=k: k * x * x)]
            problem = pinn.Problem(pinn.Field("u", X, pinn.MLP(8, 1)), conditions)
            sols.append((k, problem.solve(pinn.LevenbergMarquardt(10))))
    (_, changed), *same = sols
    assert changed.errors.estimated == {}
    assert "no estimate: interior is another equation by now than the one that was solved" in str(changed.errors)
    with pytest.raises(ValueError, match=r"deviation: interior is another equation by now .* lambda u, k=k: ..."):
        changed.deviation(0.5, by="residuals")
    for k, sol in same:
        error = np.linalg.norm(sol(x) - k * x * x) / np.linalg.norm(k * x * x)
        assert 0.3 < sol.errors.estimated["u"] / error < 3


def test_residuals_change_with_unknowns_also_without_grad_mode():
    """-a u'' = 1, u = x (1 - x) / 4, a = 2: the residual changes with a by u'' = -1/2."""
    x, a = np.linspace(0, 1, 20), pinn.Unknown("a", 1)
    u = pinn.Field("u", X, pinn.MLP(8, 1))
    conditions = [pinn.Interior(lambda u: a * u.xx + 1, n=40), pinn.Data({"x": x}, {"u": x * (1 - x) / 4})]
    with lg.no_grad():
        sol = pinn.Problem(u, conditions, a).solve(pinn.LevenbergMarquardt(12))
        assert sol.run.estimated
    problem = linearised.Linearised(sol.run.trainees[-1], {"x": 8})
    matrix, _ = problem.rows(0, problem.trainee.problem.conditions[0], 50, np.random.default_rng(0))
    size = sol.run.trainees[-1].problem.sizes[0][0]
    assert np.allclose(matrix[:, -1] * size * 50**0.5, -0.5, atol=0.1)


def test_where_there_is_none_it_says_why(monkeypatch):
    monkeypatch.setattr(estimate, "SIZE", 100)
    u = pinn.Field("u", pinn.LShape(), pinn.MLP(4, 1))
    sol = pinn.Problem(u, [pinn.Interior(lambda u: u.lap + 1, n=32), pinn.Dirichlet(0, n=32)]).solve(pinn.Adam(1))
    assert sol.errors.estimated == {}
    assert sol.run.unestimated == "an error as large as the solution itself"
    given = pinn.Interior(lambda w: w.xx + 1, points={"x": np.linspace(0, 1, 30)})
    w = pinn.Field("w", X, pinn.MLP(4, 1), boundary=pinn.Hard(0))
    sol = pinn.Problem(w, given).solve(pinn.GaussNewton(4))
    assert sol.errors.estimated == {}
    assert "no estimate: an equation at given points, where more cannot be drawn" in str(sol.errors)


def test_ends_that_agree_softly_have_errors_as_others():
    ring, k = pinn.Interval("x", 0, 1, periodic=True), 2 * math.pi
    u = pinn.Field("u", ring, pinn.MLP(8, 1))
    equation = pinn.Interior(lambda u, x: u.xx / k**2 - u + 2 * lg.sin(k * x), n=60)
    sol = pinn.Problem(u, [equation, pinn.Wrap("x", 1)]).solve(pinn.LevenbergMarquardt(8))
    x = np.linspace(0, 1, 101)
    error = np.linalg.norm(sol(x) - np.sin(k * x)) / np.linalg.norm(np.sin(k * x))
    assert 0.7 < sol.errors.estimated["u"] / error < 1.4


def test_files_keep_an_estimate_that_was_made(tmp_path):
    u = pinn.Field("u", X, pinn.MLP(4, 1), boundary=pinn.Hard(0))
    sol = pinn.Problem(u, pinn.Interior(lambda u: u.xx + 1, n=16)).solve(pinn.GaussNewton(4))
    sol.save(tmp_path / "before.safetensors")
    assert "u: relative L2 error about" in str(sol.errors)
    sol.save(tmp_path / "after.safetensors")
    assert pinn.Solution.load(tmp_path / "after.safetensors").errors.estimated == sol.errors.estimated
    assert "before the solution was saved" in str(pinn.Solution.load(tmp_path / "before.safetensors").errors)


@pytest.mark.parametrize("order", range(5))
def test_derivatives_of_the_basis(order):
    x, ends, h = np.linspace(0.3, 0.9, 7), np.array([0.2, 1.0]), 1e-5
    for basis in (linearised.polynomials, linearised.harmonics):
        slope = (basis(x + h, ends, 6, order) - basis(x - h, ends, 6, order)) / (2 * h)
        assert np.allclose(basis(x, ends, 6, order + 1), slope, rtol=1e-4, atol=1e-4 * np.abs(slope).max())


@pytest.mark.slow
def test_fields_in_parts_of_a_domain_have_estimates():
    rod, left, right = pinn.Interval("x", 0, 1), pinn.Interval("x", 0, 0.4), pinn.Interval("x", 0.4, 1)
    c = pinn.Field("c", rod, net=pinn.MLP(5, 1), part=left)
    s = pinn.Field("s", rod, net=pinn.MLP(5, 1), part=right)
    conditions = [
        pinn.Interior(lambda c, x: c.xx + lg.sin(3 * x), n=16, of=left),
        pinn.Interior(lambda s: s.xx, n=16, of=right),
        pinn.Boundary(lambda c, s: (c - s, 8 * c.n - s.n), on="x_max", of=left),
        pinn.Dirichlet(0, "x_min", field="c"),
        pinn.Dirichlet(1, "x_max", field="s"),
    ]
    matrix, given = np.array([[0.4, 0.6], [8, -1]]), [1 - np.sin(1.2) / 9, -8 * np.cos(1.2) / 3]
    a, b = np.linalg.solve(matrix, given)
    solution = pinn.Problem([c, s], conditions).solve(pinn.LevenbergMarquardt(15))
    truths = {"c": (left, lambda x: np.sin(3 * x) / 9 + a * x), "s": (right, lambda x: 1 + b * (x - 1))}
    for name, (part, truth) in truths.items():
        x = np.linspace(*part.bounds[0], 200)
        error = np.linalg.norm(solution(x)[name] - truth(x)) / np.linalg.norm(truth(x))
        assert 0.8 < solution.run.estimated[name] / error < 1.25


def test_what_conditions_leave_open_has_no_estimate():
    u = pinn.Field("u", X, pinn.MLP(6, 1))
    sol = pinn.Problem(u, [pinn.Interior(lambda u: u.xx + 1, n=20), pinn.Neumann(-0.5, n=2)]).solve(pinn.GaussNewton(4))
    assert sol.errors.estimated == {}
    assert sol.run.unestimated == "1 direction is free: u + constant"


class Known(lg.nn.Module):
    """1.01 sin(pi x), and a wave that residuals see twice."""

    def __init__(self, height):
        super().__init__()
        self.height = lg.nn.Parameter(lg.tensor([height]))

    def forward(self, z):
        x = (z + 1) / 2
        return 1.01 * lg.sin(math.pi * x) + self.height * lg.sin(18 * math.pi * x)


@pytest.mark.parametrize("factor", [0.2, 1.9, 3])
def test_errors_are_beside_what_the_solution_should_be(factor):
    u = pinn.Field("u", X, pinn.Own(lambda inputs, outputs: Known(0.0)), scale=1)
    equation = pinn.Interior(lambda u, x: u.xx + 1.01 / factor * math.pi**2 * lg.sin(math.pi * x), n=50)
    sol = pinn.Problem(u, [equation, pinn.Dirichlet(0, n=2)]).solve(pinn.Adam(1, lr=1e-12))
    if factor == 3:
        assert sol.errors.estimated == {}
        assert sol.run.unestimated == "an error as large as the solution itself"
    else:
        assert sol.errors.estimated["u"] == pytest.approx(abs(factor - 1), rel=1e-3)


def test_an_equation_that_is_not_linear_about_what_was_found_has_no_estimate():
    """u' = u (1 - u): about zero it grows for ever."""
    u = pinn.Field("u", pinn.Time("t", 0, 8), pinn.MLP(6, 1))
    sol = pinn.Problem(u, [pinn.Interior(lambda u: u.t - u * (1 - u), n=30), pinn.Initial(0.05)]).solve(pinn.Adam(1))
    assert sol.errors.estimated == {}


@pytest.mark.parametrize("height", [3e-5, 3e-4])
def test_residuals_that_oscillate_leave_a_rough_estimate(height, monkeypatch, tmp_path):
    """Few polynomials do not explain waves that change the solution little: half as many give the same error."""
    monkeypatch.setattr(estimate, "SIZE", 12)
    u = pinn.Field("u", X, pinn.Own(lambda inputs, outputs: Known(height)), scale=1)
    equation = pinn.Interior(lambda u, x: u.xx + math.pi**2 * lg.sin(math.pi * x), n=50)
    sol = pinn.Problem(u, [equation, pinn.Dirichlet(0, n=2)]).solve(pinn.Adam(1, lr=1e-12))
    if height > 1e-4:
        assert sol.errors.estimated == {}
        assert sol.run.unestimated.startswith("residuals of which 12 polynomials explain ")
        return
    assert sol.errors.estimated["u"] == pytest.approx(0.01, rel=0.2)
    assert "by a rough estimate: residuals of which 12 polynomials explain" in str(sol.errors)
    sol.save(tmp_path / "u.safetensors")
    assert str(pinn.Solution.load(tmp_path / "u.safetensors", own=lambda inputs, outputs: Known(0.0)).errors) == str(
        sol.errors
    )


def test_where_polynomials_explain_too_little_seeds_say_how_far_they_are_apart(monkeypatch):
    monkeypatch.setattr(estimate, "SIZE", 4)
    u = pinn.Field("u", X, pinn.MLP(12, 1), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, [pinn.Interior(lambda u, x: u.xx + 9 * math.pi**2 * lg.sin(3 * math.pi * x), n=40)])
    truth = pinn.references.exact(X, u=lambda x: np.sin(3 * math.pi * x))
    sol = problem.solve(pinn.GaussNewton(10), seeds=3, reference=truth)
    assert not sol.run.estimated
    error = sol.run.errors["u"]["l2"]
    assert error / 5 < sol.errors.estimated["u"] < 5 * error
    assert sol.errors.reservation.startswith("by how far seeds are apart; residuals of which 4 polynomials explain ")
    assert sol.of(sol.run).errors.estimated == {}
    none = pinn.Problem(u, [pinn.Interior(lambda u: 0 * u.xx + 1e-9, n=9)])
    zero = none.solve(pinn.Adam(1), seeds=2)
    for run in zero.runs:
        for parameter in run.modules[0].parameters():
            parameter.data.zero_()
    assert zero.errors.apart == {}
    measured = pinn.Data({"x": np.linspace(0, 1, 9)}, {"u": np.sin(3 * np.pi * np.linspace(0, 1, 9))})
    assert pinn.Problem(u, [*problem.conditions, measured]).solve(pinn.GaussNewton(10), seeds=2).errors.estimated == {}
    poor = problem.solve(pinn.Adam(1), seeds=2)  # which are as far from the solution as from each other, or farther
    assert poor.errors.estimated == {}


@pytest.mark.parametrize(
    ("integral", "exact"),
    [
        (pinn.Integral(lambda w, x, at: at.x * x * w, lambda w, x: w - lg.exp(x) + x, n=16, order=8), np.exp),
        (pinn.Integral(lambda w, x, at: (at.x - x) * w, lambda w, x: x - w, upto="x", n=16, order=8), np.sin),
    ],
)
def test_errors_of_integral_equations_are_estimated(integral, exact):
    """Fredholm's and Volterra's, whose residuals depend on fields at the points of a rule, too."""
    w, x = pinn.Field("w", pinn.Interval("x", 0, 1), pinn.MLP(6, 1)), np.linspace(0, 1, 101)
    sol = pinn.Problem(w, integral).solve(pinn.LevenbergMarquardt(5))
    error = np.linalg.norm(sol(x) - exact(x)) / np.linalg.norm(exact(x))
    assert sol.errors.estimated["w"] == pytest.approx(error, rel=0.2)
    assert sol.run.doubts == ""


def string(u):
    return pinn.Energy(lambda u: u.x**2 / 2 - u, least=-1)


def bent_by_a_spring(u):
    """u'' = u^3 - ..., of u = sin(pi x)."""

    def energy(u, x):
        wave = lg.sin(np.pi * x)
        return u.x**2 / 2 + u**4 / 4 - (np.pi**2 * wave + wave**3) * u

    return pinn.Energy(energy, least=-5)


@pytest.mark.parametrize(
    ("energy", "steps", "exact"),
    [(string, 12, lambda x: x * (1 - x) / 2), (bent_by_a_spring, 10, lambda x: np.sin(np.pi * x))],
)
def test_errors_of_least_energies_are_estimated(energy, steps, exact):
    u = pinn.Field("u", X, pinn.MLP(8, 1), boundary=pinn.Hard(0))
    truth = pinn.references.exact(X, u=exact)
    sol = pinn.Problem(u, energy(u)).solve(pinn.SSBroyden(steps), reference=truth)
    assert sol.errors.estimated["u"] == pytest.approx(sol.errors.l2["u"][0], rel=0.05)


def test_the_error_of_an_energy_is_estimated_in_very_small_units():
    """Its curvature is 1e27 times as large as in others."""
    length, size = 3e-12, 1e8
    line = pinn.Interval("x", 0, length)
    u = pinn.Field("u", line, pinn.MLP(4, 1), boundary=pinn.Hard(lambda x: size * (x / length) ** 2))
    truth = pinn.references.exact(line, u=lambda x: size * x / length)
    sol = pinn.Problem(u, pinn.Energy(lambda u: u.x**2, order=12)).solve(pinn.SSBroyden(20), reference=truth)
    close(sol)
    assert sol.run.doubts == ""


def test_the_error_of_an_energy_in_a_disk_is_estimated(monkeypatch):
    """In which some polynomials are next to nothing."""
    monkeypatch.setattr("leafgrad_pinn.estimate.SIZE", 400)
    disk = pinn.Disk(2, x=0, y=0)
    u = pinn.Field("u", disk, pinn.MLP(6, 1), boundary=pinn.Hard(0))
    truth = pinn.references.exact(disk, u=lambda x, y: 1 - (x**2 + y**2) / 4)
    energy = pinn.Energy(lambda u: u.x**2 / 2 + u.y**2 / 2 - u, least=-5, order=12)
    sol = pinn.Problem(u, energy).solve(pinn.SSBroyden(5), reference=truth)
    assert sol.errors.estimated["u"] == pytest.approx(sol.errors.l2["u"][0], rel=0.05)


@pytest.mark.slow
def test_the_error_of_a_quotient_with_soft_conditions_is_estimated():
    """The ground state of a box, of a network that ends and norm hold softly."""
    u = pinn.Field("u", X, pinn.MLP(8, 1), boundary=pinn.Hard(0, on="x_min"), scale=1)
    conditions = [
        pinn.Energy(lambda u: u.x**2, per=lambda u: u**2),
        pinn.Integral(lambda u: u, 8**0.5 / np.pi, weight=100),
        pinn.Dirichlet(0, on="x_max", n=1, weight=100),
    ]
    truth = pinn.references.exact(X, u=lambda x: 2**0.5 * np.sin(np.pi * x))
    sol = pinn.Problem(u, conditions).solve(pinn.Adam(200, lr=0.02), pinn.SSBroyden(60), reference=truth)
    assert sol.errors.estimated["u"] == pytest.approx(sol.errors.l2["u"][0], rel=0.2)


def test_energies_that_are_nowhere_least_or_flat_have_no_estimate():
    u = pinn.Field("u", X, pinn.MLP(4, 1))
    flat = pinn.Problem(u, pinn.Energy(lambda u, x: (u.x - x) ** 2)).solve(pinn.SSBroyden(20))
    assert "an energy that changes of its fields leave as it is" in str(flat.errors)
    falls = pinn.Problem(u, pinn.Energy(lambda u: u.x**2 - 3 * lg.tanh(u) ** 2, least=-9)).solve(pinn.SSBroyden(1))
    assert "no estimate" in str(falls.errors)


def test_a_field_that_is_zero_leaves_the_estimates_of_others():
    """A flow between plates across which nothing flows."""
    u, v = pinn.fields("u v", X, pinn.MLP(8, 1))
    flow = pinn.Interior(lambda u, v: (u.xx + 1 - v, v.xx), n=40)
    ends = [pinn.Dirichlet(0, field="u", n=2), pinn.Dirichlet(0, field="v", n=2)]
    truth = pinn.references.exact(X, u=lambda x: x * (1 - x) / 2)
    sol = pinn.Problem([u, v], [flow, *ends]).solve(pinn.LevenbergMarquardt(8), reference=truth)
    assert list(sol.errors.estimated) == ["u"]
    assert sol.errors.estimated["u"] == pytest.approx(sol.errors.l2["u"][0], rel=0.1)
    assert "none for v" in sol.run.unestimated


def test_seeds_farther_apart_than_their_estimates_say_so():
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(6, 1))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.xx - u, n=30), pinn.Boundary(lambda u: u * u - 1, n=2)])
    sol = problem.solve(pinn.LevenbergMarquardt(15), seeds=4)
    kinds = {sign(sol, run) for run in sol.runs}
    assert len(kinds) > 1
    both = pinn.Solution(sol.groups, [next(r for r in sol.runs if sign(sol, r) == kind) for kind in kinds], None)
    assert both.run.estimated["u"] < 1e-2
    assert both.errors.estimated["u"] > 0.5
    assert both.errors.reservation.startswith("seeds are farther apart than their estimates say")
    alike = [run for run in sol.runs if sign(sol, run) == sign(sol, sol.run)]
    assert pinn.Solution(sol.groups, alike, None).errors.estimated["u"] < 1e-2


def sign(sol, run):
    return tuple(np.sign(sol.of(run)(np.array([0.0, 1.0]))))

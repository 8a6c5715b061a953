"""Fields at other places than the points of an equation, and before the start."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn

T = pinn.Time("t", 0, 2)
PLANE = pinn.Box(x=(0, 2), y=(-1, 1)) * pinn.Time("t", 0, 3)
EARLIER = pinn.Interior(lambda u, t: u.t + u.at(t=t - 1), n=24, sampler="grid")


def steps(t):
    """The solution of u' = -u(t - 1), u = 1 until 0, by the method of steps: a polynomial between whole numbers."""
    return sum(np.where(t >= k - 1, (-1.0) ** k * np.maximum(t - k + 1, 0) ** k / math.factorial(k), 0)
               for k in range(int(t.max()) + 2))  # fmt: skip


@pytest.mark.parametrize("exact", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_delay_equation_has_the_solution_by_the_method_of_steps(exact, tmp_path):
    t = np.linspace(0, 2, 101)
    u = pinn.Field("u", T, net=pinn.MLP(8, 1), history=1, initial=pinn.Hard(1) if exact else None)
    sol = pinn.Problem(u, [EARLIER] if exact else [EARLIER, pinn.Initial(1)]).solve(
        pinn.LevenbergMarquardt(18), windows=2
    )
    assert np.abs(sol(t) - steps(t)).max() < 1e-4
    assert sol.run.doubts == ""
    wrong = np.linalg.norm(sol(t) - steps(t)) / np.linalg.norm(steps(t))
    assert sol.errors.estimated["u"] == pytest.approx(wrong, rel=0.3)
    sol.save(tmp_path / "u.safetensors")
    again = pinn.Solution.load(tmp_path / "u.safetensors")
    earlier = again.evaluate(lambda u, t: u.at(t=t - 1), t)
    assert np.abs(earlier - np.where(t < 1, 1, steps(np.maximum(t - 1, 0)))).max() < 1e-4


def test_what_is_wrong_in_windows_before_is_in_the_estimate():
    """Beside what is wrong at their end: without it the estimate is 1.4 times the error."""
    t = np.linspace(0, 4, 201)
    u = pinn.Field("u", pinn.Time("t", 0, 4), net=pinn.MLP(4, 1), history=1)
    sol = pinn.Problem(u, [EARLIER, pinn.Initial(1)]).solve(pinn.LevenbergMarquardt(4), windows=4)
    wrong = np.linalg.norm(sol(t) - steps(t)) / np.linalg.norm(steps(t))
    assert wrong > 1e-2
    assert sol.errors.estimated["u"] == pytest.approx(wrong, rel=0.1)


@pytest.mark.slow
def test_the_kink_of_a_delay_equation_is_in_the_estimate():
    t = np.linspace(0, 2, 101)
    u = pinn.Field("u", T, net=pinn.MLP(8, 1), history=lambda t: 1 + 0 * t, initial=pinn.Hard(1))
    sol = pinn.Problem(u, EARLIER).solve(pinn.LevenbergMarquardt(15))
    wrong = np.linalg.norm(sol(t) - steps(t)) / np.linalg.norm(steps(t))
    assert 1e-5 < wrong < 1e-2
    assert sol.errors.estimated["u"] == pytest.approx(wrong, rel=0.5)


def fields():
    u = pinn.Field("u", PLANE, net=pinn.MLP(6, 2), history=lambda x, t: lg.sin(x) * lg.exp(t))
    return [u, pinn.Derivative("v", u, "x", factor=-2)]


def residual(equation, mode="auto", points=None, given=fields):
    """Residuals of an equation of untrained fields, and the points."""
    points = points or dict(zip(PLANE.names, PLANE.interior(12, "sobol", np.random.default_rng(1)).T, strict=True))
    problem = pinn.Problem(given(), pinn.Interior(equation, points=points), derivatives=mode)
    (batch,) = problem.some()
    return problem.system()(0, batch).detach().numpy()[:, 0] * problem.sizes[0][0], points


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("", "auto"),
        ("y", "reverse"),
        ("t", "jet"),
        pytest.param("xy", "jet", marks=pytest.mark.slow),
        pytest.param("lap", "forward", marks=pytest.mark.slow),
    ],
)
def test_a_field_elsewhere_is_what_it_is_there(path, mode):
    """Derivatives by one coordinate leave alone what others are made of."""

    def asked(u):
        return getattr(u, path) if path else u + 0

    away, points = residual(lambda u, x, y: asked(u.at(x=x * 0.5 + y * y * 0.3, y=y * x * 0.5)), mode)
    x, y = points["x"], points["y"]
    there, _ = residual(asked, mode, {"x": x * 0.5 + y * y * 0.3, "y": y * x * 0.5, "t": points["t"]})
    assert np.abs(away).max() > 0.01
    assert away == pytest.approx(there, rel=1e-12)


def test_derivatives_go_through_places():
    found, points = residual(lambda u, x, y: pinn.d(u.at(x=x * y * y), y))
    moved = {**points, "x": points["x"] * points["y"] ** 2}
    by_x, by_y = (residual(lambda u, c=c: u.along([c]), points=moved)[0] for c in "xy")
    assert found == pytest.approx(by_x * 2 * points["x"] * points["y"] + by_y, rel=1e-10)


def test_history_has_derivatives_and_so_have_derivatives_of_fields():
    found, p = residual(lambda u, v, t: u.at(t=t - 3).xt + 10 * v.at(t=t - 3) + u.t.at(t=t - 4, x=1.0) * 0.1)
    u_t = 0.1 * np.sin(1) * np.exp(p["t"] - 4)
    assert found == pytest.approx(np.cos(p["x"]) * np.exp(p["t"] - 3) * (1 - 20) + u_t, rel=1e-10)


def test_periodic_coordinates_go_on():
    ring = pinn.Interval("x", 0, 4, periodic=True)

    def on_ring():
        return pinn.Field("u", ring, net=pinn.MLP(6, 1, embed=pinn.Periodic(x=2)))

    x = np.linspace(0, 4, 9)
    for shift in (-1, 7):
        found, _ = residual(lambda u, x, s=shift: u.at(x=x + s), points={"x": x}, given=on_ring)
        assert found == pytest.approx(residual(lambda u: u + 0, points={"x": (x + shift) % 4}, given=on_ring)[0])


def test_an_unknown_delay_has_a_derivative_and_complex_fields_have_places():
    tau = pinn.Unknown("tau", 0.7)
    psi = pinn.ComplexField("psi", T, net=pinn.MLP(6, 1), history=(lambda t: lg.cos(t), lambda t: lg.sin(t)))
    problem = pinn.Problem(psi, pinn.Interior(lambda psi, t: psi.t - 1j * psi.at(t=t - tau), n=12), [tau])
    system, (batch,) = problem.system(), problem.some()
    (slope,) = lg.autograd.grad(system(0, batch).sum(), [system.numbers[0]])
    ends = []
    for step in (1e-6, -2e-6):
        with lg.no_grad():
            system.numbers[0].add_(step)
        ends.append(float(system(0, batch).sum().detach()))
    assert float(slope) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


def test_places_that_depend_on_fields_are_in_the_linearised_problem():
    """u' = -u(t - |u|) exp(-exp(-t)), whose solution is exp(-t)."""
    t = np.linspace(0, 2, 51)
    u = pinn.Field("u", T, net=pinn.MLP(6, 1), history=lambda t: lg.exp(-t), initial=pinn.Hard(1))
    equation = pinn.Interior(lambda u, t: u.t + u.at(t=t - abs(u)) * lg.exp(-lg.exp(-t)), n=30, sampler="grid")
    sol = pinn.Problem(u, equation).solve(pinn.LevenbergMarquardt(8))
    wrong = np.linalg.norm(sol(t) - np.exp(-t)) / np.linalg.norm(np.exp(-t))
    assert wrong < 1e-2
    assert sol.errors.estimated["u"] == pytest.approx(wrong, rel=0.2)


@pytest.mark.parametrize(
    ("equation", "words"),
    [
        (lambda u, t: u.at(t=t - 1), "asked for u at t = -0.89.*, before the first moment, 0: say what it was there"),
        (lambda u, x: u.at(x=x + 1), "interior: u.at: expected points inside"),
        (lambda u: u.at(t=3.5), "interior: u.at: expected points inside"),
        (lambda u, x: u.at(x=lg.ones(3)), "u.at: x: expected a number, or one for each of"),
    ],
)
def test_places_that_are_nowhere_are_errors(equation, words):
    domain = pinn.Interval("x", 0, 2) * pinn.Time("t", 0, 3)
    u = pinn.Field("u", domain, net=pinn.MLP(4, 1))
    with pytest.raises(ValueError, match=words):
        pinn.Problem(u, pinn.Interior(equation, n=200, sampler="grid"))


def test_mistakes_with_places_are_errors():
    u = pinn.Field("u", PLANE, net=pinn.MLP(4, 1))
    for equation, words in ((lambda u: u.at(z=0), "expected coordinates among x, y, t, got z"),
                            (lambda u: u.lap.at(x=0), "u.lap.at: expected a field")):  # fmt: skip
        with pytest.raises(AttributeError, match=words):
            pinn.Problem(u, pinn.Interior(equation, n=8))
    with pytest.raises(ValueError, match="history: the domain has no time"):
        pinn.Field("u", pinn.Interval("x", 0, 1), net=pinn.MLP(4, 1), history=0)
    with pytest.raises(TypeError, match="expected values by field"):
        pinn.fields("u v", PLANE, pinn.MLP(4, 1), history=0)


def test_places_that_leave_the_domain_in_training_are_nan():
    shift = pinn.Unknown("shift", 0.1)
    u = pinn.Field("u", pinn.Interval("x", 0, 2), net=pinn.MLP(4, 1))
    problem = pinn.Problem(u, pinn.Interior(lambda u, x: u.at(x=x + shift), n=8, where=lambda x: x < 1), [shift])
    system, (batch,) = problem.system(), problem.some()
    with lg.no_grad():
        system.numbers[0].add_(100)
    assert system(0, batch).isnan().all()


def test_exact_values_may_have_derivatives_that_are_zero():
    """By their own coordinates, at whatever places they are asked for."""
    domain, x = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1), np.linspace(0, 1, 5)
    zero = {
        "initial": pinn.Hard(lambda x: x * (1 - x)),
        "boundary": pinn.Hard(lambda x, t: pinn.d(x * t, t, t) + 0 * x),
    }
    u = pinn.Field("u", domain, pinn.MLP(4, 1), **zero)
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t - u.xx + u.at(t=0.2), n=8)])
    for windows in (1, 2):
        sol = problem.solve(pinn.Adam(1), windows=windows)
        np.testing.assert_allclose(sol.evaluate(lambda u: u, x, 0.7), sol(x, 0.7), atol=1e-15)
        np.testing.assert_allclose(sol.evaluate(lambda u: u.at(t=0.7), x, 0.1), sol(x, 0.7), atol=1e-15)
    v = pinn.Field("v", pinn.Time("t", 0, 1), pinn.MLP(4, 1), history=lambda t: 1 + pinn.d(3 * t, t, t))
    sol = pinn.Problem(v, [pinn.Interior(lambda v, t: v.t + v.at(t=t - 1), n=8), pinn.Initial(1)]).solve(pinn.Adam(1))
    np.testing.assert_array_equal(sol.evaluate(lambda v, t: v.at(t=t - 1), np.array([0.2, 0.5])), 1)
    with pytest.raises(ValueError, match="d: expected a coordinate of the equation"):
        sol.evaluate(lambda v, t: pinn.d(v, 2 * t), x)


def test_places_and_rates_of_learning_are_numbers_without_dimensions_too():
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(4, 1))
    for number in (0.5, np.float64(0.5), np.array(0.5), lg.tensor(0.5)):
        problem = pinn.Problem(u, [pinn.Interior(lambda u, number=number: u.x - u.at(x=number), n=4)])
        sol = problem.solve(pinn.Adam(1, number))
        assert sol.evaluate(lambda u, number=number: u.at(x=number), 0.2) == sol(0.5)
    for wrong in (np.array(True), np.ones(3), np.array("1")):
        with pytest.raises(TypeError, match="expected a number"):
            pinn.Adam(1, wrong)

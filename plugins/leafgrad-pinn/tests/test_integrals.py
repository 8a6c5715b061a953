"""Conditions that integrals state: values, integral equations, and energies."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.quadrature import inside, on_edges

X = pinn.Interval("x", 0, 1)


def total(rule, function):
    points, weights, _ = rule
    return float(weights @ function(points))


def test_rules_converge_to_rounding():
    box = pinn.Domain(pinn.Box(x=(0, 2), y=(-1, 1)), pinn.Time("t", 0, 3))
    all_ = inside(box, box.names, 12)
    assert total(all_, lambda p: np.exp(p.sum(1))) == pytest.approx(
        (math.exp(2) - 1) * (math.e - 1 / math.e) * (math.exp(3) - 1), rel=1e-13
    )
    part = inside(box, ["y"], 12)
    assert total(part, lambda p: p[:, 1] ** 4) == pytest.approx(0.4)
    assert not part[0][:, [0, 2]].any()
    ring = pinn.Domain(pinn.Interval("x", 0, 2, periodic=True))
    assert total(inside(ring, ["x"], 20), lambda p: np.cos(3 * np.pi * p[:, 0]) ** 2) == pytest.approx(1)
    assert total(inside(ring, ["x"], 20), lambda p: p[:, 0] ** 3) == pytest.approx(4)  # what has a jump where they meet
    disk = pinn.Domain(pinn.Disk(2.0, x=1, y=0))
    assert total(inside(disk, disk.names, 8), lambda p: p[:, 0] ** 2) == pytest.approx(8 * math.pi)
    assert total(on_edges(disk, ["circle"], disk.names, 20), lambda p: p[:, 0] ** 2) == pytest.approx(12 * math.pi)
    flux = on_edges(box, ["x_max", "y_min"], ["x", "y", "t"], 4)
    assert total(flux, lambda p: 1 + p[:, 2]) == pytest.approx(4 * 7.5)
    with pytest.raises(ValueError, match=r"there is no rule for it: take on=.*at sol.domain.interior\(4096"):
        inside(pinn.Domain(pinn.LShape()), ("x", "y"), 4)


@pytest.mark.parametrize(("axes", "order"), [((1.5, 1), 32), ((2, 0.5), 96), ((4, 0.25), 300), ((0.25, 4), 300)])
def test_rules_along_ellipses(axes, order):
    a, b = axes
    fine = (np.arange(20000) + 0.5) * np.pi / 10000
    speed = np.hypot(a * np.sin(fine), b * np.cos(fine)) * np.pi / 10000
    domain = pinn.Domain(pinn.Ellipse(axes, x=1, y=-2), pinn.Time("t", 0, 3))
    along = on_edges(domain, ["ellipse"], domain.names, order)
    assert total(along, lambda p: 1 + 0 * p[:, 0]) == pytest.approx(3 * speed.sum(), rel=1e-10)
    assert total(along, lambda p: p[:, 0] ** 2 * p[:, 2]) == pytest.approx(
        4.5 * (speed @ (1 + a * np.cos(fine)) ** 2), rel=1e-10
    )
    points, weights, normals = along  # Gauss: the flux of (x + y^2, 3 y) is 4 times the area
    flux = (points[:, 0] + points[:, 1] ** 2) * normals[:, 0] + 3 * points[:, 1] * normals[:, 1]
    assert weights @ flux == pytest.approx(3 * 4 * math.pi * a * b, rel=1e-12)


def test_rules_round_circles_and_spheres_are_exact_for_polynomials():
    disk, ball = pinn.Domain(pinn.Disk(2, x=0, y=0)), pinn.Domain(pinn.Ball(2, x=0, y=0, z=0))
    circle = on_edges(disk, ["circle"], disk.names, 4)
    assert total(circle, lambda p: p[:, 0] ** 4) == pytest.approx(2**5 * math.pi * 3 / 4, rel=1e-12)
    sphere = on_edges(ball, ["sphere"], ball.names, 4)
    assert total(sphere, lambda p: p[:, 0] ** 2 * p[:, 2] ** 2) == pytest.approx(2**6 * 4 * math.pi / 15, rel=1e-12)


def test_rules_of_pieces_are_exact_between_kinks():
    """Of polynomials of degree 3 in each of four pieces, in two dimensions."""
    domain, rng = (
        (pinn.Interval("x", -1, 1) * pinn.Interval("y", 0, 3)) * pinn.Time("t", 0, 1),
        np.random.default_rng(0),
    )
    nodes, weights, _ = inside(domain, ["x", "y"], 2, 4)
    a, b = rng.normal(size=(2, 4, 4))
    x, y = (np.clip(((nodes[:, k] - low) / length * 4).astype(int), 0, 3) for k, low, length in ((0, -1, 2), (1, 0, 3)))
    found = sum(a[x, i] * nodes[:, 0] ** i for i in range(4)) * sum(b[y, j] * nodes[:, 1] ** j for j in range(4))

    def exact(c, ends):
        antiderivatives = c / np.arange(1, 5)
        return sum(np.polyval([*p[::-1], 0], high) - np.polyval([*p[::-1], 0], low)
                   for p, low, high in zip(antiderivatives, ends[:-1], ends[1:], strict=True))  # fmt: skip

    known = exact(a, np.linspace(-1, 1, 5)) * exact(b, np.linspace(0, 3, 5))
    assert found @ weights == pytest.approx(known, rel=1e-12)
    with pytest.raises(ValueError, match="pieces: expected a box or an interval"):
        inside(pinn.Domain(pinn.Disk(1, x=0, y=0)), ["x", "y"], 2, 2)


def test_fredholm():
    """u(x) = exp(x) - x + integral of x y u(y) over [0, 1], u = exp(x)."""
    u = pinn.Field("u", X, pinn.MLP(6, 1))
    equation = pinn.Integral(lambda u, x, at: at.x * x * u, lambda u, x: u - lg.exp(x) + x, n=16, order=8)
    sol = pinn.Problem(u, equation).solve(pinn.LevenbergMarquardt(25))
    x = np.linspace(0, 1, 11)
    assert np.abs(sol(x) - np.exp(x)).max() < 2e-3
    assert sol.run.doubts == ""
    assert sol.errors.estimated["u"] < 2e-3


def test_volterra():
    """u' = 1 - integral of u up to t, u(0) = 0: u = sin t."""
    domain = pinn.Time("t", 0, 2)
    u = pinn.Field("u", domain, pinn.MLP(6, 1))
    equation = pinn.Integral(lambda u: u, lambda u: 1 - u.t, upto="t", n=20, order=8)
    sol = pinn.Problem(u, [equation, pinn.Initial(0)]).solve(pinn.LevenbergMarquardt(15))
    t = np.linspace(0, 2, 11)
    assert np.abs(sol(t) - np.sin(t)).max() < 1e-3


def test_round_a_ring():
    """A part of it: w = cos(2 pi x) from its integral up to x; and a moment, of what is constant."""
    ring = pinn.Interval("x", 0, 1, periodic=True)
    w = pinn.Field("w", ring, pinn.MLP(8, 1, embed=pinn.Periodic(x=2)))
    equation = pinn.Integral(
        lambda w: w, lambda w, x: w - lg.cos(2 * math.pi * x) + lg.sin(2 * math.pi * x) / 2 / math.pi, upto="x", n=40
    )
    sol = pinn.Problem(w, equation).solve(pinn.LevenbergMarquardt(13))
    x = np.linspace(0, 1, 21)
    assert np.abs(sol(x) - np.cos(2 * np.pi * x)).max() < 1e-3
    assert sol.integral(lambda w, x: x + w) == pytest.approx(0.5, abs=1e-4)
    moment = [pinn.Interior(lambda w: w.x, n=20), pinn.Integral(lambda w, x: x * w, 0.25)]
    assert pinn.Problem(w, moment).solve(pinn.LevenbergMarquardt(6))(0.3) == pytest.approx(0.5, abs=3e-3)


def test_an_integral_over_one_coordinate_and_one_over_an_edge():
    """u = x t + 1, from its mean over x at each t, its slopes, and its flux through the end."""
    rod = X * pinn.Time("t", 0, 1)
    u = pinn.Field("u", rod, pinn.MLP(8, 1))
    conditions = [
        pinn.Interior(lambda u, t: u.x - t, n=60),
        pinn.Integral(lambda u: u, lambda t: t / 2 + 1, over="x", n=20, order=6),
        pinn.Integral(lambda u: u.n, 0.5, on="x_max", order=6, name="flux"),
    ]
    sol = pinn.Problem(u, conditions).solve(pinn.LevenbergMarquardt(20))
    x, t = np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 1, 5))
    assert np.abs(sol(x, t) - x * t - 1).max() < 1e-3


def test_energies():
    """-u'' = 1 by its energy, and the ground state of -u'' by its quotient."""
    u = pinn.Field("u", X, pinn.MLP(8, 1), boundary=pinn.Hard(0))
    sol = pinn.Problem(u, pinn.Energy(lambda u: u.x**2 / 2 - u, least=-1)).solve(pinn.SSBroyden(19))
    x = np.linspace(0, 1, 11)
    assert np.abs(sol(x) - x * (1 - x) / 2).max() < 2e-3
    assert sol.run.doubts == ""
    lowest = pinn.Energy(lambda u: u.x**2, per=lambda u: u**2, least=5)
    sol = pinn.Problem(u, lowest).solve(pinn.Adam(64, lr=0.02), pinn.SSBroyden(19))
    assert math.pi**2 < sol.integral(lambda u: u.x**2) / sol.integral(lambda u: u**2) < 1.02 * math.pi**2
    assert sol.run.doubts == ""
    with pytest.raises(ValueError, match="to be least; take SSBroyden"):
        pinn.Problem(u, lowest).solve(pinn.GaussNewton(1))


@pytest.mark.parametrize("stage", [pinn.Adam(30, lr=0.05), pinn.LBFGS(30), pinn.SSBroyden(30)])
def test_an_energy_that_falls_to_what_was_given_as_its_least_is_told(stage, capsys):
    u = pinn.Field("u", X, pinn.MLP(4, 1), boundary=pinn.Hard(0))
    sol = pinn.Problem(u, pinn.Energy(lambda u: u.x**2 / 2 - u, order=8)).solve(stage)
    assert re.search(r"energy (fell below|has come to) least=0.*give less, as least=-1", sol.run.reasons[0])
    assert "give less, as least=-1" in capsys.readouterr().err


@pytest.mark.parametrize("energy", [lambda u: (u.x - 1) ** 2, lambda u: u.x**2 + u**2])
def test_an_energy_whose_minimum_is_its_least_is_right(energy):
    u = pinn.Field("u", X, pinn.MLP(3, 1), boundary=pinn.Hard(0, on="x_min"))
    sol = pinn.Problem(u, pinn.Energy(energy, order=8)).solve(pinn.SSBroyden(60))
    assert sol.run.history[-1]["energy"] < 1e-6
    assert "least" not in sol.run.reasons[0]


def test_a_network_that_fits_itself_to_a_rule_is_told(capsys):
    """Fewer points than weights: a quotient below the least, pi^2, that the function does not have."""
    u = pinn.Field("u", X, pinn.MLP(8, 1), boundary=pinn.Hard(0))
    lowest = pinn.Energy(lambda u: u.x**2, per=lambda u: u**2, order=4)
    problem = pinn.Problem(u, lowest)
    sol = problem.solve(pinn.LBFGS(60))
    assert sol.run.loss * problem.sizes[0][0] ** 2 < 9
    assert "not solved: the residuals of energy by a finer rule are" in capsys.readouterr().err


def test_mistakes():
    u = pinn.Field("u", X, pinn.MLP(4, 1))
    for options, words in (
        ({"over": "z"}, "expected coordinates among x, got z"),
        ({"upto": "x"}, "how many points the equation holds at"),
        ({"on": "left"}, "edges of the domain"),
        ({"order": 0}, "order"),
    ):
        with pytest.raises(ValueError, match=words):
            pinn.Problem(u, pinn.Integral(lambda u: u, 1, **options))
    with pytest.raises(TypeError, match="expected a function, as lambda u"):
        pinn.Integral(3)
    with pytest.raises(ValueError, match="no field or coordinate 'w'"):
        pinn.Problem(u, pinn.Integral(lambda w: w, 1))
    with pytest.raises(ValueError, match="energy: least: expected a number that the energy cannot fall to"):
        pinn.Problem(u, pinn.Energy(lambda u: u.x**2, least=1e3))
    rod = pinn.Field("u", X * pinn.Time("t", 0, 1), pinn.MLP(4, 1))
    problem = pinn.Problem(
        rod, [pinn.Interior(lambda u: u.t, n=8), pinn.Initial(1, n=4), pinn.Integral(lambda u: u, 1)]
    )
    with pytest.raises(ValueError, match="integrals at one moment"):
        problem.solve(pinn.Adam(1), windows=2)

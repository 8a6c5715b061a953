"""What conditions leave open, told at the end where their structure does not show it."""

from __future__ import annotations

import math

import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.freedom import directions
from leafgrad_pinn.problem import Problem
from leafgrad_pinn.trainee import Trainee

X = pinn.Interval("x", 0, 1)
SQUARE = pinn.Box(x=(0, 1), y=(0, 1))
ROD = pinn.Interval("x", 0, 2) * pinn.Time("t", 0, 1)
FIRST = pinn.Initial(lambda x: x * (2 - x), n=20)


def inside(equation):
    return pinn.Interior(equation, n=40)


def found(domain, *conditions, names="u"):
    fields = pinn.fields(names, domain, pinn.MLP(6, 1))
    return directions(Trainee(Problem(list(fields), list(conditions)), 0, lg.float64, "cpu"))


def stokes(u, v, p):
    return p.x - u.lap, p.y - v.lap, u.x + v.y


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((X, inside(lambda u: u.xx + 1), pinn.Dirichlet(0, n=2)), ""),
        ((X, inside(lambda u: u.xx + 1), pinn.Neumann(0, n=2)), "1 direction is free: u + constant"),
        ((X, inside(lambda u: u.xx + 1)), "2 directions are free: u + constant, u + multiple of x"),
        ((X, inside(lambda u: u.xxxx - 1), pinn.Dirichlet(0, n=2)), "2 directions are free: 2 without a simple name"),
        ((X, inside(lambda u: u.xx + math.pi**2 * u), pinn.Dirichlet(0, n=2)), "1 direction is free"),  # sin(pi x)
        ((SQUARE, inside(lambda u: u.lap + 1), pinn.Dirichlet(0, n=40)), ""),
        ((SQUARE, inside(lambda u: u.lap), pinn.Dirichlet(0, on="x_min", n=40)), "6 directions are free"),
        ((ROD, inside(lambda u: u.t + u * u.x - 0.01 * u.xx), pinn.Dirichlet(0, n=40), FIRST), ""),
        ((ROD, inside(lambda u, x: u.t + pinn.d(u * u, x)), pinn.Dirichlet(0, on="x_min", n=40), FIRST), ""),
    ],
)
def test_directions_that_no_residual_sees(conditions, expected):
    said = found(*conditions)
    assert said.startswith(expected)
    assert bool(said) == bool(expected)


def test_pressure_is_determined_up_to_a_constant():
    walls = [pinn.Dirichlet(0, field=name, n=40) for name in "uv"]
    assert found(SQUARE, inside(stokes), *walls, names="u v p") == "1 direction is free: p + constant"


def test_exact_conditions_determine():
    for boundary, expected in ((pinn.Hard(0), ""), (pinn.Hard(0, on="x_min"), "1 direction is free")):
        u = pinn.Field("u", X, pinn.MLP(6, 1), boundary=boundary)
        said = directions(Trainee(Problem(u, inside(lambda u: u.xx + 1)), 0, lg.float64, "cpu"))
        assert said[: len(expected)] == expected
        assert bool(said) == bool(expected)


def test_it_is_told_and_kept_in_files(tmp_path, capsys):
    u = pinn.Field("u", X, pinn.MLP(6, 1))
    problem = pinn.Problem(u, [inside(lambda u: u.xxxx - 1), pinn.Dirichlet(0, n=2)])
    sol = problem.solve(pinn.GaussNewton(2), out=tmp_path)
    assert "not determined: 2 directions are free" in capsys.readouterr().err
    again = pinn.Solution.load(tmp_path / "solution.safetensors")
    assert again.run.doubts == sol.run.doubts
    assert "2 directions are free" in again.run.doubts

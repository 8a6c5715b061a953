"""Equations that have numbers only near the values that are given are sized there, and training starts there."""

from __future__ import annotations

import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.determinacy import homogeneous, undetermined

ROD, TIME = pinn.Interval("x", 0, 1), pinn.Time("t", 0, 1)


def solved(domain, equation, given):
    u = pinn.Field("u", domain, pinn.MLP(8, 1))
    problem = pinn.Problem(u, [pinn.Interior(equation, n=40), given])
    assert undetermined(problem) == []
    assert homogeneous(problem) == ""
    return problem.solve(pinn.LevenbergMarquardt(30))


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:invalid value encountered in sqrt")  # of a step too far
@pytest.mark.parametrize(
    ("domain", "equation", "given", "end"),
    [
        (ROD, lambda u: u.xx + lg.exp(u - 300.0), pinn.Dirichlet(300.0), 300),
        (ROD, lambda u: u.x + 1e4 * lg.log(u / 1e5), pinn.Dirichlet(1e5, "x_min"), 1e5),
        (ROD, lambda u: u.xx + 1e15 * lg.exp(-1e4 / u), pinn.Dirichlet(300.0), 300),
        (TIME, lambda u: u.t + lg.sqrt(u), pinn.Initial(1), 0.25),
    ],
)
def test_equations_without_numbers_for_most_fields_are_solved(domain, equation, given, end):
    sol = solved(domain, equation, given)
    assert sol(1.0) == pytest.approx(end, rel=1e-5)
    assert sol.run.doubts == ""


def test_a_warm_rod_is_as_warm_as_it_would_be_in_other_degrees():
    sol = solved(ROD, lambda u: u.xx + lg.exp(u - 300.0), pinn.Dirichlet(300.0))
    assert sol(0.5) - 300 == pytest.approx(0.14054, abs=1e-4)


def test_what_has_no_numbers_at_given_values_either_is_an_error():
    u = pinn.Field("u", ROD, pinn.MLP(8, 1))
    with pytest.raises(ValueError, match=r"expected finite residuals at the start, got nan or inf at .*; let the"):
        pinn.Problem(u, [pinn.Interior(lambda u: u.x + lg.log(u), n=40), pinn.Dirichlet(-1, "x_min")])

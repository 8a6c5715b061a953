"""The order of equations is that of the derivatives that change them, however they are written."""

from __future__ import annotations

import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.orders import order_of

ROD = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)


@pytest.mark.parametrize(
    ("equation", "orders"),
    [
        (lambda u: u.t - u.xx, [2, 1]),
        (lambda u, x: u.t - pinn.d((1 + x) * u.x, x), [2, 1]),
        (lambda u, x: u.t + pinn.d(u * u, x), [1, 1]),
        (lambda u: u.lap - u, [2, 0]),
        (lambda u: u.t + u * u.x + u.xxx, [3, 1]),
        (lambda u: u - lg.sin(u), [0, 0]),
    ],
)
def test_an_equation_is_of_the_order_of_its_highest_derivative(equation, orders):
    u = pinn.Field("u", ROD, pinn.MLP(4, 1), initial=pinn.Hard(0))
    problem = pinn.Problem(u, [pinn.Interior(equation, n=16)])
    assert [order_of(problem, problem.fields[0], name) for name in ("x", "t")] == orders


def test_conditions_at_the_first_moment_do_not_count():
    u = pinn.Field("u", ROD, pinn.MLP(4, 1))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.x - 1, n=16), pinn.Initial(0, rate=0)])
    assert order_of(problem, problem.fields[0], "t") == 0


def test_an_estimate_of_the_laplacian_is_of_second_order():
    u = pinn.Field("u", pinn.Box(x=(0, 1), y=(0, 1)), pinn.MLP(4, 1), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, [pinn.Stochastic(lambda u, lap: lap(u) + 1, n=16)])
    assert order_of(problem, problem.fields[0], "y") == 2

"""Problems that leave something open say so before they are trained."""

from __future__ import annotations

import math

import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.determinacy import undetermined

X, Y, T = pinn.Interval("x", 0, 2), pinn.Interval("y", 0, 1), pinn.Time("t", 0, 1)
NET = pinn.MLP(4, 1)


def of(domain, *conditions, names="u", **hard):
    return undetermined(pinn.Problem([pinn.Field(name, domain, NET, **hard) for name in names.split()], conditions))


def inside(equation):
    return pinn.Interior(equation, n=32)


SINE = pinn.Initial(lambda x: lg.sin(math.pi * x / 2), n=8)


@pytest.mark.parametrize(
    "found",
    [
        of(X, inside(lambda u: u.xx + 1), pinn.Dirichlet(0, n=2)),
        of(X, inside(lambda u: u.xx + 1), pinn.Dirichlet(0, "x_min", n=1), pinn.Neumann(0, "x_max", n=1)),
        of(X, inside(lambda u: u.xx + u), pinn.Neumann(1, n=2)),
        of(X, inside(lambda u: u.xx + 1), boundary=pinn.Hard(0)),
        of(X * T, inside(lambda u: u.t - u.xx), pinn.Dirichlet(0, n=8), SINE),
        of(X * T, inside(lambda u: u.t - u.xx), pinn.Neumann(0, n=8), pinn.Initial(1, n=8)),
        of(X * T, inside(lambda u: u.tt - u.xx), pinn.Dirichlet(0, n=8), pinn.Initial(0, rate=1, n=8)),
        of(X * T, inside(lambda u: u.t - u.xx), boundary=pinn.Hard(0), initial=pinn.Hard(0)),
        of(X * Y, inside(lambda u: u.x**2 + u.y**2 - 1), pinn.Dirichlet(0, n=16)),
        of(
            T,
            inside(lambda u, v: (u.t - v, v.t + u)),
            pinn.Initial(1, field="u"),
            pinn.Initial(0, field="v"),
            names="u v",
        ),
    ],
)
def test_what_is_determined_is_not_doubted(found):
    assert found == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (of(X, inside(lambda u: u.xx + 1)), ["at least 2 directions are free: "]),
        (of(X, inside(lambda u: u.xx + 1), pinn.Neumann(0, n=2)), ["at least 1 direction is free: u + constant is as"]),
        (of(X * Y, inside(lambda u: u.lap), pinn.Neumann(0, n=16)), ["direction is free: u + constant"]),
        (of(X * Y, inside(lambda u: u.x**2 + u.y**2 - 1)), ["direction is free: u + constant"]),
        (of(X * T, inside(lambda u: u.t - u.xx), pinn.Dirichlet(0, n=8)), ["u: no initial values, but 1 deriv"]),
        (of(X * T, inside(lambda u: u.tt - u.xx), pinn.Dirichlet(0, n=8), SINE), ["u: no initial rate, but 2 deriv"]),
        (of(X, inside(lambda x: x), pinn.Dirichlet(0, n=2)), ["interior: no field is in it"]),
        (
            of(X, inside(lambda u: u.xx), pinn.Dirichlet(0, field="u", n=2), names="u v"),
            ["v: no condition depends on it"],
        ),
        (of(X, inside(lambda u, v: u.xx + v.x), pinn.Dirichlet(0, field="u", n=2), names="u v"), ["v + constant"]),
        # a plate in its plane that may turn: u = -y, v = x
        (of(X * Y, inside(lambda u, v: (u.x, v.y, u.y + v.x)), names="u v"), ["at least 3 directions are free"]),
    ],
)
def test_what_is_open_is_told(found, words):
    assert len(found) == len(words)
    for text, part in zip(found, words, strict=True):
        assert part in text


def test_it_is_said_before_the_first_step(capsys):
    u = pinn.Field("u", X, NET)
    pinn.Problem(u, [inside(lambda u: u.xx + 1), pinn.Neumann(0, n=2)]).solve(pinn.Adam(1))
    assert "not determined: at least 1 direction is free: u + constant" in capsys.readouterr().err

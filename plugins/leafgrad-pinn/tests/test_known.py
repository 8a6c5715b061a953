"""Solutions in the equations of other problems."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn

CHANNEL = pinn.Box(x=(0, 2), y=(0, 1))


@pytest.fixture(scope="module")
def flow():
    """u = y (1 - y), of an equation that says so."""
    u = pinn.Field("u", CHANNEL, pinn.MLP(8, 1), boundary=pinn.Hard(0, on="y_min y_max"))
    return pinn.Problem(u, [pinn.Interior(lambda u: u.yy + 2, n=60), pinn.Neumann(0, "x_min x_max", n=20)]).solve(
        pinn.LevenbergMarquardt(15)
    )


@pytest.mark.slow
def test_heat_in_a_flow_that_was_solved_before(flow):
    """u c.x = c.yy + s, c = x sin(pi y): its own source, with the flow in it."""
    c = pinn.Field("c", CHANNEL, pinn.MLP(8, 1))

    def carried(c, u, x, y):
        wave = lg.sin(np.pi * y)
        return u * c.x - c.lap - y * (1 - y) * wave - np.pi**2 * x * wave + (u.y - 1 + 2 * y)

    sides = pinn.Dirichlet(lambda x, y: x * lg.sin(np.pi * y), n=60)
    sol = pinn.Problem(c, [pinn.Interior(carried, n=100), sides], known=flow).solve(pinn.LevenbergMarquardt(30))
    x, y = np.meshgrid(np.linspace(0, 2, 21), np.linspace(0, 1, 11))
    exact = x * np.sin(np.pi * y)
    error = np.linalg.norm(sol(x, y) - exact) / np.linalg.norm(exact)
    assert error < 5e-3
    assert sol.run.doubts == ""
    assert np.array_equal(flow(x, y), flow(x, y))
    assert all(p.requires_grad for p in flow.run.modules[0].parameters())


def test_what_cannot_be_known_is_refused(flow):
    wide = pinn.Box(x=(0, 3), y=(0, 1))
    c = pinn.Field("c", wide, pinn.MLP(4, 1))
    carried = pinn.Interior(lambda c, u: c.x - u, n=8)
    with pytest.raises(ValueError, match=r"interior: u of known=: expected points inside Box.* outside, the first at"):
        pinn.Problem(c, carried, known=flow)
    line = pinn.Field("c", pinn.Interval("x", 0, 1), pinn.MLP(4, 1))
    with pytest.raises(ValueError, match="known: expected a solution of coordinates among x, got one of y, too"):
        pinn.Problem(line, carried, known=flow)
    u = pinn.Field("u", CHANNEL, pinn.MLP(4, 1))
    with pytest.raises(ValueError, match=r"expected different names, .*got u, u"):
        pinn.Problem(u, pinn.Interior(lambda u: u.x, n=8), known=flow)
    c = pinn.Field("c", CHANNEL, pinn.MLP(4, 1))
    with pytest.raises(TypeError, match="known: expected a solution, got Field"):
        pinn.Problem(c, pinn.Interior(lambda c: c.x, n=8), known=u)
    with pytest.raises(ValueError, match="field: expected one of c, got 'u'"):
        pinn.Problem(c, [pinn.Interior(lambda c, u: c.x - u, n=8), pinn.Dirichlet(0, field="u")], known=flow)


def test_a_solution_is_known_inside_of_its_domain_alone():
    disk, square = pinn.Disk(1, x=0, y=0), pinn.Box(x=(-1, 1), y=(-1, 1))
    w = pinn.Field("w", disk - pinn.Disk(0.2, edge="hole", x=0, y=0), pinn.MLP(3, 1))
    ring = pinn.Problem(w, pinn.Interior(lambda w: w - 1, n=8)).solve(pinn.Adam(1))
    for domain, where in ((disk, {}), (square, {}), (square, {"of": disk})):
        c = pinn.Field("c", domain, pinn.MLP(3, 1))
        with pytest.raises(ValueError, match="interior: w of known=: expected points inside"):
            pinn.Problem(c, pinn.Interior(lambda c, w: c - w, n=8, **where), known=ring)
    half = pinn.Box(x=(0.3, 0.6), y=(0.3, 0.6))
    inside = pinn.Interior(lambda c, w: c.lap - w, n=8, of=half), pinn.Interior(lambda c: c.lap, n=8)
    pinn.Problem(c, [*inside, pinn.Dirichlet(0)], known=ring)
    with pytest.raises(ValueError, match="dirichlet: w of known=: expected points inside"):
        pinn.Problem(c, [*inside, pinn.Dirichlet(lambda w: w)], known=ring)
    with pytest.raises(ValueError, match="integral: w of known=: expected points inside"):
        pinn.Problem(c, [*inside, pinn.Integral(lambda c, w: c * w)], known=ring)

"""The ways to derivatives: the same numbers by each, and the cheapest is taken."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

import leafgrad
import leafgrad_pinn as pinn
from leafgrad import compile as compiled
from leafgrad.autograd import grad
from leafgrad.func import jacrev, vmap
from leafgrad_pinn import d, values
from leafgrad_pinn.planner import plan, sorted_out, spelled_out
from leafgrad_pinn.values import LAP

MODES = ("reverse", "forward", "jet")


def hard(x):
    return -leafgrad.sin(math.pi * x)


def moving(derivatives):
    """Space and time, with exact initial and boundary values."""
    domain = pinn.Interval("x", -1, 1) * pinn.Time("t", 0, 1)
    u = pinn.Field("u", domain, net=pinn.MLP(8, 2), initial=pinn.Hard(hard), boundary=pinn.Hard(0.0))
    equation = pinn.Interior(
        lambda u, x, t: u.t + u * u.x - u.xx + u.xxxx + u.xxt * x + d(u * u.x, x) + d(u.lap, t) + u.lap.lap, n=16
    )
    return pinn.Problem(u, [equation], derivatives=derivatives)


def shared(derivatives):
    """Fields on one network, in four dimensions."""
    domain = pinn.Box(x=(0, 1), y=(0, 1), z=(0, 1), w=(0, 1))
    net = pinn.ModifiedMLP(8, 2, activation="gelu")
    u, v = pinn.fields("u v", domain, net=net, scale={"u": 1.0, "v": 1.0})  # which are not looked for, then
    equation = pinn.Interior(lambda u, v: (u.lap + v.x, v.lap * u.xy - v.w, u.x.lap), n=16)
    return pinn.Problem([u, v], [equation, pinn.Neumann(0, field="u", n=8)], derivatives=derivatives)


def periodic(derivatives):
    """Embedded coordinates, and a field that does not have all of them."""
    domain = pinn.Interval("x", -1, 1, periodic=True) * pinn.Time("t", 0, 1)
    u = pinn.Field("u", domain, net=pinn.SIREN(8, 2, embed=pinn.Periodic(x=2)))
    s = pinn.Field("s", pinn.Interval("x", -1, 1), net=pinn.MLP(8, 1))
    return pinn.Problem(
        [u, s], [pinn.Interior(lambda u, s: u.tt - s * u.xxx + s.xx * u.xt, n=16)], derivatives=derivatives
    )


def residuals(problem, how=lambda f: f):
    """The residuals of all conditions, and gradients of their mean squares."""
    system = problem.system(0)
    parameters = list(system.parameters())
    found = []
    for index, batch in enumerate(problem.draw(np.random.default_rng(0))):
        points = {key: leafgrad.tensor(values) for key, values in batch.items()}

        def step(points, index=index):
            out = system(index, points)
            return out, grad((out**2).mean(), parameters, allow_unused=True)

        out, gradients = how(step)(points)
        found += [out.detach(), *[g for g in gradients if g is not None]]
    return found


@pytest.mark.every(3)
@pytest.mark.parametrize("mode", ["forward", "jet", "auto"])
@pytest.mark.parametrize("problem", [moving, shared, periodic])
def test_the_same_numbers_by_all_ways(problem, mode):
    expected = residuals(problem("reverse"))
    found = residuals(problem(mode))
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert (a - b).abs().max().item() <= 1e-12 * (1 + b.abs().max().item())


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_the_same_numbers_compiled(mode):
    for a, b in zip(residuals(shared(mode), compiled), residuals(shared("reverse")), strict=True):
        assert (a - b).abs().max().item() <= 1e-12 * (1 + b.abs().max().item())


@pytest.mark.parametrize("mode", MODES)
def test_jacobians_of_each_point(mode):
    """As Gauss-Newton has them."""
    domain = pinn.Box(x=(0, 1), y=(0, 1), z=(0, 1), w=(0, 1))
    u = pinn.Field("u", domain, net=pinn.MLP(4, 1))

    def rows(derivatives):
        system = pinn.Problem(u, [pinn.Interior(lambda u: u.lap + u.x, n=4)], derivatives=derivatives).system(0)
        weights = {name: p.detach() for name, p in system.named_parameters()}

        def residual(weights, point):
            return leafgrad.func.functional_call(system, weights, (0, {"points": point[None]}))[0, 0]

        points = leafgrad.tensor(np.random.default_rng(0).random((4, 4)))
        return vmap(jacrev(residual), in_dims=(None, 0))(weights, points)

    found, expected = rows(mode), rows("reverse")
    for name, block in expected.items():
        assert (found[name] - block).abs().max().item() < 1e-12


def chosen(asked, space):
    return plan([("u", tuple(path) if path != "lap" else ("lap",)) for path in asked], space).mode


def test_the_cheapest_is_taken():
    assert chosen([], "x") == "reverse"
    assert chosen(["t", "x", "xx"], "x") == "reverse"
    assert chosen(["t", "x", "xx", "xxxx"], "x") == "jet"
    assert chosen(["xxxxxx"], "x") == "jet"
    costs = plan([("u", ("x", "x"))], "x").costs
    assert set(costs) == set(MODES)
    assert plan([("u", ("x", "x"))], "x", "forward").mode == "forward"


def test_it_says_what_it_picked():
    text = str(shared("jet"))
    assert text.startswith("Problem of u, v\n  interior: u.lap, ")
    assert "by Taylor jets: about" in text
    assert "reverse passes" in text
    assert "by reverse passes: about" in str(shared("reverse"))
    assert "no derivatives" in str(
        pinn.Problem(pinn.Field("u", pinn.Interval("x", 0, 1), net=pinn.MLP(4, 1)), [pinn.Dirichlet(0)])
    )


def test_an_unknown_way_is_an_error():
    with pytest.raises(ValueError, match="derivatives: expected auto, reverse, forward, jet, got 'jets'"):
        moving("jets")


@pytest.mark.parametrize("mode", ["jet", "forward"])
def test_derivatives_are_made_in_one_order_whatever_was_asked_first(mode):
    asked = [("u", LAP), ("u", ("x", "y")), ("v", ("x", "x", "x")), ("v", ("t",)), ("v", ("x", "t")), ("u", ("x",))]
    orders = set()
    for some in permutations(asked, 6):
        chosen, calls = plan(some, ("x", "y"), mode), []
        for requests in (chosen.asked, spelled_out(chosen.asked, ("x", "y"))):
            orders_of, mixed, _ = sorted_out(requests, ("x", "y"))
            calls += [*requests, *orders_of, *mixed]
        orders.add(tuple(calls))
    assert len(orders) == 1


@pytest.mark.parametrize(
    ("equation", "told"),
    [
        (lambda u, x, t: u.t + d(u * u, x) + d(d(u.x * u, x), x, t), "d(..., x), d(..., x, t) by reverse passes"),
        (lambda u: u.lap.lap + u.lap.t, "u.lap.lap, u.lap.t by reverse passes"),
        (lambda u: u.x.lap, "u.xxx"),
        (lambda u, x: d(u * x, x), "  interior: d(..., x) by reverse passes"),
    ],
)
def test_derivatives_of_expressions_are_printed(equation, told):
    domain = pinn.Interval("x", -1, 1) * pinn.Time("t", 0, 1)
    u = pinn.Field("u", domain, net=pinn.MLP(4, 1))
    assert told in str(pinn.Problem(u, [pinn.Interior(equation, n=4)]))


def test_those_of_others_are_not_noted_afterwards():
    domain = pinn.Interval("x", -1, 1)
    u = pinn.Field("u", domain, net=pinn.MLP(4, 1))
    pinn.Problem(u, [pinn.Interior(lambda u, x: d(u * x, x), n=4)])
    with pytest.raises(TypeError, match="takes"):
        pinn.Problem(u, [pinn.Interior(lambda u, x: d(u * x, x) + lg_error(), n=4)])
    assert values.noting == []


def lg_error():
    raise TypeError("takes none")

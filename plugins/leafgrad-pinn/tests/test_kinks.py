"""Functions of one's own that jump, or have slopes that do, are told where a field would keep that unseen."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad import nn
from leafgrad_pinn.kinks import order_of_all

X = pinn.Interval("x", 0, 1)
ROD = X * pinn.Time("t", 0, 1)
GRID = np.linspace(0, 1, 201)
SECOND, FIRST = (lambda u: u.xx + 1), (lambda u: u.x - 1)


def told(domain, equation, net=None, **exact):
    """What making the problem warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        u = pinn.Field("u", domain, net or pinn.MLP(3, 1), **exact)
        pinn.Problem(u, equation if isinstance(equation, list) else [pinn.Interior(equation, n=16)])
    assert {w.filename for w in caught} <= {__file__}
    return [str(w.message) for w in caught]


def hat(x):
    return lg.where(x < 0.5, x, 1 - x)


def relu(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 20), nn.ReLU(), nn.Linear(20, outputs))


def smooth(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 20), nn.GELU(), nn.Linear(20, outputs))


TABLE = pinn.Table({"x": GRID}, np.sin(3 * GRID))
SMOOTH = pinn.Table({"x": GRID}, np.sin(3 * GRID), smooth=True)


@pytest.mark.parametrize(
    ("domain", "given", "words"),
    [
        (X, {"boundary": pinn.Hard(hat)}, "boundary=Hard(...) has a slope that jumps inside, as at {'x': 0.5}"),
        (
            X,
            {"boundary": pinn.Hard(TABLE)},
            "makes the slope of a Table continuous), or a soft condition, as Dirichlet",
        ),
        (ROD, {"initial": pinn.Hard(hat)}, "initial=Hard(...) has a slope that jumps inside, as at {'x': 0.5}"),
        (ROD, {"initial": pinn.Hard(0, rate=hat)}, "initial=Hard(..., rate=...) has a slope that jumps"),
        (X, {"net": pinn.MLP(3, 1, enrich=hat)}, "enrich has a slope that jumps inside, as at {'x': 0.5}"),
        (X, {"net": pinn.Own(relu)}, "net=Own(...) has a slope that jumps inside"),
        (ROD, {"net": pinn.Own(relu, enrich=lambda x: x)}, "take smooth activations, such as nn.Tanh in place of"),
    ],
)
def test_kinks_are_told_where_equations_are_of_second_order(domain, given, words):
    (found,) = told(domain, SECOND, **given)
    assert f"Field 'u': {words}" in found or words in found
    assert told(domain, FIRST, **given) == []


@pytest.mark.parametrize(
    "given",
    [
        {"boundary": pinn.Hard(SMOOTH)},
        {"boundary": pinn.Hard(lambda x: x)},
        {"net": pinn.MLP(3, 1, enrich=lambda x: lg.sqrt(x))},
        {"net": pinn.Own(smooth)},
        {"net": pinn.Own(lambda inputs, outputs: nn.Linear(inputs, outputs))},
    ],
)
def test_smooth_functions_are_not_told(given):
    assert told(X, SECOND, **given) == []


@pytest.mark.parametrize(
    "term",
    [lambda x, y: lg.log((x - 0.2) ** 2 + y * y), lambda x, y: lg.sqrt((x - 0.2) ** 2 + y * y)],
    ids=["source", "cone"],
)
def test_singular_points_are_what_enrich_is_for(term):
    disk = pinn.Disk(1, x=0, y=0)
    assert told(disk, lambda u: u.lap, net=pinn.MLP(3, 1, enrich=term)) == []
    assert len(told(disk, lambda u: u.lap, net=pinn.MLP(3, 1, enrich=lambda x, y: lg.abs(x - 0.2) * y))) == 1


def test_jumps_are_told_where_equations_are_of_first_order():
    assert "initial=Hard(...) jumps inside" in told(ROD, lambda u: u.t + u.x, initial=pinn.Hard(lambda x: x.round()))[0]
    assert told(X, lambda u: u - 1, boundary=pinn.Hard(lambda x: x.round())) == []
    bent = pinn.MLP(3, 1, enrich=lambda x: lg.relu(x - 0.5) ** 2)
    assert told(X, SECOND, net=bent) == []
    assert "enrich has a second derivative that jumps" in told(X, lambda u: u.xxx, net=bent)[0]
    held = pinn.Hard(lambda x: lg.relu(x - 0.5) ** 3)
    assert "boundary=Hard(...) has a third derivative that jumps" in told(X, lambda u: u.xxxx, boundary=held)[0]


def test_kinks_by_other_coordinates_than_the_second_derivatives_are_seen_by_the_equation():
    held = pinn.Hard(lambda t: lg.abs(t - 0.5))
    assert told(ROD, lambda u: u.t - u.xx, boundary=held) == []
    assert len(told(ROD, lambda u: u.tt - u.xx, boundary=held)) == 1


def test_kinks_are_legitimate_where_an_energy_is_least():
    energy = pinn.Energy(lambda u: u.x**2)
    assert told(X, [energy], net=pinn.Own(relu)) == []


def test_kinks_outside_of_a_part_are_none():
    whole = told(X, SECOND, boundary=pinn.Hard(lambda x: lg.abs(x - 0.7)), part=pinn.Interval("x", 0, 0.6))
    assert whole == []


def test_derivatives_of_fields_that_are_derivatives_count():
    square = pinn.Box(x=(-1, 1), y=(-1, 1))
    s = pinn.Field("s", square, pinn.MLP(3, 1, enrich=lambda x: lg.sin(x)))
    u = pinn.Derivative("u", s, "y")
    problem = pinn.Problem([s, u], [pinn.Interior(lambda u: u.xx + u.y, n=16)])
    assert [order_of_all(problem, problem.fields[0], name) for name in ("x", "y")] == [2, 2]


@pytest.mark.parametrize("kinked", [True, False])
def test_exact_values_in_a_shape_with_a_kink_warn(kinked):
    def function(x, y):
        return lg.sqrt(x * x + y * y) - 1 if kinked else x * x + y * y - 1

    shape = pinn.SignedDistance(function, x=(-1.5, 1.5), y=(-1.5, 1.5))
    found = told(shape * pinn.Time("t", 0, 1), lambda u: u.t - u.lap, boundary=pinn.Hard(0))
    assert len(found) == kinked
    assert told(shape, lambda u: u.lap) == []
    if kinked:
        assert "Field 'u': the function of its shape, by which Hard multiplies, has a slope that jumps" in found[0]
        assert "at {'x': 0.0, 'y': 0.0}" in found[0]


def test_exact_values_and_networks_of_many_coordinates_are_searched_along_lines():
    box = pinn.Box(**{f"x{k}": (0, 1) for k in range(5)})
    held = pinn.Hard(lambda x0, x1, x2, x3, x4: lg.abs(x0 - 0.3) + x1 * x2 * x3 * x4)
    assert "as at {'x0': 0.3}" in told(box, lambda u: u.lap, boundary=held)[0]
    assert len(told(box, lambda u: u.lap, net=pinn.Own(relu))) == 1


def test_the_trunk_of_an_operator_is_searched():
    family = X * pinn.GaussianField("f", length=0.4, sensors=9)
    net = pinn.DeepONet(4, 1, trunk=pinn.Own(relu))
    assert "net=Own(...) has a slope" in told(family, lambda u, f: u.xx - f, net=net)[0]


def step(x):
    return lg.where(x < 0.5, 1.0, 8.0)


@pytest.mark.parametrize(
    "equation",
    [
        lambda u, x: pinn.d(step(x) * u.x, x),
        lambda u, x: pinn.d(step(x) * u.xx, x, x) - 1,
        lambda u, x, t: u.t - pinn.d((x - t).sign() * u.x, x),
        lambda u, t: pinn.d(u + (u > 0) * 1.0, t) - u.xx,
    ],
    ids=["two materials", "beam", "moving", "enthalpy"],
)
def test_what_an_equation_differentiates_is_told_where_it_jumps(equation):
    (found,) = told(ROD, equation)
    assert "interior: what d(..., " in found
    assert "take a field for each, with part=..., and a Boundary(...)" in found


def test_a_thin_layer_at_an_edge_is_told():
    (found,) = told(X, lambda u, x: pinn.d(lg.where(x < 0.004, 0.1, 1.0) * u.x, x))
    assert "as at {'x': 0.004}" in found


@pytest.mark.parametrize(
    ("equation", "place"),
    [
        (lambda u, x: pinn.d((1 + x.abs()) * u.x, x), {}),
        (lambda u, x: pinn.d(u.abs() * u.x + lg.relu(u), x), {}),
        (lambda u, x: step(x) * u.xx + pinn.d(u * u, x), {}),
        (lambda u, x: pinn.d(u.x / u, x) + pinn.d(u**-2 * u.x, x), {}),
        (lambda u, x, t: u.t - pinn.d(step(t) * u.x, x), {}),
        (lambda u, x: pinn.d(step(x) * u.x, x), {"where": lambda x: x < 0.5}),
        (lambda u, x: pinn.d(step(x) * u.x, x), {"of": pinn.Interval("x", 0, 0.5)}),
        (lambda u, x: pinn.d(step(x) * u.x, x), {"points": {"x": GRID[:9], "t": GRID[:9]}}),
        (lambda u, x: pinn.d(u, u) - pinn.d(u, x), {}),
    ],
)
def test_what_an_equation_differentiates_may_have_kinks(equation, place):
    assert told(ROD, [pinn.Interior(equation, n=16, **place)]) == []

"""Jumps of functions and of their derivatives are found wherever they are, and nothing else is."""

from __future__ import annotations

import math

import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.jumps import Region, jump

SQUARE = pinn.Box(x=(-1, 1), y=(-1, 1))


def flat(function, size=1.5):
    return pinn.SignedDistance(function, x=(-size, size), y=(-size, size))


def kink(shape):
    """Where the slope of its own function jumps."""
    (part,), region = shape.written, Region(Domain(shape))
    found = [jump(region, part.level, name, shape.names, 1) for name in shape.names]
    return next((place for place in found if place), None)


@pytest.mark.parametrize(
    "shape",
    [
        flat(lambda x, y: lg.sqrt(x * x + y * y) - 1),
        flat(lambda x, y: lg.hypot(x - 0.137, y + 0.211) - 1),
        flat(lambda x, y: lg.maximum(lg.abs(x), lg.abs(y)) - 1),
        flat(lambda x, y: lg.abs(lg.sqrt(x * x + y * y) - 0.8) - 0.3),
        flat(lambda x, y: lg.minimum((x - 0.4) ** 2 + y * y - 0.5, (x + 0.4) ** 2 + y * y - 0.5)),
        flat(lambda x, y: x * x + y * y - 1 - 1e-3 * lg.abs(x - 0.3)),
        pinn.SignedDistance(lambda x: lg.abs(x) - 1, x=(-2, 2)),
        pinn.SignedDistance(lambda x, y, z: lg.sqrt(x * x + y * y + z * z) - 1, x=(-2, 2), y=(-2, 2), z=(-2, 2)),
        SQUARE - flat(lambda x, y: lg.maximum(lg.abs(x), lg.abs(y)) - 0.3, 0.5),
        SQUARE & flat(lambda x, y: lg.sqrt((x - 0.3) ** 2 + y * y) - 1, 2),
    ],
    ids=["cone", "aside", "square", "ring", "two disks", "slight", "interval", "ball", "hole", "part"],
)
def test_kinks_are_found(shape):
    place = kink(shape)
    assert place is not None
    assert shape.contains(lg.tensor([list(place.values())]).numpy()).all()


def test_kinks_are_found_of_what_is_nan_beyond_its_box(recwarn):
    for root in (lambda x: 0 * lg.sqrt(1.5 - x), lambda x: 0.1 * lg.sqrt(1.5 - x)):  # the second is steep at the box
        shape = flat(lambda x, y, root=root: lg.sqrt(x * x + y * y) - 1 + root(x))
        recwarn.clear()  # of the search for its edge
        assert kink(shape) is not None
        assert not recwarn.list


@pytest.mark.parametrize(
    "shape",
    [
        flat(lambda x, y: (x * x + y * y - 1) / 2),
        flat(lambda x, y: 1e-9 * (x * x + y * y - 1e-6), 2e-3),
        flat(lambda x, y: lg.sqrt(x * x + y * y + 1e-4) - 1),
        flat(lambda x, y: lg.tanh(30 * (x * x + y * y - 1))),
        flat(lambda x, y: x * x + y * y - 1 + 0.1 * lg.cos(40 * x)),
        flat(lambda x, y: x * x + y * y - 2 + lg.sqrt((1 - x * x) ** 2 + (1 - y * y) ** 2)),
        SQUARE - flat(lambda x, y: lg.sqrt(x * x + y * y) - 0.3, 0.5),
        flat(lambda x, y: x * x + y * y - 1) + pinn.Polygon([(0, 0), (2, 0.1), (1, 2)]),
    ],
    ids=["disk", "small", "bean", "steep", "wavy", "corners", "a cone in a hole", "a corner of another shape"],
)
def test_smooth_functions_have_none(shape):
    assert kink(shape) is None


def along_line(function, order, low=0.0, high=1.0):
    region = Region(Domain(pinn.Interval("x", low, high)))
    return jump(region, lambda columns: function(columns["x"]), "x", ["x"], order)


@pytest.mark.parametrize(
    ("function", "order"),
    [
        (lambda x: x + 1e-3 * (x > 0.3), 0),
        (lambda x: 300 + 1e-3 * (x > 0.3), 0),
        (lambda x: x.round(), 0),
        (lambda x: x + 1e-3 * lg.relu(x - 0.3), 1),
        (lambda x: lg.relu(x - 0.3) ** 2, 2),
    ],
)
def test_the_lowest_derivative_that_jumps_does(function, order):
    assert [along_line(function, k) is not None for k in range(order + 1)] == [False] * order + [True]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 5 + 0 * x,
        lambda x: lg.sin(x) ** 2 + lg.cos(x) ** 2,  # 1, but for rounding
        lambda x: lg.tanh(1e5 * (x - 0.3)),
        lambda x: lg.sin(1000 * x),
        lambda x: lg.sin(3 * x.float()).double(),
        lambda x: (x + 1.7e9) - 1.7e9,
        lambda x: lg.sqrt(x),  # steep at an end
        lambda x: lg.where(x < 0.5, x**3, x * x * x),
        lambda x: x.detach(),
        lambda x: 1 / (x - 2),
    ],
)
def test_steep_and_rounded_functions_have_no_jumps(function):
    assert along_line(function, 0) is along_line(function, 1) is None


def test_moments_of_any_origin_are_searched():
    assert along_line(lambda x: lg.sin(x - 1.7e9), 1, 1.7e9, 1.7e9 + 1) is None
    place = along_line(lambda x: (x - 1.7e9 - 0.3).abs(), 1, 1.7e9, 1.7e9 + 1)
    assert place is not None
    assert math.isclose(place["x"], 1.7e9 + 0.3, abs_tol=1e-3, rel_tol=0)


def test_a_region_is_without_the_ends_of_its_coordinates():
    region = Region(Domain(SQUARE, pinn.Time("t", 0, 1)))
    points = lg.tensor([[0.0, 0.0, 0.5], [0.999, 0.0, 0.5], [0.0, 0.0, 0.001], [0.0, 0.0, 2.0]]).double().numpy()
    assert region.inside(points).tolist() == [True, False, False, False]
    assert region.names(["y"]) == ["y"]
    assert Region(Domain(pinn.Disk(1, x=0, y=0), pinn.Time("t", 0, 1))).names(["y", "t"]) == ["x", "y", "t"]

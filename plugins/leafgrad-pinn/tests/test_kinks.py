"""Kinks inside of shapes, which fields with exact values would keep, are found, and nothing else is."""

from __future__ import annotations

import warnings

import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.kinks import kink

SQUARE = pinn.Box(x=(-1, 1), y=(-1, 1))


def flat(function, size=1.5):
    return pinn.SignedDistance(function, x=(-size, size), y=(-size, size))


@pytest.mark.parametrize(
    "shape",
    [
        flat(lambda x, y: lg.sqrt(x * x + y * y) - 1),
        flat(lambda x, y: lg.hypot(x - 0.137, y + 0.211) - 1),
        flat(lambda x, y: lg.maximum(lg.abs(x), lg.abs(y)) - 1),
        flat(lambda x, y: lg.abs(lg.sqrt(x * x + y * y) - 0.8) - 0.3),
        flat(lambda x, y: lg.minimum((x - 0.4) ** 2 + y * y - 0.5, (x + 0.4) ** 2 + y * y - 0.5)),
        pinn.SignedDistance(lambda x: lg.abs(x) - 1, x=(-2, 2)),
        pinn.SignedDistance(lambda x, y, z: lg.sqrt(x * x + y * y + z * z) - 1, x=(-2, 2), y=(-2, 2), z=(-2, 2)),
        SQUARE - flat(lambda x, y: lg.maximum(lg.abs(x), lg.abs(y)) - 0.3, 0.5),
        SQUARE & flat(lambda x, y: lg.sqrt((x - 0.3) ** 2 + y * y) - 1, 2),
    ],
    ids=["cone", "aside", "square", "ring", "two disks", "interval", "ball", "hole", "part"],
)
def test_kinks_are_found(shape):
    (part,) = shape.written
    place = kink(shape, part)
    assert place is not None
    assert shape.contains(place[None]).all()


def test_kinks_are_found_of_what_is_nan_beyond_its_box(recwarn):
    for root in (lambda x: 0 * lg.sqrt(1.5 - x), lambda x: 0.1 * lg.sqrt(1.5 - x)):  # the second is steep at the box
        shape = flat(lambda x, y, root=root: lg.sqrt(x * x + y * y) - 1 + root(x))
        recwarn.clear()  # of the search for its edge
        assert kink(shape, shape) is not None
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
    (part,) = shape.written
    assert kink(shape, part) is None


@pytest.mark.parametrize("kinked", [True, False])
def test_exact_values_in_a_shape_with_a_kink_warn(kinked):
    shape = flat(lambda x, y: lg.sqrt(x * x + y * y) - 1 if kinked else x * x + y * y - 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pinn.Field("u", shape * pinn.Time("t", 0, 1), pinn.MLP(3, 1), boundary=pinn.Hard(0))
        pinn.Field("v", shape, pinn.MLP(3, 1))
    assert [w.filename for w in caught] == [__file__] * kinked
    if kinked:
        assert "Field 'u': Hard multiplies by the function of a shape, whose slope jumps inside" in str(
            caught[0].message
        )
        assert "at {'x': 0.0, 'y': 0.0}" in str(caught[0].message)

"""Fields that are derivatives of others."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.planner import MODES
from leafgrad_pinn.system import on_device

SQUARE = pinn.Box(x=(0, 1), y=(0, 2))


def stream(**options):
    s = pinn.Field("s", SQUARE, pinn.MLP(6, 2), **options)
    return s, pinn.Derivative("u", s, "y"), pinn.Derivative("v", s, "x", factor=-1)


def test_they_are_the_derivatives_in_solutions_that_were_saved_too(tmp_path):
    s, u, v = stream(boundary=pinn.Hard(lambda x, y: lg.sin(x) * y, clamped=True))
    rate = pinn.Derivative("rate", u, "x", factor=3)
    sol = pinn.Problem([s, u, v, rate], [pinn.Interior(lambda s: s - 1, n=16)]).solve(pinn.Adam(2))
    x, y = np.random.default_rng(0).uniform([[0.1], [0.1]], [[0.9], [1.9]], (2, 20))
    h = 1e-4

    def around(name, dx, dy):
        return (sol(x + dx, y + dy)[name] - sol(x - dx, y - dy)[name]) / (2 * h)

    found = sol(x, y)
    assert np.allclose(found["u"], around("s", 0, h), atol=1e-6)
    assert np.allclose(found["v"], -around("s", h, 0), atol=1e-6)
    assert np.allclose(found["rate"], 3 * around("u", h, 0), atol=1e-6)
    sol.save(tmp_path / "s.safetensors")
    loaded = pinn.Solution.load(tmp_path / "s.safetensors")(x, y)
    assert all(np.array_equal(loaded[name], found[name]) for name in ("s", "u", "v", "rate"))


@pytest.mark.parametrize("mode", MODES)
def test_equations_have_them_and_their_own_derivatives(mode):
    s, u, v = stream()

    def apart(s, u, v):
        return u - s.y, v + s.x, u.x + v.y, u.yy - s.yyy, v.lap + s.lap.x

    problem = pinn.Problem([s, u, v], [pinn.Interior(apart, n=32)], derivatives=mode)
    (batch,) = on_device(problem.draw(np.random.default_rng(0)), lg.float64, "cpu")
    assert float(problem.system(1)(0, batch).detach().abs().max()) < 1e-12


def test_data_of_them_train_the_field():
    s = pinn.Field("s", SQUARE, pinn.SIREN(40, 1, frequency=4))
    u, v = pinn.Derivative("u", s, "y"), pinn.Derivative("v", s, "x", factor=-1)
    x, y = np.random.default_rng(0).uniform([[0], [0]], [[1], [2]], (2, 60))
    data = pinn.Data({"x": x, "y": y}, {"u": x * y, "v": 0.5 - 0.5 * y * y})
    flow = pinn.references.exact(SQUARE, u=lambda x, y: x * y, v=lambda x, y: 0.5 - 0.5 * y * y)
    sol = pinn.Problem([s, u, v], data).solve(pinn.LeastSquares(3), reference=flow)
    assert max(error["l2"] for error in sol.run.errors.values()) < 1e-3


def test_mistakes():
    s = pinn.Field("s", SQUARE, pinn.MLP(4, 1))
    with pytest.raises(ValueError, match="coordinate: expected one of x, y, got 't'"):
        pinn.Derivative("u", s, "t")
    with pytest.raises(TypeError, match="factor"):
        pinn.Derivative("u", s, "x", factor="2")
    with pytest.raises(TypeError, match="of: expected a Field, got ComplexField"):
        pinn.Derivative("u", pinn.ComplexField("h", SQUARE, net=pinn.MLP(4, 1)), "x")
    pinn.Derivative("u", s, "x")
    with pytest.raises(ValueError, match="shares its network with u: add them"):
        pinn.Problem(s, [pinn.Interior(lambda s: s.lap, n=8)])

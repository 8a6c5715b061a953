"""Derivatives by name, against closed forms."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import compile as compiled
from leafgrad.func import jacfwd, jacrev, vmap
from leafgrad_pinn import d
from leafgrad_pinn.values import Points, split


def field(function, **columns):
    """The points and the value of a function of them."""
    leaves = {name: c.detach() for name, c in columns.items()}
    for leaf in leaves.values():
        leaf.requires_grad = True  # requires_grad_() is not for functions that are transformed
    points = Points(leaves, [name for name in columns if name != "t"])
    return points, points.value(function(**leaves), tuple(columns))


@pytest.fixture
def xt():
    return {name: leafgrad.linspace(low, 1.0, 7, dtype=leafgrad.float64) for name, low in {"x": -1, "t": 0}.items()}


def near(a, b):
    return (a - b).abs().max().item() < 1e-12


def test_derivatives(xt):
    x, t = xt["x"], xt["t"]
    _, u = field(lambda x, t: leafgrad.sin(2 * x) * leafgrad.exp(-t), **xt)
    value, slope = leafgrad.sin(2 * x) * leafgrad.exp(-t), 2 * leafgrad.cos(2 * x) * leafgrad.exp(-t)
    assert near(u, value)
    assert near(u.x, slope)
    assert near(u.t, -value)
    assert near(u.xx, -4 * value)
    assert near(u.xt, -slope)
    assert near(u.xxxx, 16 * value)
    assert near(u.lap, -4 * value)
    assert near(u.lap.lap, 16 * value)
    assert near(u.lap.t, 4 * value)
    assert near(x * u + leafgrad.sin(u), x * value + leafgrad.sin(value))


def test_a_derivative_is_computed_once(xt):
    _, u = field(lambda x, t: x * t, **xt)
    assert u.x is u.x
    assert u.xt is u.tx
    assert u.x.t is u.xt


def test_derivatives_of_expressions(xt):
    x = xt["x"]
    points, u = field(lambda x, t: x**3 + 0 * t, **xt)
    assert near(d(u * u, points.columns["x"]), 6 * x**5)
    assert near(d(u * u, points.columns["x"], points.columns["x"]), 30 * x**4)


def test_what_does_not_depend_has_derivative_zero(xt):
    _, u = field(lambda x, t: 3 * x, **xt)
    assert near(u.xx, 0 * xt["x"])
    assert near(u.t, 0 * xt["x"])
    _, v = field(lambda x, t: leafgrad.ones_like(x), **xt)
    assert near(v.x, 0 * xt["x"])


def test_normals(xt):
    leaves = {name: c.requires_grad_() for name, c in xt.items()}
    points = Points(leaves, ["x"], {"x": leafgrad.full((7,), -1.0, dtype=leafgrad.float64)})
    assert near(points.value(leaves["x"] ** 2, ("x", "t")).n, -2 * xt["x"])


def test_errors_name_what_there_is(xt):
    points, u = field(lambda x, t: x * t, **xt)
    with pytest.raises(AttributeError, match=r"u\.y: expected a derivative by x, t, lap, n"):
        _ = u.y
    with pytest.raises(AttributeError, match="normals only on edges"):
        _ = u.n
    with pytest.raises(AttributeError, match="depends on x alone, not on t"):
        _ = points.value(points.columns["x"] ** 2, ("x",)).xt
    with pytest.raises(ValueError, match=r"d: expected a coordinate that requires grad.* got one that does not"):
        d(xt["x"] ** 3, xt["x"])
    with leafgrad.no_grad(), pytest.raises(ValueError, match=r"d: expected .* got gradients that are switched off"):
        d(points.columns["x"] ** 3, points.columns["x"])


@pytest.mark.parametrize("name", ["t", "T", "H", "mT", "mH"])
def test_transposes_are_coordinates_that_there_are_not(name, xt):
    _, u = field(lambda x: x**2, x=xt["x"])
    with pytest.raises(AttributeError, match=rf"u\.{name}: expected a derivative by x, lap, n"):
        getattr(u, name)
    assert near(u.sin(), leafgrad.sin(xt["x"] ** 2))
    _, u = field(lambda **columns: columns[name] ** 2, **{name: xt["x"]})
    assert near(getattr(u, name), 2 * xt["x"])


def test_names_of_several_letters():
    assert split("x1x1x2", ("x1", "x2")) == ("x1", "x1", "x2")
    assert split("rrho", ("r", "rho")) == ("r", "rho")
    assert split("tx", ("x", "t")) == ("x", "t")
    assert split("xy", ("x",)) is None


@pytest.mark.compiled
def test_coordinates_that_spell_something():
    some = {name: leafgrad.linspace(0, 1, 5, dtype=leafgrad.float64) for name in ("la", "p", "s", "u", "m")}
    la, p, s, m = (some[name] for name in ("la", "p", "s", "m"))
    _, u = field(lambda la, p: la**2 * p + la * p**3, la=la, p=p)
    assert near(u.lap, 2 * p + 6 * la * p)
    assert near(u.pla, 2 * la + 3 * p**2)
    _, u = field(lambda s, u, m: s**2 * m, **{name: some[name] for name in "sum"})
    assert near(u.lap, 2 * m)
    assert near(u.sm, 2 * s)


def test_inside_vmap_and_compiled_programs(xt):
    def residual(w, x, t):
        points, u = field(lambda x, t: leafgrad.sin(w * x) * leafgrad.exp(-t), x=x, t=t)
        result = u.t + x * u * u.x - u.xx + leafgrad.sin(u)
        points.forget()
        return result

    def by_hand(w, x, t):
        u, ux = leafgrad.sin(w * x) * leafgrad.exp(-t), w * leafgrad.cos(w * x) * leafgrad.exp(-t)
        return -u + x * u * ux + w * w * u + leafgrad.sin(u)

    w = leafgrad.tensor(2.0, dtype=leafgrad.float64)
    rows = vmap(jacrev(lambda w, x, t: residual(w, x[None], t[None])[0]), in_dims=(None, 0, 0))
    fast, fast_rows = compiled(residual), compiled(rows)
    for _ in range(4):
        assert near(fast(w, xt["x"], xt["t"]), by_hand(w, xt["x"], xt["t"]))
        expected = jacfwd(lambda w: by_hand(w, xt["x"], xt["t"]))(w)
        assert near(fast_rows(w, xt["x"], xt["t"]), expected)

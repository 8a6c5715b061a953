"""References against closed forms, other methods, and their own estimates."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad_pinn as pinn
from leafgrad_pinn import references
from leafgrad_pinn.references.etdrk4 import Spectral, solve
from leafgrad_pinn.references.periodic import grid
from leafgrad_pinn.references.reference import relative_l2


def test_etdrk4_is_of_fourth_order():
    x, k = grid(0, 2 * np.pi, 32)

    def error(steps):  # u_t = u_xx - u^2 + f with u = 2 + sin x exp(-t) has no closed f here: compare with many steps
        equation = Spectral(1 + 0.5 * np.sin(x), -(k**2), lambda v: np.fft.fft(-(np.fft.ifft(v).real ** 2)))
        return solve(equation, 1.0, steps, steps)[-1].real

    best = error(640)
    ratio = np.abs(error(20) - best).max() / np.abs(error(40) - best).max()
    assert 13 < ratio < 19


def test_etdrk4_solves_a_linear_equation_exactly():
    x, k = grid(0, 2 * np.pi, 16)
    u = solve(Spectral(np.sin(3 * x), -(k**2), np.zeros_like), 0.5, 5, 5)[-1]
    assert np.abs(u - np.sin(3 * x) * np.exp(-4.5)).max() < 1e-13


@pytest.mark.slow
def test_burgers_satisfies_its_equation():
    nu = 0.05
    found = references.burgers(nu, nx=201, nt=201)
    u, x, t = found.fields["u"], found.axes["x"], found.axes["t"]
    h, k = x[1] - x[0], t[1] - t[0]
    u_t = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * k)
    u_x = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * h)
    u_xx = (u[2:, 1:-1] - 2 * u[1:-1, 1:-1] + u[:-2, 1:-1]) / h**2
    residual = u_t + u[1:-1, 1:-1] * u_x - nu * u_xx
    assert np.abs(residual).max() < 8e-3  # of the differences
    assert np.abs(u[[0, -1]]).max() < 1e-12
    assert np.abs(u[:, 0] + np.sin(np.pi * x)).max() < 1e-12


def test_the_floor_of_burgers_rises_where_its_quadrature_fails():
    assert references.burgers(nx=65, nt=11).floor["u"] < 1e-13
    assert references.burgers(1e-4, nx=65, nt=11).floor["u"] > 1e-8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "floor"),
    [
        (lambda modes: references.allen_cahn(modes=modes, nx=64, nt=5), 1e-3),
        (lambda modes: references.kdv(modes=modes, nx=64, nt=5), 1e-2),
        (lambda modes: references.schroedinger(modes=modes, nx=64, nt=5), 1e-3),
        (lambda modes: references.kuramoto_sivashinsky(modes=modes, nx=64, nt=5), 1e-4),
    ],
)
def test_the_floor_is_no_less_than_the_error(make, floor):
    coarse, fine = make(256), make(512)
    for name, estimate in coarse.floor.items():
        error = relative_l2(coarse.fields[name], fine.fields[name])
        assert error <= estimate < floor
        assert fine.floor[name] <= estimate


def test_numbers_of_modes_and_points_must_fit():
    with pytest.raises(ValueError, match="expected multiples of 512"):
        references.allen_cahn(modes=600)


def test_exact_is_nan_outside():
    found = references.exact(pinn.Disk(1.0, x=0, y=0), u=lambda x, y: x + y, points=21)
    assert np.isnan(found.fields["u"][0, 0])
    assert found.fields["u"][10, 20] == 1.0
    assert found.points().shape == (441, 2)
    with pytest.raises(ValueError, match="exact: u: there is no field or coordinate 'z'"):
        references.exact(pinn.Disk(1.0, x=0, y=0), u=lambda z: z)


def test_the_l_shape_has_its_published_energy():
    found = references.l_shape(terms=40, points=161)
    assert found.floor["u"] < 1e-8
    u = np.nan_to_num(found.fields["u"])
    sums = [u[::every, ::every].sum() * (2 * every / 160) ** 2 for every in (2, 1)]
    assert abs(sums[1] - 0.2140758) < 5e-5  # of many adaptive finite elements; the sum is of low order at the corner


def test_the_l_shape_satisfies_its_equation():
    found = references.l_shape(terms=40, points=161)
    u, h = found.fields["u"], 2 / 160
    lap = (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]) / h**2
    x, y = np.meshgrid(found.axes["x"][1:-1], found.axes["y"][1:-1], indexing="ij")
    corners = [(0, 0), (0, -1), (-1, -1), (-1, 1), (1, 1), (1, 0)]
    away = np.isfinite(lap) & (np.min([np.hypot(x - a, y - b) for a, b in corners], axis=0) > 0.3)
    assert np.abs(lap[away] + 1).max() < 1e-3


def test_the_bound_of_the_l_shape_holds():
    coarse, fine = (references.l_shape(terms=terms, points=41) for terms in (15, 50))
    good = np.isfinite(fine.fields["u"])
    error = relative_l2(coarse.fields["u"][good], fine.fields["u"][good])
    assert error <= coarse.floor["u"] < 1e-4


@pytest.mark.parametrize(("re", "centre"), [(100, (-0.20915, 0.05754)), (400, (-0.11506, 0.05205))])
def test_the_cavity_has_published_velocities_at_its_centre(re, centre):
    found = references.cavity(re, cells=64, points=17)
    for value, truth, name in zip((found.fields["u"][8, 8], found.fields["v"][8, 8]), centre, "uv", strict=True):
        assert abs(value - truth) < 3 * found.floor[name] * np.abs(found.fields[name]).max()
        assert found.floor[name] < 0.04


def test_the_floor_of_the_cavity_is_no_less_than_its_error():
    coarse, fine = (references.cavity(100, cells=cells, points=9) for cells in (32, 64))
    for name, estimate in coarse.floor.items():
        assert relative_l2(coarse.fields[name], fine.fields[name]) < estimate


def test_trajectories_keep_what_their_equations_keep():
    found = references.lotka_volterra()
    u, v = found.fields["u"], found.fields["v"]
    kept = u - 3 * np.log(u) + v - 1.5 * np.log(v)
    assert np.ptp(kept) < 1e-9
    found = references.lorenz(0.0, 0.0, 2.0, start=(0, 1, 1), stop=1.0)  # x = 0: y and z decay
    assert np.abs(found.fields["y"] - np.exp(-found.axes["t"])).max() < 1e-11
    assert np.abs(found.fields["z"] - np.exp(-2 * found.axes["t"])).max() < 1e-11


def test_numbers_as_closed_forms():
    found = references.exact(pinn.Interval("x", 0, 1), u=3, points=5)
    assert np.array_equal(found.fields["u"], np.full(5, 3.0))
    with pytest.raises(TypeError, match="exact: u: expected a number or a function, got str"):
        references.exact(pinn.Interval("x", 0, 1), u="x")
    with pytest.raises(TypeError, match="scattered: u: expected a function of all points, got 3"):
        references.scattered(pinn.Interval("x", 0, 1), u=3)


def test_scattered_points():
    cube = pinn.Box(**{f"x{i}": (0, 1) for i in range(70)})
    found = references.scattered(cube, points=50, u=lambda points: (points**2).sum(1))
    assert found.points().shape == (50, 70)
    assert np.allclose((found.points() ** 2).sum(1), found.values("u", cube.names))
    with pytest.raises(ValueError, match=r"expected fields of shape \(50,\), got u \(\)"):
        references.scattered(cube, points=50, u=lambda points: points.sum())

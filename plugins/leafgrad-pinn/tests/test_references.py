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
    with pytest.raises(ValueError, match="no coordinate z"):
        references.exact(pinn.Disk(1.0, x=0, y=0), u=lambda z: z)

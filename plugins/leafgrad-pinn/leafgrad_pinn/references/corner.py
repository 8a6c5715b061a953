"""Poisson's equation in the L-shape, whose inner corner makes the gradient infinite."""

from __future__ import annotations

import time

import numpy as np

from leafgrad_pinn.references.reference import Reference
from leafgrad_pinn.sampling import Array

CORNERS = np.array([0 - 1j, -1 - 1j, -1 + 1j, 1 + 1j, 1 + 0j])  # of 90 degrees each
SIDES = np.array([[0 - 1j, -1 - 1j], [-1 - 1j, -1 + 1j], [-1 + 1j, 1 + 1j], [1 + 1j, 1 + 0j]])


def l_shape(*, terms: int = 40, points: int = 101, field: str = "u") -> Reference:
    """-u_xx - u_yy = 1 in `LShape`, u = 0 on its edges, on a grid of [-1, 1]^2.

    u is a particular solution and harmonic functions, all zero on the two edges of the inner corner: r^(2k/3)
    sin(2 k theta / 3), and some with a logarithm at each of the other corners; least squares make it zero on the other
    edges, too. By the maximum principle the error is nowhere larger than the largest boundary value, from which the
    floor follows: it is a bound, not an estimate.

    Args:
        terms: how many powers r^(2k/3); at the other corners a fifth of that.
        points: of each axis.
        field: its name.

    Source: Fox, Henrici and Moler (1967), SIAM J. Numer. Anal. 4, 89; Betcke and Trefethen (2005), SIAM Rev. 47, 469.
    """
    begin = time.perf_counter()
    s = (1 - np.cos(np.pi * (np.arange(400) + 0.5) / 400)) / 2  # denser at the corners
    border = (SIDES[:, :1] + s * (SIDES[:, 1:] - SIDES[:, :1])).ravel()
    basis = harmonic(border, terms)
    scale = np.abs(basis).max(0)
    weights = np.linalg.lstsq(basis / scale, -particular(border), rcond=1e-14)[0] / scale

    def value(z: Array) -> Array:
        return np.asarray(particular(z) + harmonic(z, terms) @ weights)

    axis = np.linspace(-1, 1, points)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    inside = (x <= 0) | (y >= 0)
    u = np.full(x.shape, np.nan)
    u[inside] = value(x[inside] + 1j * y[inside])
    seconds = time.perf_counter() - begin
    t = np.linspace(0, 1, 3001)
    edges = np.concatenate([(SIDES[:, :1] + t * (SIDES[:, 1:] - SIDES[:, :1])).ravel(), 1j * -t, t + 0j])
    bound = float(np.abs(value(edges)).max()) * np.sqrt(inside.sum())
    floor = bound / float(np.linalg.norm(u[inside]))
    return Reference(
        f"particular solutions, {basis.shape[1]} terms", {"x": axis, "y": axis}, {field: u}, {field: floor}, seconds
    )


def polar(z: Array) -> tuple[Array, Array]:
    """Radius and angle from the edge y = 0, between 0 and 3 pi / 2."""
    return np.abs(z), np.angle(z * np.exp(-0.75j * np.pi)) + 0.75 * np.pi


def particular(z: Array) -> Array:
    """A solution that is zero on both edges of the inner corner. (n,) -> (n,)"""
    r, theta = polar(z)
    log = np.log(np.where(r > 0, r, 1))
    resonant = log * np.sin(2 * theta) + theta * np.cos(2 * theta)
    return np.asarray(r**2 * ((np.cos(2 * theta) - 1) / 4 - resonant / (3 * np.pi)))


def harmonic(z: Array, terms: int) -> Array:
    """Harmonic functions that are zero on both edges of the inner corner: (n,) -> (n, m).

    w = z^(2/3) takes these edges to the real axis: Im w^k is zero there, and so is g(w) - g(conj w) for any g.
    """
    r, theta = polar(z)
    w = r ** (2 / 3) * np.exp(2j / 3 * theta)
    radii, angles = polar(CORNERS)
    columns = [(w[:, None] ** np.arange(1, terms + 1)).imag]
    for corner in radii ** (2 / 3) * np.exp(2j / 3 * angles):
        for k in range(2, 2 + terms // 5):
            gap = branch(w / corner - 1, k) - branch(w.conj() / corner - 1, k)
            columns.append(gap.imag[:, None])
            if abs(corner.imag) > 1e-9:  # else the real part is zero
                columns.append(gap.real[:, None])
    return np.concatenate(columns, 1)


def branch(w: Array, k: int) -> Array:
    """w^k log w, its cut along the positive numbers, which lie outside the domain. (n,), complex -> (n,)"""
    return np.asarray(w**k * np.log(np.where(w == 0, 1, -w)))

"""The lid-driven cavity, by finite differences."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from leafgrad_pinn.references.reference import EPS, Reference, relative_l2
from leafgrad_pinn.sampling import Array

NEWTON = 20  # steps at most; some six are enough


def cavity(re: float = 100, *, cells: int = 128, points: int = 33, fields: tuple[str, str] = ("u", "v")) -> Reference:
    """Velocities of the steady flow in [0, 1]^2 whose lid, y = 1, moves with u = 1, at Reynolds number ``re``.

    The stream function s, u = s_y and v = -s_x, satisfies s_y (lap s)_x - s_x (lap s)_y = lap lap s / re; central
    differences on two grids, Newton's method with sparse LU, and Richardson's extrapolation. The floor is what the
    extrapolation changes from one pair of grids to the next coarser one, a third of it: the order, two, falls where
    the lid meets the walls, and is not assumed for the estimate.

    Args:
        re: the Reynolds number.
        cells: of the finest grid, along each axis; a multiple of four times points - 1.
        points: of each axis of the result.
        fields: the names of u and v.
    """
    if cells % (4 * (points - 1)):
        raise ValueError(f"cells: expected a multiple of {4 * (points - 1)}, four times points - 1, got {cells}")

    def values(n: int) -> Array:
        every = n // (points - 1)
        return velocities(stream(re, n))[:, ::every, ::every]

    begin = time.perf_counter()
    fine, middle = values(cells), values(cells // 2)
    best = fine + (fine - middle) / 3
    seconds = time.perf_counter() - begin
    before = middle + (middle - values(cells // 4)) / 3
    floor = {name: max(EPS, relative_l2(b, f) / 3) for name, b, f in zip(fields, before, best, strict=True)}
    axis = np.linspace(0, 1, points)
    found = dict(zip(fields, best, strict=True))
    return Reference(f"differences, {cells} and {cells // 2} cells", {"x": axis, "y": axis}, found, floor, seconds)


def stream(re: float, n: int) -> Array:
    """The stream function at the inner nodes, (n - 1, n - 1), x first; ArithmeticError if Newton's method fails."""
    from scipy import sparse  # slow to import
    from scipy.sparse.linalg import splu

    h, m = 1 / n, n - 1
    ends = sparse.csr_matrix(([-1.0, 1.0], ([0, m - 1], [0, m - 1])), (m, m))
    one, first = sparse.identity(m), banded([-1.0, 0.0, 1.0], m) / (2 * h)
    second = banded([1.0, -2.0, 1.0], m) / h**2
    third = first @ second + ends / h**3  # at walls s is zero, and one step behind them what it is one step before
    fourth = second @ second + 2 * ends @ ends / h**4
    d_x, d_y = sparse.kron(first, one), sparse.kron(one, first)
    lap_x = sparse.kron(third, one) + sparse.kron(first, second)
    lap_y = sparse.kron(one, third) + sparse.kron(second, first)
    lap_lap = sparse.kron(fourth, one) + sparse.kron(one, fourth) + 2 * sparse.kron(second, second)
    s, lid = np.zeros(m * m), np.zeros(m * m)
    lid[m - 1 :: m] = 2 * h  # more, behind the lid
    for _ in range(NEWTON):
        u, v = d_y @ s, -d_x @ s
        along, across = lap_x @ s, lap_y @ s + lid / (2 * h**3)
        residual = u * along + v * across - (lap_lap @ s + lid / h**4) / re
        jacobian = diagonal(along) @ d_y + diagonal(u) @ lap_x - diagonal(across) @ d_x + diagonal(v) @ lap_y
        step = splu(sparse.csc_matrix(jacobian - lap_lap / re)).solve(residual)
        s = s - step
        if np.abs(step).max() < 1e-10 * np.abs(s).max():
            return np.asarray(s.reshape(m, m))
    raise ArithmeticError(f"cavity: Newton's method did not converge in {NEWTON} steps at re={re}, {n} cells")


def banded(stencil: list[float], m: int) -> Any:
    """A matrix (m, m) of three diagonals."""
    from scipy import sparse

    return sparse.diags(stencil, [-1, 0, 1], shape=(m, m), format="csr")


def diagonal(values: Array) -> Any:
    """A diagonal matrix."""
    from scipy import sparse

    return sparse.diags(values, format="csr")


def velocities(s: Array) -> Array:
    """u and v at all nodes: (2, n + 1, n + 1)."""
    n = len(s) + 1
    s = np.pad(s, 1)
    u, v = np.zeros_like(s), np.zeros_like(s)
    u[:, -1] = 1
    u[1:-1, 1:-1] = (s[1:-1, 2:] - s[1:-1, :-2]) * n / 2
    v[1:-1, 1:-1] = -(s[2:, 1:-1] - s[:-2, 1:-1]) * n / 2
    return np.stack([u, v])

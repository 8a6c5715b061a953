"""Solutions in closed form."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from leafgrad_pinn.callables import Named
from leafgrad_pinn.domains import Domain, as_domain
from leafgrad_pinn.references.reference import EPS, Reference, relative_l2
from leafgrad_pinn.sampling import Array, reals


def scattered(domain: Any, *, points: int = 10000, **fields: Callable[[Array], Array]) -> Reference:
    """Closed forms at points drawn at random, for domains of many dimensions.

    Args:
        domain: a shape, a time, or ``shape * time``.
        points: how many; always the same ones.
        fields: for each field a function of all points at once, (n, d) -> (n,).
    """
    space: Domain = as_domain(domain)
    begin = time.perf_counter()
    rows = space.interior(points, "uniform", np.random.default_rng(0))
    if wrong := [name for name, function in fields.items() if not callable(function)]:
        raise TypeError(f"scattered: {wrong[0]}: expected a function of all points, got {fields[wrong[0]]!r}")
    values = {name: np.asarray(function(rows)) for name, function in fields.items()}
    if wrong := [f"{name} {v.shape}" for name, v in values.items() if v.shape != (points,)]:
        raise ValueError(f"scattered: expected fields of shape ({points},), got {', '.join(wrong)}")
    axes = dict(zip(space.names, rows.T.copy(), strict=True))
    return Reference("closed form", axes, values, dict.fromkeys(fields, EPS), time.perf_counter() - begin, grid=False)


def exact(domain: Any, *, points: int | Mapping[str, int] = 101, **fields: Callable[..., Array] | float) -> Reference:
    """Closed forms on a grid of the domain's bounding box; outside the domain they count nothing.

    Args:
        domain: a shape, a time, or ``shape * time``.
        points: of each axis, its ends included.
        fields: for each field a function of NumPy arrays by coordinate, ``u=lambda x, y: np.sin(x) * y``, or a number.
    """
    space: Domain = as_domain(domain)
    begin = time.perf_counter()
    counts = {name: points if isinstance(points, int) else points[name] for name in space.names}
    axes = {
        name: np.linspace(low, high, counts[name]) for name, (low, high) in zip(space.names, space.bounds, strict=True)
    }
    grid = dict(zip(axes, np.meshgrid(*axes.values(), indexing="ij"), strict=True))
    shape = next(iter(grid.values())).shape
    inside = space.inside(np.stack([column.ravel() for column in grid.values()], 1)).reshape(shape)
    values = {}
    for name, function in fields.items():
        found = reals(f"exact: {name}", Named(function, f"exact: {name}", grid)(grid))
        if found.shape not in ((), shape):
            raise ValueError(
                f"exact: {name}: expected a number for each point of the grid, shape {shape}, got {found.shape}"
            )
        values[name] = np.where(inside, found, np.nan)
    return Reference("closed form", axes, values, dict.fromkeys(fields, EPS), time.perf_counter() - begin)


def burgers(nu: float = 0.01 / np.pi, *, low: float = -1, nx: int = 257, nt: int = 101, field: str = "u") -> Reference:
    """u_t + u u_x = nu u_xx on [-1, 1] x [0, 1], u(x, 0) = -sin(pi x), u = 0 at both ends, by the Cole-Hopf transform.

    Its Gaussian integrals are Gauss-Hermite sums; the floor compares 200 nodes with 140; it rises below nu = 1e-3.
    The solution is odd in x: ``low=0`` gives the right half alone.
    Source: Cole (1951), Q. Appl. Math. 9, 225; Hopf (1950), Commun. Pure Appl. Math. 3, 201.
    """
    x, t = np.linspace(low, 1, nx), np.linspace(0, 1, nt)

    def values(nodes: int) -> Array:
        z, weight = np.polynomial.hermite.hermgauss(nodes)
        y = np.pi * (x[:, None, None] - 2 * np.sqrt(nu * t[None, :, None]) * z)
        exponent = -np.cos(y) / (2 * np.pi * nu)
        kernel = weight * np.exp(exponent - exponent.max(-1, keepdims=True))
        return np.asarray(-(np.sin(y) * kernel).sum(-1) / kernel.sum(-1))

    begin = time.perf_counter()
    u = values(200)
    seconds = time.perf_counter() - begin
    floor = max(relative_l2(values(140), u), EPS)
    return Reference("Cole-Hopf", {"x": x, "t": t}, {field: u}, {field: floor}, seconds)

"""Trajectories of ordinary differential equations, by a Runge-Kutta method of order eight."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from leafgrad_pinn.references.reference import EPS, Reference, relative_l2
from leafgrad_pinn.sampling import Array

TOLERANCE = 1e-12


def lotka_volterra(
    growth: float = 1.5,
    hunt: float = 1.0,
    gain: float = 1.0,
    death: float = 3.0,
    *,
    start: Sequence[float] = (10, 5),
    stop: float = 4.0,
    nt: int = 401,
    prey: str = "u",
    predators: str = "v",
) -> Reference:
    """u_t = growth u - hunt u v, v_t = gain u v - death v, from ``start`` at t = 0."""

    def rate(t: float, state: Array) -> list[float]:
        u, v = state
        return [growth * u - hunt * u * v, gain * u * v - death * v]

    return trajectory(rate, start, stop, nt, (prey, predators))


def lorenz(
    sigma: float = 10.0,
    rho: float = 15.0,
    beta: float = 8 / 3,
    *,
    start: Sequence[float] = (-8, 7, 27),
    stop: float = 3.0,
    nt: int = 401,
    fields: Sequence[str] = ("x", "y", "z"),
) -> Reference:
    """x_t = sigma (y - x), y_t = x (rho - z) - y, z_t = x y - beta z, from ``start`` at t = 0."""

    def rate(t: float, state: Array) -> list[float]:
        x, y, z = state
        return [sigma * (y - x), x * (rho - z) - y, x * y - beta * z]

    return trajectory(rate, start, stop, nt, fields)


def trajectory(
    rate: Callable[[float, Array], list[float]], start: Sequence[float], stop: float, nt: int, names: Sequence[str]
) -> Reference:
    """A reference at nt moments. The floor is what a tolerance a hundred times as large changes.

    Source: Hairer, Norsett and Wanner (1993), "Solving Ordinary Differential Equations I", their DOP853, as in SciPy.
    """
    from scipy.integrate import solve_ivp  # slow to import

    moments = np.linspace(0, stop, nt)

    def values(tolerance: float) -> Array:
        found = solve_ivp(rate, (0, stop), start, "DOP853", moments, rtol=tolerance, atol=tolerance)
        if not found.success:
            raise ArithmeticError(f"trajectory: {found.message}")
        return np.asarray(found.y)

    begin = time.perf_counter()
    fine = values(TOLERANCE)
    seconds = time.perf_counter() - begin
    coarse = values(100 * TOLERANCE)
    floor = {name: max(EPS, relative_l2(c, f)) for name, c, f in zip(names, coarse, fine, strict=True)}
    fields = dict(zip(names, fine, strict=True))
    return Reference(f"DOP853, tolerance {TOLERANCE:g}", {"t": moments}, fields, floor, seconds)

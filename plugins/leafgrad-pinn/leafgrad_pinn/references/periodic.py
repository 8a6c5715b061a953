"""Solutions of periodic equations in one dimension and time, by Fourier modes and ETDRK4."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from leafgrad_pinn.references.etdrk4 import Spectral, solve
from leafgrad_pinn.references.reference import EPS, Reference, relative_l2
from leafgrad_pinn.sampling import Array


def allen_cahn(*, modes: int = 2048, nx: int = 256, nt: int = 101, field: str = "u") -> Reference:
    """u_t = 1e-4 u_xx + 5 (u - u^3), periodic on [-1, 1], t in [0, 1], u(x, 0) = x^2 cos(pi x).

    The initial values have a kink where the ends meet, so that the error falls with the square of ``modes`` alone.
    """

    def equation(modes: int) -> Spectral:
        x, k = grid(-1, 1, modes)
        return Spectral(x**2 * np.cos(np.pi * x), 5 - 1e-4 * k**2, lambda v: np.fft.fft(-5 * np.fft.ifft(v).real ** 3))

    return spectral(equation, -1, 1, 1.0, modes, 2000, nx, nt, lambda u: {field: u.real})


def kdv(*, delta: float = 0.022, modes: int = 512, nx: int = 256, nt: int = 101, field: str = "u") -> Reference:
    """u_t + u u_x + delta^2 u_xxx = 0, periodic on [-1, 1], t in [0, 1], u(x, 0) = cos(pi x)."""

    def equation(modes: int) -> Spectral:
        x, k = grid(-1, 1, modes)
        keep = np.abs(k) < 2 / 3 * np.abs(k).max()
        return Spectral(
            np.cos(np.pi * x),
            1j * delta**2 * k**3,
            lambda v: -0.5j * k * keep * np.fft.fft(np.fft.ifft(v * keep).real ** 2),
        )

    return spectral(equation, -1, 1, 1.0, modes, 4000, nx, nt, lambda u: {field: u.real})


def schroedinger(*, modes: int = 1024, nx: int = 256, nt: int = 101, real: str = "u", imag: str = "v") -> Reference:
    """i h_t + h_xx / 2 + |h|^2 h = 0 for h = u + i v, periodic on [-5, 5], t in [0, pi/2], h(x, 0) = 2 sech x."""

    def equation(modes: int) -> Spectral:
        x, k = grid(-5, 5, modes)

        def cubic(v: Array) -> Array:
            h = np.fft.ifft(v)
            return np.fft.fft(1j * np.abs(h) ** 2 * h)

        return Spectral(2 / np.cosh(x), -0.5j * k**2, cubic)

    return spectral(equation, -5, 5, np.pi / 2, modes, 4000, nx, nt, lambda h: {real: h.real, imag: h.imag})


def kuramoto_sivashinsky(
    *, stop: float = 0.1, modes: int = 512, nx: int = 256, nt: int = 101, field: str = "u"
) -> Reference:
    """u_t + a u u_x + b u_xx + c u_xxxx = 0, periodic on [0, 2 pi], u(x, 0) = cos x (1 + sin x).

    a = 100/16, b = 100/16^2, c = 100/16^4; t in [0, ``stop``]. Chaotic: errors grow with time.
    """

    def equation(modes: int) -> Spectral:
        x, k = grid(0, 2 * np.pi, modes)
        linear = 100 / 16**2 * k**2 - 100 / 16**4 * k**4
        return Spectral(
            np.cos(x) * (1 + np.sin(x)), linear, lambda v: -0.5j * 100 / 16 * k * np.fft.fft(np.fft.ifft(v).real ** 2)
        )

    return spectral(equation, 0, 2 * np.pi, stop, modes, round(20000 * stop), nx, nt, lambda u: {field: u.real})


def grid(low: float, high: float, modes: int) -> tuple[Array, Array]:
    """Points of a periodic interval, without its end, and their wave numbers, of which the unpaired one is 0."""
    size = high - low
    k = 2 * np.pi / size * np.fft.fftfreq(modes, 1 / modes)
    k[modes // 2] = 0
    return low + size * np.arange(modes) / modes, k


def spectral(
    equation: Callable[[int], Spectral],
    low: float,
    high: float,
    stop: float,
    modes: int,
    steps: int,
    nx: int,
    nt: int,
    fields: Callable[[Array], dict[str, Array]],
) -> Reference:
    """A reference by Fourier modes in space and ETDRK4 in time, at nx points without the right end, and nt moments.

    The floor is the sum of what half the modes and half the steps change.
    """
    if modes % (2 * nx) or steps % (2 * (nt - 1)):
        raise ValueError(f"modes, nt: expected multiples of {2 * nx}, and {steps} / (nt - 1) even, got {modes}, {nt}")

    def values(modes: int, steps: int) -> Array:
        history = solve(equation(modes), stop, steps, steps // (nt - 1))
        return history[:, :: modes // nx].T

    begin = time.perf_counter()
    u = values(modes, steps)
    seconds = time.perf_counter() - begin
    found = fields(u)
    others = [fields(values(modes // 2, steps)), fields(values(modes, steps // 2))]
    floor = {name: max(EPS, sum(relative_l2(o[name], f) for o in others)) for name, f in found.items()}
    axes = {"x": low + (high - low) * np.arange(nx) / nx, "t": np.linspace(0, stop, nt)}
    return Reference(f"ETDRK4, {modes} modes, {steps} steps", axes, found, floor, seconds)

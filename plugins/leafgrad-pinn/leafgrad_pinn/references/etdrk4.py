"""Periodic equations v_t = L v + N(v) in Fourier space, by exponential time differencing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leafgrad_pinn.sampling import Array


@dataclass(frozen=True)
class Spectral:
    """An equation for the Fourier coefficients of one field.

    Attributes:
        initial: values at the points (m,).
        linear: L, a number for each mode (m,).
        nonlinear: N, takes coefficients (m,) to (m,).
    """

    initial: Array
    linear: Array
    nonlinear: Callable[[Array], Array]


def solve(equation: Spectral, stop: float, steps: int, every: int) -> Array:
    """The field at 0 and every so many steps up to ``stop``: complex (steps / every + 1, m).

    Source: Kassam and Trefethen (2005), "Fourth-order time-stepping for stiff PDEs", SIAM J. Sci. Comput. 26,
    1214: their ETDRK4, its coefficients by means over a circle of the complex plane.
    """
    h = stop / steps
    linear = equation.linear
    circle = np.exp(2j * np.pi * (np.arange(1, 65) - 0.5) / 64)
    z = h * linear[:, None] + circle

    def mean(values: Array) -> Array:
        result: Array = h * values.mean(1)
        return result if np.iscomplexobj(linear) else result.real

    full, half = np.exp(h * linear), np.exp(h * linear / 2)
    q = mean((np.exp(z / 2) - 1) / z)
    first = mean((-4 - z + np.exp(z) * (4 - 3 * z + z**2)) / z**3)
    middle = mean((2 + z + np.exp(z) * (z - 2)) / z**3)
    last = mean((-4 - 3 * z - z**2 + np.exp(z) * (4 - z)) / z**3)

    v = np.fft.fft(equation.initial)
    history = [np.fft.ifft(v)]
    for step in range(1, steps + 1):
        at_v = equation.nonlinear(v)
        a = half * v + q * at_v
        at_a = equation.nonlinear(a)
        b = half * v + q * at_a
        at_b = equation.nonlinear(b)
        c = half * a + q * (2 * at_b - at_v)
        v = full * v + at_v * first + 2 * (at_a + at_b) * middle + equation.nonlinear(c) * last
        if step % every == 0:
            history.append(np.fft.ifft(v))
    return np.array(history)

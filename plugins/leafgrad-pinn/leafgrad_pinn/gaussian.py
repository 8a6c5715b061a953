"""Gaussian random functions, of which a family's input functions are drawn."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from leafgrad_pinn.callables import check_number, names_of
from leafgrad_pinn.functions import LARGEST, LOOKS, InputFunction
from leafgrad_pinn.sampling import Array

if TYPE_CHECKING:
    from leafgrad_pinn.domains import Domain

SMALL = 1e-8  # of the largest amplitude: modes below are left out


class GaussianField(InputFunction):
    """Gaussian random functions: ``shape * GaussianField("f", length=0.2)``.

    Their covariance is std^2 exp(-|x - y|^2 / (2 length^2)), or that of an operator: with ``power=lambda k2: 625 / (k2
    + 25)**2`` that of 625 (-Laplacian + 25)^-2, the variance of each eigenfunction of the Laplacian by its eigenvalue
    k2. Eigenfunctions are periodic in periodic coordinates, and have no slope at the ends of others.

    Args:
        name: by which equations ask for it.
        over: names of its coordinates, as one string; all of space by default, or time where there is no space.
        length: the length over which values are correlated.
        power: a function of an array of eigenvalues; in place of ``length``.
        std: the standard deviation, with ``length``.
        map: a function of NumPy arrays that each draw goes through, such as ``np.exp`` for positive coefficients.
        sensors: along each coordinate, ends included.
        degree: see `InputFunction`.
    """

    factors: list[Array]
    amplitude: Array

    def __init__(
        self,
        name: str,
        over: str | None = None,
        *,
        length: float | None = None,
        power: Callable[[Array], Array] | None = None,
        std: float = 1.0,
        map: Callable[[Array], Array] | None = None,
        sensors: int = 101,
        degree: int = 5,
    ) -> None:
        super().__init__(name, {"_": np.arange(degree + 1.0)}, degree=degree)
        if (length is None) == (power is None):
            raise ValueError(f"GaussianField {name!r}: expected one of length=0.2 and power=lambda k2: ..., got "
                             f"{'none' if length is None else 'both'}")  # fmt: skip
        for what, number in {"length": length, "std": std}.items():
            if number is not None:
                check_number(f"GaussianField {name!r}: {what}", number)
                if number <= 0:
                    raise ValueError(f"GaussianField {name!r}: {what}: expected a positive number, got {number}")
        check_number(f"GaussianField {name!r}: sensors", sensors, degree + 1, whole=True)
        for what, function in {"power": power, "map": map}.items():
            if not (function is None or callable(function)):
                raise TypeError(f"GaussianField {name!r}: {what}: expected a function, got {function!r}")
        self.over = None if over is None else names_of(f"GaussianField {name!r}: over", over)
        self.length, self.power, self.scale, self.map, self.sensors = length, power, float(std), map, sensors

    def on(self, domain: Domain) -> InputFunction:
        names = self.over or list(domain.space or domain.names[-1:])
        if unknown := [name for name in names if name not in domain.names]:
            raise ValueError(
                f"{self.name}: over: expected coordinates among {', '.join(domain.names)}, got {', '.join(unknown)}"
            )
        placed = copy.copy(self)
        placed.periodic = tuple(name for name in names if name in domain.periodic)
        ends = [domain.bounds[domain.names.index(name)].tolist() for name in names]
        placed.axes = {name: np.linspace(a, b, self.sensors) for name, (a, b) in zip(names, ends, strict=True)}
        modes = [self._modes(axis, name in domain.periodic) for name, axis in placed.axes.items()]
        placed.factors = [functions for functions, _, _ in modes]
        amplitude = np.full((1,) * len(names), self.scale)
        eigenvalues = np.zeros((1,) * len(names))
        for squares, shares in zip(np.ix_(*[s for _, s, _ in modes]), np.ix_(*[s for _, _, s in modes]), strict=True):
            amplitude, eigenvalues = amplitude * shares, eigenvalues + squares
        if self.power is not None:
            variance = np.asarray(self.power(eigenvalues))
            if variance.shape != eigenvalues.shape or not (np.isfinite(variance) & (variance >= 0)).all():
                raise ValueError(
                    f"{self.name}: power: expected a variance, at least 0, for each eigenvalue, got others"
                )
            amplitude = np.sqrt(variance)
        if not amplitude.any():
            raise ValueError(f"{self.name}: power: expected some variance above 0, got none")
        for axis in range(amplitude.ndim):  # what is too small in all other coordinates, too
            others = tuple(k for k in range(amplitude.ndim) if k != axis)
            kept = amplitude.max(axis=others) > SMALL * amplitude.max()
            amplitude = np.compress(kept, amplitude, axis)
            placed.factors[axis] = placed.factors[axis][:, kept]
        placed.amplitude = amplitude
        count = max(LOOKS, 4 * placed.size if placed.size <= LARGEST else 0)
        placed.learn(placed.draw(count, np.random.default_rng(0)))
        return placed

    def _modes(self, axis: Array, periodic: bool) -> tuple[Array, Array, Array]:
        """Functions of mean square 1 at the sensors, (m, r), eigenvalues, and their share of amplitudes by length."""
        span, m = float(np.ptp(axis)), len(axis)
        x = (axis - axis[0]) / span
        if periodic:
            number = (np.arange(m - 1) + 1) // 2
            wave = 2 * np.pi * number / span
            shift = np.where(np.arange(len(number)) % 2, 0.0, np.pi / 2) * (number > 0)
            functions = np.cos(2 * np.pi * x[:, None] * number - shift) * np.where(number, math.sqrt(2), 1)
            share = np.exp(-(((self.length or 0) * wave) ** 2) / 4)
            return functions, wave**2, share / math.sqrt(float(np.square(share).sum()))
        if self.power is not None:
            number = np.arange(m)
            functions = np.cos(np.pi * x[:, None] * number) * np.where(number, math.sqrt(2), 1)
            return functions, (np.pi * number / span) ** 2, np.ones(m)
        assert self.length is not None
        sizes, vectors = np.linalg.eigh(np.exp(-(((axis[:, None] - axis) / self.length) ** 2) / 2))
        return vectors * math.sqrt(m), np.zeros(m), np.sqrt(np.maximum(sizes, 0) / m)

    def some(self, n: int) -> Array:
        return self.draw(n, np.random.default_rng(0))

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        values = rng.normal(size=(n, *self.amplitude.shape)) * self.amplitude
        for factor in self.factors:  # the first of the axes that are left goes last
            values = np.tensordot(values, factor, (1, 1))
        flat: Array = values.reshape(n, -1)
        return flat if self.map is None else np.asarray(self.map(flat), dtype=np.float64)

    def __repr__(self) -> str:
        size = "power" if self.power else f"length={self.length}, std={self.scale}"
        return f"GaussianField({self.name!r}, {' '.join(self.over or [])!r}, {size}, sensors={self.sensors})"

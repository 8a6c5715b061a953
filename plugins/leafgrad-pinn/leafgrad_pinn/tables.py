"""Tables of numbers on a grid as functions of coordinates."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.sampling import Array

ROUNDING = 1e-6  # of an axis: how far beyond its ends a table goes on


class Table:
    """What was measured or computed on a grid, as a function: ``f = Table({"x": x, "y": y}, values)``, ``f(x, y)``.

    It serves where functions of coordinates do: in equations, as ``u.lap + f(x, y)``, and as a value, ``Dirichlet(f)``.
    Between the grid's points it is a product of straight lines, or with ``smooth=True`` of the cubic polynomials that
    have the slopes of parabolas through neighbours, which is once differentiable. Outside of the grid
    it is nan, which a problem's check of its points names.

    Args:
        axes: for each coordinate its grid points, rising (m,), in the order of the axes of ``values``.
        values: an array with an axis for each coordinate.
        smooth: see above.

    Raises:
        ValueError: axes that do not rise, shapes that do not fit, or numbers that are not finite.
    """

    def __init__(self, axes: Mapping[str, Array], values: Array, smooth: bool = False) -> None:
        if not isinstance(axes, Mapping) or not axes:
            raise TypeError(f'Table: axes: expected arrays by name, as {{"x": x}}, got {type(axes).__name__}')
        self.axes = {name: np.asarray(axis, dtype=np.float64) for name, axis in axes.items()}
        self.array, self.smooth = np.asarray(values, dtype=np.float64), smooth
        for name, axis in self.axes.items():
            if axis.ndim != 1 or len(axis) < 2 or not np.isfinite(axis).all() or not (np.diff(axis) > 0).all():
                raise ValueError(f"Table: {name}: expected two or more finite numbers that rise, got {axis!r:.60}")
        if self.array.shape != tuple(map(len, self.axes.values())) or not np.isfinite(self.array).all():
            raise ValueError(
                f"Table: values: expected finite numbers of shape {tuple(map(len, self.axes.values()))}, one for each "
                f"point of the grid, got shape {self.array.shape}"
            )
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in self.axes])

    def __call__(self, *columns: Any) -> Tensor:
        """Its values at points, n numbers for each coordinate: (n,)"""
        if len(columns) != len(self.axes):
            raise TypeError(f"Table: expected {', '.join(self.axes)}, got {len(columns)} arguments")
        like = next((c for c in columns if isinstance(c, Tensor)), leafgrad.zeros(()))
        tensors = [c if isinstance(c, Tensor) else leafgrad.full_like(like, c) for c in columns]
        every = [self._weights(axis, x) for axis, x in zip(self.axes.values(), tensors, strict=True)]
        flat = constant(self.array.reshape(-1), tensors[0])
        strides = [math.prod(self.array.shape[k + 1 :]) for k in range(self.array.ndim)]
        total: Any = 0.0
        for corner in itertools.product(*every):
            places = sum((place * stride for (place, _), stride in zip(corner, strides, strict=True)), start=0)
            total = total + math.prod([weight for _, weight in corner]) * flat[places]
        found: Tensor = total
        return found

    def _weights(self, axis: Array, x: Tensor) -> list[tuple[Any, Tensor]]:
        """Which grid points count at each x, and how much: their sum is 1."""
        grid, last = constant(axis, x), len(axis) - 1
        inner = constant(axis[1:-1], x)
        cell = (x.detach()[..., None] >= inner).sum(-1) if last > 1 else leafgrad.zeros_like(x.detach()).long()
        low, high = grid[cell], grid[cell + 1]
        beyond = (x.detach() < axis[0] - ROUNDING * np.ptp(axis)) | (x.detach() > axis[-1] + ROUNDING * np.ptp(axis))
        u = leafgrad.where(beyond, leafgrad.full_like(x, math.nan), (x - low) / (high - low))
        if not self.smooth or last < 2:
            return [(cell, 1 - u), (cell + 1, u)]
        slopes = constant(parabolas(axis), x)  # (m, 3): of each grid point by the three values around it
        first = constant(np.clip(np.arange(last + 1) - 1, 0, last - 2), x).long()
        step, found = high - low, [(cell, (1 + 2 * u) * (1 - u) ** 2), (cell + 1, u * u * (3 - 2 * u))]
        for at, shape in ((cell, u * (1 - u) ** 2 * step), (cell + 1, u * u * (u - 1) * step)):
            found += [(first[at] + k, shape * slopes[at, k]) for k in range(3)]
        return found

    def __repr__(self) -> str:
        return f"Table({', '.join(f'{name}: {len(axis)}' for name, axis in self.axes.items())})"


def parabolas(axis: Array) -> Array:
    """What the slope at each grid point (m,) is of the three values nearest to it: (m, 3)."""
    found = np.empty((len(axis), 3))
    for k, x in enumerate(axis):
        first = min(max(k - 1, 0), len(axis) - 3)
        nodes = axis[first : first + 3] - x
        found[k] = np.linalg.solve(np.vander(nodes / (scale := np.ptp(nodes)), 3, increasing=True).T, [0, 1 / scale, 0])
    return found


def constant(values: Array, like: Tensor) -> Tensor:
    """Numbers as a tensor of the dtype and device of another."""
    return leafgrad.tensor(np.ascontiguousarray(values), dtype=like.dtype, device=like.device)

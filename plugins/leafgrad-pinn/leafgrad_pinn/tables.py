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
from leafgrad_pinn.sampling import Array, reals

ROUNDING = 1e-6  # of an axis: how far beyond its ends a table goes on


class Table:
    """What was measured or computed on a grid, as a function: ``f = Table({"x": x, "y": y}, values)``, ``f(x, y)``.

    It serves where functions of coordinates do: in equations, as ``u.lap + f(x, y)``, and as a value, ``Dirichlet(f)``.
    Between the grid's points it is a product of straight lines, or with ``smooth=True`` of the cubic polynomials that
    have the slopes of parabolas through neighbours, which is once differentiable: take it so for what a field
    is made of, as exact values, for equations of second order see no kinks. Outside of the grid it is nan, which a
    problem's check of its points names.

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
        self.axes = {name: reals(f"Table: {name}", axis) for name, axis in axes.items()}
        if np.iscomplexobj(values):
            raise TypeError(
                "Table: values: expected real numbers, got complex ones; take a table of their .real, one of .imag, "
                "and re(x) + 1j * im(x)"
            )
        self.array, self.smooth = reals("Table: values", values), smooth
        for name, axis in self.axes.items():
            if axis.ndim != 1 or len(axis) < 2 or not np.isfinite(axis).all() or not (np.diff(axis) > 0).all():
                raise ValueError(f"Table: {name}: expected two or more finite numbers that rise, got {axis!r:.60}")
        if self.array.shape != tuple(map(len, self.axes.values())) or not np.isfinite(self.array).all():
            raise ValueError(
                f"Table: values: expected finite numbers of shape {tuple(map(len, self.axes.values()))}, one for each "
                f"point of the grid, got shape {self.array.shape}"
            )
        self.flat = leafgrad.tensor(self.array.reshape(-1))  # a step that made tensors of arrays would be no program
        self.strides = [math.prod(self.array.shape[k + 1 :]) for k in range(self.array.ndim)]
        self.grids = [Grid(axis, smooth) for axis in self.axes.values()]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in self.axes])

    def __call__(self, *columns: Any) -> Tensor:
        """Its values at points, n numbers for each coordinate: (n,)"""
        if len(columns) != len(self.axes):
            raise TypeError(f"Table: expected {', '.join(self.axes)}, got {len(columns)} arguments")
        like = next((c for c in columns if isinstance(c, Tensor)), leafgrad.zeros(()))
        tensors = [c if isinstance(c, Tensor) else leafgrad.full_like(like, c) for c in columns]
        every = [grid.weights(x) for grid, x in zip(self.grids, tensors, strict=True)]
        flat = alike(self.flat, tensors[0])
        total: Any = 0.0
        for corner in itertools.product(*every):
            places = sum((place * stride for (place, _), stride in zip(corner, self.strides, strict=True)), start=0)
            total = total + math.prod([weight for _, weight in corner]) * flat[places]
        found: Tensor = total
        return found

    def __repr__(self) -> str:
        return f"Table({', '.join(f'{name}: {len(axis)}' for name, axis in self.axes.items())})"


class Grid:
    """The points of one coordinate (m,), float64, of which a table is a sum at each place."""

    def __init__(self, axis: Array, smooth: bool) -> None:
        self.last, self.smooth, slack = len(axis) - 1, smooth and len(axis) > 2, ROUNDING * float(np.ptp(axis))
        self.low, self.high = float(axis[0]) - slack, float(axis[-1]) + slack
        self.points = leafgrad.tensor(np.ascontiguousarray(axis))
        if self.smooth:
            self.slopes = leafgrad.tensor(parabolas(axis))  # (m, 3): of each point by the three values around it
            self.first = leafgrad.tensor(np.clip(np.arange(self.last + 1) - 1, 0, self.last - 2))

    def weights(self, x: Tensor) -> list[tuple[Any, Tensor]]:
        """Which points count at each x, and how much: their sum is 1."""
        grid = alike(self.points, x)
        cell = (x.detach()[..., None] >= grid[1:-1]).sum(-1)
        low, high = grid[cell], grid[cell + 1]
        beyond = (x.detach() < self.low) | (x.detach() > self.high)
        u = leafgrad.where(beyond, leafgrad.full_like(x, math.nan), (x - low) / (high - low))
        if not self.smooth:
            return [(cell, 1 - u), (cell + 1, u)]
        slopes, first = alike(self.slopes, x), self.first.to(device=x.device)
        step, found = high - low, [(cell, (1 + 2 * u) * (1 - u) ** 2), (cell + 1, u * u * (3 - 2 * u))]
        for at, shape in ((cell, u * (1 - u) ** 2 * step), (cell + 1, u * u * (u - 1) * step)):
            found += [(first[at] + k, shape * slopes[at, k]) for k in range(3)]
        return found


def parabolas(axis: Array) -> Array:
    """What the slope at each grid point (m,) is of the three values nearest to it: (m, 3)."""
    found = np.empty((len(axis), 3))
    for k, x in enumerate(axis):
        first = min(max(k - 1, 0), len(axis) - 3)
        nodes = axis[first : first + 3] - x
        found[k] = np.linalg.solve(np.vander(nodes / (scale := np.ptp(nodes)), 3, increasing=True).T, [0, 1 / scale, 0])
    return found


def alike(tensor: Tensor, like: Tensor) -> Tensor:
    """A tensor in the dtype and on the device of another."""
    return tensor.to(dtype=like.dtype, device=like.device)

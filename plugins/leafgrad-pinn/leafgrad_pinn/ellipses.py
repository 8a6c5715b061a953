"""Ellipses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from leafgrad import Tensor
from leafgrad_pinn.callables import check_number
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.shapes import Piece, Shape

NODES = 2**14  # of the arc length along an ellipse


class Ellipse(Shape):
    """An ellipse, ``Ellipse((2, 1), x=0, y=0)``. Its edge is ``ellipse``, or as ``edge`` says.

    Args:
        axes: half of its width along each coordinate, in their order.
        edge: its edge's name.
        center: the two coordinates of its centre.
    """

    def __init__(self, axes: Sequence[float], edge: str = "ellipse", **center: float) -> None:
        if len(center) != 2:
            raise ValueError(f"Ellipse: expected a centre of 2 coordinates, as x=0, y=0, got {len(center)}")
        if not isinstance(axes, Sequence) or isinstance(axes, str) or len(axes) != 2:
            raise TypeError(f"axes: expected two numbers, as (2, 1), got {axes!r}")
        for value in axes:
            check_number("axes", value)
            if value <= 0:
                raise ValueError(f"axes: expected positive numbers, got {axes}")
        for name, value in center.items():
            check_number(name, value)
        self.names, self.edge = tuple(center), edge
        self.axes, self.center = np.array(axes, dtype=np.float64), np.array(list(center.values()), dtype=np.float64)
        self.origin = dict(zip(center, self.center.tolist(), strict=True))
        self.halves = dict(zip(center, self.axes.tolist(), strict=True))
        self.bounds = self.center[:, None] + self.axes[:, None] * np.array([-1.0, 1.0])
        angles = np.linspace(0, 2 * np.pi, NODES + 1)
        middle = (angles[1:] + angles[:-1]) / 2
        speeds = np.hypot(self.axes[0] * np.sin(middle), self.axes[1] * np.cos(middle))
        arcs = np.concatenate([[0.0], np.cumsum(speeds)]) * (2 * np.pi / NODES)
        self._angles, self._arcs = angles, arcs / arcs[-1]
        self.edges = {edge: [Piece(1, float(arcs[-1]), self._place, chart=self._chart)]}

    def _place(self, u: Array) -> tuple[Array, Array]:
        """By arc length, so that uniform numbers are uniform points."""
        angle = np.interp(u[:, 0], self._arcs, self._angles)
        points, normals, _ = self._chart(angle[:, None] / (2 * np.pi))
        return points, normals

    def _chart(self, u: Array) -> tuple[Array, Array, Array]:
        """By the angle, whose equal steps are short where the curve bends."""
        angle = 2 * np.pi * u[:, 0]
        turn = np.stack([np.cos(angle), np.sin(angle)], 1)
        normals = turn / self.axes
        size = np.linalg.norm(normals, axis=1)
        return self.center + self.axes * turn, normals / size[:, None], 2 * np.pi * self.axes.prod() * size

    def signed(self, points: Array) -> Array:
        """The distance to first order near the ellipse, and of the right sign elsewhere."""
        scaled = (points - self.center) / self.axes
        size, rise = np.linalg.norm(scaled, axis=1), np.linalg.norm(scaled / self.axes, axis=1)
        middle = rise == 0
        distance: Array = np.where(middle, -self.axes.min(), size * (size - 1) / np.where(middle, 1, rise))
        return distance

    def level(self, columns: Mapping[str, Tensor]) -> Tensor:
        squares = [((columns[name] - c) / self.halves[name]).square() for name, c in self.origin.items()]
        factor: Tensor = 1 - squares[0] - squares[1]
        return factor

    def __repr__(self) -> str:
        center = "".join(f", {name}={c}" for name, c in self.origin.items())
        return f"Ellipse({tuple(self.axes.tolist())}, {self.edge!r}{center})"

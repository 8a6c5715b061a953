"""Unions, differences and intersections of shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from leafgrad import Tensor
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.rfunctions import both, either
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.shapes import Box, Piece, Shape

STEP = 1e-6  # to both sides of an edge, as a part of the shape's size
LOOKS = 64  # points on each piece that show whether edges lie on each other


class Combined(Shape):
    """The union, difference or intersection of two shapes. Edges keep their names; those of one name are one edge."""

    def __init__(self, how: str, first: Shape, second: Shape) -> None:
        if first.names != second.names:
            raise ValueError(
                f"{how}: expected the same coordinates, in one order, got {', '.join(first.names)} and "
                f"{', '.join(second.names)}"
            )
        if periodic := [name for s in (first, second) if isinstance(s, Box) for name in s.periodic]:
            raise ValueError(f"{how}: expected shapes that are not periodic, got one in {', '.join(periodic)}")
        self.how, self.first, self.second, self.names = how, first, second, first.names
        low, high = np.minimum, np.maximum
        if how == "union":
            self.bounds = np.stack([low(first.bounds, second.bounds)[:, 0], high(first.bounds, second.bounds)[:, 1]], 1)
        elif how == "difference":
            self.bounds = first.bounds
        else:
            self.bounds = np.stack([high(first.bounds, second.bounds)[:, 0], low(first.bounds, second.bounds)[:, 1]], 1)
        if (self.bounds[:, 0] >= self.bounds[:, 1]).any():
            raise ValueError(f"{how}: nothing is left of {first} and {second}")
        self.written, self.edges = [*first.written, *second.written], {}
        for shape, later in ((first, False), (second, True)):
            for name, pieces in shape.edges.items():
                self.edges.setdefault(name, []).extend(self._cut(piece, later) for piece in pieces)
        try:
            Domain(self).interior(1, "uniform", np.random.default_rng(0))
        except ValueError:
            raise ValueError(f"{how}: nothing is left of {first} and {second}") from None

    def _cut(self, piece: Piece, later: bool) -> Piece:
        """What of a piece of the first, or the later, shape is boundary: outside begins there."""
        flipped = self.how == "difference" and later

        def place(u: Array) -> tuple[Array, Array]:
            points, normals = piece.place(u)
            return points, -normals if flipped else normals

        def keep(points: Array, normals: Array) -> Array:
            points = np.nan_to_num(points)
            kept = (self.signed(points - self._step(normals)) < 0) & (self.signed(points + self._step(normals)) > 0)
            if later:  # where both have an edge, that of the first counts
                kept &= ~self._crosses(self.first, points, normals)
            return kept if piece.keep is None else kept & piece.keep(points, -normals if flipped else normals)

        return Piece(piece.dim, piece.measure, place, keep)

    def _step(self, normals: Array) -> Array:
        step: Array = STEP * np.ptp(self.bounds, axis=1).max() * np.nan_to_num(normals)
        return step

    def _crosses(self, shape: Shape, points: Array, normals: Array) -> Array:
        """Whether a shape has an edge between two points, near on both sides."""
        step = self._step(normals)
        crosses: Array = (shape.signed(points - step) < 0) != (shape.signed(points + step) < 0)
        return crosses

    def signed(self, points: Array) -> Array:
        first, second = self.first.signed(points), self.second.signed(points)
        if self.how == "union":
            return np.minimum(first, second)
        return np.maximum(first, -second if self.how == "difference" else second)

    def at_edge(self, points: Array, edge: str) -> tuple[Array, Array]:
        found = [shape.at_edge(points, edge) for shape in (self.first, self.second) if edge in shape.edges]
        if self.how == "difference" and edge in self.second.edges:
            found[-1] = found[-1][0], -found[-1][1]
        (away, normals), (other, others) = found[0], found[-1]
        return np.minimum(away, other), np.where((away <= other)[:, None], normals, others)

    def level(self, columns: Mapping[str, Tensor]) -> Tensor:
        first, second = self.first.level(columns), self.second.level(columns)
        if self.how == "union":
            return either(first, second)
        return both(first, -second if self.how == "difference" else second)

    def inner(self, columns: Mapping[str, Tensor]) -> Tensor:
        if self.how == "union":
            return self.level(columns)
        other = -self.second.level(columns) if self.how == "difference" else self.second.inner(columns)
        return self.first.inner(columns) * other

    def near(self, columns: Mapping[str, Tensor], edges: Sequence[str]) -> Tensor:
        parts = []
        for shape in (self.first, self.second):
            if chosen := [edge for edge in edges if edge in shape.edges]:
                parts.append(shape.near(columns, chosen))
        return reduce(both, parts)

    def check_hard(self) -> None:
        self.first.check_hard()
        self.second.check_hard()
        rng = np.random.default_rng(0)
        for pieces in self.first.edges.values():
            for piece in pieces:
                points, normals = piece.place(rng.random((LOOKS, piece.dim)))
                points = np.nan_to_num(points)
                shared = self._crosses(self.second, points, normals)
                step = self._step(normals)
                shared &= (self.signed(points - step) < 0) | (self.signed(points + step) < 0)
                if piece.keep is not None:
                    shared &= piece.keep(points, normals)
                if shared.any():
                    place = dict(zip(self.names, points[shared][0].round(6).tolist(), strict=True))
                    raise ValueError(
                        f"Hard: expected shapes whose edges cross, but in the {self.how} edges lie on each other, as "
                        f"at {place}; let the shapes overlap, or make one Polygon of them, or take Dirichlet(...)"
                    )

    def __repr__(self) -> str:
        sign = {"union": "+", "difference": "-", "intersection": "&"}[self.how]
        return f"({self.first!r} {sign} {self.second!r})"

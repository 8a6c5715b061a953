"""Polygons, as points and as formulas of half-planes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

import numpy as np

from leafgrad import Tensor
from leafgrad_pinn.rfunctions import both, either, trimmed
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.shapes import Piece, Shape

Formula = int | tuple[str, "Formula", "Formula"]  # a side's half-plane, or "and" or "or" of two formulas


class Polygon(Shape):
    """A polygon that does not cross itself, in the plane of two coordinates.

    Args:
        vertices: its corners in order, (m, 2), in either sense of rotation.
        names: the two coordinates.
        edges: a name for each side, that from vertex k to the next; ``edge0``, ``edge1``, ... by default. Sides of one
            name are one edge.
    """

    def __init__(
        self, vertices: Iterable[Sequence[float]], names: str = "x y", edges: Sequence[str] | None = None
    ) -> None:
        self.vertices = np.array(list(vertices), dtype=np.float64)
        if self.vertices.ndim != 2 or self.vertices.shape[1] != 2 or len(self.vertices) < 3:
            raise ValueError(f"vertices: expected three or more pairs of numbers, got shape {self.vertices.shape}")
        self.names = tuple(names.split())
        self.sides = [f"edge{k}" for k in range(len(self.vertices))] if edges is None else list(edges)
        if len(set(self.names)) != 2 or len(self.names) != 2 or len(self.sides) != len(self.vertices):
            raise ValueError(
                f"Polygon: expected two names and {len(self.vertices)} edges, got {len(self.names)} names and "
                f"{len(self.sides)} edges"
            )
        self.starts, self.steps = self.vertices, np.roll(self.vertices, -1, 0) - self.vertices
        check_simple(self.starts, self.steps)
        ends = self.starts + self.steps
        self.turn = math.copysign(1.0, float(cross(self.starts, ends).sum()))
        self.bounds = np.stack([self.vertices.min(0), self.vertices.max(0)], 1)
        self.scale = float(np.ptp(self.bounds, axis=1).max()) / 2
        lengths = np.linalg.norm(self.steps, axis=1, keepdims=True)
        directions = self.turn * self.steps / (lengths * self.scale)
        self.lines = np.concatenate([self.starts, directions], 1).tolist()  # numbers, which compiled steps can take
        self.middles = np.concatenate([self.starts + self.steps / 2, lengths / 2], 1).tolist()
        self.normals = self.turn * np.stack([self.steps[:, 1], -self.steps[:, 0]], 1) / lengths
        self.edges = {}
        for k, side in enumerate(self.sides):
            self.edges.setdefault(side, []).append(self._side(k))
        self.factors = conjuncts(self.vertices if self.turn > 0 else self.vertices[::-1])

    def _side(self, k: int) -> Piece:
        start, step, normal = self.starts[k], self.steps[k], self.normals[k]
        length = float(np.linalg.norm(step))
        return Piece(1, length, lambda u: (start + u * step, np.broadcast_to(normal, (len(u), 2))))

    def _away(self, points: Array) -> Array:
        """The distance to each side: (n, 2) -> (n, m)"""
        offset = points[:, None] - self.starts
        along = np.clip((offset * self.steps).sum(-1) / (self.steps**2).sum(-1), 0, 1)
        distance: Array = np.linalg.norm(offset - along[..., None] * self.steps, axis=-1)
        return distance

    def at_edge(self, points: Array, edge: str) -> tuple[Array, Array]:
        sides = np.flatnonzero([side == edge for side in self.sides])
        away = self._away(points)[:, sides]
        return away.min(1), self.normals[sides[away.argmin(1)]]

    def signed(self, points: Array) -> Array:
        offset, distance = points[:, None] - self.starts, self._away(points).min(1)
        above = offset[..., 1] >= 0
        crosses = above != np.roll(above, -1, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            x = self.starts[:, 0] + self.steps[:, 0] * offset[..., 1] / self.steps[:, 1]
        inside = (crosses & (points[:, :1] < x)).sum(1) % 2 == 1
        signed: Array = np.where(inside, -distance, distance)
        return signed

    def level(self, columns: Mapping[str, Tensor]) -> Tensor:
        return reduce(both, [self._value(formula, columns) for formula in self.factors])

    def inner(self, columns: Mapping[str, Tensor]) -> Tensor:
        """Neighbours are multiplied, which stays smooth at their corner; the others never meet."""
        values = [self._value(formula, columns) for formula in self.factors]
        last = values[-1:] if len(values) % 2 else []
        paired = values[: len(values) - len(last)]
        groups = [group for group in (paired[::2], paired[1::2], last) if group]
        product: Tensor = math.prod([reduce(both, group) for group in groups[1:]], start=reduce(both, groups[0]))
        return product

    def near(self, columns: Mapping[str, Tensor], edges: Sequence[str]) -> Tensor:
        return reduce(both, [self._segment(k, columns) for k, side in enumerate(self.sides) if side in edges])

    def _value(self, formula: Formula, columns: Mapping[str, Tensor]) -> Tensor:
        if isinstance(formula, tuple):
            how, first, second = formula
            operation = both if how == "and" else either
            return operation(self._value(first, columns), self._value(second, columns))
        k = formula if self.turn > 0 else (len(self.starts) - 2 - formula) % len(self.starts)
        return self._line(k, columns)

    def _line(self, k: int, columns: Mapping[str, Tensor]) -> Tensor:
        """The distance to a side's line in units of the scale, positive inside."""
        x, y, dx, dy = self.lines[k]
        line: Tensor = (columns[self.names[1]] - y) * dx - (columns[self.names[0]] - x) * dy
        return line

    def _segment(self, k: int, columns: Mapping[str, Tensor]) -> Tensor:
        """Zero on a side alone, as the squared distance near it."""
        x, y, half = self.middles[k]
        square = (columns[self.names[0]] - x) ** 2 + (columns[self.names[1]] - y) ** 2
        return trimmed(self._line(k, columns), (half**2 - square) / (2 * half * self.scale))

    def __repr__(self) -> str:
        return f"Polygon({self.vertices.tolist()}, {' '.join(self.names)!r}, {self.sides})"


def LShape(names: str = "x y") -> Polygon:
    """[-1, 1]^2 without the quarter x > 0, y < 0; the inner corner at the origin has ``edge0`` and ``edge5``."""
    return Polygon([(0, 0), (0, -1), (-1, -1), (-1, 1), (1, 1), (1, 0)], names)


def cross(a: Array, b: Array) -> Array:
    """The cross product of vectors in the plane. (..., 2), (..., 2) -> (...)"""
    product: Array = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product


def check_simple(starts: Array, steps: Array) -> None:
    """ValueError if sides have no length, or meet other than neighbours at their corner."""
    if not np.isfinite(starts).all() or not (steps**2).sum(1).all():
        raise ValueError(f"vertices: expected finite corners, each other than the next, got {starts.tolist()}")
    m = len(starts)
    ends = starts + steps
    for i in range(m):
        for j in range(i + 1, m):
            if j - i in (1, m - 1):
                first, second = (i, j) if j - i == 1 else (j, i)
                back = cross(steps[first], steps[second]) == 0 and (steps[first] * steps[second]).sum() < 0
            else:
                a, b = cross(steps[i], starts[j] - starts[i]), cross(steps[i], ends[j] - starts[i])
                c, d = cross(steps[j], starts[i] - starts[j]), cross(steps[j], ends[i] - starts[j])
                low = np.maximum(np.minimum(starts[i], ends[i]), np.minimum(starts[j], ends[j]))
                high = np.minimum(np.maximum(starts[i], ends[i]), np.maximum(starts[j], ends[j]))
                back = a * b <= 0 and c * d <= 0 and bool((low <= high).all())
            if back:
                raise ValueError(
                    f"vertices: expected a polygon that does not cross or touch itself; sides {i} and {j} do"
                )


def conjuncts(vertices: Array) -> list[Formula]:
    """Formulas whose intersection is a polygon, in the order of its sides; vertices counter-clockwise (m, 2).

    Each side occurs once. Source: Dobkin, Guibas, Hershberger and Snoeyink (1993), Algorithmica 10, 1.
    """
    m = len(vertices)
    steps = np.roll(vertices, -1, 0) - vertices
    sides = [k for k in range(m) if abs(cross(steps[k - 1], steps[k])) > 1e-12 * np.linalg.norm(steps[k]) ** 2]
    order = sorted(range(len(sides)), key=lambda i: tuple(vertices[sides[i]]))
    left, right = order[0], order[-1]
    around = sides[left:] + sides[:left]
    lower = (right - left) % len(sides)
    return [part for chain in (around[:lower], around[lower:]) for part in flat(formula_of(vertices, steps, chain))]


def formula_of(vertices: Array, steps: Array, chain: list[int]) -> Formula:
    """What lies left of a chain of sides whose first and last go on for ever: split where it is most prominent."""
    if len(chain) == 1:
        return chain[0]
    back, forth = (
        -steps[chain[0]] / np.linalg.norm(steps[chain[0]]),
        steps[chain[-1]] / np.linalg.norm(steps[chain[-1]]),
    )
    away = -(back + forth)
    corners = vertices[chain[1:]]
    if np.linalg.norm(away) < 1e-9:  # the two ends are parallel: to the side that sticks out
        away = np.array([-back[1], back[0]])
        heights = (corners - corners[0]) @ away
        away = away if heights.max() > -heights.min() else -away
    across = np.array([-away[1], away[0]])
    heights = np.round(corners @ away, 12)
    split = 1 + max(range(len(corners)), key=lambda i: (heights[i], corners[i] @ across))
    how = "and" if cross(steps[chain[split] - 1], steps[chain[split]]) > 0 else "or"
    return how, formula_of(vertices, steps, chain[:split]), formula_of(vertices, steps, chain[split:])


def flat(formula: Formula) -> list[Formula]:
    """The parts of a formula that are joined by "and"."""
    if isinstance(formula, tuple) and formula[0] == "and":
        return [*flat(formula[1]), *flat(formula[2])]
    return [formula]

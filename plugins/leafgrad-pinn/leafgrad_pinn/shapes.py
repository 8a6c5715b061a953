"""Sets of points in space, and the simplest: boxes and balls."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from leafgrad import Tensor
from leafgrad_pinn.callables import check_name, check_number
from leafgrad_pinn.rfunctions import both, trimmed
from leafgrad_pinn.sampling import Array

if TYPE_CHECKING:
    from leafgrad_pinn.domains import Domain, Parameter, Time
    from leafgrad_pinn.functions import InputFunction

ROUNDING = 1e-6  # of a shape's size: how far outside a point on its boundary may lie


@dataclass(frozen=True)
class Piece:
    """A smooth part of a boundary.

    Attributes:
        dim: how many parameters place a point on it.
        measure: its length or area; 1 for a point.
        place: takes parameters in the unit cube (n, dim) to points (n, d) and outward unit normals (n, d).
        keep: which points, (n, d) with their normals (n, d) to booleans (n,), belong to it, where set operations cut
            it; None for all.
        chart: of what goes round, for integrals: takes parameters as `place` does, the first of them a share of a turn,
            by which all is smooth and periodic, to points, normals, and the length or area per unit of them (n,).
    """

    dim: int
    measure: float
    place: Callable[[Array], tuple[Array, Array]]
    keep: Callable[[Array, Array], Array] | None = None
    chart: Callable[[Array], tuple[Array, Array, Array]] | None = None


class Shape(ABC):
    """A bounded set in space, with coordinates of given names.

    ``a + b`` is the union, ``a - b`` the difference, ``a & b`` the intersection; ``shape * Time(...)`` adds time.

    Attributes:
        names: the coordinates.
        bounds: the smallest and largest value of each: float64 (d, 2).
        edges: the boundary's pieces by name.
        written: the shapes that it is made of which have a function of the caller's own, where there may be kinks.
    """

    names: tuple[str, ...]
    bounds: Array
    edges: dict[str, list[Piece]]
    written: Sequence[Shape] = ()

    @abstractmethod
    def signed(self, points: Array) -> Array:
        """Negative inside, zero on the boundary, positive outside. (n, d) -> (n,)"""

    @abstractmethod
    def level(self, columns: Mapping[str, Tensor]) -> Tensor:
        """Positive inside, zero on the boundary, negative outside; smooth but at corners. n numbers each -> (n,)"""

    def contains(self, points: Array) -> Array:
        """Which points lie in it or, up to rounding, on its boundary. (n, d) -> booleans (n,)"""
        near: Array = self.signed(points) <= ROUNDING * np.ptp(self.bounds, axis=1).max()
        return near

    def at_edge(self, points: Array, edge: str) -> tuple[Array, Array]:
        """How far points (n, d) are from an edge, (n,), and its outward unit normals beside them, (n, d).

        Here by differences, of a shape whose whole boundary is one edge; others say it for each of theirs.
        """
        step = ROUNDING * np.ptp(self.bounds, axis=1).max()
        moves = step * np.eye(len(self.names))
        rise = np.stack([self.signed(points + move) - self.signed(points - move) for move in moves], 1)
        return np.abs(self.signed(points)), unit_rows(rise)

    def inner(self, columns: Mapping[str, Tensor]) -> Tensor:
        """As ``level`` in the shape, where it may be smoother; of any sign outside. n numbers each -> (n,)"""
        return self.level(columns)

    def near(self, columns: Mapping[str, Tensor], edges: Sequence[str]) -> Tensor:
        """Zero on the named edges, positive elsewhere on the boundary, and smooth. n numbers each -> (n,)"""
        return self.level(columns).square()

    def vanishing(self, columns: Mapping[str, Tensor], edges: Sequence[str]) -> Tensor:
        """Zero on the named edges, of first order, and positive in the rest of the shape. n numbers each -> (n,)

        Smooth inside, and on the boundary except at corners: there derivatives are nan.
        """
        inner = self.inner(columns)
        if set(edges) == set(self.edges):
            return inner
        near = self.near(columns, edges)
        return inner + near / (1 + near)

    def check_hard(self) -> None:
        """ValueError if ``vanishing`` is zero inside too, or of second order on an edge; most shapes are fine."""
        return None

    def __add__(self, other: Shape) -> Shape:
        return combined("union", self, other)

    def __sub__(self, other: Shape) -> Shape:
        return combined("difference", self, other)

    def __and__(self, other: Shape) -> Shape:
        return combined("intersection", self, other)

    def __mul__(self, other: Time | Parameter | InputFunction) -> Domain:
        from leafgrad_pinn.domains import Domain, Parameter, Time
        from leafgrad_pinn.functions import InputFunction

        if not isinstance(other, (Time, Parameter, InputFunction)):
            raise TypeError(
                f"{type(self).__name__} * other: expected Time(...), Parameter(...) or an input function, got "
                f"{type(other).__name__}; of shapes, only intervals and boxes have products"
            )
        return Domain(self) * other


def combined(how: str, first: Shape, second: Any) -> Shape:
    """What a set operation makes of two shapes."""
    from leafgrad_pinn.sets import Combined

    if not isinstance(second, Shape):
        raise TypeError(f"{how}: expected two shapes, got {type(second).__name__}; time comes last, by *")
    return Combined(how, first, second)


def unit_rows(vectors: Array) -> Array:
    """Vectors (n, d) of length 1, but for those of length 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows: Array = vectors / np.where(lengths > 0, lengths, 1)
    return rows


class Box(Shape):
    """A box, ``Box(x=(0, 1), y=(0, 2))``. Its edges are ``x_min``, ``x_max``, ``y_min``, ...

    Args:
        periodic: names of coordinates whose two ends are the same place, as one string; these have no edges.
        sides: for each coordinate its smallest and largest value.
    """

    def __init__(self, periodic: str = "", **sides: tuple[float, float]) -> None:
        if not sides:
            raise ValueError("Box: expected at least one side, as in Box(x=(0, 1)), got none")
        for name, side in sides.items():
            if not isinstance(side, Sequence) or isinstance(side, str) or len(side) != 2:
                raise TypeError(f"{name}: expected two numbers, as {name}=(0, 1), got {side!r}")
            low, high = side
            check_number(name, low)
            check_number(name, high)
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(f"{name}: expected two finite numbers, the smaller one first, got {low}, {high}")
        self.names = tuple(sides)
        self.bounds = np.array([sides[name] for name in sides], dtype=np.float64)
        self.sides = {name: (float(low), float(high)) for name, (low, high) in sides.items()}
        self.periodic = tuple(periodic.split())
        if unknown := set(self.periodic) - set(sides):
            raise ValueError(f"periodic: expected names among {', '.join(sides)}, got {', '.join(sorted(unknown))}")
        self.edges = {
            f"{name}_{end}": [self._face(axis, side)]
            for axis, name in enumerate(self.names)
            if name not in self.periodic
            for side, end in enumerate(("min", "max"))
        }

    def _face(self, axis: int, side: int) -> Piece:
        others = [i for i in range(len(self.names)) if i != axis]
        low, size = self.bounds[others, 0], np.ptp(self.bounds[others], axis=1)

        def place(u: Array) -> tuple[Array, Array]:
            points, normals = np.empty((len(u), len(self.names))), np.zeros((len(u), len(self.names)))
            points[:, others] = low + u * size
            points[:, axis] = self.bounds[axis, side]
            normals[:, axis] = 2 * side - 1
            return points, normals

        return Piece(len(others), float(np.prod(size)), place)

    def signed(self, points: Array) -> Array:
        distance: Array = self._beyond(points).max(1)
        return distance

    def _beyond(self, points: Array) -> Array:
        """How far points lie beyond the nearer end of each side, negative between the two. (n, d) -> (n, d)"""
        beyond: Array = np.maximum(self.bounds[:, 0] - points, points - self.bounds[:, 1])
        return beyond

    def at_edge(self, points: Array, edge: str) -> tuple[Array, Array]:
        name, _, end = edge.rpartition("_")
        axis, side = self.names.index(name), int(end == "max")
        away, normals = self._beyond(points), np.zeros(points.shape)
        away[:, axis], normals[:, axis] = np.abs(points[:, axis] - self.bounds[axis, side]), 2 * side - 1
        return away.max(1), normals

    def level(self, columns: Mapping[str, Tensor]) -> Tensor:
        return reduce(both, [1 - self._scaled(columns, name).square() for name in self.names])

    def inner(self, columns: Mapping[str, Tensor]) -> Tensor:
        return self.vanishing(columns, list(self.edges))

    def near(self, columns: Mapping[str, Tensor], edges: Sequence[str]) -> Tensor:
        squares = []
        for edge in edges:
            name, _, end = edge.rpartition("_")
            f = self._scaled(columns, name) + (1 if end == "min" else -1)
            others = [1 - self._scaled(columns, other).square() for other in self.names if other != name]
            squares.append(trimmed(f, reduce(both, others)) if others else f.square())
        return reduce(both, squares)

    def _scaled(self, columns: Mapping[str, Tensor], name: str) -> Tensor:
        """A coordinate as -1 ... 1."""
        low, high = self.sides[name]
        return (2 * columns[name] - (low + high)) / (high - low)

    def vanishing(self, columns: Mapping[str, Tensor], edges: Sequence[str]) -> Tensor:
        factors = []
        for name, (low, high) in self.sides.items():
            scale = 2 / (high - low)
            if f"{name}_min" in edges:
                factors.append(scale * (columns[name] - low))
            if f"{name}_max" in edges:
                factors.append(scale * (high - columns[name]))
        product: Tensor = math.prod(factors[1:], start=factors[0])
        return product

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Box):
            if shared := set(self.names) & set(other.names):
                raise ValueError(f"Box * Box: expected different coordinates, got {', '.join(shared)} twice")
            return Box(" ".join(self.periodic + other.periodic), **self.sides, **other.sides)
        return super().__mul__(other)

    def __repr__(self) -> str:
        if len(self.names) == 1:
            ((name, (low, high)),) = self.sides.items()
            return f"Interval({name!r}, {low}, {high}{', periodic=True' if self.periodic else ''})"
        sides = ", ".join(f"{name}=({low}, {high})" for name, (low, high) in self.sides.items())
        return f"Box({repr(' '.join(self.periodic)) + ', ' if self.periodic else ''}{sides})"


def Interval(name: str, low: float, high: float, periodic: bool = False) -> Box:
    """The interval [low, high] of one coordinate; its edges are ``x_min`` and ``x_max`` for a coordinate x."""
    check_name("Interval", name)
    return Box(name if periodic else "", **{name: (low, high)})


class Ball(Shape):
    """A disk or ball, ``Ball(1.0, x=0, y=0, z=0)``. Its edge is ``sphere``, or as ``edge`` says."""

    def __init__(self, radius: float, edge: str = "sphere", **center: float) -> None:
        check_number("radius", radius)
        for name, value in center.items():
            check_number(name, value)
        if radius <= 0:
            raise ValueError(f"radius: expected a positive number, got {radius}")
        if len(center) not in (2, 3):
            raise ValueError(f"Ball: expected a centre of 2 or 3 coordinates, as x=0, y=0, got {len(center)}")
        self.names, self.radius, self.edge = tuple(center), float(radius), edge
        self.center = np.array([center[name] for name in center], dtype=np.float64)
        self.origin = dict(zip(center, self.center.tolist(), strict=True))
        self.bounds = self.center[:, None] + radius * np.array([-1.0, 1.0])
        area = 2 * np.pi * radius if len(center) == 2 else 4 * np.pi * radius**2
        self.edges = {edge: [Piece(len(center) - 1, area, self._place, chart=self._chart)]}

    def _place(self, u: Array) -> tuple[Array, Array]:
        angle = 2 * np.pi * u[:, 0]
        normals = np.stack([np.cos(angle), np.sin(angle)], 1)
        if len(self.names) == 3:  # the height of uniform points on a sphere is uniform (Archimedes)
            height = 2 * u[:, 1:] - 1
            normals = np.concatenate([normals * np.sqrt(1 - height**2), height], 1)
        return self.center + self.radius * normals, normals

    def _chart(self, u: Array) -> tuple[Array, Array, Array]:
        ((piece,),) = self.edges.values()
        return *self._place(u), np.full(len(u), piece.measure)

    def signed(self, points: Array) -> Array:
        distance: Array = np.linalg.norm(points - self.center, axis=1) - self.radius
        return distance

    def level(self, columns: Mapping[str, Tensor]) -> Tensor:
        squares = [(columns[name] - c) ** 2 for name, c in self.origin.items()]
        factor: Tensor = 1 - sum(squares[1:], start=squares[0]) / self.radius**2
        return factor

    def __repr__(self) -> str:
        center = "".join(f", {name}={c}" for name, c in self.origin.items())
        return f"Ball({self.radius}, {self.edge!r}{center})"


def Disk(radius: float, edge: str = "circle", **center: float) -> Ball:
    """A disk, ``Disk(1.0, x=0, y=0)``. Its edge is ``circle``, or as ``edge`` says."""
    if len(center) != 2:
        raise ValueError(f"Disk: expected a centre of 2 coordinates, as x=0, y=0, got {len(center)}")
    return Ball(radius, edge, **center)

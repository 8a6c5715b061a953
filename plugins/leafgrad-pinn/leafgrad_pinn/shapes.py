"""Sets of points in space: boxes, balls, polygons, signed distances, and what set operations make of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leafgrad import Tensor
from leafgrad_pinn.sampling import Array

if TYPE_CHECKING:
    from leafgrad_pinn.domains import Domain, Time


@dataclass(frozen=True)
class Piece:
    """A smooth part of a boundary.

    Attributes:
        dim: how many parameters place a point on it.
        measure: its length or area; 1 for a point.
        place: takes parameters in the unit cube (n, dim) to points (n, d) and outward unit normals (n, d).
        keep: which points, (n, d) to booleans (n,), belong to it, where set operations cut it; None for all.
    """

    dim: int
    measure: float
    place: Callable[[Array], tuple[Array, Array]]
    keep: Callable[[Array], Array] | None = None


class Shape(ABC):
    """A bounded set in space, with coordinates of given names.

    ``a + b`` is the union, ``a - b`` the difference, ``a & b`` the intersection; ``shape * Time(...)`` adds time.

    Attributes:
        names: the coordinates.
        bounds: the smallest and largest value of each: float64 (d, 2).
        edges: the boundary's pieces by name.
    """

    names: tuple[str, ...]
    bounds: Array
    edges: dict[str, list[Piece]]

    @abstractmethod
    def signed(self, points: Array) -> Array:
        """Negative inside, zero on the boundary, positive outside. (n, d) -> (n,)"""

    def vanishing(self, columns: Mapping[str, Tensor], edges: Sequence[str]) -> Tensor:
        """A smooth function that is zero exactly on the named edges, and positive inside. n numbers each -> (n,)"""
        raise ValueError(f"Hard: {type(self).__name__} has no smooth distance function; use Dirichlet(...) instead")

    def __add__(self, other: Shape) -> Shape:
        return Combined("union", self, other)

    def __sub__(self, other: Shape) -> Shape:
        return Combined("difference", self, other)

    def __and__(self, other: Shape) -> Shape:
        return Combined("intersection", self, other)

    def __mul__(self, other: Time) -> Domain:
        from leafgrad_pinn.domains import Domain, Time

        if not isinstance(other, Time):
            raise TypeError(f"{type(self).__name__} * other: expected Time(...), got {type(other).__name__}")
        return Domain(self, other)


class Box(Shape):
    """A box, ``Box(x=(0, 1), y=(0, 2))``. Its edges are ``x_min``, ``x_max``, ``y_min``, ...

    Args:
        periodic: names of coordinates whose two ends are the same place, as one string; these have no edges.
        sides: for each coordinate its smallest and largest value.
    """

    def __init__(self, periodic: str = "", **sides: tuple[float, float]) -> None:
        if not sides:
            raise ValueError("Box: expected at least one side, as in Box(x=(0, 1)), got none")
        for name, (low, high) in sides.items():
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
        inside = np.maximum(self.bounds[:, 0] - points, points - self.bounds[:, 1])
        distance: Array = inside.max(1)
        return distance

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
        sides = "".join(f", {name}=({low}, {high})" for name, (low, high) in self.sides.items())
        return f"Box({' '.join(self.periodic)!r}{sides})"


def Interval(name: str, low: float, high: float, periodic: bool = False) -> Box:
    """The interval [low, high] of one coordinate; its edges are ``x_min`` and ``x_max`` for a coordinate x."""
    return Box(name if periodic else "", **{name: (low, high)})


class Ball(Shape):
    """A disk or ball, ``Ball(1.0, x=0, y=0, z=0)``. Its edge is ``sphere``, or as ``edge`` says."""

    def __init__(self, radius: float, edge: str = "sphere", **center: float) -> None:
        if not (math.isfinite(radius) and radius > 0):
            raise ValueError(f"radius: expected a positive number, got {radius}")
        if len(center) not in (2, 3):
            raise ValueError(f"Ball: expected a centre of 2 or 3 coordinates, as x=0, y=0, got {len(center)}")
        self.names, self.radius, self.edge = tuple(center), float(radius), edge
        self.center = np.array([center[name] for name in center], dtype=np.float64)
        self.origin = dict(zip(center, self.center.tolist(), strict=True))
        self.bounds = self.center[:, None] + radius * np.array([-1.0, 1.0])
        area = 2 * np.pi * radius if len(center) == 2 else 4 * np.pi * radius**2
        self.edges = {edge: [Piece(len(center) - 1, area, self._place)]}

    def _place(self, u: Array) -> tuple[Array, Array]:
        angle = 2 * np.pi * u[:, 0]
        normals = np.stack([np.cos(angle), np.sin(angle)], 1)
        if len(self.names) == 3:  # the height of uniform points on a sphere is uniform (Archimedes)
            height = 2 * u[:, 1:] - 1
            normals = np.concatenate([normals * np.sqrt(1 - height**2), height], 1)
        return self.center + self.radius * normals, normals

    def signed(self, points: Array) -> Array:
        distance: Array = np.linalg.norm(points - self.center, axis=1) - self.radius
        return distance

    def vanishing(self, columns: Mapping[str, Tensor], edges: Sequence[str]) -> Tensor:
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
        if len(self.names) != 2 or len(self.sides) != len(self.vertices):
            raise ValueError(
                f"Polygon: expected two names and {len(self.vertices)} edges, got {len(self.names)} names and "
                f"{len(self.sides)} edges"
            )
        self.starts, self.steps = self.vertices, np.roll(self.vertices, -1, 0) - self.vertices
        ends = self.starts + self.steps
        self.turn = math.copysign(1.0, float((self.starts[:, 0] * ends[:, 1] - self.starts[:, 1] * ends[:, 0]).sum()))
        self.bounds = np.stack([self.vertices.min(0), self.vertices.max(0)], 1)
        self.edges = {}
        for k, side in enumerate(self.sides):
            self.edges.setdefault(side, []).append(self._side(k))

    def _side(self, k: int) -> Piece:
        start, step = self.starts[k], self.steps[k]
        length = float(np.linalg.norm(step))
        normal = self.turn * np.array([step[1], -step[0]]) / length
        return Piece(1, length, lambda u: (start + u * step, np.broadcast_to(normal, (len(u), 2))))

    def signed(self, points: Array) -> Array:
        offset = points[:, None] - self.starts
        along = np.clip((offset * self.steps).sum(-1) / (self.steps**2).sum(-1), 0, 1)
        distance = np.linalg.norm(offset - along[..., None] * self.steps, axis=-1).min(1)
        above = offset[..., 1] >= 0
        crosses = above != np.roll(above, -1, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            x = self.starts[:, 0] + self.steps[:, 0] * offset[..., 1] / self.steps[:, 1]
        inside = (crosses & (points[:, :1] < x)).sum(1) % 2 == 1
        signed: Array = np.where(inside, -distance, distance)
        return signed

    def __repr__(self) -> str:
        return f"Polygon({self.vertices.tolist()}, {' '.join(self.names)!r}, {self.sides})"


def LShape(names: str = "x y") -> Polygon:
    """[-1, 1]^2 without the quarter x > 0, y < 0; the inner corner at the origin has ``edge0`` and ``edge5``."""
    return Polygon([(0, 0), (0, -1), (-1, -1), (-1, 1), (1, 1), (1, 0)], names)


class SignedDistance(Shape):
    """Where a function is negative: ``SignedDistance(lambda x, y: x**4 + y**4 - 1, x=(-1, 1), y=(-1, 1))``.

    Its edge is ``boundary``: points where the function is zero, by Newton's method from points of the box; they
    are spread evenly only as far as the function is near to a distance.

    Args:
        function: takes NumPy arrays (n,), one for each coordinate, to (n,); smooth near its zeros.
        sides: a box around it.
    """

    def __init__(self, function: Callable[..., Array], **sides: tuple[float, float]) -> None:
        box = Box("", **sides)
        self.function, self.names, self.bounds = function, box.names, box.bounds
        self.edges = {"boundary": [Piece(len(self.names), 1.0, self._place, lambda points: ~np.isnan(points[:, 0]))]}

    def signed(self, points: Array) -> Array:
        values = np.asarray(self.function(*points.T), dtype=np.float64)
        if values.shape != (len(points),):
            raise ValueError(f"SignedDistance: function: expected shape ({len(points)},), got {values.shape}")
        return values

    def gradient(self, points: Array) -> Array:
        """By central differences, whose error is of order 1e-10. (n, d) -> (n, d)"""
        step = 1e-5 * np.ptp(self.bounds, axis=1)
        shifts = np.diag(step)
        columns = [
            (self.signed(points + shift) - self.signed(points - shift)) / (2 * h)
            for shift, h in zip(shifts, step, strict=True)
        ]
        return np.stack(columns, 1)

    def _place(self, u: Array) -> tuple[Array, Array]:
        points = self.bounds[:, 0] + u * np.ptp(self.bounds, axis=1)
        with np.errstate(all="ignore"):
            for _ in range(30):
                slope = self.gradient(points)
                points = points - slope * (self.signed(points) / (slope**2).sum(1))[:, None]
            slope = self.gradient(points)
            length = np.linalg.norm(slope, axis=1, keepdims=True)
            near = np.abs(self.signed(points))[:, None] <= 1e-9 * length * np.ptp(self.bounds)
        within = (points >= self.bounds[:, 0]).all(1) & (points <= self.bounds[:, 1]).all(1)
        return np.where(near & within[:, None], points, np.nan), slope / length


class Combined(Shape):
    """The union, difference or intersection of two shapes. Edges keep their names; those of one name are one edge."""

    def __init__(self, how: str, first: Shape, second: Shape) -> None:
        if first.names != second.names:
            raise ValueError(f"{how}: expected the same coordinates, got {first.names} and {second.names}")
        self.how, self.first, self.second, self.names = how, first, second, first.names
        low, high = np.minimum, np.maximum
        if how == "union":
            self.bounds = np.stack([low(first.bounds, second.bounds)[:, 0], high(first.bounds, second.bounds)[:, 1]], 1)
        elif how == "difference":
            self.bounds = first.bounds
        else:
            self.bounds = np.stack([high(first.bounds, second.bounds)[:, 0], low(first.bounds, second.bounds)[:, 1]], 1)
        self.edges = {}
        for shape, other, outside in ((first, second, how != "intersection"), (second, first, how == "union")):
            flipped = how == "difference" and shape is second
            for name, pieces in shape.edges.items():
                self.edges.setdefault(name, []).extend(cut(piece, other, outside, flipped) for piece in pieces)

    def signed(self, points: Array) -> Array:
        first, second = self.first.signed(points), self.second.signed(points)
        if self.how == "union":
            return np.minimum(first, second)
        return np.maximum(first, -second if self.how == "difference" else second)


def cut(piece: Piece, other: Shape, outside: bool, flipped: bool) -> Piece:
    """The part of a piece that lies outside, or inside, another shape; with its normals turned round if flipped."""

    def place(u: Array) -> tuple[Array, Array]:
        points, normals = piece.place(u)
        return points, -normals if flipped else normals

    def keep(points: Array) -> Array:
        side = other.signed(np.nan_to_num(points))
        kept = side >= 0 if outside else side <= 0
        return kept if piece.keep is None else kept & piece.keep(points)

    return Piece(piece.dim, piece.measure, place, keep)

"""Where an equation holds: a shape in space, an interval of time, ranges of parameters, and families of functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NoReturn

import numpy as np

from leafgrad_pinn.callables import check_name, check_number
from leafgrad_pinn.functions import InputFunction
from leafgrad_pinn.sampling import Array, unit
from leafgrad_pinn.shapes import Box, Piece, Shape

MEASURED = 4096  # points that measure what is left of a piece
TRIES = 200  # rounds of drawing without any point after which a shape counts as empty
RARE = 1e-4  # of what is drawn, the least share to wait for
LARGE = 2**16  # points of a round where they are rare


class Time:
    """The interval [start, stop] of time, of a coordinate of a given name."""

    def __init__(self, name: str, start: float, stop: float) -> None:
        check_ends("Time", name, {"start": start, "stop": stop})
        self.name, self.start, self.stop = name, float(start), float(stop)

    def __mul__(self, other: Any) -> Domain:
        if isinstance(other, (Parameter, InputFunction)):
            return Domain(None, self) * other
        raise TypeError(f"Time * {type(other).__name__}: time comes last: `shape * Time('t', 0, 1)`")

    def __repr__(self) -> str:
        return f"Time({self.name!r}, {self.start}, {self.stop})"


class Parameter:
    """The range [low, high] of a number in a problem that is solved for all of its values at once.

    ``shape * Time("t", 0, 1) * Parameter("mu", 1, 20)`` has the coordinate mu, which is none of space: Laplacians,
    edges, normals and the factors of `Hard` leave it out. Equations, values on edges and initial values may ask for it.
    """

    def __init__(self, name: str, low: float, high: float) -> None:
        check_ends("Parameter", name, {"low": low, "high": high})
        self.name, self.low, self.high = name, float(low), float(high)

    def __mul__(self, other: Any) -> Domain:
        raise TypeError(f"Parameter * {type(other).__name__}: parameters come last: `shape * Parameter('mu', 1, 20)`")

    def __repr__(self) -> str:
        return f"Parameter({self.name!r}, {self.low}, {self.high})"


def check_ends(what: str, name: str, ends: dict[str, float]) -> None:
    """TypeError or ValueError unless there is a name, and two finite numbers of which the first is smaller."""
    check_name(what, name)
    for end, value in ends.items():
        check_number(f"{what}: {name}: {end}", value)
    (first, low), (last, high) = ends.items()
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name}: expected a finite {first} before a finite {last}, got {low}, {high}")


class Domain:
    """A shape in space, an interval of time, ranges of parameters, or their product, made by ``*`` in this order.

    Times an `InputFunction` it is that of a family of problems, one for each such function.

    Attributes:
        names: the coordinates: those of space, the parameters, and time last.
        functions: those that the problems of a family differ in.
        bounds: the smallest and largest value of each: float64 (d, 2). ends: the same by name.
        space: the coordinates of space.
    """

    def __init__(
        self,
        shape: Shape | None,
        time: Time | None = None,
        parameters: Sequence[Parameter] = (),
        functions: Sequence[InputFunction] = (),
    ) -> None:
        self.shape, self.time, self.parameters = shape, time, tuple(parameters)
        self.space = shape.names if shape else ()
        if time and time.name in self.space:
            raise ValueError(f"Time: expected a name other than {', '.join(self.space)}, got {time.name!r}")
        self.names = (*self.space, *[p.name for p in self.parameters], *([time.name] if time else []))
        for name in self.names:
            check_name("coordinates", name)
        if len(set(self.names)) < len(self.names):
            raise ValueError(
                f"Parameter: expected another name than other coordinates have, got {', '.join(self.names)}"
            )
        ranges = [(p.low, p.high) for p in self.parameters]
        rows = [*(shape.bounds if shape else ()), *ranges, *([(time.start, time.stop)] if time else ())]
        self.bounds = np.array(rows, dtype=np.float64)
        self.ends: dict[str, tuple[float, float]] = dict(zip(self.names, map(tuple, self.bounds.tolist()), strict=True))
        self.periodic = shape.periodic if isinstance(shape, Box) else ()
        self.functions = tuple(function.on(self) for function in functions)
        if taken := {f.name for f in self.functions} & {*self.names, *self.edges}:
            raise ValueError(f"{min(taken)}: expected another name for an input function than coordinates have")
        if len({f.name for f in self.functions}) < len(self.functions):
            raise ValueError(f"{self.functions[-1].name}: expected input functions of different names, got it twice")

    def __mul__(self, other: Any) -> Domain:
        if isinstance(other, Parameter):
            return Domain(self.shape, self.time, (*self.parameters, other), self.functions)
        if isinstance(other, Time) and self.time is None:
            return Domain(self.shape, other, self.parameters, self.functions)
        if isinstance(other, InputFunction):
            return Domain(self.shape, self.time, self.parameters, (*self.functions, other))
        raise TypeError(
            f"domain * {type(other).__name__}: expected shapes first, then one Time(...), Parameter(...), and input "
            "functions such as GaussianField(...)"
        )

    def __sub__(self, other: Any) -> NoReturn:
        raise TypeError(
            f"expected set operations of shapes before times and parameters, as (shape - other) * Time('t', 0, 1), got "
            f"them of {self} and {type(other).__name__}"
        )

    __add__ = __and__ = __sub__

    def given(self, batch: dict[str, Array], rng: np.random.Generator) -> dict[str, Array]:
        """Points with an input function of each kind at each of them, drawn unless the batch says which."""
        drawn = {f.key: f.draw(len(batch["points"]), rng) for f in self.functions if f.key not in batch}
        return batch | drawn

    @property
    def alone(self) -> Domain:
        """That of one problem of a family."""
        return Domain(self.shape, self.time, self.parameters)

    @property
    def edges(self) -> tuple[str, ...]:
        """The names of the boundary's parts."""
        return tuple(self.shape.edges) if self.shape else ()

    def inside(self, points: Array) -> Array:
        """Which points lie in it or, up to rounding, on its boundary. (n, d) -> booleans (n,)"""
        slack = 1e-6 * np.ptp(self.bounds, axis=1)
        within: Array = ((points >= self.bounds[:, 0] - slack) & (points <= self.bounds[:, 1] + slack)).all(1)
        if self.shape:
            within &= self.shape.signed(points[:, : len(self.space)]) <= slack[: len(self.space)].max()
        return within

    def covered(self, shape: Shape, points: Array) -> Array:
        """Which points lie in a shape of some of its coordinates, in any order. (n, d) -> booleans (n,)"""
        return shape.contains(points[:, [self.names.index(name) for name in shape.names]])

    def interior(self, n: int, sampler: str, rng: np.random.Generator) -> Array:
        """Points inside, float64 (n, d). Of a grid of about n points in the bounding box, those inside.

        In shapes other than boxes, points of the bounding box are drawn until n of them are inside.
        """
        self._check_stratified(sampler)
        if self.shape is None or isinstance(self.shape, Box):
            return self._from_unit(unit(sampler, n, len(self.names), rng))

        def draw(m: int) -> tuple[Array, Array]:
            points = self._from_unit(unit(sampler, m, len(self.names), rng))
            return points, points

        def keep(points: Array, _: Array) -> Array:
            return self._open(points)

        if sampler == "grid":
            points, _ = draw(n)
            return points[self._open(points)]
        empty = ValueError(f"{self.shape}: no points inside were found")
        points = filled(n, draw, keep, f"{self.shape}: points inside", empty)[0]
        if sampler == "stratified":  # points that lie outside must not leave slices of time empty
            points[:, -1:] = self.bounds[-1, 0] + unit(sampler, n, 1, rng) * np.ptp(self.bounds[-1])
        return points

    def boundary(self, n: int, edges: Iterable[str], sampler: str, rng: np.random.Generator) -> tuple[Array, Array]:
        """Points on the named edges and their outward unit normals in space: float64 (n, d), (n, k).

        The pieces get points in proportion to their length or area, at least one each, and n in all, unless they are
        more, a grid, or single points.
        """
        self._check_stratified(sampler)
        pieces = [piece for edge in self.check_edges(edges) for piece in self._pieces(edge)]
        pieces = [piece for piece in pieces if measure(piece) > 0]
        if not pieces:
            raise ValueError(f"on: {', '.join(edges)}: nothing of these edges is left by the set operations")
        counts = shares(n, np.array([measure(piece) for piece in pieces]))
        parts = [self._on_piece(piece, int(count), sampler, rng) for piece, count in zip(pieces, counts, strict=True)]
        return np.concatenate([p for p, _ in parts]), np.concatenate([normal for _, normal in parts])

    def start(self, n: int, sampler: str, rng: np.random.Generator) -> Array:
        """Points at the first moment: float64 (n, d)."""
        if self.time is None:
            raise ValueError("Initial: the domain has no time; make one with `shape * Time('t', 0, 1)`")
        if len(self.names) == 1:
            return np.full((1, 1), self.time.start)
        points = Domain(self.shape, None, self.parameters).interior(n, sampler, rng)
        return np.concatenate([points, np.full((len(points), 1), self.time.start)], 1)

    def check_edges(self, edges: Iterable[str]) -> tuple[str, ...]:
        """The names themselves; ValueError if one is not of an edge, or there are none."""
        chosen = tuple(edges)
        if unknown := [edge for edge in chosen if edge not in self.edges]:
            known = ", ".join(self.edges) or "none, since it is periodic or has no space"
            raise ValueError(f"on: expected edges of the domain ({known}), got {', '.join(unknown)}")
        if not chosen:
            raise ValueError("on: the domain has no edges, since it is periodic or has no space")
        return chosen

    def check_inside(self, what: str, points: Array) -> None:
        """ValueError if a point (n, d) lies outside; ``what`` names them."""
        outside = ~self.inside(points)
        if outside.any():
            first = dict(zip(self.names, points[outside][0].tolist(), strict=True))
            raise ValueError(
                f"{what}: expected points inside {self}, got {outside.sum()} outside, the first at {first}"
            )

    def _pieces(self, edge: str) -> Sequence[Piece]:
        return self.shape.edges[edge] if self.shape else ()

    def _open(self, points: Array) -> Array:
        return self.shape.signed(points[:, : len(self.space)]) < 0 if self.shape else np.full(len(points), True)

    def _from_unit(self, u: Array) -> Array:
        scaled: Array = self.bounds[:, 0] + u * np.ptp(self.bounds, axis=1)
        return scaled

    def _on_piece(self, piece: Piece, n: int, sampler: str, rng: np.random.Generator) -> tuple[Array, Array]:
        rest = self.bounds[len(self.space) :]
        n = n if piece.dim + len(rest) else 1

        def draw(m: int) -> tuple[Array, Array]:
            u = unit(sampler, m, piece.dim + len(rest), rng)
            points, normals = piece.place(u[:, : piece.dim])
            return np.concatenate([points, rest[:, 0] + u[:, piece.dim :] * np.ptp(rest, axis=1)], 1), normals

        if piece.keep is None:
            return draw(n)
        keep = piece.keep
        if sampler == "grid":
            points, normals = draw(n)
            kept = keep(points[:, : len(self.space)], normals)
            return points[kept], normals[kept]

        def on_edge(points: Array, normals: Array) -> Array:
            return keep(points[:, : len(self.space)], normals)

        points, normals = filled(n, draw, on_edge, "points of an edge", ValueError("no points of an edge were found"))
        if sampler == "stratified":
            points[:, -1:] = self.bounds[-1, 0] + unit(sampler, n, 1, rng) * np.ptp(self.bounds[-1])
        return points, normals

    def _check_stratified(self, sampler: str) -> None:
        if sampler == "stratified" and self.time is None:
            raise ValueError("sampler: 'stratified' is in time, which the domain does not have; use 'latin'")

    def __repr__(self) -> str:
        parts = (self.shape, self.time, *self.parameters, *self.functions)
        return " * ".join(repr(part) for part in parts if part is not None)


@cache
def measure(piece: Piece) -> float:
    """The length or area of what is left of a piece; always the same number, so that numbers of points stay."""
    if piece.keep is None:
        return piece.measure
    u = unit("sobol", MEASURED, piece.dim, np.random.default_rng(0))
    return piece.measure * float(piece.keep(*piece.place(u)).mean())


def shares(n: int, measures: Array) -> Array:
    """Whole numbers in proportion to measures, at least one each, that add up to n where that can be: (k,)"""
    exact = max(0, n - len(measures)) * measures / measures.sum()
    counts = np.floor(exact).astype(int)
    largest = np.argsort(counts - exact, kind="stable")[: max(0, n - len(measures)) - counts.sum()]
    counts[largest] += 1
    more: Array = counts + 1
    return more


def filled(
    n: int, draw: Callable[[int], tuple[Array, Array]], keep: Callable[[Array, Array], Array], what: str,
    empty: ValueError,
) -> tuple[Array, Array]:  # fmt: skip
    """n pairs of rows, ``keep`` accepting the first, drawn until there are n; ``what`` says of which.

    Raises:
        ValueError: ``empty`` if none come, another if they are too rare.
    """
    kept: list[tuple[Array, Array]] = []
    size, count, drawn = max(2 * n, 256), 0, 0
    usual = TRIES * size
    while count < n:
        if drawn >= usual and not count:
            raise empty
        if drawn >= max(usual, n / RARE):
            raise ValueError(f"{what}: expected {n} of them, found {count} among {drawn} drawn; take a smaller n")
        first, second = draw(size)
        good = keep(first, second)
        kept.append((first[good], second[good]))
        count, drawn = count + int(good.sum()), drawn + size
        size = size if drawn < usual else max(size, LARGE)
    return np.concatenate([a for a, _ in kept])[:n], np.concatenate([b for _, b in kept])[:n]


def widest(domains: Iterable[Domain]) -> Domain:
    """The one with most coordinates, and input functions."""
    return max(domains, key=lambda domain: (len(domain.names), len(domain.functions)))


def as_domain(domain: Domain | Shape | Time) -> Domain:
    """A shape or a time as a domain."""
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, Time):
        return Domain(None, domain)
    if isinstance(domain, Shape):
        return Domain(domain)
    raise TypeError(f"domain: expected a shape, a time, or shape * time, got {type(domain).__name__}")

"""The problem linearised about what was found, in a space of polynomials: A c + r = 0 for u + sum of c_k phi_k.

How residuals change with the fields' derivatives at each point (`leafgrad_pinn.taylor`) and the derivatives of the
basis make A; no derivative by a network's weights is taken. Coordinates have Chebyshev polynomials, periodic ones
harmonics. It serves to say what the conditions leave open, and how large the error is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.polynomial import chebyshev

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.conditions import Condition, Interior
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.field import Field
from leafgrad_pinn.integrals import Integral
from leafgrad_pinn.observations import Data
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.shapes import Box
from leafgrad_pinn.system import Tensors, on_device
from leafgrad_pinn.taylor import Taylor, Unfit, parts_of, slopes, spelled_out
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.unknowns import moved
from leafgrad_pinn.values import LAP, Path
from leafgrad_pinn.windows import Continued

EXACT = 100.0  # times other rows: those that hold where fields are exact
CHUNK = 4096  # points at once
NODES = 2**14  # points of rules, of all integrals of a condition together

Rows = tuple[Array, Array]  # A (m, k) and r (m,)


class Polynomials:
    """Products of polynomials or harmonics of each coordinate.

    Args:
        field: on whose domain, or part of it, they are.
        degrees: how many of each coordinate.
    """

    def __init__(self, field: Field, degrees: Mapping[str, int]) -> None:
        self.domain, self.bounds = field.domain, field.domain.bounds.copy()
        if field.part is not None:
            self.bounds[: len(field.part.names)] = field.part.bounds
        self.degrees = [degrees[name] for name in self.domain.names]
        self.periodic = field.net.rings(self.domain.periodic)
        self.size = int(np.prod(self.degrees))

    def __call__(self, columns: Mapping[str, Array], path: Path) -> Array:
        """Their derivatives by a path of coordinates, or Laplacians, at points: (n, size)."""
        if path == LAP:
            return np.sum([self(columns, (c, c)) for c in self.domain.space], axis=0)
        found = np.ones((len(next(iter(columns.values()))), 1))
        for name, degree, ends in zip(self.domain.names, self.degrees, self.bounds, strict=True):
            one = harmonics if name in self.periodic else polynomials
            each = one(columns[name], ends, degree, path.count(name))
            found = (found[:, :, None] * each[:, None, :]).reshape(len(found), -1)
        return found


def polynomials(x: Array, ends: Array, count: int, order: int) -> Array:
    """Derivatives of Chebyshev polynomials: (n,) -> (n, count)"""
    scale = 2 / (ends[1] - ends[0])
    coefficients = chebyshev.chebder(np.eye(count), order, scl=scale) if order else np.eye(count)
    return np.asarray(chebyshev.chebval((x - ends[0]) * scale - 1, coefficients)).T


def harmonics(x: Array, ends: Array, count: int, order: int) -> Array:
    """Derivatives of 1, cos, sin, ... : (n,) -> (n, count)"""
    k = (np.arange(count) + 1) // 2
    rate = 2 * np.pi * k / (ends[1] - ends[0])
    turned = np.pi / 2 * (order - (np.arange(count) % 2 == 0) * (k > 0))
    return np.asarray(rate**order * np.cos((x - ends[0])[:, None] * rate + turned))


class Linearised:
    """A trained system's problem about its fields.

    Args:
        trainee: what was trained.
        degrees: how many polynomials of each coordinate.
        before: what is wrong in the windows of time before, in a later one.
        functions: which problem of a family is meant, by its input functions' values at sensors, (1, m).

    Attributes:
        inputs: these functions, as the system's fields take them.
        energies: the indices of conditions that are no rows, for they are least.

    Raises:
        Unfit: a residual depends on more than fields and the derivatives that were asked for.
    """

    def __init__(
        self,
        trainee: Trainee,
        degrees: Mapping[str, int],
        before: Before | None = None,
        functions: Mapping[str, Array] = {},
    ) -> None:
        self.trainee, self.system, self.domain = trainee, trainee.system, trainee.problem.domain
        self.before, self.functions = before, functions
        self.inputs = {
            name: leafgrad.tensor(row, dtype=trainee.dtype, device=trainee.device) for name, row in functions.items()
        }
        if self.domain.functions and not functions:
            raise Unfit("a family of problems, whose errors differ")
        if functions and any(isinstance(condition, Data) for condition in trainee.problem.conditions):
            raise Unfit("data of other problems of the family")
        self.energies = [k for k, condition in enumerate(trainee.problem.conditions) if condition.minimised]
        if self.energies and self.system.unknowns:
            raise Unfit("unknowns of an energy")
        self.taylor = Taylor(trainee, None if before is None else self._wrong)
        self.fields = self.taylor.fields
        self.bases: dict[str, tuple[int, Polynomials]] = {}
        self.size = 0
        for name, field in self.taylor.bases.items():
            self.bases[name] = self.size, Polynomials(field, degrees)
            self.size += self.bases[name][1].size
        self.numbers = len(self.system.numbers)
        self.size += self.numbers

    def _wrong(self, columns: Mapping[str, Tensor]) -> Tensors:
        """What is wrong in earlier windows, near any places, with the derivatives that conditions ask for."""
        assert self.before is not None
        rows = numbers(leafgrad.stack([columns[name] for name in self.domain.names], 1))
        asked = [request for plan in self.trainee.problem.plans for request in plan.asked]
        every = {()} | {part for _, path in spelled_out(asked, self.domain) for part in parts_of(path)}
        some = columns[self.domain.names[0]]
        leaves = {(name, path): like(some, self.before(name, rows, path)) for name in self.bases for path in every}
        return self.taylor.near(leaves, columns)

    def columns(self, points: Array) -> dict[str, Array]:
        """Points (n, d) by coordinate."""
        return {name: points[:, i] for i, name in enumerate(self.domain.names)}

    def basis(self, name: str, points: Array, path: Path = ()) -> Array:
        """A field, or a derivative of it, of each coefficient: (n, size); 1 is as large as the field."""
        field, path, factor = self.taylor.base(name, path)
        begin, polynomials = self.bases[field.name]
        found = np.zeros((len(points), self.size))
        if set(path) <= {*field.domain.names, *LAP}:
            values = polynomials(self.columns(points), path) * (factor * (field.scale or 1.0))
            found[:, begin : begin + polynomials.size] = values
        return found

    def fit(self, name: str, points: Array, values: Array) -> tuple[Array, float]:
        """Coefficients (size,) by which a field has values (n,) at points, and how far it is from them, relatively."""
        begin, polynomials = self.bases[name]
        c, basis = np.zeros(self.size), self.basis(name, points)[:, begin : begin + polynomials.size]
        c[begin : begin + polynomials.size] = np.linalg.lstsq(basis, values)[0]
        size = float(np.linalg.norm(values))
        return c, float(np.linalg.norm(self.basis(name, points) @ c - values)) / size if size else 0.0

    def within(self, name: str, points: Array) -> Array:
        """At which points (n, d) there is such a field: (n,)"""
        part = self.fields[name].part
        return np.ones(len(points), bool) if part is None else self.domain.covered(part, points)

    def drawn(self, condition: Condition, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """New points for a condition, about n, with the functions at each."""
        closed = {name for _, basis in self.bases.values() for name in basis.periodic}
        batch = drawn(condition, self.domain, n, rng, closed)
        return batch | {
            f.key: np.repeat(self.functions[f.name], len(batch["points"]), 0) for f in self.domain.functions
        }

    def rows(self, index: int, condition: Condition, n: int, rng: np.random.Generator) -> Rows:
        """Those of a condition at about n new points, divided by the root of their number."""
        found = []
        batch = self.drawn(condition, n, rng)
        for begin in range(0, len(batch["points"]), CHUNK):
            part = {name: values[begin : begin + CHUNK] for name, values in batch.items()}
            found.append(self._linear(index, part))
        root = len(batch["points"]) ** 0.5
        return np.concatenate([a for a, _ in found]) / root, np.concatenate([r for _, r in found]) / root

    def _linear(self, index: int, batch: Mapping[str, Array]) -> Rows:
        (tensors,) = on_device([dict(batch)], self.trainee.dtype, self.trainee.device)
        rows, points, by_numbers = [], batch["points"], self._by_numbers(index, tensors)
        residuals, places = self.taylor.expanded(index, tensors)
        for k, each in enumerate(slopes(residuals, places)):
            matrix = np.zeros((len(points), self.size))
            for place, rates in zip(places, each, strict=True):
                rows_at = numbers(place.points)
                for (field, path), slope in rates.items():
                    weight = numbers(slope)
                    if weight.any():
                        added = weight[:, None] * self.basis(field, rows_at, path)
                        matrix += added.reshape(len(points), -1, self.size).sum(1)
            matrix[:, self.size - self.numbers :] = by_numbers[:, k]
            rows.append(matrix)
        return np.concatenate(rows), self._beside_before(index, numbers(residuals), points)

    def _beside_before(self, index: int, r: Array, points: Array) -> Array:
        """Residuals (n, k) of a condition as a vector: it may be given values that have errors, too."""
        condition = self.trainee.problem.conditions[index]
        if isinstance(condition, Continued) and self.before is not None:
            for k, (name, path) in enumerate(condition.handed):
                r[:, k] -= numbers(getattr(self.system, f"share{index}"))[k] * self.before.at_the_end(
                    name, points, path
                )
        return r.T.reshape(-1)

    def left(self, c: Array, n: int, rng: np.random.Generator) -> float:
        """What is left of the residuals of the problem itself, linear or not, at about n new points when c is added."""
        a, r = self.exact(max(8, n // 4), rng)
        squares = [(np.square(a @ c + r).sum(), np.square(r).sum())]
        for index, condition in enumerate(self.trainee.problem.conditions):
            batch = self.drawn(condition, n if everywhere(condition) else max(8, n // 4), rng)
            (tensors,), points = on_device([batch], self.trainee.dtype, self.trainee.device), batch["points"]
            here, places = self.taylor.expanded(index, tensors)
            corrected = [
                {
                    (name, path): leaf.detach() + like(leaf, self.basis(name, numbers(place.points), path) @ c)
                    for (name, path), leaf in place.leaves.items()
                }
                for place in places
            ]
            with moved(list(self.system.numbers), c[self.size - self.numbers :]):
                there = self.taylor.at(index, tensors, corrected)
            pair = [self._beside_before(index, numbers(values), points) for values in (there, here)]
            squares.append((np.square(pair[0]).mean() * there.shape[1], np.square(pair[1]).mean() * there.shape[1]))
        after, before = (math.sqrt(sum(each)) for each in zip(*squares, strict=True))
        return after / max(before, 1e-300)

    def residuals(self, index: int, condition: Condition, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """About n new points (n, d) of a condition, and its residuals there (n, k)."""
        batch = self.drawn(condition, n, rng)
        (tensors,) = on_device([batch], self.trainee.dtype, self.trainee.device)
        return batch["points"], numbers(self.trainee.residuals(index, tensors))

    def _by_numbers(self, index: int, tensors: Tensors) -> Array:
        """The residuals' derivatives by the unknowns (n, k, unknowns), by differences."""
        found = []
        for each, number in zip(np.eye(self.numbers), self.system.numbers, strict=True):
            step, ends = 1e-5 * max(1.0, abs(float(number.detach()))), []
            for sign in (1, -1):
                with moved(list(self.system.numbers), sign * step * each):
                    ends.append(numbers(self.trainee.residuals(index, tensors)))
            found.append((ends[0] - ends[1]) / (2 * step))
        return np.stack(found, -1) if found else np.zeros((*self.trainee.residuals(index, tensors).shape, 0))

    def exact(self, n: int, rng: np.random.Generator) -> Rows:
        """Rows that say where fields are exact by construction, or go on from a window before."""
        found = [(np.zeros((0, self.size)), np.zeros(0))]
        for surrogate in self.system.surrogates:
            for name, ansatz in surrogate.ansatz.items():
                field = self.fields[name]
                if ansatz.side is not None:
                    points, normals = self.domain.boundary(n, ansatz.edges, "sobol", rng)
                    found.append(self._zero(field, points, ()))
                    if ansatz.clamped:
                        slopes = [self._zero(field, points, (c,)) for c in self.domain.space]
                        along = sum(a * normals[:, i, None] for i, (a, _) in enumerate(slopes))
                        found.append((np.asarray(along), np.zeros(len(points))))
                if ansatz.start is not None and self.domain.time is not None:
                    points = self.domain.start(n, "sobol", rng)
                    paths = [(), (self.domain.time.name,)][: 1 + (ansatz.rate is not None)]
                    found += [self._zero(field, points, path) for path in paths]
        return np.concatenate([a for a, _ in found]), np.concatenate([r for _, r in found])

    def _zero(self, field: Field, points: Array, path: Path) -> Rows:
        lengths = dict(zip(self.domain.names, np.ptp(self.domain.bounds, axis=1), strict=True))
        weight = EXACT * np.prod([lengths[c] for c in path]) / (field.scale or 1.0) / len(points) ** 0.5
        start = self.domain.time is not None and bool((points[:, -1] == self.domain.time.start).all())
        known = (
            self.before.at_the_end(field.name, points, path)
            if start and self.before is not None
            else np.zeros(len(points))
        )
        return weight * self.basis(field.name, points, path), -weight * known

    def everything(self, n: int, rng: np.random.Generator) -> Rows:
        """The rows of all conditions, n points inside and fewer on edges, and those of exact values."""
        found = [self.exact(max(8, n // 4), rng)]
        for index, condition in enumerate(self.trainee.problem.conditions):
            count = n if everywhere(condition) else max(8, n // 4)
            if index not in self.energies:
                found.append(self.rows(index, condition, count, rng))
        return np.concatenate([a for a, _ in found]), np.concatenate([r for _, r in found])


class Before:
    """What is wrong in windows of time, as sums of polynomials.

    Args:
        windows: for each, the first of all first, its problem and the coefficients of these (k,).
    """

    def __init__(self, windows: Sequence[tuple[Linearised, Array]]) -> None:
        self.windows = windows

    def __call__(self, name: str, points: Array, path: Path) -> Array:
        """A derivative of a field at points (n, d) of any time in them; nothing is wrong before: (n,)"""
        found = np.zeros(len(points))
        for problem, c in self.windows:
            start, stop = problem.domain.bounds[-1]
            inside = (points[:, -1] >= start) & (points[:, -1] <= stop)
            if inside.any():
                found[inside] = problem.basis(name, points[inside], path) @ c
        return found

    def at_the_end(self, name: str, points: Array, path: Path) -> Array:
        """The same at the last moment, at points of any."""
        (problem, c), last = self.windows[-1], points.copy()
        last[:, -1] = problem.domain.bounds[-1, 1]
        return np.asarray(problem.basis(name, last, path) @ c)


def everywhere(condition: Condition) -> bool:
    """Whether it is an equation inside, or an integral one, which needs as many points as there are polynomials."""
    return isinstance(condition, Interior) or (isinstance(condition, Integral) and condition.n > 1)


def drawn(
    condition: Condition, domain: Domain, n: int, rng: np.random.Generator, closed: Collection[str]
) -> dict[str, Array]:
    """New points for a condition, or some of those that it has. Inside a box they are denser at its ends, as
    polynomials want them, but not along closed coordinates."""
    part = condition.of, condition.where, condition.own
    if not isinstance(condition, Interior) or any(each is not None for each in part):
        other = condition.thinned(n)
        if isinstance(condition, Integral):
            n = min(n if condition.n > 1 else 1, max(1, NODES // len(condition.rule(domain)[1])))
        other.n, other.sampler = n, "sobol"
        return other.draw(domain, rng)
    points = domain.interior(n, "sobol", rng)
    if domain.shape is None or isinstance(domain.shape, Box):
        for axis, (name, (low, high)) in enumerate(zip(domain.names, domain.bounds, strict=True)):
            if name not in closed:
                u = (points[:, axis] - low) / (high - low)
                points[:, axis] = low + (high - low) * (1 - np.cos(np.pi * u)) / 2
    return condition.at(points, rng)


def like(tensor: Tensor, values: Array) -> Tensor:
    """Values as a tensor of the same dtype, on the same device."""
    return leafgrad.tensor(values, dtype=tensor.dtype, device=tensor.device)


def numbers(tensor: Tensor) -> Array:
    """A tensor as float64."""
    found: Array = tensor.detach().cpu().numpy().astype(np.float64)
    return found

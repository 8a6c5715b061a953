"""The linearised problem in what a solution is as it moves: polynomials, and its own slopes times some.

No polynomials follow a thin layer, but its slope does: a layer that nothing holds in its place moves along it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from itertools import product

import numpy as np

import leafgrad
from leafgrad_pinn.field import Field
from leafgrad_pinn.linearised import Linearised, Polynomials, numbers
from leafgrad_pinn.planner import plan as cheapest
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.values import LAP, Path, sorted_path


class Moving(Linearised):
    """The same, with polynomials times the slopes of each field in the basis.

    Args:
        trainee: what was trained.
        degrees: how many polynomials of each coordinate.
        few: how many of these are multiplied by slopes.
    """

    def __init__(self, trainee: Trainee, degrees: Mapping[str, int], few: Mapping[str, int]) -> None:
        super().__init__(trainee, degrees)
        self.slopes: dict[str, tuple[int, Slopes]] = {}
        end = self.size - self.numbers
        for name, field in self.taylor.bases.items():
            self.slopes[name] = end, Slopes(self, field, Polynomials(field, few))
            end += self.slopes[name][1].size
        self.size = end + self.numbers

    def basis(self, name: str, points: Array, path: Path = ()) -> Array:
        found = super().basis(name, points, path)
        field, path, factor = self.taylor.base(name, path)
        if set(path) <= {*field.domain.names, *LAP}:
            begin, slopes = self.slopes[field.name]
            found[:, begin : begin + slopes.size] = slopes(points, path) * factor
        return found


class Slopes:
    """A field's derivative along each coordinate, times polynomials."""

    def __init__(self, problem: Linearised, field: Field, factors: Polynomials) -> None:
        self.problem, self.field, self.factors = problem, field, factors
        self.along = field.domain.names
        self.size = len(self.along) * factors.size

    def __call__(self, points: Array, path: Path) -> Array:
        """Their derivatives by a path of coordinates, or Laplacians, at points: (n, size)."""
        if path == LAP:
            return np.sum([self(points, (c, c)) for c in self.field.domain.space], axis=0)
        columns, parts = self.problem.columns(points), list(divided(path))
        asked = {sorted_path((*ours, c), self.problem.domain.names) for _, ours, _ in parts for c in self.along}
        known = self._derivatives(points, asked)
        found = []
        for c in self.along:
            each = [times * known[sorted_path((*ours, c), self.problem.domain.names)][:, None]
                    * self.factors(columns, theirs) for times, ours, theirs in parts]  # fmt: skip
            found.append(np.sum(each, axis=0))
        return np.concatenate(found, 1)

    def _derivatives(self, points: Array, paths: Collection[Path]) -> dict[Path, Array]:
        """Those of the field by paths, at points (n, d): (n,) each."""
        system, trainee, name = self.problem.system, self.problem.trainee, self.field.name
        with leafgrad.enable_grad():
            rows = leafgrad.tensor(points, dtype=trainee.dtype, device=trainee.device)
            place = system.points({"points": rows})
            plan = cheapest([(name, path) for path in sorted(paths)], self.problem.domain.space)
            values = plan.values(system.fields, place, system.coordinates)
            found = {path: numbers(values[name].along(path)) for path in paths}
        place.forget()
        return found


def divided(path: Path) -> Iterator[tuple[int, Path, Path]]:
    """How the derivative of a product is one of its two factors, by Leibniz: how often, and by which path each."""
    names = sorted(set(path))
    counts = [path.count(name) for name in names]
    for some in product(*[range(count + 1) for count in counts]):
        times = math.prod(math.comb(count, k) for count, k in zip(counts, some, strict=True))
        ours = tuple(name for name, k in zip(names, some, strict=True) for _ in range(k))
        theirs = tuple(name for name, k, count in zip(names, some, counts, strict=True) for _ in range(count - k))
        yield times, ours, theirs

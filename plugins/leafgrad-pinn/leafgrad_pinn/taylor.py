"""What residuals are made of: fields near each point as Taylor polynomials of their derivatives there.

A condition depends on its fields near a point alone, or near the points of a rule, too, if it is an integral. With such
polynomials in place of the networks it has the same residuals, and a reverse pass gives how they change with each
derivative.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad.autograd import grad
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.field import Derivative, Field
from leafgrad_pinn.planner import Fields, plan as cheapest
from leafgrad_pinn.system import Tensors
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.values import LAP, Path, Request, reverse, sorted_path

SAME = 1e-6  # of the residuals: how far those of given derivatives may be from the system's
HIGHEST = 6  # derivatives that a condition may ask for
MOST = 100  # derivatives of all fields

Leaves = dict[Request, Tensor]


class Place(NamedTuple):
    """Where a condition takes its fields: points (m, d), the same number for each residual, and derivatives (m,)."""

    points: Tensor
    leaves: Leaves


class Unfit(Exception):
    """It cannot be expanded so; says why."""


class Contradiction(Unfit):
    """No small change of the fields makes them a solution; says why."""


class Taylor:
    """A trained system's fields near points.

    Args:
        trainee: what was trained.
        wrong: what is added to the fields before the first moment, as `near` gives it; None for nothing.

    Attributes:
        bases: the fields that have networks, others being derivatives of these.
    """

    def __init__(self, trainee: Trainee, wrong: Fields | None = None) -> None:
        self.trainee, self.domain = trainee, trainee.problem.domain
        self.system = copy.copy(trainee.system)
        self.system.wrong = wrong
        self.fields = {field.name: field for field in trainee.problem.fields}
        self.bases = {name: field for name, field in self.fields.items() if not isinstance(field, Derivative)}
        self.orders = [0] * len(trainee.problem.conditions)

    def expanded(self, index: int, tensors: Tensors) -> tuple[Tensor, list[Place]]:
        """A condition's residuals (n, k), and the derivatives that these are made of.

        They are those that the condition asked for, or more, until the residuals are those of the networks.

        Raises:
            Unfit: a residual depends on more than fields and derivatives at its points.
        """
        with leafgrad.enable_grad():
            known, visited = self.system.residuals(index, tensors)[0].detach(), self._visited(index, tensors)
        while True:
            places = [self._place(index, columns, k >= len(self.system.taken_at(tensors)))
                      for k, columns in enumerate(visited)]  # fmt: skip
            residuals = self.at(index, tensors, [place.leaves for place in places])
            if float((residuals - known).detach().abs().max()) <= SAME * (1 + float(known.abs().max())):
                return residuals, places
            if self.orders[index] == HIGHEST:
                raise Unfit(f"{self.trainee.problem.names[index]}, which depends on more than fields at a point")
            self.orders[index] += 1

    def _visited(self, index: int, tensors: Tensors) -> list[dict[str, Tensor]]:
        """Where a condition takes its fields, by coordinate, in the order in which it does."""
        found: list[dict[str, Tensor]] = []

        def noted(columns: Mapping[str, Tensor]) -> Tensors:
            found.append({name: column.detach() for name, column in columns.items()})
            return self.system.fields(columns)

        self.system.residuals(index, tensors, noted, cheapest((), self.domain.space))
        return found

    def at(self, index: int, tensors: Tensors, leaves: Sequence[Leaves]) -> Tensor:
        """A condition's residuals (n, k), of fields of these derivatives, in the order in which it takes them."""
        each, reverse_passes = iter(leaves), cheapest((), self.domain.space)

        def near(columns: Mapping[str, Tensor]) -> Tensors:
            return self.near(next(each), columns)

        return self.system.residuals(index, tensors, near, reverse_passes)[0]

    def base(self, name: str, path: Path) -> tuple[Field, Path, float]:
        """A field that has a network, a path, and a factor, for one that may be its derivative."""
        field, factor = self.fields[name], 1.0
        while isinstance(field, Derivative):
            path, factor, field = (*path, field.coordinate), factor * field.factor, field.of
        return field, path, factor

    def size(self, name: str) -> float:
        """Of what size a field is, in its units; a derivative is as large as that of a wave over the domain."""
        field, path, factor = self.base(name, ())
        lengths = dict(zip(field.domain.names, np.ptp(field.domain.bounds, axis=1), strict=True))
        return (field.scale or 1.0) * abs(factor) / math.prod(lengths[c] for c in path)

    def _place(self, index: int, columns: Mapping[str, Tensor], away: bool) -> Place:
        """A place, with the fields' derivatives that a condition asks for, or all up to an order.

        Elsewhere than at its points they are of one order more, for where that is may depend on fields.
        """
        system, domain, order = self.system, self.domain, self.orders[index]
        asked = [self.base(name, path) for name, path in spelled_out(self.trainee.problem.plans[index].asked, domain)]
        wanted = {(f.name, below) for f, path, _ in asked for below in parts_of(path)} | {(n, ()) for n in self.bases}
        if away:
            wanted |= {(name, (*path, c)) for name, path in wanted for c in self.bases[name].domain.names}
        for name, field in self.bases.items():
            for k in range(order + 1):
                wanted |= {(name, path) for path in combinations_with_replacement(field.domain.names, k)}
        if len(wanted) > MOST:
            raise Unfit(f"{len(wanted)} derivatives of fields, of at most {MOST}")
        paths = sorted({(name, sorted_path(path, domain.names)) for name, path in wanted})
        rows = leafgrad.stack([columns[name] for name in domain.names], 1)
        points = system.points({"points": rows} | {f.key: columns[f.name] for f in domain.functions})
        values = cheapest([p for p in paths if p[1]], domain.space).values(system.fields, points, system.coordinates)
        found = {(name, path): values[name].along(path).detach().clone() for name, path in paths}
        points.forget()
        for tensor in found.values():
            tensor.requires_grad = True
        return Place(rows, found)

    def near(self, leaves: Leaves, columns: Mapping[str, Tensor]) -> Tensors:
        """Fields near each point, of their derivatives there."""
        away = {name: column - column.detach() for name, column in columns.items()}
        found: Tensors = {}
        for (name, path), leaf in leaves.items():
            term = leaf / math.prod(math.factorial(path.count(c)) for c in set(path))
            for c in path:
                term = term * away[c]
            found[name] = found[name] + term if name in found else term
        for name, field in self.fields.items():
            if isinstance(field, Derivative):
                found[name] = field.factor * reverse(found[field.of.name], [columns[field.coordinate]])[0]
        return {name: found[name] for name in self.system.coordinates}


def slopes(residuals: Tensor, places: Sequence[Place]) -> Iterator[list[Leaves]]:
    """For each of k equations how its residual (n, k) changes with each derivative: as the places have these, (m,)."""
    for k in range(residuals.shape[1]):
        every = [leaf for place in places for leaf in place.leaves.values()]
        found = iter(grad(residuals[:, k].sum(), every, retain_graph=True, materialize_grads=True))
        yield [{request: next(found) for request in place.leaves} for place in places]


def spelled_out(asked: Iterable[Request], domain: Domain) -> Iterator[Request]:
    """Requests with a path for each term of a Laplacian."""
    for field, path in asked:
        yield from [(field, (c, c)) for c in domain.space] if path == LAP else [(field, path)]


def parts_of(path: Path) -> set[Path]:
    """All paths that a derivative's path goes through."""
    found: set[Path] = {()}
    for c in path:
        found = found | {(*part, c) for part in found}
    return found

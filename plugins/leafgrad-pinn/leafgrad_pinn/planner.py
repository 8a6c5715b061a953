"""Which way derivatives of fields are made: by reverse passes, by forward over reverse, or by Taylor jets.

All give the same numbers. What they cost depends on what an equation asks for, which its first run tells. The unit is
one run of the networks at the points; the figures are of compiled steps with gradients by all weights:

- a reverse pass takes as much as what it goes back through, so that nested ones double with each order;
- a jet along one coordinate takes one run for each order, for all fields at once, and products of its coefficients,
  whose number grows with the square; the last coefficient of a Laplacian in many dimensions is taken of all together;
- forward over reverse is a jet of the gradient, which takes as much as a reverse pass of each field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import leafgrad
from leafgrad import Tensor
from leafgrad.func import grad, jet
from leafgrad_pinn.values import LAP, Path, Points, Request, sorted_path

Columns = dict[str, Tensor]
Fields = Callable[[Columns], dict[Any, Tensor]]

TOGETHER = 4  # coordinates from which on a Laplacian takes them together: programs go through few one by one faster
SLOWER = 1.3  # a coefficient's products beside a run of the network, of which most is products of matrices
WIDER = 3.0  # the same for coefficients along many directions at once, which do not fit the cache
MODES = {"reverse": "reverse passes", "forward": "forward over reverse", "jet": "Taylor jets"}


@dataclass(frozen=True)
class DerivativePlan:
    """How the derivatives that a condition asks for are made.

    Attributes:
        mode: ``"reverse"``, ``"forward"`` or ``"jet"``.
        asked: fields with paths of coordinates, or ``LAP``.
        costs: what each mode is estimated to take, in runs of the networks.
        beyond: derivatives of other expressions, in words, which are made by reverse passes.
        away: whether fields are asked for at other places, too.
    """

    mode: str
    asked: tuple[Request, ...]
    costs: Mapping[str, float]
    beyond: tuple[str, ...] = ()
    away: bool = False

    def __str__(self) -> str:
        beyond = f"{', '.join(self.beyond)} by reverse passes" if self.beyond else ""
        if not self.asked:
            return beyond or "no derivatives"
        names = sorted(f"{field}.{''.join(path)}" for field, path in self.asked)
        others = ", ".join(f"{MODES[m]} {c:.3g}" for m, c in self.costs.items() if m != self.mode)
        cost = f"{MODES[self.mode]}: about {self.costs[self.mode]:.3g} runs of the network"
        return f"{', '.join(names)} by {cost} ({others})" + (f"; {beyond}" if beyond else "")

    def values(self, fields: Fields, points: Points, names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """The fields at points, with the derivatives that are made by a jet.

        Args:
            fields: tensors by name, of the columns of the points.
            names: for each field the coordinates that it depends on.
        """
        found: dict[str, Tensor]
        known: dict[Any, Tensor] = {}
        if self.mode == "reverse" or not self.asked:
            found = fields(points.columns)
        elif self.mode == "jet":
            found, known = expanded(fields, points, self.asked)
        else:
            found, known = over_reverse(fields, points, self.asked)
        values = {name: points.value(t, names[name], field=name) for name, t in found.items()}
        for (field, path), tensor in known.items():
            points.note(values[field], path, tensor)
        return {name: values[name] for name in names}


def plan(
    asked: Iterable[Request],
    space: Sequence[str],
    derivatives: str = "auto",
    beyond: Iterable[str] = (),
    away: bool = False,
) -> DerivativePlan:
    """The cheapest way to what is asked for, or the one of ``derivatives``.

    Args:
        asked: by field: a path of coordinates, or ``LAP``.
        space: the coordinates that a Laplacian runs over.
        derivatives: ``"auto"``, ``"reverse"``, ``"forward"`` or ``"jet"``.
        beyond: what else is differentiated, in words.
        away: whether fields are asked for at other places.
    """
    asked = sorted(set(asked))  # in one order in every process: that of sets changes, and with it rounding
    costs = {
        "reverse": reverse_cost(asked, space),
        "forward": forward_cost(asked, space),
        "jet": jet_cost(asked, space),
    }
    mode = min(costs, key=lambda m: costs[m]) if derivatives == "auto" else derivatives
    return DerivativePlan(mode, tuple(asked), costs, tuple(beyond), away)


# ---- costs ------------------------------------------------------------------------------------------------------


def spelled_out(asked: Iterable[Request], space: Sequence[str]) -> list[Request]:
    """The requests with a path for each term of a Laplacian, each once."""
    found: dict[Request, None] = {}
    for field, path in asked:
        found |= dict.fromkeys([(field, (c, c)) for c in space] if path == LAP else [(field, path)])
    return list(found)


def reverse_cost(asked: Iterable[Request], space: Sequence[str]) -> float:
    prefixes = {(f, path[:k]) for f, path in spelled_out(asked, space) for k in range(len(path))}
    return 1.0 + sum(2.0 ** len(prefix) for _, prefix in prefixes)


def jet_cost(asked: Iterable[Request], space: Sequence[str]) -> float:
    orders, mixed, laplacian = sorted_out(asked, space)
    cost = 1.0 + sum(map(line, orders.values()))
    cost += sum(prod(1 + line(k) for k in Counter(path).values()) for path in mixed)
    return cost + (WIDER * (len(space) + 1) if laplacian else 0)


def line(order: int) -> float:
    """A jet along one coordinate: its products, of which those with order 0 are in the unit."""
    return SLOWER * order * (order + 1) / 2


def forward_cost(asked: Iterable[Request], space: Sequence[str]) -> float:
    requests = spelled_out(asked, space)
    gradient = 1.0 + len({f for f, _ in requests})
    return gradient * jet_cost([(f, split(path)[1]) for f, path in requests if len(path) > 1], space)


def sorted_out(asked: Iterable[Request], space: Sequence[str]) -> tuple[dict[str, int], list[Path], bool]:
    """The order needed along each coordinate, the mixed derivatives, and whether a Laplacian saves its terms."""
    paths = dict.fromkeys(path for _, path in asked)
    laplacian = paths.pop(LAP, 0) is None
    orders: dict[str, int] = {}
    for path in paths:
        if len(set(path)) == 1:
            orders[path[0]] = max(orders.get(path[0], 0), len(path))
    if laplacian and (len(space) < TOGETHER or all(orders.get(c, 0) >= 2 for c in space)):
        laplacian, orders = (
            False,
            {**dict.fromkeys(space, 2), **{c: max(k, 2 if c in space else 0) for c, k in orders.items()}},
        )
    if laplacian:  # which has the first derivatives along its way
        orders = {c: k for c, k in orders.items() if k > 1 or c not in space}
    return orders, [path for path in paths if len(set(path)) > 1], laplacian


def split(path: Path) -> tuple[str, Path]:
    """A path as one coordinate and the rest, along as few coordinates as can be."""
    first = min(path, key=path.count)
    at = path.index(first)
    return first, path[:at] + path[at + 1 :]


# ---- jets -------------------------------------------------------------------------------------------------------


def expanded(fields: Fields, points: Points, asked: Iterable[Request]) -> tuple[dict[Any, Tensor], dict[Any, Tensor]]:
    """Fields, and what is asked of them, as jets along coordinates."""
    orders, mixed, laplacian = sorted_out(asked, points.space)
    values: dict[Any, Tensor] = {}
    known: dict[Any, Tensor] = {}
    if laplacian:
        values, series = laplacians(fields, points)
        known |= {(f, LAP): terms[1] for f, terms in series.items()}
        known |= {(f, (c,)): terms[0][i] for f, terms in series.items() for i, c in enumerate(points.space)}
    for coordinate, order in orders.items():
        values, series = along(fields, points.columns, coordinate, order)
        known |= {(f, (coordinate,) * k): t for f, terms in series.items() for k, t in enumerate(terms, 1)}
    for path in mixed:
        values, tensors = nested(fields, points.columns, path)
        known |= {(f, path): tensor for f, tensor in tensors.items()}
    wanted = {f for f, _ in asked}
    return values or fields(points.columns), {key: t for key, t in known.items() if key[0] in wanted}


Series = dict[Any, list[Tensor]]


def along(fields: Fields, columns: Columns, coordinate: str, order: int) -> tuple[dict[Any, Tensor], Series]:
    """Fields, and their derivatives by a coordinate up to an order."""
    names = list(columns)
    moves = {coordinate: leafgrad.ones_like(columns[coordinate]).detach()}
    series = tuple([[moves.get(name), *[None] * (order - 1)] for name in names])
    result: tuple[dict[Any, Tensor], Series] = jet(
        lambda *tensors: fields(dict(zip(names, tensors, strict=True))), tuple(columns.values()), series
    )
    return result


def laplacians(fields: Fields, points: Points) -> tuple[dict[Any, Tensor], Series]:
    """Fields, their first derivatives by all coordinates of space, (k, n), and their Laplacians."""
    names, some = list(points.columns), next(iter(points.columns.values()))
    count = len(points.space)
    unit = leafgrad.eye(count, dtype=some.dtype, device=some.device)
    moves = {c: unit[:, i, None].expand(count, len(some)) for i, c in enumerate(points.space)}
    series = tuple([[moves.get(name), None] for name in names])
    result: tuple[dict[Any, Tensor], Series] = jet(
        lambda *tensors: fields(dict(zip(names, tensors, strict=True))),
        tuple(points.columns.values()),
        series,
        collapse=True,
    )
    return result


def nested(fields: Fields, columns: Columns, path: Path) -> tuple[dict[Any, Tensor], dict[Any, Tensor]]:
    """Fields, and a mixed derivative: a jet of a jet, the longest one inside."""

    def derivative(inner: Fields, coordinate: str, order: int) -> Fields:
        def outer(columns: Columns) -> dict[Any, Tensor]:
            _, series = along(inner, columns, coordinate, order)
            return {f: terms[-1] for f, terms in series.items()}

        return outer

    function = fields
    for coordinate in sorted(dict.fromkeys(path), key=path.count, reverse=True):
        function = derivative(function, coordinate, path.count(coordinate))
    return fields(columns), function(columns)


def over_reverse(
    fields: Fields, points: Points, asked: Iterable[Request]
) -> tuple[dict[Any, Tensor], dict[Any, Tensor]]:
    """The same with one derivative of each by a reverse pass, inside of the jets."""
    requests = spelled_out(asked, points.space)
    names = dict.fromkeys(f for f, _ in requests)

    def gradients(columns: Columns) -> dict[Any, Tensor]:
        found: dict[Any, Tensor] = {}
        for f in names:
            by = grad(lambda columns, f=f: fields(columns)[f].sum())(columns)
            found |= {(f, c): t for c, t in by.items()}
        return found

    rest = [((f, split(path)[0]), split(path)[1]) for f, path in requests if len(path) > 1]
    first, higher = expanded(gradients, points, rest)
    known: dict[Any, Tensor] = {(f, (c,)): t for (f, c), t in first.items()}
    known |= {(f, sorted_path((c, *path), points.coordinates)): t for ((f, c), path), t in higher.items()}
    return fields(points.columns), known

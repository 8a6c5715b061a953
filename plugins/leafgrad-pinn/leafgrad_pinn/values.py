"""A field at points, a tensor with its derivatives as attributes: ``u.x``, ``u.xx``, ``u.t``, ``u.lap``, ``u.n``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import leafgrad
from leafgrad import Tensor
from leafgrad.autograd import grad

Derive = Callable[[Tensor, Sequence[Tensor]], Sequence[Tensor]]


def reverse(value: Tensor, columns: Sequence[Tensor]) -> Sequence[Tensor]:
    """The derivatives of each element of ``value`` by the same element of each column, by a reverse pass.

    (n,), k times (n,) -> k times (n,). The element i of ``value`` must depend on the elements i of the columns alone.
    """
    if not value.requires_grad:
        return [leafgrad.zeros_like(value) for _ in columns]
    return grad(value.sum(), list(columns), create_graph=True, materialize_grads=True)


def d(value: Tensor, *coordinates: Tensor) -> Tensor:
    """The derivative of an expression by one coordinate after the other: ``d(u * u.x, x)``. (n,) -> (n,)

    Args:
        value: an expression of fields and coordinates in an equation.
        coordinates: parameters of the equation, as the x of ``lambda u, x: d(u * u, x)``.
    """
    for coordinate in coordinates:
        (value,) = reverse(value, [coordinate])
    return value


class Points:
    """Points, and what is known there: coordinates, normals, and derivatives that were computed.

    Args:
        columns: for each coordinate n numbers that require grad.
        space: the coordinates that ``lap`` and ``n`` run over.
        normals: for each coordinate of space n numbers, on a boundary.
        derive: how derivatives are computed; the planner's place.
    """

    def __init__(
        self,
        columns: Mapping[str, Tensor],
        space: Sequence[str],
        normals: Mapping[str, Tensor] | None = None,
        derive: Derive = reverse,
    ) -> None:
        self.columns, self.space, self.normals, self.derive = dict(columns), tuple(space), normals, derive
        self.coordinates = tuple(self.columns)
        self.derived: list[dict[str, Value] | None] = []  # by the index of a value

    def value(self, tensor: Tensor, names: Sequence[str]) -> Value:
        """A tensor (n,) as a field that depends on the coordinates of these names."""
        made: Any = tensor.clone()  # a tensor of its own, whose class is changed below
        made.__class__ = Value
        made.points, made.names, made.index = self, tuple(names), len(self.derived)
        self.derived.append(None)
        value: Value = made
        return value

    def gradient(self, value: Value) -> dict[str, Value]:
        """All first derivatives of a value, computed at once and only once."""
        known = self.derived[value.index]
        if known is None:
            tensors = self.derive(value, [self.columns[name] for name in value.names])
            known = {name: self.value(t, value.names) for name, t in zip(value.names, tensors, strict=True)}
            self.derived[value.index] = known
        return known

    def forget(self) -> None:
        """Let go of what was computed. A derivative's graph holds its field, which holds this: a cycle otherwise."""
        self.derived.clear()


def split(name: str, coordinates: tuple[str, ...]) -> tuple[str, ...] | None:
    """A derivative's name as coordinates in their order, ``"txx"`` as x, x, t; None if it is no such name.

    Where coordinates begin alike, the longest that fits is tried first.
    """

    def parse(rest: str) -> list[str] | None:
        if not rest:
            return []
        for coordinate in sorted(coordinates, key=len, reverse=True):
            if rest.startswith(coordinate) and (found := parse(rest[len(coordinate) :])) is not None:
                return [coordinate, *found]
        return None

    found = parse(name) if name else None
    return None if found is None else tuple(sorted(found, key=coordinates.index))


class Value(Tensor):
    """A field at n points: a tensor (n,) with derivatives as attributes. `Points.value` makes it.

    What arithmetic makes of it is an ordinary tensor, to be differentiated with `d`.

    Attributes:
        x, xx, xt, ...: derivatives by coordinates, whatever they are called. They hide methods of the same name.
        lap: the Laplacian over the coordinates of space.
        n: the derivative along the outward normal, at points of a boundary.
    """

    __slots__ = ()

    points: Points
    names: tuple[str, ...]
    index: int

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name in ("points", "names", "index", "along"):
            return super().__getattribute__(name)
        points = self.points
        path = split(name, points.coordinates)
        if path is not None:
            return self.along(path)
        if name == "lap":
            parts = [self.along([c, c]) for c in points.space if c in self.names]
            return points.value(sum(parts[1:], start=parts[0]), self.names)
        if name == "n":
            if points.normals is None:
                raise AttributeError("u.n: there are normals only on edges, as in Neumann(0, on='x_min')")
            parts = [self.along([c]) * normal for c, normal in points.normals.items() if c in self.names]
            return sum(parts[1:], start=parts[0])
        try:
            return super().__getattribute__(name)
        except AttributeError:
            raise AttributeError(
                f"u.{name}: expected a derivative by {', '.join(self.names)}, lap, n, or an attribute of tensors"
            ) from None

    def along(self, path: Sequence[str]) -> Value:
        """The derivative by each coordinate of the path in turn."""
        value = self
        for name in path:
            if name not in self.names:
                raise AttributeError(
                    f"derivative by {name}: the field depends on {', '.join(self.names)} alone, not on {name}"
                )
            value = value.points.gradient(value)[name]
        return value

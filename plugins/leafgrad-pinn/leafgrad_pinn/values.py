"""A field at points, a tensor with its derivatives as attributes: ``u.x``, ``u.xx``, ``u.t``, ``u.lap``, ``u.n``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad.autograd import grad
from leafgrad.tensor.overrides import unwrapped
from leafgrad_pinn.callables import check_number, scalar
from leafgrad_pinn.functions import InputFunction


def recording() -> Any:
    """A mode, also for functions, in which gradients are recorded, even where no_grad or inference_mode is around."""
    return leafgrad.inference_mode(False)


def reverse(value: Tensor, columns: Sequence[Tensor], last: bool = False) -> Sequence[Tensor]:
    """The derivatives of each element of ``value`` by the same element of each column, by a reverse pass.

    (n,), k times (n,) -> k times (n,). The element i of ``value`` must depend on the elements i of the columns alone.
    If they are the ``last``, they have no derivatives themselves.
    """
    if not value.requires_grad:
        return [leafgrad.zeros_like(value) for _ in columns]
    return grad(leafgrad.sum(value), list(columns), retain_graph=True, create_graph=not last, materialize_grads=True)


noting: list[Points] = []  # those that are to know of derivatives of expressions


@contextmanager
def noted(several: Sequence[Points]) -> Iterator[None]:
    """Within it points note which expressions of theirs are differentiated."""
    noting.extend(several)
    try:
        yield
    finally:
        del noting[-len(several) :]


@contextmanager
def unnoted() -> Iterator[None]:
    """Within it points note nothing: what exact values differentiate is no matter of an equation."""
    kept = noting[:]
    noting.clear()
    try:
        yield
    finally:
        noting[:] = kept


def derivative(value: Tensor, *coordinates: Tensor) -> Tensor:
    """The derivative of an expression by one coordinate after the other. (n,) -> (n,)"""
    for points in noting:
        names = [name for c in coordinates for name, column in points.columns.items() if column is c]
        if names:
            points.beyond[f"d(..., {', '.join(names)})"] = None
    if not isinstance(value, Tensor):
        raise TypeError(f"d: expected an expression of fields and coordinates, as u * u.x, got {value!r}")
    for coordinate in coordinates:
        if noting and not any(coordinate is column for points in noting for column in points.columns.values()):
            check_part(value, coordinate)
        for points in noting:
            points.differentiated += [
                (name, value.detach().expand_as(c)) for name, c in points.columns.items() if c is coordinate
            ]
        if not (isinstance(coordinate, Tensor) and coordinate.requires_grad and leafgrad.is_grad_enabled()):
            got = "one that does not" if leafgrad.is_grad_enabled() else "gradients that are switched off"
            raise ValueError(
                "d: expected a coordinate that requires grad, as those of equations and exact values do, got "
                f"{got if isinstance(coordinate, Tensor) else repr(coordinate)}"
            )
        (value,) = reverse(value, [coordinate])
    return value


def check_part(value: Tensor, part: Any) -> None:
    """ValueError unless a value is made of a part of it that is no coordinate: else zero is not what is meant."""
    differentiable = isinstance(part, Tensor) and part.requires_grad and value.requires_grad
    if differentiable and grad(leafgrad.sum(value), [part], retain_graph=True, allow_unused=True)[0] is not None:
        return
    got = "one that it is not made of" if isinstance(part, Tensor) else repr(part)
    raise ValueError(
        "d: expected a coordinate of the equation, as the x of lambda u, x: d(u.x, x), or an expression that the value "
        f"is made of, got {got}; by xi = x / L the derivative is L * d(u, x)"
    )


LAP = ("lap",)
TRANSPOSES = ("t", "T", "H", "mT", "mH")  # of n numbers nobody wants them: it is a coordinate that is meant

Path = tuple[str, ...]
Request = tuple[Any, Path]  # a field, and coordinates in their order, or LAP


def sorted_path(path: Sequence[str], coordinates: Sequence[str]) -> Path:
    """Coordinates in their order: derivatives by them commute."""
    return tuple(sorted(path, key=coordinates.index))


class Points:
    """Points, and what is known there: coordinates, normals, and derivatives that were computed.

    Args:
        columns: for each coordinate n numbers that require grad; for each input function its values at sensors.
        space: the coordinates that ``lap`` and ``n`` run over.
        normals: for each coordinate of space n numbers, on a boundary.
        functions: the input functions.
        orders: of the highest derivative of a field, where its network has not all of them.

    Attributes:
        asked: what was asked of fields, for the planner.
        beyond: what else was differentiated, in words: Laplacians and, while it is among ``noting``, expressions.
        differentiated: these expressions, (n,), each with the coordinate.
        away: gives the fields by name at points other than these.
        places: these points, and others at which fields were asked for with `Value.at`.
        visited: of which fields that was, and where, (n, d); while it is among ``noting``.
    """

    def __init__(
        self,
        columns: Mapping[str, Tensor],
        space: Sequence[str],
        normals: Mapping[str, Tensor] | None = None,
        functions: Sequence[InputFunction] = (),
        orders: Mapping[str, int] = {},
    ) -> None:
        self.columns, self.space, self.normals, self.orders = dict(columns), tuple(space), normals, orders
        self.functions = {function.name: function for function in functions}
        self.coordinates = tuple(name for name in self.columns if name not in self.functions)
        self.asked: set[Request] = set()
        self.beyond: dict[str, None] = {}
        self.differentiated: list[tuple[str, Tensor]] = []
        self.roots: list[tuple[Value, str | None, str]] = []  # values that are no derivatives, with names of fields
        self.derived: dict[tuple[int, Path], Value] = {}  # by the root of a value, and a path
        self.away: Callable[[Points], Mapping[str, Value]] | None = None
        self.places: list[Points] = [self]
        self.visited: list[tuple[str, np.ndarray[Any, Any]]] = []

    def value(self, tensor: Tensor, names: Sequence[str], field: str | None = None, label: str = "") -> Value:
        """A tensor (n,) that depends on the coordinates of these names: a field, if it has a name of its own."""
        made = self.made(tensor, names, len(self.roots), ())
        self.roots.append((made, field, field or label))
        return made

    def inputs(self) -> dict[str, Value]:
        """The input functions at the points."""
        found = {}
        for name, function in self.functions.items():
            found[name] = self.value(function.at(self.columns[name], self.columns), tuple(function.axes), label=name)
        return found

    def made(self, tensor: Tensor, names: Sequence[str], root: int, path: Path) -> Value:
        made: Any = tensor.clone()  # a tensor of its own, whose class is changed below
        made.__class__ = Value
        made.points, made.names, made.root, made.path = self, tuple(names), root, path
        value: Value = made
        return value

    def moved(self, field: str, place: Mapping[str, Any]) -> Points:
        """Points where some coordinates are others, of which a field is asked."""
        if unknown := [name for name in place if name not in self.coordinates]:
            raise AttributeError(
                f"{field}.at: expected coordinates among {', '.join(self.coordinates)}, got {', '.join(unknown)}"
            )
        columns, here = dict(self.columns), [self.columns[name] for name in self.coordinates]
        for name, value in place.items():
            like = columns[name]
            number = value.current() if hasattr(value, "current") else value  # of an unknown
            if not isinstance(number, Tensor):
                number = scalar(number)
                check_number(f"{field}.at: {name}", number)
                number = leafgrad.full_like(like, number)
            if number.shape not in ((), like.shape):
                raise ValueError(
                    f"{field}.at: {name}: expected a number, or one for each of {len(like)} points, got shape "
                    f"{tuple(number.shape)}"
                )
            columns[name] = number.as_subclass(Tensor).expand(like.shape)
        for name, like in zip(self.coordinates, here, strict=True):  # of its own, to be differentiated by
            columns[name] = columns[name] + leafgrad.zeros_like(like, requires_grad=True)
        there = Points(columns, self.space, None, list(self.functions.values()), self.orders)
        there.places, there.away = self.places, self.away
        self.places.append(there)
        if self.places[0] in noting:
            rows = np.stack([columns[name].detach().cpu().numpy() for name in self.coordinates], 1)
            self.places[0].visited.append((field, rows))
        return there

    def unwritten(self, value: Value) -> Value:
        """A value as it is; ValueError, while points are noting, if an equation wrote it in place.

        Its derivatives would be those of what it was or of what it is, as they are made by jets or reverse passes.
        """
        if noting and value._version:  # in steps that are compiled this would be looked up outside of the program
            name = ".".join([self.roots[value.root][2], *["".join(value.path)] * bool(value.path)])
            raise ValueError(
                f"{name}: expected the field and its derivatives as they are, got {name} written in place before, as "
                f"by r = {name}; r *= 2; make another tensor, as r = 2 * {name}"
            )
        return value

    def note(self, value: Value, path: Path, tensor: Tensor) -> None:
        """Keep the derivative of a field by a path, or its Laplacian, that the planner made."""
        if path == LAP:
            self.derived[value.root, LAP] = self.value(tensor, value.names, label=f"{self.roots[value.root][2]}.lap")
        elif set(path) <= set(value.names):
            self.derived[value.root, path] = self.made(tensor, value.names, value.root, path)

    def ask(self, root: int, path: Path) -> None:
        """Note that an equation wants this of a field."""
        _, field, label = self.roots[root]
        if field and field in self.orders and len(path) + (path[-1:] == LAP) > self.orders[field]:
            raise AttributeError(
                f"{field}.{''.join(path)}: expected at most {self.orders[field]} derivatives of a field whose network "
                "gives values on a grid; take an Energy(...), or a DeepONet"
            )
        if field is not None:
            self.asked.add((field, path))
        else:
            self.beyond[f"{label}.{''.join(path)}"] = None

    def derivative(self, root: Value, path: Path) -> Value:
        """The derivative of a value without a path: known, or from that by one coordinate less, by a reverse pass."""
        if not path:
            return self.unwritten(root)
        label = self.roots[root.root][2]
        if label in self.functions and len(path) > self.functions[label].order:
            raise AttributeError(
                f"{label}.{''.join(path)}: expected at most {self.functions[label].order} derivatives of an input "
                f"function that is a polynomial of degree {self.functions[label].degree} between its sensors"
            )
        found = self.derived.get((root.root, path))
        if found is None:
            before = self.derivative(root, path[:-1])
            for name, t in zip(root.names, reverse(before, [self.columns[n] for n in root.names]), strict=True):
                whole = sorted_path((*path[:-1], name), self.coordinates)
                if (root.root, whole) not in self.derived:
                    self.derived[root.root, whole] = self.made(t, root.names, root.root, whole)
            found = self.derived[root.root, path]
        return self.unwritten(found)

    def forget(self) -> None:
        """Let go of all tensors: graphs hold fields, which hold this, and a step whose tensors stay has no program."""
        self.derived.clear()
        self.roots.clear()
        self.columns.clear()
        self.normals = self.away = None


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
        x, xx, xt, ...: derivatives by coordinates, whatever they are called. They hide methods of tensors of the same
            name, but not what is said here: by l, a and p it is asked for in another order, as ``u.pal``.
        lap: the Laplacian over the coordinates of space.
        n: the derivative along the outward normal, at points of a boundary.

    With `at` it is asked for at other places.
    """

    __slots__ = ()
    __torch_function__ = unwrapped

    points: Points
    names: tuple[str, ...]
    root: int
    path: Path

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name in ("points", "names", "root", "path", "at", "along", "space", "laplacian"):
            return super().__getattribute__(name)
        if name == "lap":
            return self.laplacian()
        points = self.points
        path = split(name, points.coordinates)
        if path is not None:
            return self.along(path)
        if name == "n":
            if points.normals is None:
                raise AttributeError("u.n: there are normals only on edges, as in Neumann(0, on='x_min')")
            parts = [self.along([c]) * points.normals[c] for c in self.space("n")]
            return sum(parts[1:], start=parts[0])
        with suppress(AttributeError):
            if name not in TRANSPOSES:
                return super().__getattribute__(name)
        raise AttributeError(
            f"u.{name}: expected a derivative by {', '.join(self.names)}, lap, n, or an attribute of tensors"
        )

    def along(self, path: Sequence[str]) -> Value:
        """The derivative by each coordinate of the path."""
        for name in path:
            if name not in self.names:
                raise AttributeError(
                    f"derivative by {name}: the field depends on {', '.join(self.names)} alone, not on {name}"
                )
        points, whole = self.points, sorted_path((*self.path, *path), self.points.coordinates)
        points.unwritten(self)
        points.ask(self.root, whole)
        return points.derivative(points.roots[self.root][0], whole)

    def at(self, **place: Any) -> Value:
        """The field, or the derivative of it that this is, where coordinates are others: ``u.at(t=t - 5)``.

        Before the first moment it is what its field's ``history`` says, or, in windows of time, what it was in those
        before. Beyond other ends of the domain's coordinates it is nan; periodic ones go on.

        Args:
            place: coordinates by name, each a number, or an expression of one for each point: of coordinates, unknowns
                and fields.

        Raises:
            AttributeError: it is none of the problem's fields, or has no such coordinate. ValueError: another shape.
        """
        points, (_, field, label) = self.points, self.points.roots[self.root]
        if field is None or points.away is None:
            raise AttributeError(f"{label}.at: expected a field that is solved for, or a derivative, as u.at(x=0).xx")
        points.unwritten(self)
        there = points.moved(field, place)
        with unnoted() if noting else nullcontext():
            found = points.away(there)[field]
        return found.along(self.path) if self.path else found

    def space(self, what: str) -> list[str]:
        """The coordinates of space that it depends on; AttributeError if there are none."""
        found = [c for c in self.points.space if c in self.names]
        if not found:
            raise AttributeError(f"u.{what}: the field depends on {', '.join(self.names)} alone, not on space")
        return found

    def laplacian(self) -> Value:
        """The sum of second derivatives by the coordinates of space."""
        points, key = self.points, (self.root, (*self.path, *LAP))
        points.unwritten(self)
        paths = [sorted_path((*self.path, c, c), points.coordinates) for c in self.space("lap")]
        for path in paths if self.path else [LAP]:
            points.ask(self.root, path)
        if key not in points.derived:
            root, _, label = points.roots[self.root]
            parts = [points.derivative(root, path) for path in paths]
            label = f"{label}.{''.join(key[1])}"
            points.derived[key] = points.value(sum(parts[1:], start=parts[0]), self.names, label=label)
        return points.unwritten(points.derived[key])

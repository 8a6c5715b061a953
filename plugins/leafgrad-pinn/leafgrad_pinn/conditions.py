"""What a problem asks of its fields, each at points of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leafgrad import Tensor
from leafgrad_pinn.callables import Function, Named, check_number, names_of
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.sampling import Array, check_sampler
from leafgrad_pinn.values import Points, Value

Batch = dict[str, Array]


class Scene:
    """What conditions may ask for: the domain, the fields' names and values.

    Attributes:
        domain: of the problem.
        fields: for each field, and for the parts of complex ones, its coordinates.
        given: the fields' names as the problem was given them.
        complex: those of complex ones.
    """

    def __init__(
        self, domain: Domain, fields: Mapping[str, Sequence[str]], given: Sequence[str], complex: Sequence[str] = ()
    ) -> None:
        self.domain, self.fields, self.given, self.complex = domain, dict(fields), list(given), tuple(complex)

    def field(self, name: str | None, what: str) -> str:
        """The name itself, or that of the only field; ValueError if there is none of that name, or several."""
        if name is None and len(self.given) == 1:
            return self.given[0]
        if name is None or name not in self.fields:
            got = "none" if name is None else repr(name)
            raise ValueError(f"{what}: field: expected one of {', '.join(self.fields)}, got {got}")
        return name

    def named(self, function: Function | float, what: str, *more: str) -> Named:
        """A function of fields, coordinates, and what else it may ask for."""
        return Named(function, what, [*self.fields, *self.domain.names, *more])


class Condition(ABC):
    """An equation that holds at points.

    Args:
        n: how many points.
        sampler: how they are chosen, one of ``leafgrad_pinn.sampling.SAMPLERS``.
        weight: what its mean square counts in the loss.
        name: how histories and errors call it; the class and edges by default.

    Attributes:
        minimised: whether it is to be least, rather than zero.
    """

    minimised = False

    def __init__(self, n: int, sampler: str, weight: float, name: str | None) -> None:
        what = type(self).__name__
        check_number(f"{what}: n", n, 1, whole=True)
        check_number(f"{what}: weight", weight)
        if weight <= 0:
            raise ValueError(f"{what}: weight: expected a positive number, got {weight}")
        check_sampler(sampler)
        self.n, self.sampler, self.weight, self.name = n, sampler, float(weight), name or what.lower()

    @abstractmethod
    def bind(self, scene: Scene) -> None:
        """Look up fields, coordinates and edges; ValueError for what does not exist."""

    @abstractmethod
    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        """New points: ``points`` (n, d), and what else the residual needs at them, as (n, ...)."""

    def within(self, domain: Domain) -> Condition | None:
        """What it asks for in a part of its domain; None for nothing."""
        return self

    @abstractmethod
    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        """What shall be zero: a value at each point, or a tuple of such.

        Args:
            values: fields and coordinates by name.
            points: where they are taken.
            extra: what ``draw`` gave besides ``points``; for `Periodic`, fields at the opposite points.
        """


class Interior(Condition):
    """An equation inside: ``Interior(lambda u: u.t - u.xx, n=2048)``.

    Args:
        equation: a function of fields and coordinates by name, whose result, or tuple of results, shall be zero.
        n, sampler, weight, name: see `Condition`.
    """

    def __init__(
        self, equation: Function, n: int = 2048, *, sampler: str = "sobol", weight: float = 1, name: str | None = None
    ) -> None:
        super().__init__(n, sampler, weight, name)
        self.equation = equation

    def bind(self, scene: Scene) -> None:
        if not callable(self.equation):
            raise TypeError(f"{self.name}: expected a function, as lambda u: u.t - u.xx, got {self.equation!r}")
        self.call = scene.named(self.equation, self.name)

    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        return self.at(domain.interior(self.n, self.sampler, rng), rng)

    def at(self, points: Array, rng: np.random.Generator) -> Batch:
        """Points (n, d), with what else the residual needs at them."""
        return {"points": points}

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        return self.call(values)


class OnBoundary(Condition):
    """A condition on edges.

    Args:
        value: a number, or a function of coordinates (and fields) by name.
        on: names of edges as one string; all of them by default.
        field: its name, where there are several.
        n, sampler, weight, name: see `Condition`.
    """

    def __init__(
        self,
        value: Function | float,
        on: str | None = None,
        *,
        field: str | None = None,
        n: int = 256,
        sampler: str = "sobol",
        weight: float = 1,
        name: str | None = None,
    ) -> None:
        label = type(self).__name__.lower() + (f" {field}" if field else "") + (f" {on}" if on else "")
        super().__init__(n, sampler, weight, name or label)
        self.value, self.on, self.field = value, on, field

    def bind(self, scene: Scene) -> None:
        self.target = scene.field(self.field, self.name)
        self.bind_value(scene)

    def bind_value(self, scene: Scene) -> None:
        """What is said, and on which edges."""
        chosen = scene.domain.edges if self.on is None else names_of(f"{self.name}: on", self.on)
        self.edges = scene.domain.check_edges(chosen)
        self.call = scene.named(self.value, self.name)

    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        points, normals = domain.boundary(self.n, self.edges, self.sampler, rng)
        return {"points": points, "normals": normals}


class Dirichlet(OnBoundary):
    """u = value on edges."""

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        return values[self.target] - self.call(values)


class Neumann(OnBoundary):
    """u.n = value on edges, n the outward normal."""

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        return values[self.target].n - self.call(values)


class Boundary(OnBoundary):
    """An equation on edges: ``Boundary(lambda u: (u.xx, u.xxx), on="x_max")``.

    Args:
        equation: as for `Interior`; it may ask for normal derivatives too.
        on, n, sampler, weight, name: as for `Dirichlet`.
    """

    def __init__(self, equation: Function, on: str | None = None, **options: Any) -> None:
        super().__init__(equation, on, **options)

    def bind(self, scene: Scene) -> None:
        self.bind_value(scene)

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        return self.call(values)


class Robin(OnBoundary):
    """a u + b u.n = value on edges.

    Args:
        value: as for `Dirichlet`.
        a, b: numbers.
    """

    def __init__(self, value: Function | float, on: str | None = None, *, a: float, b: float, **options: Any) -> None:
        super().__init__(value, on, **options)
        check_number(f"{self.name}: a", a)
        check_number(f"{self.name}: b", b)
        self.a, self.b = float(a), float(b)

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        u = values[self.target]
        return self.a * u + self.b * u.n - self.call(values)


class Wrap(Condition):
    """The same values at both ends of a periodic coordinate, and the same derivatives up to ``order``.

    The soft counterpart of the embedding `Periodic`, which is exact.

    Args:
        coordinate: one that the domain calls periodic.
        order: of the highest derivative.
        field, n, sampler, weight, name: as for `Dirichlet`.
    """

    def __init__(
        self,
        coordinate: str,
        order: int = 1,
        *,
        field: str | None = None,
        n: int = 256,
        sampler: str = "sobol",
        weight: float = 1,
        name: str | None = None,
    ) -> None:
        super().__init__(n, sampler, weight, name or f"wrap {coordinate}")
        check_number(f"{self.name}: order", order, 0, whole=True)
        self.coordinate, self.order, self.field = coordinate, order, field

    def bind(self, scene: Scene) -> None:
        self.target = scene.field(self.field, self.name)
        if self.coordinate not in scene.domain.periodic:
            known = ", ".join(scene.domain.periodic) or "none"
            raise ValueError(f"{self.name}: expected a periodic coordinate ({known}), got {self.coordinate!r}")

    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        points = domain.interior(self.n, self.sampler, rng)
        axis = domain.names.index(self.coordinate)
        points[:, axis], opposite = domain.bounds[axis, 0], points.copy()
        opposite[:, axis] = domain.bounds[axis, 1]
        return {"points": points, "opposite": opposite}

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Any]) -> Any:
        here, there = values[self.target], extra["opposite"][self.target]
        paths = [[self.coordinate] * k for k in range(self.order + 1)]
        return tuple(here.along(path) - there.along(path) for path in paths)


class Initial(Condition):
    """u = value at the first moment, and u.t = rate if one is given.

    Args:
        value, rate: numbers, or functions of coordinates by name.
        field, n, sampler, weight, name: as for `Dirichlet`.
    """

    def __init__(
        self,
        value: Function | float,
        rate: Function | float | None = None,
        *,
        field: str | None = None,
        n: int = 256,
        sampler: str = "sobol",
        weight: float = 1,
        name: str | None = None,
    ) -> None:
        super().__init__(n, sampler, weight, name or "initial" + (f" {field}" if field else ""))
        self.value, self.rate, self.field = value, rate, field

    def bind(self, scene: Scene) -> None:
        self.target = scene.field(self.field, self.name)
        if scene.domain.time is None:
            raise ValueError(f"{self.name}: the domain has no time; make one with `shape * Time('t', 0, 1)`")
        self.time = scene.domain.time.name
        self.call = scene.named(self.value, self.name)
        self.speed = None if self.rate is None else scene.named(self.rate, f"{self.name}: rate")

    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        return {"points": domain.start(self.n, self.sampler, rng)}

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        u: Value = values[self.target]
        first = u - self.call(values)
        return first if self.speed is None else (first, u.along([self.time]) - self.speed(values))

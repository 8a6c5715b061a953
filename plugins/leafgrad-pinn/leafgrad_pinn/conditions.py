"""What a problem asks of its fields, each at points of its own."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from leafgrad import Tensor
from leafgrad_pinn.callables import Function, Named, check_number, names_of
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.places import AtPoints, Nowhere, Part, Somewhere, normals_at, true_at
from leafgrad_pinn.sampling import Array, check_sampler, columns_given
from leafgrad_pinn.scene import Scene
from leafgrad_pinn.shapes import Shape
from leafgrad_pinn.unknowns import Unknown
from leafgrad_pinn.values import Points, Value

Batch = dict[str, Array]


class Condition(ABC):
    """An equation that holds at points.

    Args:
        n: how many points.
        sampler: how they are chosen, one of ``leafgrad_pinn.sampling.SAMPLERS``.
        weight: what its mean square counts in the loss.
        name: how histories and errors call it; the class and edges by default.
        of: a shape within the domain, whose inside or edges are meant in place of the domain's.
        where: a function of coordinates by name, such as ``lambda x: x < 0.5``: it holds where that is true.
        points: for each coordinate an array (n,), to take these points and no others.
        weights: for each of these points what its squared residual counts, (n,).
        loss: what is squared in place of a residual r, a function of r such as `Huber`.

    Attributes:
        minimised: whether it is to be least, rather than zero.
    """

    minimised = False

    def __init__(
        self,
        n: int,
        sampler: str,
        weight: float,
        name: str | None,
        *,
        of: Shape | None = None,
        where: Function | None = None,
        points: Mapping[str, Array] | None = None,
        weights: Array | None = None,
        loss: Callable[[Any], Any] | None = None,
    ) -> None:
        what = type(self).__name__
        check_number(f"{what}: n", n, 1, whole=True)
        check_number(f"{what}: weight", weight)
        if weight <= 0:
            raise ValueError(f"{what}: weight: expected a positive number, got {weight}")
        check_sampler(sampler)
        self.n, self.sampler, self.weight, self.name = n, sampler, float(weight), name or what.lower()
        if not (of is None or isinstance(of, Shape)):
            raise TypeError(f"{self.name}: of: expected a shape, such as Box(x=(0, 1)), got {of!r}")
        for option, given in (("where", where), ("loss", loss)):
            if not (given is None or callable(given)):
                raise TypeError(f"{self.name}: {option}: expected a function, got {given!r}")
        self.of, self.where, self.loss = of, where, loss
        self.own = None if points is None else columns_given(self.name, points, weights)
        if weights is not None and points is None:
            raise ValueError(f"{self.name}: weights: expected points=..., which they belong to, got none")
        if self.own is not None:
            self.n = len(self.own["weights"])

    def __repr__(self) -> str:
        weight = "" if self.weight == 1 else f", weight={self.weight:g}"
        return f"{type(self).__name__}(n={self.n}{weight}, name={self.name!r})"

    def region(self, domain: Domain) -> Domain:
        """What of the problem's domain it is about."""
        if self.of is not None:
            if self.of.names != domain.space:
                raise ValueError(
                    f"{self.name}: of: expected a shape of {', '.join(domain.space)}, in this order, got "
                    f"{', '.join(self.of.names)}"
                )
            domain = Domain(self.of, domain.time, domain.parameters)
        if self.where is None:
            return domain
        return Part(domain, Named(self.where, f"{self.name}: where", domain.names))

    def placed(self, domain: Domain) -> Batch | None:
        """Its own points (n, d), where it has such, and their weights (n,)."""
        if self.own is None:
            return None
        if set(self.own) != {*domain.names, "weights"}:
            got = ", ".join(name for name in self.own if name != "weights")
            raise ValueError(f"{self.name}: points: expected arrays of {', '.join(domain.names)}, got {got}")
        points = np.stack([self.own[name] for name in domain.names], 1)
        if self.where is not None and not true_at(Named(self.where, f"{self.name}: where", domain.names), domain,
                                                  points).all():  # fmt: skip
            raise ValueError(f"{self.name}: points: expected ones for which `where` is true, got others")
        return {"points": points, "weights": self.own["weights"]}

    @property
    def parameters(self) -> list[str]:
        """The names that its functions ask for."""
        return [name for each in vars(self).values() if isinstance(each, Named) for name in each.parameters]

    @abstractmethod
    def bind(self, scene: Scene) -> None:
        """Look up fields, coordinates and edges; ValueError for what does not exist."""

    @abstractmethod
    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        """New points: ``points`` (n, d), and what else the residual needs at them, as (n, ...)."""

    def thinned(self, n: int) -> Condition:
        """A copy; of own points it has about n at most."""
        part = copy.copy(self)
        if self.own is not None:
            part.own = {name: array[:: max(1, self.n // n)] for name, array in self.own.items()}
        return part

    def within(self, domain: Domain) -> Condition | None:
        """What it asks for in a part of its domain; None for nothing."""
        found = self.placed(domain)
        if found is None or self.own is None:
            return self if self.where is None or self.somewhere(domain) else None
        inside, part = domain.inside(found["points"]), copy.copy(self)
        part.own, part.n = {name: array[inside] for name, array in self.own.items()}, int(inside.sum())
        return part if part.n else None

    def somewhere(self, domain: Domain) -> bool:
        """Whether anything of a domain is where it holds."""
        dense = copy.copy(self)
        dense.sampler = "sobol"
        try:
            dense.draw(domain, np.random.default_rng(0))
        except Nowhere:
            return False
        return True

    @property
    def equation_key(self) -> Hashable | None:
        """Equal for conditions that differ in their points alone, which are one in programs; None for no others."""
        what = self.equation_of()
        return (*what, key_of(self.loss), self.own is None) if what else None

    def equation_of(self) -> tuple[Hashable, ...]:
        """What its residual is made of, beside points and what is drawn with them; () if that is its own."""
        return ()

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
        n, sampler, weight, name, of, where, points, weights, loss: see `Condition`.
    """

    def __init__(
        self,
        equation: Function,
        n: int = 2048,
        *,
        sampler: str = "sobol",
        weight: float = 1,
        name: str | None = None,
        **place: Unpack[AtPoints],
    ) -> None:
        super().__init__(n, sampler, weight, name, **place)
        self.equation = equation

    def equation_of(self) -> tuple[Hashable, ...]:
        return Interior, key_of(self.equation)

    def bind(self, scene: Scene) -> None:
        if not callable(self.equation):
            raise TypeError(f"{self.name}: expected a function, as lambda u: u.t - u.xx, got {self.equation!r}")
        self.call = scene.named(self.equation, self.name)

    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        region, given = self.region(domain), self.placed(domain)
        if given is None:
            return self.at(region.interior(self.n, self.sampler, rng), rng)
        region.check_inside(self.name, given["points"])
        return self.at(given["points"], rng) | given

    def at(self, points: Array, rng: np.random.Generator) -> Batch:
        """Points (n, d), with what else the residual needs at them."""
        return {"points": points}

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        return self.call(values)


class OnBoundary(Condition):
    """A condition on edges.

    Args:
        value: a number, or a function of coordinates (and fields) by name.
        on: names of edges as one string, or a list; all of them by default.
        field: its name, where there are several.
        n, sampler, weight, name, of, where, points, weights, loss: see `Condition`.
    """

    def __init__(
        self,
        value: Function | float,
        on: str | Sequence[str] | None = None,
        *,
        field: str | None = None,
        n: int = 256,
        sampler: str = "sobol",
        weight: float = 1,
        name: str | None = None,
        **place: Unpack[AtPoints],
    ) -> None:
        what = type(self).__name__.lower()
        edges = "" if on is None else " ".join(names_of(f"{name or what}: on", on))
        label = what + (f" {field}" if field else "") + (f" {edges}" if edges else "")
        super().__init__(n, sampler, weight, name or label, **place)
        self.value, self.on, self.field = value, on, field

    def equation_of(self) -> tuple[Hashable, ...]:
        return type(self), self.target, key_of(self.value)

    def bind(self, scene: Scene) -> None:
        self.target = scene.field(self.field, self.name)
        self.bind_value(scene)

    def bind_value(self, scene: Scene) -> None:
        """What is said, and on which edges."""
        region = self.region(scene.domain)
        chosen = region.edges if self.on is None else names_of(f"{self.name}: on", self.on)
        self.edges = region.check_edges(chosen)
        self.call = scene.named(self.value, self.name)

    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        region, given = self.region(domain), self.placed(domain)
        if given is not None:
            return {**given, "normals": normals_at(self.name, region, given["points"], self.edges)}
        points, normals = region.boundary(self.n, self.edges, self.sampler, rng)
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

    def __init__(self, equation: Function, on: str | Sequence[str] | None = None, **options: Any) -> None:
        super().__init__(equation, on, **options)

    def equation_of(self) -> tuple[Hashable, ...]:
        return Boundary, key_of(self.value)

    def bind(self, scene: Scene) -> None:
        self.bind_value(scene)

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        return self.call(values)


class Robin(OnBoundary):
    """a u + b u.n = value on edges.

    Args:
        value: as for `Dirichlet`.
        a, b: numbers, of a complex field complex ones, too.
    """

    def __init__(
        self, value: Function | float, on: str | Sequence[str] | None = None, *, a: complex, b: complex, **options: Any
    ) -> None:
        super().__init__(value, on, **options)
        for what, factor in (("a", a), ("b", b)):
            if callable(factor) or isinstance(factor, Unknown):
                raise TypeError(
                    f"{self.name}: {what}: expected a number, got {factor!r}; for others there is "
                    "Boundary(lambda u, h: h * u + u.n - g, on)"
                )
            for part in (factor.real, factor.imag) if isinstance(factor, complex) else (factor,):
                check_number(f"{self.name}: {what}", part)
        if a == b == 0:
            raise ValueError(f"{self.name}: expected a or b other than 0, got a={a}, b={b}")
        self.a, self.b = (complex(f) if isinstance(f, complex) else float(f) for f in (a, b))

    def bind(self, scene: Scene) -> None:
        super().bind(scene)
        for what, factor in (("a", self.a), ("b", self.b)):
            if isinstance(factor, complex) and self.target not in scene.complex:
                raise TypeError(
                    f"{self.name}: {what}: expected a real number for the field {self.target}, got {factor!r}"
                )

    def equation_of(self) -> tuple[Hashable, ...]:
        return Robin, self.target, key_of(self.value), self.a, self.b

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
        field, n, sampler, weight, name, of, where, loss: as for `Dirichlet`.
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
        **place: Unpack[Somewhere],
    ) -> None:
        super().__init__(n, sampler, weight, name or "initial" + (f" {field}" if field else ""), **place)
        self.value, self.rate, self.field = value, rate, field

    def bind(self, scene: Scene) -> None:
        self.target = scene.field(self.field, self.name)
        if scene.domain.time is None:
            raise ValueError(f"{self.name}: the domain has no time; make one with `shape * Time('t', 0, 1)`")
        self.time = scene.domain.time.name
        self.call = scene.named(self.value, self.name)
        self.speed = None if self.rate is None else scene.named(self.rate, f"{self.name}: rate")

    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        return {"points": self.region(domain).start(self.n, self.sampler, rng)}

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        u: Value = values[self.target]
        first = u - self.call(values)
        return first if self.speed is None else (first, u.along([self.time]) - self.speed(values))


def key_of(value: Function | float | None) -> Hashable:
    """Equal for one number, and for one and the same function."""
    return id(value) if callable(value) else value

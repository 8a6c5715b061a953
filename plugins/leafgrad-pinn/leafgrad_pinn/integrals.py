"""Conditions that integrals state: values of integrals, integral equations, and energies that are least."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.callables import Function, check_number, names_of
from leafgrad_pinn.complex import each_part
from leafgrad_pinn.conditions import Batch, Condition
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.quadrature import inside, on_edges
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.scene import Scene
from leafgrad_pinn.values import Points


class Outside:
    """Coordinates and fields where an integral's equation holds, at each of its points: ``at.x``, ``at.u``."""

    def __init__(self, values: Mapping[str, Any], count: int) -> None:
        self._values, self._count = values, count

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"at.{name}: expected one of {', '.join(self._values)}")
        return each_part(self._at_nodes, self._values[name])

    def _at_nodes(self, value: Tensor) -> Tensor:
        return value.clone().as_subclass(Tensor)[:, None].expand(len(value), self._count).reshape(-1)


class Integral(Condition):
    """An integral is equal to something: ``Integral(lambda u: u**2, equals=1)``.

    With ``n`` it is an equation at so many points: ``Integral(lambda u, x, at: k(at.x, x) * u, lambda u, x: u - f(x),
    n=64)`` is Fredholm's, in which ``at`` has the coordinates and fields at these points; with ``upto="x"`` the
    integral ends there, as in Volterra's. By Gauss-Legendre rules, which are exact for polynomials of degree
    2 order - 1 in each coordinate, and polar ones in disks. A network may fit itself to the points of a rule, or
    jump between them; the end of the training tells so: take a larger ``order``, or another seed.

    Args:
        integrand: a function of fields and coordinates by name, and of ``at``.
        equals: a number, or a function of fields and coordinates where the equation holds.
        over: the coordinates that are integrated over, as one string, all by default; others are as ``at`` has them.
        on: names of edges to integrate over, as one string, in place of the inside.
        upto: the coordinate of ``over`` that ends at its value in ``at``.
        n: at how many points the equation holds; one by default, which is for integrals over all coordinates.
        order: points along each coordinate, or each of its pieces.
        pieces: into how many equal ones each coordinate is cut, for integrands with kinks between, as those of `FNO`.
        sampler, weight, name: see `Condition`.

    Raises:
        ValueError: a shape that is no box or disk, or edges that set operations have cut, and not ``on`` whole ones.
    """

    def __init__(
        self,
        integrand: Function,
        equals: Function | float = 0.0,
        *,
        over: str | None = None,
        on: str | None = None,
        upto: str | None = None,
        n: int = 1,
        order: int = 32,
        pieces: int = 1,
        sampler: str = "sobol",
        weight: float = 1,
        name: str | None = None,
    ) -> None:
        super().__init__(n, sampler, weight, name)
        if not callable(integrand):
            raise TypeError(f"{self.name}: expected a function, as lambda u: u**2, got {integrand!r}")
        check_number(f"{self.name}: order", order, 1, whole=True)
        check_number(f"{self.name}: pieces", pieces, 1, whole=True)
        if pieces > 1 and on is not None:
            raise ValueError(f"{self.name}: pieces: expected an integral over the inside, got one over edges")
        self.integrand, self.equals, self.order, self.pieces = integrand, equals, order, pieces
        self.given, self.on, self.upto = over, on, upto

    def bind(self, scene: Scene) -> None:
        names, parameters = scene.domain.names, [p.name for p in scene.domain.parameters]
        self.over = (
            [c for c in names if c not in parameters]
            if self.given is None
            else names_of(f"{self.name}: over", self.given)
        )
        if unknown := [c for c in [*self.over, *([self.upto] if self.upto else [])] if c not in names]:
            raise ValueError(f"{self.name}: over: expected coordinates among {', '.join(names)}, got {unknown[0]}")
        if self.upto is not None and (self.upto not in self.over or self.on is not None):
            raise ValueError(
                f"{self.name}: upto: expected a coordinate that is integrated over inside, got {self.upto}"
            )
        if self.n == 1 and (self.upto or set(self.over) < set(names)):
            raise ValueError(f"{self.name}: n: expected how many points the equation holds at, got 1, for a part of it")
        cells = max((size - 1 for f in scene.domain.functions for size in f.shape), default=0)
        if scene.on_grid and self.order * self.pieces < 2 * cells:
            raise ValueError(
                f"{self.name}: order: expected two points between each two of a grid's, as order=2, pieces={cells}, "
                f"for its network bends to what no point sees, got {self.order * self.pieces} for {cells}"
            )
        self.edges = None if self.on is None else scene.domain.check_edges(names_of(f"{self.name}: on", self.on))
        self.rule(scene.domain)
        self.inner = scene.named(self.integrand, self.name, "at")
        self.call = scene.named(self.equals, f"{self.name}: equals")

    def within(self, domain: Domain) -> Condition | None:
        if domain.time is not None and domain.time.name in self.over:
            raise ValueError(f"{self.name}: windows: expected integrals at one moment, got one over {domain.time.name}")
        return self

    def rule(self, domain: Domain) -> tuple[Array, Array, Array | None]:
        """Points (q, d), weights (q,) and normals (q, k) of the integral."""
        if self.edges is None:
            return inside(domain, self.over, self.order, self.pieces)
        return on_edges(domain, self.edges, self.over, self.order)

    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        points = domain.interior(self.n, self.sampler, rng)
        nodes, weights, normals = self.rule(domain)
        n, q = len(points), len(nodes)
        every, share = np.repeat(nodes[None], n, 0), np.repeat(weights[None], n, 0)
        for axis, name in enumerate(domain.names):
            space = self.edges is not None and name in domain.space
            if name not in self.over and not space:
                every[:, :, axis] = points[:, axis, None]
            elif name == self.upto:
                low, high = domain.bounds[axis]
                part = (points[:, axis, None] - low) / (high - low)
                every[:, :, axis] = low + (every[:, :, axis] - low) * part
                share = share * part
        batch = {"points": points, "nodes": every, "shares": share}
        if normals is not None:
            batch["sides"] = np.repeat(normals[None], n, 0).reshape(n, q, -1)
        return batch

    def density(self, integrand: Any, values: Mapping[str, Any], extra: Mapping[str, Any]) -> Any:
        """An integrand at the points of the rule, for each point: (n, q), complex if it is."""
        n, q = extra["shares"].shape

        def placed(part: Any) -> Tensor:
            if not isinstance(part, Tensor):
                return leafgrad.full_like(extra["shares"], part)
            if tuple(part.shape) != (n * q,):
                raise ValueError(
                    f"{self.name}: expected one number for each of {n * q} points, got {tuple(part.shape)}"
                )
            return part.reshape(n, q)

        return each_part(placed, integrand({**extra["inner"], "at": Outside(values, q)}))

    def total(self, integrand: Any, values: Mapping[str, Any], extra: Mapping[str, Any]) -> Any:
        """An integral for each point: (n,), complex if its integrand is."""
        return each_part(lambda part: (part * extra["shares"]).sum(1), self.density(integrand, values, extra))

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        return self.total(self.inner, values, extra) - self.call(values)


class Energy(Integral):
    """An integral that shall be least, or, with ``per``, its quotient by another: the Deep Ritz method.

    ``Energy(lambda u, x: u.x**2 / 2 - u, least=-1)`` for -u'' = 1, ``Energy(lambda u: u.x**2, per=lambda u: u**2)`` for
    the ground state of -u'' (Rayleigh). What the loss has is the integral minus ``least``, in units of its size. For
    `Adam`, `LBFGS` or `SSBroyden`: it is no sum of squares. Several add up.

    Args:
        integrand: a function of fields and coordinates by name.
        per: the same, for the denominator.
        least: a number that the integral, or quotient, cannot fall to.
        on, over, order, pieces, weight, name: see `Integral`.

    Source: E and Yu (2018), "The deep Ritz method", arXiv 1710.00211.
    """

    minimised = True

    def __init__(self, integrand: Function, *, per: Function | None = None, least: float = 0.0, **options: Any) -> None:
        super().__init__(integrand, least, **options)
        self.loss = root
        check_number(f"{self.name}: least", least)
        self.per, self.least = per, float(least)

    @property
    def remedy(self) -> str:
        """What to do about a ``least`` to which the energy can fall."""
        return f"give less, as least={self.least - max(1.0, abs(self.least)):g}"

    def bind(self, scene: Scene) -> None:
        super().bind(scene)
        self.below = None if self.per is None else scene.named(self.per, f"{self.name}: per", "at")

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        energy = self.total(self.inner, values, extra)
        if self.below is not None:
            energy = energy / self.total(self.below, values, extra)
        return energy - self.call(values)


def root(energies: Tensor) -> Tensor:
    """The square root, and infinity, which no step can take, of what lies below the least."""
    found: Tensor = leafgrad.where(energies < 0, math.inf, energies).sqrt()
    return found

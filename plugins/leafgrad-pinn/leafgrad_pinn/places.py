"""Where a condition holds, if not all over its domain: in a shape within it, in part of an edge, at given points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from leafgrad_pinn.callables import Function, Named
from leafgrad_pinn.domains import Domain, filled
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.shapes import ROUNDING, Shape, unit_rows


class Nowhere(ValueError):
    """Nothing of a domain is where a condition holds."""


class Somewhere(TypedDict, total=False):
    """What conditions take besides, to say where they hold; see `leafgrad_pinn.conditions.Condition`."""

    of: Shape | None
    where: Function | None
    loss: Callable[[Any], Any] | None


class AtPoints(Somewhere, total=False):
    """The same, of conditions that may be given points."""

    points: Mapping[str, Array] | None
    weights: Array | None


class Part(Domain):
    """What of a domain a function of coordinates is true for."""

    def __init__(self, whole: Domain, where: Named) -> None:
        super().__init__(whole.shape, whole.time, whole.parameters)
        self.whole, self.where = whole, where

    def interior(self, n: int, sampler: str, rng: np.random.Generator) -> Array:
        return self._kept(n, lambda m: (self.whole.interior(m, sampler, rng),) * 2, sampler)[0]

    def boundary(self, n: int, edges: Any, sampler: str, rng: np.random.Generator) -> tuple[Array, Array]:
        return self._kept(n, lambda m: self.whole.boundary(m, edges, sampler, rng), sampler)

    def start(self, n: int, sampler: str, rng: np.random.Generator) -> Array:
        return self._kept(n, lambda m: (self.whole.start(m, sampler, rng),) * 2, sampler)[0]

    def holds(self, points: Array) -> Array:
        """Which points (n, d) belong to it: (n,)"""
        return true_at(self.where, self, points)

    def _kept(self, n: int, draw: Callable[[int], tuple[Array, Array]], sampler: str) -> tuple[Array, Array]:
        points, more = draw(n)
        good = self.holds(points)
        if good.all():
            return points, more
        if sampler == "grid" or len(points) < n:  # there are no others
            points, more = points[good], more[good]
        else:
            what = f"{self.where.what}: points where it is true"
            points, more = filled(n, draw, lambda points, _: self.holds(points), what, Nowhere(self._empty))
        if not len(points):
            raise Nowhere(self._empty)
        return points, more

    @property
    def _empty(self) -> str:
        return f"{self.where.what}: expected a function that is true somewhere there, found no such point"


def true_at(where: Named, domain: Domain, points: Array) -> Array:
    """Where a function of coordinates is true: (n, d) -> booleans (n,). TypeError for other results than booleans."""
    from leafgrad_pinn.field import columns_of

    found = where({name: column.detach() for name, column in columns_of(domain, points).items()})
    mask = np.broadcast_to(np.asarray(found), (len(points),)) if np.ndim(found) <= 1 else np.asarray(found)
    if mask.dtype != np.bool_ or mask.shape != (len(points),):
        raise TypeError(f"{where.what}: expected true or false for each point, as of x < 0.5, got {mask.dtype}")
    return mask


def normals_at(what: str, domain: Domain, points: Array, edges: Sequence[str]) -> Array:
    """Outward unit normals (n, k) at points (n, d) of edges, the mean where edges meet; ValueError for others."""
    shape, k = domain.shape, len(domain.space)
    if shape is None:
        raise ValueError(f"{what}: the domain has no edges, since it has no space")
    at, near = points[:, :k], ROUNDING * float(np.ptp(shape.bounds, axis=1).max())
    found = [shape.at_edge(at, edge) for edge in edges]
    on = np.stack([away <= near for away, _ in found]) & (np.abs(shape.signed(at)) <= near)
    off = ~on.any(0)
    if off.any():
        first = dict(zip(domain.space, at[off][0].tolist(), strict=True))
        raise ValueError(
            f"{what}: points: expected points on the edges {', '.join(edges)}, got {off.sum()} off them, the first at "
            f"{first}; on= names edges"
        )
    return unit_rows(np.einsum("en,enk->nk", on, [normals for _, normals in found]))

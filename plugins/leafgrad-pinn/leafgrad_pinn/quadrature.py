"""Rules that integrate smooth functions: Gauss-Legendre along intervals, equal steps round circles, polar in disks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leafgrad_pinn.domains import Domain
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.shapes import Ball, Box

Rule = tuple[Array, Array, Array | None]  # points (q, d), weights (q,), and normals (q, k) on edges


def interval(count: int, pieces: int = 1) -> tuple[Array, Array]:
    """Points in [0, 1] and their weights, (q,) each: exact up to degree 2 count - 1 in each piece."""
    x, w = np.polynomial.legendre.leggauss(count)
    points = ((x + 1) / 2 + np.arange(pieces)[:, None]) / pieces
    return points.ravel(), np.tile(w / 2 / pieces, pieces)


def turn(count: int) -> tuple[Array, Array]:
    """The same for a turn round something: exact for so many harmonics, and for nothing that has another end.

    The steps are odd in number, for an even one sees the same again in what is symmetric.
    """
    count |= 1
    return np.arange(count) / count, np.full(count, 1 / count)


def product(rules: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Points (q, d) and weights (q,) of rules for each coordinate."""
    points, weights = np.zeros((1, 0)), np.ones(1)
    for x, w in rules:
        points = np.concatenate([np.repeat(points, len(x), 0), np.tile(x, len(points))[:, None]], 1)
        weights = (weights[:, None] * w).ravel()
    return points, weights


def inside(domain: Domain, over: Sequence[str], count: int, pieces: int = 1) -> Rule:
    """A rule over some coordinates of a domain, ``count`` points along each piece of each: all others are 0.

    Raises:
        ValueError: they are of a shape for which there is no rule.
    """
    shape = domain.shape
    if pieces > 1 and isinstance(shape, Ball):
        raise ValueError(f"Integral: pieces: expected a box or an interval to cut, got {shape}")
    if isinstance(shape, Ball) and len(shape.names) == 2 and set(over) >= set(shape.names):
        (r, wr), (angle, wa) = interval(count), turn(2 * count)
        polar, weights = product([(r, wr * r), (2 * np.pi * angle, 2 * np.pi * wa)])
        flat = shape.radius * polar[:, :1] * np.stack([np.cos(polar[:, 1]), np.sin(polar[:, 1])], 1) + shape.center
        points, weights, names = flat, weights * shape.radius**2, list(shape.names)
    elif isinstance(shape, Box) or not set(over) & set(domain.space):
        points, weights, names = np.zeros((1, 0)), np.ones(1), []
    else:
        raise ValueError(
            f"Integral: expected boxes and disks, intervals and times, or edges, got {shape}; there is no rule for it: "
            "take on=... for edges, or the mean of sol.evaluate(...) at sol.domain.interior(4096, 'sobol', rng), times "
            "the volume"
        )
    for name in [c for c in over if c not in names]:
        x, w = interval(count, pieces)  # round a ring, too: what is integrated there may depend on the coordinate
        low, high = domain.bounds[domain.names.index(name)]
        last = np.tile(low + (high - low) * x, len(points))[:, None]
        points = np.concatenate([np.repeat(points, len(x), 0), last], 1)
        weights = (weights[:, None] * w * (high - low)).ravel()
        names.append(name)
    whole = np.zeros((len(points), len(domain.names)))
    for k, name in enumerate(names):
        whole[:, domain.names.index(name)] = points[:, k]
    return whole, weights, None


def on_edges(domain: Domain, edges: Sequence[str], over: Sequence[str], count: int) -> Rule:
    """A rule over edges, and over time if that is among the coordinates; else time is 0.

    Raises:
        ValueError: set operations cut an edge.
    """
    found = []
    for edge in edges:
        for piece in domain.shape.edges[edge] if domain.shape else ():
            if piece.keep is not None:
                raise ValueError(
                    f"Integral: on: expected whole smooth edges, got {edge}, which set operations have cut, or "
                    "which is made of triangles; take others, or the mean of sol.evaluate(...) at points of "
                    "sol.domain.boundary(4096, edges, 'sobol', rng)"
                )
            if piece.chart is None:
                u, weights = product([interval(count)] * piece.dim)
                points, normals = piece.place(u)
                weights = weights * piece.measure
            else:
                u, weights = product([turn(count)] + [interval(count)] * (piece.dim - 1))
                points, normals, density = piece.chart(u)
                weights = weights * density
            for name, (low, high) in zip(domain.names, domain.bounds, strict=True):
                if name in domain.space:
                    continue
                x, w = interval(count) if name in over else (np.zeros(1), np.ones(1))
                low, length = (low, high - low) if name in over else (0.0, 1.0)
                grid = np.tile(low + length * x, len(points))[:, None]
                points = np.concatenate([np.repeat(points, len(x), 0), grid], 1)
                normals = np.repeat(normals, len(x), 0)
                weights = (weights[:, None] * w * length).ravel()
            found.append((points, weights, normals))
    return (
        np.concatenate([p for p, _, _ in found]),
        np.concatenate([w for _, w, _ in found]),
        np.concatenate([n for _, _, n in found]),
    )

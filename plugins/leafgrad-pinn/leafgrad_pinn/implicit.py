"""Shapes where a function is negative."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad.autograd import grad
from leafgrad_pinn.callables import Named
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.shapes import Box, Piece, Shape
from leafgrad_pinn.values import recording

BAND = 0.02  # half the width of the band from which points go to the boundary, as a part of the shape's size
FACE = 256  # points on each face of the box where the function must not be negative


class SignedDistance(Shape):
    """Where a function is negative: ``SignedDistance(lambda x, y: x**4 + y**4 - 1, x=(-1.1, 1.1), y=(-1.1, 1.1))``.

    Its edge is ``boundary``: where the function is zero. Points get there by Newton's method from a thin band around
    it, in which they are uniform.

    Args:
        function: of coordinates by name, made of leafgrad's operations; smooth, with a gradient other than zero near
            its zeros. It need not be a distance: `Hard` multiplies by it, and a distance has kinks inside.
        sides: a box that holds all of it.

    Raises:
        ValueError: the function is negative on the box's faces, or nowhere in it, or no number for each point.
    """

    def __init__(self, function: Callable[..., Any], **sides: tuple[float, float]) -> None:
        self.box = Box("", **sides)
        self.written = [self]
        self.function, self.names, self.bounds = function, self.box.names, self.box.bounds
        self.call = Named(function, "SignedDistance: function", self.names)
        volume, self.band = float(np.prod(np.ptp(self.bounds, axis=1))), BAND * float(np.ptp(self.bounds, axis=1).min())
        self.edges = {"boundary": [Piece(len(self.names), volume / (2 * self.band), self._place, placed)]}
        self._check()

    def _check(self) -> None:
        rng = np.random.default_rng(0)
        for edge, (face,) in self.box.edges.items():
            points, _ = face.place(rng.random((FACE, face.dim)))
            values = self.signed(points)
            if not np.isfinite(values).all() or values.min() < 0:
                raise ValueError(f"SignedDistance: expected a function that is positive on its box's face {edge}")
        inside = self.bounds[:, 0] + rng.random((4096, len(self.names))) * np.ptp(self.bounds, axis=1)
        if self.signed(inside).min() >= 0:
            raise ValueError("SignedDistance: expected a function that is negative somewhere in its box")

    def level(self, columns: Mapping[str, Tensor]) -> Tensor:
        return -self.call.numbers(columns, next(iter(columns.values())))

    @recording()
    def signed(self, points: Array) -> Array:
        values: Array = -self.level(self._columns(points)).detach().numpy()
        return values

    @recording()
    def gradient(self, points: Array) -> Array:
        """(n, d) -> (n, d)"""
        columns = self._columns(points)
        slopes = grad(-self.level(columns).sum(), list(columns.values()), materialize_grads=True)
        return np.stack([slope.numpy() for slope in slopes], 1)

    def _columns(self, points: Array) -> dict[str, Tensor]:
        return {
            name: leafgrad.tensor(np.ascontiguousarray(points[:, i]), requires_grad=True)
            for i, name in enumerate(self.names)
        }

    def _place(self, u: Array) -> tuple[Array, Array]:
        points = self.bounds[:, 0] + u * np.ptp(self.bounds, axis=1)
        start = points
        with np.errstate(all="ignore"):
            for _ in range(12):
                slope = self.gradient(points)
                points = points - slope * (self.signed(points) / (slope**2).sum(1))[:, None]
            slope = self.gradient(points)
            length = np.linalg.norm(slope, axis=1, keepdims=True)
            good = np.abs(self.signed(points)) <= 1e-9 * length[:, 0] * np.ptp(self.bounds)
            good &= np.linalg.norm(points - start, axis=1) <= self.band
            normals = slope / length
        return np.where(good[:, None], points, np.nan), np.where(good[:, None], normals, np.nan)

    def __repr__(self) -> str:
        return f"SignedDistance(..., {self.box!r})"  # the function's address is another in each process


def placed(points: Array, _: Array) -> Array:
    """Which points Newton's method brought to the boundary."""
    found: Array = ~np.isnan(points[:, 0])
    return found

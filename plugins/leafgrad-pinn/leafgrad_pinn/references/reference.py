"""A solution to compare with, and an estimate of its own error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from leafgrad_pinn.sampling import Array

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Reference:
    """A solution on a grid, or at scattered points; or those of a family of problems, for some input functions.

    Attributes:
        name: of the method.
        axes: for each coordinate its values: on a grid (m,), increasing; or those of n points (n,).
        fields: for each field its values, of the shape of the grid, the first coordinate first; or (n,).
        floor: for each field the relative L2 error of these values, as the method estimates it itself.
        seconds: what computing them took, without the estimate.
        grid: whether the points are a grid.
        functions: for each input function of a family its values at sensors, (n, m); fields then begin with such an
            axis, too.
    """

    name: str
    axes: dict[str, Array]
    fields: dict[str, Array]
    floor: dict[str, float]
    seconds: float
    grid: bool = True
    functions: dict[str, Array] = field(default_factory=dict)

    def one(self, index: int) -> Reference:
        """That of one problem of a family."""
        values = {name: array[index] for name, array in self.fields.items()}
        return replace(self, fields=values, functions={})

    def columns(self, names: Sequence[str]) -> list[Array]:
        """The points' coordinates in the order of ``names``, each an array of the shape of ``values``."""
        axes = [self.axes[name] for name in names]
        return list(np.meshgrid(*axes, indexing="ij")) if self.grid else axes

    def values(self, name: str, names: Sequence[str]) -> Array:
        """The values of the field of a name, the axes of a grid in the order of ``names``."""
        order = [list(self.axes).index(axis) for axis in names]
        return np.transpose(self.fields[name], order) if self.grid else self.fields[name]

    def points(self) -> Array:
        """The points (n, d)."""
        return np.stack(self.columns(list(self.axes)), -1).reshape(-1, len(self.axes))


def relative_l2(value: Array, reference: Array) -> float:
    """|value - reference| / |reference|, both in the Euclidean norm."""
    return float(np.linalg.norm(value - reference) / np.linalg.norm(reference))

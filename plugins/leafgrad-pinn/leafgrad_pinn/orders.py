"""Of what order a problem's equations are in a field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.conditions import Initial
from leafgrad_pinn.field import Field
from leafgrad_pinn.layers import Maker
from leafgrad_pinn.system import System

if TYPE_CHECKING:
    from leafgrad_pinn.problem import Problem

HIGHEST = 4  # derivatives that are looked for
FEW = 8  # points of each condition at which they are


def order_of(problem: Problem, field: Field, coordinate: str) -> int:
    """The highest derivative of a field by a coordinate that changes the residual of a condition, of the first four.

    They are changed one at a time by (t - t0)^k at each point t0, so that it does not matter how they are written.
    """
    plain, highest = System(problem, maker()), 0
    plain.plans = []
    changed = {k: Changed(problem, field.name, coordinate, k) for k in range(1, HIGHEST + 1)}
    for index, condition in enumerate(problem.conditions):
        if isinstance(condition, Initial):
            continue
        batch = {name: t[:FEW] for name, t in problem.some()[index].items()}
        known = plain(index, batch).detach().numpy()
        for order in range(highest + 1, HIGHEST + 1):
            if not np.array_equal(changed[order](index, batch).detach().numpy(), known, equal_nan=True):
                highest = order
    return highest


class Changed(System):
    """A system with one derivative of a field by a coordinate that is another."""

    def __init__(self, problem: Problem, field: str, coordinate: str, order: int, seed: int = 0) -> None:
        super().__init__(problem, maker(seed))
        self.plans, self.field, self.coordinate, self.order = [], field, coordinate, order

    def fields(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found, t = super().fields(columns), columns[self.coordinate]
        return {**found, self.field: found[self.field] + math.prod([t - t.detach()] * self.order)}


def maker(seed: int = 0) -> Maker:
    """Of a system that is looked at, not trained."""
    return Maker(np.random.default_rng(seed), leafgrad.float64, "cpu")

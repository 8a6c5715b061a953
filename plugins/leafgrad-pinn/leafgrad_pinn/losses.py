"""Losses that are no mean squares: functions of a residual, whose squares are summed in place of its own."""

from __future__ import annotations

from dataclasses import dataclass

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.callables import check_number


@dataclass(frozen=True)
class Huber:
    """Residuals beyond ``delta`` count by their size and not by its square, so that outliers count little.

    ``Data(..., loss=Huber(0.1))``: a residual r adds r^2 up to delta, then delta (2 |r| - delta). Delta is in the
    residual's own units. Stages take it as they take squares, those that use a Jacobian too. Any function of residuals
    whose square is the loss serves as well: ``loss=lambda r: lg.log1p(r * r).sqrt()``, if it is smooth at 0.

    Source: Huber (1964), "Robust estimation of a location parameter", Ann. Math. Stat. 35, 73.
    """

    delta: float = 1.0

    def __post_init__(self) -> None:
        check_number("Huber: delta", self.delta)
        if self.delta <= 0:
            raise ValueError(f"Huber: delta: expected a positive number, got {self.delta}")

    def __call__(self, residuals: Tensor) -> Tensor:
        """The root of the loss of each residual, with its sign. (n, k) -> (n, k)"""
        size = leafgrad.maximum(residuals.abs(), leafgrad.full_like(residuals, self.delta))
        outer = residuals.sign() * (self.delta * (2 * size - self.delta)).sqrt()
        found: Tensor = leafgrad.where(residuals.abs() <= self.delta, residuals, outer)
        return found

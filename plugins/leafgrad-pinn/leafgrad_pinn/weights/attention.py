"""Weights of single points that grow where the residual stays large."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leafgrad import Tensor
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.weights.scheme import Scheme


class Attention(Scheme):
    """Multipliers of residuals, 1 at first and again where points are drawn anew; weights are their squares."""

    def factors(self, trainee: Trainee, squares: Sequence[Tensor]) -> list[Any]:
        old = trainee.multipliers.get(self.name) or trainee.ones()
        new = [self.next(multiplier, square) for multiplier, square in zip(old, squares, strict=True)]
        trainee.multipliers[self.name] = new
        return [multiplier.square() for multiplier in new]

    @abstractmethod
    def next(self, multiplier: Tensor, square: Tensor) -> Tensor:
        """A condition's next multipliers, from its squared residuals: (n,), (n,) -> (n,)"""


@dataclass(frozen=True)
class SelfAdaptive(Attention):
    """Multipliers m trained by ascent on the loss, by steps of lr * 2 m r^2 / mean r^2, r the residual.

    Dividing by the mean makes ``lr`` the growth at a point of average residual, whatever the equation's units.
    Source: McClenny and Braga-Neto (2023), J. Comput. Phys. 474, 111722.

    Args:
        lr: of the ascent.
        most: where a multiplier stops.
    """

    lr: float = 1e-3
    most: float = 100.0

    def __post_init__(self) -> None:
        if not self.lr > 0:
            raise ValueError(f"SelfAdaptive: lr: expected a positive number, got {self.lr}")
        if not self.most >= 1:
            raise ValueError(f"SelfAdaptive: most: expected at least 1, got {self.most}")

    def next(self, multiplier: Tensor, square: Tensor) -> Tensor:
        share = square / square.mean().clamp(min=1e-300 if square.element_size() == 8 else 1e-37)
        return (multiplier * (1 + 2 * self.lr * share)).clamp(max=self.most)


@dataclass(frozen=True)
class RBA(Attention):
    """Residual-based attention: multipliers m <- decay * m + lr * |r| / max |r|, which stay below lr / (1 - decay).

    Source: Anagnostopoulos, Toscano, Stergiopulos and Karniadakis (2024), Comput. Methods Appl. Mech. Eng. 421, 116805.

    Args:
        lr: what the largest residual adds.
        decay: share of the old multiplier that is kept.
    """

    lr: float = 0.01
    decay: float = 0.999

    def __post_init__(self) -> None:
        if not self.lr > 0:
            raise ValueError(f"RBA: lr: expected a positive number, got {self.lr}")
        if not 0 <= self.decay < 1:
            raise ValueError(f"RBA: decay: expected a number from 0 to below 1, got {self.decay}")

    def next(self, multiplier: Tensor, square: Tensor) -> Tensor:
        size = square.sqrt()
        return self.decay * multiplier + self.lr * size / size.max().clamp(
            min=1e-300 if size.element_size() == 8 else 1e-37
        )

"""Weights that follow time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.conditions import Interior
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.weights.scheme import Scheme


@dataclass(frozen=True)
class Causal(Scheme):
    """Weights that let a moment count once those before it are solved: exp(-epsilon sum of earlier losses).

    Time is cut into equal intervals. Source: Wang, Sankaran and Perdikaris (2024), Comput. Methods Appl. Mech. Eng.
    421, 116813. An automatic epsilon starts such that the least weight is ``least``; whenever all weights are above
    0.99, what it admits is solved, and it grows tenfold.

    Args:
        epsilon: a number, or None for the automatic choice.
        intervals: of time.
        least, growth: the least weight at first, and how often an automatic epsilon may grow.
    """

    epsilon: float | None = None
    intervals: int = 32
    least: float = 0.01
    growth: int = 4

    def __post_init__(self) -> None:
        if self.intervals < 2:
            raise ValueError(f"Causal: intervals: expected at least 2, got {self.intervals}")
        if not 0 < self.least < 1:
            raise ValueError(f"Causal: least: expected a number between 0 and 1, got {self.least}")
        if self.epsilon is not None and not self.epsilon >= 0:
            raise ValueError(f"Causal: epsilon: expected a number not below 0, or None, got {self.epsilon}")

    timed = True

    def factors(self, trainee: Trainee, squares: Sequence[Tensor]) -> list[Any]:
        time = trainee.problem.domain.time
        assert time is not None
        found: list[Any] = [1.0] * len(squares)
        for index, condition in enumerate(trainee.problem.conditions):
            if isinstance(condition, Interior):
                moments = trainee.batches[index]["points"][:, -1].cpu().numpy()
                at = np.minimum((moments - time.start) / (time.stop - time.start) * self.intervals, self.intervals - 1)
                before = self.before(at.astype(int), squares[index].cpu().numpy())
                weights = np.exp(-self.rate(trainee, f"{self.name} {index}", before) * before)[at.astype(int)]
                found[index] = leafgrad.tensor(weights, dtype=trainee.dtype, device=trainee.device)
        return found

    def before(self, at: Array, squares: Array) -> Array:
        """For each interval of time the sum of the mean squares of those before it. (n,), (n,) -> (intervals,)"""
        counts = np.bincount(at, minlength=self.intervals)
        losses = np.bincount(at, squares, self.intervals) / np.maximum(counts, 1)
        return np.concatenate([[0.0], np.cumsum(losses)[:-1]])

    def rate(self, trainee: Trainee, name: str, before: Array) -> float:
        """Epsilon, which the trainee remembers under a name."""
        if self.epsilon is not None:
            return self.epsilon
        notes = trainee.notes
        if name not in notes:
            notes[name] = -math.log(self.least) / max(float(before[-1]), np.finfo(np.float64).tiny)
            notes[f"{name} grown"] = 0
        elif math.exp(-notes[name] * float(before[-1])) > 0.99 and notes[f"{name} grown"] < self.growth:
            notes[name] *= 10
            notes[f"{name} grown"] += 1
        return float(notes[name])

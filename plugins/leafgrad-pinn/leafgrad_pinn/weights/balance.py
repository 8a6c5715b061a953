"""Weights of whole conditions, which make none of them drown the others."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leafgrad import Tensor
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.weights.scheme import Scheme

LARGEST = 2**28  # elements of the Jacobian that `NTK` looks at: 2 GiB in float64


@dataclass(frozen=True)
class Balance(Scheme):
    """Factors of conditions: the sum of their sizes divided by their own, as a running mean.

    Args:
        every: how many times the weights are asked for between two looks at the sizes.
        mean: share of the old factor that is kept at a look.
    """

    every: int = 100
    mean: float = 0.9

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"{self.name}: every: expected at least 1, got {self.every}")
        if not 0 <= self.mean < 1:
            raise ValueError(f"{self.name}: mean: expected a number from 0 to below 1, got {self.mean}")

    def factors(self, trainee: Trainee, squares: Sequence[Tensor]) -> list[Any]:
        asked = trainee.notes.get(f"{self.name} asked", 0)
        trainee.notes[f"{self.name} asked"] = asked + 1
        old = trainee.notes.get(self.name)
        if old is None or asked % self.every == 0:
            sizes = self.sizes(trainee)
            new = [math.fsum(sizes) / size if size > 0 and math.isfinite(size) else 1.0 for size in sizes]
            old = new if old is None else [self.mean * a + (1 - self.mean) * b for a, b in zip(old, new, strict=True)]
            trainee.notes[self.name] = old
        return list(old)

    @abstractmethod
    def sizes(self, trainee: Trainee) -> list[float]:
        """What is to be made equal, for each condition."""


@dataclass(frozen=True)
class GradNorm(Balance):
    """Factors that make the gradients of all conditions' terms equally long.

    Source: Wang, Sankaran, Wang and Perdikaris (2023), "An expert's guide to training physics-informed neural
    networks", arXiv 2308.08468.
    """

    def sizes(self, trainee: Trainee) -> list[float]:
        norms: list[float] = trainee.objective.norms(trainee.flat, trainee.batches, trainee.ones()).tolist()
        return norms


@dataclass(frozen=True)
class NTK(Balance):
    """Factors that make the traces of all conditions' neural tangent kernels equal, each a mean over points.

    Source: Wang, Yu and Perdikaris (2022), "When and why PINNs fail to train", J. Comput. Phys. 449, 110768.
    """

    def check(self, trainee: Trainee) -> None:
        rows = max(len(batch["points"]) for batch in trainee.batches)
        if rows * trainee.objective.size > LARGEST:
            raise ValueError(
                f"NTK: the Jacobian has {rows} rows and {trainee.objective.size} columns: expected at most {LARGEST} "
                "elements; take GradNorm, fewer points or a smaller network"
            )

    def sizes(self, trainee: Trainee) -> list[float]:
        traces: list[float] = trainee.objective.traces(trainee.flat, trainee.batches, trainee.weights).tolist()
        return traces

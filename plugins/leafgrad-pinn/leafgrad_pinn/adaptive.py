"""New points and weights while a stage runs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.conditions import Batch, Interior
from leafgrad_pinn.problem import on_device
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.trainee import Trainee


@dataclass(frozen=True)
class Redraw(ABC):
    """New points every so many steps.

    Args:
        every: how many steps lie between two draws.
    """

    every: int = 100

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"{type(self).__name__}: every: expected at least 1, got {self.every}")

    def at(self, step: int, trainee: Trainee, stage: int) -> bool:
        """Draw if it is time; returns whether it was. The random numbers follow from seed, stage and step."""
        if step % self.every:
            return False
        rng = np.random.default_rng([trainee.seed, 3, stage, step])
        trainee.take(on_device(self.draw(trainee, rng), trainee.dtype, trainee.device))
        return True

    @abstractmethod
    def draw(self, trainee: Trainee, rng: np.random.Generator) -> list[Batch]:
        """New points for each condition, as many as before."""


@dataclass(frozen=True)
class Fresh(Redraw):
    """Points drawn anew, as at first."""

    def draw(self, trainee: Trainee, rng: np.random.Generator) -> list[Batch]:
        return trainee.problem.draw(rng)


@dataclass(frozen=True)
class RAD(Redraw):
    """Points inside drawn more densely where the residual r is large, with probability ~ |r|^k / mean |r|^k + c.

    Source: Wu, Zhu, Tan, Kartha and Lu (2023), Comput. Methods Appl. Mech. Eng. 403, 115671.

    Args:
        n: how many points each `Interior` gets; as many as it has by default.
        every: steps between two draws.
        k, c: see above.
        pool: from how many times n candidates.
    """

    n: int | None = None
    every: int = 300
    k: float = 1.0
    c: float = 1.0
    pool: int = 10

    def __init__(
        self, n: int | None = None, every: int = 300, *, k: float = 1.0, c: float = 1.0, pool: int = 10
    ) -> None:
        for name, value in {"n": n, "every": every, "k": k, "c": c, "pool": pool}.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def draw(self, trainee: Trainee, rng: np.random.Generator) -> list[Batch]:
        batches = trainee.problem.draw(rng)
        for index, condition in enumerate(trainee.problem.conditions):
            if isinstance(condition, Interior):
                n = condition.n if self.n is None else self.n
                points = trainee.problem.domain.interior(self.pool * n, "uniform", rng)
                batches[index] = {"points": points[self.choose(trainee, index, points, n, rng)]}
        return batches

    def choose(self, trainee: Trainee, index: int, points: Array, n: int, rng: np.random.Generator) -> Array:
        """The indices of n of the candidates."""
        sizes = []
        for part in np.array_split(points, max(1, len(points) // 4096)):
            (batch,) = on_device([{"points": part}], trainee.dtype, trainee.device)
            residuals = trainee.residuals(index, batch).detach()
            sizes.append(residuals.square().sum(1).sqrt().cpu().numpy().astype(np.float64))
        size = np.concatenate(sizes) ** self.k
        if not np.isfinite(size).all():
            return rng.choice(len(points), n, replace=False)  # the next step finds the nan, and names it
        density = size / max(size.mean(), np.finfo(np.float64).tiny) + self.c
        return rng.choice(len(points), n, replace=False, p=density / density.sum())


@dataclass(frozen=True)
class Causal:
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

    def check(self, trainee: Trainee) -> None:
        """ValueError if the domain has no time."""
        if trainee.problem.domain.time is None:
            raise ValueError("Causal: the domain has no time")

    def update(self, trainee: Trainee, squares: list[Tensor]) -> None:
        """Set the weights of the points of `Interior` conditions, from their squared residuals (n,)."""
        time = trainee.problem.domain.time
        assert time is not None
        for index, condition in enumerate(trainee.problem.conditions):
            if isinstance(condition, Interior):
                moments = trainee.batches[index]["points"][:, -1].cpu().numpy()
                at = np.minimum((moments - time.start) / (time.stop - time.start) * self.intervals, self.intervals - 1)
                before = self.before(at.astype(int), squares[index].cpu().numpy())
                weights = np.exp(-self.rate(trainee, f"epsilon {index}", before) * before)[at.astype(int)]
                trainee.weights[index] = leafgrad.tensor(weights, dtype=trainee.dtype, device=trainee.device)

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
        return notes[name]

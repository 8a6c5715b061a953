"""New points while a stage runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from leafgrad_pinn.conditions import Batch, Interior
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.system import on_device
from leafgrad_pinn.trainee import Trainee

CHUNK = 4096  # points whose residuals are computed at once


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

    def renew(self, trainee: Trainee, stage: int, step: int) -> None:
        """Give the trainee new points. The random numbers follow from seed, stage and step."""
        rng = np.random.default_rng([trainee.seed, 3, stage, step])
        trainee.take(on_device(self.draw(trainee, rng), trainee.dtype, trainee.device))

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n is not None and self.n < 1:
            raise ValueError(f"RAD: n: expected at least 1, got {self.n}")
        if self.pool < 1 or self.k < 0 or self.c < 0 or self.k == self.c == 0:
            raise ValueError(
                f"RAD: expected pool at least 1, k and c not negative and not both 0, "
                f"got {self.pool}, {self.k}, {self.c}"
            )

    def draw(self, trainee: Trainee, rng: np.random.Generator) -> list[Batch]:
        batches = trainee.problem.draw(rng)
        for index, condition in enumerate(trainee.problem.conditions):
            if isinstance(condition, Interior) and condition.own is None:
                n = condition.n if self.n is None else self.n
                points = condition.region(trainee.problem.domain).interior(self.pool * n, "uniform", rng)
                candidates = trainee.problem.domain.given(condition.at(points, rng), rng)
                chosen = self.choose(sizes(trainee, index, candidates), n, rng)
                batches[index] = {name: rows[chosen] for name, rows in candidates.items()}
        return batches

    def choose(self, size: Array, n: int, rng: np.random.Generator) -> Array:
        """The indices of n candidates, whose residuals have these sizes."""
        size = size**self.k
        if not np.isfinite(size).all():
            return rng.choice(len(size), n, replace=False)  # the next step finds the nan, and names it
        density = size / max(size.mean(), np.finfo(np.float64).tiny) + self.c
        if np.count_nonzero(density) < n:
            return rng.choice(len(size), n, replace=False)
        return rng.choice(len(size), n, replace=False, p=density / density.sum())


@dataclass(frozen=True)
class R3(Redraw):
    """Points inside that stay where the residual is above its mean; the others are drawn anew, uniformly.

    Source: Daw, Bu, Wang, Perdikaris and Karpatne (2023), "Mitigating propagation failures in PINNs using
    retain-resample-release sampling", ICML.
    """

    def draw(self, trainee: Trainee, rng: np.random.Generator) -> list[Batch]:
        batches = trainee.problem.draw(rng)
        for index, condition in enumerate(trainee.problem.conditions):
            if isinstance(condition, Interior) and condition.own is None:
                old = {key: t.cpu().numpy().astype(np.float64) for key, t in trainee.batches[index].items()}
                points, given = old["points"], {f.key: old[f.key] for f in trainee.problem.domain.functions}
                size = sizes(trainee, index, condition.at(points, rng) | given)
                fresh = condition.region(trainee.problem.domain).interior(len(points), "uniform", rng)
                kept = size > size.mean()  # nothing, where a nan is
                batch = trainee.problem.domain.given(condition.at(np.where(kept[:, None], points, fresh), rng), rng)
                batches[index] = batch | {key: np.where(kept[:, None], old[key], batch[key]) for key in given}
        return batches


def sizes(trainee: Trainee, index: int, batch: Batch) -> Array:
    """The norm of a condition's residuals at a batch of points: (n,)."""
    found, n = [], len(batch["points"])
    for begin in range(0, n, CHUNK):
        part = {name: rows[begin : begin + CHUNK] for name, rows in batch.items()}
        (tensors,) = on_device([part], trainee.dtype, trainee.device)
        found.append(trainee.residuals(index, tensors).square().sum(1).sqrt().cpu().numpy().astype(np.float64))
    return np.concatenate(found)

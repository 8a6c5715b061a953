"""Damped linear least squares: min |r + J d|^2 + mu |D d|^2, by factors of J or by products with it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

import leafgrad
from leafgrad import Tensor, linalg
from leafgrad.forks import cached_property
from leafgrad_pinn.objective import Objective
from leafgrad_pinn.trainee import Trainee

SCALE = 1e-2  # of the largest column's norm, added to all: small columns must not make long steps
PROBES = 8  # random vectors that estimate the norms of columns
ACCURACY = 1e-3  # of conjugate gradients: the residual's part that may remain


class Linear(Protocol):
    """Residuals r and their Jacobian J at some parameters.

    Attributes:
        finite: whether all is.
        size: the diagonal of D, (p,).
    """

    finite: bool
    size: Tensor

    def step(self, damping: float) -> Tensor:
        """d (p,), for mu = damping times the largest singular value of J / D, squared."""

    def solve(self, slope: Tensor, damping: float) -> Tensor:
        """The same d for another J^T r, (p,)."""

    def gain(self, step: Tensor) -> float:
        """|r|^2 - |r + J d|^2."""


class DenseJacobian:
    """With the Jacobian at hand: (rows, p + 1), r in the last column."""

    def __init__(self, rows: Tensor) -> None:
        self.finite = bool(rows.isfinite().all())
        if not self.finite:
            return
        triangle = linalg.qr(rows, mode="r")[1]  # keeps the small singular values, which J^T J would lose
        self.triangle, self.right = triangle[:, :-1], triangle[:, -1]
        size = self.triangle.square().sum(0).sqrt()
        self.size = size + SCALE * size.max().clamp(min=1e-150)

    def step(self, damping: float) -> Tensor:
        s, v, turned = self.factors
        return -(v @ (s / (s.square() + damping * s[0] * s[0]) * turned)) / self.size

    def solve(self, slope: Tensor, damping: float) -> Tensor:
        s, v, _ = self.factors
        return -(v @ ((v.mT @ (slope / self.size)) / (s.square() + damping * s[0] * s[0]))) / self.size

    @cached_property
    def factors(self) -> tuple[Tensor, Tensor, Tensor]:
        """J / D = U S V^T: S, V, and U^T r."""
        u, s, vh = linalg.svd(self.triangle / self.size, full_matrices=False)
        return s, vh.mT, u.mT @ self.right

    def gain(self, step: Tensor) -> float:
        moved = self.triangle @ step
        return -float(moved.dot(moved + 2 * self.right))


class MatrixFree:
    """With products alone; D and the largest singular value are estimated by random vectors."""

    def __init__(
        self, trainee: Trainee, objective: Objective, here: Tensor, stage: int, step: int, iterations: int
    ) -> None:
        self.trainee, self.objective, self.here, self.iterations = trainee, objective, here, iterations
        gradient, _, _ = objective.gradient(here, trainee.batches, trainee.weights)
        self.slope = gradient / 2  # J^T r
        self.finite = bool(gradient.isfinite().all())
        if self.finite:
            self._measure(np.random.default_rng([trainee.seed, 4, stage, step]))

    def _measure(self, rng: np.random.Generator) -> None:
        trainee, equations = self.trainee, self.trainee.equations
        total = leafgrad.zeros_like(self.here)
        for _ in range(PROBES):
            signs = [
                leafgrad.tensor(rng.choice([-1.0, 1.0], (len(w), k)), dtype=trainee.dtype, device=trainee.device)
                for w, k in zip(trainee.weights, equations, strict=True)
            ]
            total = total + self.objective.pulled(self.here, trainee.batches, trainee.weights, signs).square()
        size = (total / PROBES).sqrt()
        self.size = size + SCALE * size.max().clamp(min=1e-150)
        v = leafgrad.tensor(rng.standard_normal(len(self.here)), dtype=trainee.dtype, device=trainee.device)
        for _ in range(PROBES):
            v = self.product(v / v.norm().clamp(min=1e-150))
        self.top = float(v.norm())

    def product(self, v: Tensor) -> Tensor:
        """(J / D)^T (J / D) v."""
        trainee = self.trainee
        moved: Tensor = self.objective.product(self.here, trainee.batches, trainee.weights, v / self.size)
        return moved / self.size

    def step(self, damping: float) -> Tensor:
        return self.solve(self.slope, damping)

    def solve(self, slope: Tensor, damping: float) -> Tensor:
        mu = damping * self.top
        x = leafgrad.zeros_like(slope)
        r = -slope / self.size
        d, square = r, float(r.dot(r))
        enough = ACCURACY**2 * square
        for _ in range(self.iterations):
            if not square > enough:
                break
            moved = self.product(d) + mu * d
            length = square / float(d.dot(moved))
            x, r = x + length * d, r - length * moved
            square, before = float(r.dot(r)), square
            d = r + (square / before) * d
        return x / self.size

    def gain(self, step: Tensor) -> float:
        moved = self.product(step * self.size) * self.size
        return -float(step.dot(moved + 2 * self.slope))

"""What all stages train: the system of a seed, its points, and their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad.func import functional_call
from leafgrad_pinn.problem import Problem, Tensors, on_device

Parameters = dict[str, Tensor]


class Trainee:
    """A system, points for each condition, and a weight for each point.

    Attributes:
        system: the networks and unknowns.
        batches: for each condition tensors of its points, (n, d), and what else belongs to them.
        weights: for each condition the weights of its points (n,), 1 at first.
        notes: numbers that weights and points keep between steps.
    """

    def __init__(self, problem: Problem, seed: int, dtype: Any, device: Any) -> None:
        self.problem, self.seed, self.dtype, self.device = problem, seed, dtype, device
        self.system = problem.system(seed, dtype, device)
        self.names = problem.names
        self.scales = [condition.weight for condition in problem.conditions]
        self.notes: dict[str, float] = {}
        self.take(on_device(problem.draw(np.random.default_rng([seed, 2])), dtype, device))

    def take(self, batches: list[Tensors]) -> None:
        """Go on with other points, of weight 1."""
        self.batches = batches
        self.weights = [leafgrad.ones(len(batch["points"]), dtype=self.dtype, device=self.device) for batch in batches]

    def losses(
        self, batches: Sequence[Tensors], weights: Sequence[Tensor], parameters: Parameters | None = None
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The loss, its terms (one for each condition), and each condition's squared residuals (n,) without weights.

        A term is its condition's weight times the mean over points of weight times squared residual.

        Args:
            parameters: in place of the system's own.
        """
        terms, squares = [], []
        for index, (batch, weight) in enumerate(zip(batches, weights, strict=True)):
            square = self.residuals(index, batch, parameters).square().sum(1)
            squares.append(square.detach())
            terms.append(self.scales[index] * (weight * square).mean())
        stacked = leafgrad.stack(terms)
        return stacked.sum(), stacked.detach(), squares

    def residuals(self, index: int, batch: Tensors, parameters: Parameters | None = None) -> Tensor:
        """Those of a condition at a batch of points: (n, k)."""
        if parameters is None:
            residuals: Tensor = self.system(index, batch)
        else:
            residuals = functional_call(self.system, parameters, (index, batch))
        return residuals

    def state_dict(self) -> dict[str, Any]:
        """Networks, unknowns, points and weights."""
        return {
            "system": self.system.state_dict(),
            "batches": self.batches,
            "weights": self.weights,
            "notes": self.notes,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        self.system.load_state_dict(state["system"])
        self.batches = [{name: t.clone() for name, t in batch.items()} for batch in state["batches"]]
        self.weights, self.notes = [weight.clone() for weight in state["weights"]], dict(state["notes"])

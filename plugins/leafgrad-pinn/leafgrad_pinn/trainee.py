"""What all stages train: the system of a seed, its points, and their weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.marks import alike
from leafgrad_pinn.objective import Objective
from leafgrad_pinn.problem import Problem
from leafgrad_pinn.system import Tensors, on_device

PAYS = 200  # gradients of a small problem that pay for compiling them: 140 where the cache has it, else 300
SMALL = 7e5  # points times weights whose arrays take as long as the calls of Python about them


class Trainee:
    """A system, points for each condition, and a weight for each point.

    Args:
        problem, seed, dtype, device: what is trained.
        before: in a later window of time what was trained in the one before, whose weights this begins with.
        gradients: how many of the loss all stages take together.
        compiles: whether these are compiled; None: where it pays, by their number and sizes alone, so that the same
            problem takes the same steps however fast the machine is.

    Attributes:
        compiles, extent: whether they are, and how much they have to do, in words.
        system: the networks and unknowns.
        objective: the loss as compiled functions.
        linear: the same, of the last layers and the unknowns alone.
        marks: what tells the problem from others, as it is trained.
        batches: for each condition tensors of its points, (n, d), and what else belongs to them.
        weights: for each condition the weights of its points (n,), 1 at first.
        notes: numbers that schemes of weights keep between steps.
        multipliers: for a scheme by name its multipliers of points, forgotten with these.
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        dtype: Any,
        device: Any,
        before: Trainee | None = None,
        gradients: float = math.inf,
        compiles: bool | None = None,
    ) -> None:
        self.problem, self.seed, self.dtype, self.device = problem, seed, dtype, device
        self.system, self.marks = problem.system(seed, dtype, device), problem.marks()
        self.notes: dict[str, Any] = {}
        self.take(on_device(problem.draw(np.random.default_rng([seed, 2])), dtype, device))
        if before is not None:
            self.system.load_state_dict(before.system.state_dict())
        points = sum(max(t.numel() // t.shape[-1] for t in batch.values()) for batch in self.batches)  # with nodes
        count = sum(p.numel() for p in self.system.parameters())
        self.compiles = gradients * (1 + points * count / SMALL) >= PAYS if compiles is None else compiles
        self.extent = f"{gradients:g} gradients at {points} points by {count} parameters take less time as they are"
        scales = [condition.weight for condition in problem.conditions]
        like = (before.objective, before.linear) if before is not None and self.resembles(before) else (None, None)
        self.objective: Objective = Objective(self.system, scales, None, like[0], self.compiles)
        self.linear: Objective = Objective(self.system, scales, is_linear, like[1], self.compiles)

    def resembles(self, other: Trainee) -> bool:
        """Whether the other's programs serve this one too: only numbers differ that these are given."""
        exact = any(ansatz.start for surrogate in self.system.surrogates for ansatz in surrogate.ansatz.values())
        shapes = [[{name: t.shape for name, t in batch.items()} for batch in each.batches] for each in (self, other)]
        exact = exact or any(plan.away for plan in self.problem.plans)  # to what was before
        return not exact and self.problem.names == other.problem.names and shapes[0] == shapes[1]

    def take(self, batches: list[Tensors]) -> None:
        """Go on with other points, of weight 1."""
        self.batches, self.weights = batches, self.ones(batches)
        self.multipliers: dict[str, list[Tensor]] = {}

    def ones(self, batches: list[Tensors] | None = None) -> list[Tensor]:
        """1 for each point of each condition."""
        found = self.batches if batches is None else batches
        return [leafgrad.ones(len(batch["points"]), dtype=self.dtype, device=self.device) for batch in found]

    @property
    def equations(self) -> list[int]:
        """How many residuals each condition has at a point."""
        few = [{name: t[:1] for name, t in batch.items()} for batch in self.batches]
        return [self.residuals(index, batch).shape[1] for index, batch in enumerate(few)]

    @property
    def flat(self) -> Tensor:
        """All parameters as one vector, a copy."""
        return self.objective.flat

    def put(self, flat: Tensor) -> None:
        """Write all parameters."""
        self.objective.put(flat)

    def residuals(self, index: int, batch: Tensors) -> Tensor:
        """Those of a condition at a batch of points: (n, k)."""
        with leafgrad.enable_grad():  # derivatives of fields need it
            found, _ = self.system.residuals(index, batch)
        return found.detach()

    @property
    def changed(self) -> str:
        """Which condition is another now than the one that was trained, in words; "" for none."""
        for name, old, new in zip(self.problem.names, self.marks, self.problem.marks(), strict=True):
            if not alike(old, new):
                return (
                    f"{name} is another equation by now than the one that was solved, for something that it takes from "
                    "around it has changed, as the k of a loop: ask before, or make it its own, as lambda u, k=k: ..."
                )
        return ""

    def state_dict(self) -> dict[str, Any]:
        """Networks, unknowns, points and weights."""
        return {
            "system": self.system.state_dict(),
            "batches": self.batches,
            "weights": self.weights,
            "multipliers": self.multipliers,
            "notes": self.notes,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        self.system.load_state_dict(state["system"])
        self.batches = [{name: t.clone() for name, t in batch.items()} for batch in state["batches"]]
        self.weights, self.notes = [weight.clone() for weight in state["weights"]], dict(state["notes"])
        self.multipliers = {name: [t.clone() for t in kept] for name, kept in state["multipliers"].items()}


def is_linear(name: str) -> bool:
    """Whether fields depend linearly on the parameter of this name, or it is an unknown."""
    multiplied = ".trunk." in name  # by the output of a branch, whose last layer counts instead
    return (".last." in name and not multiplied) or name.startswith("numbers.")

"""Stages that go along the gradient: Adam, Muon, SOAP."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from leafgrad import Tensor, optim
from leafgrad_pinn.stages.soap import SoapOptimizer
from leafgrad_pinn.stages.stage import Stage, Worker, numbers
from leafgrad_pinn.trainee import Trainee


@dataclass(frozen=True)
class FirstOrder(Stage):
    """A stage of steps along the gradient with a learning rate that falls exponentially.

    Args:
        steps: how many.
        lr: the learning rate at first.
        final: what it is multiplied by over all steps.
        weights, points: see `Stage`.
    """

    lr: float = 1e-3
    final: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("lr", "final")

    def start(self, trainee: Trainee, number: int) -> Worker:
        return Descent(self, trainee, number)

    @abstractmethod
    def optimizers(self, parameters: list[Tensor]) -> list[optim.Optimizer]:
        """What makes a step, given each parameter's gradient."""


def matrices(parameters: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The parameters that are matrices with more than one row and column, and the others."""
    found = [p.ndim == 2 and min(p.shape) > 1 for p in parameters]
    return (
        [p for p, matrix in zip(parameters, found, strict=True) if matrix],
        [p for p, matrix in zip(parameters, found, strict=True) if not matrix],
    )


@dataclass(frozen=True)
class Adam(FirstOrder):
    """Adam. Arguments: see `FirstOrder`."""

    def optimizers(self, parameters: list[Tensor]) -> list[optim.Optimizer]:
        return [optim.Adam(parameters, lr=self.lr)]


@dataclass(frozen=True)
class Muon(FirstOrder):
    """Muon for matrices, with steps of the size of Adam's; Adam for the others. Arguments: see `FirstOrder`."""

    def optimizers(self, parameters: list[Tensor]) -> list[optim.Optimizer]:
        large, small = matrices(parameters)
        found: list[optim.Optimizer] = []
        if large:
            found.append(optim.Muon(large, lr=self.lr, weight_decay=0, adjust_lr_fn="match_rms_adamw"))
        if small:
            found.append(optim.Adam(small, lr=self.lr))
        return found


@dataclass(frozen=True)
class SOAP(FirstOrder):
    """SOAP for matrices: Adam in the eigenbasis of Shampoo's preconditioner; Adam for biases and the like.

    Source: Vyas et al. (2024), "SOAP: Improving and stabilizing Shampoo using Adam", arXiv 2409.11321; for PINNs Wang,
    Bhartari, Li and Perdikaris (2025), arXiv 2502.00604.

    Args:
        steps, lr, final, weights, points: see `FirstOrder`.
        every: steps between two looks at the eigenbasis.
    """

    lr: float = 3e-3
    every: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("every")

    def optimizers(self, parameters: list[Tensor]) -> list[optim.Optimizer]:
        large, small = matrices(parameters)
        found: list[optim.Optimizer] = []
        if large:
            found.append(SoapOptimizer(large, lr=self.lr, every=self.every))
        if small:
            found.append(optim.Adam(small, lr=self.lr, betas=(0.95, 0.95)))
        return found


class Descent(Worker):
    """Runs a stage of the first order."""

    look = 200

    def __init__(self, stage: FirstOrder, trainee: Trainee, number: int) -> None:
        super().__init__(stage, trainee, number)
        self.stage = stage
        self.parameters: list[Tensor] = list(trainee.system.parameters())
        self.optimizers = stage.optimizers(self.parameters)

    def advance(self) -> list[float]:
        stage, trainee = self.stage, self.trainee
        self.prepare()
        gradient, terms, squares = self.evaluate()
        for p, part in zip(self.parameters, gradient.split(trainee.objective.sizes), strict=True):
            p.grad = part.reshape(p.shape)
        for optimizer in self.optimizers:
            optimizer.param_groups[0]["lr"] = stage.lr * stage.final ** (self.done / stage.steps)
            optimizer.step()
        self.done += 1
        self.follow(squares)
        self.finish()
        if self.reason is not None or (self.calls + 1) % self.look == 0:  # what is kept must have a loss
            _, terms, _ = self.evaluate()
        return numbers(terms)

    def evaluate(self) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The gradient, the terms and the squared residuals here."""
        trainee = self.trainee
        found: tuple[Tensor, Tensor, list[Tensor]] = trainee.objective.gradient(
            trainee.flat, trainee.batches, trainee.weights
        )
        return found

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "optimizers": [optimizer.state_dict() for optimizer in self.optimizers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)

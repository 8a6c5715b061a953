"""Stages of a training: how, and how long. Each is run by a worker, which has the state."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import leafgrad
from leafgrad import Tensor, optim
from leafgrad_pinn.adaptive import Causal, Redraw
from leafgrad_pinn.trainee import Trainee


class Worker(ABC):
    """Runs a stage, some steps at a time.

    Attributes:
        done: how many steps are done.
        calls: how often ``advance`` was called.
        look: calls between two checkpoints and looks at the error.
        reason: why it stopped, in words; None while it goes on.
    """

    done = 0
    calls = 0
    look = 10
    reason: str | None = None

    @abstractmethod
    def advance(self) -> list[float]:
        """Do some steps; returns the terms of the loss, at the first or after the last of them."""

    def state_dict(self) -> dict[str, Any]:
        """What a worker that goes on from here needs, besides the trainee."""
        return {"done": self.done, "calls": self.calls, "reason": self.reason}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self.done, self.calls, self.reason = state["done"], state["calls"], state["reason"]


@dataclass(frozen=True)
class Stage(ABC):
    """A part of a training.

    Args:
        steps: how many at most.
    """

    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"{type(self).__name__}: steps: expected at least 1, got {self.steps}")

    @abstractmethod
    def start(self, trainee: Trainee, number: int) -> Worker:
        """A worker, for the stage of that number in the training."""


@dataclass(frozen=True)
class Adam(Stage):
    """Adam with a learning rate that falls exponentially.

    Args:
        steps: how many.
        lr: the learning rate at first.
        final: what it is multiplied by over all steps.
        weights: ``Causal(...)`` for weights of points that follow time.
        points: ``Fresh(...)`` or ``RAD(...)`` for new points now and then.
    """

    lr: float = 1e-3
    final: float = 0.05
    weights: Causal | None = None
    points: Redraw | None = None

    def start(self, trainee: Trainee, number: int) -> Worker:
        return AdamWorker(self, trainee, number)


class AdamWorker(Worker):
    look = 200

    def __init__(self, stage: Adam, trainee: Trainee, number: int) -> None:
        self.stage, self.trainee, self.number = stage, trainee, number
        parameters = list(trainee.system.parameters())
        optimizer = self.optimizer = optim.Adam(parameters, lr=stage.lr)
        if stage.weights:
            stage.weights.check(trainee)

        @leafgrad.compile
        def step(batches: Any, weights: Any) -> tuple[Tensor, list[Tensor]]:
            optimizer.zero_grad()
            loss, terms, squares = trainee.losses(batches, weights)
            loss.backward(inputs=parameters)
            optimizer.step()
            return terms, squares

        self.step = step

    def advance(self) -> list[float]:
        stage, trainee = self.stage, self.trainee
        if stage.points:
            stage.points.at(self.done, trainee, self.number)
        self.optimizer.param_groups[0]["lr"] = stage.lr * stage.final ** (self.done / stage.steps)
        terms, squares = self.step(trainee.batches, trainee.weights)
        if stage.weights:
            stage.weights.update(trainee, squares)
        self.done += 1
        if self.done == stage.steps:
            self.reason = f"all {stage.steps} steps are done"
        return [float(term) for term in terms.tolist()]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.optimizer.load_state_dict(state["optimizer"])


WORDS = {
    "tolerance_grad": "the gradient is zero",
    "tolerance_change": "the line search finds no lower loss: rounding, or a minimum",
}


@dataclass(frozen=True)
class LBFGS(Stage):
    """L-BFGS with a strong Wolfe line search.

    Args:
        steps: how many iterations.
        history: how many changes of the gradient are remembered.
        points: ``Fresh(...)`` or ``RAD(...)`` for new points now and then; the history then begins anew.
        block: iterations between two looks at the terms.
    """

    history: int = 100
    points: Redraw | None = None
    block: int = 25

    def start(self, trainee: Trainee, number: int) -> Worker:
        return LBFGSWorker(self, trainee, number)


class LBFGSWorker(Worker):
    def __init__(self, stage: LBFGS, trainee: Trainee, number: int) -> None:
        self.stage, self.trainee, self.number = stage, trainee, number
        parameters = self.parameters = list(trainee.system.parameters())
        self.optimizer = self.make()
        self.drawn = 0

        @leafgrad.compile
        def evaluate(batches: Any, weights: Any) -> tuple[Tensor, Tensor]:
            for parameter in parameters:
                parameter.grad = None
            loss, terms, _ = trainee.losses(batches, weights)
            loss.backward(inputs=parameters)
            return loss.detach(), terms

        self.evaluate = evaluate

    def make(self) -> optim.LBFGS:
        return optim.LBFGS(
            self.parameters,
            max_iter=self.stage.block,
            max_eval=4 * self.stage.block,
            tolerance_grad=0,
            tolerance_change=0,
            history_size=self.stage.history,
            line_search_fn="strong_wolfe",
        )

    def advance(self) -> list[float]:
        stage, trainee = self.stage, self.trainee
        if stage.points and stage.points.at(self.done, trainee, self.number):
            self.optimizer = self.make()
        batches, weights = trainee.batches, trainee.weights
        state = self.optimizer.state[self.parameters[0]]
        before = state.get("n_iter", 0)
        self.optimizer.param_groups[0]["max_iter"] = min(stage.block, stage.steps - self.done)
        first = self.optimizer.step(lambda: self.evaluate(batches, weights)[0])
        last, terms = self.evaluate(batches, weights)
        self.done += max(1, state["n_iter"] - before)
        if state["stop_reason"] in WORDS:
            self.reason = f"{WORDS[state['stop_reason']]}, after {self.done} iterations"
        elif not float(last) < float(first) and math.isfinite(float(last)):
            self.reason = f"{WORDS['tolerance_change']}, after {self.done} iterations"
        elif self.done >= stage.steps:
            self.reason = f"all {stage.steps} iterations are done"
        return [float(term) for term in terms.tolist()]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.optimizer.load_state_dict(state["optimizer"])

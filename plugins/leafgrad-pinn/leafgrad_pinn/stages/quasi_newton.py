"""Stages that learn the curvature from gradients: L-BFGS and self-scaled Broyden."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import leafgrad
from leafgrad import Tensor, optim
from leafgrad.optim.line_search import Point, strong_wolfe
from leafgrad_pinn.objective import program
from leafgrad_pinn.stages.stage import Stage, Worker, numbers
from leafgrad_pinn.trainee import Trainee

LARGEST = 2**27  # elements of an inverse Hessian: 1 GiB in float64
TRIALS = 25  # evaluations in one line search
NO_LOWER = "the line search finds no lower loss: rounding, or a minimum"


@dataclass(frozen=True)
class LBFGS(Stage):
    """L-BFGS with a strong Wolfe line search. New points or weights begin its history anew.

    Args:
        steps: how many iterations.
        weights, points: see `Stage`.
        history: how many changes of the gradient are remembered.
        block: iterations between two looks at the terms.
        hold: iterations for which weights stay as they are.
    """

    history: int = 100
    block: int = 25
    hold: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("history", "block", "hold")

    def start(self, trainee: Trainee, number: int) -> Worker:
        return LBFGSWorker(self, trainee, number)


class LBFGSWorker(Worker):
    def __init__(self, stage: LBFGS, trainee: Trainee, number: int) -> None:
        super().__init__(stage, trainee, number)
        self.stage, self.hold = stage, stage.hold
        self.place = trainee.flat.requires_grad_()
        self.optimizer = self.make()

    def make(self) -> optim.LBFGS:
        return optim.LBFGS(
            [self.place],
            max_iter=self.stage.block,
            max_eval=4 * self.stage.block,
            tolerance_grad=0,
            tolerance_change=0,
            history_size=self.stage.history,
            line_search_fn="strong_wolfe",
        )

    def advance(self) -> list[float]:
        stage, trainee, place = self.stage, self.trainee, self.place
        if self.prepare():
            self.optimizer = self.make()
        batches, weights = trainee.batches, trainee.weights

        def evaluate() -> Tensor:
            gradient, terms, _ = trainee.objective.gradient(place.detach(), batches, weights)
            place.grad = gradient
            loss: Tensor = terms.sum()
            return loss

        with leafgrad.no_grad():
            place.copy_(trainee.flat)
        state = self.optimizer.state[place]
        before = state.get("n_iter", 0)
        self.optimizer.param_groups[0]["max_iter"] = min(stage.block, stage.steps - self.done)
        first = float(self.optimizer.step(evaluate))
        _, terms, squares = trainee.objective.gradient(place.detach(), batches, weights)
        last = float(terms.sum())
        trainee.put(place.detach())
        self.done += max(1, state["n_iter"] - before)
        if state["stop_reason"] == "tolerance_grad":
            self.reason = f"the gradient is zero, after {self.done} iterations"
        elif state["stop_reason"] == "tolerance_change" or (not last < first and math.isfinite(last)):
            self.reason = f"{NO_LOWER}, after {self.done} iterations"
        else:
            self.finish("iterations")
        if self.follow(squares):
            self.optimizer = self.make()
        return numbers(terms)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.optimizer = self.make()
        self.optimizer.load_state_dict(state["optimizer"])


@dataclass(frozen=True)
class SSBroyden(Stage):
    """The self-scaled Broyden method with a strong Wolfe line search. Its inverse Hessian is p^2 numbers for p weights.

    It brings networks for differential equations further than other quasi-Newton methods. New points and weights
    leave the inverse Hessian as it is. For float64 and some thousand weights.

    Source: Al-Baali and Khalfan (2005), Optim. Methods Softw. 20; Urban, Stefanou and Pons (2025), "Unveiling the
    optimization process of physics informed neural networks", J. Comput. Phys. 523, 113656, formulas 13 to 23.

    Args:
        steps: how many iterations.
        weights, points: see `Stage`.
        hold: iterations for which weights stay as they are.
    """

    gradients = 2  # with the update of the inverse Hessian
    hold: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("hold")

    def start(self, trainee: Trainee, number: int) -> Worker:
        return SSBroydenWorker(self, trainee, number)


class SSBroydenWorker(Worker):
    look = 100

    def __init__(self, stage: SSBroyden, trainee: Trainee, number: int) -> None:
        super().__init__(stage, trainee, number)
        size = trainee.objective.size
        if size * size > LARGEST:
            raise ValueError(
                f"SSBroyden: the inverse Hessian has {size} rows and columns: expected at most {LARGEST} elements; "
                "take a smaller network, or LBFGS"
            )
        self.hold = stage.hold
        self.inverse = leafgrad.eye(size, dtype=trainee.dtype, device=trainee.device)
        self.scaled = False  # whether the inverse Hessian has seen a step
        self.gradient: Tensor | None = None
        self.terms: Tensor | None = None
        self.update = program(broyden, trainee.compiles)

    def advance(self) -> list[float]:
        trainee = self.trainee
        if self.prepare() or self.gradient is None or self.terms is None:
            self.gradient, self.terms, _ = self.evaluate(trainee.flat)
        here, g = trainee.flat, self.gradient
        loss = float(self.terms.sum())
        self.done += 1
        if not math.isfinite(loss):
            return numbers(self.terms)
        found = self.search(here, g, loss)
        if found is None and self.scaled:  # the inverse Hessian may be spoilt by rounding
            self.inverse, self.scaled = leafgrad.eye(len(g), dtype=g.dtype, device=g.device), False
            found = self.search(here, g, loss)
        if found is None:
            zero = float(g.abs().max()) == 0
            self.reason = f"{'the gradient is zero' if zero else NO_LOWER}, after {self.done} iterations"
            return numbers(self.terms)
        t, step, there = found
        gradient, terms, squares = self.evaluate(there)
        y = gradient - g
        if not self.scaled:
            self.inverse = self.inverse * (step.dot(y) / y.dot(y))
        curvature = float(step.dot(y))
        if curvature > 0:
            shape = -t * float(step.dot(g)) / curvature if self.scaled else 1.0
            self.inverse = self.update(self.inverse, step, y, leafgrad.tensor(shape, dtype=g.dtype, device=g.device))
            self.scaled = True
        trainee.put(there)
        self.gradient, self.terms = gradient, terms
        self.finish("iterations")
        if self.follow(squares):
            self.gradient = None
        return numbers(terms)

    def evaluate(self, flat: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        found: tuple[Tensor, Tensor, list[Tensor]] = self.trainee.objective.gradient(
            flat, self.trainee.batches, self.trainee.weights
        )
        return found

    def search(self, here: Tensor, g: Tensor, loss: float) -> tuple[float, Tensor, Tensor] | None:
        """A lower point on the line that the inverse Hessian proposes: the step's length, the step, the point."""
        d = -(self.inverse @ g)
        slope, scale = float(d.dot(g)), float(d.abs().max())
        if not slope < 0 or not math.isfinite(slope):
            return None

        def at(t: float) -> Point:
            gradient, terms, _ = self.evaluate(here + d * t)
            return Point(t, float(terms.sum()), gradient, float(gradient.dot(d)))

        first = 1.0 if self.scaled else min(1.0, 1.0 / float(g.abs().sum()))
        start = Point(0.0, loss, g, slope)
        found, _ = strong_wolfe(at, start, first, scale, tolerance_change=1e-16, max_evaluations=TRIALS)
        if not found.loss < loss:
            return None
        return found.t, d * found.t, here + d * found.t

    def state_dict(self) -> dict[str, Any]:
        own = ("inverse", "scaled", "gradient", "terms")
        return {**super().state_dict(), **{name: getattr(self, name) for name in own}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        for name in ("inverse", "scaled", "gradient", "terms"):
            setattr(self, name, state[name])


def broyden(inverse: Tensor, step: Tensor, change: Tensor, shape: Tensor) -> Tensor:
    """The next inverse Hessian (n, n).

    Args:
        inverse: H, (n, n).
        step: s, (n,).
        change: y, what it changed the gradient by, (n,), with y.s > 0.
        shape: b = s.B s / y.s, with B the inverse of H: a number.
    """
    n = len(step)
    b, hy, ys = shape, inverse @ change, change.dot(step)
    yhy = change.dot(hy)
    h = yhy / ys
    a = (h * b - 1).clamp(min=1e-12)  # positive, but for rounding
    below = (h * (1 - (a / (1 + a)).sqrt())).clamp(max=1)
    theta = leafgrad.maximum((below - 1) / a, leafgrad.minimum(1 / below, (1 - b) / b))
    sigma = 1 + a * theta
    phi = (1 - theta) / sigma
    tau, power = (1 / b).clamp(max=1), sigma ** (-1 / max(n - 1, 1))
    positive = tau * leafgrad.minimum(power, 1 / theta.clamp(min=1e-30))
    tau = leafgrad.where(theta > 0, positive, leafgrad.minimum(tau * power, sigma))
    v = step / ys - hy / yhy
    u = hy / yhy.sqrt()
    w = step / ys.sqrt()
    core = inverse - u[:, None] * u[None, :] + (phi * yhy) * (v[:, None] * v[None, :])
    return core / tau + w[:, None] * w[None, :]

"""Stages that linearise all residuals: Gauss-Newton and Levenberg-Marquardt."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.objective import Objective
from leafgrad_pinn.stages.linear import DenseJacobian, Linear, MatrixFree
from leafgrad_pinn.stages.stage import Stage, Worker, numbers
from leafgrad_pinn.trainee import Trainee

LARGEST = 2**28  # elements of a Jacobian: 2 GiB in float64
COLUMNS = 2500  # from which on a step by conjugate gradients is cheaper than one by factorisation
CURVED = 0.75  # of a step's length, the longest change of its course that is trusted
FACTORS = (0.01, 0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e6, 1e8)
SOLVERS = ("auto", "dense", "cg")


@dataclass(frozen=True)
class GaussNewton(Stage):
    """Steps d that minimise |r + J d|^2 + mu |D d|^2, r the residuals at all points, J their Jacobian by parameters.

    For squared residuals this is the energy natural gradient (Mueller and Zeinhofer 2023, arXiv 2302.13163) with mu in
    the place of its cut-off of singular values; D has the norms of J's columns, small ones raised. Each step tries
    smaller mu first, and takes the one that lowers the loss most. For float64. What an equation detaches is missing in
    J, but changes with a step: such steps end far from a minimum.

    Args:
        steps: how many.
        weights, points: see `Stage`.
        damping: mu at first, in units of the largest singular value of J / D, squared.
        tolerance: stop when ten steps lower the loss by less than this part of it.
        solver: ``"dense"``: J has a row for each residual and a column for each parameter, and a step costs
            O(rows columns^2); ``"cg"``: conjugate gradients on products with J and its transpose, which never exists;
            ``"auto"``: by size, said in the log.
        iterations: of conjugate gradients in one step, at most.
    """

    gradients = 3
    damping: float = 1e-3
    tolerance: float = 1e-3
    solver: str = "auto"
    iterations: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("damping", "iterations")
        if self.solver not in SOLVERS:
            raise ValueError(
                f"{type(self).__name__}: solver: expected one of {', '.join(SOLVERS)}, got {self.solver!r}"
            )
        if not self.tolerance >= 0:
            raise ValueError(f"{type(self).__name__}: tolerance: expected at least 0, got {self.tolerance}")

    def start(self, trainee: Trainee, number: int) -> Worker:
        return GaussNewtonWorker(self, trainee, number)


@dataclass(frozen=True)
class LevenbergMarquardt(GaussNewton):
    """The Levenberg-Marquardt method with geodesic acceleration: as `GaussNewton`, with one mu at a step.

    mu falls after a step that lowers the loss as the linear model says, and grows after one that does not, by
    Nielsen's rule. A step follows the valley of the loss, which is narrow and bends: to d it adds a / 2, where a
    minimises |r'' + J a|^2 + mu |D a|^2, r'' being the residuals' second derivative along d. Without a, mu would have
    to stay so large that steps are short.

    Source: Marquardt (1963), J. Soc. Indust. Appl. Math. 11; Madsen, Nielsen and Tingleff (2004), "Methods for
    non-linear least squares problems", algorithm 3.16; Transtrum and Sethna (2012), "Improvements to the
    Levenberg-Marquardt algorithm for nonlinear least-squares minimization", arXiv 1201.5885. Arguments: see
    `GaussNewton`.
    """

    def start(self, trainee: Trainee, number: int) -> Worker:
        return LevenbergMarquardtWorker(self, trainee, number)


@dataclass(frozen=True)
class LeastSquares(GaussNewton):
    """Gauss-Newton steps over the last layers and the unknowns alone; all other weights stay as they are.

    Linear equations are solved in about one step, up to what the features of the layers before can express: take one
    wide layer, ``SIREN(300, 1, frequency=...)``. Others need some steps, as in Newton's method.

    Source: Dwivedi and Srinivasan (2020), "Physics informed extreme learning machine", Neurocomputing 391, 96.
    Arguments: see `GaussNewton`; the damping is small at first, for the equations are nearly linear, and each
    step begins with no more.
    """

    damping: float = 1e-12

    def start(self, trainee: Trainee, number: int) -> Worker:
        return LeastSquaresWorker(self, trainee, number)


class Linearising(Worker):
    """Linearises, steps, and stops where no damping helps or little is gained."""

    def __init__(self, stage: GaussNewton, trainee: Trainee, number: int) -> None:
        super().__init__(stage, trainee, number)
        if least := [c.name for c in trainee.problem.conditions if c.minimised]:
            raise ValueError(
                f"{type(stage).__name__}: expected conditions whose residuals shall be zero, got {least[0]}, which is "
                "to be least; take SSBroyden or LBFGS"
            )
        self.stage = stage
        self.damping, self.losses = stage.damping, list[float]()
        self.objective = self.objective_of(trainee)
        columns, rows = self.objective.size, sum(len(batch["points"]) for batch in trainee.batches)
        self.dense = stage.solver == "dense" or (
            stage.solver == "auto" and rows * columns <= LARGEST and columns <= COLUMNS
        )
        if self.dense and rows * columns > LARGEST:
            raise ValueError(
                f"{type(stage).__name__}: the Jacobian has {rows} rows (points) and {columns} columns (parameters): "
                f"expected at most {LARGEST} elements; take fewer points, a smaller network, or solver='cg'"
            )
        how = "factorised" if self.dense else "by conjugate gradients"
        self.method = f"{rows} points and {columns} parameters: {how}"

    def objective_of(self, trainee: Trainee) -> Objective:
        """The loss as a function of what is solved for."""
        return trainee.objective

    def advance(self) -> list[float]:
        trainee = self.trainee
        if self.prepare():
            self.losses = []
        here = self.objective.flat
        before, _ = self.objective.terms(here, trainee.batches, trainee.weights)
        self.done += 1
        model: Linear
        if self.dense:
            model = DenseJacobian(self.objective.rows(here, trainee.batches, trainee.weights))
        else:
            model = MatrixFree(trainee, self.objective, here, self.number, self.done, self.stage.iterations)
        if not model.finite:
            return numbers(before * float("nan"))
        found = self.improve(here, model, float(before.sum()))
        if found is None:
            self.reason = (
                f"no damping lowers the loss: rounding, a minimum, or a part of an equation that is detached, "
                f"after {self.done} steps"
            )
            return numbers(before)
        there, after, squares = found
        self.objective.put(there)
        self.losses = [*self.losses[-10:], float(after.sum())]
        tolerance = self.stage.tolerance
        if len(self.losses) == 11 and self.losses[-1] > (1 - tolerance) * self.losses[0]:
            self.reason = f"ten steps lowered the loss by less than {tolerance:g} of it, after {self.done} steps"
        else:
            self.finish()
        if self.follow(squares):
            self.losses = []
        return numbers(after)

    @abstractmethod
    def improve(self, here: Tensor, model: Linear, loss: float) -> tuple[Tensor, Tensor, Sequence[Tensor]] | None:
        """Parameters that lower the loss, its terms and squares there; None if no damping does."""

    def look_at(self, there: Tensor) -> tuple[float, Tensor, Sequence[Tensor]]:
        """The loss, its terms and squares."""
        terms, squares = self.objective.terms(there, self.trainee.batches, self.trainee.weights)
        return float(terms.sum()), terms, squares

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "damping": self.damping, "losses": self.losses}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.damping, self.losses = state["damping"], list(state["losses"])


class GaussNewtonWorker(Linearising):
    def improve(self, here: Tensor, model: Linear, loss: float) -> tuple[Tensor, Tensor, Sequence[Tensor]] | None:
        best: tuple[float, Tensor, Tensor, Sequence[Tensor]] | None = None
        start = self.damping
        for factor in FACTORS:
            damping = max(start * factor, 1e-30)
            there = here + model.step(damping)
            value, terms, squares = self.look_at(there)
            if value < (loss if best is None else best[0]):
                best, self.damping = (value, there, terms, squares), damping
            elif best is not None:
                break
        return None if best is None else best[1:]


class LeastSquaresWorker(GaussNewtonWorker):
    def objective_of(self, trainee: Trainee) -> Objective:
        return trainee.linear

    def improve(self, here: Tensor, model: Linear, loss: float) -> tuple[Tensor, Tensor, Sequence[Tensor]] | None:
        self.damping = min(self.damping, self.stage.damping)  # what helped far from the solution would hold later steps
        return super().improve(here, model, loss)


class LevenbergMarquardtWorker(Linearising):
    growth = 2.0  # of mu after the next step that fails

    def improve(self, here: Tensor, model: Linear, loss: float) -> tuple[Tensor, Tensor, Sequence[Tensor]] | None:
        while self.damping < 1e12:
            step = model.step(self.damping)
            there = here + step + self.bend(here, model, step)
            value, terms, squares = self.look_at(there)
            promised = model.gain(step)
            if value < loss and promised > 0:
                ratio = (loss - value) / promised
                self.damping = max(self.damping * max(1 / 3, 1 - (2 * ratio - 1) ** 3), 1e-30)
                self.growth = 2.0
                return there, terms, squares
            self.damping *= self.growth
            self.growth *= 2
        return None

    def bend(self, here: Tensor, model: Linear, step: Tensor) -> Tensor:
        """What a step must be changed by to follow the valley; zeros if that is too far to be trusted."""
        slope = self.objective.bend(here, self.trainee.batches, self.trainee.weights, step)
        change = model.solve(slope, self.damping) / 2
        trusted = (2 * change * model.size).norm() <= CURVED * (step * model.size).norm()
        return leafgrad.where(trusted, change, 0)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "growth": self.growth}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.growth = state["growth"]

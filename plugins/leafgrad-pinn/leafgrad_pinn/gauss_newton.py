"""The Gauss-Newton method, damped: energy natural gradients, or Levenberg-Marquardt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import leafgrad
from leafgrad import Tensor, linalg
from leafgrad.func import jacrev, vmap
from leafgrad_pinn.adaptive import Redraw
from leafgrad_pinn.problem import Tensors
from leafgrad_pinn.stages import Stage, Worker
from leafgrad_pinn.trainee import Parameters, Trainee

LARGEST = 2**28  # elements of a Jacobian: 2 GiB in float64
SCALE = 1e-2  # of the largest column's norm, added to all: small columns must not make long steps
FACTORS = (0.01, 0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e6, 1e8)


@dataclass(frozen=True)
class GaussNewton(Stage):
    """Steps d that minimise |r + J d|^2 + mu |D d|^2, r the residuals at all points, J their Jacobian by parameters.

    For squared residuals this is the energy natural gradient (Mueller and Zeinhofer 2023, arXiv 2302.13163) as well as
    the Levenberg-Marquardt method (Marquardt 1963); D has the norms of J's columns, small ones raised. Each step tries
    smaller mu first, and takes the one that lowers the loss most. Dense: J has a row for each residual and a column for
    each parameter, and a step costs O(rows columns^2). For float64.

    Args:
        steps: how many.
        damping: mu at first, in units of the largest singular value of J / D, squared.
        tolerance: stop when ten steps lower the loss by less than this part of it.
        points: ``Fresh(...)`` or ``RAD(...)`` for new points now and then.
    """

    damping: float = 1e-3
    tolerance: float = 1e-3
    points: Redraw | None = None

    def start(self, trainee: Trainee, number: int) -> Worker:
        return GaussNewtonWorker(self, trainee, number)


class GaussNewtonWorker(Worker):
    def __init__(self, stage: GaussNewton, trainee: Trainee, number: int) -> None:
        self.stage, self.trainee, self.number = stage, trainee, number
        self.damping, self.losses = stage.damping, list[float]()
        columns = sum(p.numel() for p in trainee.system.parameters())
        rows = sum(len(batch["points"]) for batch in trainee.batches)
        if rows * columns > LARGEST:
            raise ValueError(
                f"GaussNewton: the Jacobian has {rows} rows (points) and {columns} columns (parameters): expected at "
                f"most {LARGEST} elements; take fewer points, a smaller network, or LBFGS"
            )

        @leafgrad.compile
        def linearise(parameters: Parameters, batches: Any, weights: Any) -> Tensor:
            return rows_of(trainee, parameters, batches, weights)

        @leafgrad.compile
        def terms(parameters: Parameters, batches: Any, weights: Any) -> Tensor:
            return trainee.losses(batches, weights, parameters)[1]

        self.linearise, self.terms = linearise, terms

    def parameters(self) -> Parameters:
        """The system's, detached."""
        return {name: p.detach() for name, p in self.trainee.system.named_parameters()}

    def advance(self) -> list[float]:
        trainee, stage = self.trainee, self.stage
        if stage.points and stage.points.at(self.done, trainee, self.number):
            self.losses = []
        here = self.parameters()
        before = self.terms(here, trainee.batches, trainee.weights)
        loss = float(before.sum())
        self.done += 1
        matrix = self.linearise(here, trainee.batches, trainee.weights)
        if not bool(matrix.isfinite().all()):
            return [float(term) for term in (before * float("nan") if loss == loss else before).tolist()]
        found = self.search(here, matrix, loss)
        if found is None:
            self.reason = f"no damping lowers the loss: rounding, or a minimum, after {self.done} steps"
            return [float(term) for term in before.tolist()]
        there, after = found
        with leafgrad.no_grad():
            for name, p in trainee.system.named_parameters():
                p.copy_(there.get(name, p))
        self.losses = [*self.losses[-10:], float(after.sum())]
        if len(self.losses) == 11 and self.losses[-1] > (1 - stage.tolerance) * self.losses[0]:
            self.reason = f"ten steps lowered the loss by less than {stage.tolerance:g} of it, after {self.done} steps"
        elif self.done >= stage.steps:
            self.reason = f"all {stage.steps} steps are done"
        return [float(term) for term in after.tolist()]

    def search(self, here: Parameters, matrix: Tensor, loss: float) -> tuple[Parameters, Tensor] | None:
        """The parameters that lower the loss, and its terms there; None if no damping does."""
        triangle = linalg.qr(matrix, mode="r")[1]  # keeps the small singular values, which J^T J would lose
        size = triangle[:, :-1].square().sum(0).sqrt()
        size = size + SCALE * size.max()
        u, s, vh = linalg.svd(triangle[:, :-1] / size, full_matrices=False)
        slope, top = u.mT @ triangle[:, -1], float(s[0])
        best: tuple[float, Parameters, Tensor] | None = None
        start = self.damping
        for factor in FACTORS:
            damping = max(start * factor, 1e-30)
            step = -(vh.mT @ (s / (s.square() + damping * top * top) * slope)) / size
            there = moved(here, step)
            terms = self.terms(there, self.trainee.batches, self.trainee.weights)
            value = float(terms.sum())
            if value < (loss if best is None else best[0]):
                best, self.damping = (value, there, terms), damping
            elif best is not None:
                break
        return None if best is None else best[1:]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "damping": self.damping, "losses": self.losses}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.damping, self.losses = state["damping"], list(state["losses"])


def rows_of(trainee: Trainee, parameters: Parameters, batches: list[Tensors], weights: list[Tensor]) -> Tensor:
    """The Jacobian of all weighted residuals, and these as the last column: (rows, columns + 1).

    The sum of the squares of the last column is the loss.
    """
    blocks = []
    for index, (batch, weight) in enumerate(zip(batches, weights, strict=True)):

        def residual(parameters: Parameters, row: Tensors, index: int = index) -> tuple[Tensor, Tensor]:
            values = trainee.residuals(index, {name: t[None] for name, t in row.items()}, parameters)[0]
            return values, values

        jacobian, values = vmap(jacrev(residual, has_aux=True), in_dims=(None, 0))(parameters, batch)
        n, k = values.shape
        columns = [jacobian[name].reshape(n, k, -1) for name in parameters]
        scale = (trainee.scales[index] * weight / n).sqrt()[:, None, None]
        blocks.append((leafgrad.cat([*columns, values[:, :, None]], 2) * scale).reshape(n * k, -1))
    return leafgrad.cat(blocks)


def moved(parameters: Parameters, step: Tensor) -> Parameters:
    """Parameters plus a flat step (columns,)."""
    sizes = [p.numel() for p in parameters.values()]
    parts = step.split(sizes)
    return {name: p + part.reshape(p.shape) for (name, p), part in zip(parameters.items(), parts, strict=True)}

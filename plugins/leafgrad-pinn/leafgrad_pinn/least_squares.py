"""Least squares over what fields depend on linearly: the weights of the last layers, and unknowns."""

from __future__ import annotations

from dataclasses import dataclass

from leafgrad_pinn.gauss_newton import GaussNewton, GaussNewtonWorker
from leafgrad_pinn.stages import Worker
from leafgrad_pinn.trainee import Parameters, Trainee


@dataclass(frozen=True)
class LeastSquares(GaussNewton):
    """Gauss-Newton steps over the last layers and the unknowns alone; all other weights stay as they are.

    Linear equations are solved in about one step, up to what the features of the layers before can express: take one
    wide layer, ``SIREN(300, 1, frequency=...)``. Others need some steps, as in Newton's method.

    Source: Dwivedi and Srinivasan (2020), "Physics informed extreme learning machine", Neurocomputing 391, 96.

    Args:
        steps, damping, tolerance, points: see `GaussNewton`; the damping is small at first, for the equations are
            nearly linear.
    """

    damping: float = 1e-12

    def start(self, trainee: Trainee, number: int) -> Worker:
        return LeastSquaresWorker(self, trainee, number)


class LeastSquaresWorker(GaussNewtonWorker):
    def parameters(self) -> Parameters:
        """Those of last layers and unknowns, detached."""
        return {name: p for name, p in super().parameters().items() if ".last." in name or name.startswith("numbers.")}

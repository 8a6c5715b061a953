"""Stages of a training: how, and how long."""

from leafgrad_pinn.stages.first_order import SOAP, Adam, Muon
from leafgrad_pinn.stages.gauss_newton import GaussNewton, LeastSquares, LevenbergMarquardt
from leafgrad_pinn.stages.quasi_newton import LBFGS, SSBroyden
from leafgrad_pinn.stages.stage import Stage, Worker

__all__ = [
    "LBFGS",
    "SOAP",
    "Adam",
    "GaussNewton",
    "LeastSquares",
    "LevenbergMarquardt",
    "Muon",
    "SSBroyden",
    "Stage",
    "Worker",
]

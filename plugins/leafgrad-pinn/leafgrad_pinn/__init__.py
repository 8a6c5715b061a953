"""Differential equations by physics-informed networks: write the equation, get the answer, its error, and a picture."""

from __future__ import annotations

from leafgrad.plugins import CommandSpec, hookimpl
from leafgrad_pinn import references
from leafgrad_pinn.complex import ComplexField
from leafgrad_pinn.conditions import Boundary, Dirichlet, Initial, Interior, Neumann, Robin, Wrap
from leafgrad_pinn.domains import Domain, Time
from leafgrad_pinn.fields import Derivative, Field, Hard, fields
from leafgrad_pinn.implicit import SignedDistance
from leafgrad_pinn.layers import Even, Factorised, Fourier, Periodic
from leafgrad_pinn.networks import MLP, SIREN, ModifiedMLP, PirateNet
from leafgrad_pinn.observations import At, Data
from leafgrad_pinn.points import R3, RAD, Fresh
from leafgrad_pinn.polygons import LShape, Polygon
from leafgrad_pinn.problem import Problem
from leafgrad_pinn.references import Reference
from leafgrad_pinn.shapes import Ball, Box, Disk, Interval, Shape
from leafgrad_pinn.solution import Solution
from leafgrad_pinn.stages import LBFGS, SOAP, Adam, GaussNewton, LeastSquares, LevenbergMarquardt, Muon, SSBroyden
from leafgrad_pinn.stochastic import Stochastic
from leafgrad_pinn.unknowns import Unknown
from leafgrad_pinn.values import d
from leafgrad_pinn.weights import NTK, RBA, Causal, GradNorm, SelfAdaptive

__all__ = [
    "LBFGS",
    "MLP",
    "NTK",
    "R3",
    "RAD",
    "RBA",
    "SIREN",
    "SOAP",
    "Adam",
    "At",
    "Ball",
    "Boundary",
    "Box",
    "Causal",
    "ComplexField",
    "Data",
    "Derivative",
    "Dirichlet",
    "Disk",
    "Domain",
    "Even",
    "Factorised",
    "Field",
    "Fourier",
    "Fresh",
    "GaussNewton",
    "GradNorm",
    "Hard",
    "Initial",
    "Interior",
    "Interval",
    "LShape",
    "LeastSquares",
    "LevenbergMarquardt",
    "ModifiedMLP",
    "Muon",
    "Neumann",
    "Periodic",
    "PirateNet",
    "Polygon",
    "Problem",
    "Reference",
    "Robin",
    "SSBroyden",
    "SelfAdaptive",
    "Shape",
    "SignedDistance",
    "Solution",
    "Stochastic",
    "Time",
    "Unknown",
    "Wrap",
    "d",
    "fields",
    "references",
]

leafgrad_api_version = 1


@hookimpl
def leafgrad_cli() -> list[CommandSpec]:
    """The subcommand ``leafgrad pinn``."""
    return [CommandSpec("pinn", help="solve differential equations by networks", target="leafgrad_pinn.cli:main")]

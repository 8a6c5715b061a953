"""Differential equations by physics-informed networks: write the equation, get the answer, its error, and a picture."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from leafgrad.lazy import absent
from leafgrad.plugins import CommandSpec, hookimpl

if TYPE_CHECKING:
    from leafgrad_pinn.public import *
else:

    def __getattr__(name: str) -> object:
        """All names are imported when one is first asked for: a program that only loads plugins needs none."""
        if name in __all__:
            public, calls = import_module("leafgrad_pinn.public"), import_module("leafgrad_pinn.calls")
            globals()[name] = found = calls.explain(getattr(public, name))
            return found
        raise absent(f"module 'leafgrad_pinn' has no attribute {name!r}", name, __dir__)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


# The names, so that none need be imported to be listed; public has where each is.
__all__ = """
    LBFGS MLP NTK R3 RAD RBA SIREN SOAP Adam At Ball Boundary Box Causal ComplexField Data DeepONet Derivative
    Dirichlet Disk Domain Ellipse Energy Even FNO Factorised Field Fourier Fresh GaussNewton GaussianField GradNorm Hard
    Huber Initial InputFunction Integral Interior Interval LShape LeastSquares LevenbergMarquardt ModifiedMLP Muon
    Neumann Own Parameter Periodic PirateNet Polygon Problem Reference Robin SSBroyden Sampled SelfAdaptive Shape
    SignedDistance Solution Stochastic Surface Table Time Unknown Wrap d fields references
""".split()

leafgrad_api_version = 1


@hookimpl
def leafgrad_cli() -> list[CommandSpec]:
    """The subcommand ``leafgrad pinn``."""
    return [CommandSpec("pinn", help="solve differential equations by networks", target="leafgrad_pinn.cli:main")]

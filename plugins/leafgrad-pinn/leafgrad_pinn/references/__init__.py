"""Solutions to compare with, each with an estimate of its own error."""

from __future__ import annotations

from leafgrad_pinn.references.cavity import cavity
from leafgrad_pinn.references.closed import burgers, exact, scattered
from leafgrad_pinn.references.corner import l_shape
from leafgrad_pinn.references.family import family
from leafgrad_pinn.references.ordinary import lorenz, lotka_volterra
from leafgrad_pinn.references.periodic import allen_cahn, kdv, kuramoto_sivashinsky, schroedinger
from leafgrad_pinn.references.reference import Reference, relative_l2

__all__ = [
    "Reference",
    "allen_cahn",
    "burgers",
    "cavity",
    "exact",
    "family",
    "kdv",
    "kuramoto_sivashinsky",
    "l_shape",
    "lorenz",
    "lotka_volterra",
    "relative_l2",
    "scattered",
    "schroedinger",
]

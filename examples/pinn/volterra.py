"""Volterra's equation: u(x) = cos(x) + integral of (x - y) u(y) from 0 to x, so that u = (cosh x + cos x) / 2.

leafgrad pinn run volterra
leafgrad pinn run volterra --quick
"""

from __future__ import annotations

import numpy as np

import leafgrad as lg
import leafgrad_pinn as pinn

TARGETS = {"full": 1e-5, "quick": 1e-3}


def solve(run):
    line = pinn.Interval("x", 0, 3)
    u = pinn.Field("u", line, net=pinn.MLP(8, 1))
    equation = pinn.Integral(
        lambda u, x, at: (at.x - x) * u, lambda u, x: u - lg.cos(x), upto="x", n=64, order=12, name="volterra"
    )
    exact = pinn.references.exact(line, u=lambda x: (np.cosh(x) + np.cos(x)) / 2)
    stage = pinn.LevenbergMarquardt(120 if run.quick else 400)
    return pinn.Problem(u, equation).solve(stage, reference=exact, **run.options)

"""Fredholm's equation of the second kind: u(x) = exp(x) - x + integral of x y u(y) over [0, 1], u = exp(x).

leafgrad pinn run fredholm
leafgrad pinn run fredholm --quick
"""

from __future__ import annotations

import numpy as np

import leafgrad as lg
import leafgrad_pinn as pinn

TARGETS = {"full": 1e-6, "quick": 1e-3}


def solve(run):
    line = pinn.Interval("x", 0, 1)
    u = pinn.Field("u", line, net=pinn.MLP(8, 1))
    equation = pinn.Integral(lambda u, x, at: at.x * x * u, lambda u, x: u - lg.exp(x) + x, n=48, order=12)
    exact = pinn.references.exact(line, u=lambda x: np.exp(x))
    stage = pinn.LevenbergMarquardt(60 if run.quick else 400)
    return pinn.Problem(u, equation).solve(stage, reference=exact, **run.options)

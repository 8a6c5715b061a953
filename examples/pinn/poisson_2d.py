"""Poisson's equation on a square, by Gauss-Newton: u_xx + u_yy = -2 pi^2 sin(pi x) sin(pi y), u = 0 on the edges.

leafgrad pinn run poisson_2d            # 1e-7 within a minute
leafgrad pinn run poisson_2d --quick
"""

from __future__ import annotations

import math

import numpy as np

import leafgrad as lg
import leafgrad_pinn as pinn

TARGETS = {"full": 1e-7, "quick": 1e-4}
SLICES = {"y": [0.25, 0.5]}


def source(x, y):
    return 2 * math.pi**2 * lg.sin(math.pi * x) * lg.sin(math.pi * y)


def solve(run):
    square = pinn.Box(x=(0, 1), y=(0, 1))
    u = pinn.Field("u", square, net=pinn.MLP(48, 1), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, [pinn.Interior(lambda u, x, y: u.lap + source(x, y), n=900, sampler="grid")])
    exact = pinn.references.exact(square, u=lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y))
    stage = pinn.GaussNewton(40) if run.quick else pinn.SSBroyden(2500)
    return problem.solve(stage, reference=exact, **run.options)

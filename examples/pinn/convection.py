"""Convection, fast: u_t + 40 u_x = 0, periodic on [0, 2 pi], u(x, 0) = sin x. Plain networks are known to fail here.

leafgrad pinn run convection
leafgrad pinn run convection --quick

Source: Krishnapriyan, Gholami, Zhe, Kirby and Mahoney (2021), arXiv 2109.01050.
"""

from __future__ import annotations

import math

import numpy as np

import leafgrad as lg
import leafgrad_pinn as pinn

BETA = 40
TARGETS = {"full": 1e-4, "quick": 1e-2}
SLICES = {"t": [0.5, 1.0]}


def solve(run):
    domain = pinn.Interval("x", 0, 2 * math.pi, periodic=True) * pinn.Time("t", 0, 1)
    width, n, steps = (250, 900, 5) if run.quick else (500, 2500, 8)
    net = pinn.SIREN(width, 1, embed=pinn.Periodic(x=1), frequency={"x": 0.5, "t": 25})
    u = pinn.Field("u", domain, net=net, initial=pinn.Hard(lambda x: lg.sin(x)))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t + BETA * u.x, n=n)])
    exact = pinn.references.exact(domain, u=lambda x, t: np.sin(x - BETA * t))
    return problem.solve(pinn.LeastSquares(steps), reference=exact, **run.options)

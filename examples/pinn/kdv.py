"""Korteweg-de Vries: u_t + u u_x + 0.022^2 u_xxx = 0, periodic on [-1, 1], u(x, 0) = cos(pi x). Solitons emerge.

leafgrad pinn run kdv
leafgrad pinn run kdv --quick

Source: Zabusky and Kruskal (1965), Phys. Rev. Lett. 15, 240.
"""

from __future__ import annotations

import math

import leafgrad as lg
import leafgrad_pinn as pinn

DELTA = 0.022
TARGETS = {"full": 4e-5, "quick": 5e-2}
SLICES = {"t": [0.3, 0.6, 1.0]}


def solve(run):
    domain = pinn.Interval("x", -1, 1, periodic=True) * pinn.Time("t", 0, 1)
    width, n, steps = (14, 1000, 100) if run.quick else (24, 2500, 400)
    net = pinn.MLP(width, 3, embed=pinn.Periodic(x=2))
    u = pinn.Field("u", domain, net=net, initial=pinn.Hard(lambda x: lg.cos(math.pi * x)))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t + u * u.x + DELTA**2 * u.xxx, n=n)])
    stage = pinn.GaussNewton(steps, points=pinn.RAD(every=20))
    return problem.solve(stage, reference=pinn.references.kdv(), **run.options)

"""The Kuramoto-Sivashinsky equation, of fourth order and chaotic, over its first tenth of a unit of time.

u_t + a u u_x + b u_xx + c u_xxxx = 0, periodic on [0, 2 pi], u(x, 0) = cos x (1 + sin x).

leafgrad pinn run kuramoto_sivashinsky
leafgrad pinn run kuramoto_sivashinsky --quick
"""

from __future__ import annotations

import math

import leafgrad as lg
import leafgrad_pinn as pinn

A, B, C = 100 / 16, 100 / 16**2, 100 / 16**4
TARGETS = {"full": 1e-4, "quick": 1e-2}
SLICES = {"t": [0.0, 0.05, 0.1]}


def start(x):
    return lg.cos(x) * (1 + lg.sin(x))


def solve(run):
    domain = pinn.Interval("x", 0, 2 * math.pi, periodic=True) * pinn.Time("t", 0, 0.1)
    width, n, steps = (14, 800, 70) if run.quick else (24, 2000, 400)
    net = pinn.MLP(width, 3, embed=pinn.Periodic(x=2))
    u = pinn.Field("u", domain, net=net, initial=pinn.Hard(start))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t + A * u * u.x + B * u.xx + C * u.xxxx, n=n)])
    stage = pinn.GaussNewton(steps, points=pinn.RAD(every=20))
    return problem.solve(stage, reference=pinn.references.kuramoto_sivashinsky(), **run.options)

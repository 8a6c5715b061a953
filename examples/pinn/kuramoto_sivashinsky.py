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
    width, n, steps, windows = (16, 1000, 25, 5) if run.quick else (18, 1500, 90, 6)
    u = pinn.Field("u", domain, net=pinn.MLP(width, 3, embed=pinn.Periodic(x=4)))
    equation = pinn.Interior(lambda u: u.t + A * u * u.x + B * u.xx + C * u.xxxx, n=n)
    initial = pinn.Initial(start, n=128, sampler="grid", weight=2)
    stage = pinn.LevenbergMarquardt(steps, tolerance=0.03)
    return pinn.Problem(u, [equation, initial]).solve(
        stage, windows=windows, reference=pinn.references.kuramoto_sivashinsky(), **run.options
    )

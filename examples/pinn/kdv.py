"""Korteweg-de Vries: u_t + u u_x + 0.022^2 u_xxx = 0, periodic on [-1, 1], u(x, 0) = cos(pi x). Solitons emerge.

leafgrad pinn run kdv
leafgrad pinn run kdv --quick

Time is cut into windows: in one, the network settles on the wave before it breaks, and never finds the solitons.

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
    width, n, steps, windows = (16, 900, 20, 10) if run.quick else (20, 1500, 90, 16)
    u = pinn.Field("u", domain, net=pinn.MLP(width, 3, embed=pinn.Periodic(x=4)))
    equation = pinn.Interior(lambda u: u.t + u * u.x + DELTA**2 * u.xxx, n=n)
    start = pinn.Initial(lambda x: lg.cos(math.pi * x), n=128, sampler="grid", weight=40)
    stage = pinn.LevenbergMarquardt(steps, tolerance=0.03 if run.quick else 0.02)
    return pinn.Problem(u, [equation, start]).solve(
        stage, windows=windows, reference=pinn.references.kdv(), **run.options
    )

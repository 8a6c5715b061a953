"""Kovasznay's flow, behind a grid: the steady Navier-Stokes equations at Re = 40, velocities given on the edges.

leafgrad pinn run kovasznay
leafgrad pinn run kovasznay --quick

Source: Kovasznay (1948), Math. Proc. Camb. Phil. Soc. 44, 58.
"""

from __future__ import annotations

import math

import numpy as np

import leafgrad as lg
import leafgrad_pinn as pinn

RE = 40
DECAY = RE / 2 - math.sqrt(RE**2 / 4 + 4 * math.pi**2)
TARGETS = {"full": 1e-6, "quick": 1e-3}
SLICES = {"x": [-0.5, 0.0, 0.5]}


def flow(x, y, np):
    u = 1 - np.exp(DECAY * x) * np.cos(2 * math.pi * y)
    v = DECAY / (2 * math.pi) * np.exp(DECAY * x) * np.sin(2 * math.pi * y)
    return u, v, (1 - np.exp(2 * DECAY * x)) / 2


def navier_stokes(u, v, p):
    return (u * u.x + v * u.y + p.x - u.lap / RE, u * v.x + v * v.y + p.y - v.lap / RE, u.x + v.y)


def solve(run):
    domain = pinn.Box(x=(-0.5, 1), y=(-0.5, 1.5))
    width, n, steps = (150, 600, 12) if run.quick else (300, 1200, 20)
    u, v, p = pinn.fields("u v p", domain, net=pinn.SIREN(width, 1, frequency=12))
    conditions = [
        pinn.Interior(navier_stokes, n=n),
        pinn.Dirichlet(lambda x, y: flow(x, y, lg)[0], field="u", n=120, weight=10),
        pinn.Dirichlet(lambda x, y: flow(x, y, lg)[1], field="v", n=120, weight=10),
        pinn.Dirichlet(lambda x, y: flow(x, y, lg)[2], on="x_max", field="p", n=20),
    ]
    exact = {name: lambda x, y, i=i: flow(x, y, np)[i] for i, name in enumerate("uvp")}
    reference = pinn.references.exact(domain, **exact)
    return pinn.Problem([u, v, p], conditions).solve(pinn.LeastSquares(steps), reference=reference, **run.options)

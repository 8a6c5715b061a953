"""A clamped plate under a load: the biharmonic equation on a square, u = 0 and u_n = 0 on its edges.

u_xxxx + 2 u_xxyy + u_yyyy = f, where f is such that u = sin(pi x)^2 sin(pi y)^2.

leafgrad pinn run plate
leafgrad pinn run plate --quick
"""

from __future__ import annotations

import math

import numpy as np

import leafgrad as lg
import leafgrad_pinn as pinn

TARGETS = {"full": 1e-7, "quick": 1e-4}
SLICES = {"y": [0.25, 0.5]}


def load(x, y):
    a, b = lg.cos(2 * math.pi * x), lg.cos(2 * math.pi * y)
    return 4 * math.pi**4 * (4 * a * b - a - b)


def solve(run):
    square = pinn.Box(x=(0, 1), y=(0, 1))
    width, n, steps = (150, 600, 5) if run.quick else (300, 1600, 8)
    u = pinn.Field("u", square, net=pinn.SIREN(width, 1, frequency=16), boundary=pinn.Hard(0))
    scale = 16 * math.pi**4  # such that the equation is of the size of u
    conditions = [
        pinn.Interior(lambda u, x, y: (u.lap.lap - load(x, y)) / scale, n=n, sampler="grid"),
        pinn.Neumann(0, n=160, sampler="grid"),
    ]
    exact = pinn.references.exact(square, u=lambda x, y: np.sin(np.pi * x) ** 2 * np.sin(np.pi * y) ** 2)
    return pinn.Problem(u, conditions).solve(pinn.LeastSquares(steps), reference=exact, **run.options)

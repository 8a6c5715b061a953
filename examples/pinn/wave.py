"""A string that swings in two modes: u_tt = 4 u_xx on [0, 1], u = 0 at its ends, at rest at first.

u(x, 0) = sin(pi x) + sin(5 pi x) / 2. Plain networks are known to fail here.

leafgrad pinn run wave
leafgrad pinn run wave --quick

Source: Rathore, Lei, Frangella, Lu and Udell (2024), arXiv 2402.01868.
"""

from __future__ import annotations

import math

import numpy as np

import leafgrad as lg
import leafgrad_pinn as pinn

BETA = 5
TARGETS = {"full": 1e-3, "quick": 1e-2}
SLICES = {"t": [0.25, 0.5, 1.0]}


def start(x):
    return lg.sin(math.pi * x) + 0.5 * lg.sin(BETA * math.pi * x)


def exact(x, t):
    slow, fast = (np.sin(k * np.pi * x) * np.cos(2 * k * np.pi * t) for k in (1, BETA))
    return slow + 0.5 * fast


def solve(run):
    domain = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
    width, n, steps = (250, 900, 5) if run.quick else (500, 2500, 8)
    net = pinn.SIREN(width, 1, frequency={"x": 8, "t": 16})
    u = pinn.Field("u", domain, net=net, initial=pinn.Hard(start, rate=0), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.tt - 4 * u.xx, n=n)])
    return problem.solve(pinn.LeastSquares(steps), reference=pinn.references.exact(domain, u=exact), **run.options)

"""Reaction: u_t = 5 u (1 - u) on [0, 2 pi], u(x, 0) a Gaussian about pi. Plain networks are known to fail here.

leafgrad pinn run reaction
leafgrad pinn run reaction --quick

Source: Krishnapriyan, Gholami, Zhe, Kirby and Mahoney (2021), arXiv 2109.01050.
"""

from __future__ import annotations

import math

import numpy as np

import leafgrad as lg
import leafgrad_pinn as pinn

RHO = 5
TARGETS = {"full": 1e-3, "quick": 1e-2}
SLICES = {"t": [0.25, 0.5, 1.0]}


def start(x, exp=lg.exp):
    return exp(-((x - math.pi) ** 2) / (2 * (math.pi / 4) ** 2))


def exact(x, t):
    grown = start(x, np.exp) * np.exp(RHO * t)
    return grown / (grown + 1 - start(x, np.exp))


def solve(run):
    domain = pinn.Interval("x", 0, 2 * math.pi) * pinn.Time("t", 0, 1)
    width, n, steps, windows = (16, 600, 100, 1) if run.quick else (20, 1500, 150, 3)
    u = pinn.Field("u", domain, net=pinn.MLP(width, 2), initial=pinn.Hard(start))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t - RHO * u * (1 - u), n=n)])
    stage = pinn.LevenbergMarquardt(steps)
    return problem.solve(stage, windows=windows, reference=pinn.references.exact(domain, u=exact), **run.options)

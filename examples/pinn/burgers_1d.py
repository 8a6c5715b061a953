"""Burgers' equation with a shock: u_t + u u_x = nu u_xx, nu = 0.01 / pi, u(x, 0) = -sin(pi x), u = 0 at both ends.

The solution is odd in x, so the right half of [-1, 1] is enough; the shock then stands at its end, x = 0.

leafgrad pinn run burgers_1d
leafgrad pinn run burgers_1d --quick
"""

from __future__ import annotations

import math

import leafgrad as lg
import leafgrad_pinn as pinn

NU = 0.01 / math.pi
TARGETS = {"full": 1e-6, "quick": 1e-3}
SLICES = {"t": [0.25, 0.5, 1.0]}


def equation(u):
    residual = u.t + u * u.x - NU * u.xx
    return residual / (1 + 0.1 * lg.abs(u.x))  # within the shock the residual is large where the error is not


def solve(run):
    domain = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
    start = pinn.Hard(lambda x: -lg.sin(math.pi * x))
    width, n, steps = (12, 1500, 120) if run.quick else (18, 4000, 400)
    u = pinn.Field("u", domain, net=pinn.MLP(width, 3), initial=start, boundary=pinn.Hard(0))
    problem = pinn.Problem(u, [pinn.Interior(equation, n=n)])
    stage = pinn.LevenbergMarquardt(steps, tolerance=0, points=pinn.RAD(every=25))
    return problem.solve(stage, reference=pinn.references.burgers(NU, low=0), **run.options)

"""Burgers' equation with a shock: u_t + u u_x = nu u_xx, nu = 0.01 / pi, u(x, 0) = -sin(pi x), u = 0 at both ends.

leafgrad pinn run burgers_1d
leafgrad pinn run burgers_1d --quick
"""

from __future__ import annotations

import math

import leafgrad as lg
import leafgrad_pinn as pinn

NU = 0.01 / math.pi
SLICES = {"t": [0.25, 0.5, 1.0]}


def solve(run):
    domain = pinn.Interval("x", -1, 1) * pinn.Time("t", 0, 1)
    start = pinn.Hard(lambda x: -lg.sin(math.pi * x))
    u = pinn.Field("u", domain, net=pinn.MLP(20, 3), initial=start, boundary=pinn.Hard(0))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t + u * u.x - NU * u.xx, n=2000)])
    points = pinn.RAD(1000 if run.quick else 2000, every=250 if run.quick else 500)
    stages = [pinn.Adam(300), pinn.LBFGS(1500 if run.quick else 8000, points=points)]
    return problem.solve(*stages, reference=pinn.references.burgers(NU), **run.options)

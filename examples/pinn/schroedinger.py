"""The nonlinear Schroedinger equation: i h_t + h_xx / 2 + |h|^2 h = 0 for h = u + i v, periodic on [-5, 5].

h(x, 0) = 2 sech x, whose periodic continuation has kinks at the ends, of slope 0.03.

leafgrad pinn run schroedinger
leafgrad pinn run schroedinger --quick
"""

from __future__ import annotations

import math

import leafgrad as lg
import leafgrad_pinn as pinn

TARGETS = {"full": 2e-4, "quick": 2e-2}
SLICES = {"t": [0.4, 0.8, 1.2]}


def equation(u, v):
    size = u * u + v * v
    return u.t + 0.5 * v.xx + size * v, v.t - 0.5 * u.xx - size * u


def solve(run):
    domain = pinn.Interval("x", -5, 5, periodic=True) * pinn.Time("t", 0, math.pi / 2)
    width, n, steps = (16, 700, 90) if run.quick else (24, 2000, 600)
    net = pinn.MLP(width, 3, embed=pinn.Periodic(x=1))
    start = {"u": pinn.Hard(lambda x: 2 / lg.cosh(x)), "v": pinn.Hard(0)}
    u, v = pinn.fields("u v", domain, net=net, initial=start)
    problem = pinn.Problem([u, v], [pinn.Interior(equation, n=n)])
    stage = pinn.GaussNewton(steps)
    return problem.solve(stage, reference=pinn.references.schroedinger(), **run.options)

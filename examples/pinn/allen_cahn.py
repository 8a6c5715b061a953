"""Allen-Cahn: u_t = 1e-4 u_xx + 5 (u - u^3), periodic on [-1, 1], u(x, 0) = x^2 cos(pi x). Sharp fronts form.

leafgrad pinn run allen_cahn
leafgrad pinn run allen_cahn --quick
"""

from __future__ import annotations

import math

import leafgrad as lg
import leafgrad_pinn as pinn

TARGETS = {"full": 2e-5, "quick": 5e-2}
SLICES = {"t": [0.25, 0.5, 1.0]}


def solve(run):
    domain = pinn.Interval("x", -1, 1, periodic=True) * pinn.Time("t", 0, 1)
    width, n, steps = (12, 800, 120) if run.quick else (20, 2000, 600)
    start = pinn.Hard(lambda x: x**2 * lg.cos(math.pi * x))
    u = pinn.Field("u", domain, net=pinn.MLP(width, 3, embed=pinn.Periodic(x=2)), initial=start)
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t - 1e-4 * u.xx - 5 * (u - u**3), n=n)])
    stage = pinn.GaussNewton(steps, points=pinn.RAD(every=20))
    return problem.solve(stage, reference=pinn.references.allen_cahn(), **run.options)

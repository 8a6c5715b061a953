"""The Euler-Bernoulli beam, clamped at its left end and free at its right one: u_xxxx = -1.

leafgrad pinn run euler_beam
leafgrad pinn run euler_beam --quick
"""

from __future__ import annotations

import leafgrad_pinn as pinn

TARGETS = {"full": 1e-7, "quick": 1e-4}


def solve(run):
    beam = pinn.Interval("x", 0, 1)
    u = pinn.Field("u", beam, net=pinn.SIREN(24, 1, frequency=4), boundary=pinn.Hard(0, on="x_min"))
    conditions = [
        pinn.Interior(lambda u: u.xxxx + 1, n=64, sampler="grid"),
        pinn.Neumann(0, on="x_min"),
        pinn.Boundary(lambda u: (u.xx, u.xxx), on="x_max"),  # neither a moment nor a force at the free end
    ]
    exact = pinn.references.exact(beam, u=lambda x: -(x**4) / 24 + x**3 / 6 - x**2 / 4)
    stage = pinn.LeastSquares(5)
    return pinn.Problem(u, conditions).solve(stage, reference=exact, **run.options)

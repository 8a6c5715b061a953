"""Poisson's equation in an L-shaped domain: -u_xx - u_yy = 1, u = 0 on the edges.

At the inner corner the gradient is infinite, as that of s = r^(2/3) sin(2 theta / 3) is. So the network is a + s b.

leafgrad pinn run l_shape
leafgrad pinn run l_shape --quick
"""

from __future__ import annotations

import leafgrad as lg
import leafgrad_pinn as pinn

TARGETS = {"full": 1e-4, "quick": 1e-3}
SLICES = {"y": [-0.5, 0.0, 0.5]}


def singular(x, y):
    angle = lg.atan2(x + y, y - x)  # from the line that halves the domain
    return (x * x + y * y) ** (1 / 3) * lg.cos(2 / 3 * angle)


def solve(run):
    domain = pinn.LShape()
    width, n = (120, 800) if run.quick else (250, 2000)
    u = pinn.Field("u", domain, net=pinn.SIREN(width, 1, frequency=15, enrich=singular))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.lap + 1, n=n), pinn.Dirichlet(0, n=n // 2, weight=2e4)])
    return problem.solve(pinn.LeastSquares(12), reference=pinn.references.l_shape(terms=60), **run.options)

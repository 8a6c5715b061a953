"""Poisson's equation in 100 dimensions: the Laplacian of u is 200 in the unit cube, u = |x|^2 on its faces.

Each step takes one derivative along a random direction at each point, where the Laplacian would take a hundred.

leafgrad pinn run poisson_100d
leafgrad pinn run poisson_100d --quick

Source: E and Yu (2018), "The Deep Ritz method", Commun. Math. Stat. 6, 1, whose error is 2.2 %.
"""

from __future__ import annotations

import leafgrad_pinn as pinn

NAMES = [f"x{k:02}" for k in range(100)]
TARGETS = {"full": 1e-3, "quick": 1e-2}


def square(u):
    return sum(x * x for x in u.points.columns.values())


def solve(run):
    cube = pinn.Box(**dict.fromkeys(NAMES, (0, 1)))
    n, steps = (256, 2000) if run.quick else (512, 20000)
    net = pinn.MLP(128, 2, activation="softplus")  # fewer would see fewer directions than 100
    u = pinn.Field("u", cube, net, scale=10)
    conditions = [
        pinn.Stochastic(lambda u, lap: (lap(u) - 200) / 200, n=n, weight=10),
        pinn.Dirichlet(square, n=2 * n, sampler="uniform"),
    ]
    exact = pinn.references.scattered(cube, u=lambda points: (points**2).sum(1))
    stage = pinn.SOAP(steps, lr=2e-2, final=1e-2, points=pinn.Fresh(1))
    return pinn.Problem(u, conditions).solve(stage, reference=exact, **run.options)

"""The lid-driven cavity: steady Navier-Stokes in a square whose lid slides, at Reynolds numbers 100 and 400.

The velocity jumps where the lid meets the walls, and the pressure is infinite there.

leafgrad pinn run cavity_100
leafgrad pinn run cavity_400 --quick

Source: Ghia, Ghia and Shin (1982), J. Comput. Phys. 48, 387.
"""

from __future__ import annotations

import leafgrad_pinn as pinn

CASES = {"cavity_100": {"re": 100}, "cavity_400": {"re": 400}}
TARGETS = {"full": 1.5e-2}
SLICES = {"x": [0.5], "y": [0.5]}


def solve(run, re):
    square = pinn.Box(x=(0, 1), y=(0, 1))

    def navier_stokes(u, v, p, x, y):
        corners = (x * x + (1 - y) ** 2) * ((1 - x) ** 2 + (1 - y) ** 2)  # where nothing smooth can satisfy it
        residuals = u * u.x + v * u.y + p.x - u.lap / re, u * v.x + v * v.y + p.y - v.lap / re, u.x + v.y
        return tuple(corners * residual for residual in residuals)

    width, n, steps = (18, 600, 60) if run.quick else (28, 1500, 300)
    u, v, p = pinn.fields("u v p", square, net=pinn.MLP(width, 3))
    conditions = [
        pinn.Interior(navier_stokes, n=n),
        pinn.Dirichlet(1, on="y_max", field="u", n=n // 8, weight=10),
        pinn.Dirichlet(0, on="x_min x_max y_min", field="u", n=n // 4, weight=10),
        pinn.Dirichlet(0, field="v", n=n // 4, weight=10),
        pinn.Dirichlet(0, on="y_min", field="p", n=1, sampler="grid"),  # pressure is known up to a number
    ]
    reference = pinn.references.cavity(re)
    return pinn.Problem([u, v, p], conditions).solve(pinn.GaussNewton(steps), reference=reference, **run.options)

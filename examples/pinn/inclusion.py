"""Two materials: a disk that conducts five times as well as the plate around it, in a field along x.

Each material has a network of its own; value and flux agree where they meet (XPINN).

leafgrad pinn run inclusion
leafgrad pinn run inclusion --quick

Source: Jagtap and Karniadakis (2020), Commun. Comput. Phys. 28, 2002; the solution is in any text of electrostatics.
"""

from __future__ import annotations

import numpy as np

import leafgrad_pinn as pinn

TARGETS = {"full": 1e-5, "quick": 1e-3}
SLICES = {"y": [0.6]}
RATIO = 5.0  # of the conductivities


def around(x, y):
    """The potential outside of the disk."""
    return x * (1 + (1 - RATIO) / (1 + RATIO) / (x * x + y * y))


def solve(run):
    plate, disk = pinn.Box(x=(-2, 2), y=(-2, 2)), pinn.Disk(1.0, x=0, y=0)
    u = pinn.Field("u", plate, net=pinn.MLP(10, 1), part=disk)
    v = pinn.Field("v", plate, net=pinn.MLP(20, 2), part=plate - disk)
    edges = 100  # what they count beside the equations inside, which far other fields satisfy, too
    interface = {"on": "circle", "of": disk, "n": 100, "weight": edges, "name": "interface"}
    conditions = [
        pinn.Interior(lambda u: u.lap, n=150, of=disk, name="disk"),
        pinn.Interior(lambda v: v.lap, n=600, of=plate - disk, name="plate"),
        pinn.Boundary(lambda u, v: (u - v, RATIO * u.n - v.n), **interface),
        pinn.Dirichlet(around, field="v", n=160, weight=edges),
    ]

    def outside(x, y):
        return around(x, np.where((x == 0) & (y == 0), 1, y))  # the centre is none of its part

    exact = pinn.references.exact(plate, u=lambda x: 2 / (1 + RATIO) * x, v=outside)
    stage = pinn.LevenbergMarquardt(50 if run.quick else 300)
    return pinn.Problem([u, v], conditions).solve(stage, reference=exact, **run.options)

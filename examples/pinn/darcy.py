"""Darcy flow for any permeability: -div(a grad u) = 1 in the square, u = 0 around it, by a Fourier neural operator.

The permeability is 12 or 3 by the sign of a Gaussian field, with straight lines between 29 x 29 sensors. The network
sees no solutions: it lowers the energy whose minimum the pressure is, for permeabilities drawn anew at each step. Li et
al. have a mean relative L2 error of 1.08e-2 on unseen ones of 85 x 85 points, learnt from 1000 solutions in 500 epochs
by four blocks, 32 wide, with 12 modes; here there are three, 16 wide, with 8, and 1500 steps of eight permeabilities.

leafgrad pinn run darcy
leafgrad pinn run darcy --quick

Source: Li et al. (2021), "Fourier neural operator for parametric partial differential equations", arXiv 2010.08895.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve

import leafgrad_pinn as pinn

TARGETS = {"full": 4e-2, "quick": 2e-1}


def finite_volumes(x, y, a, steps):
    at, line = np.arange((steps + 1) ** 2).reshape(steps + 1, -1), np.linspace(0, 1, steps + 1)
    middle, inside = (line[1:] + line[:-1]) / 2, at[1:-1, 1:-1].ravel()
    first, second = np.r_[at[1:].ravel(), at[:, 1:].ravel()], np.r_[at[:-1].ravel(), at[:, :-1].ravel()]
    flow = np.r_[a(middle[:, None], line).ravel(), a(line[:, None], middle).ravel()] * steps**2
    places = np.r_[first, second, first, second], np.r_[first, second, second, first]
    matrix = coo_array((np.r_[flow, flow, -flow, -flow], places)).tocsr()
    u = np.zeros(at.size)
    u[inside] = spsolve(matrix[inside][:, inside], np.ones(len(inside)))
    every = steps // (len(x) - 1)
    return u.reshape(at.shape)[::every, ::every]


def solve(run):
    field = pinn.GaussianField(
        "a", power=lambda k2: (k2 > 0) / (k2 + 9) ** 2, map=lambda g: np.where(g < 0, 3.0, 12.0), degree=1, sensors=29
    )
    family = pinn.Box(x=(0, 1), y=(0, 1)) * field
    u = pinn.Field("u", family, net=pinn.FNO(16, 3, modes=8), boundary=pinn.Hard(0), scale=0.02)
    energy = pinn.Energy(lambda u, a: a * (u.x**2 + u.y**2) / 2 - u, least=-0.02, n=8, order=2, pieces=28)
    unseen = pinn.references.family(family, u=finite_volumes, steps=112, points=29, n=20, name="finite volumes")
    stage = pinn.Adam(200 if run.quick else 1500, lr=3e-3, final=0.02, points=pinn.Fresh(1))
    return pinn.Problem(u, energy).solve(stage, reference=unseen, **run.options)

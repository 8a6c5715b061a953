"""The ground state of a particle in a box, -u'' = E u, by the least Rayleigh quotient, with its norm given.

leafgrad pinn run ground_state
leafgrad pinn run ground_state --quick

Source: E and Yu (2018), "The deep Ritz method", arXiv 1710.00211.
"""

from __future__ import annotations

import numpy as np

import leafgrad_pinn as pinn

TARGETS = {"full": 1e-6, "quick": 1e-4}


def solve(run):
    box = pinn.Interval("x", 0, 1)
    u = pinn.Field("u", box, net=pinn.MLP(20, 1), boundary=pinn.Hard(0), scale=1)
    conditions = [
        pinn.Energy(lambda u: u.x**2, per=lambda u: u**2, order=64),
        pinn.Integral(lambda u: u, 8**0.5 / np.pi, order=64, weight=10),  # as of sqrt(2) sin(pi x)
    ]
    exact = pinn.references.exact(box, u=lambda x: 2**0.5 * np.sin(np.pi * x))
    stage = pinn.SSBroyden(150 if run.quick else 1000)
    return pinn.Problem(u, conditions).solve(stage, reference=exact, **run.options)

"""Decay for all rates and all initial values at once: u_t = -k u, u(0) = a, with a and k as parameters.

Such a solution is called a bundle: one training serves every initial value, and ``sol(a=0.5, k=2)`` is one of them.

leafgrad pinn run bundle
leafgrad pinn run bundle --quick

Source: Flamant, Protopapas and Sondak (2020), arXiv 2006.14372.
"""

from __future__ import annotations

import numpy as np

import leafgrad_pinn as pinn

TARGETS = {"full": 1e-3, "quick": 1e-2}


def solve(run):
    domain = pinn.Time("t", 0, 2) * pinn.Parameter("a", -1, 1) * pinn.Parameter("k", 0.5, 2)
    u = pinn.Field("u", domain, net=pinn.MLP(16, 2), initial=pinn.Hard(lambda a: a))
    problem = pinn.Problem(u, pinn.Interior(lambda u, k: u.t + k * u, n=512))
    exact = pinn.references.exact(domain, u=lambda a, k, t: a * np.exp(-k * t))
    stage = pinn.LevenbergMarquardt(40 if run.quick else 150)
    return problem.solve(stage, reference=exact, **run.options)

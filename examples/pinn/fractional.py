"""Fractional diffusion, slower than diffusion: Caputo's derivative of order 1/2 by time of u is u_xx + f.

That derivative is an integral over all of the past with a singular kernel; what is singular is taken out of it at each
point, u_t there times the kernel's own integral, so that a rule of few points serves.

leafgrad pinn run fractional
leafgrad pinn run fractional --quick

Source: Pang, Lu and Karniadakis (2019), "fPINNs", SIAM J. Sci. Comput. 41, A2603.
"""

from __future__ import annotations

import math

import numpy as np

import leafgrad as lg
import leafgrad_pinn as pinn

TARGETS = {"full": 1e-4, "quick": 1e-2}
SLICES = {"t": [0.25, 0.5, 1.0]}
ALPHA, ORDER = 0.5, 24


def solve(run):
    domain = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
    u = pinn.Field("u", domain, net=pinn.MLP(10, 1), initial=pinn.Hard(0), boundary=pinn.Hard(0))
    nodes, weights = np.polynomial.legendre.leggauss(ORDER)
    missed = 1 / (1 - ALPHA) - float(weights @ (1 - nodes) ** -ALPHA) * 2 ** (ALPHA - 1)  # of the kernel, by the rule

    def source(x, t):
        return (2 * t ** (2 - ALPHA) / math.gamma(3 - ALPHA) + math.pi**2 * t * t) * lg.sin(math.pi * x)

    equation = pinn.Integral(
        lambda u, t, at: u.t * (at.t - t) ** -ALPHA,
        lambda u, x, t: math.gamma(1 - ALPHA) * (u.xx + source(x, t)) - missed * u.t * t ** (1 - ALPHA),
        over="t",
        upto="t",
        n=100,
        order=ORDER,
        name="diffusion",
    )
    exact = pinn.references.exact(domain, u=lambda x, t: t**2 * np.sin(np.pi * x))
    stage = pinn.LevenbergMarquardt(15 if run.quick else 100)
    return pinn.Problem(u, equation).solve(stage, reference=exact, **run.options)

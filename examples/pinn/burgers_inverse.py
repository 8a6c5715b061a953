"""Burgers' equation, inverse: u_t + l1 u u_x = l2 u_xx, both numbers from 2000 values of u, without and with noise.

leafgrad pinn run burgers_inverse
leafgrad pinn run burgers_inverse_noisy --quick     # 1 % of noise

The noise sets the error of the second number: with the exact solution in the place of the network, and unknown initial
values, maximum likelihood is 0.78 % off on these data.

Source: Raissi, Perdikaris and Karniadakis (2019), J. Comput. Phys. 378, 686.
"""

from __future__ import annotations

import math

import numpy as np

import leafgrad as lg
import leafgrad_pinn as pinn

NU = 0.01 / math.pi
TRUTH = {"l1": 1.0, "l2": NU}
CASES = {"burgers_inverse": {"noise": 0.0}, "burgers_inverse_noisy": {"noise": 0.01}}
TARGETS = {"burgers_inverse": {"full": 1e-3, "quick": 1e-2}, "burgers_inverse_noisy": {"full": 5e-3, "quick": 5e-2}}
SLICES = {"t": [0.25, 0.5, 1.0]}


def measured(truth, n, noise):
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(truth.points()), n, replace=False)
    x, t = truth.points()[chosen].T
    u = truth.fields["u"].ravel()[chosen]
    weight = 1 if noise else 100  # what the equation does not allow is noise, if there is any
    return pinn.Data({"x": x, "t": t}, {"u": u + noise * u.std() * rng.normal(size=n)}, weight=weight)


def solve(run, noise):
    truth = pinn.references.burgers(NU)
    data = measured(truth, 2000, noise)
    l1, l2 = pinn.Unknown("l1", 0.0), pinn.Unknown("l2", 0.0025, positive=True)
    width, steps = (12, 100) if run.quick else (16, 250)
    u = pinn.Field("u", pinn.Interval("x", -1, 1) * pinn.Time("t", 0, 1), net=pinn.MLP(width, 3))

    def equation(u):
        residual = u.t + l1 * (u * u.x) - l2 * u.xx
        return residual / (1 + 0.1 * lg.abs(u.x))  # as in burgers_1d

    conditions = [data, pinn.Interior(equation, n=1500 if run.quick else 4000)]
    return pinn.Problem(u, conditions, [l1, l2]).solve(
        pinn.LevenbergMarquardt(steps, tolerance=0, points=pinn.RAD(every=20)), reference=truth, **run.options
    )

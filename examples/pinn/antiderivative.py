"""The antiderivative of any function: u_x = f, u(0) = 0 for Gaussian random f, by a DeepONet that sees no solutions.

Wang, Wang and Perdikaris have a mean relative L2 error of 2.5e-3 on unseen functions, with branch and trunk of 5 x 50
after 40 000 steps of Adam, from 10^4 functions, and the solution at one point of each besides. Here 8000 points have a
function each, and no solution.

leafgrad pinn run antiderivative
leafgrad pinn run antiderivative --quick

Source: Lu et al. (2021), Nature Machine Intelligence 3, 218; Wang, Wang and Perdikaris (2021), Science Advances 7,
eabi8605, and the notebooks beside it.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import cumulative_simpson

import leafgrad_pinn as pinn

TARGETS = {"full": 2.5e-3, "quick": 2e-2}


def antiderivative(x, f, steps):
    fine = np.linspace(0, 1, steps * (len(x) - 1) + 1)
    return cumulative_simpson(f(fine), x=fine, initial=0)[::steps]


def solve(run):
    family = pinn.Interval("x", 0, 1) * pinn.GaussianField("f", length=0.2)
    u = pinn.Field("u", family, net=pinn.DeepONet(32, 2), boundary=pinn.Hard(0, on="x_min"))
    problem = pinn.Problem(u, pinn.Interior(lambda u, f: u.x - f, n=2000 if run.quick else 8000))
    unseen = pinn.references.family(family, u=antiderivative, steps=8, n=100, name="Simpson's rule")
    return problem.solve(pinn.LBFGS(600 if run.quick else 6000), reference=unseen, **run.options)

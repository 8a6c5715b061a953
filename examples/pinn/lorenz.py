"""Lorenz's equations, inverse: their three numbers from 30 measurements of all coordinates, before chaos sets in.

x_t = sigma (y - x), y_t = x (rho - z) - y, z_t = x y - beta z.

leafgrad pinn run lorenz
leafgrad pinn run lorenz --quick
"""

from __future__ import annotations

import leafgrad_pinn as pinn

TRUTH = {"sigma": 10.0, "rho": 15.0, "beta": 8 / 3}
TARGETS = {"full": 1e-3, "quick": 1e-2}


def solve(run):
    truth = pinn.references.lorenz(*TRUTH.values(), stop=3, nt=301)
    data = pinn.Data({"t": truth.axes["t"][::10]}, {name: values[::10] for name, values in truth.fields.items()})
    sigma, rho, beta = unknowns = [pinn.Unknown(name, 1.0) for name in TRUTH]

    def equations(x, y, z):
        return x.t - sigma * (y - x), y.t - x * (rho - z) + y, z.t - x * y + beta * z

    width, n, steps = (70, 300, 60) if run.quick else (100, 400, 200)
    x, y, z = pinn.fields("x y z", pinn.Time("t", 0, 3), net=pinn.SIREN(width, 1, frequency=60))
    problem = pinn.Problem([x, y, z], [data, pinn.Interior(equations, n=n, sampler="grid")], unknowns)
    return problem.solve(pinn.LeastSquares(steps, damping=1e-4), reference=truth, **run.options)

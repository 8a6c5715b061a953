"""Prey and predators, inverse: four rates of the Lotka-Volterra equations from 40 measurements of both species.

u_t = a u - b u v, v_t = c u v - d v.

leafgrad pinn run lotka_volterra
leafgrad pinn run lotka_volterra --quick
"""

from __future__ import annotations

import leafgrad_pinn as pinn

TRUTH = {"a": 1.5, "b": 1.0, "c": 1.0, "d": 3.0}
TARGETS = {"full": 1e-3, "quick": 1e-2}


def solve(run):
    truth = pinn.references.lotka_volterra(*TRUTH.values(), stop=4)
    data = pinn.Data({"t": truth.axes["t"][::10]}, {name: values[::10] for name, values in truth.fields.items()})
    a, b, c, d = unknowns = [pinn.Unknown(name, 1.0, positive=True) for name in "abcd"]
    width, n, steps = (60, 200, 60) if run.quick else (80, 300, 200)
    time = pinn.Time("t", 0, 4)
    u, v = pinn.fields("u v", time, net=pinn.SIREN(width, 1, frequency=50))
    equations = pinn.Interior(lambda u, v: (u.t - a * u + b * u * v, v.t - c * u * v + d * v), n=n, sampler="grid")
    problem = pinn.Problem([u, v], [data, equations], unknowns)
    return problem.solve(pinn.LeastSquares(steps, damping=1e-4), reference=truth, **run.options)

"""A cantilever under a load at its tip, by its least energy: plane stress, where bending is stiffer than all else.

The load pulls as the parabola that Timoshenko's solution has; it bends the tip by -2.67. By the equations of
equilibrium at points the same networks and steps end 2 % off, and take twenty times as long.

leafgrad pinn run cantilever
leafgrad pinn run cantilever --quick

Source: Timoshenko and Goodier (1951), "Theory of elasticity", section 21; E and Yu (2018), arXiv 1710.00211.
"""

from __future__ import annotations

import leafgrad_pinn as pinn

TARGETS = {"full": 1e-6, "quick": 1e-2}
SLICES = {"x": [4.0, 8.0]}

LENGTH, HEIGHT, E, NU, P = 8.0, 1.0, 775.0, 0.3, 1.0
INERTIA = HEIGHT**3 / 12  # the second moment of area


def along(x, y):
    """The displacement along the beam, y counted from its middle."""
    return P * y / (6 * E * INERTIA) * ((6 * LENGTH - 3 * x) * x + (2 + NU) * (y * y - HEIGHT**2 / 4))


def across(x, y):
    shear = 3 * NU * y * y * (LENGTH - x) + (4 + 5 * NU) * HEIGHT**2 * x / 4
    return -P / (6 * E * INERTIA) * (shear + (3 * LENGTH - x) * x * x)


def strain(u, v):
    """The energy of plane stress, per area."""
    return E / (2 * (1 - NU**2)) * (u.x**2 + v.y**2 + 2 * NU * u.x * v.y + (1 - NU) / 2 * (u.y + v.x) ** 2)


def work(v, y):
    """What the load at the tip gives, per length."""
    return P / (2 * INERTIA) * (HEIGHT**2 / 4 - y * y) * v


def solve(run):
    beam = pinn.Box(x=(0, LENGTH), y=(-HEIGHT / 2, HEIGHT / 2))
    held = {"u": pinn.Hard(lambda y: along(0, y), on="x_min"), "v": pinn.Hard(lambda y: across(0, y), on="x_min")}
    u, v = pinn.fields("u v", beam, net=pinn.MLP(12, 2), boundary=held, scale={"u": 0.3, "v": 2.7})
    energy = [pinn.Energy(strain, order=20), pinn.Energy(work, on="x_max", order=20, least=-10)]
    exact = pinn.references.exact(beam, points={"x": 161, "y": 41}, u=along, v=across)
    stages = pinn.Adam(300, lr=0.01), pinn.SSBroyden(300 if run.quick else 2000)
    return pinn.Problem([u, v], energy).solve(*stages, reference=exact, **run.options)

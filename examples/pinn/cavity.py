"""The lid-driven cavity: steady Navier-Stokes in a square whose lid slides, at Reynolds numbers 100 and 400.

The stream function s, u = s_y and v = -s_x, needs no pressure. Where the lid meets the walls the velocity jumps, as in
the flow before a scraper: it is what s is without a network, exact on all walls.

leafgrad pinn run cavity_100
leafgrad pinn run cavity_400 --quick

Source: Taylor (1962), "On scraping viscous fluid from a plane surface"; Ghia, Ghia and Shin (1982), J. Comput. Phys.
48, 387.
"""

from __future__ import annotations

import math

import leafgrad as lg
import leafgrad_pinn as pinn

CASES = {"cavity_100": {"re": 100, "width": 800, "steps": 12}, "cavity_400": {"re": 400, "width": 1200, "steps": 40}}
TARGETS = {"full": 1.5e-2}
SLICES = {"x": [0.5], "y": [0.5]}
C = 1 / (1 - math.pi**2 / 4)


def scraper(x, y):
    """The stream function near a corner, x along the lid and y below it."""
    x = x + 1e-12  # an angle at the corner itself, too
    angle = lg.atan2(y, x)
    across = lg.sin(angle) * (1 - C + C * math.pi / 2 * angle) + C * angle * lg.cos(angle)
    return -(x * x + y * y).sqrt() * across


def step(z):
    return z**4 * (35 - 84 * z + 70 * z**2 - 20 * z**3)


def lid(x, y):
    return step(y) * (step(1 - x) * scraper(x, 1 - y) + step(x) * scraper(1 - x, 1 - y))


def solve(run, re, width, steps):
    square = pinn.Box(x=(0, 1), y=(0, 1))

    def vorticity(s, x, y):
        left, right = x * x + (1 - y) ** 2, (1 - x) ** 2 + (1 - y) ** 2
        weight = left / (0.25 + left) * right / (0.25 + right)  # nothing smooth satisfies it at the corners
        return weight * (s.y * s.lap.x - s.x * s.lap.y - s.lap.lap / re)

    width, n = (500, 1500) if run.quick else (width, 3000)
    s = pinn.Field("s", square, net=pinn.SIREN(width, 1, frequency=50), boundary=pinn.Hard(lid, clamped=True))
    u, v = pinn.Derivative("u", s, "y"), pinn.Derivative("v", s, "x", factor=-1)
    problem = pinn.Problem([s, u, v], [pinn.Interior(vorticity, n=n)])
    return problem.solve(pinn.LeastSquares(steps), reference=pinn.references.cavity(re), **run.options)

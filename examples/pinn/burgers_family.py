"""Burgers' equation for any initial velocity: u_t + u u_x = 0.01 u_xx on a ring, u(x, 0) = f, by a DeepONet.

The initial velocities are Gaussian, with the covariance 625^2 (-Laplacian + 25)^-4 and mean zero. Wang, Wang and
Perdikaris have a mean relative L2 error of 1.4e-2 on unseen ones, with branch and trunk of 7 x 100 (`ModifiedMLP`),
1000 functions and 200 000 steps of Adam. Here they are 3 x 48, the initial values and the period hold exactly, and 4000
points with a function each are drawn anew at every second of 5000 steps.

leafgrad pinn run burgers_family
leafgrad pinn run burgers_family --quick

Source: Wang, Wang and Perdikaris (2021), Science Advances 7, eabi8605, and the programs beside it.
"""

from __future__ import annotations

import numpy as np

import leafgrad_pinn as pinn

TARGETS = {"full": 3e-2, "quick": 1e-1}
NU = 0.01


def spectral(x, t, f, steps):
    """Runge-Kutta in Fourier space, the viscous term exactly, without aliasing; as many points as steps."""
    k = 2j * np.pi * np.arange(steps // 2 + 1)
    every = steps // (len(t) - 1)
    h = t[1] / every
    half, kept = np.exp(NU * k**2 * h / 2), np.arange(len(k)) <= steps // 3

    def rate(s):
        return kept * (-k / 2 * np.fft.rfft(np.fft.irfft(s, steps) ** 2))

    s = np.fft.rfft(f(np.arange(steps) / steps))
    found = [s]
    for _ in t[1:]:
        for _ in range(every):
            a = rate(s)
            b = rate(half * (s + h / 2 * a))
            c = rate(half * s + h / 2 * b)
            d = rate(half * half * s + h * half * c)
            s = half * half * s + h / 6 * (half * half * a + 2 * half * (b + c) + d)
        found.append(s)
    waves = np.exp(np.outer(x, k)) * np.where(k.imag > 0, 2, 1) / steps
    return (waves @ np.array(found).T).real


def solve(run):
    ring = pinn.Interval("x", 0, 1, periodic=True) * pinn.Time("t", 0, 1)
    family = ring * pinn.GaussianField("f", power=lambda k2: (k2 > 0) * 625**2 / (k2 + 25) ** 4)
    part = pinn.ModifiedMLP(48, 3)
    net = pinn.DeepONet(48, branch=part, trunk=part, embed=pinn.Periodic(x=4))
    u = pinn.Field("u", family, net=net, initial=pinn.Hard(lambda f: f))
    problem = pinn.Problem(u, pinn.Interior(lambda u: u.t + u * u.x - NU * u.xx, n=4000))
    unseen = pinn.references.family(family, u=spectral, steps=200, points=26, n=50, name="Fourier, Runge-Kutta")
    rates = {3e-3: 500} if run.quick else {3e-3: 2500, 6e-4: 1500, 1e-4: 1000}
    stages = [pinn.SOAP(steps, lr=rate, points=pinn.Fresh(2)) for rate, steps in rates.items()]
    return problem.solve(*stages, reference=unseen, **run.options)

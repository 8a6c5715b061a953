"""The loss and its derivatives are programs: their Python does not run at each step."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.trainee import Trainee

pytestmark = pytest.mark.compiled

LINE = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
TIMES = {"x": np.linspace(0, 1, 5), "t": np.linspace(0, 1, 5)}
FORCE = pinn.Table({"x": np.linspace(-3, 3, 9)}, np.arange(9) ** 2, smooth=True)


def conditions():
    return {
        "nonlinear": pinn.Interior(lambda u: u.t - 0.01 * u.xx - u**3 + lg.sin(u), n=6),
        "of an expression": pinn.Interior(lambda u, x: u.t + pinn.d(u * u, x), n=6),
        "from a table": pinn.Interior(lambda u, x: u.t - FORCE(x), n=6),
        "on edges": pinn.Boundary(lambda u: u.n + u**3, on="x_max", n=6),
        "at the start": pinn.Initial(lambda x: lg.sin(math.pi * x), rate=0.0, n=6),
        "data": pinn.Data(TIMES, {"u": np.zeros(5)}),
        "estimated": pinn.Stochastic(lambda u, lap: u.t - lap(u) + u**2, n=6),
    }


@pytest.mark.parametrize("name", conditions())
def test_steps_are_closed_programs(name, caplog):
    condition = conditions()[name]
    u = pinn.Field("u", LINE, net=pinn.MLP(4, 1))
    trainee = Trainee(pinn.Problem(u, [condition]), 0, lg.float64, "cpu")
    with caplog.at_level(logging.INFO, "leafgrad.compile"):
        trainee.objective.gradient(trainee.flat, trainee.batches, trainee.weights)
    assert any("traced in" in line for line in caplog.messages)
    assert not [line for line in caplog.messages if "open, since" in line]


@pytest.mark.slow
@pytest.mark.parametrize("derivatives", ["jet", "forward", "reverse"])
def test_steps_of_mixed_derivatives_and_of_polygons_are_closed(derivatives, caplog):
    u = pinn.Field("u", pinn.LShape(), net=pinn.MLP(3, 1), boundary=pinn.Hard(0, on="edge0 edge1"))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.xy + u.xxy, n=6)], derivatives=derivatives)
    trainee = Trainee(problem, 0, lg.float64, "cpu")
    with caplog.at_level(logging.INFO, "leafgrad.compile"):
        trainee.objective.terms(trainee.flat, trainee.batches, trainee.weights)
    assert any("traced in" in line for line in caplog.messages)
    assert not [line for line in caplog.messages if "open, since" in line]

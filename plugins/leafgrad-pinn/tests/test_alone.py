"""Equations, integrands, exact values and networks are of each point alone."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.alone import check_at

LINE = pinn.Interval("x", 0, 1)
ALONE = "at each point alone, got one whose value at a point depends on the others, or on how many these are"


def field(domain=LINE, **options):
    return pinn.Field("u", domain, **{"net": pinn.MLP(4, 1), **options})


@pytest.mark.parametrize(
    "equation",
    [
        lambda u: u - u.median(),
        lambda u: u / u.abs().max(),
        lambda u: u.x / len(u),
        lambda u, x: u.x - lg.arange(len(x)),
        lambda u: (u.x, u - u[0]),
    ],
)
def test_equations(equation):
    for size in (1e-12, 1.0):
        with pytest.raises(ValueError, match=f"interior: expected an equation of the fields {ALONE}"):
            pinn.Problem(field(scale=size), pinn.Interior(equation, n=20))


def test_an_equation_that_is_like_noise_is_of_each_point():
    pinn.Problem(field(scale=1e30), pinn.Interior(lambda u, x: lg.sin(u) - x, n=20))
    pinn.Problem(field(), pinn.Interior(lambda u: 3 * u - u - u - u + u.x, n=20))


@pytest.mark.parametrize(
    "condition",
    [
        pinn.Integral(lambda u, x, at: at.x * x * u.mean(), lambda u, x: u - x, n=16, order=8),
        pinn.Integral(lambda u, x, at: u * at.u / len(x), lambda u: u, upto="x", n=4, order=5),
        pinn.Integral(lambda u: u / u.max(), 1),
        pinn.Energy(lambda u: (u.x - u.x.mean()) ** 2, least=-1),
        pinn.Energy(lambda u: u.x**2, per=lambda u: u * u.mean()),
    ],
)
def test_integrands(condition):
    with pytest.raises(ValueError, match=f"expected an (integrand|equation) of the fields {ALONE}"):
        pinn.Problem(field(), condition)


def test_integrals_and_energies_of_each_point():
    domain = pinn.Box(x=(0, 1), y=(0, 2))
    for condition in (
        pinn.Integral(lambda u, x, at: at.x * x * u, lambda u, x: u - x, over="x", n=16, order=3),
        pinn.Integral(lambda u: u.n, 1, on="x_min y_max", order=3),
        pinn.Energy(lambda u: u.x**2, per=lambda u: u**2, order=3),
    ):
        pinn.Problem(field(domain), [condition, pinn.Dirichlet(0, n=8)])


@pytest.mark.parametrize(
    "value", [lambda x: x - x.mean(), lambda x: 0 * x + x.max(), lambda x: 0 * x + len(x), lambda x: x - x[0]]
)
def test_exact_values(value):
    for words, options in (
        ("boundary", {"boundary": pinn.Hard(value)}),
        ("initial", {"domain": LINE * pinn.Time("t", 0, 1), "initial": pinn.Hard(value)}),
        ("rate", {"domain": LINE * pinn.Time("t", 0, 1), "initial": pinn.Hard(0, rate=value)}),
    ):
        with pytest.raises(ValueError, match=f"Field 'u': {words}: expected values of the coordinates {ALONE}"):
            pinn.Problem(field(**options), pinn.Interior(lambda u: u.x, n=8))


class Net(lg.nn.Module):
    def __init__(self, layer, inputs, outputs):
        super().__init__()
        self.first, self.layer, self.last = lg.nn.Linear(inputs, 4), layer, lg.nn.Linear(4, outputs)

    def forward(self, x):
        return self.last(self.layer(lg.tanh(self.first(x))))


class Counter(lg.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", lg.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x


class Centred(lg.nn.Module):
    def forward(self, x):
        return x - x.mean(0)


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (lambda: lg.nn.BatchNorm1d(4), "one that changes its .*running_mean; have make give it in its mode"),
        (Counter, r"one that changes its .*layer.calls; .* as module.eval\(\)"),
        (lambda: lg.nn.Dropout(0.5), "one that is another each time, as with Dropout"),
        (Centred, f"whose outputs are those {ALONE}"),
    ],
)
def test_networks_of_ones_own(layer, words):
    net = pinn.Own(lambda inputs, outputs: Net(layer(), inputs, outputs))
    with pytest.raises(ValueError, match=f"Field 'u': net: expected a module .*{words}"):
        pinn.Problem(field(net=net), pinn.Interior(lambda u: u.xx, n=8))
    if layer not in (Counter, Centred):
        still = pinn.Own(lambda inputs, outputs: Net(layer(), inputs, outputs).eval())
        pinn.Problem(field(net=still), pinn.Interior(lambda u: u.xx, n=8))


def test_rounding_is_no_other_point():
    """Values that another number of points, or another place among these, changes by rounding alone."""
    x = np.linspace(0, 1, 24)

    def at(rounding):
        def values(index, moved):
            exact = 1.0 + x[index] * (1 + moved * 2.0**-52)
            return [exact - 1 - x[index] + rounding * (len(index) % 3) * exact]

        return values

    check_at("numbers", at(2.0**-53), 24)
    with pytest.raises(ValueError, match=f"numbers {ALONE}"):
        check_at("numbers", at(2.0**-40), 24)

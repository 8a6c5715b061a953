"""Networks compute what their papers say, written once more in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.layers import Maker

BOUNDS = np.array([[-1.0, 3.0], [0.0, 2.0]])
POINTS = np.random.default_rng(1).random((7, 2)) * [4, 2] - [1, 0]
SCALED = (POINTS - [1, 1]) / [2, 1]
NAMES = ["x", "t"]


def built(recipe, outputs=2):
    """A network, its parameters as arrays, and its values at the points."""
    net = recipe.build(NAMES, BOUNDS, outputs, Maker(np.random.default_rng(0), lg.float64, "cpu"))
    values = net([lg.tensor(np.ascontiguousarray(column)) for column in POINTS.T]).detach().numpy()
    return {name: p.detach().numpy() for name, p in net.named_parameters()}, values


def dense(p, name, x):
    """x V diag(exp(s)) + b, s being 0 where weights are not factorised."""
    scale = np.exp(p[f"1.{name}.scale"]) if f"1.{name}.scale" in p else 1
    return x @ (p[f"1.{name}.weight"] * scale) + p[f"1.{name}.bias"]


@pytest.mark.parametrize("factorised", [None, pinn.Factorised(0.5, 0.1)])
def test_mlp(factorised):
    p, values = built(pinn.MLP(5, 3, factorised=factorised))
    x = SCALED
    for k in range(3):
        x = np.tanh(dense(p, f"hidden.{k}", x))
    assert np.abs(values - dense(p, "last", x)).max() < 1e-14


def test_modified_mlp():
    p, values = built(pinn.ModifiedMLP(5, 2))
    u, v = np.tanh(dense(p, "u", SCALED)), np.tanh(dense(p, "v", SCALED))
    h = SCALED
    for k in range(2):
        z = np.tanh(dense(p, f"hidden.{k}", h))
        h = (1 - z) * v + z * u
    assert np.abs(values - dense(p, "last", h)).max() < 1e-14


def pirate(p, x, depth, alphas):
    u, v = np.tanh(dense(p, "u", x)), np.tanh(dense(p, "v", x))
    for k in range(depth):
        z = np.tanh(dense(p, f"dense.{3 * k}", x))
        z = np.tanh(dense(p, f"dense.{3 * k + 1}", z * u + (1 - z) * v))
        h = np.tanh(dense(p, f"dense.{3 * k + 2}", z * u + (1 - z) * v))
        x = alphas[k] * h + (1 - alphas[k]) * x
    return dense(p, "last", x)


def test_piratenet():
    recipe = pinn.PirateNet(5, 2, factorised=pinn.Factorised())
    net = recipe.build(NAMES, BOUNDS, 1, Maker(np.random.default_rng(0), lg.float64, "cpu"))
    p = {name: t.detach().numpy() for name, t in net.named_parameters()}
    columns = [lg.tensor(np.ascontiguousarray(column)) for column in POINTS.T]
    assert np.abs(net(columns).detach().numpy() - dense(p, "last", SCALED)).max() < 1e-14  # it begins linear
    with lg.no_grad():
        for name, t in net.named_parameters():
            if "skips" in name:
                t.fill_(0.3)
    assert np.abs(net(columns).detach().numpy() - pirate(p, SCALED, 2, [0.3, 0.3])).max() < 1e-14


def test_siren():
    p, values = built(pinn.SIREN(400, 3, frequency=7.0))
    x = SCALED
    for k in range(3):
        x = np.sin(7.0 * dense(p, f"hidden.{k}", x))
    assert np.abs(values - dense(p, "last", x)).max() < 1e-12
    for name, limit in (("hidden.0", 1 / 2), ("hidden.1", np.sqrt(6 / 400) / 7), ("last", np.sqrt(6 / 400) / 7)):
        weight = np.abs(p[f"1.{name}.weight"])
        assert 0.95 * limit < weight.max() <= limit
        assert abs(weight.mean() / (limit / 2) - 1) < 0.1
    assert 0.9 / np.sqrt(2) < np.abs(p["1.hidden.0.bias"]).max() <= 1 / np.sqrt(2)


def test_embeddings():
    net = pinn.MLP(4, 1, embed=(pinn.Periodic(x=2), pinn.Fourier(6, scale=2.0))).build(
        NAMES, BOUNDS, 1, Maker(np.random.default_rng(0), lg.float64, "cpu")
    )
    features = net[0]([lg.tensor(np.ascontiguousarray(column)) for column in POINTS.T]).numpy()
    angle = 2 * np.pi * (POINTS[:, 0] - 1) / 4  # the middle of the domain is its origin
    z = np.stack([f(k * angle) for k in (1, 2) for f in (np.cos, np.sin)] + [SCALED[:, 1]], 1)
    angles = z @ net[0].frequencies.numpy()
    assert np.abs(features - np.concatenate([np.cos(angles), np.sin(angles)], 1)).max() < 1e-14


@pytest.mark.parametrize("recipe", [pinn.MLP, pinn.SIREN])
def test_an_even_embedding_is_even_about_the_middle_and_periodic(recipe):
    net = recipe(4, 2, embed=pinn.Even(x=3)).build(NAMES, BOUNDS, 2, Maker(np.random.default_rng(0), lg.float64, "cpu"))
    x, t = POINTS.T
    angle = 2 * np.pi * (x - 1) / 4
    features = net[0]([lg.tensor(x.copy()), lg.tensor(t.copy())]).numpy()
    assert np.abs(features - np.stack([np.cos(k * angle) for k in (1, 2, 3)] + [SCALED[:, 1]], 1)).max() < 1e-14
    here, mirrored, moved = (
        net([lg.tensor(place.copy()), lg.tensor(t.copy())]).detach().numpy() for place in (x, 2 - x, x + 4)
    )
    assert np.ptp(here) > 0.1
    assert np.abs(here - mirrored).max() < 1e-12
    assert np.abs(here - moved).max() < 1e-12


def test_random_numbers_have_the_spread_that_papers_give():
    make = Maker(np.random.default_rng(0), lg.float64, "cpu")
    net = pinn.MLP(200, 2, embed=pinn.Fourier(400, scale=3.0), factorised=pinn.Factorised(1.0, 0.2)).build(
        NAMES, BOUNDS, 1, make
    )
    p = dict(net.named_parameters())
    scale, weight = p["1.hidden.1.scale"].detach().numpy(), p["1.hidden.1.weight"].detach().numpy()
    assert abs(scale.mean() - 1) < 0.05
    assert abs(scale.std() - 0.2) < 0.03
    assert abs((weight * np.exp(scale)).std() / np.sqrt(2 / 400) - 1) < 0.02
    assert abs(net[0].frequencies.numpy().std() / 3 - 1) < 0.1


def test_embeddings_of_different_coordinates_keep_their_waves():
    recipe = pinn.MLP(4, 1, embed=(pinn.Even(x=2), pinn.Periodic(t=3)))
    net = recipe.build(NAMES, BOUNDS, 1, Maker(np.random.default_rng(0), lg.float64, "cpu"))
    assert net[0].origins == ["x"] * 2 + ["t"] * 6
    one, mirrored = (
        net([lg.tensor([1 + s], dtype=lg.float64), lg.tensor([0.3], dtype=lg.float64)]) for s in (0.75, -0.75)
    )
    assert abs((one - mirrored).item()) < 1e-14


class Slope(lg.nn.Module):
    """The derivative of a potential."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.potential = lg.nn.Sequential(lg.nn.Linear(inputs, 5), lg.nn.Tanh(), lg.nn.Linear(5, outputs))

    def forward(self, x):
        column = x[:, 0]
        return pinn.d(self.potential(column[:, None])[:, 0], column)[:, None]


def test_a_module_of_ones_own_may_differentiate():
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.Own(Slope))
    sol = pinn.Problem(u, pinn.Interior(lambda u: u - 1, n=4)).solve(pinn.Adam(1))
    x = np.linspace(0, 1, 5)
    assert np.array_equal(sol(x), sol.evaluate(lambda u: u, x))
    assert sol(x).all()

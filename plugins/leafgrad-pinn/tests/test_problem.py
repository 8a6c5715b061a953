"""Mistakes are errors before the first step; residuals are what equations say."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn

X = pinn.Interval("x", 0, 1)
XT = X * pinn.Time("t", 0, 1)
RING = pinn.Interval("x", 0, 1, periodic=True) * pinn.Time("t", 0, 1)
NET = pinn.MLP(4, 1)
HEAT = pinn.Interior(lambda u: u.t - u.xx, n=8)


def field(domain=XT, net=NET, **hard):
    return pinn.Field("u", domain, net, **hard)


def data(x, **values):
    return pinn.Data({"x": x, "t": np.zeros(len(x))}, values or {"u": np.zeros(len(x))})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: pinn.Problem(field(), [pinn.Interior(lambda v: v)]),
            "there is no field or coordinate 'v'; there are u, x, t",
        ),
        (lambda: pinn.Problem(field(), [pinn.Dirichlet(0, field="v")]), "field: expected one of u, got 'v'"),
        (
            lambda: pinn.Problem(field(), [pinn.Dirichlet(0, "left")]),
            r"expected edges of the domain \(x_min, x_max\), got left",
        ),
        (lambda: pinn.Problem(field(X), [pinn.Initial(0)]), "the domain has no time"),
        (lambda: pinn.Problem(field(), [data(np.array([0.5, 1.5]))]), "data: expected points inside .* 1 outside"),
        (lambda: pinn.Problem(field(), [data(np.array([0.5]), v=np.zeros(1))]), "expected one of u, got 'v'"),
        (
            lambda: pinn.Problem(field(), [pinn.Interior(lambda u: u.x.sum(), n=8)]),
            r"interior: expected one number for each",
        ),
        (
            lambda: pinn.Problem(field(), [pinn.Interior(lambda u: u[:, None], n=8)]),
            r"shape \(8,\), got leafgrad.float64, shape \(8, 1\)",
        ),
        (lambda: pinn.Problem(field(), [pinn.Interior(lambda u: 0.0, n=8)]), "got float"),
        (lambda: pinn.Problem(field(), [pinn.Interior(lambda u: None, n=8)]), "got NoneType"),
        (
            lambda: pinn.Problem(field(), [HEAT, pinn.Initial(lambda x: 1 + x), pinn.Dirichlet(0)]),
            "conflicting corner values: dirichlet and initial of u differ by 2",
        ),
        (lambda: field(initial=pinn.Hard(1.0), boundary=pinn.Hard(0)), "conflicting corner values"),
        (lambda: field(initial=pinn.Hard(0.0, rate=1.0), boundary=pinn.Hard(0)), "conflicting corner values"),
        (lambda: field(initial=pinn.Hard(lambda y: y)), "there is no field or coordinate 'y'; there are x"),
        (lambda: field(X, initial=pinn.Hard(0)), "the domain has no time"),
        (lambda: field(RING, boundary=pinn.Hard(0)), "the domain has no edges"),
        (lambda: pinn.Problem(field(RING), [HEAT]), "nothing makes it periodic in x"),
        (
            lambda: pinn.Problem(field(net=pinn.MLP(4, 1, embed=pinn.Periodic(x=1))), [HEAT]),
            "x is not periodic in the domain",
        ),
        (
            lambda: pinn.Problem(field(net=pinn.MLP(4, 1, embed=pinn.Periodic(y=1))), [HEAT]),
            "y is not periodic in the domain",
        ),
        (lambda: pinn.Problem(field(RING), [pinn.Wrap("t")]), "expected a periodic coordinate"),
        (lambda: pinn.Problem([field(), field()], [HEAT]), "expected different names, .*got u, u"),
        (
            lambda: pinn.Problem(field(), [HEAT], unknowns=pinn.Unknown("x", 2.0)),
            "expected different names, those of coordinates too, got u, x, x, t",
        ),
        (
            lambda: pinn.Problem([field(), pinn.Field("t", X, NET)], [HEAT]),
            "expected different names, those of coordinates too, got u, t, x, t",
        ),
        (lambda: pinn.Problem(field(), []), "expected fields and conditions"),
        (lambda: pinn.Problem(pinn.fields("u v", XT, NET)[:1], [HEAT]), "u shares its network with v: add them"),
        (lambda: pinn.Interior(lambda u: u, n=0), "n: expected at least 1"),
        (lambda: pinn.Interior(lambda u: u, sampler="x"), "sampler: expected one of"),
        (lambda: pinn.Interior(lambda u: u, weight=-1), "weight: expected a positive number"),
        (lambda: pinn.Data({"x": np.zeros(2)}, {"u": np.zeros(3)}), r"arrays of one shape.*'x': \(2,\), 'u': \(3,\)"),
        (lambda: pinn.Data({"x": np.zeros(1)}, {"u": np.array([np.nan])}), "nan or inf in u"),
        (lambda: pinn.Unknown("a", -1.0, positive=True), "expected a positive number"),
        (lambda: pinn.Field("u", pinn.Interval("n", 0, 1), NET), "expected a name, and coordinates other"),
        (lambda: pinn.MLP(0, 1), "expected a width and depth"),
        (lambda: pinn.MLP(4, 1, activation="relu7"), "activation: expected one of"),
    ],
)
def test_mistakes_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_derivative_by_a_coordinate_that_a_field_lacks():
    k = pinn.Field("k", X, NET)
    with pytest.raises(AttributeError, match="depends on x alone, not on t"):
        pinn.Problem([field(), k], [pinn.Interior(lambda u, k: u.t - k.t, n=8)])


def residuals(domain, function, condition, **hard):
    """The residuals of a condition on a field that is a known function, in the user's units, and the points."""
    u = pinn.Field("u", domain, NET, **hard)
    problem = pinn.Problem(u, [condition])
    system = problem.system()
    system.fields = lambda columns: {"u": function(**columns)}
    (batch,) = problem.draw(np.random.default_rng(0))
    found = system(0, {name: lg.tensor(values) for name, values in batch.items()})
    return found.detach().numpy() * problem.sizes[0], batch["points"]


def wave(x, t):
    return lg.sin(math.pi * x) * lg.cos(t) + x


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (pinn.Interior(lambda u, x: u.tt + x * u.x, n=9), lambda x, t: None),
        (pinn.Dirichlet(lambda t: t, "x_max", n=9), lambda x, t: 1 - t),
        (pinn.Neumann(2.0, "x_min", n=9), lambda x, t: -math.pi * np.cos(t) - 1 - 2),
        (pinn.Robin(0, "x_max", a=2, b=3, n=9), lambda x, t: 2 + 3 * (1 - math.pi * np.cos(t))),
        (pinn.Initial(lambda x: x, n=9), lambda x, t: np.sin(math.pi * x)),
        (pinn.Initial(0, rate=1, n=9), lambda x, t: np.stack([np.sin(math.pi * x) + x, 0 * x - 1], 1)),
    ],
)
def test_residuals(condition, expected):
    found, points = residuals(XT, wave, condition)
    x, t = points.T
    truth = expected(x, t)
    if truth is None:
        truth = -np.sin(math.pi * x) * np.cos(t) + x * (math.pi * np.cos(math.pi * x) * np.cos(t) + 1)
    assert np.abs(found.reshape(len(x), -1) - truth.reshape(len(x), -1)).max() < 1e-12


def test_wrap_compares_both_ends():
    found, points = residuals(RING, lambda x, t: x**2 * t, pinn.Wrap("x", order=2, n=9))
    t = points[:, 1]
    assert np.abs(found - np.stack([-t, -2 * t, 0 * t], 1)).max() < 1e-12


def test_data_and_equations_at_data():
    x = np.linspace(0, 1, 5)
    measured = pinn.Data({"x": x, "t": x}, {"u": 0 * x})
    found, _ = residuals(XT, wave, measured)
    assert np.abs(found[:, 0] - np.sin(math.pi * x) * np.cos(x) - x).max() < 1e-12
    found, _ = residuals(XT, wave, pinn.At(measured, lambda u: u.t))
    assert np.abs(found[:, 0] + np.sin(math.pi * x) * np.sin(x)).max() < 1e-12


@pytest.mark.parametrize(
    ("shapes", "fit"),
    [
        ([(6,), (6, 1), (1, 6, 1)], True),
        ([(1,), (), (1, 1)], True),
        ([(2, 3), (2, 3), (2, 3)], True),
        ([(2, 3), (2, 3), (3, 2)], False),
        ([(2, 3), (2, 3), (6,)], False),
        ([(6, 1), (1, 6), (6,)], False),
        ([(3,), (3,), (1,)], False),
    ],
)
def test_shapes_of_data_and_of_points(shapes, fit):
    """Elements that belong together are at one place of arrays of one shape."""
    x, t, u = (np.linspace(0, 1, math.prod(shape)).reshape(shape) for shape in shapes)

    for make in (
        lambda: pinn.Data({"x": x, "t": t}, {"u": u}),
        lambda: pinn.Data({"x": x, "t": t}, {"u": t}, weights=1 + u),
        lambda: pinn.Interior(lambda u: u.t, points={"x": x, "t": t}, weights=1 + u),
    ):
        if fit:
            assert make().n == x.size
        else:
            with pytest.raises(ValueError, match=rf": expected arrays of one shape, .*got .*{re.escape(str(u.shape))}"):
                make()


def test_data_from_a_file(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros(2), t=np.ones(2), h=np.full(2, 3.0))
    measured = pinn.Data.from_npz(tmp_path / "d.npz", "x", "t", u="h")
    assert measured.values["u"].tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="expected the arrays q, got x, t, h"):
        pinn.Data.from_npz(tmp_path / "d.npz", "x", "t", u="q")


@pytest.mark.parametrize(
    ("hard", "where", "expected"),
    [
        ({"initial": pinn.Hard(lambda x: x**2)}, {"t": 0.0}, lambda x, t: x**2),
        ({"boundary": pinn.Hard(lambda t: t)}, {"x": 1.0}, lambda x, t: t),
        ({"boundary": pinn.Hard(2.0, on="x_min")}, {"x": 0.0}, lambda x, t: 2 + 0 * t),
        ({"initial": pinn.Hard(lambda x: x), "boundary": pinn.Hard(lambda x, t: x + t)}, {"x": 0.0}, lambda x, t: t),
        ({"initial": pinn.Hard(lambda x: x), "boundary": pinn.Hard(lambda x, t: x + t)}, {"t": 0.0}, lambda x, t: x),
    ],
)
def test_hard_conditions_hold_whatever_the_network(hard, where, expected):
    u = field(**hard)
    problem = pinn.Problem(u, [HEAT])
    columns = {name: np.full(9, where[name]) if name in where else np.linspace(0, 1, 9) for name in ("x", "t")}
    tensors = {name: lg.tensor(c) for name, c in columns.items()}
    value = problem.system(seed=3).fields(tensors)["u"].detach().numpy()
    assert np.abs(value - expected(**columns)).max() < 1e-12


def test_a_hard_rate_holds():
    problem = pinn.Problem(
        field(initial=pinn.Hard(lambda x: x, rate=lambda x: x**2)), [pinn.Initial(lambda x: x, rate=0, n=9)]
    )
    (batch,) = problem.draw(np.random.default_rng(0))
    found = problem.system()(0, {"points": lg.tensor(batch["points"])}).detach().numpy() * problem.sizes[0]
    x = batch["points"][:, 0]
    assert np.abs(found - np.stack([0 * x, x**2], 1)).max() < 1e-12


def test_a_periodic_embedding_is_periodic_with_all_derivatives():
    net = pinn.MLP(8, 2, embed=(pinn.Periodic(x=3), pinn.Fourier(8)))
    problem = pinn.Problem(field(RING, net), [HEAT, pinn.Wrap("x", order=3, n=9)])
    batch = problem.draw(np.random.default_rng(0))[1]
    found = problem.system()(1, {name: lg.tensor(v) for name, v in batch.items()})
    assert found.abs().max().item() < 1e-9


@pytest.mark.parametrize("recipe", [pinn.MLP, pinn.ModifiedMLP, pinn.PirateNet, pinn.SIREN])
def test_networks_of_one_seed_are_the_same(recipe):
    nets = [pinn.Problem(field(net=recipe(8, 2)), [HEAT]) for _ in range(2)]
    columns = {name: lg.linspace(0, 1, 5, dtype=lg.float64) for name in ("x", "t")}
    values = [problem.system(seed).fields(columns)["u"] for problem in nets for seed in (0, 1)]
    assert lg.equal(values[0], values[2])
    assert not lg.equal(values[0], values[1])
    assert values[0].dtype is lg.float64


def test_a_factorised_network_begins_as_an_ordinary_one_and_trains_its_factors():
    net = pinn.MLP(8, 2, factorised=pinn.Factorised())
    system = pinn.Problem(field(net=net), [HEAT]).system()
    assert sum("scale" in name for name, _ in system.named_parameters()) == 3


def test_points_of_several_conditions_have_names():
    problem = pinn.Problem(field(), [HEAT, HEAT, pinn.Dirichlet(0, "x_min")])
    assert problem.names == ["interior", "interior 2", "dirichlet x_min"]


def test_a_condition_may_be_given_to_several_problems():
    inside, edges = pinn.Interior(lambda u: u.lap, n=4), pinn.Dirichlet(0, n=8)
    square = pinn.Problem(pinn.Field("u", pinn.Box(x=(0, 1), y=(0, 1)), NET), [inside, edges])
    net = pinn.MLP(4, 1, embed=pinn.Periodic(x=2))
    pinn.Problem(pinn.Field("u", pinn.Box("x", x=(0, 1), y=(0, 1)), net), [inside, edges])
    points = square.draw(np.random.default_rng(0))[1]["points"]
    assert {(axis, end) for axis in (0, 1) for end in (0, 1) if (points[:, axis] == end).any()} == {
        (0, 0), (0, 1), (1, 0), (1, 1),
    }  # fmt: skip


def test_two_periodic_embeddings_are_one():
    ring = pinn.Box("x y", x=(0, 1), y=(0, 2))
    u = pinn.Field("u", ring, pinn.MLP(4, 1, embed=(pinn.Periodic(x=2), pinn.Periodic(y=3))))
    system = pinn.Problem(u, [pinn.Interior(lambda u: u.lap, n=4)]).system()
    here, there = (system.fields({"x": lg.tensor([x]).double(), "y": lg.tensor([0.3]).double()})["u"] for x in (0, 1))
    assert abs((here - there).item()) < 1e-14


@pytest.mark.parametrize("mode", [lg.no_grad, lg.inference_mode])
def test_modes_without_gradients_change_nothing(mode):
    def solved():
        problem = pinn.Problem(field(X, boundary=pinn.Hard(0)), pinn.Interior(lambda u: u.xx + 2, n=8))
        sol = problem.solve(pinn.Adam(1))
        return problem.sizes, sol(0.3), sol.evaluate(lambda u: u.xx, 0.3)

    expected = solved()
    with mode():
        assert solved() == expected


k = pinn.Unknown("k", 2.0)


@pytest.mark.parametrize(
    "of",
    [
        lambda u, x: u * 0 + x**k + 2**k + abs(-k) + lg.exp(+k),
        lambda u, x, k: u * 0 + x**k + 2**k + abs(-k) + lg.exp(+k),
    ],
    ids=["from around", "by name"],
)
def test_unknowns_are_numbers_in_arithmetic(of):
    equation = pinn.Interior(of, n=4, sampler="grid")
    problem = pinn.Problem(field(pinn.Interval("x", 0, 1)), [equation], [k])
    (batch,) = problem.draw(np.random.default_rng(0))
    found = problem.system()(0, {"points": lg.tensor(batch["points"])}).detach().numpy()[:, 0] * problem.sizes[0]
    assert np.abs(found - (batch["points"][:, 0] ** 2 + 4 + 2 + np.exp(2))).max() < 1e-12

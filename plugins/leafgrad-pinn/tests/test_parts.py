"""Waves of given frequencies, singular terms, equations on edges, least squares, stochastic Laplacians."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn


def test_frequencies_are_those_of_the_coordinates():
    domain = pinn.Interval("x", 0, 1, periodic=True) * pinn.Time("t", 0, 1)
    net = pinn.SIREN(500, 1, embed=pinn.Periodic(x=2), frequency={"x": 3, "t": 20})
    u = pinn.Field("u", domain, net=net)
    system = pinn.Problem(u, [pinn.Interior(lambda u: u.t, n=4)]).system()
    first = system.surrogates[0].net[1].hidden[0].weight.detach().numpy() * 20
    assert first.shape == (5, 500)
    assert (np.abs(first).max(1) <= [3, 3, 3, 3, 20]).all()
    assert (np.abs(first).max(1) > [2.9, 2.9, 2.9, 2.9, 19]).all()


def test_frequencies_need_all_coordinates():
    u = pinn.Field("u", pinn.Box(x=(0, 1), y=(0, 1)), net=pinn.SIREN(8, 1, frequency={"x": 3}))
    with pytest.raises(ValueError, match=r"SIREN: frequency: expected a number for each of x, y .* got \{'x': 3\}"):
        pinn.Problem(u, [pinn.Interior(lambda u: u.x, n=4)])


def test_a_network_with_a_singular_term_is_saved_and_read(tmp_path):
    domain = pinn.Interval("x", 0, 1)
    u = pinn.Field("u", domain, net=pinn.MLP(4, 1, enrich=lambda x: lg.sqrt(x)), boundary=pinn.Hard(0, on="x_min"))
    problem = pinn.Problem(u, [pinn.Interior(lambda u, x: u.x - 1.5 * lg.sqrt(x), n=40, sampler="grid")])
    truth = pinn.references.exact(domain, u=lambda x: x**1.5)
    sol = problem.solve(pinn.LeastSquares(5), reference=truth)
    assert sol.errors.l2["u"][0] < 1e-6
    sol.save(tmp_path / "u.safetensors")
    again = pinn.Solution.load(tmp_path / "u.safetensors")
    x = np.linspace(0.1, 1, 7)
    assert np.array_equal(again(x), sol(x))


def test_least_squares_leaves_other_weights_as_they_are():
    u = pinn.Field("u", pinn.Interval("x", 0, 1), net=pinn.SIREN(20, 1, frequency=4))
    conditions = [
        pinn.Interior(lambda u: u.xx - u, n=40, sampler="grid"),
        pinn.Dirichlet(1, on="x_min"),
        pinn.Boundary(lambda u: u.n - u, on="x_max", n=1),
    ]
    problem = pinn.Problem(u, conditions)
    before = problem.system().surrogates[0].net[1].hidden[0].weight.detach().numpy()
    truth = pinn.references.exact(u.domain, u=lambda x: np.exp(x))
    sol = problem.solve(pinn.LeastSquares(4), reference=truth)
    assert np.array_equal(sol.run.modules[0].net[1].hidden[0].weight.detach().numpy(), before)
    assert sol.errors.l2["u"][0] < 1e-9


def test_the_mean_of_stochastic_laplacians_is_the_laplacian():
    cube = pinn.Box(x=(0, 1), y=(0, 1), z=(0, 1))
    u = pinn.Field("u", cube, net=pinn.MLP(8, 2))
    exact = pinn.Interior(lambda u: u.lap, n=1)
    guess = pinn.Stochastic(lambda u, lap: lap(u), n=1, probes=8)
    problem = pinn.Problem(u, [exact, guess])
    problem.sizes = [[1.0], [1.0]]
    system = problem.system()
    point = lg.full((1, 3), 0.3, dtype=lg.float64)
    assert set(np.unique(problem.draw(np.random.default_rng(0))[1]["signs"])) == {-1.0, 1.0}
    every = lg.tensor(np.stack(np.meshgrid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]), -1).reshape(1, 8, 3))
    truth = float(system(0, {"points": point}))
    assert float(system(1, {"points": point, "signs": every})) == pytest.approx(truth, rel=1e-12)
    one = float(system(1, {"points": point, "signs": every[:, :1].expand(1, 8, 3)}))
    assert one != pytest.approx(truth, rel=1e-3)


def test_probes_are_at_least_one():
    with pytest.raises(ValueError, match="probes: expected at least 1, got 0"):
        pinn.Stochastic(lambda u, lap: lap(u), probes=0)
    clock = pinn.Field("u", pinn.Time("t", 0, 1), pinn.MLP(3, 1))
    with pytest.raises(ValueError, match="stochastic: expected coordinates of space, over which lap runs"):
        pinn.Problem(clock, pinn.Stochastic(lambda u, lap: lap(u), n=4))
    line = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(3, 1))
    with pytest.raises(TypeError, match=r"lap: expected a field, or an expression of some, got 1.0"):
        pinn.Problem(line, pinn.Stochastic(lambda u, lap: lap(1.0) + u, n=4))


@pytest.mark.parametrize("points", [pinn.RAD(12, every=1), pinn.R3(every=1), pinn.Fresh(1)])
def test_stochastic_equations_get_new_points_with_directions(points):
    square = pinn.Box(x=(0, 1), y=(0, 1))
    u = pinn.Field("u", square, net=pinn.MLP(4, 1), boundary=pinn.Hard(0))
    sol = pinn.Problem(u, [pinn.Stochastic(lambda u, lap: lap(u) + 1, n=12)]).solve(pinn.Adam(2, points=points))
    assert sol.run.reasons == ["all 2 steps are done"]

"""Numbers in a problem that is solved for all of their values at once."""

import numpy as np
import pytest

import leafgrad_pinn as pinn

LINE = pinn.Interval("x", 0, 1)
DOMAIN = LINE * pinn.Parameter("mu", 1, 20)


@pytest.fixture(scope="module")
def solution():
    u = pinn.Field("u", DOMAIN, net=pinn.MLP(8, 1), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, pinn.Interior(lambda u, mu: u.lap + mu, n=128))
    exact = pinn.references.exact(DOMAIN, u=lambda x, mu: mu * x * (1 - x) / 2)
    return problem.solve(pinn.LevenbergMarquardt(13), reference=exact)


@pytest.mark.slow
def test_laplacians_edges_and_hard_values_leave_a_parameter_out(solution):
    assert solution.errors.l2["u"][0] < 1e-3
    assert DOMAIN.edges == tuple(LINE.edges)
    assert np.abs(solution(x=np.array([0.0, 1.0]), mu=7.0)).max() == 0


def test_a_solution_at_a_value_is_a_function_of_the_other_coordinates(solution):
    x = np.linspace(0, 1, 5)
    assert np.array_equal(solution(mu=3)(x), solution(x, 3.0))
    assert np.array_equal(solution(mu=3)(x=x), solution(x, 3.0))


def test_integrals_take_a_value_of_each_parameter(solution):
    assert solution.integral(lambda u: u, mu=6) == pytest.approx(0.5, rel=1e-2)
    assert solution.integral(lambda u: u.n, on="x_max", mu=6) == pytest.approx(-3, rel=1e-2)
    with pytest.raises(ValueError, match="a value of the parameter mu"):
        solution.integral(lambda u: u)


def test_files_keep_parameters(solution, tmp_path):
    solution.save(tmp_path / "u.safetensors")
    loaded = pinn.Solution.load(tmp_path / "u.safetensors")
    assert repr(loaded.domain) == repr(DOMAIN)
    assert loaded(mu=3)(0.5) == solution(0.5, 3.0)


def test_initial_values_may_be_parameters():
    domain = pinn.Time("t", 0, 1) * pinn.Parameter("a", -1, 1)
    u = pinn.Field("u", domain, net=pinn.MLP(8, 1), initial=pinn.Hard(lambda a: a))
    problem = pinn.Problem(u, pinn.Interior(lambda u: u.t + u, n=128))
    exact = pinn.references.exact(domain, u=lambda a, t: a * np.exp(-t))
    assert problem.solve(pinn.LevenbergMarquardt(13), reference=exact).errors.l2["u"][0] < 1e-2


def test_points_on_edges_and_at_the_start_are_drawn_from_the_whole_range():
    domain = LINE * pinn.Time("t", 0, 2) * pinn.Parameter("mu", 5, 7)
    assert domain.names == ("x", "mu", "t")
    rng = np.random.default_rng(0)
    points, normals = domain.boundary(64, ["x_max"], "uniform", rng)
    assert (points[:, 0] == 1).all()
    assert normals.shape == (64, 1)
    assert np.ptp(points[:, 1:], axis=0) == pytest.approx([2, 2], abs=0.5)
    begun = domain.start(64, "uniform", rng)
    assert (begun[:, 2] == 0).all()
    assert np.ptp(begun[:, 1]) > 1


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: pinn.Parameter("a", 2, 1), ValueError, "finite low before a finite high"),
        (lambda: pinn.Parameter(3, 1, 2), TypeError, "name: expected a string"),
        (lambda: pinn.Parameter("a", 1, 2) * pinn.Time("t", 0, 1), TypeError, "parameters come last"),
        (lambda: DOMAIN * pinn.Parameter("mu", 1, 2), ValueError, "another name"),
        (lambda: DOMAIN * LINE, TypeError, "shapes first"),
    ],
)
def test_products_that_make_no_domain_are_errors(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


def test_values_outside_and_parameters_as_edges_are_errors(solution, tmp_path):
    with pytest.raises(ValueError, match="mu: expected a value of"):
        solution(mu=30)
    with pytest.raises(ValueError, match="expected edges of the domain"):
        pinn.Problem(solution.fields[0], pinn.Boundary(lambda u: u, on="mu_min"))
    with pytest.raises(ValueError, match="it has parameters"):
        solution.to_vtu(tmp_path / "u.vtu")

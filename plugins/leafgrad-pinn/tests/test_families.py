"""Families of problems: input functions, operators, and their solutions."""

import warnings

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad.autograd import grad

LINE = pinn.Interval("x", 0, 1)
FAMILY = LINE * pinn.GaussianField("f", length=0.3, sensors=33)
(F,) = FAMILY.functions


def field(family=FAMILY, width=16, **options):
    return pinn.Field("u", family, net=pinn.DeepONet(width, 1), boundary=pinn.Hard(0, on="x_min"), **options)


def antiderivative(x, f, steps):
    fine = np.linspace(0, 1, steps * (len(x) - 1) + 1)
    middles = (fine[1:] + fine[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(f(middles)) / len(middles)])[::steps]


@pytest.fixture(scope="module")
def solution():
    problem = pinn.Problem(field(), pinn.Interior(lambda u, f: u.x - f, n=600))
    unseen = pinn.references.family(FAMILY, u=antiderivative, n=10, points=21, steps=16)
    return problem.solve(pinn.LBFGS(160), reference=unseen)


@pytest.mark.compiled
def test_a_deeponet_learns_the_antiderivative_from_its_equation_alone(solution):
    assert solution.errors.l2["u"][0] < 0.05
    assert "10 unseen functions" in str(solution.errors)
    assert 1e-9 < solution.reference.floor["u"] < 1e-3
    of_each = [solution.unseen(i).errors.l2["u"][0] for i in range(10)]
    assert np.mean(of_each) == pytest.approx(solution.errors.l2["u"][0], rel=1e-12)


def test_errors_of_a_family_and_of_its_problems_are_estimated(solution):
    """By functions that no training has seen, and no reference either."""
    assert solution.errors.estimated["u"] == pytest.approx(solution.errors.l2["u"][0], rel=1)
    one = solution(f=lambda x: np.cos(2 * x))
    x = np.linspace(0, 1, 101)
    exact = np.sin(2 * x) / 2
    error = np.linalg.norm(one(x) - exact) / np.linalg.norm(exact)
    assert one.errors.estimated["u"] == pytest.approx(error, rel=0.2)
    with pytest.raises(ValueError, match=r"deviation: expected a solution as it was solved.* got one of a family"):
        one.deviation(x, by="residuals")


def test_one_problem_of_a_family_is_a_solution(solution, tmp_path):
    x = np.linspace(0, 1, 9)
    one = solution(f=lambda x: np.cos(2 * x))
    assert np.abs(one(x) - np.sin(2 * x) / 2).max() < 0.03
    assert np.array_equal(solution(x, f=lambda x: np.cos(2 * x)), one(x))
    assert np.array_equal(solution(f=np.cos(2 * F.axes["x"]))(x), one(x))
    left = one.evaluate(lambda u, f: u.x - f, x)
    assert np.abs(left).max() < 0.2
    assert np.abs(one.evaluate(lambda f: f, x) - np.cos(2 * x)).max() < 1e-6
    assert one.integral(lambda u: u.x) == pytest.approx(one(1.0) - one(0.0), abs=1e-9)
    one.plot(tmp_path / "one.png")
    solution.unseen(3).plot(tmp_path / "unseen.png")
    with pytest.raises(ValueError, match="save: expected the solution of the family"):
        one.save(tmp_path / "one.safetensors")


def test_files_keep_families(solution, tmp_path):
    solution.save(tmp_path / "u.safetensors")
    loaded = pinn.Solution.load(tmp_path / "u.safetensors")
    assert loaded(f=np.cos)(0.5) == solution(f=np.cos)(0.5)
    assert loaded.errors.l2 == solution.errors.l2
    with pytest.warns(UserWarning, match="f is unlike"):
        loaded(f=lambda x: np.sin(60 * x))
    with pytest.raises(ValueError, match="f: expected a distribution"):
        pinn.references.family(loaded.domain, u=antiderivative)


def test_a_function_unlike_the_drawn_ones_is_told(solution):
    with pytest.warns(UserWarning, match=r"f is unlike .* % of it is in none of them|f is unlike .*none of them"):
        solution(f=lambda x: np.sin(60 * x))
    with pytest.warns(UserWarning, match="standard deviations from their mean"):
        solution(f=lambda x: 40 + 0 * x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for row in F.draw(200, np.random.default_rng(5)):
            solution(f=row)


def test_what_is_wrong_with_a_family_is_said(solution):
    with pytest.raises(ValueError, match=r"expected an operator, such as DeepONet\(64, 3\)"):
        pinn.Field("u", FAMILY, net=pinn.MLP(8, 1))
    with pytest.raises(ValueError, match="its domain has no input functions, got DeepONet"):
        pinn.Field("u", LINE, net=pinn.DeepONet(8, 1))
    with pytest.raises(TypeError, match=r"expected one problem of the family, as sol\(f=\.\.\.\) gives it"):
        solution(0.5)
    with pytest.raises(TypeError, match=r"evaluate: expected one problem of the family"):
        solution.evaluate(lambda u: u.x, 0.5)
    with pytest.raises(ValueError, match=r"f: expected values at its sensors, of shape \(33,\)"):
        solution(f=np.zeros(7))
    with pytest.raises(ValueError, match="f: expected one function, got 2"):
        solution(f=np.zeros((2, 33)))
    with pytest.raises(ValueError, match="f: expected finite values"):
        solution(f=lambda x: np.full_like(x, np.nan))
    with pytest.raises(AttributeError, match="expected at most 2 derivatives of an input function"):
        pinn.Problem(field(), pinn.Interior(lambda u, f: u.x - f.xxx))
    with pytest.raises(TypeError, match="input functions come last"):
        pinn.GaussianField("f", length=1) * LINE
    with pytest.raises(ValueError, match="there is no field or coordinate 'g'; there are u, x, f"):
        pinn.Problem(field(), pinn.Interior(lambda u, g: u.x - g))
    in_time = LINE * pinn.Time("t", 0, 1) * pinn.GaussianField("f", length=0.3)
    problem = pinn.Problem(field(in_time), [pinn.Interior(lambda u, f: u.t - f), pinn.Initial(0)])
    with pytest.raises(ValueError, match="windows: expected one problem"):
        problem.solve(pinn.Adam(1), windows=2)
    problem = pinn.Problem(field(), pinn.Interior(lambda u, f: u.x - f))
    with pytest.raises(ValueError, match="reference: expected one for input functions f"):
        problem.solve(pinn.Adam(1), reference=pinn.references.exact(LINE, u=lambda x: x))
    for wrong, words in (({}, "expected one of length"), ({"length": -1}, "a positive number"),
                         ({"length": 1, "sensors": 5}, "at least 6"), ({"length": 1, "degree": 2}, "one of 1, 3, 5"),
                         ({"length": 1, "over": "y"}, "over: expected coordinates among x"),
                         ({"power": lambda k2: -k2}, "power: expected a variance")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            LINE * pinn.GaussianField("f", **wrong)


@pytest.mark.parametrize("periodic", [False, True])
def test_between_sensors_a_function_has_two_derivatives(periodic):
    (f,) = (pinn.Interval("x", 0, 2, periodic=periodic) * pinn.GaussianField("f", length=0.3)).functions
    x = lg.tensor(np.concatenate([np.random.default_rng(0).random(50) * 2, [0, 2]]), requires_grad=True)
    value = f.at(lg.tensor(f.values(lambda x: np.sin(np.pi * x))), {"x": x})
    (first,) = grad(value.sum(), [x], create_graph=True)
    (second,) = grad(first.sum(), [x])
    for found, exact, error in ((value, np.sin, 1e-8), (first, np.cos, 1e-6), (second, lambda y: -np.sin(y), 1e-4)):
        assert np.abs(found.detach().numpy() / np.pi ** (0 if found is value else 1 if found is first else 2)
                      - exact(np.pi * x.detach().numpy())).max() < error  # fmt: skip


def test_gaussian_fields_have_the_covariance_that_they_say():
    rng, n = np.random.default_rng(0), 5000
    for periodic in (False, True):
        (f,) = (pinn.Interval("x", 0, 1, periodic=periodic) * pinn.GaussianField("f", length=0.2, std=2)).functions
        draws, x = f.draw(n, rng), f.axes["x"]
        apart = np.abs(x[:, None] - x)
        known = sum(np.exp(-((apart + k) ** 2) / 0.08) for k in (range(-2, 3) if periodic else [0]))
        assert np.abs(draws.T @ draws / n - 4 * known / known[0, 0]).max() < 0.3
    box = pinn.Box(x=(0, 1), y=(0, 1)) * pinn.GaussianField("a", power=lambda k2: 1 / (k2 + 9) ** 2, sensors=17)
    draws, k = box.functions[0].draw(n, rng).reshape(n, 17, 17), np.pi * np.arange(17)
    waves = np.where(k, 2, 1)[:, None] * np.cos(k[:, None] * np.linspace(0, 1, 17)) ** 2
    known = waves.T @ (1 / (k[:, None] ** 2 + k**2 + 9) ** 2) @ waves
    assert np.abs(draws.var(0) / known - 1).max() < 0.12


def test_initial_values_may_be_input_functions_exactly_or_softly():
    ring = pinn.Interval("x", 0, 1, periodic=True) * pinn.Time("t", 0, 1) * pinn.GaussianField("f", length=0.3)
    (f,) = ring.functions
    net = pinn.DeepONet(8, 1, embed=pinn.Periodic(x=2))
    u = pinn.Field("u", ring, net=net, initial=pinn.Hard(lambda f: f))
    found = {}
    for mode in ("auto", "forward", "jet"):
        problem = pinn.Problem(u, pinn.Interior(lambda u: u.t + u * u.x - 0.01 * u.xx, n=32), derivatives=mode)
        found[mode] = problem.system().residuals(0, problem.some()[0])[0].detach().numpy()
        assert np.allclose(found[mode], found["auto"], rtol=0, atol=1e-12)
    soft = pinn.Field("u", ring, net=net)
    conditions = [pinn.Interior(lambda u: u.t, n=32), pinn.Initial(lambda f: f, n=32)]
    problem = pinn.Problem(soft, conditions)
    batch = problem.some()[1]
    u0 = problem.system().fields(problem.system().points(batch).columns)["u"]
    residual = problem.system().residuals(1, batch)[0][:, 0] * problem.sizes[1][0]
    exact = [f.function(row)(x) for row, x in zip(batch[f.key].numpy(), batch["points"][:, 0].numpy(), strict=True)]
    assert np.allclose((u0 - residual).detach().numpy(), np.array(exact), atol=1e-12)


def test_an_initial_value_may_differentiate_an_input_function_and_is_not_saved(tmp_path):
    domain = LINE * pinn.Time("t", 0, 1) * F
    u = pinn.Field("u", domain, pinn.DeepONet(4, 1), initial=pinn.Hard(lambda x, f: pinn.d(f, x)))
    sol = pinn.Problem(u, pinn.Interior(lambda u: u.t, n=8)).solve(pinn.Adam(1))
    assert sol(f=lambda x: np.cos(2 * x))(0.3, 0.0) == pytest.approx(-2 * np.sin(0.6), abs=1e-4)
    with pytest.raises(ValueError, match=r"save: .* expected .* and no derivatives of f"):
        sol.save(tmp_path / "u.safetensors")


def test_functions_may_be_samples_and_several():
    x = np.linspace(0, 1, 21)
    rows = np.array([[a * np.sin(k * np.pi * x) for k in (1, 2)] for a in (1, 2, 3)]).reshape(6, 21)
    family = LINE * pinn.Sampled("f", {"x": x}, rows) * pinn.GaussianField("g", length=0.5, sensors=11)
    problem = pinn.Problem(field(family), pinn.Interior(lambda u, f, g: u.x - f * g, n=64))
    for points in (pinn.RAD(every=2), pinn.R3(every=2)):
        sol = problem.solve(pinn.Adam(5, points=points), seeds=1)
        one = sol(f=rows[2], g=lambda x: 1 + 0 * x)
        assert np.isfinite(one(0.5))
    drawn = problem.draw(np.random.default_rng(0))[0]["function f"]
    assert all((row == rows).all(1).any() for row in drawn)
    with pytest.raises(TypeError, match=r"expected input functions f, g, as sol\(f=\.\.\.\), got g"):
        sol(g=np.sin)


@pytest.mark.compiled
def test_residuals_of_functions_that_were_not_trained_tell_what_is_not_solved():
    problem = pinn.Problem(field(), pinn.Interior(lambda u, f: u.x - f, n=20))
    run = problem.solve(pinn.LBFGS(300)).run
    assert run.loss < 1e-3
    assert "not solved: the residuals of interior" in run.doubts


def test_stages_of_least_squares_take_operators():
    problem = pinn.Problem(field(width=6), pinn.Interior(lambda u, f: u.x - f, n=100))
    for stage in (pinn.LeastSquares(2),):
        history = problem.solve(stage).run.history
        assert history[-1]["loss"] < history[0]["loss"] if len(history) > 1 else history[0]["loss"] < 1


@pytest.mark.compiled
def test_families_in_time_are_trained_with_exact_initial_values():
    ring = (
        pinn.Interval("x", 0, 1, periodic=True) * pinn.Time("t", 0, 1) * pinn.GaussianField("f", length=0.5, sensors=17)
    )
    net = pinn.DeepONet(8, 1, embed=pinn.Periodic(x=2))
    u = pinn.Field("u", ring, net=net, initial=pinn.Hard(lambda f: f))
    problem = pinn.Problem(u, pinn.Interior(lambda u, f: u.t + u.x, n=128))
    moved = pinn.references.family(ring, u=lambda x, t, f: f((x[:, None] - t) % 1.0), n=3, points=9)
    sol = problem.solve(pinn.LBFGS(60), reference=moved)
    assert sol.errors.l2["u"][0] < 0.6
    x = np.linspace(0, 1, 17)
    row = ring.functions[0].draw(1, np.random.default_rng(1))[0]
    assert np.abs(sol(f=row)(x, 0.0) - row).max() < 1e-12


BOX = pinn.Box(x=(0, 1), y=(0, 1)) * pinn.GaussianField("a", length=0.5, map=np.exp, sensors=9)


@pytest.mark.parametrize("net", [pinn.DeepONet(6, 1), pinn.FNO(4, 2, modes=2)])
def test_integrals_of_a_family_are_those_of_each_function(net):
    """A batch of functions with many points each, beside one function at a time."""
    u = pinn.Field("u", BOX, net=net, boundary=pinn.Hard(0))
    energy = pinn.Energy(lambda u, a: a * (u.x**2 + u.y**2) / 2 - u, least=-1, n=3, order=2, pieces=8)
    problem = pinn.Problem(u, energy)
    system, (batch,) = problem.system(), problem.some()
    together = system.residuals(0, batch)[0].detach().numpy()
    for k in range(3):
        alone = system.residuals(0, {name: t[k : k + 1] for name, t in batch.items()})[0].detach().numpy()
        assert np.allclose(together[k], alone[0], rtol=1e-12)
    rows = system.points(batch).columns["a"]
    x = lg.tensor(np.random.default_rng(0).random((2, 12)))
    of_each = [system.fields({"x": x[0, 4 * k : 4 * k + 4], "y": x[1, 4 * k : 4 * k + 4], "a": rows[k : k + 1]})["u"]
               for k in range(3)]  # fmt: skip
    found = system.fields({"x": x[0], "y": x[1], "a": rows})["u"]
    assert np.allclose(found.detach().numpy(), lg.cat(of_each).detach().numpy(), rtol=1e-12)


@pytest.mark.slow
def test_an_fno_lowers_an_energy_and_is_kept_in_files(tmp_path):
    u = pinn.Field("u", BOX, net=pinn.FNO(4, 2, modes=2), boundary=pinn.Hard(0), scale=0.05)
    energy = pinn.Energy(lambda u, a: a * (u.x**2 + u.y**2) / 2 - u, least=-0.2, n=2, order=2, pieces=8)
    sol = pinn.Problem(u, energy).solve(pinn.Adam(60, 1e-2, points=pinn.Fresh(1)))
    plate = sol(a=np.ones((9, 9)))
    assert plate(0.5, 0.5) == pytest.approx(0.0737, rel=0.2)
    energy = plate.integral(lambda u, a: a * (u.x**2 + u.y**2) / 2 - u)
    assert -0.0176 < energy < -0.9 * 0.0176
    sol.save(tmp_path / "u.safetensors")
    assert pinn.Solution.load(tmp_path / "u.safetensors")(a=np.ones((9, 9)))(0.3, 0.4) == plate(0.3, 0.4)
    with pytest.raises(AttributeError, match=r"u\.lap: expected at most 1 derivatives of a field"):
        plate.evaluate(lambda u: u.lap, 0.5, 0.5)


def test_an_fno_refuses_what_its_grid_does_not_give():
    u = pinn.Field("u", BOX, net=pinn.FNO(4, 1, modes=2), boundary=pinn.Hard(0))
    with pytest.raises(AttributeError, match=r"u.lap: expected at most 1 derivatives .* take an Energy"):
        pinn.Problem(u, pinn.Interior(lambda u: u.lap + 1, n=8))
    with pytest.raises(AttributeError, match=r"u\.xy: expected at most 1"):
        pinn.Problem(u, pinn.Interior(lambda u: u.x.y, n=8))
    with pytest.raises(ValueError, match=r"d\(\.\.\., x\): expected derivatives of fields alone"):
        pinn.Problem(u, pinn.Interior(lambda u, a, x: pinn.d(a * u.x, x), n=8))
    in_time = LINE * pinn.Time("t", 0, 1) * pinn.GaussianField("f", length=0.5, sensors=9)
    with pytest.raises(ValueError, match="FNO: expected input functions of all coordinates, x, t, on one grid"):
        pinn.Problem(pinn.Field("u", in_time, net=pinn.FNO(4, 1, modes=2)), pinn.Interior(lambda u: u.t, n=8))
    turned = BOX * pinn.GaussianField("b", over="y x", length=0.5, sensors=9)
    with pytest.raises(ValueError, match=r"x, y, on one grid, got .*'b', 'y x'.* the same sensors in one order"):
        pinn.Problem(pinn.Field("u", turned, net=pinn.FNO(4, 1, modes=2)), pinn.Interior(lambda u: u.x, n=8))
    with pytest.raises(ValueError, match=r"energy: order: expected two points .* order=2, pieces=8, .* got 9 for 8"):
        pinn.Problem(u, pinn.Energy(lambda u: u.x**2 - u, least=-1, n=2, order=9))
    with pytest.raises(ValueError, match="FNO: activation: expected none"):
        pinn.FNO(activation="sin")
    with pytest.raises(ValueError, match="DeepONet: branch: expected a network without embed"):
        pinn.DeepONet(branch=pinn.MLP(4, 1, embed=pinn.Fourier(4)))
    with pytest.raises(TypeError, match="DeepONet: trunk: expected a network's recipe"):
        pinn.DeepONet(trunk=4)


def test_an_fno_on_a_ring_has_one_value_at_both_ends():
    ring = pinn.Interval("x", 0, 1, periodic=True) * pinn.GaussianField("f", length=0.3, sensors=17)
    u = pinn.Field("u", ring, net=pinn.FNO(4, 2, modes=3))
    problem = pinn.Problem(u, pinn.Energy(lambda u, f: (u.x**2 + u**2) / 2 - f * u, least=-9, n=2, order=2, pieces=16))
    sol = problem.solve(pinn.Adam(2))
    one = sol(f=lambda x: np.cos(2 * np.pi * x))
    assert one(0.0) == one(1.0)


def test_what_is_wrong_with_sensors_is_said():
    x = np.linspace(0, 1, 9)
    for words, wrong in {
        "equally spaced": {"axes": {"x": x**2}},
        "at least 6 places": {"axes": {"x": x[:5]}},
        "std: expected a positive number": {"axes": {"x": x}, "std": 0.0},
        r"components: expected shape \(9, r\)": {"axes": {"x": x}, "components": np.ones((3, 2))},
        "components: expected finite numbers": {"axes": {"x": x}, "components": np.zeros((9, 2))},
        "expected a name": {"axes": {"x": x}, "name": "a b"},
    }.items():
        with pytest.raises(ValueError, match=words):
            pinn.InputFunction(**{"name": "f", **wrong})
    with pytest.raises(
        ValueError, match="f: x: expected sensors from 0 to 1, as the domain has it, got ones from 0 to 2"
    ):
        LINE * pinn.Sampled("f", {"x": 2 * x}, np.ones((2, 9)))
    with pytest.raises(ValueError, match=r"f: expected x from 0 to 1, got 0 to 1\.5"):
        F.function(np.ones(33))(np.array([0, 1.5]))
    assert np.allclose(pinn.Sampled("f", {"x": x}, np.ones((9, 9))).draw(2, np.random.default_rng(0)), 1)
    ring = pinn.Interval("x", 0, 1, periodic=True) * pinn.InputFunction("f", {"x": x})
    with pytest.raises(ValueError, match="f: expected the same values at both ends of x"):
        ring.functions[0].values(x)


def test_data_of_a_family_have_their_functions():
    rows, x = F.draw(40, np.random.default_rng(0)), np.linspace(0, 1, 40)
    known = np.array(
        [np.trapezoid(row[: k + 1], F.axes["x"][: k + 1]) for row, k in zip(rows, range(40), strict=False)]
    )
    data = pinn.Data({"x": x}, {"u": known}, functions={"f": rows})
    equations = [data, pinn.At(data, lambda u, f: u.x - f)]
    batches = pinn.Problem(field(), equations).draw(np.random.default_rng(1))
    assert all(np.array_equal(batch["function f"], rows) for batch in batches)
    with pytest.raises(ValueError, match=r"data: functions: expected those of the family, f, .* got none"):
        pinn.Problem(field(), pinn.Data({"x": x}, {"u": known}))
    with pytest.raises(ValueError, match="functions: f: expected one for each of 40 points, got 2"):
        pinn.Problem(field(), pinn.Data({"x": x}, {"u": known}, functions={"f": rows[:2]}))
    u = pinn.Field("u", LINE, net=pinn.MLP(4, 1))
    with pytest.raises(ValueError, match=r"functions: expected those of the family, none, .* got f"):
        pinn.Problem(u, pinn.Data({"x": x}, {"u": known}, functions={"f": rows}))

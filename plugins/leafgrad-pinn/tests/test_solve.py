"""Stages reach what they should; runs resume to the same bits; a nan is named; files are read without the script."""

from __future__ import annotations

import csv
import math
import subprocess
import sys

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad.utils import Checkpoints

LINE = pinn.Interval("x", 0, 1)
EXACT = pinn.references.exact(LINE, u=lambda x: np.sin(np.pi * x))


def poisson(**options):
    u = pinn.Field("u", LINE, net=pinn.MLP(8, 1), boundary=pinn.Hard(0))
    equation = pinn.Interior(lambda u, x: u.xx + math.pi**2 * lg.sin(math.pi * x), n=40, sampler="grid")
    return pinn.Problem(u, [equation]), {"reference": EXACT, **options}


def solve(*stages, **options):
    problem, options = poisson(**options)
    return problem.solve(*stages, **options)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("stages", "error"),
    [
        pytest.param([pinn.GaussNewton(30)], 1e-5, marks=pytest.mark.slow),
        pytest.param([pinn.Adam(300, lr=0.02)], 5e-2, marks=pytest.mark.slow),
        ([pinn.Adam(20, lr=0.02), pinn.LBFGS(200)], 5e-4),
        ([pinn.Adam(60, points=pinn.Fresh(20)), pinn.LBFGS(100, points=pinn.RAD(every=50))], 1e-2),
    ],
)
def test_stages_solve(stages, error):
    sol = solve(*stages)
    assert sol.errors.l2["u"][0] < error
    assert len(sol.run.reasons) == len(stages)


@pytest.mark.slow
def test_soft_conditions_solve_too():
    u = pinn.Field("u", LINE, net=pinn.MLP(8, 1))
    equation = pinn.Interior(lambda u, x: u.xx + math.pi**2 * lg.sin(math.pi * x), n=40, sampler="grid")
    sides = [pinn.Dirichlet(0, "x_min", weight=10), pinn.Neumann(-math.pi, "x_max", weight=10)]
    sol = pinn.Problem(u, [equation, *sides]).solve(pinn.GaussNewton(40), reference=EXACT)
    assert sol.errors.l2["u"][0] < 1e-3


@pytest.mark.slow
def test_two_fields_on_one_network():
    u, v = pinn.fields("u v", pinn.Time("t", 0, 2), pinn.MLP(8, 1), initial={"u": pinn.Hard(0), "v": pinn.Hard(1)})
    system = pinn.Interior(lambda u, v: (u.t - v, v.t + u), n=32, sampler="grid")
    truth = pinn.references.exact(pinn.Time("t", 0, 2), u=lambda t: np.sin(t), v=lambda t: np.cos(t))
    sol = pinn.Problem([u, v], [system]).solve(pinn.GaussNewton(40), reference=truth)
    assert max(sol.errors.l2["u"][0], sol.errors.l2["v"][0]) < 1e-3
    assert set(sol(np.linspace(0, 2, 3))) == {"u", "v"}


def test_unknowns_are_found():
    rate = pinn.Unknown("rate", 0.5, positive=True)
    t = np.linspace(0, 1, 30)
    u = pinn.Field("u", pinn.Time("t", 0, 1), pinn.MLP(6, 1))
    data = pinn.Data({"t": t}, {"u": np.exp(-2 * t)})
    problem = pinn.Problem(u, [data, pinn.At(data, lambda u: u.t + rate * u)], unknowns=[rate])
    sol = problem.solve(pinn.GaussNewton(26))
    assert abs(sol.unknowns["rate"] - 2) < 1e-3
    with pytest.raises(KeyError, match="expected one of the unknowns rate, got 'rat'"):
        sol.unknowns["rat"]
    with pytest.raises(RuntimeError, match=r"value only in equations .* sol.unknowns\['rate'\]"):
        rate * 2


def test_an_unknown_must_be_given():
    rate = pinn.Unknown("rate", 0.5)
    u = pinn.Field("u", LINE, pinn.MLP(6, 1))
    with pytest.raises(RuntimeError, match=r"give it to Problem\(unknowns=...\)"):
        pinn.Problem(u, [pinn.Interior(lambda u: u.x - rate * u)])


def test_reasons_are_words():
    assert solve(pinn.Adam(5)).run.reasons == ["all 5 steps are done"]
    assert "lowered the loss by less than 0.9 of it, after" in solve(pinn.GaussNewton(99, tolerance=0.9)).run.reasons[0]


def test_a_nan_goes_back_and_names_the_term():
    u = pinn.Field("u", LINE, net=pinn.MLP(4, 1))
    good = pinn.Interior(lambda u: u.x, n=8, name="good")
    bad = pinn.Interior(lambda u: (u - u.detach() * 0 + 100).log() + (u.x * 1e4).exp(), n=8, name="bad")
    sol = pinn.Problem(u, [good, bad]).solve(pinn.Adam(50, lr=30.0))
    assert "bad is" in sol.run.reasons[0]
    assert "good" not in sol.run.reasons[0]
    assert "went back to the state after step" in sol.run.reasons[0]


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_what_is_kept_after_a_nan_has_the_loss_that_is_said(steps):
    u = pinn.Field("u", LINE, net=pinn.MLP(4, 1))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.x + (u * u).exp(), n=8)])
    sol = problem.solve(pinn.Adam(1), pinn.Adam(steps, lr=1e3), pinn.LBFGS(2))
    _, reason = sol.run.reasons
    assert reason.startswith("interior is ")
    assert reason.endswith(f" at step {min(steps, 2)}: went back to the state after step 0")
    assert (sol.run.residuals["interior"]["sizes"] ** 2).mean() == pytest.approx(sol.run.loss)
    assert np.isfinite(sol(np.linspace(0, 1, 5))).all()


def test_causal_weights():
    domain = LINE * pinn.Time("t", 0, 1)
    u = pinn.Field("u", domain, pinn.MLP(6, 1), initial=pinn.Hard(lambda x: x * (1 - x)), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t - u.xx, n=64)])
    causal = pinn.Causal(epsilon=2.0, intervals=4)
    before = causal.before(np.array([0, 0, 1, 3]), np.array([1.0, 3.0, 5.0, 7.0]))
    assert before.tolist() == [0, 2, 7, 7]
    sol = problem.solve(pinn.Adam(30, weights=pinn.Causal(intervals=8)))
    assert sol.run.history[-1]["loss"] < sol.run.history[1]["loss"]
    with pytest.raises(ValueError, match="Causal: the domain has no time"):
        solve(pinn.Adam(3, weights=causal))


STAGES = {
    "Adam": [pinn.Adam(60, points=pinn.RAD(every=30))],
    "LBFGS": [pinn.LBFGS(800, points=pinn.Fresh(every=75))],
    "SSBroyden": [pinn.SSBroyden(80, weights=pinn.RBA(), hold=15)],
    "GaussNewton": [pinn.GaussNewton(15, tolerance=0)],
    "conjugate gradients": [pinn.LevenbergMarquardt(20, tolerance=0, solver="cg", weights=pinn.SelfAdaptive())],
}


@pytest.mark.every(3)
@pytest.mark.parametrize("name", STAGES)
def test_a_stopped_run_goes_on(name, tmp_path, monkeypatch):
    from leafgrad_pinn import training
    from leafgrad_pinn.stages import first_order, quasi_newton

    monkeypatch.setattr(first_order.Descent, "look", 20)
    monkeypatch.setattr(quasi_newton.SSBroydenWorker, "look", 20)
    whole = solve(*STAGES[name], out=tmp_path / "whole")
    save, count = training.Training._save, [0]

    def stop(self, number, worker):
        save(self, number, worker)
        count[0] += 1
        if count[0] == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(training.Training, "_save", stop)
    with pytest.raises(KeyboardInterrupt):
        solve(*STAGES[name], out=tmp_path / "cut")
    resumed = solve(*STAGES[name], out=tmp_path / "cut", resume=True)
    histories = [[{k: v for k, v in row.items() if k != "seconds"} for row in s.run.history] for s in (whole, resumed)]
    assert histories[0] == histories[1]
    x = np.linspace(0, 1, 21)
    assert np.array_equal(whole(x), resumed(x))


def test_other_equations_and_values_are_not_resumed(tmp_path):
    def train(
        resume,
        equation=lambda u: u.t - u.xx,
        initial=lambda x: lg.sin(math.pi * x),
        value=0,
        a=1,
        measured=0.4,
        swapped=(0, 1),
        weighted=0,
        delta=0.1,
    ):
        domain = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
        u = pinn.Field("u", domain, pinn.MLP(3, 1), initial=pinn.Hard(initial))
        values, weights = np.append(np.linspace(0, 1, 39), measured), np.ones(40)
        values[[0, 1]], weights[weighted] = values[[*swapped]], 1e-6
        place = {"x": np.full(40, 0.5), "t": np.full(40, 1.0)}
        data = pinn.Data(place, {"u": values}, weights=weights, loss=delta and pinn.Huber(delta))
        conditions = [pinn.Interior(equation, n=4), pinn.Robin(value, a=a, b=1, n=4), data]
        return pinn.Problem(u, conditions).solve(pinn.Adam(1), out=tmp_path, resume=resume)

    train(False)
    assert train(True).run.reasons == ["all 1 steps are done"]
    for other in (
        {"equation": lambda u: u.t - 2 * u.xx},
        {"initial": lambda x: 2 * lg.sin(math.pi * x)},
        {"value": 1.0},
        {"a": 2.0},
        {"measured": 0.5},
        {"swapped": (1, 0)},
        {"weighted": 7},
        {"delta": 0.2},
        {"delta": None},
    ):
        with pytest.raises(ValueError, match=r"resume: .*: expected the same equations, values and data"):
            train(True, **other)


def test_one_value_of_a_table_tells_a_problem_from_another(tmp_path):
    def train(resume, k=None):
        values = np.sin(np.linspace(0, 1, 50))
        if k is not None:
            values[k] += 0.01
        table = pinn.Table({"x": np.linspace(0, 1, 50)}, values)
        u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(3, 1))
        equation = pinn.Interior(lambda u, x: u.xx - table(x), n=200)
        return pinn.Problem(u, equation).solve(pinn.Adam(1), out=tmp_path, resume=resume)

    train(False)
    train(True)
    for k in (0, 17, 31, 49):
        with pytest.raises(ValueError, match="resume: interior: expected the same equations, values and data"):
            train(True, k)


def few_or_many(x):
    return x if len(x) > 3 else 2 * x


def test_what_cannot_be_saved_is_an_error_before_the_training(tmp_path):
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(3, 1), boundary=pinn.Hard(few_or_many))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.xx, n=4)])
    with pytest.raises(ValueError, match="treats each point alike"):
        problem.solve(pinn.Adam(1), out=tmp_path / "a")
    (tmp_path / "file").write_text("x")
    problem, options = poisson()
    with pytest.raises(OSError, match="file"):
        problem.solve(pinn.Adam(1), out=tmp_path / "file" / "a", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_earlier_run_is_not_overwritten(tmp_path):
    sol = solve(pinn.Adam(5), out=tmp_path)
    with pytest.raises(
        FileExistsError, match=r"out: expected a folder without an earlier run, got .*; take another, or r"
    ):
        solve(pinn.Adam(5), out=tmp_path)
    assert solve(pinn.Adam(5), out=tmp_path, resume=True)(0.3) == sol(0.3)
    (tmp_path / "solution.safetensors").unlink()
    with pytest.raises(FileExistsError, match="earlier run"):
        solve(pinn.Adam(5), out=tmp_path)
    solve(pinn.Adam(5), out=tmp_path, seeds=[1])


def test_another_setup_is_not_resumed(tmp_path):
    solve(pinn.Adam(5), out=tmp_path)
    with pytest.raises(ValueError, match="resume: expected stages"):
        solve(pinn.Adam(6), out=tmp_path, resume=True)
    with pytest.raises(ValueError, match="expected a folder"):
        solve(pinn.Adam(6), resume=True)


@pytest.mark.parametrize(
    ("first", "second", "place"),
    [
        (lambda u, x: u.xx + 1, lambda u, x: u.xx + 1 - lg.relu(u - 0.2), {}),
        (lambda u, x: u.xx + 1, lambda u, x: u.xx + 1 - lg.relu(-0.2 - u), {}),
        (lambda u, x: u.xx + 1, lambda u, x: u.xx + 1, {"where": lambda x: x > 0.11}),
    ],
    ids=["contact", "from below", "region"],
)
def test_equations_that_differ_elsewhere_are_not_resumed(first, second, place, tmp_path):
    """Not at the fields and points of the start, but at large fields, and at points that are drawn later."""

    def go(equation, **options):
        where = {"where": lambda x: x > 0.1} | (place if options else {})
        u = pinn.Field("u", LINE, pinn.MLP(4, 1), boundary=pinn.Hard(0))
        law = pinn.Interior(equation, n=8, sampler="grid", **where)
        return pinn.Problem(u, [law]).solve(pinn.Adam(2), out=tmp_path, **options)

    go(first)
    with pytest.raises(ValueError, match="resume: interior: expected the same equations"):
        go(second, resume=True)


def test_history_is_csv(tmp_path):
    solve(pinn.Adam(30), out=tmp_path)
    with open(tmp_path / "seed0" / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    assert float(rows[-1]["error u"]) > 0
    assert rows[0]["error u"] == ""
    assert float(rows[3]["loss"]) == float(rows[3]["interior"])


@pytest.mark.slow
def test_seeds_and_dtypes():
    sol = solve(pinn.GaussNewton(5), seeds=2)
    assert len(set(sol.errors.l2["u"])) == 2
    assert "medians of 2 seeds" in str(sol.errors)
    assert next(solve(pinn.Adam(2), dtype=lg.float32).run.modules[0].parameters()).dtype is lg.float32


def test_the_floor_is_named():
    reference = pinn.Reference("rough", EXACT.axes, EXACT.fields, {"u": 0.5}, 1.0)
    assert "at the reference's floor" in str(solve(pinn.GaussNewton(5), reference=reference).errors)
    assert "floor" not in str(solve(pinn.GaussNewton(5)).errors)


def test_wrong_calls():
    problem, _ = poisson()
    with pytest.raises(ValueError, match="at least one stage"):
        problem.solve()
    with pytest.raises(TypeError, match="expected stages"):
        problem.solve(pinn.Adam)
    with pytest.raises(ValueError, match="reference: expected coordinates x and fields among u, got x and v"):
        problem.solve(pinn.Adam(1), reference=pinn.references.exact(LINE, v=lambda x: x))
    sol = problem.solve(pinn.Adam(1))
    assert not sol.errors.l2
    assert "estimate" in str(sol.errors)
    with pytest.raises(TypeError, match="expected the coordinates x"):
        sol(1.0, 2.0)
    with pytest.raises(ValueError, match="expected points inside"):
        sol(np.array([0.5, 2.0]))
    with pytest.raises(ValueError, match="plot: slices: expected x, got t"):
        sol.plot("x.png", slices={"t": [1]})
    with pytest.raises(ValueError, match="expected two coordinates"):
        sol.plot("x.png", slices={"x": [1]})


def test_a_solution_is_a_function_of_arrays():
    sol = solve(pinn.GaussNewton(10))
    x = np.linspace(0, 1, 70_000).reshape(2, -1)
    assert sol(x).shape == x.shape
    assert sol(x=0.5).shape == ()
    assert np.abs(sol(x) - np.sin(np.pi * x)).max() < 1e-2


SCRIPT = """
import sys, numpy as np, leafgrad_pinn as pinn
sol = pinn.Solution.load(sys.argv[1])
np.save(sys.argv[2], sol(np.linspace(-1, 1, 9)[:, None], np.linspace(0, 1, 5)))
print(sol.errors if sol.reference else "none")
"""


@pytest.mark.slow
def test_a_solution_is_read_without_its_script(tmp_path):
    domain = pinn.Interval("x", -1, 1, periodic=True) * pinn.Time("t", 0, 1)
    net = pinn.ModifiedMLP(6, 2, embed=(pinn.Periodic(x=2), pinn.Fourier(8)), factorised=pinn.Factorised())
    start = pinn.Hard(lambda x: lg.where(x > 0, lg.cos(math.pi * x), lg.cos(x * math.pi)))
    u = pinn.Field("u", domain, net=net, initial=start)
    sol = pinn.Problem(u, [pinn.Interior(lambda u: u.t - u.xx, n=16)]).solve(pinn.Adam(3))
    sol.save(tmp_path / "s.safetensors")
    subprocess.run([sys.executable, "-c", SCRIPT, tmp_path / "s.safetensors", tmp_path / "v.npy"], check=True)
    assert np.array_equal(np.load(tmp_path / "v.npy"), sol(np.linspace(-1, 1, 9)[:, None], np.linspace(0, 1, 5)))


@pytest.mark.parametrize(
    "domain",
    [
        pinn.Box(x=(0, 1), y=(0, 2)) - pinn.Disk(0.3, x=0.5, y=1),
        pinn.LShape(),
        pinn.Ball(1.0, x=0, y=0, z=0) * pinn.Time("t", 0, 1),
    ],
)
@pytest.mark.parametrize("recipe", [pinn.PirateNet, pinn.SIREN])
def test_domains_and_networks_are_saved(domain, recipe, tmp_path):
    u = pinn.Field("u", domain, net=recipe(4, 1))
    sol = pinn.Problem(u, [pinn.Interior(lambda u: u, n=8)]).solve(pinn.Adam(1))
    sol.save(tmp_path / "s.safetensors")
    loaded = pinn.Solution.load(tmp_path / "s.safetensors")
    points = sol.domain.interior(20, "uniform", np.random.default_rng(0))
    assert np.array_equal(sol(*points.T), loaded(*points.T))
    assert repr(loaded.domain) == repr(sol.domain) or isinstance(domain, type(pinn.LShape() - pinn.LShape()))


def test_what_cannot_be_saved_is_an_error(tmp_path):
    for function in (few_or_many, lambda x: lg.sin(x.detach())):
        u = pinn.Field("u", LINE * pinn.Time("t", 0, 1), pinn.MLP(4, 1), initial=pinn.Hard(function))
        sol = pinn.Problem(u, [pinn.Interior(lambda u: u.t, n=8)]).solve(pinn.Adam(1))
        with pytest.raises(ValueError, match=r"save: .* expected a function"):
            sol.save(tmp_path / "s.safetensors")
    lg.save({"a": 1}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="expected a solution of leafgrad-pinn"):
        pinn.Solution.load(tmp_path / "other.safetensors")


@pytest.mark.every(2)
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_pictures(tmp_path, suffix):
    square = pinn.Box(x=(0, 1), y=(0, 1)) - pinn.Disk(0.2, x=0.5, y=0.5)
    u, v = pinn.fields("u v", square, pinn.MLP(4, 1))
    truth = pinn.references.exact(square, u=lambda x, y: x * y, points=21)
    sol = pinn.Problem([u, v], [pinn.Interior(lambda u, v: (u.x, v.y), n=8)]).solve(pinn.Adam(3), reference=truth)
    sol.plot(tmp_path / f"p.{suffix}", slices={"x": [0.5]})
    assert (tmp_path / f"p.{suffix}").stat().st_size > 1000


def test_checkpoints_of_other_versions_and_units_are_not_resumed(tmp_path):
    solve(pinn.Adam(5), out=tmp_path)
    checkpoints = Checkpoints(tmp_path / "seed0")

    def wrong(**setup):
        saved = checkpoints.latest()
        checkpoints.save({**saved, "setup": {**saved["setup"], **setup}})
        with pytest.raises(ValueError, match="resume: expected") as error:
            solve(pinn.Adam(5), out=tmp_path, resume=True)
        return str(error.value)

    units = checkpoints.latest()["setup"]["units"]
    assert "expected fields and equations of the sizes" in wrong(units=[[2.0], *units[1:]])
    assert "format 5" in wrong(format=2)
    saved = checkpoints.latest()
    del saved["setup"]["format"], saved["setup"]["units"]  # as before there were formats
    checkpoints.save(saved)
    with pytest.raises(ValueError, match=r"resume: expected format 5 .*, got 1, of another version of leafgrad-pinn"):
        solve(pinn.Adam(5), out=tmp_path, resume=True)

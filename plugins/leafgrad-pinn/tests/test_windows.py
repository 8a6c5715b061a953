"""Windows of time: each goes on from the end of the one before, and the result is one solution."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.orders import order_of
from leafgrad_pinn.training import Training
from leafgrad_pinn.windows import window

TIME = pinn.Time("t", 0, 3)
ROD = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 0.3)


def swing(soft, *stages, **options):
    """u'' = -u, whose next window needs both value and rate."""
    u = pinn.Field("u", TIME, pinn.MLP(6, 1), **({} if soft else {"initial": pinn.Hard(1, rate=0.5)}))
    conditions = [pinn.Interior(lambda u: u.tt + u, n=20, sampler="grid")] + [pinn.Initial(1, 0.5)] * soft
    truth = pinn.references.exact(TIME, u=lambda t: np.cos(t) + 0.5 * np.sin(t))
    return pinn.Problem(u, conditions).solve(*(stages or [pinn.Adam(3)]), reference=truth, **options)


def diffusion(u, v):
    return u.t - 0.1 * u.xx - v, v.t - 0.1 * v.xx


def advection(u, v):
    return u.t + u.x - v, v.t + v.x


def heat(net, hard, domain=ROD, equation=diffusion):
    """Two fields on one network, one boundary varying in time."""
    sides = {"u": pinn.Hard(lambda t: t, on="x_max"), "v": pinn.Hard(0)} if hard else {}
    start = {"u": pinn.Hard(0), "v": pinn.Hard(lambda x: lg.sin(math.pi * x))} if hard else {}
    u, v = pinn.fields("u v", domain, net=net, initial=start, boundary=sides)
    conditions = [pinn.Interior(equation, n=64)]
    if not hard:
        conditions += [pinn.Initial(0, field="u", n=16), pinn.Initial(lambda x: lg.sin(math.pi * x), field="v", n=16)]
    return pinn.Problem([u, v], conditions)


@pytest.mark.every(2)
@pytest.mark.parametrize("soft", [False, True])
def test_value_and_rate_are_handed_on(soft):
    sol = swing(soft, pinn.GaussNewton(8), windows=2)
    assert sol.errors.l2["u"][0] < (5e-3 if soft else 1e-3)
    ends = sol(np.array([1.5, 1.5 + 1e-9, 1.5 + 1e-4]))
    assert abs(ends[1] - ends[0]) < (1e-3 if soft else 1e-8)
    slopes = [(sol(1.5) - sol(1.5 - 1e-4)) / 1e-4, (ends[2] - ends[1]) / 1e-4]
    assert abs(slopes[1] - slopes[0]) < 1e-2
    assert len(sol.run.reasons) == 2


def test_exact_values_go_on_exactly_over_many_windows():
    sol = heat(pinn.MLP(4, 1), hard=True).solve(pinn.Adam(2), windows=[0.05, 0.25])
    x = np.linspace(0, 1, 11)
    for moment in (0.05, 0.25):
        before, after = sol(x, moment), sol(x, moment + 1e-12)
        for name in "uv":
            assert np.abs(before[name] - after[name]).max() < 1e-10
    t = np.linspace(0, 0.3, 9)
    assert np.abs(sol(1, t)["u"] - t).max() < 1e-12
    assert np.abs(sol(0, t)["v"]).max() < 1e-12
    assert np.abs(sol(x, 0)["v"] - np.sin(np.pi * x)).max() < 1e-12


def test_values_alone_hold_no_graphs_of_windows_before():
    domain = pinn.Interval("x", 0, 1) * TIME
    x, t = np.random.default_rng(0).random((2, 50)) * [[1], [3]]
    for more in (True, False):
        u = pinn.Field("u", domain, pinn.MLP(4, 1), initial=pinn.Hard(lambda x: pinn.d(x**3, x), rate=lambda x: 1 - x))
        fields = [u, pinn.Derivative("v", u, "x")] if more else [u]
        sol = pinn.Problem(fields, pinn.Interior(lambda u: u.tt - u.xx, n=9)).solve(pinn.Adam(1), windows=3)
        found = sol(x, t) if more else {"u": sol(x, t)}
        for name, values in found.items():
            again = sol.evaluate((lambda u: u) if name == "u" else lambda u: u.x, x, t)
            np.testing.assert_allclose(values, again, rtol=0, atol=1e-12)
    columns, last = pinn.field.columns_of(domain, np.stack([x, t], 1)), sol.run.modules[0].surrogates[-2]
    for value, rate in last.end(columns, {"u": True}, alone=True).values():
        assert not value.requires_grad
        assert not rate.requires_grad


def test_soft_values_go_on_from_the_window_before():
    problem = heat(pinn.MLP(4, 1), hard=False)
    sol = problem.solve(pinn.Adam(3), windows=2)
    points = sol.run.residuals["initial v"]["points"]
    assert {0.0, 0.15} == set(points[:, 1])
    last = points[:, 1] == 0.15
    before, after = (sol(points[last][:, 0], moment)["v"] for moment in (0.15, 0.15 + 1e-12))
    (size,) = window(problem, 0.15, 0.3, ()).sizes[problem.names.index("initial v")]
    assert np.allclose(sol.run.residuals["initial v"]["sizes"][last], np.abs(after - before) / size, atol=1e-9)


def test_one_window_is_none():
    whole, one = (swing(False, windows=windows) for windows in (1, []))
    t = np.linspace(0, 3, 7)
    assert np.array_equal(whole(t), one(t))
    assert "window" not in one.run.history[-1]
    assert one.moments == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Field 'psi_re'. exact values have a kink")
def test_windows_are_saved_read_and_drawn(tmp_path):
    psi = pinn.ComplexField(
        "psi",
        pinn.Interval("x", -5, 5, periodic=True) * pinn.Time("t", 0, 1),
        net=pinn.MLP(4, 1, embed=pinn.Periodic(x=1)),
        initial=pinn.Hard(lambda x: 2 / lg.cosh(x)),
    )
    equation = pinn.Interior(lambda psi: 1j * psi.t + psi.xx / 2 + psi.abs2 * psi, n=32)
    stages = pinn.Adam(3, weights=pinn.Causal()), pinn.LBFGS(3, points=pinn.RAD(every=2))
    sol = pinn.Problem(psi, [equation]).solve(*stages, windows=3, seeds=2)
    sol.save(tmp_path / "s.safetensors")
    again = pinn.Solution.load(tmp_path / "s.safetensors")
    x, t = np.linspace(-5, 5, 7)[:, None], np.linspace(0, 1, 10)
    assert sol(x, t).dtype == np.complex128
    assert np.array_equal(sol(x, t), again(x, t))
    assert again.moments == sol.moments == [0, 1 / 3, 2 / 3, 1]
    assert [row["stage"] for row in sol.run.history if row["step"] == 3] == [
        f"{window}.{stage}" for window in (1, 2, 3) for stage in ("1 Adam", "2 LBFGS")
    ]
    again.plot(tmp_path / "s.png", slices={"t": [0.5]})
    assert len(again.to_vtu(tmp_path / "s.vtu", points=5, times=[0.2, 0.9])) == 3


def trainees(problem, moments):
    """Those of a training of one step in each window."""
    training = Training(problem, [pinn.Adam(1)], 0, lg.float64, "cpu", lambda modules, domain: {}, None, False, moments)
    training.run()
    return training.trainees


@pytest.mark.compiled
@pytest.mark.parametrize("hard", [False, True])
def test_windows_share_programs_unless_their_equations_differ(hard):
    first, second = trainees(heat(pinn.MLP(4, 1), hard, equation=advection), [0, 0.1, 0.3])
    assert (second.objective.programs is first.objective.programs) is not hard
    for trainee in (first, second):
        _, _, squares = trainee.objective.gradient(trainee.flat, trainee.batches, trainee.weights)
        for index, (found, batch) in enumerate(zip(squares, trainee.batches, strict=True)):
            assert np.allclose(found.numpy(), trainee.residuals(index, batch).square().sum(1).numpy(), rtol=1e-9)


def test_soft_windows_are_saved_and_read(tmp_path):
    sol = heat(pinn.MLP(4, 1), hard=False).solve(pinn.Adam(2), windows=3)
    sol.save(tmp_path / "s.safetensors")
    again = pinn.Solution.load(tmp_path / "s.safetensors")
    x, t = np.linspace(0, 1, 5)[:, None], np.linspace(0, 0.3, 7)
    for name in "uv":
        assert np.array_equal(sol(x, t)[name], again(x, t)[name])


def test_a_complex_field_with_soft_values_is_handed_on():
    ring = pinn.Interval("x", -1, 1, periodic=True) * pinn.Time("t", 0, 1)
    psi = pinn.ComplexField("psi", ring, net=pinn.MLP(4, 1, embed=pinn.Periodic(x=1)))
    start = pinn.Initial(1 + 0.5j, rate=0.3j, n=16)
    problem = pinn.Problem(psi, [pinn.Interior(lambda psi: psi.tt - psi.xx, n=32), start])
    sol = problem.solve(pinn.Adam(2), windows=2)
    found = sol.run.residuals["initial"]
    last = found["points"][:, 1] == 0.5
    x = found["points"][last][:, 0]
    times = 0.5 + np.array([-2e-6, -1e-6, 1e-12, 1e-6])
    early, before, after, late = (sol(x, t) for t in times)
    jumps = [after - before, (late - after - (before - early)) / 1e-6]
    gaps = np.stack([part for jump in jumps for part in (jump.real, jump.imag)], 1)
    expected = np.linalg.norm(gaps / window(problem, 0.5, 1, ()).sizes[1], axis=1)
    assert last.sum() == 16
    assert np.allclose(found["sizes"][last], expected, atol=1e-4)


def test_data_belong_to_their_window():
    t = np.array([0.1, 0.2, 2.9])
    u = pinn.Field("u", TIME, pinn.MLP(4, 1), initial=pinn.Hard(1))
    data = pinn.Data({"t": t}, {"u": np.exp(-t)})
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t + u, n=8), data, pinn.At(data, lambda u: u.t + u)])
    sol = problem.solve(pinn.Adam(2), windows=3)
    assert np.array_equal(sol.run.residuals["data"]["points"][:, 0], t)
    assert [("data" in row, "at data" in row) for row in sol.run.history[::2]] == [(b, b) for b in (True, False, True)]


def test_errors_of_windows_before_the_last_are_not_those_of_the_solution():
    sol = swing(False, windows=3)
    keys = {(row["window"], key) for row in sol.run.history for key in row if key.startswith("error")}
    assert keys == {(1, "error u so far"), (2, "error u so far"), (3, "error u")}
    first = min(row["seconds"] for row in sol.run.history if row["window"] == 3)
    assert sol.errors.time_to(1e9)[0] >= first


def test_a_nan_leaves_later_windows_without_numbers(tmp_path):
    u = pinn.Field("u", TIME, pinn.MLP(4, 1), initial=pinn.Hard(1))
    limit = [9.0]
    problem = pinn.Problem(u, [pinn.Interior(lambda u, t: u.t + lg.sqrt(limit[0] - t), n=8)])
    limit[0] = 1.2  # a problem is looked at before it is trained
    truth = pinn.references.exact(TIME, u=lambda t: 1 + 0 * t)
    sol = problem.solve(pinn.Adam(4), windows=3, reference=truth, out=tmp_path)
    assert "interior is nan" in sol.run.reasons[-1]
    assert len(sol.run.reasons) == 2
    values = pinn.Solution.load(tmp_path / "solution.safetensors")(np.array([0.5, 1.5, 2.5]))
    assert np.isfinite(values[0])
    assert np.isnan(values[2])
    assert sol.errors.l2["u"] == [math.inf]


SQUARE = pinn.Box(x=(0, 1), y=(0, 1))


def no_start(*equations):
    u, p = pinn.fields("u p", ROD, pinn.MLP(4, 1), initial={"u": pinn.Hard(0)})
    return pinn.Problem([u, p], [pinn.Interior(equation, n=8) for equation in equations])


def heat_from(other):
    u, v = pinn.fields("u v", ROD, pinn.MLP(4, 1))
    start = pinn.Initial(eval(f"lambda {other}: 2 * {other}"), field="u", n=8)
    return pinn.Problem([u, v], [pinn.Interior(lambda u, v: u.t - v.t, n=8), start])


@pytest.mark.parametrize(
    ("problem", "windows", "message"),
    [
        (
            partial(no_start, lambda u: u.t),
            0,
            r"expected at least 1, or moments that rise inside of Time\('t', 0.0, 0.3\), got 0",
        ),
        (partial(no_start, lambda u: u.t), [0.2, 0.1], "moments that rise inside of"),
        (partial(no_start, lambda u: u.t), [0.3], "moments that rise inside of"),
        (partial(no_start, lambda u: u.t), [math.nan], "moments that rise inside of"),
        (partial(no_start, lambda u, p: u.t + p.t), 2, "p has 1 derivative by t, and no initial values for the"),
        (
            partial(no_start, lambda u, p, t: u.t + pinn.d(p * p, t)),
            2,
            "p has 1 derivative by t, and no initial values",
        ),
        (partial(no_start, lambda u, p: u.tt + p), 2, "u has 2 derivatives by t, and no initial rate"),
        (partial(heat_from, "v"), 2, r"initial u: expected functions of coordinates, got ones of \['v'\]"),
        (partial(no_start, lambda u, p: u.ttt + p), 2, "u: expected at most two derivatives by t, got 3"),
    ],
)
def test_wrong_windows(problem, windows, message):
    with pytest.raises(ValueError, match=f"windows: .*{message}"):
        problem().solve(pinn.Adam(1), windows=windows)


def test_what_windows_are_not_for():
    u = pinn.Field("u", SQUARE, pinn.MLP(4, 1))
    with pytest.raises(ValueError, match="windows: the domain has no time"):
        pinn.Problem(u, [pinn.Interior(lambda u: u.x, n=8)]).solve(pinn.Adam(1), windows=2)
    with pytest.raises(TypeError, match=r"windows: expected how many, or a list of the moments between them, got 2\.0"):
        swing(False, windows=2.0)
    rate = pinn.Unknown("rate", 1.0)
    u = pinn.Field("u", TIME, pinn.MLP(4, 1), initial=pinn.Hard(1))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t + rate * u, n=8)], unknowns=rate)
    with pytest.raises(ValueError, match="windows: expected no unknowns, which are the same at all times, got rate"):
        problem.solve(pinn.Adam(1), windows=2)
    k = pinn.Field("k", pinn.Interval("x", 0, 1), pinn.MLP(4, 1))
    u = pinn.Field("u", ROD, pinn.MLP(4, 1), initial=pinn.Hard(0))
    with pytest.raises(ValueError, match="windows: expected fields of t, got k, of Interval"):
        pinn.Problem([u, k], [pinn.Interior(lambda u, k: u.t + k, n=8)]).solve(pinn.Adam(1), windows=2)


def test_fields_without_derivatives_by_time_need_no_initial_values():
    problem = no_start(lambda u, p: (u.t - p, p - u.xx))
    assert [order_of(problem, field, "t") for field in problem.fields] == [1, 0]
    problem.solve(pinn.Adam(1), windows=2)


def test_a_run_of_other_windows_is_not_resumed(tmp_path):
    swing(False, windows=2, out=tmp_path)
    with pytest.raises(ValueError, match=r"resume: expected windows \[0.0, 1.5, 3.0\]"):
        swing(False, windows=3, out=tmp_path, resume=True)


SCRIPT = """
import math, sys
import leafgrad as lg, leafgrad_pinn as pinn
from leafgrad_pinn.stages import Worker, quasi_newton
quasi_newton.SSBroydenWorker.look = 10
Worker.look = 3
domain = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
u, v = pinn.fields("u v", domain, pinn.MLP(6, 2), initial={"u": pinn.Hard(lambda x: lg.sin(math.pi * x), rate=0)})
sides = [pinn.Dirichlet(0, field="u", n=16), pinn.Initial(0, field="v", n=16)]
equation = pinn.Interior(lambda u, v: (u.tt - u.xx, v.t - u), n=64)
stages = pinn.SSBroyden(40, weights=pinn.Causal(), points=pinn.RAD(every=15)), pinn.LevenbergMarquardt(12, tolerance=0)
pinn.Problem([u, v], [equation, *sides]).solve(*stages, windows=3, out=sys.argv[1], resume=True)
"""


def start(folder):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, folder], stderr=subprocess.DEVNULL)


def stages_in(folder):
    try:
        return len({line.split(",")[1] for line in (folder / "seed0" / "history.csv").read_text().splitlines()})
    except FileNotFoundError:
        return 0


@pytest.mark.slow
def test_killed_runs_go_on_in_their_window_to_the_same_bits(tmp_path):
    assert start(tmp_path / "whole").wait() == 0
    for kill in (3, 4, 6):  # in the first window's second stage, and in later windows
        process = start(tmp_path / "killed")
        while process.poll() is None and stages_in(tmp_path / "killed") < kill:
            time.sleep(0.02)
        time.sleep(0.2)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert start(tmp_path / "killed").wait() == 0
    x, t = np.linspace(0, 1, 9)[:, None], np.linspace(0, 1, 13)
    whole, killed = (pinn.Solution.load(tmp_path / name / "solution.safetensors")(x, t) for name in ("whole", "killed"))
    for name in "uv":
        assert np.array_equal(whole[name], killed[name])

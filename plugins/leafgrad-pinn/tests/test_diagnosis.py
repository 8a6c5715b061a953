"""What a training says of itself: that it is not solved, that it diverged, that it was interrupted."""

from __future__ import annotations

import math
import os
import signal
import threading
from contextlib import suppress

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.diagnosis import dual, relative
from leafgrad_pinn.run import Run


def bending(length, amplitude, **hard):
    """u'' = -8 A / L^2, u = 0 at both ends: A in the middle."""
    domain = pinn.Interval("x", 0, length)
    u = pinn.Field("u", domain, pinn.MLP(8, 1), **hard)
    conditions = [pinn.Interior(lambda u: u.xx + 8 * amplitude / length**2, n=48)]
    return pinn.Problem(u, conditions if hard else [*conditions, pinn.Dirichlet(0, n=2)])


@pytest.mark.every(3)
@pytest.mark.parametrize(("length", "amplitude"), [(1, 1), (3, 1), (1, 0.3)])
def test_what_is_solved_raises_no_doubts(length, amplitude, capsys):
    sol = bending(length, amplitude).solve(pinn.GaussNewton(15))
    assert float(sol(length / 2)) == pytest.approx(amplitude, rel=1e-2)
    assert sol.run.doubts == ""
    assert max(sol.run.relative.values()) < 0.1
    assert "not solved" not in capsys.readouterr().err


def stiff():
    """A shock that few weights cannot show."""
    u = pinn.Field("u", pinn.Interval("x", -1, 1), pinn.MLP(3, 1))
    conditions = [pinn.Interior(lambda u: u.x - 1e4 * u, n=48), pinn.Dirichlet(1, n=2)]
    return pinn.Problem(u, conditions)


def test_what_is_not_solved_is_told(capsys):
    sol = stiff().solve(pinn.GaussNewton(5))
    assert "not solved: the residuals of" in sol.run.doubts
    assert "% of its terms" in sol.run.doubts
    assert f"seed 0: {sol.run.doubts}" in capsys.readouterr().err


@pytest.mark.parametrize(("width", "solved"), [(16, True), (10, False)])
def test_residuals_that_oscillate_count_as_what_they_change(width, solved):
    """A clamped beam under a load near a point, which bends it by 1 / 192: the load itself is too thin for waves."""

    def load(x):
        return lg.exp(-(((x - 0.5) / 0.02) ** 2) / 2) / (0.02 * math.sqrt(2 * math.pi))

    waves = pinn.SIREN(width, 1, frequency={"x": 12.0})
    u = pinn.Field("u", pinn.Interval("x", 0, 1), waves, boundary=pinn.Hard(0, clamped=True))
    beam = pinn.Interior(lambda u, x: u.xxxx - load(x), n=200, sampler="grid")
    sol = pinn.Problem(u, beam).solve(pinn.LeastSquares(3))
    assert (abs(192 * float(sol(0.5)) - 1) < 0.02) == solved
    assert (sol.run.relative["interior"] < 0.1) == solved


@pytest.mark.parametrize(("source", "solved"), [(1e-9, False), (0.0, True)])
def test_fields_far_smaller_than_their_size_are_told_from_zero(source, solved):
    """u'' = -f: small residuals, beside a size that is wrong, stand for far more than u."""
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(6, 1), boundary=pinn.Hard(0), scale=1.0)
    sol = pinn.Problem(u, pinn.Interior(lambda u: u.xx + source, n=24)).solve(pinn.LevenbergMarquardt(12))
    assert sol.run.relative["interior"] < 0.1
    assert (sol.run.doubts == "") == solved
    assert solved or sol.run.suspected["u"] > 10


def test_terms_of_bounded_functions_are_no_larger_than_these(capsys):
    """Of a field that is far too large each change is large, too, but not what the equation has of it."""
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(4, 1), scale=1e5)
    sol = pinn.Problem(u, pinn.Interior(lambda u, x: lg.sin(u) - x / 2, n=24)).solve(pinn.LevenbergMarquardt(1))
    assert sol.run.relative["interior"] > 0.5
    assert "not solved: the residuals of interior" in capsys.readouterr().err


def test_residuals_of_no_field_may_be_infinite(recwarn):
    u = pinn.Field("u", pinn.Time("t", 0, 1), pinn.MLP(6, 1), initial=pinn.Hard(1.0))
    sol = pinn.Problem(u, pinn.Interior(lambda u: u.t - 1 / u, n=24, sampler="grid")).solve(pinn.GaussNewton(8))
    assert float(sol(1)) == pytest.approx(3**0.5, rel=1e-3)
    assert sol.run.relative["interior"] < 0.05
    assert (sol.run.doubts, [str(w.message) for w in recwarn]) == ("", [])
    poor = pinn.Problem(u, pinn.Interior(lambda u: u.t - 1 / u, n=24, sampler="grid")).solve(pinn.Adam(1))
    assert 0.1 < poor.run.relative["interior"] < 10


def test_the_dual_norm_divides_a_wave_by_its_number():
    x = (np.arange(400) + 0.5) / 400
    points, ends = x[:, None], np.array([[0.0, 1.0]])
    for k in (0, 3, 8):
        wave = 5 * np.cos(np.pi * k * points) * (2**0.5 if k else 1)
        assert dual(wave, points, ends, 0) == pytest.approx(5)
        assert dual(wave, points, ends, 2) == pytest.approx(5 / (1 + k**2))
    fast = np.cos(np.pi * 250 * points) * 2**0.5  # as the fastest of 200
    assert dual(fast, points, ends, 1) == pytest.approx((1 + 199**2) ** -0.5, rel=1e-6)


def test_a_file_keeps_doubts(tmp_path):
    sol = stiff().solve(pinn.GaussNewton(3), out=tmp_path)
    again = pinn.Solution.load(tmp_path / "solution.safetensors")
    assert again.run.relative == sol.run.relative
    assert again.run.doubts == sol.run.doubts != ""


@pytest.mark.slow
def test_windows_parts_and_systems_have_shares():
    domain = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
    u = pinn.Field("u", domain, pinn.MLP(6, 1), boundary=pinn.Hard(0), initial=pinn.Hard(lambda x: x * (1 - x)))
    sol = pinn.Problem(u, pinn.Interior(lambda u: u.t - u.xx, n=32)).solve(pinn.GaussNewton(5), windows=2)
    assert set(sol.run.relative) == {"interior"}
    square = pinn.Interval("x", 0, 1) * pinn.Interval("y", 0, 1)
    v, p = pinn.fields("v p", square, pinn.MLP(6, 1))
    conditions = [pinn.Interior(lambda v, p: (v.lap - p.x, p.lap), n=32), pinn.Dirichlet(1, field="v", n=32)]
    sol = pinn.Problem([v, p], [*conditions, pinn.Neumann(0, field="p", n=16)]).solve(pinn.GaussNewton(5))
    assert all(0 <= share < 10 for share in sol.run.relative.values())


def test_a_loss_that_grew_is_called_diverged(capsys):
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(8, 1))
    conditions = [pinn.Interior(lambda u: u.xx + 30 * u * u, n=48), pinn.Dirichlet(1, n=2)]
    sol = pinn.Problem(u, conditions).solve(pinn.Adam(200, lr=30))
    assert "all 200 steps are done, but diverged: the loss went from" in sol.run.reasons[0]
    assert "diverged" in capsys.readouterr().err


@pytest.mark.at_once
@pytest.mark.every(2)
@pytest.mark.parametrize("seeds", [1, 2])
def test_an_interrupt_without_a_folder_gives_the_solution_so_far(seeds, capsys, tmp_path):
    before, process = lg.get_num_threads(), os.getpid()
    lg.set_num_threads(2)

    def trains(row, fields):
        """The first seed that is evaluated, maybe in a process of its own, has Ctrl-C come some steps later."""
        with suppress(FileExistsError):
            (tmp_path / "trains").mkdir()
            threading.Timer(0.1, os.kill, (process, signal.SIGINT)).start()

    try:
        sol = bending(1, 1).solve(pinn.Adam(10**7), pinn.GaussNewton(5), seeds=seeds, callback=trains)
    finally:
        lg.set_num_threads(before)
    assert len(sol.runs) >= 1
    for run in sol.runs:
        assert len(run.reasons) == 1
        assert "interrupted after" in run.reasons[0]
    assert float(sol(0.5)) == float(sol(0.5))
    assert "interrupted after" in capsys.readouterr().err


@pytest.mark.parametrize(("amplitude", "error"), [(3, 2 / 3), (0.3, 7 / 3)])
def test_small_residuals_near_a_resonance_are_no_solution(amplitude, error, tmp_path):
    """u'' + 40 u = f: 40 is 1 % from (2 pi)^2, and a residual of 3 % an error of 67 %; one of 1 % may be of 233 %."""
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.Own(lambda inputs, outputs: Wave()), scale=1)
    size = (40 - 4 * math.pi**2) * amplitude
    wave = pinn.Interior(lambda u, x: u.xx + 40 * u - size * lg.sin(2 * math.pi * x), n=50)
    sol = pinn.Problem(u, [wave, pinn.Dirichlet(0, n=2)]).solve(pinn.Adam(1, lr=1e-12), out=tmp_path)
    assert sol.run.suspected["u"] == pytest.approx(error, rel=1e-3)
    assert sol.run.relative["interior"] < 0.05
    assert f"not solved: small residuals stand for an error of {error:.0%} of u" in sol.run.doubts
    again = pinn.Solution.load(tmp_path / "solution.safetensors", own=lambda inputs, outputs: Wave())
    assert again.run.doubts == sol.run.doubts


class Wave(lg.nn.Module):
    def __init__(self):
        super().__init__()
        self.height = lg.nn.Parameter(lg.tensor([1.0]))

    def forward(self, z):
        return self.height * lg.sin(math.pi * (z + 1))


class Fall(lg.nn.Module):
    """From 0.05 to nothing before the second point."""

    def __init__(self):
        super().__init__()
        self.height = lg.nn.Parameter(lg.tensor([0.05]))

    def forward(self, z):
        return self.height * lg.exp(-200 * (z + 1))


def test_equations_are_looked_at_between_their_points():
    """u' = u (1 - u) has a residual of nothing at the points of a grid, where u fell to zero between two of them."""
    u = pinn.Field("u", pinn.Time("t", 0, 8), pinn.Own(lambda inputs, outputs: Fall()), scale=1)
    growth = pinn.Interior(lambda u: u.t - u * (1 - u), n=30, sampler="grid")
    sol = pinn.Problem(u, [growth, pinn.Initial(0.05)]).solve(pinn.Adam(1, lr=1e-12))
    assert sol.run.history[-1]["loss"] < 1e-5
    assert "not solved: the residuals of interior are" in sol.run.doubts


def test_equations_that_are_nan_between_their_points_are_not_solved(tmp_path):
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(6, 1), boundary=pinn.Hard(0))
    pole = pinn.Interior(lambda u, x: u.xx - lg.sqrt(lg.abs(x - 0.5) - 1e-2), n=20, sampler="grid")
    sol = pinn.Problem(u, pole).solve(pinn.GaussNewton(3), out=tmp_path)
    found, total = map(int, sol.run.undefined["interior"].removesuffix(" points").split(" of "))
    assert 0.01 < found / total < 0.03
    assert sol.run.doubts == f"not solved: the residuals of interior are nan or inf at {found} of {total} points"
    assert pinn.Solution.load(tmp_path / "solution.safetensors").run.doubts == sol.run.doubts


class Step(lg.nn.Module):
    """A slope, and a step on it along a line that no point of a rule is near."""

    def __init__(self, height, inputs):
        super().__init__()
        self.height = lg.nn.Parameter(lg.tensor([height]))
        self.normal = lg.linspace(1, 0.5, inputs, dtype=lg.float64)

    def forward(self, z):
        return (lg.sin(z @ self.normal) + self.height * lg.tanh(1e9 * (z @ self.normal - 0.0123)))[:, None]


@pytest.mark.parametrize("domain", [pinn.Interval("x", 0, 3), pinn.Box(x=(0, 1), y=(2, 4)), pinn.Disk(2, x=0, y=0)])
@pytest.mark.filterwarnings("ignore:Field 'u'. net=Own")  # jumps inside
@pytest.mark.parametrize("energy", [lambda u: u.x**2, lambda u: u.lap**2, lambda u, x: pinn.d(u, x) ** 2])
def test_energies_are_looked_at_between_the_points_of_their_rule(domain, energy):
    """A steep step costs nothing at them, and an energy with it is less than that of any field."""
    for height in (0.0, 1.0):
        net = pinn.Own(lambda inputs, outputs, height=height: Step(height, inputs))
        u = pinn.Field("u", domain, net, scale=1)
        sol = pinn.Problem(u, pinn.Energy(energy, order=16)).solve(pinn.Adam(1, lr=1e-12))
        assert sol.run.relative["energy by a finer rule"] < 1e-6
        found = sol.run.relative["energy between its points"]
        assert found > 0.5 if height else found < 1e-6
        assert ("the residuals of energy between its points are" in sol.run.doubts) == bool(height)


@pytest.mark.slow
def test_an_equation_that_is_small_beside_others_of_its_condition_is_looked_at_by_itself(capsys):
    """An epidemic of which the training sees the healthy alone: the few infected die out at once."""
    days = pinn.Time("t", 0, 60)
    s, i = pinn.fields("s i", days, pinn.MLP(16, 1))
    spread = pinn.Interior(lambda s, i: (s.t + 4e-7 * s * i, i.t - 4e-7 * s * i + 0.1 * i), n=100, sampler="grid")
    begin = [pinn.Initial(1e6 - 100, field="s", n=1), pinn.Initial(100, field="i", n=1)]
    sol = pinn.Problem([s, i], [spread, *begin]).solve(pinn.LevenbergMarquardt(23))
    assert sol(60.0)["s"] > 9e5
    assert "not solved: the residuals of interior are 100% of its terms" in capsys.readouterr().err


@pytest.mark.every(2)
@pytest.mark.parametrize("strength", [3.55, 3.7])
def test_equations_without_a_solution_are_not_solved_though_residuals_are_small(strength, tmp_path):
    """Bratu's u'' + k exp(u) = 0 has none for k > 3.514; its least residuals are 1 % of their terms and more."""
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(8, 1), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, pinn.Interior(lambda u: u.xx + strength * lg.exp(u), n=40))
    sol = problem.solve(pinn.LevenbergMarquardt(20), out=tmp_path)
    assert sol.run.relative["interior"] < 0.1
    assert "not solved: no change of the fields lowers its residuals" in sol.run.doubts
    assert pinn.Solution.load(tmp_path / "solution.safetensors").run.doubts == sol.run.doubts


def test_conditions_that_contradict_each_other_later_are_told_in_their_window():
    """Two rates of decay after t = 1, 3 % apart; that holds in the second window of time alone."""
    u = pinn.Field("u", pinn.Time("t", 0, 2), pinn.MLP(6, 1))
    slow, fast = (pinn.Interior(lambda u, k=k: u.t + k * u, n=20, where=w) for k, w in ((0.2, None), (0.23, late)))
    sol = pinn.Problem(u, [slow, fast, pinn.Initial(1)]).solve(pinn.LevenbergMarquardt(10), windows=2)
    assert "which are smooth in window 2: there may be no solution" in sol.run.doubts


def late(t):
    return t > 1


def test_an_energy_that_falls_for_ever_is_not_solved():
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(8, 1), boundary=pinn.Hard(0))
    sol = pinn.Problem(u, pinn.Energy(lambda u: u.x**2 - 20 * u**2 - u, least=-1e9)).solve(pinn.SSBroyden(20))
    assert "not solved: the energy is not least about it" in sol.run.doubts


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3.4])
def test_equations_that_noise_or_a_fold_is_near_are_not_called_contradictory(k):
    """Bratu's below the fold, and a decay whose data scatter."""
    x, rng = np.linspace(0, 1, 30), np.random.default_rng(0)
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(8, 1), boundary=pinn.Hard(0))
    bratu = pinn.Problem(u, pinn.Interior(lambda u: u.xx + k * lg.exp(u), n=40))
    assert bratu.solve(pinn.LevenbergMarquardt(25)).run.doubts == ""
    v = pinn.Field("v", pinn.Interval("x", 0, 1), pinn.MLP(8, 1))
    noisy = pinn.Data({"x": x}, {"v": np.exp(-k * x) + 0.03 * rng.standard_normal(30)})
    decay = pinn.Problem(v, [pinn.Interior(lambda v: v.x + k * v, n=40), noisy])
    assert decay.solve(pinn.LevenbergMarquardt(25)).run.contradicted == ""


def decay(data, **noise):
    """v' = -v beside 40 values, at 20 places."""
    x = np.repeat(np.linspace(0, 1, 20), 2)
    v = pinn.Field("v", pinn.Interval("x", 0, 1), pinn.MLP(6, 1))
    measured = pinn.Data({"x": x}, {"v": data(x)}, **noise)
    return pinn.Problem(v, [pinn.Interior(lambda v: v.x + v, n=30), measured]).solve(pinn.LevenbergMarquardt(12))


def noisy(x):
    return np.exp(-x) + 0.15 * np.random.default_rng(0).standard_normal(len(x))


def test_noise_that_is_said_is_no_reason_to_call_a_right_answer_unsolved(tmp_path):
    sol = decay(noisy)
    assert abs(sol(0.5) - math.exp(-0.5)) < 0.1
    said = (
        "not solved: the residuals of data are 18% of its terms and look like noise: if values are measured no better, "
    )
    assert sol.run.doubts == f"{said}say Data(..., noise=0.12)"
    lost = Run(0, sol.run.modules, sol.run.details() | {"relative": {"interior": 0.3}})  # a network that follows noise
    assert lost.doubts.endswith("interior are 30% of its terms (beside values with noise give it a larger weight=)")
    sol.save(tmp_path / "noisy.safetensors")
    assert pinn.Solution.load(tmp_path / "noisy.safetensors").run.doubts == sol.run.doubts
    for noise, enough in ((0.15, True), (0.07, False)):
        sol.run.trainees[0].problem.conditions[1].noise = {"v": noise}
        assert (relative(sol.run.trainees)["data"] < 0.1) == enough


def test_what_is_smooth_is_no_noise():
    sol = decay(lambda x: np.exp(-x) + 2 * (x - 0.5) ** 2, noise=0.5)
    assert "the residuals of data are" in sol.run.doubts
    assert "noise" not in sol.run.doubts


@pytest.mark.parametrize("start", [0, 300])
def test_an_offset_hides_no_contradiction(start):
    t = pinn.Field("T", pinn.Interval("x", 0, 0.01), pinn.MLP(8, 1))
    heated = pinn.Interior(lambda T: 50 * T.xx + 1e6, n=30)
    sol = pinn.Problem(t, [heated, pinn.Neumann(0), pinn.Dirichlet(start, "x_min")]).solve(pinn.LevenbergMarquardt(15))
    assert "not solved: the residuals of interior are" in sol.run.doubts
    assert "the residuals of neumann are" in sol.run.doubts


def test_a_right_answer_beside_an_offset_is_not_doubted():
    t = pinn.Field("T", pinn.Interval("x", 0, 0.01), pinn.MLP(8, 1))
    conditions = [
        pinn.Interior(lambda T: 50 * T.xx + 1e6, n=30),
        pinn.Neumann(0, "x_max"),
        pinn.Dirichlet(300, "x_min"),
    ]
    assert pinn.Problem(t, conditions).solve(pinn.LevenbergMarquardt(15)).run.doubts == ""

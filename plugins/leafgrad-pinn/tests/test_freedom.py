"""What conditions leave open, told at the end where their structure does not show it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.freedom import directions
from leafgrad_pinn.problem import Problem
from leafgrad_pinn.trainee import Trainee

X = pinn.Interval("x", 0, 1)
SQUARE = pinn.Box(x=(0, 1), y=(0, 1))
ROD = pinn.Interval("x", 0, 2) * pinn.Time("t", 0, 1)
FIRST = pinn.Initial(lambda x: x * (2 - x), n=20)


def inside(equation):
    return pinn.Interior(equation, n=40)


def found(domain, *conditions, names="u"):
    fields = pinn.fields(names, domain, pinn.MLP(6, 1))
    return told(Problem(list(fields), list(conditions)))


def told(problem):
    free, untold = directions(Trainee(problem, 0, lg.float64, "cpu"))
    return free or untold


def stokes(u, v, p):
    return p.x - u.lap, p.y - v.lap, u.x + v.y


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((X, inside(lambda u: u.xx + 1), pinn.Dirichlet(0, n=2)), ""),
        ((X, inside(lambda u: u.xx + 1), pinn.Neumann(0, n=2)), "1 direction is free: u + constant"),
        ((X, inside(lambda u: u.xx + 1)), "2 directions are free: u + constant, u + multiple of x"),
        (
            (X, inside(lambda u: u.xxxx - 1), pinn.Dirichlet(0, n=2)),
            "2 directions are free: 2 changes of u, largest about x = ",
        ),
        (
            (X, inside(lambda u: u.xx + math.pi**2 * u), pinn.Dirichlet(0, n=2)),
            "1 direction is free: 1 change of u, largest about x = 0.5",
        ),
        ((SQUARE, inside(lambda u: u.lap + 1), pinn.Dirichlet(0, n=40)), ""),
        (
            (SQUARE, inside(lambda u: u.lap), pinn.Dirichlet(0, on="x_min", n=40)),
            "15 directions are free: 15 changes of u, largest",
        ),
        ((ROD, inside(lambda u: u.t + u * u.x - 0.01 * u.xx), pinn.Dirichlet(0, n=40), FIRST), ""),
        ((ROD, inside(lambda u, x: u.t + pinn.d(u * u, x)), pinn.Dirichlet(0, on="x_min", n=40), FIRST), ""),
    ],
)
def test_directions_that_no_residual_sees(conditions, expected):
    said = found(*conditions)
    assert said.startswith(expected)
    assert bool(said) == bool(expected)


def test_pressure_is_determined_up_to_a_constant():
    walls = [pinn.Dirichlet(0, field=name, n=40) for name in "uv"]
    assert found(SQUARE, inside(stokes), *walls, names="u v p") == "1 direction is free: p + constant"


def test_exact_conditions_determine():
    for boundary, expected in ((pinn.Hard(0), ""), (pinn.Hard(0, on="x_min"), "1 direction is free")):
        u = pinn.Field("u", X, pinn.MLP(6, 1), boundary=boundary)
        said = told(Problem(u, inside(lambda u: u.xx + 1)))
        assert said[: len(expected)] == expected
        assert bool(said) == bool(expected)


def test_it_is_told_and_kept_in_files(tmp_path, capsys):
    u = pinn.Field("u", X, pinn.MLP(6, 1))
    problem = pinn.Problem(u, [inside(lambda u: u.xxxx - 1), pinn.Dirichlet(0, n=2)])
    sol = problem.solve(pinn.GaussNewton(2), out=tmp_path)
    assert "not determined: 2 directions are free" in capsys.readouterr().err
    again = pinn.Solution.load(tmp_path / "solution.safetensors")
    assert again.run.doubts == sol.run.doubts
    assert "2 directions are free" in again.run.doubts


def solved(field, *conditions, unknowns=(), steps=8):
    return pinn.Problem(field, list(conditions), unknowns).solve(pinn.LevenbergMarquardt(steps)).run.free


PLACES = np.linspace(0, 1, 20)
SINE = pinn.Data({"x": PLACES}, {"u": np.sin(math.pi * PLACES)})


@pytest.mark.every(2)
@pytest.mark.parametrize("positive", [False, True])
def test_unknowns_of_which_one_combination_counts(positive):
    a, b = pinn.Unknown("a", 1, positive), pinn.Unknown("b", 2, positive)
    u = pinn.Field("u", X, pinn.MLP(8, 1))
    ends = pinn.Dirichlet(0, n=2)
    for equation, word in (  # positive ones whose sum is small stay apart by orders
        (lambda u, x: a * b * u.xx + lg.sin(math.pi * x), "a * b"),
        (lambda u, x: a * u.xx + b * lg.sin(math.pi * x), "a / b"),
        *([] if positive else [(lambda u, x: (a + b) * u.xx + lg.sin(math.pi * x), "a + b")]),
    ):
        said = solved(u, inside(equation), ends, SINE, unknowns=[a, b])
        assert said == f"1 direction is free: a and b, of which {word} alone is determined"
    assert solved(u, inside(lambda u, x: a * u.xx + b * u + lg.sin(3 * x)), pinn.Dirichlet(1, n=2),
                  pinn.Data({"x": PLACES}, {"u": 1 + PLACES * (1 - PLACES)}), unknowns=[a, b]) == ""  # fmt: skip


def test_an_unknown_that_changes_nothing():
    k = pinn.Unknown("k", 1)
    said = solved(
        pinn.Field("u", X, pinn.MLP(8, 1)), inside(lambda u: u.xx + k * u.x), pinn.Dirichlet(1, n=2), unknowns=[k]
    )
    assert said == "1 direction is free: k, on which no residual depends"


@pytest.mark.slow
def test_symmetries_are_called_by_name():
    ring = pinn.Interval("x", 0, 2 * math.pi, periodic=True)
    psi = pinn.ComplexField("psi", ring, net=pinn.MLP(8, 2, embed=pinn.Periodic(x=2)))
    equation, one = inside(lambda psi: psi.xx + psi * (1 - psi.abs2)), pinn.Interior(lambda psi: psi.abs2 - 1, n=40)
    assert solved(psi, equation, one, steps=20) == "1 direction is free: psi times a phase"


def test_a_pinned_value_determines():
    level = pinn.Dirichlet(0, points={"x": np.zeros(1), "y": np.zeros(1)})
    slopes = inside(lambda u: (u.x - 1, u.y - 2))
    assert found(SQUARE, slopes) == "1 direction is free: u + constant"
    assert found(SQUARE, slopes, level) == ""


def test_points_that_are_given_tell_what_is_open():
    x = np.linspace(0, 1, 40)
    given = pinn.Interior(lambda u: u.xx - u, points={"x": x})
    assert found(X, given, pinn.Dirichlet(1, n=2)) == ""
    assert found(X, given, pinn.Dirichlet(1, "x_min", n=1)).startswith("1 direction is free: 1 change of u")
    level = pinn.Interior(lambda u: u - 1, points={"x": [0.5]})  # beside an equation that has points of its own
    assert found(X, inside(lambda u: u.x), level) == ""


FEW = "are too few, or too close together, to tell"


def test_too_few_points_to_tell_are_a_doubt(tmp_path):
    u = pinn.Field("u", X, pinn.MLP(4, 1))
    for x, few in ((np.linspace(0, 1, 3), True), (np.linspace(0, 1, 8), False), (0.5 + 1e-3 * np.arange(8), True)):
        problem = Problem(u, [pinn.Interior(lambda u: u.xx, points={"x": x}), pinn.Dirichlet(1, n=2)])
        assert (FEW in told(problem)) == few
    assert told(Problem(u, [pinn.Interior(lambda u: u.xx, n=2), pinn.Dirichlet(1, n=2)])) == ""
    sol = problem.solve(pinn.GaussNewton(4), out=tmp_path)
    assert f"perhaps not determined: the 8 points of the equations of u {FEW}" in sol.run.doubts
    assert pinn.Solution.load(tmp_path / "solution.safetensors").run.doubts == sol.run.doubts


def test_fewer_polynomials_tell_that_all_is_determined_or_nothing():
    lattice = dict(zip("xy", map(np.ravel, np.meshgrid(np.linspace(0, 1, 40), np.linspace(0, 1, 7))), strict=True))
    laplace = pinn.Interior(lambda u: u.lap, points=lattice)
    assert found(SQUARE, laplace, pinn.Dirichlet(0, n=40)) == ""
    assert FEW in found(SQUARE, laplace, pinn.Dirichlet(0, "x_min x_max y_min", n=40))
    assert "directions are free" in found(SQUARE, laplace, pinn.Dirichlet(0, "x_min", n=40))


def test_parts_at_given_points():
    left, right = pinn.Interval("x", 0, 0.4), pinn.Interval("x", 0.4, 1)
    a, b = (pinn.Field(name, X, pinn.MLP(4, 1), part=part) for name, part in (("a", left), ("b", right)))
    conditions = [
        pinn.Interior(lambda a: a.xx, points={"x": np.linspace(0, 0.4, 20)}, of=left),
        pinn.Interior(lambda b: b.xx, points={"x": np.linspace(0.4, 1, 20)}, of=right),
        pinn.Boundary(lambda a, b: (a - b, a.n - b.n), "x_max", of=left),
        pinn.Dirichlet(0, "x_min", field="a"),
    ]
    for more, said in (([pinn.Dirichlet(1, "x_max", field="b")], ""), ([], "1 direction is free")):
        free = told(Problem([a, b], [*conditions, *more]))
        assert free[: len(said)] == said
        assert bool(free) == bool(said)


def test_ends_that_agree_softly():
    ring = pinn.Interval("x", 0, 1, periodic=True)
    fourth = inside(lambda u: u.xxxx + 1e3 * u)
    assert found(ring, fourth, pinn.Wrap("x", 3)) == ""
    assert found(ring, fourth, pinn.Wrap("x")).startswith("2 directions are free")
    rod = ring * pinn.Time("t", 0, 0.1)
    heat, start = inside(lambda u: u.t - u.xx), pinn.Initial(lambda x: lg.sin(2 * math.pi * x), n=20)
    assert found(rod, heat, start, pinn.Wrap("x", n=20)) == ""
    band = pinn.Box("x", x=(0, 1), y=(0, 1))
    laplace = inside(lambda u: u.lap - u), pinn.Wrap("x", n=20)
    assert found(band, *laplace, pinn.Dirichlet(1, n=20)) == ""
    assert "directions are free" in found(band, *laplace, pinn.Dirichlet(1, "y_min", n=20))


def steep(domain, equation, *conditions, steps=25):
    u = pinn.Field("u", domain, pinn.MLP(12, 1))
    return pinn.Problem(u, [pinn.Interior(equation, n=60), *conditions]).solve(pinn.LevenbergMarquardt(steps))


ENDS = pinn.Dirichlet(-1, "x_min", n=20), pinn.Dirichlet(1, "x_max", n=20)
STRIP = pinn.Box(x=(-1, 1), y=(0, 1))


@pytest.mark.parametrize(
    ("domain", "equation", "conditions", "place"),
    [
        (pinn.Time("t", 0, 1), lambda u, t: u.t - 30 * (u - t) - 1, [pinn.Initial(1e-10)], "t = 1"),
        (pinn.Interval("x", -1, 1), lambda u: 0.005 * u.xx - u * (u * u - 1), ENDS, "x = "),
        (pinn.Interval("x", -1, 1), lambda u: 0.03 * u.xx + u * u.x, ENDS, "x = "),
        (STRIP, lambda u: 0.005 * u.lap - u * (u * u - 1), [*ENDS, pinn.Neumann(0, "y_min y_max", n=20)], "x = "),
    ],
)
def test_what_polynomials_cannot_follow_may_be_free(domain, equation, conditions, place):
    """Growth by exp(30), and layers that the ends alone hold."""
    sol = steep(domain, equation, *conditions)
    assert max(sol.run.relative.values()) < 1e-3
    assert sol.run.doubts.startswith(f"not determined: 1 direction is free: 1 change of u, largest about {place}")
    assert sol.errors.estimated == {}


@pytest.mark.parametrize(
    ("equation", "conditions"),
    [
        (lambda u: 0.05 * u.xx + u.x - 1, [pinn.Dirichlet(0, n=2)]),
        (lambda u: u.xx + 5 * u - 1, [pinn.Dirichlet(0, n=2)]),
        (lambda u: u.x + 3 * u, [pinn.Dirichlet(1, "x_min", n=1)]),
    ],
)
def test_layers_that_are_held_are_not_doubted(equation, conditions):
    sol = steep(pinn.Interval("x", -1, 1), equation, *conditions)
    assert sol.run.doubts == ""
    assert sol.errors.estimated["u"] < 0.05


def test_an_error_that_residuals_hardly_tell_is_in_the_estimate():
    sol = steep(pinn.Time("t", 0, 1), lambda u, t: u.t - 12 * (u - t) - 1, pinn.Initial(0), steps=60)
    error = float(np.abs(sol(np.linspace(0, 1, 50)) - np.linspace(0, 1, 50)).max())
    assert sol.run.doubts == ""
    assert error < 2 * sol.errors.estimated["u"] < 0.1
    assert sol.errors.reservation == "the residuals hardly tell a change of it that is as large"

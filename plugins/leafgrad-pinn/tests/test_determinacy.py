"""Problems that leave something open say so before they are trained."""

from __future__ import annotations

import math

import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.determinacy import backwards, homogeneous, undetermined

X, Y, T = pinn.Interval("x", 0, 2), pinn.Interval("y", 0, 1), pinn.Time("t", 0, 1)
NET = pinn.MLP(4, 1)


def of(domain, *conditions, names="u", **hard):
    """What asks a problem of fields of this domain what it leaves open."""
    return lambda: undetermined(pinn.Problem([pinn.Field(n, domain, NET, **hard) for n in names.split()], conditions))


def inside(equation):
    return pinn.Interior(equation, n=32)


SINE = pinn.Initial(lambda x: lg.sin(math.pi * x / 2), n=8)


@pytest.mark.parametrize(
    "found",
    [
        of(X, inside(lambda u: u.xx + 1), pinn.Dirichlet(0, n=2)),
        of(X, inside(lambda u: u.xx + 1), pinn.Dirichlet(0, "x_min", n=1), pinn.Neumann(0, "x_max", n=1)),
        of(X, inside(lambda u: u.xx + u), pinn.Neumann(1, n=2)),
        of(X, inside(lambda u: u.xx + 1), boundary=pinn.Hard(0)),
        of(X * T, inside(lambda u: u.t - u.xx), pinn.Dirichlet(0, n=8), SINE),
        of(X * T, inside(lambda u: u.t - u.xx), pinn.Neumann(0, n=8), pinn.Initial(1, n=8)),
        of(X * T, inside(lambda u: u.tt - u.xx), pinn.Dirichlet(0, n=8), pinn.Initial(0, rate=1, n=8)),
        of(X * T, inside(lambda u: u.t - u.xx), boundary=pinn.Hard(0), initial=pinn.Hard(0)),
        of(X * Y, inside(lambda u: u.x**2 + u.y**2 - 1), pinn.Dirichlet(0, n=16)),
        of(
            T,
            inside(lambda u, v: (u.t - v, v.t + u)),
            pinn.Initial(1, field="u"),
            pinn.Initial(0, field="v"),
            names="u v",
        ),
    ],
)
def test_what_is_determined_is_not_doubted(found):
    assert found() == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (of(X, inside(lambda u: u.xx + 1)), ["at least 2 directions are free: "]),
        (of(X, inside(lambda u: u.xx + 1), pinn.Neumann(0, n=2)), ["at least 1 direction is free: u + constant is as"]),
        (
            of(X, inside(lambda u: u.xx + 1), boundary=pinn.Hard(0, on="x_min")),
            ["1 direction is free: u + constant times what is zero where Hard(...) holds is as"],
        ),
        (of(X * Y, inside(lambda u: u.lap), pinn.Neumann(0, n=16)), ["direction is free: u + constant"]),
        (of(X * Y, inside(lambda u: u.x**2 + u.y**2 - 1)), ["direction is free: u + constant"]),
        (of(X * T, inside(lambda u: u.t - u.xx), pinn.Dirichlet(0, n=8)), ["u: no initial values, but 1 deriv"]),
        (of(X * T, inside(lambda u: u.tt - u.xx), pinn.Dirichlet(0, n=8), SINE), ["u: no initial rate, but 2 deriv"]),
        (of(X, inside(lambda x: x), pinn.Dirichlet(0, n=2)), ["interior: no field is in it"]),
        (
            of(X, inside(lambda u: u.xx), pinn.Dirichlet(0, field="u", n=2), names="u v"),
            ["v: no condition depends on it"],
        ),
        (of(X, inside(lambda u, v: u.xx + v.x), pinn.Dirichlet(0, field="u", n=2), names="u v"), ["v + constant"]),
        # a plate in its plane that may turn: u = -y, v = x
        (of(X * Y, inside(lambda u, v: (u.x, v.y, u.y + v.x)), names="u v"), ["at least 3 directions are free"]),
    ],
)
def test_what_is_open_is_told(found, words):
    lines = found()
    assert len(lines) == len(words)
    for text, part in zip(lines, words, strict=True):
        assert part in text


def test_it_is_said_before_the_first_step(capsys):
    u = pinn.Field("u", X, NET)
    pinn.Problem(u, [inside(lambda u: u.xx + 1), pinn.Neumann(0, n=2)]).solve(pinn.Adam(1))
    assert "not determined: at least 1 direction is free: u + constant" in capsys.readouterr().err


def told(fields, *conditions):
    return undetermined(pinn.Problem(fields, list(conditions)))


def test_equations_that_a_plane_wave_satisfies_have_fields():
    strip = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
    u = pinn.Field("u", strip, pinn.MLP(3, 1))
    wave = pinn.Interior(lambda u: u.tt - u.xx, n=20), pinn.Dirichlet(0, n=8)
    assert told(u, *wave, pinn.Initial(lambda x: lg.sin(math.pi * x), rate=0, n=8)) == []
    line = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(3, 1))
    assert told(line, pinn.Interior(lambda u: u.xx + math.pi**2 * u, n=20), pinn.Dirichlet(1, "x_min", n=2)) == []


def test_a_periodic_coordinate_has_no_multiple():
    ring = pinn.Interval("x", 0, 1, periodic=True)
    u = pinn.Field("u", ring, pinn.MLP(3, 1, embed=pinn.Periodic(x=2)))
    (line,) = told(u, pinn.Interior(lambda u, x: u.xx + lg.sin(2 * math.pi * x), n=20))
    assert "at least 1 direction is free: u + constant is" in line


def test_edges_of_which_nothing_is_said():
    strip = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
    u = pinn.Field("u", strip, pinn.MLP(3, 1))
    heat, start = pinn.Interior(lambda u: u.t - u.xx, n=20), pinn.Initial(lambda x: lg.sin(math.pi * x), n=8)
    left, right = pinn.Dirichlet(0, "x_min", n=8), pinn.Neumann(0, "x_max", n=8)
    assert told(u, heat, start, left) == ["u: no condition on x_max, but second derivatives across"]
    assert told(u, heat, start, left, right) == []
    assert told(u, pinn.Interior(lambda u: u.t + u.x, n=20), start, left) == []  # what flows out is free to
    hard = pinn.Field("u", strip, pinn.MLP(3, 1), boundary=pinn.Hard(0, on="x_max"))
    assert told(hard, heat, start, left) == []
    s = pinn.Field("s", pinn.Box(x=(0, 1), y=(0, 1)), pinn.MLP(3, 1))
    v = pinn.Derivative("v", s, "x")
    walls = pinn.Dirichlet(0, "x_min y_min y_max", field="s", n=8)
    inside = pinn.Interior(lambda s: s.lap + 1, n=20)
    (line,) = told([s, v], inside, walls)
    assert line == "s: no condition on x_max, but second derivatives across"
    assert told([s, v], inside, walls, pinn.Dirichlet(0, "x_max", field="v", n=8)) == []
    psi = pinn.ComplexField("psi", strip, net=pinn.MLP(3, 1))
    conditions = [pinn.Interior(lambda psi: 1j * psi.t + psi.xx, n=20), pinn.Dirichlet(0, "x_min", n=8),
                  pinn.Initial(0, n=8)]  # fmt: skip
    assert len(told(psi, *conditions)) == 2
    assert told(psi, *conditions, pinn.Boundary(lambda psi: psi.x, "x_max", n=8)) == []


def test_ends_that_agree_in_too_few_derivatives():
    ring = pinn.Interval("x", 0, 1, periodic=True)
    u, psi = pinn.Field("u", ring, NET), pinn.ComplexField("psi", ring * T, NET)
    beam = inside(lambda u: u.xxxx + u - 1)
    line = "u: 4 derivatives by x need ends that agree in 3, got 1: say Wrap('x', order=3)"
    assert told(u, beam, pinn.Wrap("x", n=8)) == [line]
    assert told(u, beam, pinn.Wrap("x", 3, n=8)) == []
    assert told(u, inside(lambda u: u.x + u - 1), pinn.Wrap("x", 0, n=8)) == []
    exact = pinn.Field("u", ring, pinn.MLP(4, 1, embed=pinn.Periodic(x=2)))
    assert told(exact, beam, pinn.Wrap("x", n=8)) == []
    moves = inside(lambda psi: 1j * psi.t + psi.xx), pinn.Initial(1, n=8), pinn.Wrap("x", 0, n=8)
    assert [words[:18] for words in told(psi, *moves)] == ["psi_re: 2 derivati", "psi_im: 2 derivati"]
    band = pinn.Box("x", x=(0, 1), y=(0, 1))
    walls = inside(lambda u: u.lap - u), pinn.Dirichlet(1, "y_min", n=8), pinn.Wrap("x", n=8)
    assert told(pinn.Field("u", band, NET), *walls) == ["u: no condition on y_max, but second derivatives across"]


def test_derivatives_of_fourth_order_need_two_conditions_on_each_edge():
    square = pinn.Box(x=(0, 1), y=(0, 1))
    u, clamped = (pinn.Field("u", square, NET, boundary=hard) for hard in (None, pinn.Hard(0, clamped=True)))
    plate, held = inside(lambda u: u.xxxx + 2 * u.xxyy + u.yyyy - 1), pinn.Dirichlet(0, n=16)
    lines = told(u, plate, held)
    assert lines == [
        f"u: 4 derivatives across need as many conditions, got 1 on {c}_min and 1 on {c}_max" for c in "xy"
    ]
    assert told(u, plate, held, pinn.Boundary(lambda u: u.lap, n=16)) == []
    assert told(u, plate, pinn.Boundary(lambda u: (u, u.n), n=16)) == []
    assert told(clamped, plate) == []
    strip = pinn.Interval("x", 0, 1) * T
    w = pinn.Field("w", strip, NET)
    kdv, start = inside(lambda w: w.t + w * w.x + w.xxx), pinn.Initial(lambda x: x * (1 - x) ** 2, n=8)
    ends = pinn.Dirichlet(0, n=8)
    assert told(w, kdv, start, ends) == [
        "w: 3 derivatives across need as many conditions, got 1 on x_min and 1 on x_max"
    ]
    assert told(w, kdv, start, ends, pinn.Boundary(lambda w: w.x, "x_max", n=8)) == []


def test_zero_is_told_to_be_a_solution(capsys):
    u = pinn.Field("u", X, NET)
    resonant, source = inside(lambda u: u.xx + math.pi**2 * u), inside(lambda u: u.xx + 1)
    assert "u = 0 satisfies every condition" in homogeneous(pinn.Problem(u, [resonant, pinn.Dirichlet(0, n=2)]))
    assert homogeneous(pinn.Problem(u, [source, pinn.Dirichlet(0, n=2)])) == ""
    assert homogeneous(pinn.Problem(u, [resonant, pinn.Dirichlet(1, "x_min", n=1)])) == ""
    hard = pinn.Field("u", X, NET, boundary=pinn.Hard(1))
    assert homogeneous(pinn.Problem(hard, [inside(lambda u: u.xx)])) == ""
    pinn.Problem(u, [resonant, pinn.Dirichlet(0, n=2)]).solve(pinn.Adam(1))
    assert "u = 0 satisfies every condition" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("equation", "wrong"),
    [
        (lambda u: u.t - u.xx, False),
        (lambda u: u.t + u.xx, True),
        (lambda u: -u.t - 3 * u.lap + u.x, True),
        (lambda u: u.t + u.xx + 0.1 * u.xxxx, False),
        (lambda u: u.t - u.xxxx, True),
        (lambda u: u.t + u.xxx - u.xx, False),  # the highest moves waves alone
        (lambda u: u.tt - u.xx + u.t, False),
        (lambda u: u.tt + u.lap, True),
        (lambda u: u.t - u * u.xx, False),
        (lambda u, x: u.t + (x - 0.5) * u.xx, False),
        (lambda u, x: (u.x, u.t + x * u.xx), True),
    ],
)
def test_equations_that_go_backwards_are_told(equation, wrong):
    u = pinn.Field("u", pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1), pinn.MLP(3, 1))
    start = pinn.Initial(lambda x: lg.sin(math.pi * x), rate=0, n=8)
    found = list(backwards(pinn.Problem(u, [pinn.Interior(equation, n=20), start])))
    assert [("u goes backwards in t: waves along x" in line) for line in found] == [True] * wrong


def test_what_goes_backwards_is_doubted_at_the_end_as_well(tmp_path):
    u = pinn.Field("u", pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 0.1), pinn.MLP(3, 1), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t + u.xx, n=16), pinn.Initial(lambda x: x * (1 - x), n=8)])
    sol = problem.solve(pinn.Adam(1), out=tmp_path)
    assert "not well posed: interior: u goes backwards in t: waves along x grow" in sol.run.doubts
    assert pinn.Solution.load(tmp_path / "solution.safetensors").run.doubts == sol.run.doubts

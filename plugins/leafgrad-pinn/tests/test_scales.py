"""Units: the same problem in others has the same solution, to the same relative error."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.determinacy import homogeneous, undetermined
from leafgrad_pinn.waves import Look, residuals, waved
from leafgrad_pinn.windows import window

UNITS = [(1e6, 1), (1e-6, 1), (1, 1e9), (1, 1e-9), (3, 7), (0.02, 100)]


def bending(length=1.0, amplitude=1.0, **field):
    """u'' = -8 A / L^2, u = 0 at both ends: A in the middle."""
    u = pinn.Field("u", pinn.Interval("x", 0, length), pinn.MLP(8, 1), **field)
    return pinn.Problem(u, [pinn.Interior(lambda u: u.xx + 8 * amplitude / length**2, n=48), pinn.Dirichlet(0, n=2)])


def error(sol, length, amplitude):
    x = np.linspace(0, length, 101)
    exact = 4 * amplitude * x * (length - x) / length**2
    return float(np.linalg.norm(sol(x) - exact) / np.linalg.norm(exact))


@pytest.fixture(scope="module")
def metres():
    """The error of a beam in usual units."""
    found = error(bending().solve(pinn.GaussNewton(10)), 1, 1)
    assert found < 1e-2
    return found


@pytest.mark.every(3)
@pytest.mark.parametrize(("length", "amplitude"), UNITS)
def test_a_beam_in_any_units_takes_the_same_steps(length, amplitude, metres):
    sol = bending(length, amplitude).solve(pinn.GaussNewton(10))
    assert error(sol, length, amplitude) == pytest.approx(metres, rel=1e-3)
    assert sol.run.doubts == ""


@pytest.mark.parametrize("length", [1e-6, 1e6])
@pytest.mark.parametrize(
    ("order", "equation"),
    [
        (2, lambda length: lambda u: u.lap + 1 / length**2),
        (4, lambda length: lambda u, x: pinn.d(pinn.d(u.xx, x), x) + u.yyyy + 1 / length**4),
    ],
)
def test_laplacians_and_derivatives_of_expressions_are_sized_in_any_units(length, order, equation):
    def sizes(length):
        u = pinn.Field("u", pinn.Box(x=(0, length), y=(0, 2 * length)), pinn.MLP(4, 1))
        return pinn.Problem(u, [pinn.Interior(equation(length), n=64), pinn.Dirichlet(0, n=16)]).sizes

    (inside,), (edges,) = sizes(length)
    (usual,), (held,) = sizes(1)
    assert inside == pytest.approx(usual / length**order, rel=1e-3)
    assert edges == pytest.approx(held, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1e-3, 1, 1e3])
def test_waves_in_any_units(length):
    """u'' + k^2 u = 0, whose terms are large in no units but small ones."""
    u, k = pinn.Field("u", pinn.Interval("x", 0, length), pinn.MLP(10, 1)), 4 / length
    ends = pinn.Dirichlet(1, on="x_min", n=1), pinn.Dirichlet(0, on="x_max", n=1)
    sol = pinn.Problem(u, [pinn.Interior(lambda u: u.xx + k**2 * u, n=48), *ends]).solve(pinn.GaussNewton(40))
    x = np.linspace(0, length, 51)
    assert np.abs(sol(x) - np.sin(k * (length - x)) / np.sin(4)).max() < 2e-3


@pytest.mark.slow
def test_each_window_of_time_has_sizes_of_its_own():
    """The README's oscillator, fast beside the whole of time, and slow beside a window."""
    swing = pinn.Field("u", pinn.Time("t", 0, 9e-3), net=pinn.MLP(8, 1))
    motion = [pinn.Interior(lambda u: u.tt + 1e6 * u, n=30, sampler="grid"), pinn.Initial(1, rate=0)]
    problem = pinn.Problem(swing, motion)
    part = window(problem, 0, 3e-3, ())
    assert part.sizes[1][1] == pytest.approx(3 * problem.sizes[1][1])
    whole = problem.solve(pinn.GaussNewton(25), windows=3)
    t = np.linspace(0, 9e-3, 50)
    assert np.abs(whole(t) - np.cos(1e3 * t)).max() < 5e-3


def test_scales_that_differ_are_told_once(capsys):
    bending(1e-3).solve(pinn.GaussNewton(1))
    said = capsys.readouterr().err
    assert said.count("scales differ: the terms of interior are about") == 1
    assert "those of dirichlet" in said
    bending(1e-1).solve(pinn.GaussNewton(1))
    assert "scales differ" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("length", "seconds", "kelvin"), [(1e-4, 1e-2, 300), (1, 1, 1), (1e3, 1e7, 1e-3)])
def test_heat_in_any_units(length, seconds, kelvin):
    domain = pinn.Interval("x", 0, length) * pinn.Time("t", 0, seconds)
    rate = 0.1 * length**2 / seconds
    u = pinn.Field("u", domain, pinn.MLP(12, 1))
    first = pinn.Initial(lambda x: kelvin * lg.sin(np.pi / length * x), n=32)
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t - rate * u.xx, n=128), pinn.Dirichlet(0, n=32), first])
    sol = problem.solve(pinn.GaussNewton(13))
    x, t = np.meshgrid(np.linspace(0, length, 21), np.linspace(0, seconds, 21))
    exact = kelvin * np.sin(np.pi * x / length) * np.exp(-0.1 * np.pi**2 * t / seconds)
    assert np.linalg.norm(sol(x, t) - exact) / np.linalg.norm(exact) < 2e-2


@pytest.mark.slow
@pytest.mark.parametrize(("length", "load"), [(1e-3, 1e-3), (10, 1e4), (1e3, 1)])
def test_conditions_of_several_equations_size_each(length, load):
    """A cantilever: deflections, slopes, moments and forces are of different units, and in one condition."""
    u = pinn.Field("u", pinn.Interval("x", 0, length), pinn.MLP(8, 1))
    left = pinn.Boundary(lambda u: (u, u.x), on="x_min", n=1)
    right = pinn.Boundary(lambda u: (u.xx, u.xxx), on="x_max", n=1)
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.xxxx - load, n=32), left, right])
    assert [len(sizes) for sizes in problem.sizes] == [1, 2, 2]
    sol = problem.solve(pinn.GaussNewton(40))
    assert float(sol(length)) == pytest.approx(load * length**4 / 8, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(("time", "first", "second"), [(1e-6, 1e5, 1e-3), (1, 1, 1), (1e4, 1e-6, 1e9)])
def test_fields_of_different_units(time, first, second):
    """u = a sin kt, v = b cos kt, where nothing but the equations says how large u is."""
    domain, k = pinn.Time("t", 0, time), 2 / time
    u, v = pinn.Field("u", domain, pinn.MLP(8, 1)), pinn.Field("v", domain, pinn.MLP(8, 1))
    conditions = [
        pinn.Interior(lambda u, v: u.t - k * first / second * v, n=40),
        pinn.Interior(lambda u, v: v.t + k * second / first * u, n=40),
        pinn.Initial(0, field="u", n=1),
        pinn.Initial(second, field="v", n=1),
    ]
    sol = pinn.Problem([u, v], conditions).solve(pinn.GaussNewton(25))
    t = np.linspace(0, time, 51)
    assert np.abs(sol(t)["u"] - first * np.sin(k * t)).max() < 5e-3 * first
    assert np.abs(sol(t)["v"] - second * np.cos(k * t)).max() < 5e-3 * second


def test_hard_conditions_and_data_have_units():
    length, amplitude = 1e4, 1e6
    u = pinn.Field("u", pinn.Interval("x", 0, length), pinn.MLP(8, 1), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, pinn.Interior(lambda u: u.xx + 8 * amplitude / length**2, n=48))
    assert error(problem.solve(pinn.GaussNewton(10)), length, amplitude) < 1e-3


def test_fields_of_the_caller_stay_and_files_keep_scales(tmp_path):
    problem = bending(1, 1e9)
    sol = problem.solve(pinn.GaussNewton(5), out=tmp_path)
    assert [field.scale for field in sol.fields] == [field.scale for field in problem.fields] != [None]
    again = pinn.Solution.load(tmp_path / "solution.safetensors")
    assert again(0.3) == sol(0.3)
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(4, 1))
    pinn.Problem(u, [pinn.Interior(lambda u: u.xx + 1e9, n=8), pinn.Dirichlet(0, n=2)])
    assert u.scale is None


def test_a_declared_scale_is_taken():
    problem = bending(1, 1e9, scale=3e8)
    assert [field.scale for field in problem.fields] == [3e8]
    assert error(problem.solve(pinn.GaussNewton(15)), 1, 1e9) < 1e-3
    u, v = pinn.fields("u v", pinn.Interval("x", 0, 1), pinn.MLP(4, 1), scale={"v": 1e5})
    assert (u.scale, v.scale) == (None, 1e5)
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError, match=r"Field 'u': scale"):
            bending(scale=wrong)
    with pytest.raises(TypeError, match="scale"):
        bending(scale="large")
    with pytest.raises(TypeError, match="sizes by field"):
        pinn.fields("u v", pinn.Interval("x", 0, 1), pinn.MLP(4, 1), scale=3)


def test_resumed_runs_and_windows_keep_units(tmp_path):
    domain = pinn.Interval("x", 0, 1e3) * pinn.Time("t", 0, 1)
    u = pinn.Field("u", domain, pinn.MLP(8, 1))
    first = pinn.Initial(lambda x: 1e6 * lg.sin(np.pi / 1e3 * x), n=16)
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t - 1e5 * u.xx, n=64), pinn.Dirichlet(0, n=16), first])
    sol = problem.solve(pinn.GaussNewton(8), windows=2, out=tmp_path)
    again = problem.solve(pinn.GaussNewton(8), windows=2, out=tmp_path, resume=True)
    x = np.linspace(0, 1e3, 11)
    assert np.array_equal(sol(x, 0.7), again(x, 0.7))
    exact = 1e6 * np.sin(np.pi * x / 1e3) * np.exp(-0.1 * np.pi**2 * 0.7)
    assert np.abs(sol(x, 0.7) - exact).max() < 2e4


def test_a_pressure_is_sized_by_the_flow_and_not_by_friction_at_an_outlet():
    pipe = pinn.Box(x=(0, 2), y=(0, 0.4))
    u, v, p = pinn.fields("u v p", pipe, net=pinn.MLP(4, 1))
    conditions = [
        pinn.Interior(lambda u, v, p: (u * u.x + v * u.y + p.x - 1e-3 * u.lap,
                                       u * v.x + v * v.y + p.y - 1e-3 * v.lap, u.x + v.y), n=64),
        pinn.Dirichlet(0.3, "x_min", field="u", n=16),
        pinn.Dirichlet(0, "y_min y_max", field="v", n=16),
        pinn.Boundary(lambda u, v, p: (1e-3 * u.x - p, v.x), "x_max", n=16),
    ]  # fmt: skip
    sizes = {field.name: field.scale for field in pinn.Problem([u, v, p], conditions).fields}
    assert 0.02 < sizes["p"] < 0.5  # u squared, as Bernoulli has it


@pytest.mark.parametrize("factor", [0.98, 1.0, 1.001])
def test_a_wave_equation_is_sized_although_plane_waves_satisfy_it(factor):
    """Its speed takes a wave through the domain in the time that there is, or nearly."""
    sizes = []
    for length, size in ((1.0, 1.0), (1e6, 1e-9)):
        strip = pinn.Interval("x", 0, length) * pinn.Time("t", 0, 1)
        u = pinn.Field("u", strip, net=pinn.MLP(4, 1))
        start = pinn.Initial(lambda x, a=size, b=length: a * lg.sin(np.pi * x / b), rate=0, n=16)
        wave = pinn.Interior(lambda u, c=factor * length: u.tt - c**2 * u.xx, n=64)
        sizes.append(pinn.Problem(u, [wave, start, pinn.Dirichlet(0, n=8)]).sizes[0][0] / size)
    assert sizes[1] == pytest.approx(sizes[0], rel=1e-6)
    assert sizes[0] > 0.1


@pytest.mark.every(3)
@pytest.mark.parametrize("length", [1e6, 1, 1e-6])
def test_unknowns_in_any_units(length):
    """u'' + k u = 0, k = 4 / L^2, from values of u = cos(2 x / L)."""
    x, k = np.linspace(0, length, 20), pinn.Unknown("k", 3 / length**2)
    u = pinn.Field("u", pinn.Interval("x", 0, length), pinn.MLP(8, 1))
    conditions = [pinn.Interior(lambda u: u.xx + k * u, n=30), pinn.Data({"x": x}, {"u": np.cos(2 * x / length)})]
    sol = pinn.Problem(u, conditions, k).solve(pinn.LevenbergMarquardt(25))
    assert sol.unknowns["k"] * length**2 == pytest.approx(4, rel=1e-3)
    assert sol.unknowns.deviations["k"] * length**2 < 1e-2


def normalised(length, size):
    level = pinn.Unknown("level", 9 / length**2)
    norm = pinn.Integral(lambda u: u**2, size**2 * length / 2)
    return [pinn.Interior(lambda u: u.xx + level * u, n=16), pinn.Dirichlet(0, n=2), norm], level


def quartic(length, size):
    return [pinn.Dirichlet(0, n=2), pinn.Integral(lambda u: u**4, size**4 * length)], ()


def cubic(length, size):
    return [pinn.Interior(lambda u: size * length**2 * u.xx - u**3 / size + size**2, n=16), pinn.Dirichlet(0, n=2)], ()


def p_laplace(length, size):
    load = size**3 / length**4
    return [pinn.Interior(lambda u, x: pinn.d(u.x**3, x) + load, n=16), pinn.Dirichlet(0, n=2)], ()


def membrane(length, size):
    return [pinn.Energy(lambda u: u.x**2 / 2 - size / length**2 * u, least=-(size**2) / length), pinn.Dirichlet(0)], ()


def quotient(length, size):
    return [pinn.Energy(lambda u: u.x**2, per=lambda u: u**2), pinn.Integral(lambda u: u, size * length)], ()


@pytest.mark.parametrize("stated", [normalised, quartic, cubic, p_laplace, membrane, quotient])
def test_terms_of_any_power_and_energies_are_sized_in_any_units(stated):
    def start(length, size):
        u = pinn.Field("u", pinn.Interval("x", 0, length), pinn.MLP(4, 1))
        problem = pinn.Problem(u, *stated(length, size))
        system = problem.system()
        return [system(index, batch).detach().numpy() for index, batch in enumerate(problem.some())]

    usual = start(1, 1)
    for units in [(1e6, 1), (1e-6, 1), (1, 1e9), (1, 1e-9), (3e-4, 7e5)]:
        for here, there in zip(usual, start(*units), strict=True):
            assert np.allclose(there, here, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("factor", "source", "largest"), [(0.25, 0.3, 0.03), (0.25, 1, 0.1), (100, 50, 0.8)])
def test_powers_in_energies_size_fields(factor, source, largest):
    """What is odd in a field far too large is rounding of its fourth power, by which sizes were 1e-9 and 1e8."""
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(4, 1), boundary=pinn.Hard(0))
    energy = pinn.Energy(lambda u, x: u.x**2 / 2 + factor * u**4 / 4 - source * lg.sin(np.pi * x) * u, least=-5)
    assert largest < pinn.Problem(u, energy).system().surrogates[0].scales[0] < 4 * largest


def test_fields_of_networks_of_their_own_that_cancel_are_sized():
    """Copper and steel, one as stiff as the other is large."""
    sizes = []
    for length in (1, 1e-6):
        rod, copper = pinn.Interval("x", 0, length), pinn.Interval("x", 0, length / 2)
        c, s = (pinn.Field(name, rod, pinn.MLP(4, 1), scale=scale) for name, scale in (("c", 1), ("s", 8)))
        flux = pinn.Boundary(lambda c, s: 8 * c.n - s.n, on="x_max", of=copper, n=1)
        ends = pinn.Dirichlet(0, "x_min", field="c", n=1), pinn.Dirichlet(1, "x_max", field="s", n=1)
        sizes.append(pinn.Problem([c, s], [flux, *ends]).sizes[0][0] * length)
    assert 1 < sizes[0] == pytest.approx(sizes[1], rel=1e-6)


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_values_that_meet_are_compared_in_their_own_units(size):
    rod = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
    heat = pinn.Interior(lambda u: u.t - u.xx, n=16)
    start = pinn.Initial(lambda x: size * lg.sin(np.pi * x), n=16)  # at the end what rounding leaves of zero
    pinn.Problem(pinn.Field("u", rod, pinn.MLP(4, 1)), [heat, start, pinn.Dirichlet(0, n=8)])
    typed = pinn.Initial(lambda x: size * lg.sin(3.14159 * x), n=16)
    pinn.Problem(pinn.Field("u", rod, pinn.MLP(4, 1)), [heat, typed, pinn.Dirichlet(0, n=8)])
    with pytest.raises(ValueError, match=r"differ by 1e[+-]12, of values up to 1e[+-]12, where they meet"):
        pinn.Problem(pinn.Field("u", rod, pinn.MLP(4, 1)), [heat, start, pinn.Dirichlet(size, n=8)])
    off = pinn.Dirichlet(0.01 * size, "x_max", n=8)
    with pytest.raises(ValueError, match=r"differ by 1e[+-]1[04], of values up to 1e[+-]12, where they meet"):
        pinn.Problem(pinn.Field("u", rod, pinn.MLP(4, 1)), [heat, start, off])


def monge_ampere(length, size):
    return pinn.Interior(lambda u: u.xx * u.yy - u.xy**2 - size**2 / length**4, n=32)


def bent_plate(length, size):
    """Terms of the third power cancel in waves of one direction."""
    square = (length / size) ** 2

    def mean_curvature(u):
        return (1 + square * u.y**2) * u.xx - 2 * square * u.x * u.y * u.xy + (1 + square * u.x**2) * u.yy

    return pinn.Interior(lambda u: mean_curvature(u) - size / length**2, n=32)


def drift(length, size):
    """A plane wave along the box satisfies it."""
    return pinn.Interior(lambda u: u.x - u.y - size / length, n=32)


@pytest.mark.parametrize("stated", [monge_ampere, bent_plate, drift])
def test_equations_of_which_a_plane_wave_shows_nothing_are_sized_in_any_units(stated):
    def start(length, size):
        u = pinn.Field("u", pinn.Box(x=(0, length), y=(0, length)), pinn.MLP(4, 1))
        problem = pinn.Problem(u, [stated(length, size), pinn.Dirichlet(0, n=16)])
        system = problem.system()
        return [system(index, batch).detach().numpy() for index, batch in enumerate(problem.some())]

    usual = start(1, 1)
    for units in [(1e6, 1), (1e-6, 1), (1, 1e9), (1, 1e-9), (3e-4, 7e5)]:
        for here, there in zip(usual, start(*units), strict=True):
            assert np.allclose(there, here, rtol=1e-9, atol=1e-12)


def products(length, first, second):
    """Four problems in which a source meets a product of two fields alone."""
    x = pinn.Interval("x", 0, length)
    u, v = (pinn.Field(name, x, net=pinn.MLP(4, 1)) for name in "uv")
    zero = pinn.Dirichlet(0, "x_min", field="u")
    for conditions in (
        [pinn.Interior(lambda u, v: v * u.x - first * second / length), pinn.Dirichlet(second, field="v")],
        [
            pinn.Interior(lambda u, v: u * v - first * second),
            pinn.Interior(lambda u, v: u.x * length / first - v / second),
        ],
        [pinn.Interior(lambda u, v: u * v - first * second), pinn.Interior(lambda u, v: u * u * v - first**2 * second)],
        [
            pinn.Interior(lambda u, v: u.xx * length**2 - u.x * u * length / first - first),
            pinn.Interior(lambda u, v: v - u),
        ],
    ):
        yield pinn.Problem([u, v], [*conditions, zero])


@pytest.mark.slow
def test_products_against_a_source_are_sized_in_any_units():
    plain = [({f.name: f.scale or 1 for f in p.fields}, p.sizes) for p in products(1, 1, 1)]
    assert all(0.05 < size < 20 for sizes, _ in plain for size in sizes.values())
    for length, first, second in ((1e-6, 1e6, 1e-6), (1e6, 1e-6, 1e-3)):
        for k, (problem, (sizes, _)) in enumerate(zip(products(length, first, second), plain, strict=True)):
            units = {"u": first, "v": first if k == 3 else second}
            found = {f.name: f.scale / units[f.name] for f in problem.fields}
            assert found == pytest.approx(sizes, rel=1e-6), k


def test_sizes_that_only_equal_each_other_are_those_of_the_units():
    """u_t + p_t = 0 says that p is as large as u, and not how large."""
    strip = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 0.3)
    fields = [pinn.Field(name, strip, net=pinn.MLP(4, 1)) for name in "up"]
    problem = pinn.Problem(fields, [pinn.Interior(lambda u, p: u.t + 100 * p.t, n=16), pinn.Initial(0, field="u", n=4)])
    u, p = (field.scale for field in problem.fields)
    assert u * p == pytest.approx(1, rel=0.2)
    assert u / p == pytest.approx(100, rel=0.5)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e7])
def test_fields_in_bounded_functions_are_sized_where_these_grow(size):
    """Beyond, a residual is like noise, and says nothing of sizes."""

    def sized(*equations, fields="u", **hard):
        made = [pinn.Field(name, pinn.Interval("x", 0, 1), net=pinn.MLP(4, 1), **hard) for name in fields]
        problem = pinn.Problem(made, [pinn.Interior(equation, n=16) for equation in equations])
        return [field.scale or 1.0 for field in problem.fields]

    assert sized(lambda u, x: lg.sin(u / size) - x / 2) == pytest.approx([0.48 * size], rel=0.1)
    slope = sized(lambda u, x: lg.sin(u.x / size) - x / 2, boundary=pinn.Hard(0, on="x_min"))
    assert slope == pytest.approx([0.18 * size], rel=0.1)
    for even in (lambda u: lg.cos(u / size) - 0.5, lambda u, x: lg.log(1 + (u / size) ** 2) - x):
        assert 0.5 < sized(even)[0] / size < 3
    u, v = sized(lambda u, v, x: lg.sin(u * v / size) - x / 2, lambda u, v: u.x - v.x, fields="uv")
    assert 0.1 < u * v / size < 3


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e12])
def test_exact_values_that_are_a_solution_size_a_field(size):
    """Nothing else does: sources are zero, or what rounding leaves of terms that cancel."""

    def problem(value, *conditions):
        u = pinn.Field("u", pinn.Interval("x", 0, 2 * size), pinn.MLP(8, 1), boundary=pinn.Hard(value))
        return pinn.Problem(u, [pinn.Interior(condition, n=40) for condition in conditions])

    def wave(x):
        return size * lg.sin(x / size)

    straight = problem(lambda x: x / 2, lambda u: u.xx)
    found = [straight, problem(size, lambda u: u.xx), problem(wave, lambda u, x: u.xx + wave(x) / size**2)]
    cubic = problem(lambda x: x / 2, lambda u, x: u.xx - u**3 / size**4 + (x / 2) ** 3 / size**4)
    scales = [each.fields[0].scale or 1.0 for each in [*found, cubic]]
    assert scales == pytest.approx([0.29 * size, size, 0.31 * size, 0.29 * size], rel=0.01)
    assert not any(homogeneous(each) for each in found)
    x = np.linspace(0, 2 * size, 51)
    assert np.abs(straight.solve(pinn.LevenbergMarquardt(8))(x) - x / 2).max() < 1e-3 * size


def test_sources_and_other_fields_size_a_field_before_its_exact_values():
    offset = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(4, 1), boundary=pinn.Hard(lambda x: 300 + x))
    assert pinn.Problem(offset, pinn.Interior(lambda u: u.xx + 1e-6)).fields[0].scale < 1e-4


def test_an_equation_is_looked_at_a_few_times_before_the_first_step():
    calls = []

    def equation(u, v, x):
        calls.append(len(x))
        return 1e3 * u.xx + v - 1, v.xx - 1e-3 * u * u + x

    line = pinn.Interval("x", 0, 10)
    fields = [pinn.Field(name, line, pinn.MLP(6, 1)) for name in "uv"]
    problem = pinn.Problem(
        fields, [pinn.Interior(equation, n=50), pinn.Dirichlet(0, field="u"), pinn.Dirichlet(1, field="v")]
    )
    assert problem.fields[0].scale == pytest.approx(106, rel=0.01)
    assert undetermined(problem) == []
    assert len(calls) <= 16


def test_looks_at_once_are_those_one_by_one():
    square = pinn.Box(x=(0, 2), y=(0, 1))
    u = pinn.Field("u", square, pinn.MLP(4, 1))
    conditions = [pinn.Interior(lambda u, x: u.lap * x + u * u), pinn.Integral(lambda u: u.x * u, equals=1)]
    problem = pinn.Problem(u, conditions)
    system, looks = problem.system(), [Look({"u": 0.0}), Look({"u": 3.0}, 0.7), Look({"u": -1.0}, 1.0, True)]
    waved(system)
    for index, batch in enumerate(problem.some()):
        alone = [residuals(system, index, batch, [look])[0] for look in looks]
        for one, other in zip(alone, residuals(system, index, batch, looks), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-13, atol=1e-13)
        assert not np.allclose(alone[1], alone[2])

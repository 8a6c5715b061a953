"""What a solution answers: expressions of its fields, integrals, grids, deviations over seeds, models for others."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn

LINE = pinn.Interval("x", 0, 1)
SQUARE = pinn.Box(x=(0, 1), y=(0, 1))


def known(domain, names="u", dtype=None, seeds=1, scale=None, **hard):
    """A solution whose fields are exact values plus a network's output times something that is zero on edges."""
    made = pinn.fields(names, domain, pinn.MLP(6, 1), boundary=hard, scale=scale or {})
    equations = [pinn.Interior(eval(f"lambda {n}: {n}", {}), n=8, name=n) for n in names.split()]
    return pinn.Problem(made, equations).solve(pinn.Adam(1), seeds=seeds, **({} if dtype is None else {"dtype": dtype}))


def differences(sol, x, h=1e-4):
    """Second differences of a field along x."""
    return (sol(x + h) - 2 * sol(x) + sol(x - h)) / h**2


def test_expressions_of_fields_and_their_derivatives():
    sol = known(LINE, u=pinn.Hard(lambda x: lg.sin(3 * x)))
    x = np.linspace(0.1, 0.9, 7)
    found = sol.evaluate(lambda u, x: (u, u.xx + x * u, pinn.d(u * u, x)), x)
    assert [part.shape for part in found] == [(7,)] * 3
    np.testing.assert_allclose(found[0], sol(x), rtol=1e-12)
    np.testing.assert_allclose(found[1], differences(sol, x) + x * sol(x), rtol=1e-5, atol=1e-5)
    slope = (sol(x + 1e-5) ** 2 - sol(x - 1e-5) ** 2) / 2e-5
    np.testing.assert_allclose(found[2], slope, rtol=1e-6, atol=1e-8)
    assert sol.evaluate(lambda u: u.x, x=np.ones((2, 3)) / 2).shape == (2, 3)
    assert sol.evaluate(lambda u: 2.0, 0.5) == 2.0


def test_many_points_are_evaluated_in_chunks(monkeypatch):
    sol = known(LINE, u=pinn.Hard(lambda x: x))
    x = np.linspace(0, 1, 37)
    whole = sol.evaluate(lambda u: u.xx, x)
    monkeypatch.setattr(pinn.answers, "ROWS", 5)
    np.testing.assert_allclose(sol.evaluate(lambda u: u.xx, x), whole, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:std")
@pytest.mark.parametrize(
    "function",
    [
        lambda u: u - u.mean(),
        lambda u: u / u.max(),
        lambda u: u.std(),
        lambda x: x - lg.roll(x, 1),
        lambda u: lg.cumsum(u, 0),
        lambda u: (u, 1j * u / float(u.max())),
        lambda u: u - lg.as_tensor(np.asarray(u.detach()).mean()),
        lambda u: u / len(u),
        lambda u, x: u * lg.arange(x.shape[0]),
        lambda u, x: lg.where(x > 0.9, u.mean(), u),
        lambda u: lg.sort(u, descending=True).values,
    ],
)
def test_expressions_are_of_each_point_alone(function, monkeypatch):
    monkeypatch.setattr(pinn.answers, "ROWS", 5)
    for size in (1, 1e-9):
        sol = known(LINE, u=pinn.Hard(lambda x, size=size: size * (x + 1)), scale={"u": size})
        for answer in (sol.evaluate, lambda function, x, sol=sol: sol.integral(function, order=8)):
            with pytest.raises(ValueError, match=r"expected an expression of the fields at each point alone"):
                answer(function, np.linspace(0, 1, 11))


def test_expressions_of_few_digits_and_with_infinite_values_are_of_each_point_alone():
    x = np.linspace(0, 1, 40)
    for dtype in (lg.float32, lg.float64):
        sol = known(LINE, u=pinn.Hard(lambda x: 1e4 * lg.sin(9 * x)), dtype=dtype)
        assert np.isfinite(sol.evaluate(lambda u: u.xxx - u.xxx + u.xx / 1e4, x)).all()
        assert np.isinf(sol.evaluate(lambda x: 1 / x, x)[0])
        assert np.isnan(sol.evaluate(lambda x: lg.log(x - 0.5), x)[0])


def test_expressions_that_are_rounding_alone_are_of_each_point():
    """Terms of 1e13 that cancel up to single precision, and signs of what is zero."""
    size = 1e-6
    k, x = 3 / size, np.linspace(0, size, 41)
    grid, t = np.meshgrid(x, np.linspace(0, 1, 7))
    domain = pinn.Interval("x", 0, size)
    sol = known(domain, dtype=lg.float32, u=pinn.Hard(lambda x: lg.sin(k * x)))
    assert np.isfinite(sol.evaluate(lambda u: u.xx + k * k * u, x)).all()
    assert np.abs(sol.evaluate(lambda u, x: lg.sign(u - 0.1 * (10 * u)), x)).max() <= 1
    u = pinn.Field("u", domain * pinn.Time("t", 0, 1), pinn.MLP(6, 1), initial=pinn.Hard(lambda x: lg.sin(k * x)))
    sol = pinn.Problem(u, [pinn.Interior(lambda u: u.t, n=8)]).solve(pinn.Adam(1), windows=3)
    assert np.isfinite(sol.evaluate(lambda u: (u.xx + k * k * u, lg.sign(3 * u - u - u - u)), grid, t)).all()
    with pytest.raises(ValueError, match="at each point alone"):
        sol.evaluate(lambda u: u.x - u.x.mean(), grid, t)


def test_booleans_and_infinite_values_are_results(recwarn):
    sol = known(LINE, u=pinn.Hard(lambda x: x * (1 - x)))
    x = np.linspace(0, 1, 5)
    u = sol(x)
    positive, value = sol.evaluate(lambda u: (u > 0.1, u), x)
    np.testing.assert_array_equal(positive, u > 0.1)
    np.testing.assert_array_equal(value, u)
    assert not sol.evaluate(lambda u: lg.isnan(u), x).any()
    assert sol.evaluate(lambda: True, x).all()
    assert sol.integral(lambda u: u > -9) == pytest.approx(1)
    with np.errstate(divide="ignore"):
        assert np.isneginf(sol.evaluate(lambda u: lg.log(u.abs()), x)[0])
    assert not recwarn.list
    with pytest.raises(ValueError, match="at each point alone"):
        sol.evaluate(lambda u: u > u.mean(), x)


def test_arrays_of_a_number_for_each_point_are_taken():
    sol = known(LINE, u=pinn.Hard(lambda x: x))
    x = np.linspace(0, 1, 11)
    truth = np.cos(x)
    np.testing.assert_array_equal(sol.evaluate(lambda u: u - lg.tensor(truth), x), sol(x) - truth)
    np.testing.assert_array_equal(sol.evaluate(lambda u: u.detach().numpy() - truth, x), sol(x) - truth)


def test_expressions_are_looked_at_all_over_many_points_and_at_few():
    sol = known(LINE, u=pinn.Hard(lambda x: x * (2 - x)))
    for x in (np.linspace(0, 1, 20001), np.linspace(0, 1, 2), 0.3):
        assert np.isfinite(sol.evaluate(lambda u: u.xx + u, x)).all()
        for wrong in (
            lambda u, x: lg.where(x > 0.9, u.max(), u),
            lambda u: lg.sort(u).values,
            lambda u: u - u.mean(),
            lambda u: u * len(u),
        ):
            with pytest.raises(ValueError, match="at each point alone"):
                sol.evaluate(wrong, x)


def test_what_an_expression_is_made_of_is_looked_at_once(monkeypatch):
    sol, calls = known(LINE, u=pinn.Hard(lambda x: x)), []
    some = pinn.answers.FieldFunction.some
    monkeypatch.setattr(pinn.answers.FieldFunction, "some", lambda *args: calls.append(0) or some(*args))
    for x in np.linspace(0, 1, 60).reshape(3, 20):
        sol.evaluate(lambda u: u.x, x)
    assert len(calls) == 3 + 6


def of(u):
    return 2 * u


def test_an_expression_that_calls_another_function_is_another(monkeypatch):
    sol, x = known(LINE, u=pinn.Hard(lambda x: x)), np.linspace(0, 1, 5)

    def answers(given):
        monkeypatch.setitem(globals(), "of", given)
        for function in (lambda u: of(u), lambda u, given=given: given(u), lambda u: given(u)):
            yield lambda function=function: sol.evaluate(function, x)

    for answer in answers(lambda u: 2 * u):
        answer()
    for answer in answers(lambda u: u / u.max()):
        with pytest.raises(ValueError, match="at each point alone"):
            answer()


def test_complex_fields_and_unknowns():
    psi = pinn.ComplexField("psi", LINE, pinn.MLP(6, 1))
    rate = pinn.Unknown("rate", 2.0)
    sol = pinn.Problem(psi, [pinn.Interior(lambda psi: psi.x - rate * psi, n=8)], unknowns=[rate]).solve(pinn.Adam(1))
    x = np.linspace(0.1, 0.9, 5)
    found = sol.evaluate(lambda psi, rate: 1j * psi.x * rate, x)
    slope = (sol(x + 1e-5) - sol(x - 1e-5)) / 2e-5
    assert found.dtype == complex
    np.testing.assert_allclose(found, 1j * slope * sol.unknowns["rate"], rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(sol.evaluate(lambda psi: 1j * psi.x * rate, x), found)
    assert sol.integral(lambda psi: psi).imag == pytest.approx(sol.integral(lambda psi: psi.imag))


def test_windows_of_time():
    domain = LINE * pinn.Time("t", 0, 2)
    u = pinn.Field("u", domain, pinn.MLP(6, 1), initial=pinn.Hard(lambda x: x))
    sol = pinn.Problem(u, [pinn.Interior(lambda u: u.t, n=8)]).solve(pinn.Adam(2), windows=2)
    x, t = np.array([0.3, 0.6, 0.2]), np.array([0.5, 1.5, 1.9])
    slope = (sol(x, t + 1e-5) - sol(x, t - 1e-5)) / 2e-5
    np.testing.assert_allclose(sol.evaluate(lambda u: u.t, x, t), slope, rtol=1e-6, atol=1e-8)


def test_integrals_over_the_domain_edges_and_moments():
    # x (1 - x) y (1 - y) times a network is added to x + 2 y, whose integral is 3/2
    sol = known(SQUARE, u=pinn.Hard(lambda x, y: x + 2 * y))
    grid = (np.arange(400) + 0.5) / 400
    x, y = np.meshgrid(grid, grid, indexing="ij")
    assert sol.integral(lambda u: u) == pytest.approx(sol(x, y).mean(), abs=1e-5)
    assert sol.integral(1.0) == pytest.approx(1)
    assert sol.integral(lambda u: u, on="x_max") == pytest.approx(2)
    flux = sol.integral(lambda u: u.n, on="x_min x_max y_min y_max")
    assert flux == pytest.approx(sol.integral(lambda u: u.lap), abs=1e-9)  # Gauss
    along = sol.integral(lambda u: u, y=np.array([0.0, 1.0]))
    np.testing.assert_allclose(along, [0.5, 2.5], rtol=1e-12)
    assert sol.integral(lambda u, x: (u, u * x), y=0.0) == pytest.approx((0.5, 1 / 3))
    disk = known(pinn.Disk(2, x=0, y=0), u=pinn.Hard(lambda x, y: 1 + 0 * x))
    assert disk.integral(1.0) == pytest.approx(4 * math.pi)


def test_integrals_over_parts():
    sol = known(SQUARE, u=pinn.Hard(lambda x, y: x + 2 * y))
    left, disk = pinn.Box(x=(0, 0.4), y=(0, 1)), pinn.Disk(0.25, x=0.5, y=0.5)
    assert sol.integral(1, of=left) == pytest.approx(0.4)
    assert sol.integral(lambda x: x, of=disk) == pytest.approx(0.5 * math.pi / 16)
    assert sol.integral(lambda u: u.n, on="x_max", of=left) == pytest.approx(sol.integral(lambda u: u.x, x=0.4))
    assert sol.integral(lambda y: y, of=left, x=[0.1, 0.3]).tolist() == pytest.approx([0.5, 0.5])
    with pytest.raises(ValueError, match=r"integral: of: expected a shape of x, y, in this order, got Interval"):
        sol.integral(1, of=LINE)
    with pytest.raises(ValueError, match="integral: expected points inside"):
        sol.integral(1, of=pinn.Box(x=(0, 2), y=(0, 1)))
    with pytest.raises(ValueError, match="on: expected edges of the domain"):
        sol.integral(1, on="circle")


@pytest.mark.parametrize("at", [0.1, 0.4, 0.5, 0.7321])
def test_integrals_of_steps_are_told(at):
    sol = known(LINE, u=pinn.Hard(0))
    with pytest.warns(UserWarning, match=r"with order=65: give a higher order than 64, or where it jumps take"):
        sol.integral(lambda x: lg.where(x < at, 1.0, 0.0))
    with pytest.warns(UserWarning, match="integral: expected an expression that is smooth"):
        sol.integral(lambda x: lg.sin(150 * x) ** 2)


def test_integrals_of_kinks_and_of_what_cancels_are_not_told():
    sol = known(LINE, u=pinn.Hard(0))
    assert sol.integral(lambda x: (x - 0.3).abs()) == pytest.approx(0.29, abs=1e-3)
    assert sol.integral(lambda x: lg.sin(2 * math.pi * x)) == pytest.approx(0, abs=1e-12)
    assert sol.integral(lambda x: lg.sin(x) ** 2 + lg.cos(x) ** 2 - 1) == pytest.approx(0, abs=1e-12)
    assert sol.integral(0.0) == 0


def test_mistakes_in_questions():
    sol = known(SQUARE, u=pinn.Hard(0))
    with pytest.raises(TypeError, match=r"evaluate: expected a function, as lambda u: u\.xx, got 3"):
        sol.evaluate(3, 0.5, 0.5)
    with pytest.raises(TypeError, match="evaluate: expected the coordinates x, y, each once, got 1 by position"):
        sol.evaluate(lambda u: u, 0.5)
    with pytest.raises(ValueError, match="there is no field or coordinate 'v'; there are u, x, y"):
        sol.evaluate(lambda v: v, 0.5, 0.5)
    with pytest.raises(ValueError, match="evaluate"):
        sol.evaluate(lambda u: u, 0.5, 7.0)
    with pytest.raises(TypeError, match="integral: expected coordinates among x, y, got z"):
        sol.integral(lambda u: u, z=1)
    with pytest.raises(ValueError, match="integral: expected a coordinate to integrate over"):
        sol.integral(lambda u: u, x=0.5, y=0.5)
    with pytest.raises(ValueError, match="expected no coordinate of space"):
        sol.integral(lambda u: u, on="x_min", y=0.5)
    with pytest.raises(AttributeError, match="normals only on edges"):
        sol.integral(lambda u: u.n)
    with pytest.raises(ValueError, match="expected one number for each point, got a tuple of 2"):
        sol.to_vtu("u.vtu", also={"two": lambda u: (u, u)})
    for name in ("u", "x"):
        with pytest.raises(ValueError, match=f"also: {name}: expected a name that no coordinate or field has"):
            sol.to_vtu("u.vtu", also={name: lambda u: u.x})
    with pytest.raises(TypeError, match=r"also: expected expressions by name, as .* got list"):
        sol.to_vtu("u.vtu", also=[lambda u: u.x])
    with pytest.raises(TypeError, match=r"also: none: expected a number for each point.* got NoneType"):
        sol.to_vtu("u.vtu", also={"none": lambda u: None})
    for result in (None, {}, "u", [None]):
        with pytest.raises(TypeError, match="evaluate: expected a number for each point, or a tuple of such, got"):
            sol.evaluate(lambda u, result=result: result, 0.5, 0.5)
    with pytest.raises(ValueError, match="deviation: expected the runs of several seeds, got one"):
        sol.deviation(0.5, 0.5)
    with pytest.raises(ValueError, match=r"export: expected a path ending in \.safetensors or \.onnx"):
        sol.export("net.pt")


def test_deviations_over_seeds():
    sol = known(LINE, seeds=3)
    x = np.linspace(0, 1, 5)
    values = [sol.values(run, [x])["u"] for run in sol.runs]
    np.testing.assert_allclose(sol.deviation(x), np.std(values, axis=0, ddof=1))
    assert (sol.deviation(x) > 0).all()


def test_a_solution_in_float32_gives_float32():
    sol = known(LINE, dtype=lg.float32)
    x = np.linspace(0, 1, 5)
    assert sol(x).dtype == sol.evaluate(lambda u: u.x, x).dtype == np.float32
    assert known(LINE)(x).dtype == np.float64


def test_derived_fields_in_files_of_paraview(tmp_path):
    sol = known(SQUARE, "u v", u=pinn.Hard(lambda x, y: x * y), v=pinn.Hard(lambda x, y: y))
    (path,) = sol.to_vtu(tmp_path / "u.vtu", points=5, also={"vorticity": lambda u, v: v.x - u.y})
    text = path.read_text()
    assert 'Name="vorticity"' in text
    assert 'Name="v"' in text
    psi = pinn.ComplexField("psi", LINE, pinn.MLP(3, 1))
    waves = pinn.Problem(psi, pinn.Interior(lambda psi: psi - 1, n=4)).solve(pinn.Adam(1))
    (path,) = waves.to_vtu(tmp_path / "psi.vtu", points=5, also={"twice": lambda psi: 2 * psi})
    for name in ("psi_re", "psi_im", "twice_re", "twice_im"):
        assert f'Name="{name}"' in path.read_text()
    with pytest.raises(ValueError, match="also: twice: expected parts of names of their own, got another twice_re"):
        waves.to_vtu(tmp_path / "psi.vtu", points=5, also={"twice_re": lambda x: x, "twice": lambda psi: 2 * psi})
    with pytest.raises(ValueError, match="also: psi: expected a name"):
        waves.to_vtu(tmp_path / "psi.vtu", points=5, also={"psi": lambda psi: 2 * psi})


def test_a_grid_of_xarray(monkeypatch, tmp_path):
    sol = known(pinn.Disk(1, x=0, y=0), u=pinn.Hard(lambda x, y: x))
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "xarray", None)
        with pytest.raises(ImportError, match="pip install xarray"):
            sol.to_xarray()
    xarray = pytest.importorskip("xarray")
    for points in ((3,), 2.5, "x", 0):
        with pytest.raises((TypeError, ValueError), match="to_xarray: points: expected"):
            sol.to_xarray(points=points)
        with pytest.raises((TypeError, ValueError), match="to_vtu: points: expected"):
            sol.to_vtu(tmp_path / "u.vtu", points=points)
    with pytest.raises(TypeError, match=r"also: expected functions by name, as .*, got list"):
        sol.to_xarray(points=3, also=[lambda u: u.x])
    found = sol.to_xarray(points=11, also={"slope": lambda u: u.x})
    assert isinstance(found, xarray.Dataset)
    assert found["u"].dims == ("x", "y")
    assert np.isnan(found["u"].values[0, 0])
    assert found["u"].sel(x=0.2, y=0.4, method="nearest").item() == pytest.approx(sol(0.2, 0.4).item())
    assert set(found) == {"u", "slope"}


def test_weights_for_others(tmp_path):
    sol = known(LINE)
    sol.export(tmp_path / "net.safetensors")
    saved = lg.load(tmp_path / "net.safetensors")
    assert sorted(t.numel() for t in saved.values()) == sorted(p.numel() for p in sol.run.modules[0].parameters())


def test_a_family_is_no_model_of_onnx(tmp_path):
    family = LINE * pinn.GaussianField("f", length=0.4, sensors=9)
    s = pinn.Field("s", family, pinn.DeepONet(4, 1))
    sol = pinn.Problem(s, pinn.Interior(lambda s, f: s - f, n=8)).solve(pinn.Adam(1))
    with pytest.raises(TypeError, match=r"export: expected one problem of the family, as sol\(f=...\) gives it"):
        sol.export(tmp_path / "s.onnx")


def test_a_model_of_onnx_computes_the_fields(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    sol = known(SQUARE, "u v", u=pinn.Hard(lambda x, y: x * y), v=pinn.Hard(0))
    sol.export(tmp_path / "net.onnx")
    session = runtime.InferenceSession(str(tmp_path / "net.onnx"))
    x, y = np.random.default_rng(0).uniform(0, 1, (2, 13))
    u, v = session.run(["u", "v"], {"x": x, "y": y})
    found = sol(x, y)
    np.testing.assert_allclose(u, found["u"], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(v, found["v"], rtol=1e-10, atol=1e-12)

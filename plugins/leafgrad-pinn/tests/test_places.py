"""Where conditions hold: parts of the domain, of edges, points of one's own; and what they count."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn

X = pinn.Interval("x", 0, 1)
SQUARE = pinn.Box(x=(0, 1), y=(0, 1))


@pytest.mark.slow
def test_two_materials_meet_at_an_interface():
    """u'' = 0 with conductivity 1 up to 0.4 and 5 beyond, from 0 to 1: straight lines whose flux is the same."""
    line, left, right = pinn.Interval("x", 0, 1), pinn.Interval("x", 0, 0.4), pinn.Interval("x", 0.4, 1)
    u, v = pinn.Field("u", line, pinn.MLP(5, 1)), pinn.Field("v", line, pinn.MLP(5, 1))
    conditions = [
        pinn.Interior(lambda u: u.xx, n=16, of=left),
        pinn.Interior(lambda v: v.xx - 2, n=16, of=right),
        pinn.Dirichlet(0, "x_min", field="u"),
        pinn.Dirichlet(1, "x_max", field="v"),
        pinn.Boundary(lambda u, v: (u - v, u.n - 5 * v.n), on="x_max", of=left),
    ]
    sol = pinn.Problem([u, v], conditions).solve(pinn.LevenbergMarquardt(80))
    # v = x^2 + b x + 1 - 1 - b, u = a x: a = 5 (0.8 + b), 0.4 a = 0.16 + 0.4 b - b
    b = (0.16 - 1.6) / (2 + 0.6)
    x = np.array([0.0, 0.2, 0.4])
    assert np.allclose(sol.evaluate(lambda u: u, x), 5 * (0.8 + b) * x, atol=1e-5)
    x = np.array([0.4, 0.7, 1.0])
    assert np.allclose(sol.evaluate(lambda v: v, x), x**2 + b * x - b, atol=1e-5)
    assert float(sol.run.trainees[0].batches[0]["points"].max()) <= 0.4


def drawn(*conditions, domain=SQUARE):
    u = pinn.Field("u", domain, pinn.MLP(4, 1))
    problem = pinn.Problem(u, list(conditions))
    return [batch["points"] for batch in problem.draw(np.random.default_rng(0))]


@pytest.mark.parametrize("sampler", ["sobol", "uniform", "grid", "latin"])
def test_where_takes_part_of_an_edge_and_of_the_inside(sampler):
    inside = pinn.Interior(lambda u: u.lap, n=100, sampler=sampler, where=lambda x, y: x + y < 0.5)
    part = pinn.Dirichlet(1, ["y_min", "x_max"], n=64, sampler=sampler, where=lambda x, y: (x < 0.25) | (y > 0.5))
    rest = pinn.Dirichlet(0, "y_min", n=64, sampler=sampler, where=lambda x: x > 0.3)  # no conflict
    first, second, third = drawn(inside, part, rest)
    if sampler != "grid":
        assert (len(first), len(second), len(third)) == (100, 64, 64)
    assert len(first) > 8
    assert (first.sum(1) < 0.5).all()
    low, high = second[:, 1] == 0, second[:, 0] == 1
    assert low.any()
    assert high.any()
    assert ((low & (second[:, 0] < 0.25)) | (high & (second[:, 1] > 0.5))).all()
    assert (third[:, 0] > 0.3).all()


def test_values_that_meet_where_both_hold_still_conflict():
    with pytest.raises(ValueError, match="conflicting corner values"):
        drawn(pinn.Dirichlet(1, "y_min", where=lambda x: x < 0.6), pinn.Dirichlet(0, "y_min", where=lambda x: x > 0.3))


def test_initial_values_of_parts():
    domain = X * pinn.Time("t", 0, 1)
    start = pinn.Initial(1, n=20, where=lambda x: x < 0.5)
    other = pinn.Initial(0, n=20, of=pinn.Interval("x", 0.5, 1))
    (_, first, second) = drawn(pinn.Interior(lambda u: u.t - u.xx, n=8), start, other, domain=domain)
    assert (first[:, 0] < 0.5).all()
    assert (second[:, 0] >= 0.5).all()
    assert first[:, 1].max() == second[:, 1].max() == 0


def test_own_points_have_weights_and_normals():
    angle = np.linspace(0, 6, 12)
    disk = pinn.Disk(2.0, x=1, y=0)
    u = pinn.Field("u", disk, pinn.MLP(4, 1))
    ring = {"x": 1 + 2 * np.cos(angle), "y": 2 * np.sin(angle)}
    sides = pinn.Neumann(lambda x: x, points=ring, weights=np.arange(12.0))
    inner = pinn.Interior(lambda u: u.lap, points={"y": np.zeros(3), "x": np.ones(3)}, weights=[1, 4, 9])
    problem = pinn.Problem(u, [inner, sides])
    first, second = problem.draw(np.random.default_rng(0))
    assert first["points"].tolist() == [[1, 0]] * 3
    assert np.allclose(second["normals"], np.stack([np.cos(angle), np.sin(angle)], 1), atol=1e-6)
    system = problem.system()
    batch = {name: lg.tensor(values) for name, values in first.items()}
    bare, counted = system.residuals(0, batch)[0], system(0, batch)
    assert np.allclose(counted.detach(), bare.detach() * np.array([[1.0], [2], [3]]))


RING = pinn.Box("x", x=(0, 1), y=(0, 1))
HOLE = SQUARE - pinn.Disk(0.25, x=0.5, y=0.5)


@pytest.mark.parametrize(
    ("domain", "on", "point", "normal"),
    [
        (SQUARE, "x_min", (0, 0.5), (-1, 0)),
        (SQUARE, "y_max", (0.5, 1), (0, 1)),
        (SQUARE, "x_min", (0, 0), (-1, 0)),
        (SQUARE, ["x_min", "y_min"], (0, 0), (-(0.5**0.5), -(0.5**0.5))),
        (SQUARE, "x_min", (1, 0.5), None),
        (SQUARE, "x_min", (0, 1.5), None),
        (RING, None, (0, 1), (0, 1)),
        (RING, None, (0, 0.5), None),
        (HOLE, "circle", (0.5, 0.75), (0, -1)),
        (HOLE, "y_max", (0.5, 0.75), None),
        (HOLE, "circle", (0.5, 1), None),
        (SQUARE + pinn.Box(x=(0.5, 2), y=(0, 1)), "x_max", (1, 0.5), None),
        (pinn.LShape(), "edge4", (1, 0.5), (1, 0)),
        (pinn.LShape(), "edge3", (1, 0.5), None),
        (pinn.Polygon([(0, 0), (1, 0), (0, 1)], edges=["a", "b", "a"]), "a", (0, 0.5), (-1, 0)),
    ],
)
def test_own_points_lie_on_the_edges_that_are_named(domain, on, point, normal):
    flux = pinn.Neumann(1, on, points=dict(zip("xy", ([c] for c in point), strict=True)))
    u = pinn.Field("u", domain, pinn.MLP(4, 1, embed=pinn.Periodic(x=2) if domain is RING else None))
    if normal is None:
        with pytest.raises(ValueError, match=r"points: expected points on the edges .*, got 1 off them"):
            pinn.Problem(u, flux)
    else:
        assert np.allclose(pinn.Problem(u, flux).draw(np.random.default_rng(0))[0]["normals"], [normal])


def test_weights_of_points_decide_between_values_that_contradict_each_other():
    u = pinn.Field("u", X, pinn.MLP(4, 1))
    data = pinn.Data({"x": [0.5, 0.5, 0.2]}, {"u": [0, 1, 0.5]}, weights=[3, 1, 1])
    sol = pinn.Problem(u, data).solve(pinn.LevenbergMarquardt(30))
    assert float(sol(0.5)) == pytest.approx(0.25, abs=1e-4)


@pytest.mark.every(2)
@pytest.mark.parametrize("stages", [[pinn.LevenbergMarquardt(60)], [pinn.LBFGS(300)]])
def test_huber_forgives_outliers(stages):
    """Of a constant fitted to data the squares give the mean, Huber's loss where the slopes balance."""
    x, values = np.linspace(0, 1, 10), np.array([1.0] * 9 + [101])
    for loss, expected in ((None, 11), (pinn.Huber(0.9), 1 + 0.1)):  # 9 (c - 1) = 0.9
        u = pinn.Field("u", X, pinn.MLP(3, 1))
        conditions = [pinn.Data({"x": x}, {"u": values}, loss=loss), pinn.Interior(lambda u: u.x, n=16, weight=1e4)]
        sol = pinn.Problem(u, conditions).solve(*stages)
        assert float(sol(0.3)) == pytest.approx(expected, rel=0.02)


def test_huber_is_its_formula():
    r = lg.tensor([[-3.0, -0.5, 0.0, 0.5, 2.0]], dtype=lg.float64, requires_grad=True)
    loss = pinn.Huber(0.5)(r).square()
    size = np.abs(r.detach().numpy())
    assert np.allclose(loss.detach(), np.where(size <= 0.5, size**2, 0.5 * (2 * size - 0.5)))
    loss.sum().backward()
    assert np.allclose(r.grad, np.where(size <= 0.5, 2 * r.detach().numpy(), np.sign(r.detach().numpy())))


class Mine(lg.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first, self.last = lg.nn.Linear(inputs, 12), lg.nn.Linear(12, outputs)

    def forward(self, x):
        return self.last(lg.tanh(self.first(x)))


@pytest.mark.slow
@pytest.mark.parametrize("stage", [pinn.LevenbergMarquardt(20), pinn.LeastSquares(3)])
def test_a_module_of_ones_own_is_a_network(stage):
    u = pinn.Field("u", X, pinn.Own(Mine), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, pinn.Interior(lambda u: u.xx + 2, n=32))
    first, again, other = (problem.system(seed).state_dict() for seed in (0, 0, 1))
    assert all(bool((first[name] == again[name]).all()) for name in first)
    assert any(bool((first[name] != other[name]).any()) for name in first)
    sol = problem.solve(stage)
    assert float(sol(0.5)) == pytest.approx(0.25, abs=1e-3)


def test_a_table_is_a_forcing():
    """-u'' = sin(pi x), the right side from 30 points."""
    x = np.linspace(0, 1, 30)
    force = pinn.Table({"x": x}, np.sin(np.pi * x), smooth=True)
    u = pinn.Field("u", X, pinn.MLP(8, 1), boundary=pinn.Hard(0))
    for stage in (pinn.LevenbergMarquardt(13), pinn.Adam(2)):
        sol = pinn.Problem(u, pinn.Interior(lambda u, x: u.xx + force(x), n=40)).solve(stage)
        assert float(sol(0.5)) == pytest.approx(np.pi**-2, rel=1e-3) or isinstance(stage, pinn.Adam)
    assert float(sol.evaluate(lambda x: force(x), np.array([0.5]))[0]) == pytest.approx(1, rel=1e-3)


def test_tables_interpolate():
    from scipy.interpolate import RegularGridInterpolator

    rng = np.random.default_rng(0)
    x, y = np.sort(rng.random(7)), np.sort(rng.random(5)) * 3
    values = rng.random((7, 5))
    points = np.stack([rng.uniform(x[0], x[-1], 50), rng.uniform(y[0], y[-1], 50)], 1)
    columns = [lg.tensor(c.copy()) for c in points.T]
    plain = pinn.Table({"x": x, "y": y}, values)
    assert np.allclose(plain(*columns), RegularGridInterpolator((x, y), values)(points))
    square = pinn.Table({"x": x, "y": y}, x[:, None] ** 2 - 3 * y * x[:, None], smooth=True)  # parabolas are kept
    assert np.allclose(square(*columns), points[:, 0] ** 2 - 3 * points[:, 0] * points[:, 1])
    smooth = pinn.Table({"x": x, "y": y}, values, smooth=True)
    grid = [lg.tensor(axis.ravel().copy()) for axis in np.meshgrid(x, y, indexing="ij")]
    assert np.allclose(smooth(*grid), values.ravel())
    ends = lg.tensor([x[3] - 1e-9, x[3] + 1e-9], dtype=lg.float64, requires_grad=True)
    (slope,) = lg.autograd.grad(smooth(ends, lg.full_like(ends, 1.0)).sum(), ends)
    assert float(slope[0]) == pytest.approx(float(slope[1]), rel=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: pinn.Interior(lambda u: u.xx, of="left"), TypeError, "of: expected a shape"),
        (lambda: pinn.Interior(lambda u: u.xx, where=3), TypeError, "where: expected a function"),
        (lambda: drawn(pinn.Interior(lambda u: u.lap, of=X)), ValueError, "of: expected a shape of x, y, in this"),
        (
            lambda: drawn(pinn.Interior(lambda u: u.lap, of=pinn.Box(y=(0, 0.5), x=(0.2, 0.8)))),
            ValueError,
            "interior: of: expected a shape of x, y, in this order, got y, x",
        ),
        (
            lambda: drawn(pinn.Dirichlet(0, of=pinn.Disk(0.2, y=0.3, x=0.5))),
            ValueError,
            "dirichlet: of: expected a shape of x, y, in this order, got y, x",
        ),
        (
            lambda: drawn(pinn.Initial(0, of=pinn.Box(y=(0, 1), x=(0, 1))), domain=SQUARE * pinn.Time("t", 0, 1)),
            ValueError,
            "initial: of: expected a shape of x, y, in this order, got y, x",
        ),
        (
            lambda: drawn(pinn.Interior(lambda u: u.lap, of=pinn.Box(x=(0, 2), y=(0, 1)))),
            ValueError,
            "expected points inside",
        ),
        (lambda: drawn(pinn.Dirichlet(0, where=lambda x: x > 2)), ValueError, "true somewhere there"),
        (lambda: drawn(pinn.Dirichlet(0, where=lambda x: x * 2)), TypeError, "expected true or false for each point"),
        (lambda: drawn(pinn.Dirichlet(0, where=lambda z: z > 2)), ValueError, "no field or coordinate 'z'"),
        (lambda: pinn.Interior(lambda u: u.lap, weights=[1]), ValueError, "weights: expected points"),
        (lambda: pinn.Interior(lambda u: u.lap, points={"x": [1, 2], "y": [0]}), ValueError, "arrays of one shape"),
        (lambda: pinn.Interior(lambda u: u.lap, points={"x": [1]}, weights=[-1]), ValueError, "none below 0"),
        (lambda: drawn(pinn.Interior(lambda u: u.lap, points={"x": [0.5]})), ValueError, "expected arrays of x, y"),
        (
            lambda: drawn(pinn.Dirichlet(0, points={"x": [0.5], "y": [0.5]})),
            ValueError,
            "expected points on the edges x_min, x_max, y_min, y_max, got 1 off them",
        ),
        (lambda: drawn(pinn.Dirichlet(0, [])), ValueError, "on: expected at least one name"),
        (lambda: drawn(pinn.Interior(lambda u: u.lap, loss=lambda r: r.sum())), ValueError, "loss: expected a finite"),
        (lambda: pinn.Huber(0), ValueError, "delta: expected a positive number"),
        (lambda: pinn.Own(lg.nn.Linear(1, 1)), TypeError, "expected a function that makes a module"),
        (lambda: pinn.Table({"x": [0, 1]}, [1, 2, 3]), ValueError, "expected finite numbers of shape"),
        (lambda: pinn.Table({"x": [1, 0]}, [1, 2]), ValueError, "numbers that rise"),
        (
            lambda: drawn(pinn.Interior(lambda u, x: u.lap + pinn.Table({"x": [0, 0.5]}, [1, 1])(x))),
            ValueError,
            "expected finite residuals at the start, got nan",
        ),
    ],
)
def test_mistakes_are_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


class Other(lg.nn.Linear):
    """Of other weights."""


def test_a_network_of_ones_own_is_saved_by_its_name(tmp_path):
    path = tmp_path / "run" / "solution.safetensors"
    u = pinn.Field("u", X, pinn.Own(Mine, embed=pinn.Fourier(4)), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, pinn.Interior(lambda u: u.xx + 2, n=8))
    sol = problem.solve(pinn.LevenbergMarquardt(2), out=tmp_path / "run")
    x = np.linspace(0, 1, 7)
    for given in (Mine, {"Mine": Mine}, {"Mine": lambda inputs, outputs: Mine(inputs, outputs), "Other": Other}):
        assert np.array_equal(pinn.Solution.load(path, own=given)(x), sol(x))
    with pytest.raises(ValueError, match=r"net\.own: the network is 'Mine'.*expected it as own=Mine, got none"):
        pinn.Solution.load(path)
    with pytest.raises(ValueError, match="expected it as own=Mine, got Other"):
        pinn.Solution.load(path, own=Other)
    with pytest.raises(ValueError, match=r"states\[0\].*as the fields say"):
        pinn.Solution.load(path, own={"Mine": Other})
    with pytest.raises(TypeError, match="expected a function that makes a module"):
        pinn.Solution.load(path, own=Mine(4, 1))


def test_a_callback_sees_evaluations_and_may_end_a_stage(monkeypatch):
    monkeypatch.setattr("leafgrad_pinn.stages.first_order.Descent.look", 7)
    seen = []

    def watch(row, fields):
        seen.append((row["step"], float(fields(0.5)["u"]), fields(x=np.array([0.0, 1.0]))["u"].tolist()))
        return len(seen) == 3

    u = pinn.Field("u", X, pinn.MLP(4, 1), boundary=pinn.Hard(0))
    sol = pinn.Problem(u, pinn.Interior(lambda u: u.xx + 2, n=8)).solve(pinn.Adam(5000), callback=watch)
    assert [step for step, *_ in seen] == [7, 14, 21]
    assert sol.run.reasons == [f"the callback ended it after {seen[-1][0]} steps"]
    assert seen[-1][1] == float(sol(0.5))
    assert seen[-1][2] == [0, 0]
    problem = pinn.Problem(u, pinn.Interior(lambda u: u.xx + 2, n=8))
    after = "the callback ended it after 7 steps"
    for true in (np.True_, np.array([True]), lg.tensor(True)):
        assert problem.solve(pinn.Adam(14), callback=lambda row, fields, true=true: true).run.reasons == [after]
    for other in (1, "stop", np.array([True, True]), [True]):
        with pytest.raises(TypeError, match="callback: expected True, which ends the stage"):
            problem.solve(pinn.Adam(14), callback=lambda row, fields, other=other: other)
    with pytest.raises(TypeError, match="callback: expected a function"):
        pinn.Problem(u, pinn.Interior(lambda u: u.xx + 2, n=8)).solve(pinn.Adam(5), callback=3)


def test_a_field_of_a_part_is_nan_elsewhere(tmp_path, capsys):
    left, right = pinn.Interval("x", 0, 0.5), pinn.Interval("x", 0.5, 1)
    u = pinn.Field("u", X, pinn.MLP(5, 1), part=left)
    v = pinn.Field("v", X, pinn.MLP(5, 1), part=right)
    conditions = [
        pinn.Interior(lambda u: u.xx, n=9, of=left),
        pinn.Interior(lambda v: v.xx, n=9, of=right),
        pinn.Dirichlet(0, "x_min", field="u"),
        pinn.Dirichlet(1, "x_max", field="v"),
        pinn.Boundary(lambda u, v: (u - v, u.n - v.n), on="x_max", of=left),
    ]
    truth = pinn.references.exact(X, u=lambda x: x, v=lambda x: x)
    sol = pinn.Problem([u, v], conditions).solve(pinn.LevenbergMarquardt(10), reference=truth)
    assert "not determined" not in capsys.readouterr().err
    assert max(sol.errors.l2["u"][0], sol.errors.l2["v"][0]) < 1e-3
    sol.save(tmp_path / "uv.safetensors")
    x = np.array([0.25, 0.5, 0.75])
    for each in (sol, pinn.Solution.load(tmp_path / "uv.safetensors")):
        values = each(x)
        assert np.isnan(values["u"]).tolist() == [False, False, True]
        assert np.isnan(values["v"]).tolist() == [True, False, False]
        assert np.isnan(each.evaluate(lambda u: u.x, x)).tolist() == [False, False, True]
        assert np.allclose(each.evaluate(lambda u, v, x: lg.where(x <= 0.5, u, v), x), x, atol=1e-3)
        assert each.integral(lambda u, v, x: lg.where(x < 0.5, u, v)) == pytest.approx(0.5, abs=1e-3)
        assert each.integral(lambda u: u, of=left) == pytest.approx(0.125, abs=1e-3)
        assert each.integral(lambda u: u, on="x_min") == pytest.approx(0, abs=1e-3)
        with pytest.raises(ValueError, match=r"integral: expected fields of all that .* got u, which is nan outside"):
            each.integral(lambda u, v: (u - v) ** 2)
    with pytest.raises(ValueError, match=r"data: expected points in the part of u, .* 1 outside of it.*'x': 0.9"):
        pinn.Problem([u, v], [*conditions, pinn.Data({"x": [0.2, 0.9]}, {"u": [0.2, 0.9]})])
    sol.plot(tmp_path / "uv.png")
    with pytest.raises(ValueError, match="part: expected a shape of x"):
        pinn.Field("u", X, pinn.MLP(5, 1), part=SQUARE)


@pytest.mark.parametrize("stage", [pinn.LevenbergMarquardt(5), pinn.LeastSquares(2)])
@pytest.mark.parametrize("names", ["yx", "y", "x"])
def test_a_part_of_a_field_that_has_its_own_coordinates(names, stage):
    """v is 1 where its first coordinate is below a half, whatever the order of the problem's."""
    sides = dict.fromkeys(names, (0, 1))
    whole, low = pinn.Box(**sides), pinn.Box(**sides | {names[0]: (0, 0.5)})
    fields = [pinn.Field("u", SQUARE, pinn.MLP(3, 1)), pinn.Field("v", whole, pinn.MLP(3, 1), part=low)]
    where = {"x": lambda x: x <= 0.5, "y": lambda y: y <= 0.5}[names[0]]
    conditions = [pinn.Interior(lambda u: u - 2, n=16), pinn.Interior(lambda v: v - 1, n=16, where=where)]
    sol = pinn.Problem(fields, conditions).solve(stage)
    x, y = np.array([0.2, 0.2, 0.9, 0.9]), np.array([0.1, 0.7, 0.3, 0.8])
    inside = np.array({"x": x, "y": y}[names[0]] <= 0.5)
    for found in (sol(x, y)["v"], sol.evaluate(lambda v: v, x, y)):
        assert np.allclose(found, np.where(inside, 1, np.nan), atol=1e-2, equal_nan=True)


def test_a_solution_that_jumps_at_its_corners_has_conditions_that_leave_them_out():
    rod = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
    u = pinn.Field("u", rod, net=pinn.MLP(4, 1))
    heat = pinn.Interior(lambda u: u.t - u.xx, n=16)
    with pytest.raises(ValueError, match=r"for a solution that jumps, leave the place out of one by where="):
        pinn.Problem(u, [heat, pinn.Dirichlet(0), pinn.Initial(1)])
    pinn.Problem(u, [heat, pinn.Dirichlet(0), pinn.Initial(1, where=lambda x: (x > 0.01) & (x < 0.99))])

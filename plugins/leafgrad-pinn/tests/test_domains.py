"""Points lie where they should, and normals point outwards."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import leafgrad
import leafgrad_pinn as pinn
from leafgrad_pinn import Ball, Box, Disk, Interval, LShape, Polygon, SignedDistance, Time
from leafgrad_pinn.domains import as_domain, measure
from leafgrad_pinn.field import columns_of
from leafgrad_pinn.sampling import SAMPLERS, unit

SQUARE = Box(x=(0, 1), y=(0, 1))
SHAPES = {
    "interval": Interval("x", -1, 2),
    "box": Box(x=(0, 1), y=(-1, 1)),
    "disk": Disk(0.5, x=1, y=-1),
    "ball": Ball(2.0, x=0, y=0, z=1),
    "triangle": Polygon([(0, 0), (1, 0), (0, 1)]),
    "clockwise": Polygon([(0, 0), (0, 1), (1, 1), (1, 0)]),
    "L": LShape(),
    "signed distance": SignedDistance(lambda x, y: x**2 + 4 * y**2 - 1, x=(-1.1, 1.1), y=(-0.6, 0.6)),
    "union": Box(x=(0, 1), y=(0, 1)) + Disk(0.5, x=1, y=0.5),
    "difference": Box(x=(0, 1), y=(0, 1)) - Disk(0.25, x=0.5, y=0.5),
    "intersection": Disk(1.0, x=0, y=0) & Box(x=(0, 2), y=(-1, 2)),
}
AREAS = {
    "interval": 3,
    "box": 2,
    "disk": np.pi / 4,
    "ball": 32 / 3 * np.pi,
    "triangle": 0.5,
    "clockwise": 1,
    "L": 3,
    "signed distance": np.pi / 2,
    "union": 1 + np.pi / 8,
    "difference": 1 - np.pi / 16,
    "intersection": np.pi / 2,
}
LENGTHS = {
    "disk": np.pi,
    "triangle": 2 + np.sqrt(2),
    "L": 8,
    "difference": 4 + np.pi / 2,
    "union": 3 + np.pi / 2,
    "intersection": np.pi + 2,
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_unit_points(sampler, dim, rng):
    points = unit(sampler, 64, dim, rng)
    assert points.shape == (64, dim)
    assert points.min() >= 0
    assert points.max() < 1
    if sampler in ("grid", "sobol", "latin"):
        assert abs(points.mean() - 0.5) < 0.03
    if sampler == "stratified":
        assert sorted((points[:, -1] * 64).astype(int)) == list(range(64))


@pytest.mark.parametrize("name", SHAPES)
def test_the_share_of_points_inside_is_the_area(name, rng):
    shape = SHAPES[name]
    box = as_domain(Box(**{n: tuple(b) for n, b in zip(shape.names, shape.bounds, strict=True)}))
    points = box.interior(20000, "uniform", rng)
    area = (shape.signed(points) < 0).mean() * np.prod(np.ptp(shape.bounds, axis=1))
    assert abs(area / AREAS[name] - 1) < 0.03


@pytest.mark.parametrize("sampler", ["grid", "uniform", "sobol", "latin"])
@pytest.mark.parametrize("name", SHAPES)
def test_interior_points_are_inside(name, sampler, rng):
    domain = as_domain(SHAPES[name])
    points = domain.interior(100, sampler, rng)
    assert (domain.shape.signed(points) < 0).all()
    assert sampler == "grid" or len(points) == 100


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_normals_point_outwards(name, timed, rng):
    shape = SHAPES[name]
    domain = shape * Time("t", 1, 3) if timed else as_domain(shape)
    points, normals = domain.boundary(200, domain.edges, "uniform", rng)
    space = points[:, : len(shape.names)]
    assert np.abs(shape.signed(space)).max() < 1e-8
    assert np.abs(np.linalg.norm(normals, axis=1) - 1).max() < 1e-8
    step = 1e-5 * normals
    inside, outside = shape.signed(space - step) < 0, shape.signed(space + step) > 0
    assert inside.mean() > 0.99  # all but those at corners
    assert outside.mean() > 0.99
    if timed:
        assert points[:, -1].min() >= 1
        assert points[:, -1].max() <= 3


@pytest.mark.parametrize("name", LENGTHS)
def test_edges_get_points_by_their_length(name, rng):
    domain = as_domain(SHAPES[name])
    total = sum(measure(piece) for pieces in domain.shape.edges.values() for piece in pieces)
    assert abs(total / LENGTHS[name] - 1) < 0.03
    assert len(domain.boundary(400, domain.edges, "sobol", rng)[0]) == 400


@pytest.mark.parametrize(
    ("shape", "length"),
    [
        (SQUARE + Box(x=(1, 2), y=(0, 1)), 6),
        (SQUARE - Box(x=(0.4, 0.6), y=(0, 0.5)), 5),
        (SQUARE - Box(x=(0, 0.5), y=(0, 1)), 3),
        (SQUARE - Box(x=(1, 2), y=(0, 1)), 4),
        (SQUARE & Box(x=(0, 2), y=(-1, 2)), 4),
        (SQUARE + SQUARE, 4),
    ],
)
def test_edges_that_lie_on_each_other_count_once(shape, length, rng):
    assert abs(sum(measure(piece) for pieces in shape.edges.values() for piece in pieces) / length - 1) < 0.02
    points, normals = as_domain(shape).boundary(300, shape.edges, "uniform", rng)
    assert len(points) == 300
    assert (shape.signed(points - 1e-5 * normals) < 0).mean() > 0.99
    assert (shape.signed(points + 1e-5 * normals) > 0).mean() > 0.99


def test_points_of_a_signed_distance_are_uniform_on_its_edge(rng):
    ellipse = SignedDistance(lambda x, y: x**2 / 9 + y**2 - 1, x=(-3.3, 3.3), y=(-1.2, 1.2))
    points, _ = as_domain(ellipse).boundary(4000, ["boundary"], "uniform", rng)
    angles = np.linspace(0, 2 * np.pi, 5001)
    lengths = np.append(0, np.cumsum(np.hypot(np.diff(3 * np.cos(angles)), np.diff(np.sin(angles)))))
    places = np.interp(np.arctan2(points[:, 1], points[:, 0] / 3) % (2 * np.pi), angles, lengths) / lengths[-1]
    counts = np.histogram(places, 10, (0, 1))[0]
    assert np.abs(counts / 400 - 1).max() < 0.2
    assert abs(measure(ellipse.edges["boundary"][0]) / lengths[-1] - 1) < 0.05


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("name", ["interval", "box", "L", "ball", "difference"])
def test_there_are_as_many_points_as_asked_for(name, timed, rng):
    domain = SHAPES[name] * Time("t", 0, 1) if timed else as_domain(SHAPES[name])
    pieces = sum(len(pieces) for pieces in domain.shape.edges.values())
    for sampler in SAMPLERS[1 : 5 if timed else 4]:
        for n in (1, 2, 7, 33):
            assert len(domain.interior(n, sampler, rng)) == n
            points, normals = domain.boundary(n, domain.edges, sampler, rng)
            assert len(points) == len(normals) == (max(n, pieces) if timed or name != "interval" else 2)


@pytest.mark.parametrize("gap", [1e-2, 1e-3, 1e-4])
def test_thin_shapes_have_as_many_points_too(gap, rng):
    ring = Disk(1, x=0, y=0) - Disk(1 - gap, x=0, y=0)
    points = as_domain(ring).interior(200, "uniform", rng)
    assert len(points) == 200
    assert (np.abs(np.linalg.norm(points, axis=1) - 1 + gap / 2) < gap / 2).all()


def test_points_that_are_too_rare_are_said_to_be(rng, monkeypatch):
    monkeypatch.setattr("leafgrad_pinn.domains.RARE", 1e-2)
    ring = as_domain(Disk(1, x=0, y=0) - Disk(0.999, x=0, y=0))
    with pytest.raises(ValueError, match=r"points inside: expected 999 of them, found \d+ among 399600 drawn; take"):
        ring.interior(999, "uniform", rng)


@pytest.mark.parametrize("operation", [operator.sub, operator.add, operator.and_])
def test_set_operations_come_before_products(operation):
    disk, domain = Disk(0.1, x=0.5, y=0.5), Box(x=(0, 1), y=(0, 1)) * Time("t", 0, 1)
    with pytest.raises(TypeError, match=r"as \(shape - other\) \* Time\('t', 0, 1\)"):
        operation(domain, disk)
    with pytest.raises(TypeError, match="expected two shapes, got Domain; time comes last"):
        operation(disk, domain)


def test_points_stratified_in_time_fill_each_slice_of_any_shape(rng):
    domain = LShape() * Time("t", 0, 2)
    for points in (domain.interior(50, "stratified", rng), domain.boundary(60, ["edge0"], "stratified", rng)[0]):
        slices = (points[:, -1] / 2 * len(points)).astype(int)
        assert sorted(slices) == list(range(len(points)))


def test_long_times_do_not_widen_space():
    domain = Interval("x", 0, 1) * Time("t", 0, 1e6)
    assert not domain.inside(np.array([[1.01, 5.0]])).any()


def test_products():
    square = Interval("x", 0, 1, periodic=True) * Interval("y", 0, 2)
    assert square.names == ("x", "y")
    assert square.periodic == ("x",)
    assert list(square.edges) == ["y_min", "y_max"]
    domain = square * Time("t", 0, 1)
    assert domain.names == ("x", "y", "t")
    assert domain.space == ("x", "y")


def test_a_time_alone(rng):
    domain = as_domain(Time("t", 0, 4))
    assert domain.interior(8, "latin", rng).shape == (8, 1)
    assert domain.start(8, "sobol", rng).tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Interval("x", 1, 0), "x: expected two finite numbers"),
        (lambda: Box(), "expected at least one side"),
        (lambda: Box("z", x=(0, 1)), "periodic: expected names among x, got z"),
        (lambda: Disk(-1, x=0, y=0), "radius: expected a positive number"),
        (lambda: Disk(1, x=0), "expected a centre of 2 coordinates"),
        (lambda: Polygon([(0, 0), (1, 1)]), "vertices: expected three or more"),
        (lambda: Time("t", 0, 0), "expected a finite start before"),
        (lambda: Disk(1, x=0, y=0) + Disk(1, x=0, z=0), "expected the same coordinates"),
        (lambda: Interval("x", 0, 1) * Interval("x", 0, 1), "expected different coordinates"),
        (lambda: Interval("x", 0, 1) * Time("x", 0, 1), "expected a name other than x"),
        (
            lambda: as_domain(Box(**{"": (0, 1), "y": (0, 1)})),
            "coordinates: name: expected one that a parameter .*, got ''",
        ),
        (lambda: Interval("x", 0, 1) * Time("", 0, 1), "Time: name: expected one that a parameter .*, got ''"),
        (lambda: as_domain(Box(**{"x y": (0, 1)})), "coordinates: name: expected one that .*, got 'x y'"),
        (lambda: Interval("x y", 0, 1), "Interval: name: expected one that a parameter of a function can have"),
        (lambda: Interval("lambda", 0, 1), "Interval: name: expected one that .*, got 'lambda'"),
        (lambda: as_domain(LShape()).boundary(5, ["top"], "grid", None), "expected edges of the domain"),
        (lambda: as_domain(LShape()).interior(5, "random", np.random.default_rng(0)), "sampler: expected one of"),
        (lambda: as_domain(LShape()).interior(5, "stratified", None), "is in time"),
        (lambda: as_domain(LShape()).check_inside("p", np.array([[0.5, -0.5]])), "1 outside, the first at"),
        (lambda: Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]), "does not cross or touch itself; sides 0 and 2 do"),
        (lambda: Polygon([(0, 0), (0, 0), (1, 0), (0, 1)]), "each other than the next"),
        (lambda: Polygon([(0, 0), (1, 0), (2, 0)]), "does not cross or touch itself"),
        (lambda: Polygon([(0, 0), (1, 0), (0, 1)], "x x"), "expected two names"),
        (lambda: Disk(1, x=0, y=0) - Interval("x", 0, 1), "expected the same coordinates"),
        (lambda: Box("x", x=(0, 1), y=(0, 1)) - Disk(1, x=0, y=0), "expected shapes that are not periodic"),
        (lambda: Disk(1, x=0, y=0) & Disk(1, x=5, y=0), "nothing is left"),
        (lambda: Box(x=(0, 1), y=(0, 1)) - Disk(5, x=0, y=0), "difference: nothing is left of Box"),
        (lambda: SignedDistance(lambda x, y: x**2 - 1, x=(-2, 2), y=(-2, 2)), "positive on its box's face y_min"),
        (lambda: SignedDistance(lambda x, y: x**2 + 1, x=(-2, 2), y=(-2, 2)), "negative somewhere"),
        (lambda: SignedDistance(lambda p: p, x=(-2, 2), y=(-2, 2)), "no field or coordinate 'p'"),
        (
            lambda: as_domain(Disk(1, x=0, y=0) + Disk(3, "out", x=0, y=0)).boundary(9, ["circle"], "uniform", None),
            "nothing of these edges is left",
        ),
    ],
)
def test_mistakes_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_default_dtype_does_not_matter(rng):
    points = as_domain(LShape()).interior(4, "uniform", rng)
    assert columns_of(as_domain(LShape()), points)["x"].dtype is leafgrad.float64


def test_an_ellipse_is_an_ellipse(tmp_path):
    from scipy.special import ellipe

    shape, rng = pinn.Ellipse((3, 1), x=1, y=-2), np.random.default_rng(0)
    domain = pinn.Domain(shape)
    (piece,) = shape.edges["ellipse"]
    assert piece.measure == pytest.approx(12 * ellipe(1 - 1 / 9), rel=1e-8)
    points, normals = domain.boundary(4000, ["ellipse"], "uniform", rng)
    assert np.allclose(((points - [1, -2]) / [3, 1]) ** 2 @ [1, 1], 1)
    assert np.abs(shape.signed(points)).max() < 1e-12
    assert np.allclose(shape.signed(points + 1e-4 * normals), 1e-4, rtol=1e-2)
    assert (points[:, 0] > 1 + 1.5).mean() == pytest.approx((points[:, 0] < 1 - 1.5).mean(), abs=0.04)
    inside = domain.interior(4000, "uniform", rng)
    assert (shape.signed(inside) < 0).all()
    assert inside[:, 0].std() == pytest.approx(1.5, rel=0.05)  # half an axis in an ellipse
    u = pinn.Field("u", shape, pinn.MLP(8, 1), boundary=pinn.Hard(0))
    sol = pinn.Problem(u, pinn.Interior(lambda u: u.lap + 20, n=64)).solve(pinn.LevenbergMarquardt(6))
    assert float(sol(1, -2)) == pytest.approx(9, rel=1e-3)  # u = 9 (1 - x^2 / 9 - y^2)
    assert sol.integral(lambda u: u.n, on="ellipse") == pytest.approx(-20 * 3 * np.pi, rel=1e-2)
    sol.save(tmp_path / "u.safetensors")
    assert float(pinn.Solution.load(tmp_path / "u.safetensors")(1, -2)) == float(sol(1, -2))


@pytest.mark.parametrize("axes", [(1,), (1, -1), "ab", (1, 2, 3), 2])
def test_axes_of_ellipses_are_two_positive_numbers(axes):
    with pytest.raises((TypeError, ValueError), match=r"axes: expected"):
        pinn.Ellipse(axes, x=0, y=0)


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (Interval("x", 0, 1), "Interval('x', 0.0, 1.0)"),
        (
            Interval("x", 0, 1, periodic=True) * Time("t", 0, 2),
            "Interval('x', 0.0, 1.0, periodic=True) * Time('t', 0.0, 2.0)",
        ),
        (SQUARE, "Box(x=(0.0, 1.0), y=(0.0, 1.0))"),
        (Box("x", x=(0, 1), y=(0, 1)), "Box('x', x=(0.0, 1.0), y=(0.0, 1.0))"),
    ],
)
def test_they_are_shown_as_they_are_written(domain, text):
    assert repr(domain) == text


def test_a_function_may_differentiate():
    shape = SignedDistance(lambda x, y: pinn.d(x**3 / 3, x) + y * y - 1, x=(-1.5, 1.5), y=(-1.5, 1.5))
    with leafgrad.no_grad():
        assert shape.contains(np.array([[0.9, 0.0], [0.0, 0.9], [0.8, 0.8]])).tolist() == [True, True, False]

"""Functions that vanish on edges: of any polygon, and of what set operations make."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad.autograd import grad
from leafgrad_pinn.domains import as_domain
from leafgrad_pinn.field import columns_of

SPIRAL = [(0, 0), (5, 0), (5, 5), (1, 5), (1, 2), (3, 2), (3, 3), (2, 3), (2, 4), (4, 4), (4, 1), (0, 1)]
SQUARE = pinn.Box(x=(-1, 1), y=(-1, 1))


def star(seed):
    """A polygon around the origin, with inner corners."""
    rng = np.random.default_rng(seed)
    m = 5 + seed
    angles = 2 * np.pi * (np.arange(m) + 0.6 * rng.random(m)) / m
    vertices = (0.3 + rng.random(m))[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
    return pinn.Polygon(vertices[:: 1 if seed % 2 else -1])


SHAPES = {
    "interval": pinn.Interval("x", -1, 2),
    "cube": pinn.Box(x=(0, 1), y=(0, 1), z=(0, 2)),
    "ball": pinn.Ball(2.0, x=0, y=0, z=1),
    "triangle": pinn.Polygon([(0, 0), (1, 0), (0, 1)]),
    "L": pinn.LShape(),
    "clockwise": pinn.Polygon(SPIRAL[::-1]),
    "spiral": pinn.Polygon(SPIRAL),
    "a straight corner": pinn.Polygon([(0, 0), (1, 0), (2, 0), (2, 2), (0, 2)]),
    **{f"star {seed}": star(seed) for seed in range(6)},
    "signed distance": pinn.SignedDistance(lambda x, y: x**4 + y**2 - 1, x=(-1.1, 1.1), y=(-1.1, 1.1)),
    "union": SQUARE + pinn.Disk(1.0, x=1, y=0),
    "difference": SQUARE - pinn.Disk(0.5, x=0, y=0.2),
    "notch": SQUARE - pinn.Box(x=(-0.2, 0.2), y=(-1, 0)),
    "intersection": SQUARE & pinn.Polygon([(-2, -1.5), (2, -1.5), (0, 1.5)], edges=["base", "right", "left"]),
    "three": (SQUARE + pinn.Disk(1.0, x=1, y=0)) - pinn.SignedDistance(
        lambda x, y: x**2 + 2 * y**2 - 0.3, x=(-0.6, 0.6), y=(-0.6, 0.6)
    ),
}  # fmt: skip


def vanishing(shape, points, edges):
    """The function at points (n, d), and its first derivatives (n, d)."""
    columns = columns_of(as_domain(shape), points)
    value = shape.vanishing(columns, edges)
    slopes = grad(value.sum(), list(columns.values()), materialize_grads=True)
    return value.detach().numpy(), np.stack([slope.numpy() for slope in slopes], 1)


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_zero_of_first_order_on_the_boundary_and_positive_inside(name):
    shape, rng = SHAPES[name], np.random.default_rng(0)
    shape.check_hard()
    inside, _ = vanishing(shape, as_domain(shape).interior(300, "uniform", rng), list(shape.edges))
    assert (inside > 0).all()
    points, normals = as_domain(shape).boundary(200, shape.edges, "uniform", rng)
    value, slopes = vanishing(shape, points, list(shape.edges))
    assert np.abs(value).max() < 1e-6 * inside.max()
    outwards = (slopes * normals).sum(1)
    assert np.isfinite(outwards).all()
    assert (outwards < 0).mean() > 0.98  # all but those within rounding of a corner


@pytest.mark.parametrize("name", SHAPES)
def test_it_has_the_signs_of_the_shape_everywhere(name):
    shape, rng = SHAPES[name], np.random.default_rng(0)
    size = np.ptp(shape.bounds, axis=1)
    points = shape.bounds[:, 0] - 0.2 * size + 1.4 * size * rng.random((2000, len(size)))
    level, signed = shape.level(columns_of(as_domain(shape), points)).detach().numpy(), shape.signed(points)
    assert ((level > 0) == (signed < 0)).all()


@pytest.mark.parametrize("name", [name for name in SHAPES if len(SHAPES[name].edges) > 1])
def test_it_is_zero_on_some_edges_alone(name):
    shape, rng = SHAPES[name], np.random.default_rng(0)
    domain, edges = as_domain(shape), list(shape.edges)
    for some in (edges[:1], edges[1::2], edges[:-1]):
        others = [edge for edge in edges if edge not in some]
        assert np.abs(vanishing(shape, domain.boundary(100, some, "uniform", rng)[0], some)[0]).max() < 1e-6
        assert vanishing(shape, domain.boundary(100, others, "uniform", rng)[0], some)[0].min() > 0
        value, slopes = vanishing(shape, domain.interior(100, "uniform", rng), some)
        assert value.min() > 0
        assert np.isfinite(slopes).all()


@pytest.mark.parametrize("name", ["triangle", "L", "three", "notch"])
def test_derivatives_inside_are_finite_and_those_at_outer_corners_are_bounded(name):
    shape = SHAPES[name]
    u = pinn.Field("u", shape, pinn.MLP(4, 1), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.lap, n=400)])
    (batch,) = problem.draw(np.random.default_rng(0))
    assert np.isfinite(problem.system()(0, {"points": lg.tensor(batch["points"])}).detach().numpy()).all()
    if name == "triangle":
        near = lg.tensor(np.array([[1e-9, 1e-9]]))
        assert problem.system()(0, {"points": near}).abs().item() < 1e3


@pytest.mark.parametrize(
    "shape",
    [
        pinn.Box(x=(0, 1), y=(0, 1)) + pinn.Box(x=(1, 2), y=(0, 1)),
        pinn.Box(x=(0, 1), y=(0, 1)) & pinn.Box(x=(0, 2), y=(-1, 2)),
        (SQUARE - pinn.Box(x=(1, 2), y=(-1, 1))) + pinn.Disk(1.0, x=0, y=1),
    ],
)
def test_edges_that_lie_on_each_other_are_an_error(shape):
    with pytest.raises(ValueError, match="edges lie on each other, as at"):
        pinn.Field("u", shape, pinn.MLP(4, 1), boundary=pinn.Hard(0))


@pytest.mark.slow
def test_a_polygon_with_an_inner_corner_is_solved():
    truth = pinn.references.exact(pinn.LShape(), u=lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y), points=41)
    u = pinn.Field("u", pinn.LShape(), pinn.MLP(12, 1), boundary=pinn.Hard(0))
    equation = pinn.Interior(
        lambda u, x, y: u.lap + 2 * np.pi**2 * lg.sin(np.pi * x) * lg.sin(np.pi * y), n=200, sampler="sobol"
    )
    sol = pinn.Problem(u, [equation]).solve(pinn.GaussNewton(15), reference=truth)
    assert sol.errors.l2["u"][0] < 0.1
    assert sol(-1.0, 0.3) == 0
    assert abs(sol(0.0, -0.3)) < 1e-15


def values(u, **places):
    """A field of a random network at places."""
    columns = {name: lg.tensor(np.array(column, dtype=float)).requires_grad_() for name, column in places.items()}
    return columns, pinn.Problem(u, [pinn.Interior(lambda u: u, n=8)]).system(seed=1).fields(columns)["u"]


def test_an_initial_rate_beside_a_boundary_that_moves():
    domain = pinn.Interval("x", 0, 1) * pinn.Time("t", 1, 2)
    u = pinn.Field(
        "u",
        domain,
        pinn.MLP(4, 1),
        initial=pinn.Hard(lambda x: x * (1 - x), rate=lambda x: 3 + x * (1 - x)),
        boundary=pinn.Hard(lambda x, t: 3 * (t - 1) + x * lg.sin((t - 1) ** 2)),
    )
    columns, value = values(u, x=[0.2, 0.7], t=[1.0, 1.0])
    (rate,) = grad(value.sum(), [columns["t"]])
    assert np.abs(value.detach().numpy() - [0.16, 0.21]).max() < 1e-12
    assert np.abs(rate.numpy() - [3.16, 3.21]).max() < 1e-12
    _, value = values(u, x=[0.0, 1.0], t=[1.5, 1.5])
    assert np.abs(value.detach().numpy() - [1.5, 1.5 + np.sin(0.25)]).max() < 1e-12


@pytest.mark.parametrize("size", [1e-9, 1e10])
def test_exact_values_that_meet_are_compared_in_any_units(size):
    domain = pinn.Interval("x", 0, 3e2) * pinn.Time("t", 0, 1)
    arch = pinn.Hard(lambda x: size * lg.sin(np.pi / 3e2 * x))
    pinn.Field("u", domain, pinn.MLP(4, 1), initial=arch, boundary=pinn.Hard(0))
    with pytest.raises(ValueError, match="conflicting corner values"):
        pinn.Field("u", domain, pinn.MLP(4, 1), initial=arch, boundary=pinn.Hard(size / 100))
    ring = pinn.Interval("x", 0, 3e2, periodic=True)
    with pytest.raises(ValueError, match="periodic in x, got ones whose ends differ"):
        pinn.Field("u", ring * pinn.Time("t", 0, 1), pinn.MLP(4, 1), initial=pinn.Hard(lambda x: size * x))


def test_an_initial_rate_that_the_boundary_contradicts():
    domain = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
    with pytest.raises(ValueError, match="conflicting corner values"):
        pinn.Field("u", domain, pinn.MLP(4, 1), initial=pinn.Hard(0, rate=0), boundary=pinn.Hard(lambda t: lg.sin(t)))


@pytest.mark.parametrize("shape", [SQUARE, pinn.Disk(1.0, x=0, y=0.5)])
def test_a_clamped_boundary_has_the_normal_derivative_too(shape):
    value, rng = (lambda x, y: lg.sin(x) * y), np.random.default_rng(0)
    u = pinn.Field("u", shape, pinn.MLP(6, 2), boundary=pinn.Hard(value, clamped=True))
    domain = as_domain(shape)
    columns = columns_of(domain, domain.boundary(60, domain.edges, "uniform", rng)[0])
    field = pinn.Problem(u, [pinn.Interior(lambda u: u.lap, n=8)]).system().fields(columns)["u"]
    for found, expected in zip(
        (field, *grad(field.sum(), list(columns.values()))),
        (value(**columns), *grad(value(**columns).sum(), list(columns.values()))),
        strict=True,
    ):
        assert lg.allclose(found, expected, atol=1e-12)


def test_a_clamped_boundary_and_a_start_that_contradict_each_other():
    domain = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
    clamped = pinn.Hard(0, clamped=True)
    pinn.Field("u", domain, pinn.MLP(4, 1), initial=pinn.Hard(lambda x: (x * (1 - x)) ** 2), boundary=clamped)
    with pytest.raises(ValueError, match="conflicting corner values"):
        pinn.Field("u", domain, pinn.MLP(4, 1), initial=pinn.Hard(lambda x: x * (1 - x)), boundary=clamped)
    with pytest.raises(ValueError, match="initial: clamped is for boundaries"):
        pinn.Field("u", domain, pinn.MLP(4, 1), initial=clamped)


@pytest.mark.slow
def test_functions_of_several_coordinates_are_saved(tmp_path):
    bean = pinn.SignedDistance(lambda x, y: lg.sqrt(x**2 + y**2 + 0.01) - 1, x=(-1.2, 1.2), y=(-1.2, 1.2))
    shape = (bean + pinn.Polygon([(0, 0), (2, 0.1), (1, 2)])) * pinn.Time("t", 0, 1)
    for value in (lambda x, t: x * t, lambda y, x, t: t, 0.0):
        u = pinn.Field("u", shape, pinn.MLP(4, 1), boundary=pinn.Hard(value, "edge0 boundary"), initial=pinn.Hard(0))
        sol = pinn.Problem(u, [pinn.Interior(lambda u: u.t, n=8)]).solve(pinn.Adam(1))
        sol.save(tmp_path / "s.safetensors")
        points = sol.domain.interior(50, "uniform", np.random.default_rng(0))
        assert np.array_equal(pinn.Solution.load(tmp_path / "s.safetensors")(*points.T), sol(*points.T))


@pytest.mark.parametrize(
    ("start", "kink"),
    [
        (lambda x: x**2 * lg.cos(math.pi * x), "4"),
        (lambda x: 1 - x**2, "4"),
        (lambda x: lg.cos(math.pi * x), None),
        (lambda x: x**2 * (x**2 - 2), None),
        (1.0, None),
    ],
)
def test_exact_values_with_a_kink_where_the_ends_of_a_ring_meet_warn(start, kink):
    domain = pinn.Interval("x", -1, 1, periodic=True) * pinn.Time("t", 0, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pinn.Field("u", domain, net=pinn.MLP(4, 1, embed=pinn.Periodic(x=1)), initial=pinn.Hard(start))
    assert [w.filename for w in caught] == ([] if kink is None else [__file__])
    if kink:
        assert f"where the ends of x meet: their slopes differ by {kink}." in str(caught[0].message)


@pytest.mark.parametrize(
    ("net", "hard"),
    [
        (pinn.MLP(3, 1), {"initial": pinn.Hard(lambda x: pinn.d(x**3, x))}),
        (pinn.MLP(3, 1), {"initial": pinn.Hard(0, rate=lambda x: pinn.d(x**3, x))}),
        (pinn.MLP(3, 1), {"boundary": pinn.Hard(lambda t: pinn.d(lg.sin(t), t))}),
        (pinn.MLP(3, 1), {"initial": pinn.Hard(1), "boundary": pinn.Hard(lambda t: pinn.d(lg.sin(t), t))}),
        (pinn.MLP(3, 1, enrich=lambda x: pinn.d(lg.sin(3 * x), x)), {}),
    ],
)
def test_functions_may_differentiate_wherever_a_field_is_asked_for(net, hard, tmp_path):
    u = pinn.Field("u", pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1), net, **hard)
    sol = pinn.Problem(u, pinn.Interior(lambda u: u.t - 1, n=4)).solve(pinn.Adam(1))
    sol.save(tmp_path / "u.safetensors")
    x, t = np.random.default_rng(0).random((2, 5))
    expected = sol.evaluate(lambda u: u, x, t)
    for mode in (lg.enable_grad, lg.no_grad, lg.inference_mode):
        with mode():
            assert np.array_equal(sol(x, t), expected)
            assert np.array_equal(pinn.Solution.load(tmp_path / "u.safetensors")(x, t), expected)

"""What becomes of a solution: numbers of errors and unknowns, pictures, films, files, and many points at once."""

from __future__ import annotations

import base64
import math
import tracemalloc
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.plot import Shown, grid_of, panels_of
from leafgrad_pinn.posterior import Posterior
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.unknowns import Unknowns

LINE = pinn.Interval("x", 0, 1)
SQUARE = pinn.Box(x=(0, 1), y=(0, 1))


def untrained(domain, names="u", exact=None, hard=None):
    """A solution after two steps, or one that is exact."""
    made = pinn.fields(names, domain, pinn.MLP(4, 1), initial=hard or {})
    reference = None if exact is None else pinn.references.exact(domain, points=21, **exact)
    equations = [pinn.Interior(eval(f"lambda {n}: {n}.x", {}), n=8, name=n) for n in names.split()]
    return pinn.Problem(made, equations).solve(pinn.Adam(2), reference=reference)


def test_errors_over_seeds_and_the_time_to_get_there():
    u = pinn.Field("u", LINE, pinn.MLP(4, 1), boundary=pinn.Hard(0))
    equation = pinn.Interior(lambda u, x: u - lg.sin(math.pi * x), n=20, sampler="grid")
    truth = pinn.references.exact(LINE, u=lambda x: np.sin(np.pi * x))
    sol = pinn.Problem(u, [equation]).solve(pinn.Adam(60, lr=0.05), reference=truth, seeds=2)
    errors = sol.errors
    assert len(errors.time_to(0.5)) == 2
    assert all(0 < seconds <= total for seconds, total in zip(errors.time_to(0.5), errors.seconds, strict=True))
    assert errors.time_to(1e-15) == [None, None]
    x = truth.axes["x"]
    gap = sol(x) - np.sin(np.pi * x)
    run = sol.run
    assert math.isclose(run.errors["u"]["max"], np.abs(gap).max())
    assert math.isclose(run.errors["u"]["l2"], np.linalg.norm(gap) / np.linalg.norm(np.sin(np.pi * x)))
    with pytest.raises(TypeError, match=r"time_to: level: expected a number, as 0.01, got '1%'"):
        errors.time_to("1%")


def test_without_a_reference_no_time_is_known():
    with pytest.raises(ValueError, match=r"time_to: expected a solution with a reference.*; solve with reference="):
        untrained(LINE).errors.time_to(0.1)


def test_what_is_shown_of_a_solution():
    sol = untrained(SQUARE, exact={"u": lambda x, y: x * y})
    first, error, *_ = repr(sol).splitlines()
    assert first == "Solution of u on Box(x=(0.0, 1.0), y=(0.0, 1.0)), 1 seed"
    assert error.startswith("u: relative L2 error ")
    assert "not determined: " in repr(sol)
    assert repr(untrained(LINE)).splitlines()[1] == "no reference; sol.errors has estimates"
    a = pinn.Unknown("a", 1.0)
    u = pinn.Field("u", LINE, pinn.MLP(2, 1))
    fitted = pinn.Problem(u, [pinn.Interior(lambda u: u.x - a, n=30)], a).solve(pinn.Adam(2), seeds=2)
    assert repr(fitted).splitlines()[:2] == ["Solution of u on Interval('x', 0.0, 1.0), 2 seeds", str(fitted.unknowns)]


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (pinn.Interior(lambda u: u.x, n=8), "Interior(n=8, name='interior')"),
        (pinn.Dirichlet(0, "x_min", weight=100), "Dirichlet(n=256, weight=100, name='dirichlet x_min')"),
        (pinn.Data({"x": [0.5], "t": [1.0]}, {"u": [2.0]}), "Data(x, t -> u, n=1, name='data')"),
    ],
)
def test_what_is_shown_of_conditions(condition, text):
    assert repr(condition) == text


def test_unknowns_are_printed_to_the_first_digit_of_their_error():
    one = Unknowns([{"lam1": 0.99983, "lam2": 0.0031831}], [{"lam1": 0.000321, "lam2": 2.3e-6}])
    assert str(one) == "lam1 = 0.9998 +- 0.0003 (from J^T J), lam2 = 0.003183 +- 0.000002 (from J^T J)"
    seeds = Unknowns([{"a": 1.0}, {"a": 1.2}, {"a": 1.1}], [{"a": 0.04}] * 3)
    assert str(seeds) == "a = 1.10 +- 0.04 (from J^T J; 1.00 to 1.20 over 3 seeds)"
    assert dict(seeds) == {"a": 1.1}
    assert str(Unknowns([{"a": 3e-12}], [{"a": 2e-14}])) == "a = 3.00e-12 +- 2.00e-14 (from J^T J)"
    assert str(Unknowns([{"a": 312.0}], [{"a": 20.0}])) == "a = 312 +- 20 (from J^T J)"
    assert str(Unknowns([{"a": 0.5}], [{"a": math.inf}])) == "a = 0.5 (J^T J gives no error)"


def test_deviations_are_those_of_least_squares():
    a = pinn.Unknown("a", 1.0)
    u = pinn.Field("u", LINE, pinn.MLP(1, 1))
    equation = pinn.Interior(lambda u, x: 0 * u + a * x - 2 * x, n=40)
    trainee = Trainee(pinn.Problem(u, [equation], a), 0, lg.float64, "cpu")
    (found,) = Posterior(trainee).unknowns().values()
    x = trainee.batches[0]["points"][:, 0].numpy()
    expected = np.sqrt((x @ x) / (40 - 1) / (x @ x))  # the weights determine nothing
    assert abs(found / expected - 1) < 1e-6


def test_what_equations_do_not_determine_has_no_error():
    a, b = pinn.Unknown("a", 1.0), pinn.Unknown("b", 1.0)
    u = pinn.Field("u", LINE, pinn.MLP(2, 1), boundary=pinn.Hard(lambda x: x))
    sol = pinn.Problem(u, [pinn.Interior(lambda u: u.x - 2 * a + 0 * b, n=30)], [a, b]).solve(pinn.Adam(2))
    assert "b = 1 (J^T J gives no error)" in str(sol.unknowns)
    few = pinn.Problem(u, [pinn.Interior(lambda u: u.x - a, n=5)], a).solve(pinn.Adam(2))
    assert "J^T J gives no error" in str(few.unknowns)


@pytest.mark.parametrize("suffix", ["png", pytest.param("svg", marks=pytest.mark.slow)])
def test_pictures_of_one_two_and_three_coordinates(suffix, tmp_path):
    path = tmp_path / "new" / f"p.{suffix}"
    untrained(LINE, exact={"u": lambda x: x}).plot(path)
    assert path.stat().st_size > 1000
    holed = SQUARE - pinn.Disk(0.2, x=0.5, y=0.5)
    untrained(holed * pinn.Time("t", 0, 1)).plot(path, slices={"t": [0.5]})


@pytest.mark.slow
def test_pictures_after_loading(tmp_path):
    sol = untrained(LINE * pinn.Time("t", 0, 1), "u v", {"u": lambda x, t: x * t})
    sol.save(tmp_path / "s.safetensors")
    loaded = pinn.Solution.load(tmp_path / "s.safetensors")
    for one, name in ((sol, "a.png"), (loaded, "b.png")):
        one.plot(tmp_path / name, slices={"t": [0, 1.0], "x": [0.5]})
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.fixture(scope="module")
def in_three():
    """A solution of three coordinates, which nothing changes."""
    return untrained(SQUARE * pinn.Time("t", 0, 1))


@pytest.mark.parametrize(
    ("slices", "message"),
    [
        ({"t": [2.0]}, "slices: t: expected values from 0 to 1, got"),
        ({"t": []}, "slices: t: expected values from 0 to 1"),
        ({}, "or three and slices of one, as in"),
        ({"x": [0.5], "t": [0.5]}, "or three and slices of one"),
        ({"s": [0.5]}, "slices: expected x or y or t, got s"),
    ],
)
def test_wrong_slices(slices, message, in_three, tmp_path):
    with pytest.raises(ValueError, match=message):
        in_three.plot(tmp_path / "p.png", slices)


@pytest.mark.every(2)
@pytest.mark.parametrize("space", [LINE, SQUARE])
def test_films(space, tmp_path):
    exact = {"u": lambda x, t: x * t} if space is LINE else None
    untrained(space * pinn.Time("t", 0, 1), exact=exact).animate(tmp_path / "f.gif", frames=3, seconds=0.6)
    with Image.open(tmp_path / "f.gif") as film:
        assert film.n_frames == 3
        assert film.info["duration"] == 200
        assert film.size[0] > 300


def test_wrong_films(tmp_path):
    with pytest.raises(ValueError, match="animate: expected time and"):
        untrained(LINE).animate(tmp_path / "f.gif")
    with pytest.raises(ValueError, match="animate: expected time and one or two coordinates of space, got x"):
        untrained(pinn.Time("x", 0, 1)).animate(tmp_path / "f.gif")
    with pytest.raises(ValueError, match=r"expected a path ending in \.gif"):
        untrained(LINE * pinn.Time("t", 0, 1)).animate(tmp_path / "f.png")


def read(path):
    """Points, cells and values of a VTU file."""
    found = {}
    root = ET.parse(path).getroot()
    for array in root.iter("DataArray"):
        raw = base64.b64decode(array.text)
        (size,) = np.frombuffer(raw[:8], "<u8")
        assert size == len(raw) - 8
        kind = {"Float64": "<f8", "Int64": "<i8", "UInt8": "u1"}[array.get("type")]
        values = np.frombuffer(raw[8:], kind)
        found[array.get("Name")] = values.reshape(-1, 3) if array.get("NumberOfComponents") else values
    piece = next(root.iter("Piece"))
    assert int(piece.get("NumberOfPoints")) == len(found["points"])
    assert int(piece.get("NumberOfCells")) == len(found["types"])
    return found


@pytest.mark.parametrize(
    ("domain", "measure"), [(LINE, 1), (pinn.LShape(), 3), (pinn.Box(x=(0, 2), y=(0, 1), z=(0, 3)), 6)]
)
def test_files_for_paraview(domain, measure, tmp_path):
    sol = untrained(domain)
    (path,) = sol.to_vtu(tmp_path / "u.vtu", points=9)
    found = read(path)
    dim = len(sol.domain.names)
    points = found["points"][:, :dim]
    assert np.array_equal(found["u"], sol(*points.T))
    cells = found["connectivity"].reshape(-1, 2**dim)
    assert found["offsets"].tolist() == [2**dim * (i + 1) for i in range(len(cells))]
    corners = points[cells]
    around = np.roll(corners[:, : 2 ** min(dim, 2)], -1, 1)
    if dim == 1:
        volumes = np.abs(corners[:, 1, 0] - corners[:, 0, 0])
    else:  # the shoelace formula, times the height
        flat, next_ = corners[:, :4], around
        volumes = (flat[..., 0] * next_[..., 1] - flat[..., 1] * next_[..., 0]).sum(1) / 2
        volumes = volumes * (corners[:, 4, 2] - corners[:, 0, 2]) if dim == 3 else volumes
    assert (volumes > 0).all()
    assert math.isclose(volumes.sum(), measure)


def test_files_over_time(tmp_path):
    sol = untrained(LINE * pinn.Time("t", 0, 2))
    *files, listing = sol.to_vtu(tmp_path / "u.vtu", points=5, times=[0, 1.5])
    assert [file.name for file in files] == ["u_0000.vtu", "u_0001.vtu"]
    entries = [(float(e.get("timestep")), e.get("file")) for e in ET.parse(listing).getroot().iter("DataSet")]
    assert entries == [(0.0, "u_0000.vtu"), (1.5, "u_0001.vtu")]
    assert np.array_equal(read(files[1])["u"], sol(np.linspace(0, 1, 5), 1.5))
    with pytest.raises(ValueError, match="times: expected moments in Time"):
        sol.to_vtu(tmp_path / "u.vtu", times=[3.0])
    with pytest.raises(ValueError, match=r"ending in \.vtu"):
        sol.to_vtu(tmp_path / "u.vtk")


def peak(sol, n):
    """Bytes beyond the result that evaluating n x 100 points takes."""
    x, t = np.linspace(0, 1, n)[:, None], np.linspace(0, 1, 100)
    tracemalloc.start()
    result = sol(x, t)
    size = tracemalloc.get_traced_memory()[1] - result.nbytes
    tracemalloc.stop()
    return size


def test_many_points_take_no_more_memory_than_their_values():
    sol = untrained(LINE * pinn.Time("t", 0, 1))
    peak(sol, 400)
    assert peak(sol, 8000) < 1.1 * peak(sol, 400) + 2**20


@pytest.mark.slow
def test_ten_million_points():
    assert peak(untrained(LINE * pinn.Time("t", 0, 1)), 100_000) < 2**26


def test_time_is_drawn_to_the_right_whatever_it_is_called():
    domain = pinn.Interval("t", 0, 1) * pinn.Time("tau", 0, 20)
    u = pinn.Field("u", domain, pinn.MLP(3, 1), initial=pinn.Hard(0))
    sol = pinn.Problem(u, [pinn.Interior(lambda u: u.tau - u.tt - 1, n=4)]).solve(pinn.Adam(1))
    figure = Figure()
    axes, truths = grid_of(sol)
    (panel,) = panels_of(Shown(sol, axes, truths), "u", {})
    panel(figure, figure.add_subplot())
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("tau", "t")
    assert figure.axes[0].get_aspect() == "auto"


def test_units_stand_beside_names(tmp_path):
    from matplotlib.figure import Figure

    from leafgrad_pinn.plot import name_units

    panel = Figure().add_subplot()
    panel.plot([0, 1], label="t = 0.5")
    panel.legend()
    panel.set(xlabel="x or t", ylabel="y", title="|error of u|")
    name_units(panel, {"x": "m", "t": "s", "u": "K"}, "u")
    assert (panel.get_xlabel(), panel.get_ylabel(), panel.get_title()) == ("x [m] or t [s]", "y", "|error of u| [K]")
    assert panel.get_legend().get_texts()[0].get_text() == "t = 0.5 s"
    sol = untrained(SQUARE)
    sol.plot(tmp_path / "p.png", units={"x": "m", "u": "K"})
    for units, error in (({"z": "m"}, ValueError), ({"x": 1}, TypeError), ("m", TypeError)):
        with pytest.raises(error, match="plot: units: expected"):
            sol.plot(tmp_path / "p.png", units=units)

"""Bodies inside of triangles, from arrays and files."""

from __future__ import annotations

import struct
import sys
import types

import numpy as np
import pytest

import leafgrad_pinn as pinn
from leafgrad_pinn.surfaces import outer

CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], dtype=float)
FACES = np.array([
    [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
    [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
])  # fmt: skip


def test_a_block_of_triangles_is_a_block():
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 4, (500, 3))
    beyond = np.maximum(0, np.maximum(-points, points - [1, 2, 3]))
    within = np.minimum(points, [1, 2, 3] - points).min(1)
    expected = np.where(within > 0, -within, np.linalg.norm(beyond, axis=1))
    for faces in (FACES, FACES[:, ::-1]):
        assert np.allclose(pinn.Surface(CORNERS, faces).signed(points), expected)


def test_points_on_it_are_uniform_with_outward_normals():
    block = pinn.Surface(CORNERS, FACES)
    domain = pinn.Domain(block)
    points, normals = domain.boundary(6000, ["surface"], "uniform", np.random.default_rng(0))
    assert np.abs(block.signed(points)).max() < 1e-12
    assert (block.signed(points + 1e-3 * normals) > 0).all()
    shares = [(np.abs(normals[:, k]) > 0.5).mean() for k in range(3)]
    assert np.allclose(shares, np.array([6, 3, 2]) / 11, atol=0.03)
    assert np.allclose(points[normals[:, 0] > 0.5].mean(0), [1, 1, 1.5], atol=0.07)
    assert block.edges["surface"][0].measure == 22
    inside = domain.interior(3000, "sobol", np.random.default_rng(0))
    assert np.allclose(inside.mean(0), [0.5, 1, 1.5], atol=0.05)


def binary(path):
    facets = [struct.pack("<12fH", *np.zeros(3), *CORNERS[face].ravel(), 0) for face in FACES]
    path.write_bytes(b"solid, but binary".ljust(80) + struct.pack("<I", len(facets)) + b"".join(facets))


def text(path):
    rows = ["solid block"]
    for face in FACES:
        corners = "\n".join("vertex " + " ".join(map(str, CORNERS[k])) for k in face)
        rows.append(f"facet normal 0 0 0\nouter loop\n{corners}\nendloop\nendfacet")
    path.write_text("\n".join([*rows, "endsolid block"]))


@pytest.mark.parametrize("write", [binary, text])
def test_stl_files(write, tmp_path):
    write(tmp_path / "block.STL")
    block = pinn.Surface.read(tmp_path / "block.STL")
    assert len(block.faces) == 12
    assert block.bounds.tolist() == [[0, 1], [0, 2], [0, 3]]


def test_a_solution_in_a_surface_is_right_and_is_saved(tmp_path):
    u = pinn.Field("u", pinn.Surface(CORNERS, FACES), pinn.MLP(6, 1))
    conditions = [pinn.Interior(lambda u: u.lap, n=40), pinn.Dirichlet(lambda x, z: x - z, n=60)]
    sol = pinn.Problem(u, conditions).solve(pinn.LevenbergMarquardt(6))
    assert float(sol(0.5, 1, 1)) == pytest.approx(-0.5, abs=1e-2)
    sol.save(tmp_path / "u.safetensors")
    again = pinn.Solution.load(tmp_path / "u.safetensors")
    assert float(again(0.5, 1, 1)) == float(sol(0.5, 1, 1))
    with pytest.raises(ValueError, match="expected whole smooth edges, got surface"):
        sol.integral(1, on="surface")


def test_tetrahedra_have_outer_faces():
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=float)
    pair = pinn.Surface(points, outer(np.array([[0, 1, 2, 3], [1, 2, 3, 4]])))
    assert len(pair.faces) == 6
    assert (pair.signed(np.array([[0.1, 0.1, 0.1], [0.6, 0.6, 0.6], [0.9, 0.1, 0.9]])) < 0).tolist() == [
        True,
        True,
        False,
    ]


def test_other_meshes_are_read_by_meshio(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "meshio", None)
    with pytest.raises(ModuleNotFoundError, match="pip install meshio"):
        pinn.Surface.read(tmp_path / "block.msh")
    mesh = types.SimpleNamespace(points=CORNERS, cells_dict={"triangle": FACES})
    monkeypatch.setitem(sys.modules, "meshio", types.SimpleNamespace(read=lambda path: mesh))
    assert len(pinn.Surface.read(tmp_path / "block.msh").faces) == 12
    mesh.cells_dict = {"line": FACES[:, :2]}
    with pytest.raises(ValueError, match="expected triangles or tetrahedra, got line"):
        pinn.Surface.read(tmp_path / "block.msh")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pinn.Surface(CORNERS, FACES[1:]), "expected a closed surface.* got 3 edges of one triangle"),
        (lambda: pinn.Surface(CORNERS, np.concatenate([FACES[:1, ::-1], FACES[1:]])), "that turn differently"),
        (lambda: pinn.Surface(CORNERS, FACES + 1), "expected indices from 0 to 7"),
        (lambda: pinn.Surface(CORNERS, FACES * 1.0), "expected whole numbers"),
        (lambda: pinn.Surface(CORNERS[:, :2], FACES), r"expected finite numbers of shape \(v, 3\)"),
        (
            lambda: pinn.Field("u", pinn.Surface(CORNERS, FACES), pinn.MLP(3, 1), boundary=pinn.Hard(0)),
            "Hard: a surface of triangles",
        ),
    ],
)
def test_mistakes_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_other_files_are_no_stl(tmp_path):
    path = tmp_path / "wrong.stl"
    for content in (b"", b"solid x\nendsolid", b"solid x vertex 1 2 three", b"\xff" * 200):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"wrong\.stl: expected"):
            pinn.Surface.read(path)

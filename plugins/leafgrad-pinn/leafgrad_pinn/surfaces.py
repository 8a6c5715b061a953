"""Bodies inside of a closed surface of triangles, as STL files and meshes have them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from leafgrad import Tensor
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.shapes import Piece, Shape

ELEMENTS = 2**20  # pairs of a point and a triangle that are in memory at once
FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])  # of a binary STL file


class Surface(Shape):
    """What lies inside of triangles, ``Surface.read("bracket.stl")``. Its edge is ``surface``, or as ``edge`` says.

    Points inside are found by the solid angle of all triangles, points on it are uniform. It has no smooth function
    that vanishes on it, so that values are given by `Dirichlet` and not by `Hard`.

    Args:
        vertices: (v, 3).
        triangles: three indices of vertices each, (m, 3), in either sense of rotation, but all in the same.
        names: the three coordinates.
        edge: its edge's name.

    Raises:
        ValueError: the triangles are not closed: an edge of one is not that of one other, in the opposite direction.
    """

    def __init__(self, vertices: Any, triangles: Any, names: str = "x y z", edge: str = "surface") -> None:
        self.vertices = np.asarray(vertices, dtype=np.float64)
        faces = np.asarray(triangles)
        if self.vertices.ndim != 2 or self.vertices.shape[1] != 3 or not np.isfinite(self.vertices).all():
            raise ValueError(f"vertices: expected finite numbers of shape (v, 3), got shape {self.vertices.shape}")
        if faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu" or len(faces) < 4:
            raise ValueError(f"triangles: expected whole numbers of shape (m, 3), got {faces.dtype} {faces.shape}")
        if faces.min() < 0 or faces.max() >= len(self.vertices):
            raise ValueError(f"triangles: expected indices from 0 to {len(self.vertices) - 1}, got others")
        self.names, self.edge = tuple(names.split()), edge
        if len(set(self.names)) != 3 or len(self.names) != 3:
            raise ValueError(f"names: expected three different ones, as 'x y z', got {names!r}")
        check_closed(faces)
        corners = self.vertices[faces]
        volume = float(np.linalg.det(corners - self.vertices.mean(0)).sum() / 6)
        self.faces = faces if volume > 0 else faces[:, ::-1]  # outward, by the right hand
        self.corners = self.vertices[self.faces]
        cross = np.cross(self.corners[:, 1] - self.corners[:, 0], self.corners[:, 2] - self.corners[:, 0])
        self.areas = np.linalg.norm(cross, axis=1) / 2
        if not volume or (self.areas == 0).any():
            raise ValueError(f"triangles: expected some volume, and areas, got {abs(volume)}, {self.areas.min()}")
        self.normals = cross / (2 * self.areas[:, None])
        used = self.vertices[np.unique(self.faces)]
        self.bounds = np.stack([used.min(0), used.max(0)], 1)
        self.edges = {edge: [Piece(2, float(self.areas.sum()), self._place, every)]}

    @classmethod
    def read(cls, path: str | os.PathLike[str], names: str = "x y z", edge: str = "surface") -> Surface:
        """That of a file: STL, or with the package meshio any mesh, of whose tetrahedra it takes the outer faces.

        Raises:
            ModuleNotFoundError: a file other than STL, without meshio. ValueError: no triangles, or not closed ones.
        """
        if Path(path).suffix.lower() == ".stl":
            vertices, faces = merged(stl(Path(path)))
            return cls(vertices, faces, names, edge)
        try:
            meshio: Any = import_module("meshio")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"{path}: files other than .stl are read by meshio: pip install meshio", name="meshio"
            ) from error
        mesh = meshio.read(path)
        cells = mesh.cells_dict
        if "tetra" in cells:
            faces = outer(np.asarray(cells["tetra"]))
        elif "triangle" in cells:
            faces = np.asarray(cells["triangle"])
        else:
            raise ValueError(f"{path}: expected triangles or tetrahedra, got {', '.join(cells) or 'no cells'}")
        return cls(mesh.points, faces, names, edge)

    def _place(self, u: Array) -> tuple[Array, Array]:
        ends = np.cumsum(self.areas) / self.areas.sum()
        which = np.minimum(np.searchsorted(ends, u[:, 0], side="right"), len(ends) - 1)
        starts = np.concatenate([[0.0], ends[:-1]])
        root = np.sqrt((u[:, 0] - starts[which]) / (ends - starts)[which])[:, None]
        a, b, c = np.moveaxis(self.corners[which], 1, 0)
        return (1 - root) * a + root * ((1 - u[:, 1:]) * b + u[:, 1:] * c), self.normals[which]

    def signed(self, points: Array) -> Array:
        step = max(1, ELEMENTS // len(self.faces))
        parts = [self._signed(points[begin : begin + step]) for begin in range(0, len(points), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _signed(self, points: Array) -> Array:
        a, b, c = (self.corners[None, :, k] - points[:, None] for k in range(3))
        la, lb, lc = (np.linalg.norm(side, axis=2) for side in (a, b, c))
        top = (a * np.cross(b, c)).sum(2)
        bottom = la * lb * lc + (a * b).sum(2) * lc + (b * c).sum(2) * la + (c * a).sum(2) * lb
        inside = np.arctan2(top, bottom).sum(1) > np.pi  # half of 4 pi, which it is inside
        distance = np.min([segment(a, b), segment(b, c), segment(c, a), self._plane(a, b, c)], axis=(0, 2))
        return np.where(inside, -distance, distance)

    def _plane(self, a: Array, b: Array, c: Array) -> Array:
        """The distance to each triangle's plane, or inf where the nearest point of that is outside the triangle."""
        height = (a * self.normals).sum(2)
        foot = height[..., None] * self.normals
        sides = [(np.cross(q - p, foot - p) * self.normals).sum(2) >= 0 for p, q in ((a, b), (b, c), (c, a))]
        return np.where(np.all(sides, axis=0), np.abs(height), np.inf)

    def level(self, columns: Mapping[str, Tensor]) -> Tensor:
        self.check_hard()

    def check_hard(self) -> NoReturn:
        raise ValueError("Hard: a surface of triangles has no smooth function that vanishes on it; take Dirichlet(...)")

    def __repr__(self) -> str:
        return f"Surface({len(self.faces)} triangles, {self.edge!r}, {self.bounds.tolist()})"


def every(points: Array, normals: Array) -> Array:
    """All points: a piece that is smooth in parts is no whole edge for rules that integrate."""
    return np.full(len(points), True)


def segment(a: Array, b: Array) -> Array:
    """The distance of 0 to segments from a to b: (..., 3) -> (...)"""
    along = b - a
    part = np.clip(-(a * along).sum(-1) / (along**2).sum(-1), 0, 1)
    distance: Array = np.linalg.norm(a + part[..., None] * along, axis=-1)
    return distance


def check_closed(faces: Array) -> None:
    """ValueError unless each edge of a triangle is that of one other, in the opposite direction."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    there, counts = np.unique(edges, axis=0, return_counts=True)
    back = np.unique(edges[:, ::-1], axis=0)
    if (counts > 1).any() or len(there) != len(back) or not np.array_equal(there, back):
        ones = {tuple(edge) for edge in there.tolist()}
        open_ = sum((b, a) not in ones for a, b in ones)
        raise ValueError(
            "triangles: expected a closed surface, each edge in two triangles that turn alike, got "
            f"{open_} edges of one triangle and {int((counts > 1).sum())} of two that turn differently"
        )


def outer(cells: Array) -> Array:
    """The faces of tetrahedra (k, 4) that belong to one of them alone, turned outward or all inward: (m, 3)."""
    sides = np.concatenate([cells[:, order] for order in ([0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2])])
    _, first, counts = np.unique(np.sort(sides, 1), axis=0, return_index=True, return_counts=True)
    return sides[first[counts == 1]]


def merged(corners: Array) -> tuple[Array, Array]:
    """Vertices (v, 3) and triangles (m, 3) of the corners of triangles (m, 3, 3), equal ones taken together."""
    vertices, index = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    faces = index.reshape(-1, 3)
    thin = (faces == np.roll(faces, 1, 1)).any(1)
    return vertices, faces[~thin]


def stl(path: Path) -> Array:
    """The corners of all triangles of an STL file, binary or text: (m, 3, 3). ValueError for another."""
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    if len(data) == 84 + FACET.itemsize * count and count > 0:
        return np.frombuffer(data, FACET, offset=84)["corners"].astype(np.float64)
    words: Sequence[str] = data.decode("ascii", "replace").split()
    places = [k for k, word in enumerate(words) if word == "vertex"]
    try:
        found = np.array([[float(word) for word in words[k + 1 : k + 4]] for k in places])
    except ValueError as error:
        raise ValueError(f"{path}: expected numbers after vertex, as an STL file has them") from error
    if words[:1] != ["solid"] or not places or len(places) % 3 or found.shape != (len(places), 3):
        raise ValueError(f"{path}: expected an STL file, of whole triangles, binary or text, got another")
    return found.reshape(-1, 3, 3)

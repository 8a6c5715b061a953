"""Solutions as files of ParaView: unstructured grids in VTK's XML format, and a list of them over time.

Source: https://docs.vtk.org/en/latest/design_documents/VTKFileFormats.html.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np

from leafgrad_pinn.sampling import Array

CORNERS = {1: [0, 1], 2: [0, 1, 3, 2], 3: [0, 1, 3, 2, 4, 5, 7, 6]}  # of a cell, in VTK's order
CELLS = {1: 3, 2: 9, 3: 12}  # VTK_LINE, VTK_QUAD, VTK_HEXAHEDRON
TYPES = {"float64": "Float64", "int64": "Int64", "uint8": "UInt8"}


def cells_of(inside: Array) -> Array:
    """The cells of a grid whose corners are all inside: booleans (m, ...) -> indices (cells, 2^d)"""
    dim = inside.ndim
    index = np.arange(inside.size).reshape(inside.shape)
    shifts = list(product((0, 1), repeat=dim))
    parts = [
        index[tuple(slice(s, n - 1 + s) for s, n in zip(shift[::-1], index.shape, strict=True))] for shift in shifts
    ]
    cells = np.stack([part.ravel() for part in parts], 1)[:, CORNERS[dim]]
    kept: Array = cells[inside.ravel()[cells].all(1)]
    return kept


def write_grid(path: Path, points: Array, cells: Array, values: Mapping[str, Array]) -> None:
    """Write points (n, d), cells (m, 2^d) of them, and values (n,) by name; d is 1, 2 or 3."""
    used, renumbered = np.unique(cells, return_inverse=True)
    cells, points = renumbered.reshape(cells.shape), points[used]
    dim = points.shape[1]
    places = np.zeros((len(points), 3))
    places[:, :dim] = points
    data = "".join(array(name, value[used]) for name, value in values.items())
    path.write_text(
        '<?xml version="1.0"?>\n'
        '<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
        f'<UnstructuredGrid><Piece NumberOfPoints="{len(points)}" NumberOfCells="{len(cells)}">\n'
        f"<Points>{array('points', places)}</Points>\n"
        f"<Cells>{array('connectivity', cells.astype(np.int64).ravel())}"
        f"{array('offsets', np.arange(1, len(cells) + 1, dtype=np.int64) * 2**dim)}"
        f"{array('types', np.full(len(cells), CELLS[dim], np.uint8))}</Cells>\n"
        f"<PointData>{data}</PointData>\n"
        "</Piece></UnstructuredGrid>\n</VTKFile>\n",
        encoding="ascii",
    )


def array(name: str, values: Array) -> str:
    """A DataArray: base64 of the number of bytes and the bytes."""
    body = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
    text = base64.b64encode(np.array(len(body), "<u8").tobytes() + body).decode("ascii")
    components = f' NumberOfComponents="{values.shape[1]}"' if values.ndim == 2 else ""
    kind = TYPES[values.dtype.name]
    return f'<DataArray type="{kind}" Name={quoted(name)}{components} format="binary">{text}</DataArray>\n'


def write_list(path: Path, files: Mapping[float, Path]) -> None:
    """Write a .pvd file: a list of files by time."""
    entries = "".join(f'<DataSet timestep="{t!r}" file={quoted(file.name)}/>\n' for t, file in files.items())
    path.write_text(
        f'<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1">\n<Collection>\n{entries}</Collection>\n'
        "</VTKFile>\n",
        encoding="ascii",
    )


def quoted(text: str) -> str:
    """The value of an attribute, in quotes."""
    from xml.sax.saxutils import quoteattr  # which imports all of urllib

    return quoteattr(text)

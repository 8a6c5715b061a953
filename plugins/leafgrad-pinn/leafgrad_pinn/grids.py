"""A solution on grids and for other programs: arrays of xarray, files of ParaView, weights, models of ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.answers import FieldFunction, check_one, evaluate
from leafgrad_pinn.callables import Function, check_number
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.field import columns_of
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.values import recording
from leafgrad_pinn.vtu import cells_of, write_grid, write_list

if TYPE_CHECKING:
    from leafgrad_pinn.solution import Solution


def dataset(solution: Solution, points: int, also: Mapping[str, Function]) -> Any:
    """What `Solution.to_xarray` gives."""
    try:
        xarray = import_module("xarray")
    except ImportError:
        raise ImportError("to_xarray needs the package xarray: pip install xarray") from None
    check_number("to_xarray: points", points, 2, whole=True)
    names = list(solution.domain.names)
    axes = [np.linspace(low, high, points) for low, high in solution.domain.bounds]
    grid = np.meshgrid(*axes, indexing="ij")
    rows = np.stack([column.ravel() for column in grid], 1)
    inside = solution.domain.inside(rows)
    found = solution.values(solution.run, [column[inside] for column in rows.T])
    found |= derived(solution, also, rows[inside])
    data = {}
    for name, values in found.items():
        whole = np.full(len(rows), np.nan, dtype=values.dtype if values.dtype.kind in "fc" else float)
        whole[inside] = values
        data[name] = (names, whole.reshape(grid[0].shape))
    return xarray.Dataset(data, coords=dict(zip(names, axes, strict=True)))


def paraview(
    solution: Solution, path: Path, points: int | None, times: Sequence[float] | None, also: Mapping[str, Function]
) -> list[Path]:
    """What `Solution.to_vtu` does."""
    domain = solution.domain
    dim = len(domain.space)
    if domain.parameters:
        raise ValueError(f"to_vtu: expected coordinates of space and time, got {domain}; it has parameters")
    if dim not in (1, 2, 3) or path.suffix != ".vtu":
        raise ValueError(
            f"to_vtu: expected one to three coordinates of space and a path ending in .vtu, got {dim} and {path}"
        )
    count = (51 if dim == 3 else 201) if points is None else points
    check_number("to_vtu: points", count, 2, whole=True)
    axes = [np.linspace(low, high, count) for low, high in domain.bounds[:dim]]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    flat = grid.reshape(-1, dim)
    cells = cells_of(Domain(domain.shape).inside(flat).reshape(grid.shape[:-1]))
    path.parent.mkdir(parents=True, exist_ok=True)
    if domain.time is None:
        write_grid(path, flat, cells, fields_with(solution, also, list(flat.T)))
        return [path]
    moments = np.linspace(domain.time.start, domain.time.stop, 11) if times is None else np.asarray(times, float)
    if not len(moments) or moments.min() < domain.time.start or moments.max() > domain.time.stop:
        raise ValueError(f"to_vtu: times: expected moments in {domain.time}, got {list(moments)}")
    files = {}
    for number, moment in enumerate(moments.tolist()):
        files[moment] = path.with_name(f"{path.stem}_{number:04d}.vtu")
        columns = [*flat.T, np.full(len(flat), moment)]
        write_grid(files[moment], flat, cells, fields_with(solution, also, columns))
    listing = path.with_suffix(".pvd")
    write_list(listing, files)
    return [*files.values(), listing]


def fields_with(solution: Solution, also: Mapping[str, Function], columns: Sequence[Array]) -> dict[str, Array]:
    """The real fields at points, and expressions of them; of complex ones two parts, as fields have."""
    fields = evaluate(solution.run.modules, solution.domain, columns, check=False)
    for name, values in derived(solution, also, np.stack(columns, 1)).items():
        whole = {f"{name}_re": values.real, f"{name}_im": values.imag} if np.iscomplexobj(values) else {name: values}
        if clash := [part for part in whole if part in fields]:
            raise ValueError(f"also: {name}: expected parts of names of their own, got another {clash[0]}")
        fields |= whole
    return fields


def derived(solution: Solution, also: Mapping[str, Function], rows: Array) -> dict[str, Array]:
    """Expressions by name at points (n, d), as an array (n,) each."""
    if not isinstance(also, Mapping):
        raise TypeError(f'also: expected expressions by name, as {{"q": lambda u: u.x}}, got {type(also).__name__}')
    taken = [*solution.domain.names, *solution.pairs, *(field.name for field in solution.fields)]
    if clash := [name for name in also if name in taken]:
        raise ValueError(f"also: {clash[0]}: expected a name that no coordinate or field has, as {clash[0]}2")
    found = {}
    for name, function in also.items():
        parts = FieldFunction(solution, function, f"also: {name}")(rows)
        if len(parts) != 1:
            raise ValueError(f"also: {name}: expected one number for each point, got a tuple of {len(parts)}")
        found[name] = parts[0]
    return found


class RunFields(nn.Module):
    """The fields of a run as a module of tensors: an array (n,) for each coordinate -> one for each field."""

    def __init__(self, modules: Sequence[nn.Module], names: Sequence[str]) -> None:
        super().__init__()
        self.modules_of_fields, self.names = nn.ModuleList(modules), tuple(names)

    def forward(self, *columns: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(self.names, columns, strict=True))
        return tuple(value for module in self.modules_of_fields for value in module(given).values())


@recording()
def write(solution: Solution, path: Path) -> None:
    """What `Solution.export` does."""
    modules, names = solution.run.modules, solution.domain.names
    if path.suffix == ".safetensors":
        whole = nn.ModuleList(modules)
        leafgrad.save(whole.state_dict(), path)
        return
    if path.suffix != ".onnx":
        raise ValueError(f"export: expected a path ending in .safetensors or .onnx, got {path}")
    check_one("export", solution.domain)
    if solution.moments:
        raise ValueError("export: expected one network for all times, got windows of time; save it, or solve without")
    parameter = next(iter(modules[0].parameters()))
    points = solution.domain.interior(8, "uniform", np.random.default_rng(0))
    columns = tuple(columns_of(solution.domain, points, parameter.dtype, parameter.device).values())
    onnx: Any = import_module("leafgrad.onnx")
    onnx.export(
        RunFields(modules, names),
        columns,
        path,
        input_names=list(names),
        output_names=[field.name for field in solution.fields],
        dynamic_axes={name: {0: "n"} for name in names},
    )

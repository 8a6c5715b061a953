"""Pictures of a solution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from leafgrad_pinn.references import Reference
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.solution import Solution, evaluate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 201


def draw(solution: Solution, path: Path, slices: dict[str, Any]) -> None:
    """Write a picture: for each field a row of field, error and slices, and below them the history."""
    axes = grid_axes(solution)
    names = list(axes)
    if len(names) > 2:
        raise ValueError(f"plot: expected one or two coordinates, got {', '.join(names)}")
    if unknown := set(slices) - set(names):
        raise ValueError(f"plot: slices: expected {' or '.join(names)}, got {', '.join(sorted(unknown))}")
    if slices and len(names) == 1:
        raise ValueError("plot: slices: expected two coordinates, got one, which is drawn as a curve anyway")
    values = on_grid(solution, axes)
    columns = 1 + (solution.reference is not None) + bool(slices)
    rows = len(values) + bool(solution.run.history)
    figure = Figure(figsize=(4.6 * columns + 0.6, 3.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    spec = figure.add_gridspec(rows, columns)
    for row, (name, value) in enumerate(values.items()):
        truth = None if solution.reference is None else truth_of(solution.reference, names, name)
        panels = iter(range(columns))
        show(figure, figure.add_subplot(spec[row, next(panels)]), axes, value, name, "RdBu_r")
        if truth is not None:
            show(
                figure,
                figure.add_subplot(spec[row, next(panels)]),
                axes,
                np.abs(value - truth),
                f"|error of {name}|",
                "magma",
            )
        if slices:
            cuts(figure.add_subplot(spec[row, columns - 1]), axes, value, truth, name, slices)
    if solution.run.history:
        history(figure.add_subplot(spec[rows - 1, :]), solution)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def grid_axes(solution: Solution) -> dict[str, Array]:
    """The reference's grid, or a grid of the domain's bounding box."""
    domain = solution.domain
    if solution.reference is not None:
        return {name: solution.reference.axes[name] for name in domain.names}
    return {name: np.linspace(low, high, POINTS) for name, (low, high) in zip(domain.names, domain.bounds, strict=True)}


def on_grid(solution: Solution, axes: dict[str, Array]) -> dict[str, Array]:
    """The fields on a grid; nan outside the domain."""
    grid = np.meshgrid(*axes.values(), indexing="ij")
    inside = solution.domain.inside(np.stack([column.ravel() for column in grid], 1)).reshape(grid[0].shape)
    found = evaluate(solution.run.modules, solution.domain, grid, check=False)
    return {name: np.where(inside, value, np.nan) for name, value in found.items()}


def truth_of(reference: Reference, names: list[str], field: str) -> Array | None:
    """The reference's values of a field, its axes in the order of the names."""
    if field not in reference.fields:
        return None
    return reference.values(field, names)


def show(figure: Figure, panel: Axes, axes: dict[str, Array], value: Array, title: str, colours: str) -> None:
    """One field, as a curve or as colours; time is drawn to the right."""
    names = list(axes)
    if len(names) == 1:
        panel.plot(axes[names[0]], value)
        panel.set(xlabel=names[0], title=title)
        return
    first, second = names if names[1] != "t" else names[::-1]
    shown = value if second == names[0] else value.T
    limit = float(np.nanmax(np.abs(value)))
    scale = Normalize(-limit, limit) if colours == "RdBu_r" and limit > 0 else None
    image = panel.pcolormesh(
        axes[first], axes[second], shown, cmap=colours, shading="nearest", rasterized=True, norm=scale
    )
    panel.set(xlabel=first, ylabel=second, title=title)
    figure.colorbar(image, ax=panel)


def cuts(
    panel: Axes, axes: dict[str, Array], value: Array, truth: Array | None, name: str, slices: dict[str, Any]
) -> None:
    """The field along lines, with the reference dashed."""
    names = list(axes)
    for fixed, places in slices.items():
        (along,) = [other for other in names if other != fixed]
        for number, place in enumerate(places):
            index = int(np.abs(axes[fixed] - place).argmin())
            colour, at = f"C{number}", (names.index(fixed), index)
            panel.plot(axes[along], value.take(at[1], at[0]), colour, label=f"{fixed} = {axes[fixed][index]:.3g}")
            if truth is not None:
                panel.plot(axes[along], truth.take(at[1], at[0]), "k--", linewidth=0.8)
        panel.set(xlabel=along, title=f"{name} (dashed: reference)" if truth is not None else name)
    panel.legend(fontsize="small")


def history(panel: Axes, solution: Solution) -> None:
    """The terms of the loss, and the errors, over all steps."""
    rows = solution.run.history
    steps, offset, last = [], 0, (rows[0]["stage"], 0)
    for row in rows:
        offset += last[1] if row["stage"] != last[0] else 0
        last = (row["stage"], row["step"])
        steps.append(offset + row["step"])
    names = dict.fromkeys(name for row in rows for name in row if name not in ("stage", "step", "seconds", "loss"))
    for name in names:
        known = [(step, row[name]) for step, row in zip(steps, rows, strict=True) if row.get(name) is not None]
        panel.semilogy(*zip(*known, strict=True), ".-" if name.startswith("error") else "-", label=name, linewidth=1)
    panel.set(xlabel="steps", title=f"loss terms, seed {solution.run.seed}, {solution.run.seconds:.0f} s")
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")

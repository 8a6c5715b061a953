"""Pictures and films of a solution."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter
from PIL import Image

from leafgrad_pinn.answers import evaluate
from leafgrad_pinn.errors import truth_of
from leafgrad_pinn.problem import COLUMNS
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leafgrad_pinn.run import Run

POINTS, COARSE = 201, 121  # along each coordinate of two, and of three
SMALLEST = 1e-16  # of errors and residuals on logarithmic scales
Slices = Mapping[str, Sequence[float]]


class Shown:
    """What is drawn: fields on a grid, and the reference there.

    Attributes:
        axes: for each coordinate its values.
        time: the name of time, if the domain has it.
        values, truths: for each field its values on the grid, nan outside the domain.
    """

    def __init__(self, solution: Solution, axes: dict[str, Array], truths: Mapping[str, Array]) -> None:
        self.axes, self.names = axes, list(axes)
        self.time = time_of(solution)
        grid = np.meshgrid(*axes.values(), indexing="ij")
        inside = solution.domain.inside(np.stack([column.ravel() for column in grid], 1)).reshape(grid[0].shape)
        found = evaluate(solution.run.modules, solution.domain, grid, check=False)
        self.values = {name: np.where(inside, value, np.nan) for name, value in found.items()}
        self.truths = dict(truths)

    def cut(self, name: str, place: float) -> tuple[int, int, float]:
        """The axis of a coordinate, and the index and value of its point that is nearest to a place."""
        index = int(np.abs(self.axes[name] - place).argmin())
        return self.names.index(name), index, float(self.axes[name][index])


def time_of(solution: Solution) -> str | None:
    """What time is called; None if there is none."""
    time = solution.domain.time
    return None if time is None else time.name


def draw(solution: Solution, path: Path, slices: Slices, units: Mapping[str, str]) -> None:
    """Write a picture: for each field a row of field, error and slices; below them residuals, and the history."""
    names = list(solution.domain.names)
    check_slices(names, slices, solution.domain.bounds)
    check_units(units, [*names, *(field.name for field in solution.fields)])
    axes, truths = grid_of(solution)
    shown = Shown(solution, axes, truths)
    rows = [panels_of(shown, field, slices) for field in shown.values]
    columns = max(2, *map(len, rows))
    below = bool(solution.run.history)
    figure = Figure(figsize=(4.4 * columns + 0.4, 3.4 * (len(rows) + below)), layout="constrained")
    FigureCanvasAgg(figure)
    spec = figure.add_gridspec(len(rows) + below, columns)
    for row, (field, panels) in enumerate(zip(shown.values, rows, strict=True)):
        for column, panel in enumerate(panels):
            axis = figure.add_subplot(spec[row, column])
            panel(figure, axis)
            name_units(axis, units, field)
    if below:
        some = bool(solution.run.residuals)  # what is least has none
        if some:
            axis = figure.add_subplot(spec[-1, 0])
            residuals(figure, axis, names, shown.time, solution.run)
            name_units(axis, units)
        history(figure.add_subplot(spec[-1, int(some) :]), solution.run)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def check_slices(names: list[str], slices: Slices, bounds: Array) -> None:
    """ValueError for slices of other coordinates, outside the domain, or too few of them to draw three coordinates."""
    if not isinstance(slices, Mapping) or not all(isinstance(places, Sequence) for places in slices.values()):
        raise TypeError(f'plot: slices: expected a coordinate and values, as {{"t": [0.5, 1]}}, got {slices!r}')
    if unknown := set(slices) - set(names):
        raise ValueError(f"plot: slices: expected {' or '.join(names)}, got {', '.join(sorted(unknown))}")
    if slices and len(names) == 1:
        raise ValueError("plot: slices: expected two coordinates, got one, which is drawn as a curve anyway")
    if len(names) > 3 or (len(names) == 3 and len(slices) != 1):
        example = f'plot("p.png", slices={{"{names[-1]}": [{bounds[-1, 0]:g}, {bounds[-1, 1]:g}]}})'
        raise ValueError(
            f"plot: expected one or two coordinates, or three and slices of one, as in {example}, "
            f"got {', '.join(names)} and slices of {', '.join(slices) or 'none'}"
        )
    for name, places in slices.items():
        low, high = bounds[names.index(name)]
        if not len(places) or not all(low <= place <= high for place in places):
            raise ValueError(f"plot: slices: {name}: expected values from {low:g} to {high:g}, got {list(places)}")


def check_units(units: Mapping[str, str], known: Sequence[str]) -> None:
    """TypeError or ValueError unless units are strings, by names of coordinates and fields."""
    if not isinstance(units, Mapping) or not all(isinstance(unit, str) for unit in units.values()):
        raise TypeError(f'plot: units: expected units by name, as {{"x": "m", "u": "K"}}, got {units!r}')
    if unknown := set(units) - set(known):
        raise ValueError(f"plot: units: expected names among {', '.join(known)}, got {', '.join(sorted(unknown))}")


def name_units(panel: Axes, units: Mapping[str, str], field: str = "") -> None:
    """Add units to what names coordinates, and the field, in a panel."""

    def named(label: str) -> str:
        return " or ".join(f"{name} [{units[name]}]" if name in units else name for name in label.split(" or "))

    panel.set(xlabel=named(panel.get_xlabel()), ylabel=named(panel.get_ylabel()))
    if field in units:
        panel.set_title(f"{panel.get_title()} [{units[field]}]")
    legend = panel.get_legend()
    for text in legend.get_texts() if legend else ():  # of slices, as t = 0.5
        name, sign, value = text.get_text().partition(" = ")
        if sign and name in units:
            text.set_text(f"{name} = {value} {units[name]}")


def grid_of(solution: Solution) -> tuple[dict[str, Array], dict[str, Array]]:
    """The reference's grid and fields, or a grid of the domain's bounding box and no fields."""
    domain, reference = solution.domain, solution.reference
    if reference is not None and reference.grid:
        return {n: reference.axes[n] for n in domain.names}, truth_of(reference, domain.names)
    count = POINTS if len(domain.names) < 3 else COARSE
    return {n: np.linspace(low, high, count) for n, (low, high) in zip(domain.names, domain.bounds, strict=True)}, {}


def panels_of(shown: Shown, field: str, slices: Slices) -> list[Any]:
    """What draws a field: functions of a figure and its axes."""
    value, truth = shown.values[field], shown.truths.get(field)
    error = None if truth is None else np.abs(value - truth)
    names = shown.names
    if len(names) == 1:
        panels = [lambda figure, axes: curve(axes, shown, field)]
        if error is not None:
            panels.append(lambda figure, axes: error_curve(axes, shown, field, error))
        return panels
    if len(names) == 2:
        panels = [lambda figure, axes: colours(figure, axes, shown.axes, shown.time, value, field)]
        if error is not None:
            title = f"|error of {field}|"
            panels.append(lambda figure, axes: colours(figure, axes, shown.axes, shown.time, error, title, True))
        if slices:
            panels.append(lambda figure, axes: cuts(axes, shown, field, slices))
        return panels
    ((fixed, places),) = slices.items()
    rest = {name: axis for name, axis in shown.axes.items() if name != fixed}
    span = range_of(value)
    panels = list[Any]()
    for place in places:
        axis, index, at = shown.cut(fixed, place)
        part, title = value.take(index, axis), f"{field} at {fixed} = {at:.3g}"
        panels.append(partial(colours, axes=rest, time=shown.time, value=part, title=title, span=span))
    if error is not None:
        axis, index, at = shown.cut(fixed, places[-1])
        last, name = error.take(index, axis), f"|error of {field}| at {fixed} = {at:.3g}"
        panels.append(lambda figure, axes: colours(figure, axes, rest, shown.time, last, name, True))
    return panels


def range_of(value: Array) -> tuple[float, float]:
    """The smallest and largest of some values, apart from each other."""
    low, high = float(np.nanmin(value)), float(np.nanmax(value))
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def curve(panel: Axes, shown: Shown, field: str) -> None:
    """A field of one coordinate, with the reference."""
    (name,) = shown.names
    panel.plot(shown.axes[name], shown.values[field], label="network")
    if field in shown.truths:
        panel.plot(shown.axes[name], shown.truths[field], "k--", linewidth=0.8, label="reference")
        panel.legend(fontsize="small")
    panel.set(xlabel=name, title=field)


def error_curve(panel: Axes, shown: Shown, field: str, error: Array) -> None:
    (name,) = shown.names
    panel.semilogy(shown.axes[name], np.maximum(error, SMALLEST), color="C3")
    panel.set(xlabel=name, title=f"|error of {field}|")
    panel.grid(alpha=0.3)


def colours(
    figure: Figure,
    panel: Axes,
    axes: dict[str, Array],
    time: str | None,
    value: Array,
    title: str,
    error: bool = False,
    span: tuple[float, float] | None = None,
) -> None:
    """A field of two coordinates; time is drawn to the right. White is zero where there are both signs."""
    names = list(axes)
    first, second = names if names[1] != time else names[::-1]
    low, high = range_of(value) if span is None else span
    signs = low < 0 < high
    limit = max(-low, high)
    image = panel.pcolormesh(
        axes[first],
        axes[second],
        value if second == names[0] else value.T,
        cmap="magma" if error else "RdBu_r" if signs else "viridis",
        norm=Normalize(0, high) if error else Normalize(-limit, limit) if signs else Normalize(low, high),
        shading="gouraud" if np.isfinite(value).all() else "nearest",
        rasterized=True,
    )
    panel.set(xlabel=first, ylabel=second, title=title)
    if time not in names:
        panel.set_aspect("equal")
    ticks = ScalarFormatter()
    ticks.set_powerlimits((-2, 3))
    figure.colorbar(image, ax=panel, format=ticks)


def cuts(panel: Axes, shown: Shown, field: str, slices: Slices) -> None:
    """The field along lines, with the reference dashed."""
    truth = shown.truths.get(field)
    number = 0
    for fixed, places in slices.items():
        (along,) = [other for other in shown.names if other != fixed]
        for place in places:
            axis, index, at = shown.cut(fixed, place)
            label = f"{fixed} = {at:.3g}"
            panel.plot(shown.axes[along], shown.values[field].take(index, axis), f"C{number % 10}", label=label)
            if truth is not None:
                panel.plot(shown.axes[along], truth.take(index, axis), "k--", linewidth=0.8)
            number += 1
    along = " or ".join(dict.fromkeys(other for fixed in slices for other in shown.names if other != fixed))
    panel.set(xlabel=along, title=f"{field} (dashed: reference)" if truth is not None else field)
    panel.legend(fontsize="small")


def residuals(figure: Figure, panel: Axes, names: list[str], time: str | None, run: Run) -> None:
    """The sizes of all residuals at the points of the training."""
    panel.set(xlabel=names[0], title="residuals at the training's points")
    sizes = [np.maximum(part["sizes"], SMALLEST) for part in run.residuals.values()]
    points = [part["points"] for part in run.residuals.values()]
    if len(names) == 1:
        for label, where, size in zip(run.residuals, points, sizes, strict=True):
            panel.semilogy(where[:, 0], size, ".", markersize=3, label=label)
        panel.legend(fontsize="small")
        return
    where, size = np.concatenate(points), np.concatenate(sizes)
    across, up = (1, 0) if names[1] == time else (0, 1)
    low, high = np.quantile(size, (0.05, 1))
    image = panel.scatter(
        where[:, across], where[:, up], c=size, s=4, cmap="viridis", norm=LogNorm(min(low, high / 10), high),
        rasterized=True,
    )  # fmt: skip
    panel.set(xlabel=names[across], ylabel=names[up])
    if time not in names[:2]:
        panel.set_aspect("equal")
    figure.colorbar(image, ax=panel)


def history(panel: Axes, run: Run) -> None:
    """The terms of the loss, and the errors, over all steps; a line where a stage begins."""
    rows = run.history
    steps, offset, last = [], 0, (rows[0]["stage"], 0)
    for row in rows:
        if row["stage"] != last[0]:
            offset += last[1]
            panel.axvline(offset, color="0.7", linewidth=0.8)
        last = (row["stage"], row["step"])
        steps.append(offset + row["step"])
    names = dict.fromkeys(name for row in rows for name in row if name not in COLUMNS)
    for name in names:
        known = [(step, row[name]) for step, row in zip(steps, rows, strict=True) if row.get(name) is not None]
        panel.semilogy(*zip(*known, strict=True), ".-" if name.startswith("error") else "-", label=name, linewidth=1)
    panel.set(xlabel="steps", title=f"loss terms and errors, seed {run.seed}, {run.seconds:.0f} s")
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")


def film(solution: Solution, path: Path, frames: int, seconds: float) -> None:
    """Write a GIF of the fields over time, with the reference dashed where it has one coordinate of space."""
    domain = solution.domain
    if domain.time is None or len(domain.names) not in (2, 3):
        raise ValueError(f"animate: expected time and one or two coordinates of space, got {', '.join(domain.names)}")
    if path.suffix != ".gif" or frames < 2 or seconds <= 0:
        raise ValueError(f"animate: expected a path ending in .gif, frames >= 2, seconds > 0, got {path}, {frames}")
    time = domain.time.name
    axes, truths = grid_of(solution)
    places = axes[time][np.unique(np.linspace(0, len(axes[time]) - 1, frames).round().astype(int))]
    if not truths:
        places = np.linspace(domain.time.start, domain.time.stop, frames)
    shown = Shown(solution, {**axes, time: places}, {})
    axis = shown.names.index(time)
    truths = {name: np.take(truth, np.searchsorted(axes[time], places), axis) for name, truth in truths.items()}
    space = {name: values for name, values in axes.items() if name != time}
    images = [
        frame(space, {name: v.take(i, axis) for name, v in shown.values.items()},
              {name: v.take(i, axis) for name, v in truths.items()},
              {name: range_of(v) for name, v in shown.values.items()}, f"{time} = {place:.3f}")
        for i, place in enumerate(places)
    ]  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    images[0].save(path, save_all=True, append_images=images[1:], duration=round(1000 * seconds / len(images)), loop=0)


def frame(
    space: dict[str, Array],
    values: dict[str, Array],
    truths: dict[str, Array],
    ranges: dict[str, tuple[float, float]],
    title: str,
) -> Image.Image:
    """One picture of a film."""
    figure = Figure(figsize=(4.6 * len(values), 3.6), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    for column, (name, value) in enumerate(values.items()):
        panel = figure.add_subplot(1, len(values), column + 1)
        if len(space) == 1:
            (axis,) = space.values()
            panel.plot(axis, value)
            if name in truths:
                panel.plot(axis, truths[name], "k--", linewidth=0.8)
            low, high = ranges[name]
            room = 0.05 * (high - low)
            panel.set(xlabel=next(iter(space)), title=name, ylim=(low - room, high + room))
        else:
            colours(figure, panel, space, None, value, name, span=ranges[name])
    figure.suptitle(title)
    buffer = io.BytesIO()
    canvas.print_png(buffer)
    return Image.open(buffer).convert("P", palette=Image.Palette.ADAPTIVE)

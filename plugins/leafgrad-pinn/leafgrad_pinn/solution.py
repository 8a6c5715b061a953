"""What a training gives: the fields as functions of NumPy arrays, their errors, and files."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import leafgrad
from leafgrad_pinn import schema
from leafgrad_pinn.codec import encode
from leafgrad_pinn.domains import Domain, Time
from leafgrad_pinn.estimate import estimated
from leafgrad_pinn.field import Field, Surrogate, columns_of
from leafgrad_pinn.linearised import Unfit
from leafgrad_pinn.reading import read
from leafgrad_pinn.references import Reference
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.unknowns import Unknowns
from leafgrad_pinn.vtu import cells_of, write_grid, write_list
from leafgrad_pinn.windows import Piecewise

CHUNK = 2**15  # points that are evaluated at once
FORMAT = 3
UNSOLVED = 0.1  # of its terms: what a condition's residuals have to be below


class Run:
    """The result of one seed.

    Attributes:
        seed: of weights and points.
        modules: one for each group of fields on one network.
        errors: for each field ``{"l2": relative L2 error, "max": largest error}``; empty without a reference.
        unknowns, deviations: the numbers that were solved for, and their standard deviations from J^T J.
        residuals: for each condition ``points`` (m, d), and ``sizes`` (m,) of its residual there.
        relative: for each condition the norm of its residuals over that of its terms.
        free: what may be added to the fields without a change of any residual, by the rank of the linearised problem.
        reasons: why each stage stopped.
        seconds: of training.
        history: a dict for each noted step.
        trainees: what was trained, by windows; none of a file's.
    """

    def __init__(
        self,
        seed: int,
        modules: Sequence[Surrogate | Piecewise],
        details: Mapping[str, Any],
        trainees: Sequence[Trainee] = (),
    ) -> None:
        self.seed, self.modules, self.trainees = seed, list(modules), list(trainees)
        self.errors: dict[str, dict[str, float]] = details["errors"]
        self.unknowns: dict[str, float] = details["unknowns"]
        self.deviations: dict[str, float] = details["deviations"]
        self.residuals: dict[str, dict[str, Array]] = details["residuals"]
        self.relative: dict[str, float] = details.get("relative", {})  # which older files do not have
        self.free: str = details.get("free", "")
        self.reasons: list[str] = details["reasons"]
        self.seconds: float = details["seconds"]
        self.history: list[dict[str, Any]] = details["history"]
        self._estimated: dict[str, float] = details.get("estimated", {})
        self.unestimated = "" if self._estimated else "it was not made before the solution was saved"

    @property
    def loss(self) -> float:
        """The last one; of several windows of time the sum of theirs."""
        return sum({row.get("window"): row["loss"] for row in self.history}.values()) if self.history else float("inf")

    @property
    def doubts(self) -> str:
        """Which conditions the fields do not satisfy, whatever the loss says, and what they leave open; "" for none."""
        wrong = [f"the residuals of {name} are {share:.0%} of its terms" for name, share in self.relative.items()
                 if not share < UNSOLVED]  # fmt: skip
        found = [f"not solved: {', '.join(wrong)}"] if wrong else []
        if self.free:
            found.append(f"not determined: {self.free}")
        return "; ".join(found)

    @property
    def estimated(self) -> dict[str, float]:
        """The relative L2 error of each field, without a reference; {} for none, and ``unestimated`` says why.

        It is made when it is first asked for, in some seconds; see `leafgrad_pinn.estimate`.
        """
        if not self._estimated and self.trainees:
            try:
                self._estimated, self.unestimated = estimated(self.trainees), ""
            except Unfit as error:
                self.unestimated = str(error)
            self.trainees = []
        return self._estimated

    def details(self) -> dict[str, Any]:
        """All but seed and modules, as numbers, strings, lists and dicts."""
        names = ("errors", "unknowns", "deviations", "residuals", "relative", "free", "reasons", "seconds", "history")
        made = {"estimated": self._estimated} if self._estimated else {}
        return {name: getattr(self, name) for name in names} | made


class Solution:
    """The fields that a training found, as functions: ``sol(x, t)`` takes and gives NumPy arrays.

    With several seeds it is that of the median loss; ``sol.runs`` has all.

    Attributes:
        runs: the result of each seed.
        reference: what errors are measured against, or None.
        pairs: for each complex field the names of its parts.
        moments: at which windows of time begin and end; none if there is one window.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[Field]],
        runs: Sequence[Run],
        reference: Reference | None,
        pairs: Mapping[str, Sequence[str]] = {},
        moments: Sequence[float] = (),
    ) -> None:
        self.moments = list(moments)
        self.pairs = {name: tuple(parts) for name, parts in pairs.items()}
        self.groups, self.runs, self.reference = [list(group) for group in groups], list(runs), reference
        self.fields = [field for group in self.groups for field in group]
        self.domain: Domain = max((f.domain for f in self.fields), key=lambda domain: len(domain.names))

    @property
    def run(self) -> Run:
        """The run of the median final loss, the lower of two."""
        ranked = sorted(self.runs, key=lambda run: run.loss)
        return ranked[(len(ranked) - 1) // 2]

    @property
    def unknowns(self) -> Unknowns:
        """The numbers that were solved for, medians over seeds; as a string, with their errors."""
        return Unknowns([run.unknowns for run in self.runs], [run.deviations for run in self.runs])

    @property
    def errors(self) -> Errors:
        """The errors against the reference, and their estimates without one."""
        return Errors(self.reference, self.runs, self.run)

    def __call__(self, *points: Array | float, **named: Array | float) -> Any:
        """The fields at points, evaluated in chunks, so that memory grows with inputs and outputs alone.

        Args:
            points: for each coordinate an array or number, in the order of ``domain.names``; they broadcast.
            named: the same by name.

        Returns:
            float64 array of their common shape, complex128 for a complex field; for several fields a dict of such by
            name. nan in windows of time that were not reached, after one that met a nan.

        Raises:
            TypeError: coordinates are missing, or too many. ValueError: points outside the domain.
        """
        names = self.domain.names
        given = dict(zip(names, points, strict=False)) | named
        if len(points) > len(names) or set(given) != set(names) or len(points) + len(named) != len(names):
            raise TypeError(f"Solution: expected the coordinates {', '.join(names)}, each once")
        columns = np.broadcast_arrays(*[np.asarray(given[name], dtype=np.float64) for name in names])
        values = evaluate(self.run.modules, self.domain, columns)
        for name, (real, imag) in self.pairs.items():
            values[name] = values.pop(real) + 1j * values.pop(imag)
        return next(iter(values.values())) if len(values) == 1 else values

    def plot(self, path: str | os.PathLike[str], slices: Mapping[str, Sequence[float]] | None = None) -> None:
        """Draw fields, errors, slices, residuals and the history into a PNG, SVG or PDF file.

        Args:
            path: its suffix says the format.
            slices: a coordinate and the values at which to cut: ``{"t": [0.25, 0.5, 1]}``. With three coordinates,
                fields are drawn at these values.

        Raises:
            ValueError: slices of other coordinates or outside the domain; more than three coordinates.
        """
        from leafgrad_pinn.plot import draw

        draw(self, Path(path), {} if slices is None else slices)

    def animate(self, path: str | os.PathLike[str], frames: int = 60, seconds: float = 4.0) -> None:
        """Draw the fields over time into a GIF that takes some seconds and begins again.

        Raises:
            ValueError: there is no time, or there are more than two coordinates of space.
        """
        from leafgrad_pinn.plot import film

        film(self, Path(path), frames, seconds)

    def to_vtu(
        self, path: str | os.PathLike[str], points: int | None = None, times: Sequence[float] | None = None
    ) -> list[Path]:
        """Write the fields for ParaView, on the cells of a grid that lie in the domain.

        Args:
            path: ``u.vtu``. With times, files ``u_0000.vtu`` and so on, and ``u.pvd``, which lists them.
            points: of the grid, along each coordinate of space; 201, or 51 in three dimensions.
            times: moments; the first and the last, and nine between, by default.

        Returns:
            The paths of the files.

        Raises:
            ValueError: there are no or more than three coordinates of space, or times outside the domain.
        """
        path, domain = Path(path), self.domain
        dim = len(domain.space)
        if dim not in (1, 2, 3) or path.suffix != ".vtu":
            raise ValueError(
                f"to_vtu: expected one to three coordinates of space and a path ending in .vtu, got {dim} and {path}"
            )
        count = points or (51 if dim == 3 else 201)
        axes = [np.linspace(low, high, count) for low, high in domain.bounds[:dim]]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
        flat = grid.reshape(-1, dim)
        cells = cells_of(Domain(domain.shape).inside(flat).reshape(grid.shape[:-1]))
        path.parent.mkdir(parents=True, exist_ok=True)
        if domain.time is None:
            write_grid(path, flat, cells, evaluate(self.run.modules, domain, list(flat.T), check=False))
            return [path]
        moments = np.linspace(domain.time.start, domain.time.stop, 11) if times is None else np.asarray(times, float)
        if not len(moments) or moments.min() < domain.time.start or moments.max() > domain.time.stop:
            raise ValueError(f"to_vtu: times: expected moments in {domain.time}, got {list(moments)}")
        files = {}
        for number, moment in enumerate(moments.tolist()):
            files[moment] = path.with_name(f"{path.stem}_{number:04d}.vtu")
            columns = [*flat.T, np.full(len(flat), moment)]
            write_grid(files[moment], flat, cells, evaluate(self.run.modules, domain, columns, check=False))
        listing = path.with_suffix(".pvd")
        write_list(listing, files)
        return [*files.values(), listing]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save it as one safetensors file, which `load` reads without the script that made it.

        Functions of hard conditions and signed distances are saved as the operations that they consist of.

        Raises:
            ValueError: a function that cannot be saved so.
        """
        reference = None if self.reference is None else vars(self.reference)
        leafgrad.save(
            {
                "leafgrad-pinn": FORMAT,
                "groups": [[encode(field) for field in group] for group in self.groups],
                "runs": [
                    {
                        "seed": run.seed,
                        "dtype": str(next(iter(run.modules[0].parameters())).dtype).removeprefix("leafgrad."),
                        "windows": len(getattr(run.modules[0], "surrogates", ())),
                        "states": [module.state_dict() for module in run.modules],
                        "details": encode(run.details()),
                    }
                    for run in self.runs
                ],
                "moments": self.moments,
                "reference": encode(reference),
                "pairs": {name: list(parts) for name, parts in self.pairs.items()},
            },
            path,
        )

    @staticmethod
    def load(path: str | os.PathLike[str], device: Any = "cpu") -> Solution:
        """Read what ``save`` wrote.

        Raises:
            ValueError: the file is of something else, of a later version, or something in it is not right; it names
                what. Others as ``leafgrad.load``.
        """
        saved = leafgrad.load(path, map_location=device)
        if not isinstance(saved, dict) or saved.get("leafgrad-pinn") != FORMAT:
            raise ValueError(f"load: {path}: expected a solution of leafgrad-pinn, format {FORMAT}")
        try:
            groups, runs, reference, pairs, moments = read(saved, os.path.getsize(path), device)
            with schema.making("groups"):
                solution = Solution(groups, [Run(*run) for run in runs], reference, pairs, moments)
                points = solution.domain.interior(2, "uniform", np.random.default_rng(0))
                for run in solution.runs:
                    evaluate(run.modules, solution.domain, list(points.T))
            return solution
        except (schema.Misfit, RecursionError) as error:
            raise ValueError(f"load: {path}: {error}") from error


class Errors:
    """Errors against a reference, if there is one, over seeds, and estimates. As a string, a line for each field.

    Attributes:
        l2, max: for each field of the reference the errors of all seeds: relative L2, and largest.
        seconds: of training, of all seeds.
    """

    def __init__(self, reference: Reference | None, runs: Sequence[Run], run: Run) -> None:
        self.reference, self.run, self.seconds = reference, run, [run.seconds for run in runs]
        self.histories = [run.history for run in runs]
        self.l2 = {name: [run.errors[name]["l2"] for run in runs] for name in runs[0].errors}
        self.max = {name: [run.errors[name]["max"] for run in runs] for name in runs[0].errors}

    @property
    def estimated(self) -> dict[str, float]:
        """An estimate of each field's relative L2 error that needs no reference, of the run that is shown.

        Each residual that the equations leave is followed to the error that it makes, in polynomials that the network
        knows nothing of. {} where these do not explain the residuals, as at corners and shocks.
        """
        return self.run.estimated

    def time_to(self, level: float) -> list[float | None]:
        """Seconds of training after which the relative L2 errors of all fields were at most ``level``, for each seed.

        None for a seed that never got there. Errors are looked at now and then, so this is an upper bound.
        """
        keys = [f"error {name}" for name in self.l2]
        found: list[float | None] = []
        for rows in self.histories:
            times = [row["seconds"] for row in rows if all((row.get(key) or np.inf) <= level for key in keys)]
            found.append(min(times, default=None))
        return found

    def at_floor(self, name: str) -> bool:
        """Whether the median relative L2 error of a field is within three times the reference's own."""
        return self.reference is not None and statistics.median(self.l2[name]) <= 3 * self.reference.floor[name]

    def __str__(self) -> str:
        times = f"training {statistics.median(self.seconds):.1f} s"
        if self.reference is None:
            found = [f"{name}: relative L2 error about {e:.1e}, by its estimate" for name, e in self.estimated.items()]
            return "\n".join([*(found or [f"no reference, and no estimate: {self.run.unestimated}"]), times])
        lines = []
        for name, l2 in self.l2.items():
            floor = self.reference.floor[name]
            line = f"{name}: relative L2 error {statistics.median(l2):.2e}"
            line += f", largest {statistics.median(self.max[name]):.2e}"
            if len(l2) > 1:
                line += f" (medians of {len(l2)} seeds; L2 from {min(l2):.1e} to {max(l2):.1e})"
            line += ", at the reference's floor" if self.at_floor(name) else ""
            lines.append(f"{line}; reference: {self.reference.name}, error {floor:.0e}")
        return "\n".join([*lines, f"{times}, reference {self.reference.seconds:.3g} s"])

    __repr__ = __str__


def evaluate(
    modules: Sequence[Surrogate | Piecewise], domain: Domain, columns: Sequence[Array], check: bool = True
) -> dict[str, Array]:
    """Each field at points, given as an array for each coordinate of one shape: float64 of that shape."""
    parameter = next(iter(modules[0].parameters()))
    shape, size = columns[0].shape, columns[0].size
    values: dict[str, Array] = {}
    for begin in range(0, max(1, size), CHUNK):
        rows = np.stack([column.flat[begin : begin + CHUNK] for column in columns], 1)
        if check:
            domain.check_inside("Solution", rows)
        tensors = columns_of(domain, rows, parameter.dtype, parameter.device)
        with leafgrad.no_grad():
            found = {name: value for module in modules for name, value in module(tensors).items()}
        for name, value in found.items():
            if name not in values:
                values[name] = np.empty(size)
            values[name][begin : begin + CHUNK] = value.cpu().numpy()
    return {name: value.reshape(shape) for name, value in values.items()}


def score(
    modules: Sequence[Surrogate | Piecewise], domain: Domain, reference: Reference | None, until: Time | None = None
) -> dict[str, dict[str, float]]:
    """The errors of each field of a reference, where the reference has numbers; those of nan are inf.

    ``until`` is a window of time: what comes after its end does not count.
    """
    if reference is None:
        return {}
    columns = reference.columns(domain.names)
    found = evaluate(modules, domain, columns, check=False)
    errors = {}
    for name, known in truth_of(reference, domain.names).items():
        good = np.isfinite(known)
        if until is not None:
            good &= columns[-1] <= until.stop
            if not known[good].any():  # the reference says nothing that an error could be relative to
                continue
        gap = (found[name] - known)[good]
        size = float(np.linalg.norm(known[good]))
        both = {"l2": float(np.linalg.norm(gap)) / size, "max": float(np.abs(gap).max())}
        errors[name] = {key: np.inf if np.isnan(error) else error for key, error in both.items()}
    return errors


def truth_of(reference: Reference, names: Sequence[str]) -> dict[str, Array]:
    """The reference's fields, their axes in the order of the names."""
    return {field: reference.values(field, names) for field in reference.fields}


def check_reference(reference: Reference, domain: Domain, names: Sequence[str]) -> None:
    """ValueError if a reference is of other coordinates or fields, or reaches outside the domain."""
    if not isinstance(reference, Reference):
        raise TypeError(
            f"reference: expected Reference(...), as references.exact gives, got {type(reference).__name__}"
        )
    if set(reference.axes) != set(domain.names) or not set(reference.fields) <= set(names):
        raise ValueError(
            f"reference: expected coordinates {', '.join(domain.names)} and fields among {', '.join(names)}, "
            f"got {', '.join(reference.axes)} and {', '.join(reference.fields)}"
        )
    if zero := [name for name, values in reference.fields.items() if not np.nan_to_num(values).any()]:
        raise ValueError(
            f"reference: {', '.join(zero)}: expected numbers other than zero, which errors are relative to, got none; "
            "leave the field out"
        )
    for name, (low, high) in zip(domain.names, domain.bounds, strict=True):
        axis, slack = reference.axes[name], 1e-6 * (high - low)
        if axis.min() < low - slack or axis.max() > high + slack:
            raise ValueError(
                f"reference: expected {name} from {low:g} to {high:g}, as the domain has it, "
                f"got {axis.min():g} to {axis.max():g}"
            )

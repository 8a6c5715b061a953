"""What a training gives: the fields as functions of NumPy arrays, their errors, and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import leafgrad
from leafgrad_pinn import schema
from leafgrad_pinn.answers import check_one, evaluate, evaluate_at, integrate
from leafgrad_pinn.callables import Function
from leafgrad_pinn.codec import encode
from leafgrad_pinn.domains import Domain, widest
from leafgrad_pinn.errors import Errors, score
from leafgrad_pinn.families import Given, means_of, one_of, rows_of
from leafgrad_pinn.field import Field
from leafgrad_pinn.functions import InputFunction
from leafgrad_pinn.grids import dataset, paraview, write
from leafgrad_pinn.networks import Own
from leafgrad_pinn.reading import read
from leafgrad_pinn.references import Reference
from leafgrad_pinn.run import Run
from leafgrad_pinn.sampling import Array, reals
from leafgrad_pinn.shapes import Shape
from leafgrad_pinn.unknowns import Unknowns
from leafgrad_pinn.values import recording

FORMAT = 3


class Solution:
    """The fields that a training found, as functions: ``sol(x, t)`` takes and gives NumPy arrays.

    With several seeds it is that of the median loss; ``sol.runs`` has all.

    Attributes:
        runs: the result of each seed.
        reference: what errors are measured against, or None.
        pairs: for each complex field the names of its parts.
        moments: at which windows of time begin and end; none if there is one window.
        functions: for one problem of a family the input functions, each with its values at sensors (1, m).
    """

    functions: Mapping[str, tuple[InputFunction, Array]] = {}

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
        self.domain: Domain = widest(f.domain for f in self.fields)

    @property
    def run(self) -> Run:
        """The run of the median final loss, the lower of two."""
        ranked = sorted(self.runs, key=lambda run: run.loss)
        return ranked[(len(ranked) - 1) // 2]

    def __repr__(self) -> str:
        parts = [part for both in self.pairs.values() for part in both]
        names = [*self.pairs, *(field.name for field in self.fields if field.name not in parts)]
        several = "s" if len(self.runs) > 1 else ""
        lines = [f"Solution of {', '.join(names)} on {self.domain!r}, {len(self.runs)} seed{several}"]
        lines += [str(self.unknowns)] if self.unknowns else []
        lines += [str(self.errors)] if self.reference else ["no reference; sol.errors has estimates"]
        return "\n".join([*lines, *([self.run.doubts] if self.run.doubts else [])])

    def of(self, run: Run) -> Solution:
        """The solution of one of its runs alone."""
        return Solution(self.groups, [run], self.reference, self.pairs, self.moments)

    @recording()
    def given(self, **functions: Any) -> Solution:
        """That of one problem of a family, by its input functions: `__call__` takes them, too."""
        rows = rows_of(self.domain, functions)
        plain: dict[str, Any] = {"errors": {}, "estimated": {}}
        runs = [
            Run(r.seed, [Given(m, rows) for m in r.modules], r.details() | plain, r.trainees, rows) for r in self.runs
        ]
        chosen = Solution(one_of(self.groups), runs, None, self.pairs)
        chosen.functions = {f.name: (f, rows[f.name]) for f in self.domain.functions}
        return chosen

    def unseen(self, index: int = 0) -> Solution:
        """That of one problem of a family that its reference has; ValueError if there is none."""
        if self.reference is None or not self.reference.functions:
            raise ValueError("unseen: expected a family that was solved with reference=references.family(...)")
        chosen = self.given(**{f.name: f.row(self.reference.functions[f.name], index) for f in self.domain.functions})
        chosen.reference = self.reference.one(index)
        for run in chosen.runs:
            run.errors = score(run.modules, chosen.domain, chosen.reference)
        return chosen

    @property
    def unknowns(self) -> Unknowns:
        """The numbers that were solved for, medians over seeds; as a string, with their errors."""
        return Unknowns([run.unknowns for run in self.runs], [run.deviations for run in self.runs])

    @property
    def errors(self) -> Errors:
        """The errors against the reference, and their estimates without one."""
        return Errors(self)

    def __call__(self, *points: Array | float, **named: Array | float) -> Any:
        """The fields at points, evaluated in chunks, so that memory grows with inputs and outputs alone.

        Args:
            points: for each coordinate an array or number, in the order of ``domain.names``; they broadcast.
            named: the same by name.

        Returns:
            Array of their common shape, of the network's dtype, complex for a complex field; for several fields a dict
            of such by name. nan in windows of time that were not reached, after one that met a nan. With values of
            parameters alone, as in ``sol(mu=3)``, the solution there as a function of the other coordinates; with
            input functions, as in ``sol(f=np.sin)``, or arrays of their values at sensors, that of this problem.

        Raises:
            TypeError: coordinates are missing, or too many. ValueError: points outside the domain.
        """
        if self.domain.functions and (given := {f.name for f in self.domain.functions} & set(named)):
            chosen = self.given(**{name: named.pop(name) for name in given})
            return chosen(*points, **named) if points or named else chosen
        ranges = {p.name: p for p in self.domain.parameters}
        if named and not points and set(named) <= set(ranges) and set(named) != set(self.domain.names):
            for name, value in named.items():
                number = reals(f"Solution: {name}", value)
                if not np.all((ranges[name].low <= number) & (number <= ranges[name].high)):
                    raise ValueError(f"Solution: {name}: expected a value of {ranges[name]}, got {value}")
            return partial(self, **named)
        values = self.values(self.run, self.columns("Solution", points, named))
        return next(iter(values.values())) if len(values) == 1 else values

    def columns(self, what: str, points: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Array]:
        """An array for each coordinate, of one shape; TypeError unless each is given once."""
        check_one(what, self.domain)
        names = self.domain.names
        given = dict(zip([name for name in names if name not in named], points, strict=False)) | dict(named)
        if len(points) > len(names) or set(given) != set(names) or len(points) + len(named) != len(names):
            got = f"{len(points)} by position" + (f" and {', '.join(named)} by name" if named else "")
            raise TypeError(f"{what}: expected the coordinates {', '.join(names)}, each once, got {got}")
        return np.broadcast_arrays(*[reals(f"{what}: {name}", given[name]) for name in names])

    def values(self, run: Run, columns: Sequence[Array], check: bool = True) -> dict[str, Array]:
        """The fields of a run at points, complex ones as such."""
        values = evaluate(run.modules, self.domain, columns, check)
        for name, (real, imag) in self.pairs.items():
            values[name] = values.pop(real) + 1j * values.pop(imag)
        return values

    def evaluate(self, function: Function, *points: Array | float, **named: Array | float) -> Any:
        """An expression of the fields at points: ``sol.evaluate(lambda u, x: u.xx + x * u, x)``.

        Args:
            function: of fields, coordinates and unknowns by name, as in an equation: derivatives are attributes.
            points, named: as for the solution itself.

        Returns:
            Array of their common shape, of the network's dtype; a tuple of such for a tuple.

        Raises:
            TypeError: no function, coordinates that are missing or too many, a result that is no number. ValueError:
                points outside the domain, parameters that name nothing, a result at a point that depends on others.
        """
        return evaluate_at(self, function, self.columns("evaluate", points, named))

    def integral(
        self,
        function: Function | float,
        *,
        on: str | None = None,
        of: Shape | None = None,
        order: int = 64,
        **fixed: Array | float,
    ) -> Any:
        """An integral over the domain or edges: ``sol.integral(lambda u: u**2, t=0.5)``, ``on="x_max"`` for a flux.

        By the rules of `Integral`: Gauss-Legendre in intervals and boxes, polar in disks.

        Args:
            function: of fields, coordinates and unknowns by name; ``u.n`` is the normal derivative on edges.
            on: names of edges, as one string; the inside by default.
            of: a shape within the domain, whose inside or edges are meant, such as a field's part.
            order: points along each coordinate.
            fixed: values of coordinates that are not integrated over; arrays give an integral for each element.

        Returns:
            A number, or an array of the shape of ``fixed``; a tuple of such for a tuple.

        Raises:
            ValueError: a shape for which there is no rule, edges that do not exist, nothing to integrate over, or a
                field outside of its part.

        Warns:
            UserWarning: it is another with one more point along each coordinate, as of what jumps.
        """
        return integrate(self, function, on, of, order, fixed)

    def deviation(self, *points: Array | float, by: str = "seeds", **named: Array | float) -> Any:
        """The standard deviation of the fields at points, as an array or a dict.

        Args:
            points, named: as for the solution itself.
            by: ``"seeds"``: how far their runs are apart; ``"residuals"``: what the residuals of the run of median loss
                leave undetermined, by Laplace's approximation, J^T J over all weights, see `leafgrad_pinn.posterior`.
                The second knows of noise in data, and not of what a network cannot express.

        Raises:
            ValueError: there is one run; or, by residuals, too few of them, windows of time, or a solution of a file.
        """
        if by not in ("seeds", "residuals"):
            raise ValueError(f"deviation: by: expected 'seeds' or 'residuals', got {by!r}")
        columns = self.columns("deviation", points, named)
        if by == "residuals":
            rows = np.stack([column.ravel() for column in columns], 1)
            self.domain.check_inside("deviation", rows)
            values = {name: d.reshape(columns[0].shape) for name, d in self.run.posterior.fields(rows).items()}
            for name, (real, imag) in self.pairs.items():
                values[name] = np.hypot(values.pop(real), values.pop(imag))
        else:
            if len(self.runs) < 2:
                raise ValueError(
                    "deviation: expected the runs of several seeds, got one; solve with seeds=5, say, or take "
                    "by='residuals'"
                )
            found = [self.values(run, columns) for run in self.runs]
            values = {name: np.std([each[name] for each in found], axis=0, ddof=1) for name in found[0]}
        return next(iter(values.values())) if len(values) == 1 else values

    def to_xarray(self, points: int = 101, also: Mapping[str, Function] = {}) -> Any:
        """The fields on a grid, as an ``xarray.Dataset``; nan outside the domain.

        Args:
            points: along each coordinate.
            also: more variables, by name: expressions as for `evaluate`.

        Raises:
            ImportError: there is no xarray. ValueError: a name in ``also`` is that of a field or coordinate.
        """
        return dataset(self, points, also)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the network for other programs: its weights (.safetensors), or what it computes (.onnx).

        An ONNX model takes an array (n,) for each coordinate by its name, n being any number, and gives one for each
        field; `save` keeps all that `load` needs.

        Raises:
            ValueError: another suffix, or windows of time, which one model does not hold.
            ImportError: for .onnx, leafgrad-onnx is not installed.
        """
        write(self, Path(path))

    def plot(
        self,
        path: str | os.PathLike[str],
        slices: Mapping[str, Sequence[float]] | None = None,
        units: Mapping[str, str] | None = None,
    ) -> None:
        """Draw fields, errors, slices, residuals and the history into a PNG, SVG or PDF file.

        Args:
            path: its suffix says the format.
            slices: a coordinate and the values at which to cut: ``{"t": [0.25, 0.5, 1]}``. With three coordinates,
                fields are drawn at these values.
            units: of coordinates and fields, by name: ``{"x": "m", "t": "s", "u": "K"}``; they stand beside the names.

        Raises:
            ValueError: slices or units of other coordinates or outside the domain; more than three coordinates.
        """
        from leafgrad_pinn.plot import draw

        draw(self, Path(path), {} if slices is None else slices, {} if units is None else units)

    def animate(self, path: str | os.PathLike[str], frames: int = 60, seconds: float = 4.0) -> None:
        """Draw the fields over time into a GIF that takes some seconds and begins again.

        Raises:
            ValueError: there is no time, or there are more than two coordinates of space.
        """
        from leafgrad_pinn.plot import film

        film(self, Path(path), frames, seconds)

    def to_vtu(
        self,
        path: str | os.PathLike[str],
        points: int | None = None,
        times: Sequence[float] | None = None,
        also: Mapping[str, Function] = {},
    ) -> list[Path]:
        """Write the fields for ParaView, on the cells of a grid that lie in the domain.

        Args:
            path: ``u.vtu``. With times, files ``u_0000.vtu`` and so on, and ``u.pvd``, which lists them.
            points: of the grid, along each coordinate of space; 201, or 51 in three dimensions.
            times: moments; the first and the last, and nine between, by default.
            also: more fields, by name: expressions as for `evaluate`, ``{"vorticity": lambda u, v: v.x - u.y}``.

        Returns:
            The paths of the files.

        Raises:
            ValueError: there are no or more than three coordinates of space, or times outside the domain.
        """
        return paraview(self, Path(path), points, times, also)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save it as one safetensors file, which `load` reads without the script that made it.

        Functions of hard conditions and signed distances are saved as the operations that they consist of, a module of
        one's own (`Own`) as its weights and the name of what made it.

        Raises:
            ValueError: a function that cannot be saved so: it depends on other points, writes in place, reads a number
                out of a tensor, or has derivatives other than those of its operations, as by ``detach``.
        """
        if self.functions:
            raise ValueError("save: expected the solution of the family, got one problem's; save what it was asked of")
        reference = None if self.reference is None else vars(self.reference)
        dtype = next(iter(self.run.modules[0].parameters())).dtype.name
        leafgrad.save(
            {
                "leafgrad-pinn": FORMAT,
                "groups": [[encode(field, dtype=dtype) for field in group] for group in self.groups],
                "runs": [
                    {
                        "seed": run.seed,
                        "dtype": dtype,
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
    @recording()
    def load(
        path: str | os.PathLike[str],
        device: Any = "cpu",
        *,
        own: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None = None,
    ) -> Solution:
        """Read what ``save`` wrote.

        Args:
            path: of the file.
            device: where its networks are to be.
            own: what made a network that is `Own`, as it was given there: ``own=MyModule``. A file names functions and
                has none; several, or ones that are called otherwise now, by those names: ``{"MyModule": MyModule}``.

        Raises:
            ValueError: the file is of something else, of a later version, or something in it is not right; it names
                what. Others as ``leafgrad.load``.
        """
        saved = leafgrad.load(path, map_location=device)
        if not isinstance(saved, dict) or saved.get("leafgrad-pinn") != FORMAT:
            raise ValueError(f"load: {path}: expected a solution of leafgrad-pinn, format {FORMAT}")
        try:
            functions = own if isinstance(own, Mapping) else {} if own is None else {Own(own).name: own}
            groups, runs, reference, pairs, moments = read(saved, os.path.getsize(path), device, functions)
            with schema.making("groups"):
                solution = Solution(groups, [Run(*run) for run in runs], reference, pairs, moments)
                tried = solution.given(**means_of(solution.domain)) if solution.domain.functions else solution
                for run in tried.runs:
                    evaluate(run.modules, tried.domain, list(tried.domain.bounds.mean(1, keepdims=True)), check=False)
            return solution
        except (schema.Misfit, RecursionError) as error:
            raise ValueError(f"load: {path}: {error}") from error

"""What a training gives: the fields as functions of NumPy arrays, their errors, and files."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import leafgrad
from leafgrad_pinn.codec import decode, encode
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.fields import Field, Surrogate, columns_of
from leafgrad_pinn.layers import Maker
from leafgrad_pinn.references import Reference
from leafgrad_pinn.sampling import Array

CHUNK = 2**15  # points that are evaluated at once
FORMAT = 1


class Run:
    """The result of one seed.

    Attributes:
        seed: of weights and points.
        modules: one for each group of fields on one network.
        errors: for each field ``{"l2": relative L2 error, "max": largest error}``; empty without a reference.
        unknowns: the numbers that were solved for.
        reasons: why each stage stopped.
        seconds: of training.
        history: a dict for each noted step.
    """

    def __init__(self, seed: int, modules: Sequence[Surrogate], details: Mapping[str, Any]) -> None:
        self.seed, self.modules = seed, list(modules)
        self.errors: dict[str, dict[str, float]] = details["errors"]
        self.unknowns: dict[str, float] = details["unknowns"]
        self.reasons: list[str] = details["reasons"]
        self.seconds: float = details["seconds"]
        self.history: list[dict[str, Any]] = details["history"]

    def details(self) -> dict[str, Any]:
        """All but seed and modules, as numbers, strings, lists and dicts."""
        names = ("errors", "unknowns", "reasons", "seconds", "history")
        return {name: getattr(self, name) for name in names}


class Solution:
    """The fields that a training found, as functions: ``sol(x, t)`` takes and gives NumPy arrays.

    With several seeds it is that of the median loss; ``sol.runs`` has all.

    Attributes:
        runs: the result of each seed.
        reference: what errors are measured against, or None.
    """

    def __init__(self, groups: Sequence[Sequence[Field]], runs: Sequence[Run], reference: Reference | None) -> None:
        self.groups, self.runs, self.reference = [list(group) for group in groups], list(runs), reference
        self.fields = [field for group in self.groups for field in group]
        self.domain: Domain = max((f.domain for f in self.fields), key=lambda domain: len(domain.names))

    @property
    def run(self) -> Run:
        """The run of the median final loss, the lower of two."""
        ranked = sorted(self.runs, key=lambda run: run.history[-1]["loss"] if run.history else float("inf"))
        return ranked[(len(ranked) - 1) // 2]

    @property
    def unknowns(self) -> dict[str, float]:
        """The numbers that were solved for, medians over seeds."""
        return {name: statistics.median(run.unknowns[name] for run in self.runs) for name in self.run.unknowns}

    @property
    def errors(self) -> Errors:
        """The errors against the reference; ValueError if there is none."""
        if self.reference is None:
            raise ValueError("errors: there is no reference; give one to solve(reference=...)")
        return Errors(self.reference, [run.errors for run in self.runs], [run.seconds for run in self.runs])

    def __call__(self, *points: Array | float, **named: Array | float) -> Any:
        """The fields at points, evaluated in chunks, so that memory grows with inputs and outputs alone.

        Args:
            points: for each coordinate an array or number, in the order of ``domain.names``; they broadcast.
            named: the same by name.

        Returns:
            float64 array of their common shape; for several fields a dict of such by name.

        Raises:
            TypeError: coordinates are missing, or too many. ValueError: points outside the domain.
        """
        names = self.domain.names
        given = dict(zip(names, points, strict=False)) | named
        if len(points) > len(names) or set(given) != set(names) or len(points) + len(named) != len(names):
            raise TypeError(f"Solution: expected the coordinates {', '.join(names)}, each once")
        columns = np.broadcast_arrays(*[np.asarray(given[name], dtype=np.float64) for name in names])
        values = evaluate(self.run.modules, self.domain, columns)
        return next(iter(values.values())) if len(values) == 1 else values

    def plot(self, path: str | os.PathLike[str], slices: Mapping[str, Sequence[float]] | None = None) -> None:
        """Draw fields, errors, slices and the history into a PNG, SVG or PDF file.

        Args:
            path: its suffix says the format.
            slices: a coordinate and the values at which to cut: ``{"t": [0.25, 0.5, 1]}``.
        """
        from leafgrad_pinn.plot import draw

        draw(self, Path(path), dict(slices or {}))

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
                        "states": [module.state_dict() for module in run.modules],
                        "details": run.details(),
                    }
                    for run in self.runs
                ],
                "reference": encode(reference),
            },
            path,
        )

    @staticmethod
    def load(path: str | os.PathLike[str], device: Any = "cpu") -> Solution:
        """Read what ``save`` wrote.

        Raises:
            ValueError: the file is of something else, or of a later version. Others as ``leafgrad.load``.
        """
        saved = leafgrad.load(path, map_location=device)
        if not isinstance(saved, dict) or saved.get("leafgrad-pinn") != FORMAT:
            raise ValueError(f"load: {path}: expected a solution of leafgrad-pinn, format {FORMAT}")
        groups = [[decode(field) for field in group] for group in saved["groups"]]
        runs = []
        for run in saved["runs"]:
            make = Maker(np.random.default_rng(0), getattr(leafgrad, run["dtype"]), device)
            modules = [Surrogate(group, make) for group in groups]
            for module, state in zip(modules, run["states"], strict=True):
                module.load_state_dict(state)
            runs.append(Run(run["seed"], modules, run["details"]))
        reference = decode(saved["reference"])
        return Solution(groups, runs, None if reference is None else Reference(**reference))


class Errors:
    """Errors against a reference, over seeds. As a string, a line for each field.

    Attributes:
        l2, max: for each field the errors of all seeds: relative L2, and largest.
    """

    def __init__(
        self, reference: Reference, errors: Sequence[dict[str, dict[str, float]]], seconds: Sequence[float]
    ) -> None:
        self.reference, self.seconds = reference, list(seconds)
        self.l2 = {name: [error[name]["l2"] for error in errors] for name in errors[0]}
        self.max = {name: [error[name]["max"] for error in errors] for name in errors[0]}

    def at_floor(self, name: str) -> bool:
        """Whether the median relative L2 error of a field is within three times the reference's own."""
        return statistics.median(self.l2[name]) <= 3 * self.reference.floor[name]

    def __str__(self) -> str:
        lines = []
        for name, l2 in self.l2.items():
            floor = self.reference.floor[name]
            line = f"{name}: relative L2 error {statistics.median(l2):.2e}"
            line += f", largest {statistics.median(self.max[name]):.2e}"
            if len(l2) > 1:
                line += f" (medians of {len(l2)} seeds; L2 from {min(l2):.1e} to {max(l2):.1e})"
            line += ", at the reference's floor" if self.at_floor(name) else ""
            lines.append(f"{line}; reference: {self.reference.name}, error {floor:.0e}")
        times = f"training {statistics.median(self.seconds):.1f} s, reference {self.reference.seconds:.3g} s"
        return "\n".join([*lines, times])

    __repr__ = __str__


def evaluate(
    modules: Sequence[Surrogate], domain: Domain, columns: Sequence[Array], check: bool = True
) -> dict[str, Array]:
    """Each field at points, given as an array for each coordinate of one shape: float64 of that shape."""
    parameter = next(iter(modules[0].parameters()))
    shape = columns[0].shape
    flat = [np.reshape(column, -1) for column in columns]
    values: dict[str, Array] = {}
    for begin in range(0, max(1, flat[0].size), CHUNK):
        rows = np.stack([column[begin : begin + CHUNK] for column in flat], 1)
        if check:
            domain.check_inside("Solution", rows)
        tensors = columns_of(domain, rows, parameter.dtype, parameter.device)
        with leafgrad.no_grad():
            found = {name: value for module in modules for name, value in module(tensors).items()}
        for name, value in found.items():
            values.setdefault(name, np.empty(flat[0].size))[begin : begin + CHUNK] = value.cpu().numpy()
    return {name: value.reshape(shape) for name, value in values.items()}


def score(modules: Sequence[Surrogate], domain: Domain, reference: Reference | None) -> dict[str, dict[str, float]]:
    """The errors of each field of a reference, where the reference has numbers."""
    if reference is None:
        return {}
    found = evaluate(modules, domain, reference.columns(domain.names), check=False)
    errors = {}
    for name in reference.fields:
        known = reference.values(name, domain.names)
        good = np.isfinite(known)
        gap = (found[name] - known)[good]
        size = float(np.linalg.norm(known[good]))
        errors[name] = {"l2": float(np.linalg.norm(gap)) / size, "max": float(np.abs(gap).max())}
    return errors


def check_reference(reference: Reference, domain: Domain, names: Sequence[str]) -> None:
    """ValueError if a reference is of other coordinates or fields."""
    if set(reference.axes) != set(domain.names) or not set(reference.fields) <= set(names):
        raise ValueError(
            f"reference: expected coordinates {', '.join(domain.names)} and fields among {', '.join(names)}, "
            f"got {', '.join(reference.axes)} and {', '.join(reference.fields)}"
        )

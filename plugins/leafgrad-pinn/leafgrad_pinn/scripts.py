"""The problems in a folder of scripts, each of which defines ``solve(run)``."""

from __future__ import annotations

import math
import runpy
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leafgrad_pinn.run import Run
    from leafgrad_pinn.solution import Solution


@dataclass(frozen=True)
class Options:
    """What a script is asked for.

    Attributes:
        quick: less training, at most a minute.
        options: to be handed to ``Problem.solve`` as they are: seeds, dtype, out, resume.
    """

    quick: bool
    options: dict[str, Any]


@dataclass(frozen=True)
class Script:
    """A problem.

    Attributes:
        name: the script's, or that of one of its ``CASES = {"name": {argument of solve: value}}``.
        title: the first line of the script's docstring.
        path: of the script.
        given: what the script defines: ``solve``, and ``SLICES`` for the picture, ``TARGETS = {"full": error, "quick":
            error}`` (or such for each case), ``measure``, which gives numbers by name of a solution, such as a drag,
            and ``TRUTH``, the true values of these, or of the unknowns, if it has them.
        case: further arguments of ``solve``.
    """

    name: str
    title: str
    path: Path
    given: Mapping[str, Any]
    case: Mapping[str, Any]

    def solve(self, options: Options) -> Solution:
        """Run it."""
        solution: Solution = self.given["solve"](options, **self.case)
        return solution

    def target(self, quick: bool) -> float | None:
        """The error it aims at."""
        targets = self.given.get("TARGETS", {})
        found: float | None = targets.get(self.name, targets).get("quick" if quick else "full")
        return found

    def numbers(self, solution: Solution, run: Run) -> dict[str, float]:
        """What a run found: the unknowns, and what is measured of its fields."""
        measure = self.given.get("measure")
        return {**run.unknowns, **(measure(solution.of(run)) if measure else {})}

    def error(self, solution: Solution, run: Run) -> float:
        """The largest relative error of a run: of numbers where their truth is known, else of the fields, in L2."""
        if truth := self.given.get("TRUTH"):
            found = self.numbers(solution, run)
            return max(abs(found[name] / value - 1) for name, value in truth.items())
        return max(error["l2"] for error in run.errors.values())

    def deviation(self, solution: Solution) -> float | None:
        """The largest relative standard error of the unknowns, the median over seeds; None if J^T J gives none."""
        truth = self.given.get("TRUTH", {})
        known = solution.unknowns.deviations if solution.unknowns else {}
        errors = [known.get(name, math.nan) / abs(value) for name, value in truth.items()]
        return max(errors) if errors and all(map(math.isfinite, errors)) else None

    def report(self, solution: Solution) -> list[str]:
        """What was found, in words, a line each."""
        errors = solution.errors
        lines = [] if solution.reference is None else [str(errors)]
        guesses = ", ".join(f"{name} {error:.1e}" for name, error in errors.estimated.items())
        why = f" ({errors.reservation})" if errors.reservation else ""
        lines.append(f"estimated without a reference: {guesses or 'nothing'}{why}")
        truth = self.given.get("TRUTH", {})
        found = [self.numbers(solution, run) for run in solution.runs]
        for name in found[0]:
            values = [numbers[name] for numbers in found]
            line = f"{name} = {statistics.median(values):.6g}"
            if name in truth:
                off = statistics.median(abs(value / truth[name] - 1) for value in values)
                line += f", off by {off:.1e} of {truth[name]:.6g}"
            lines.append(line)
        left = ", ".join(f"{name} {share:.1e}" for name, share in solution.run.relative.items())
        lines.append(f"residuals, relative to their terms: {left}")
        ends = [(run.seed, [*run.reasons, *([run.doubts] if run.doubts else [])]) for run in solution.runs]
        return lines + [f"seed {seed}: {'; '.join(said)}" for seed, said in ends]


def shipped() -> Path:
    """The folder of the problems that come with the package, or, in a checkout, stand beside it."""
    inside = Path(__file__).parent / "problems"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "examples" / "pinn"


def find(folder: Path) -> tuple[dict[str, Script], dict[str, Exception]]:
    """All problems of a folder by name, and what the scripts that fail raised, by file name.

    Scripts that define no ``solve`` are none.
    """
    found: dict[str, Script] = {}
    failed: dict[str, Exception] = {}
    for path in sorted(folder.glob("*.py")):
        scripts, errors = read(path)
        found, failed = found | scripts, failed | errors
    return found, failed


def read(path: Path) -> tuple[dict[str, Script], dict[str, Exception]]:
    """The same of one script."""
    try:
        given = runpy.run_path(str(path))
    except Exception as error:
        return {}, {path.name: error}
    if "solve" not in given:
        return {}, {}
    title = (given.get("__doc__") or "").strip().partition("\n")[0]
    cases = given.get("CASES", {path.stem: {}})
    return {name: Script(name, title, path, given, case) for name, case in cases.items()}, {}

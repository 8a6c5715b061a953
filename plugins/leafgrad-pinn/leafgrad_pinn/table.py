"""A table of what the problems' scripts reach, in Markdown, and its figures in JSON beside it."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import leafgrad
from leafgrad_pinn.beside import section
from leafgrad_pinn.scripts import Options, Script
from leafgrad_pinn.training import INTERRUPTED, write

KINDS = ("quick", "full")

HEAD = """\
# Differential equations

Written by `leafgrad pinn table` from the figures beside it; rows that were not run say so. Errors are relative: in L2,
the largest of a problem's fields, or, where numbers are solved for, the largest of their errors. Estimates are of the
fields of the seed with the median loss, made without the reference; where residuals are not explained, as at shocks and
corners and in many dimensions, they are how far seeds are apart, and there is none for one seed. An error within three
times that of the reference is at the reference's floor: it says no more than that. Where numbers are solved for, the
column has their standard error by J^T J instead, below which noise in the data lets no method get except by chance.
Times are of the processor, all threads together, for one seed, with compilation and the reference; that of the
classical solver is elapsed time.

"""


class ResultsTable:
    """Figures of problems, kept in a JSON file.

    Args:
        path: of the Markdown file; the figures are in the same place with the suffix ``.json``.
        scripts: all problems, which have a row each.
    """

    def __init__(self, path: Path, scripts: Mapping[str, Script]) -> None:
        self.path, self.figures, self.scripts = path, path.with_suffix(".json"), scripts
        self.rows = self.read()

    def read(self) -> dict[str, Any]:
        """The figures as they are kept, by problem and kind."""
        text = self.figures.read_text(encoding="utf-8") if self.figures.exists() else "{}"
        rows: dict[str, Any] = json.loads(text)
        return rows

    def measure(self, name: str, quick: bool, seeds: int, dtype: str, runs: Path | None = None) -> str:
        """Solve a problem, write the figures; returns its row.

        Args:
            name, quick, seeds, dtype: what to solve.
            runs: a folder for checkpoints, from which a run that was stopped goes on; None for none.

        Raises:
            SystemExit: training was interrupted; the row stays as it was.
        """
        script, kind = self.scripts[name], KINDS[not quick]
        out = None if runs is None else runs / f"{name} {kind}"
        options = {"seeds": seeds, "dtype": getattr(leafgrad, dtype), "out": out, "resume": out is not None}
        spent = Spent(out)
        with spent:
            solution = script.solve(Options(quick, options))
        if any(INTERRUPTED in reason for run in solution.runs for reason in run.reasons):
            print(f"leafgrad pinn table: {name} was interrupted; its row stays as it was", file=sys.stderr)
            raise SystemExit(130)
        reference = solution.reference
        row = {
            "errors": [script.error(solution, run) for run in solution.runs],
            "estimate": max(solution.errors.estimated.values(), default=None),
            "processor seconds": spent.processor / seeds,
            "elapsed seconds": spent.elapsed / seeds,
            "floor": None if reference is None or "TRUTH" in script.given else max(reference.floor.values()),
            "standard error": script.deviation(solution),
            "classical": None if reference is None else reference.name,
            "classical seconds": None if reference is None else reference.seconds,
            "command": f"leafgrad pinn table {name}{' --quick' * quick} --seeds {seeds} --dtype {dtype}",
            "machine": machine(),
        }
        self.rows = self.read() | {f"{name} {kind}": row}  # others may have written theirs meanwhile
        self.write()
        return self.row(name, kind)

    def write(self) -> None:
        """Both files."""
        write(self.figures, json.dumps(self.rows, indent=1, sort_keys=True) + "\n")
        text = HEAD
        for kind in KINDS:
            text += f"## {'With `--quick`' if kind == 'quick' else 'In full'}\n\n"
            text += (
                "| problem | error | range over seeds | estimate | target | processor s | reference's error "
                "| classical solver |\n"
            )
            text += "|---|---|---|---|---|---|---|---|\n"
            text += "\n".join(self.row(name, kind) for name in self.scripts) + "\n\n"
        text += section(self.path.with_name(f"{self.path.stem}_deepxde.json"))
        machines = list(dict.fromkeys(row["machine"] for row in self.rows.values()))
        text += "Machine: " + "; ".join(machines) + ". Commands:\n\n"
        text += "\n".join(f"    {row['command']}" for row in self.rows.values()) + "\n"
        write(self.path, text)

    def row(self, name: str, kind: str) -> str:
        """A problem's row."""
        target = self.scripts[name].target(kind == "quick")
        aim = "" if target is None else f"{target:.0e}"
        figures = self.rows.get(f"{name} {kind}")
        if figures is None:
            return f"| {name} | not run | | | {aim} | | | |"
        errors, floor = figures["errors"], figures["floor"]
        error = statistics.median(errors)
        shown = f"{error:.1e}" + (", missed" if target is not None and error > target else "")
        shown += ", at the reference's floor" if floor is not None and error <= 3 * floor else ""
        spread = "one seed" if len(errors) == 1 else f"{min(errors):.1e} to {max(errors):.1e}, {len(errors)} seeds"
        doubt = figures.get("standard error") if floor is None else floor
        known = "" if doubt is None else f"{doubt:.0e}"
        classical = f"{figures['classical']}: {figures['classical seconds']:.2g} s" if figures["classical"] else ""
        guess = "" if figures.get("estimate") is None else f"{figures['estimate']:.1e}"
        seconds = f"{figures['processor seconds']:.0f}"
        return f"| {name} | {shown} | {spread} | {guess} | {aim} | {seconds} | {known} | {classical} |"


def processor_seconds() -> float:
    """Of this process, and of those that it started and that have ended."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system


class Spent:
    """The time that a block takes, with that of blocks before it that kept theirs in the same folder."""

    def __init__(self, folder: Path | None) -> None:
        self.path = None if folder is None else folder / "spent.json"
        kept = {} if self.path is None or not self.path.exists() else json.loads(self.path.read_text(encoding="utf-8"))
        self.processor, self.elapsed = kept.get("processor", 0.0), kept.get("elapsed", 0.0)

    def __enter__(self) -> None:
        self.begin = processor_seconds(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.processor += processor_seconds() - self.begin[0]
        self.elapsed += time.perf_counter() - self.begin[1]
        if self.path is not None:
            write(self.path, json.dumps({"processor": self.processor, "elapsed": self.elapsed}))


def machine() -> str:
    """Processor, cores, and versions."""
    model = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        names = [line.partition(":")[2].strip() for line in cpus.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in ("leafgrad", "numpy", "scipy"))
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, {versions}"

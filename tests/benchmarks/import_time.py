"""How long an import takes in a fresh interpreter: the processor's time for the statement; and the whole process.

With bytecode each package is imported once before, so that its bytecode lies in a folder of its own; without, Python
compiles all packages at each start, as it does where it may not write. Of a process, Python's own start and end are
subtracted; it is timed by the clock.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec

from compare import Row, start, tell

OURS = {"leafgrad": "leafgrad", "NumPy": "numpy"}
OTHERS = {"PyTorch": "torch", "JAX": "jax"}


def run(statement: str, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds that a statement keeps the processor busy, and those of the process that runs it alone, by the clock."""
    code = f"from time import process_time as now; begin = now(); {statement}; print(now() - begin)"
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
    return float(done.stdout), time.perf_counter() - begin


def measure(packages: dict[str, str], runs: int, **environment: str) -> tuple[dict[str, float | None], ...]:
    """Median seconds of imports, and of processes, by name; None where a package is not installed."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | environment
    statements = {"": "pass"} | {n: f"import {package}" for n, package in packages.items() if find_spec(package)}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in statements}
    for statement in statements.values():
        run(statement, known)
    for _ in range(runs):
        for name, statement in statements.items():
            found[name].append(run(statement, known))
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in found.items()}
    empty = medians.pop("")
    return tuple({n: medians[n][i] - empty[i] if n in medians else None for n in packages} for i in range(2))


def main() -> None:
    start("Import")
    with tempfile.TemporaryDirectory() as folder:
        cached = {"PYTHONPYCACHEPREFIX": folder}
        others = measure(OTHERS, 1, **cached)
        imports, processes = measure(OURS, 15, **cached)
    with tempfile.TemporaryDirectory() as folder:
        compiled, _ = measure(OURS, 3, PYTHONPYCACHEPREFIX=folder, PYTHONDONTWRITEBYTECODE="1")
    tell(Row("with bytecode", "s", imports | others[0], 1.5))
    tell(Row("without bytecode", "s", compiled, 2.0))
    tell(Row("with bytecode, the whole process", "s", processes | others[1]))


if __name__ == "__main__":
    main()

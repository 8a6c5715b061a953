"""How long an import takes, in a fresh interpreter each time; the interpreter's own start and end are subtracted.

With bytecode each package is imported once before, so that its bytecode lies in a folder of its own; without, Python
compiles all packages at each start, as it does where it may not write.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from importlib.util import find_spec

from compare import Row, medians, start, tell

PACKAGES = {"leafgrad": "leafgrad", "numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}


def run(code: str, environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def measure(what: str, runs: int, target: float, names: list[str], **environment: str) -> None:
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    codes = {"": "pass"} | {PACKAGES[name]: f"import {name}" for name in names if find_spec(name)}
    found = medians({name: partial(run, code, known | environment) for name, code in codes.items()}, runs)
    empty = found.pop("") or 0.0
    values = {PACKAGES[name]: seconds and seconds - empty for name in names for seconds in [found.get(PACKAGES[name])]}
    tell(Row(what, "s", {"leafgrad": values.pop("leafgrad"), **values}, target))


def main() -> None:
    start("Import")
    with tempfile.TemporaryDirectory() as folder:
        measure("with bytecode", 9, 1.5, list(PACKAGES), PYTHONPYCACHEPREFIX=folder)
    with tempfile.TemporaryDirectory() as folder:
        nothing = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        measure("without", 3, 2.0, ["leafgrad", "numpy"], **nothing)


if __name__ == "__main__":
    main()

"""How long an import takes, in a fresh interpreter each time; the interpreter's own start and end are subtracted.

Each package is imported once before, so that its bytecode lies in a folder of its own, whatever the environment says:
without it Python would compile a package anew at each start, or not, depending on how it was installed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec

from compare import header, one_thread

RUNS = 15


def start(code: str, folder: str) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = folder
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return time.perf_counter() - begin


def main() -> None:
    one_thread()
    header("Import, with bytecode")
    names = [name for name in ("numpy", "leafgrad", "torch", "jax") if find_spec(name) is not None]
    codes = {"": "pass", **{name: f"import {name}" for name in names}}
    found: dict[str, list[float]] = {name: [] for name in codes}
    with tempfile.TemporaryDirectory() as folder:
        for code in codes.values():
            start(code, folder)
        for _ in range(RUNS):
            for name, code in codes.items():
                found[name].append(start(code, folder))
    empty = statistics.median(found.pop(""))
    medians = {name: statistics.median(seconds) - empty for name, seconds in found.items()}
    for name, seconds in medians.items():
        print(f"  {name:10} {seconds:8.3f} s {seconds / medians['numpy']:6.2f} of numpy's")


if __name__ == "__main__":
    main()

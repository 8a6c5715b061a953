"""How long an import takes, in a fresh interpreter each time; the interpreter's own start is subtracted."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from importlib.util import find_spec

from compare import header, one_thread

RUNS = 9


def start(code: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def main() -> None:
    one_thread()
    header("Import")
    names = [name for name in ("numpy", "leafgrad", "torch", "jax") if find_spec(name) is not None]
    codes = {"": "pass", **{name: f"import {name}" for name in names}}
    found: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(RUNS):
        for name, code in codes.items():
            found[name].append(start(code))
    empty = statistics.median(found.pop(""))
    for name, seconds in found.items():
        print(f"  {name:10} {statistics.median(seconds) - empty:8.3f} s")


if __name__ == "__main__":
    main()

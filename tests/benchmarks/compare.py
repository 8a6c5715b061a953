"""How benchmarks are run and printed: the libraries take turns on one thread, and the medians are compared."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("leafgrad", "numpy", "torch", "jax", "autograd")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def one_thread() -> None:
    """Start this script again with one thread for all libraries, unless they are told already."""
    if any(name not in os.environ for name in THREADS):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **dict.fromkeys(THREADS, "1")})


def peer(name: str) -> Any:
    """An installed library by name, on one thread, or None."""
    try:
        library = import_module(name)
    except ImportError:
        return None
    if name == "torch":
        library.set_num_threads(1)
    return library


def machine() -> str:
    """The processor, as Linux names it."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return f"{names[0]}, {os.cpu_count()} cores" if names else platform.processor() or platform.machine()


def installed(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def header(title: str) -> None:
    """What is measured, on what, with what."""
    threads = ", ".join(f"{name}={os.environ[name]}" for name in THREADS if name in os.environ)
    print(title)
    print(f"  {machine()}; {platform.system()} {platform.release()}; Python {platform.python_version()}")
    print("  " + ", ".join(filter(None, map(installed, PACKAGES))))
    print(f"  {threads} python {' '.join(sys.argv)}")


def times(functions: dict[str, Callable[[], Any]], runs: int, warmup: int = 3) -> dict[str, list[float]]:
    """Seconds of each function, called in turns so that all see the same load of the machine."""
    for _ in range(warmup):
        for function in functions.values():
            function()
    found: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(runs):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            found[name].append(time.perf_counter() - start)
    return found


def compare(what: str, functions: dict[str, Callable[[], Any]], runs: int, per: int = 1, unit: str = "us") -> None:
    """Print medians (and minima) of ``per`` operations each, and the first one's share of the others."""
    scale = {"us": 1e6, "ms": 1e3, "s": 1.0}[unit] / per
    found = times(functions, runs)
    medians = {name: statistics.median(t) * scale for name, t in found.items()}
    ours = next(iter(medians.values()))
    for name, median in medians.items():
        ratio = f"   leafgrad takes {ours / median:.2f} of it" if median != ours else ""
        print(f"  {what:28} {name:10} {median:10.2f} ({min(found[name]) * scale:.2f}) {unit}{ratio}")

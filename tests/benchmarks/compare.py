"""How benchmarks run and tell: libraries take turns, medians are compared, and every figure is a `Row`.

`make bench` runs all scripts and writes their rows into docs/benchmarks/cpu.md (`page.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "LEAFGRAD_NUM_THREADS")
ROWS = "LEAFGRAD_BENCHMARK_ROWS"  # the file that titles and rows go to, as lines of JSON
SCALES = {"us": 1e6, "ms": 1e3, "s": 1.0}


@dataclass
class Row:
    """One figure.

    Attributes:
        what: what is measured.
        unit: of the values.
        values: leafgrad's first; None for a library that is not installed.
        target: the share of the best other value that is aimed at; rows with one are in the summary.
        more: what else belongs to it, by name.
    """

    what: str
    unit: str
    values: dict[str, float | None]
    target: float | None = None
    more: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """leafgrad's value over the best other one."""
        ours, *others = self.values.values()
        known = [value for value in others if value is not None]
        return ours / min(known) if ours is not None and known else None


# ---- how a script starts --------------------------------------------------------------------------------------------


def start(title: str, threads: int = 1, cores: int | None = None) -> None:
    """Start this script again with so many threads for all libraries on as many cores, unless it is, and say so."""
    wanted = dict.fromkeys(THREADS, str(threads))
    if threads == 1:
        wanted["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    if any(os.environ.get(name) != value for name, value in wanted.items()):  # before any library is imported
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-(cores or threads) :])
    print(f"{title}\n  {machine()}; Python {platform.python_version()}; threads: {threads}")
    record({"title": title})


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """A parser that knows ``--threads``."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    return parser


def machine() -> str:
    """The processor, as Linux names it, and its widest vectors."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    wide = next((f", {flag.upper()}" for flag in ("avx512f", "avx2") if flag in flags), "")
    return f"{names[0]}, {os.cpu_count()} cores{wide}" if names else platform.processor() or platform.machine()


def installed(name: str) -> str:
    """A package and its version, or nothing."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def peer(name: str) -> Any:
    """An installed library by name, on as many threads as the others, or None."""
    try:
        library = import_module(name)
    except ImportError:
        return None
    if name == "torch":
        library.set_num_threads(int(os.environ[THREADS[0]]))
    return library


def each(make: Callable[[Any], Any]) -> dict[str, Any]:
    """What ``make`` makes with leafgrad and with PyTorch; None where that is not installed."""
    libraries = {"leafgrad": peer("leafgrad"), "PyTorch": peer("torch")}
    return {name: library and make(library) for name, library in libraries.items()}


def ways(make: Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]) -> dict[str, Any]:
    """A step of leafgrad's, with the arguments it takes: compiled, as C where leafgrad-native is; and of PyTorch's."""
    ours = peer("leafgrad")

    def prepared(library: Any, how: Callable[..., Any]) -> Any:
        step, args = make(library)
        return partial(how(step), *args)

    return {
        "leafgrad": prepared(ours, ours.compile),
        "leafgrad, NumPy executor": prepared(ours, partial(ours.compile, executor="numpy")),
        "leafgrad, eager": prepared(ours, lambda step: step),
        "PyTorch": (theirs := peer("torch")) and prepared(theirs, lambda step: step),
    }


# ---- figures --------------------------------------------------------------------------------------------------------


def medians(functions: dict[str, Any], runs: int, pause: float = 0.0) -> dict[str, float | None]:
    """Seconds of each function; None stays None. They take turns, so that all see the same load of the machine.

    Turns are in random order. With a pause, in which threads of the one before stop to spin, each turn begins with a
    call that is not counted, which wakes up threads: as in a loop over steps.
    """
    known = [(name, function) for name, function in functions.items() if function is not None]
    for _ in range(3):
        for _, function in known:
            function()
    found: dict[str, list[float]] = {name: [] for name, _ in known}
    shuffle = random.Random(0).shuffle
    for _ in range(runs):
        shuffle(known)
        for name, function in known:
            if pause:
                time.sleep(pause)
                function()
            begin = time.perf_counter()
            function()
            found[name].append(time.perf_counter() - begin)
    return {name: statistics.median(found[name]) if name in found else None for name in functions}


def compare(
    what: str,
    functions: dict[str, Any],
    runs: int,
    *,
    unit: str = "us",
    per: int = 1,
    pause: float = 0.0,
    targets: tuple[float | None, ...] = (),
) -> list[Row]:
    """Tell medians of ``per`` operations each. -> rows

    Args:
        functions: by name; those whose name starts with "leafgrad", each of which gets a row, before the others.
        targets: of the rows, in order; of the last of them none.
    """
    scale = SCALES[unit] / per
    found = {n: None if t is None else t * scale for n, t in medians(functions, runs, pause).items()}
    ours = [name for name in found if name.startswith("leafgrad")] or [next(iter(found))]
    others = {name: value for name, value in found.items() if name not in ours}
    rows = []
    for name, target in zip(ours, [*targets, *[None] * len(ours)], strict=False):
        label = "leafgrad" if name.startswith("leafgrad") else name
        rows.append(Row(what + name.removeprefix(label), unit, {label: found[name], **others}, target))
    for row in rows:
        tell(row)
    return rows


def tell(row: Row) -> None:
    """Print a row, and record it."""
    values = "  ".join(f"{name} {number(value)}" for name, value in row.values.items())
    more = "".join(f"  {name} {number(value)}" for name, value in row.more.items())
    ratio = "" if row.ratio is None else f"   ratio {row.ratio:.2f}"
    print(f"  {row.what:44} {values} {row.unit}{ratio}{more}", flush=True)
    record(asdict(row))


def record(entry: dict[str, Any]) -> None:
    if ROWS in os.environ:
        with open(os.environ[ROWS], "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def number(value: float | None) -> str:
    """With three digits, or what stands for one that is missing."""
    if value is None:
        return "not installed"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"

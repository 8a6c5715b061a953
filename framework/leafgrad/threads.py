"""How many threads compiled steps may use: one number for the process."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_count = 0  # not asked for yet


def get_num_threads() -> int:
    """The number of threads that an executor may run a compiled step on.

    Unless set, it is ``LEAFGRAD_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the number of processors that the process
    may use: those of its affinity, and no more than the CPU limit of its control groups (containers), rounded up.

    Raises:
        ValueError: ``LEAFGRAD_NUM_THREADS`` is no positive integer.
    """
    global _count
    if not _count:
        _count = default(os.environ)
    return _count


def set_num_threads(count: int, /) -> None:
    """Set the number of threads for the whole process, from the next call of a compiled step on.

    NumPy's ops do not ask for it: a BLAS has threads of its own, for which there are ``OPENBLAS_NUM_THREADS``,
    ``MKL_NUM_THREADS`` and, at run time, the package threadpoolctl.

    Args:
        count: at least 1.

    Raises:
        RuntimeError: no int, or not positive.
    """
    global _count
    if type(count) is not int:
        raise RuntimeError(f"set_num_threads expects an int, but got {type(count).__name__}")
    if count < 1:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {count}")
    _count = count


def default(environment: Mapping[str, str]) -> int:
    """What `get_num_threads` answers before a number is set."""
    own = environment.get("LEAFGRAD_NUM_THREADS", "").strip()
    if own:
        if not own.isdecimal() or int(own) < 1:
            raise ValueError(f"LEAFGRAD_NUM_THREADS: expected a positive integer, got {own!r}: mend it, or unset it")
        return int(own)
    first = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # a list: one number for each level
    if first.isdecimal() and int(first) >= 1:
        return int(first)
    return max(1, math.ceil(min(processors(), limit())))


def processors() -> int:
    """Processors that this process may be scheduled on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit(root: str | os.PathLike[str] = "/") -> float:
    """Processors' worth of time that the control groups of this process grant, inf without a limit."""
    from pathlib import Path  # slow to import

    return min(_quotas(Path(root)), default=math.inf)


def _quotas(root: Path) -> Iterator[float]:
    """The quota of each group from this process's up to the topmost one that can be seen, of versions 2 and 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / controllers
        group = top / name.lstrip("/")
        for folder in (group, *group.parents):
            yield from _quota(folder)
            if folder == top:
                break


def _quota(folder: Path) -> Iterator[float]:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
    except (OSError, ValueError):
        return
    if quota != "max" and int(quota) > 0 and int(period) > 0:
        yield int(quota) / int(period)

"""Several processes of one program on this machine, by the ``mpiexec`` that belongs to mpi4py's MPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

PIDS = "LEAFGRAD_RANKS"  # the folder in which each rank leaves a file with its process number
KILLED = re.compile(r"PID (?P<pid>\d+) RUNNING AT|EXIT STRING: (?P<how>.*)")  # of MPICH; Open MPI names the rank
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "LEAFGRAD_NUM_THREADS")


def run(command: Sequence[str], ranks: int) -> int:
    """Run a command ``ranks`` times at once, each with its share of the processors; returns the exit status.

    Raises:
        ValueError: ``ranks`` is less than 1. ImportError: there is no mpi4py, or no mpiexec.
    """
    if ranks < 1:
        raise ValueError(f"expected at least 1, got {ranks}")
    if find_spec("mpi4py") is None:
        raise ImportError('needs mpi4py: pip install "leafgrad[mpi]"')
    with TemporaryDirectory(prefix="leafgrad-ranks-") as folder:
        process = subprocess.Popen(
            [mpiexec(), "-n", str(ranks), *command], env={**shares(ranks), **os.environ, PIDS: folder},
            stdout=subprocess.PIPE,
        )  # fmt: skip
        said = pass_on(process)
        status = process.wait()
        if said.get("how"):
            print(f"leafgrad run: {named(said, Path(folder), ranks)}; all ranks are stopped", file=sys.stderr)
    return status


def mpiexec() -> str:
    """The program: beside this Python, where wheels of an MPI put it, or on PATH."""
    here = os.path.dirname(sys.executable)
    found = shutil.which("mpiexec", path=here) or shutil.which("mpiexec")
    if found is None:
        raise ImportError('needs mpiexec, of an MPI: pip install "leafgrad[mpi]"')
    return found


def shares(ranks: int) -> dict[str, str]:
    """Threads for each process, so that all together have one for each processor."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return dict.fromkeys(THREADS, str(max(1, processors // ranks)))


def pass_on(process: subprocess.Popen[bytes]) -> dict[str, str]:
    """Show what the processes print; returns what mpiexec says there of one that was killed."""
    said: dict[str, str] = {}
    assert process.stdout is not None
    for line in process.stdout:
        sys.stdout.write(line.decode(errors="replace"))
        sys.stdout.flush()
        if b"PID" in line or b"EXIT STRING" in line:
            said.update({k: v for found in KILLED.finditer(line.decode()) for k, v in found.groupdict().items() if v})
    return said


def named(said: dict[str, str], folder: Path, ranks: int) -> str:
    """Which rank was killed, and how, in words."""
    pids = {path.read_text(): path.name for path in folder.iterdir()}
    pid = said.get("pid", "")
    who = f"rank {pids[pid]} of {ranks}" if pid in pids else "a rank"
    return f"{who}, process {pid}: {said['how'].strip()}"

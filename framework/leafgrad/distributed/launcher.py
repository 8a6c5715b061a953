"""Several processes of one program on this machine, by the ``mpiexec`` that belongs to mpi4py's MPI."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from leafgrad.distributed.watch import PIPE, SEEN, STATUS, Death, RankWatch, ended_with_this

FOLDER = "LEAFGRAD_RANKS"  # in which each rank has a file with its process number, until its program is through
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")  # where MPICH, Open MPI and Slurm put a process's number
MOST = 64  # ranks for each processor
SEEN_WITHIN = 30.0  # seconds that a rank waits for its launcher, which may have little of a busy machine
HIGH = 900  # a number of a file above those that MPI opens, below 1024, which most systems allow
LAUNCHER = "launcher"  # the file there with the number of the process that started all
KILLED = re.compile(r"PID (?P<pid>\d+) RUNNING AT|EXIT STRING: (?P<how>.*)")  # of MPICH; Open MPI names the rank
SIGNALS = tuple([getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)])
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "LEAFGRAD_NUM_THREADS")


def run_ranks(command: Sequence[str], ranks: int) -> int:
    """Run a command ``ranks`` times at once, each with its share of the processors; returns the exit status.

    Raises:
        ValueError: ``ranks`` is less than 1, or far more than there are processors. ImportError: there is no mpi4py,
            or no mpiexec.
    """
    if ranks < 1:
        raise ValueError(f"expected at least 1, got {ranks}")
    if ranks > MOST * processors():
        raise ValueError(f"expected at most {MOST} for each of {processors()} processors, got {ranks}")
    if find_spec("mpi4py") is None:
        raise ImportError('needs mpi4py: pip install "leafgrad[mpi]"')
    with TemporaryDirectory(prefix="leafgrad-ranks-") as folder:
        Path(folder, LAUNCHER).write_text(str(os.getpid()))
        with subprocess.Popen(
            [mpiexec(), "-n", str(ranks), *command], env={**shares(ranks), **os.environ, FOLDER: folder},
            stdout=subprocess.PIPE,
        ) as process, ended_with_this(process, folder), relayed(process) as came:  # fmt: skip
            watch = RankWatch(Path(folder), ranks, process)
            watch.start()
            said = pass_on(process)
            process.wait()
            watch.stop()
        status = asked(Path(folder))
        if came and not status and process.returncode:
            return 128 + came[-1]
        if watch.first or (said.get("how") and not status):
            print(f"leafgrad run: {death_in_words(watch.first, said, ranks)}; all ranks are stopped", file=sys.stderr)
            return ended(watch.first) or process.returncode or status or 1
        status = status or process.returncode
        if status == 0 and (there := sorted(path.name for path in Path(folder).glob("[0-9]*"))):
            print(f"leafgrad run: ranks {', '.join(there)} of {ranks} ended or were stopped before their program was "
                  "through: before os._exit() call destroy_process_group()", file=sys.stderr)  # fmt: skip
            status = 1
    return status


@contextmanager
def relayed(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Signals that ask this process to end ask mpiexec, which tells the ranks; Ctrl-C in a terminal reaches all.

    Gives the signals that came.
    """
    came: list[int] = []

    def relay(number: int, _: Any) -> None:
        came.append(number)
        if number != signal.SIGINT or not in_terminal():
            process.terminate()

    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    taken = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in taken:
        signal.signal(number, relay)
    try:
        yield came
    finally:
        for number, handler in taken.items():
            signal.signal(number, handler)


def in_terminal() -> bool:
    """Whether this process and those that it started are in the foreground of a terminal."""
    try:
        with open("/dev/tty") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def enter() -> None:
    """Note for the launcher that this process is a rank whose program is not through."""
    rank = launched_rank()
    if rank is not None and not Path(os.environ[FOLDER], str(rank)).exists():  # else it is a child of a rank
        pipe = Path(os.environ[FOLDER], f"{PIPE}{rank}")
        if hasattr(os, "pidfd_open"):
            os.mkfifo(pipe)
            hold(pipe)
        note(rank)
        atexit.register(through, rank)
        os._exit = ending_all(rank, os._exit)
        seen, until = Path(os.environ[FOLDER], f"{SEEN}{rank}"), time.monotonic() + SEEN_WITHIN
        while not seen.exists() and time.monotonic() < until:  # so that no rank ends unseen
            time.sleep(0.002)


def hold(pipe: Path) -> None:
    """Hold a pipe open whose end is noticed before MPICH notices the end of a process, and ends the others.

    Of a process that ends, Linux closes first what has the highest number. It is opened before anybody looks at it, for
    to those who look that is an event, too, whose place in the order of events an end soon afterwards would take.
    """
    import fcntl

    end = os.open(pipe, os.O_RDWR)  # which waits for no other side
    with suppress(OSError):  # so many are not allowed
        fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, HIGH)
        os.close(end)


def ending_all(rank: int, leave: Callable[[int], Any]) -> Any:
    """``os._exit``, which in this process ends all ranks as long as its program is not through."""
    own = os.getpid()

    def end(status: int) -> None:
        if os.getpid() == own and Path(os.environ[FOLDER], str(rank)).exists():
            end_all(status or 1)
        leave(status)

    return end


def launched_rank() -> int | None:
    """Which rank this process is, as its launcher says; None if it says nothing."""
    return next((int(os.environ[name]) for name in RANKS if os.environ.get(name, "").isdigit()), None)


def note(rank: int) -> None:
    """Note for the launcher, if there is one, which process this rank is."""
    if folder := os.environ.get(FOLDER):
        new = Path(folder, f"new {rank}")
        new.write_text(str(os.getpid()))
        new.rename(Path(folder, str(rank)))


def through(rank: int) -> None:
    """Note for the launcher, if there is one, that this rank may end."""
    if folder := os.environ.get(FOLDER):
        with suppress(OSError):  # the launcher has ended
            Path(folder, str(rank)).unlink(missing_ok=True)


def note_status(status: int) -> None:
    """Note for the launcher, if there is one, with which exit status all are to end."""
    if folder := os.environ.get(FOLDER):
        with suppress(OSError):  # it has ended already, and the folder with it
            Path(folder, f"{STATUS}{status & 255}").touch()


def end_all(status: int) -> None:
    """Ask the launcher, if there is one, to end all: a rank that has not met the others cannot do so itself."""
    if folder := os.environ.get(FOLDER):
        note_status(status)
        print(
            f"leafgrad: rank {launched_rank()} ended without the others; all ranks are stopped",
            file=sys.stderr,
            flush=True,
        )
        with suppress(OSError):  # it has ended already, and the folder with it
            os.kill(int(Path(folder, LAUNCHER).read_text()), signal.SIGTERM)


def mpiexec() -> str:
    """The program: beside this Python, where wheels of an MPI put it, or on PATH."""
    here = os.path.dirname(sys.executable)
    found = shutil.which("mpiexec", path=here) or shutil.which("mpiexec")
    if found is None:
        raise ImportError('needs mpiexec, of an MPI: pip install "leafgrad[mpi]"')
    return found


def shares(ranks: int) -> dict[str, str]:
    """Threads for each process, so that all together have one for each processor."""
    return dict.fromkeys(THREADS, str(max(1, processors() // ranks)))


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def asked(folder: Path) -> int:
    """The exit status with which a rank ended all; 0 if none did.

    What mpiexec says then is of the processes as they were ended: with MPICH 4 now and then 0, or a signal from a
    thread of its transport.
    """
    return max((int(path.name.removeprefix(STATUS)) for path in folder.glob(f"{STATUS}*")), default=0)


def death_in_words(first: Sequence[Death], said: dict[str, str], ranks: int) -> str:
    """Which rank ended first, and how, in words."""
    if not first:  # before it was a rank that anybody knew
        return f"a rank, process {said.get('pid', '')}: {said['how'].strip()}"
    one, *rest = first
    others = [str(death.rank) for death in rest]
    how = str(one)
    if one.status is None and said.get("how") and said.get("pid") == str(one.pid):
        how = f"process {one.pid}: {said['how'].strip()}"
    return f"rank {one.rank} of {ranks}, {how}" + (f" (or rank {', '.join(others)}, at once)" if others else "")


def ended(first: Sequence[Death]) -> int:
    """The exit status of the rank that ended first, if it has one of its own; else 0."""
    return next((death.status for death in first if death.status is not None and death.status > 0), 0)

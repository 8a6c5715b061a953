"""Ranks as their launcher sees them: which ended first and how, and which stand still.

What a launcher of MPI says of a rank that was killed is, now and then, of one that it stopped itself afterwards.
"""

from __future__ import annotations

import itertools
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple

STATUS = "status "  # begins the name of the file that a rank leaves there before it ends all
PIPE = "pipe "  # begins the name of the pipe that a rank holds open
SEEN = "seen "  # begins the name of the file that tells a rank that it is watched
BEGIN = 0.02  # seconds between looks for ranks that begin
LOOK = 0.1  # seconds between looks when all have begun; where the system does not tell, also for their ends
STILL = 10.0  # seconds after which a rank that a signal has stopped is named
PATIENCE = 2.0  # seconds in which the launcher of MPI may end all by itself, and in which it is asked to
ORPHANED = 10  # seconds in which ranks without a launcher may end by themselves when they are asked to
LEFT = "LEAFGRAD_LEFT"  # tells the shell that waits which folder to remove
UNLESS_TOLD = f"""
read told && exit
kill "$0"
for second; do sleep 1; kill -0 "$0" || break; done
kill -0 "$0" && kill -9 "$0"
rm -rf "${LEFT}"
"""


class Death(NamedTuple):
    """The end of a rank whose program was not through.

    Attributes:
        rank: its number.
        pid: its process.
        status: its exit code, or less than 0 for the signal that ended it; None where the system does not tell.
    """

    rank: int
    pid: int
    status: int | None

    def __str__(self) -> str:
        if self.status is None:
            how = "ended before its program was through"
        elif self.status < 0:
            how = f"{signal.strsignal(-self.status)} (signal {-self.status})"
        else:
            how = f"ended with exit code {self.status} before its program was through"
        return f"process {self.pid}: {how}"


class RankWatch(threading.Thread):
    """Looks at ranks until it is told to stop; where one ends before its time, it sees to it that all do.

    Args:
        folder: with a file for each rank whose program is not through: its name the rank, in it the process.
        ranks: how many there will be.
        launcher: the process that started them, and ends them when it is asked to.

    Attributes:
        first: the rank that ended first; where the system does not tell in which order they ended, also those that
            ended so soon after it that it may have been one of them.
    """

    def __init__(self, folder: Path, ranks: int, launcher: Popen[Any]) -> None:
        super().__init__(name="leafgrad ranks", daemon=True)
        self.folder, self.ranks, self.launcher = folder, ranks, launcher
        self.first: list[Death] = []
        self.pids: dict[int, int] = {}
        self.handles: dict[int, list[int]] = {}  # by rank: what becomes readable when its process ends
        self.ends: Any = select.epoll() if hasattr(os, "pidfd_open") else None
        self.still: dict[int, float] = {}  # seconds for which a rank has been stopped
        self.over = threading.Event()

    def run(self) -> None:
        """Look, until a rank has died or all is over."""
        if hasattr(signal, "pthread_sigmask"):  # signals to the launcher are for its main thread, which waits
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            ended: list[Death] = []
            while not ended and not self.over.is_set():
                self.find()
                ended = [self.death(rank) for rank in self.wait() if self.owes(rank)]
                self.name_still()
            if not any(self.folder.glob(f"{STATUS}*")):  # else a rank had asked for the end of all before
                self.first = ended if self.ends is None else ended[:1]
        finally:
            for handle in itertools.chain(*self.handles.values()):
                os.close(handle)
            if self.ends is not None:
                self.ends.close()
        if ended and not self.over.wait(PATIENCE):
            self.launcher.terminate()
            if not self.over.wait(PATIENCE):
                self.launcher.kill()

    def stop(self) -> None:
        """All is over."""
        self.over.set()
        self.join()

    def owes(self, rank: int) -> bool:
        """Whether the program of a rank that has ended was not through; such a rank is not looked at again."""
        if (self.folder / str(rank)).exists():
            return True
        self.pids.pop(rank)
        for handle in self.handles.pop(rank, ()):
            os.close(handle)
        return False

    @property
    def pause(self) -> float:
        """Seconds until the next look. They are counted by looks, since the launcher may be stopped, too."""
        return BEGIN if len(self.still) < self.ranks else LOOK

    def find(self) -> None:
        """Ranks that have begun since the last look."""
        if len(self.still) == self.ranks:
            return
        for path in self.folder.glob("[0-9]*"):
            rank = int(path.name)
            if rank in self.still:
                continue
            with suppress(FileNotFoundError):  # it is through already
                self.pids[rank] = int(path.read_text())
                self.still[rank] = 0.0
            if self.ends is not None:
                with suppress(ProcessLookupError, KeyError):
                    self.handles[rank] = [os.pidfd_open(self.pids[rank])]
                    if (pipe := self.folder / f"{PIPE}{rank}").exists():
                        self.handles[rank].append(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
                    for handle in self.handles[rank]:
                        self.ends.register(handle, select.EPOLLIN)
            (self.folder / f"{SEEN}{rank}").touch()

    def wait(self) -> list[int]:
        """The ranks that have ended, after a while if none has."""
        gone = [rank for rank, pid in self.pids.items() if rank not in self.handles and not is_there(pid)]
        if gone or not self.handles:
            self.over.wait(self.pause)
            return gone
        rank_of = {handle: rank for rank, handles in self.handles.items() for handle in handles}
        ended = self.ends.poll(self.pause)  # in the order in which they did
        return list(dict.fromkeys(rank_of[handle] for handle, _ in ended))

    def death(self, rank: int) -> Death:
        """How a rank ended, as long as nobody has asked the system for it."""
        state, status = stat(self.pids[rank])
        known = state == "Z" or status  # which is there while it ends
        return Death(rank, self.pids[rank], os.waitstatus_to_exitcode(status) if known else None)

    def name_still(self) -> None:
        """Say which ranks do not go on since a signal has stopped them, once for each time."""
        for rank, pid in self.pids.items():
            before = self.still[rank]
            self.still[rank] = before + self.pause if stat(pid)[0] == "T" else 0.0
            if before < STILL <= self.still[rank]:
                print(
                    f"leafgrad run: rank {rank} of {self.ranks}, process {pid}, has been stopped by a signal for "
                    f"{STILL:g} s, and the others wait for it: kill -CONT {pid} lets it go on",
                    file=sys.stderr, flush=True,
                )  # fmt: skip


def is_there(pid: int) -> bool:
    """Whether a process has not ended, or nobody has asked how."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def stat(pid: int) -> tuple[str, int]:
    """State and wait status of a process, as Linux tells them (man proc_pid_stat); ("", 0) where it does not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[-1])


@contextmanager
def ended_with_this(process: Popen[Any], folder: str) -> Iterator[None]:
    """Ask a process to end when this one does before its time, though by ``kill -9``, end it, and remove its folder.

    A shell waits for that: it reads of a pipe of which this process alone has the other side, and which ends with it.
    """
    if os.name != "posix":
        yield
        return
    command = ["/bin/sh", "-c", UNLESS_TOLD, str(process.pid), *map(str, range(ORPHANED))]
    nowhere, environment = subprocess.DEVNULL, {**os.environ, LEFT: folder}
    with Popen(
        command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, env=environment, start_new_session=True
    ) as shell:
        yield
        shell.communicate(b"\n")

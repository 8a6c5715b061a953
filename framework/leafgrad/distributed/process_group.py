"""The processes that compute together: who they are, and what happens to all when one ends."""

from __future__ import annotations

import atexit
import os
import sys
import zlib
from types import TracebackType
from typing import Any

from leafgrad import backends, modes
from leafgrad.distributed import launcher

# What the launchers of MPICH, Open MPI and Slurm tell each process: the number of processes.
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
END = "the end of the program"


class Group:
    """Processes with ranks 0, 1, ..., size - 1. One process alone needs no MPI.

    Args:
        peers: an ``mpi4py.MPI.Comm``; None for one process.
    """

    def __init__(self, peers: Any = None) -> None:
        self.peers = peers
        self.rank: int = peers.rank if peers else 0
        self.size: int = peers.size if peers else 1
        self.communicators: dict[tuple[str, int], backends.Communicator] = {}

    def communicator(self, array: Any) -> backends.Communicator:
        """How arrays of the device of ``array`` are combined."""
        backend = backends.backend_of(array)
        place = backend.device_type, backend.device_index(array)
        if place not in self.communicators:
            self.communicators[place] = backend.communicator(self.peers, place[1])
        return self.communicators[place]

    def agree(self, call: str, more: str = "") -> None:
        """Make sure that all processes come to the same call, of which an error says ``more``.

        Raises:
            RuntimeError: they do not, in all of them; it says which call each came to.
        """
        if self.size == 1:
            return
        if not backends.is_same(self.peers, zlib.crc32(call.encode())):
            calls = self.peers.allgather(call + more)
            listed = "; ".join(f"rank {rank}: {one}" for rank, one in enumerate(calls))
            raise RuntimeError(f"expected all ranks to come to the same collective, got {listed}")


WORLD: list[Group] = []  # the group, once there is one
STATUSES: list[int] = []  # with which this process is about to end, where it is known


def is_available() -> bool:
    """Whether a launcher started this process together with others."""
    return started() > 1


def is_initialized() -> bool:
    """Whether ``init_process_group`` was called."""
    return bool(WORLD)


@modes.setting("the process group")
def _joined() -> tuple[Group, ...]:
    return tuple(WORLD)


def world() -> Group:
    """The group of all processes. ValueError before ``init_process_group``."""
    if not WORLD:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group")
    return WORLD[0]


def init_process_group(backend: str | None = None, *, world_size: int = -1, rank: int = -1) -> None:
    """Meet the other processes that ``leafgrad run --ranks N``, ``mpiexec -n N`` or ``srun -n N`` started.

    From then on an error that ends one process ends all. A process that was started alone makes a group of one.

    Args:
        backend: "mpi"; arrays on GPUs are combined by NCCL. None takes it too.
        world_size, rank: what they must be; -1 takes what MPI says.

    Raises:
        RuntimeError: there is a group already. ValueError: another backend, size or rank.
        ImportError: several processes were started, and mpi4py is not installed.
    """
    if WORLD:
        raise RuntimeError("trying to initialize the default process group twice!")
    if backend not in (None, "mpi"):
        raise ValueError(
            f"init_process_group: backend: expected 'mpi', got {backend!r}; processes meet over MPI alone: leave it out"
        )
    group = Group(connect())
    for name, wanted, got in (("world_size", world_size, group.size), ("rank", rank, group.rank)):
        if wanted not in (-1, got):
            raise ValueError(f"init_process_group: {name}: expected {got}, which MPI says, or -1, got {wanted}")
    WORLD.append(group)
    if group.size > 1:
        sys.excepthook = ending_all(sys.excepthook)
        launcher.note(group.rank)
        os._exit = ending_others(os._exit)
        atexit.register(leave)


def connect() -> Any:
    """All processes as MPI has them; None if this one was started alone."""
    if started() < 2:
        return None
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError(f'{started()} processes were started: pip install "leafgrad[mpi]" ({error})') from error
    if started() != MPI.COMM_WORLD.size:
        raise RuntimeError(
            f"init_process_group: expected {started()} processes, as the launcher says, and MPI found "
            f"{MPI.COMM_WORLD.size}: the launcher belongs to another MPI than mpi4py; take its own mpiexec, or "
            "srun --mpi=pmi2 for MPICH and srun --mpi=pmix for Open MPI"
        )
    return MPI.COMM_WORLD.Dup()


def started() -> int:
    """How many processes the launcher started together with this one, and it."""
    return max([int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()], default=1)


def destroy_process_group() -> None:
    """Leave the others. All processes do so at the same point."""
    world()
    leave()


def leave() -> None:
    """Wait until the others leave as well; they get an error if they wait for something else."""
    if WORLD:
        group = WORLD.pop()
        try:
            group.agree(END, f", with exit status {STATUSES[-1]}" if STATUSES else "")
        except RuntimeError as error:
            stop_all(group, str(error), STATUSES[-1] if STATUSES else 1)
        launcher.through(group.rank)


def ends_with(status: int) -> None:
    """This process is about to end with a status, which the launcher gives, too, whoever ends the others."""
    STATUSES.append(status)
    launcher.note_status(status)


def ending_all(hook: Any) -> Any:
    """An exception hook that shows an error, says whose it is, and ends all processes."""

    def end(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        hook(kind, error, traceback)
        if WORLD:
            stop_all(WORLD[0], f"ends by {kind.__name__}", 130 if issubclass(kind, KeyboardInterrupt) else 1)

    return end


def ending_others(leave: Any) -> Any:
    """``os._exit``, which in this process ends all ranks: the launchers of MPI take an end with 0 for a success."""
    own = os.getpid()

    def end(status: int) -> None:
        if WORLD and os.getpid() == own:
            stop_all(WORLD[0], f"os._exit({status}) without destroy_process_group()", status or 1)
        leave(status)

    return end


def stop_all(group: Group, what: str, status: int) -> None:
    """End all processes, and say whose doing that is."""
    print(f"leafgrad: rank {group.rank} of {group.size}: {what}; all ranks are stopped", file=sys.stderr, flush=True)
    launcher.note_status(status)
    group.peers.Abort(status)


def get_rank() -> int:
    """The number of this process, from 0."""
    return world().rank


def get_world_size() -> int:
    """How many processes there are."""
    return world().size


def get_backend() -> str:
    """ "mpi"."""
    world()
    return "mpi"

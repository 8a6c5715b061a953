"""Arrays of several processes combined: what a backend brings so that its devices' arrays can be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

REDUCTIONS = ("sum", "prod", "min", "max")


class Communicator(ABC):
    """Collectives over arrays of one backend. Every process calls them in the same order, with the same shapes.

    Args:
        peers: the processes, as an ``mpi4py.MPI.Comm``.
    """

    def __init__(self, peers: Any) -> None:
        self.peers = peers

    @abstractmethod
    def all_reduce(self, array: Any, how: str) -> Any:
        """The elementwise combination of all processes' arrays, one of `REDUCTIONS`, as a new array."""

    @abstractmethod
    def broadcast(self, array: Any, src: int) -> Any:
        """The array of process ``src``, as a new array; those of the others count by shape and dtype alone."""

    @abstractmethod
    def all_gather(self, array: Any) -> Any:
        """All processes' arrays, stacked in their order: (...) -> (processes, ...)."""


def is_same(peers: Any, key: int) -> bool:
    """Whether all processes give one integer; ``peers`` is an ``mpi4py.MPI.Comm``."""
    from mpi4py import MPI

    ends = np.array([key, -key])  # the least of all, and minus the largest
    peers.Allreduce(MPI.IN_PLACE, ends, op=MPI.MIN)
    return bool(ends[0] == -ends[1])


class HostCommunicator(Communicator):
    """NumPy's arrays, by MPI. float16 is summed in float32 and rounded once."""

    NAMES: ClassVar = {"sum": "SUM", "prod": "PROD", "min": "MIN", "max": "MAX"}

    def all_reduce(self, array: Any, how: str) -> Any:
        from mpi4py import MPI

        wide = {"float16": "float32", "bool": "uint8"}.get(array.dtype.name)
        total = np.array(array, dtype=wide, order="C")
        self.peers.Allreduce(MPI.IN_PLACE, total, op=getattr(MPI, self.NAMES[how]))
        return total if wide is None else total.astype(array.dtype)

    def broadcast(self, array: Any, src: int) -> Any:
        found = np.array(array, order="C")
        self.peers.Bcast(as_bytes(found), root=src)
        return found

    def all_gather(self, array: Any) -> Any:
        own = np.array(array, order="C")
        found = np.empty((self.peers.size, *own.shape), own.dtype)
        self.peers.Allgather(as_bytes(own), as_bytes(found))
        return found


def as_bytes(array: Any) -> Any:
    """The memory of an array in C order."""
    return array.reshape(-1).view(np.uint8)

"""Points divided among the processes that ``leafgrad run --ranks N`` or ``mpiexec -n N`` started together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import leafgrad
import leafgrad.distributed as dist
from leafgrad import Tensor, linalg
from leafgrad.distributed import functional


class Ranks:
    """This process's part of the points, and sums over all processes. A process alone has all points.

    Attributes:
        rank, size: which process this is, and of how many.
    """

    def __init__(self) -> None:
        several = dist.is_initialized()
        self.rank, self.size = (dist.get_rank(), dist.get_world_size()) if several else (0, 1)

    @property
    def first(self) -> bool:
        """Whether this process prints and writes files."""
        return self.rank == 0

    def ends(self, n: int) -> tuple[int, int]:
        """The first of this process's rows of n, and the one after the last."""
        return n * self.rank // self.size, n * (self.rank + 1) // self.size

    def part(self, tensors: Any) -> Any:
        """This process's rows of tensors, which lists and dicts may hold: (n, ...) -> (about n / size, ...)."""
        if self.size == 1:
            return tensors
        if isinstance(tensors, dict):
            return {name: self.part(t) for name, t in tensors.items()}
        if isinstance(tensors, (list, tuple)):
            return [self.part(t) for t in tensors]
        begin, end = self.ends(len(tensors))
        return tensors[begin:end]

    def whole(self, part: Tensor, n: int) -> Tensor:
        """Rows of n that this process has among zeros, so that the sum over the processes has all: -> (n,)"""
        if self.size == 1:
            return part
        begin, end = self.ends(n)
        return leafgrad.cat([part.new_zeros(begin), part, part.new_zeros(n - end)])

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The sums over all processes, in one message."""
        if self.size == 1:
            return list(tensors)
        flat = functional.all_reduce(leafgrad.cat([t.reshape(-1) for t in tensors]))
        parts = flat.split([t.numel() for t in tensors])
        return [part.reshape(t.shape) for part, t in zip(parts, tensors, strict=True)]

    def triangles(self, rows: Tensor) -> Tensor:
        """Rows with the same inner products of columns as those of all processes: their triangular factors.

        (m, k) -> (size * k, k), or the rows themselves if there is one process.
        """
        if self.size == 1:
            return rows
        columns = rows.shape[1]
        triangle = linalg.qr(leafgrad.cat([rows, rows.new_zeros(columns, columns)]), mode="r")[1]
        return functional.all_gather(triangle).reshape(-1, columns)

    def most(self, number: int) -> int:
        """The largest of all processes' numbers."""
        if self.size == 1:
            return number
        found = leafgrad.tensor(number)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def of_first(self, obj: Any) -> Any:
        """What the first process has."""
        if self.size == 1:
            return obj
        listed = [obj]
        dist.broadcast_object_list(listed)
        return listed[0]


def meet() -> Ranks:
    """Meet the other processes, if this one was started with others."""
    if dist.is_available() and not dist.is_initialized():
        dist.init_process_group()
    return Ranks()

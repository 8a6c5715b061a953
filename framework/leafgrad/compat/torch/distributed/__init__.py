"""What ``torch.distributed`` has and ``leafgrad.distributed``, which is there too, has not: errors that say so."""

from __future__ import annotations

from typing import Any

from leafgrad.compat.absent import refused, refused_class
from leafgrad.distributed.process_group import is_available

__all__ = [
    "Backend",
    "P2POp",
    "ProcessGroup",
    "Work",
    "all_gather_into_tensor",
    "all_to_all",
    "all_to_all_single",
    "gather",
    "gather_object",
    "group",
    "init_device_mesh",
    "irecv",
    "is_gloo_available",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "isend",
    "monitored_barrier",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]

REMEDY = "use all_reduce, broadcast, all_gather or barrier, among all processes"

Backend = refused_class("torch.distributed.Backend", REMEDY)
P2POp = refused_class("torch.distributed.P2POp", REMEDY)
ProcessGroup = refused_class("torch.distributed.ProcessGroup", REMEDY)
Work = refused_class("torch.distributed.Work", REMEDY)


class group:
    """``group.WORLD`` is None: the one group is that of all processes."""

    WORLD = None


def _lacking(name: str) -> Any:
    return refused(f"torch.distributed.{name}", REMEDY)


all_gather_into_tensor = _lacking("all_gather_into_tensor")
all_to_all = _lacking("all_to_all")
all_to_all_single = _lacking("all_to_all_single")
gather = _lacking("gather")
gather_object = _lacking("gather_object")
init_device_mesh = _lacking("init_device_mesh")
irecv = _lacking("irecv")
isend = _lacking("isend")
monitored_barrier = _lacking("monitored_barrier")
new_group = _lacking("new_group")
recv = _lacking("recv")
reduce = _lacking("reduce")
reduce_scatter = _lacking("reduce_scatter")
reduce_scatter_tensor = _lacking("reduce_scatter_tensor")
scatter = _lacking("scatter")
scatter_object_list = _lacking("scatter_object_list")
send = _lacking("send")


def is_nccl_available() -> bool:
    """False: there is one kind of group, over MPI, in which NCCL combines arrays on GPUs."""
    return False


is_gloo_available = is_torchelastic_launched = is_nccl_available
is_mpi_available = is_available

"""``torch.distributed``: leafgrad computes in one process. There is no group, and what needs one is an error."""

from __future__ import annotations

from enum import Enum
from typing import Any

from leafgrad.compat.absent import refused, refused_class

__all__ = [
    "Backend",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_gloo_available",
    "is_initialized",
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

REMEDY = "ask torch.distributed.is_available() first, which is False, and run one process"

Backend = refused_class("torch.distributed.Backend", REMEDY)
P2POp = refused_class("torch.distributed.P2POp", REMEDY)
ProcessGroup = refused_class("torch.distributed.ProcessGroup", REMEDY)
Work = refused_class("torch.distributed.Work", REMEDY)
init_process_group = refused("torch.distributed.init_process_group", REMEDY)
init_device_mesh = refused("torch.distributed.init_device_mesh", REMEDY)


class ReduceOp(Enum):
    """How values of several processes would be combined."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


class group:
    """``group.WORLD`` is None: there is no default group."""

    WORLD = None


def _no_group(*args: Any, **kwargs: Any) -> Any:
    """Needs a group of processes.

    Raises:
        ValueError: always, as in PyTorch before ``init_process_group``.
    """
    raise ValueError(f"Default process group has not been initialized, and leafgrad has none; {REMEDY}")


get_rank = get_world_size = get_backend = new_group = barrier = monitored_barrier = destroy_process_group = _no_group
all_reduce = broadcast = reduce = gather = scatter = all_gather = reduce_scatter = all_to_all = _no_group
all_gather_into_tensor = all_gather_object = all_to_all_single = broadcast_object_list = _no_group
gather_object = reduce_scatter_tensor = scatter_object_list = send = recv = isend = irecv = _no_group


def is_available() -> bool:
    """False."""
    return False


is_initialized = is_nccl_available = is_gloo_available = is_mpi_available = is_torchelastic_launched = is_available

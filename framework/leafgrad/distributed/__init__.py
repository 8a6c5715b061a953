"""Several processes that train together, on one machine or many, over MPI.

``leafgrad run --ranks 4 script.py``, ``mpiexec -n 4 python script.py`` and ``srun -n 4 python script.py`` start them.
"""

from typing import TYPE_CHECKING

from leafgrad.distributed import functional
from leafgrad.distributed.collectives import (
    all_gather,
    all_gather_object,
    all_reduce,
    barrier,
    broadcast,
    broadcast_object_list,
    broadcast_parameters,
    shard,
)
from leafgrad.distributed.process_group import (
    destroy_process_group,
    get_backend,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_initialized,
)
from leafgrad.distributed.reduce_op import ReduceOp
from leafgrad.docstrings import show as _show, shown as _shown
from leafgrad.lazy import attach

__all__ = [
    "ReduceOp",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "broadcast_parameters",
    "destroy_process_group",
    "functional",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
    "shard",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, made=_shown(__name__))
    _show(globals(), __name__)

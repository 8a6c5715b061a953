"""PyTorch's collectives, which write into the tensors that they are given and are not differentiated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leafgrad import modes
from leafgrad.distributed import functional
from leafgrad.distributed.process_group import is_initialized, world
from leafgrad.distributed.reduce_op import ReduceOp
from leafgrad.ops.flat import pack, unpack
from leafgrad.tensor.tensor import Tensor


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM) -> None:
    """Put the elementwise combination of all processes' tensors into ``tensor``.

    Args:
        tensor: what this process gives, which is written.
        op: how elements are combined.

    Raises:
        RuntimeError: the processes came to different collectives, or with different shapes or dtypes.
        ValueError: there is no process group. TypeError: ``tensor`` is none.
    """
    with modes.no_grad():
        functional.check_group(tensor, "tensor", "all_reduce")
        tensor.copy_(functional.all_reduce(tensor, op))


def broadcast(tensor: Tensor, src: int = 0) -> None:
    """Put the tensor of process ``src`` into ``tensor``. Raises: as ``all_reduce``.

    Args:
        tensor: what process ``src`` gives, and others have written.
        src: the number of a process.
    """
    with modes.no_grad():
        functional.check_group(tensor, "tensor", "broadcast")
        tensor.copy_(functional.broadcast(tensor, src))


def all_gather(tensor_list: list[Tensor], tensor: Tensor) -> None:
    """Put process i's ``tensor`` into ``tensor_list[i]``.

    Args:
        tensor_list: a tensor for each process, which is written.
        tensor: what this process gives, of the same shape and dtype.

    Raises: as ``all_reduce``; ValueError: a list of other length, or of tensors of other shape or dtype.
    """
    functional.check_group(tensor, "tensor", "all_gather")
    if len(tensor_list) != world().size:
        raise ValueError(f"all_gather: tensor_list: expected {world().size} tensors, got {len(tensor_list)}")
    for i, to in enumerate(tensor_list):
        functional.check_group(to, f"tensor_list[{i}]", "all_gather")
        if (to.shape, to.dtype) != (tensor.shape, tensor.dtype):
            raise ValueError(f"all_gather: tensor_list[{i}]: expected {tensor.dtype} {tuple(tensor.shape)}, as tensor, "
                             f"got {to.dtype} {tuple(to.shape)}")  # fmt: skip
    with modes.no_grad():
        for to, found in zip(tensor_list, functional.all_gather(tensor).unbind(), strict=True):
            to.copy_(found)


def barrier() -> None:
    """Wait until all processes are here."""
    world().agree("barrier()")


def most(number: int) -> int:
    """The largest of all processes' numbers; the number itself where there is no process group."""
    if not is_initialized() or world().size == 1:
        return number
    world().agree("most()")
    found: int = max(world().peers.allgather(number))
    return found


def all_gather_object(object_list: list[Any], obj: Any) -> None:
    """Put process i's ``obj``, anything that can be pickled, into ``object_list[i]``.

    Args:
        object_list: a list with a place for each process, which is written.
        obj: what this process gives.

    Raises: as ``all_reduce``; ValueError: a list of other length.
    """
    group = world()
    if len(object_list) != group.size:
        raise ValueError(f"all_gather_object: object_list: expected length {group.size}, got {len(object_list)}")
    group.agree("all_gather_object()")
    object_list[:] = group.peers.allgather(obj) if group.peers else [obj]


def broadcast_object_list(object_list: list[Any], src: int = 0) -> None:
    """Replace the objects by those of process ``src``. Raises: as ``all_reduce``.

    Args:
        object_list: what process ``src`` gives, and others have written.
        src: the number of a process.
    """
    group = world()
    functional.checked_rank(src)
    group.agree(f"broadcast_object_list(from rank {src})")
    if group.peers:
        object_list[:] = group.peers.bcast(object_list, root=src)


def broadcast_parameters(tensors: Iterable[Tensor], src: int = 0) -> None:
    """Give parameters and buffers the values of process ``src``: one message for each dtype.

    Args:
        tensors: as ``module.parameters()`` or ``module.state_dict().values()``, in one order everywhere.
        src: whose values.

    Raises: as ``all_reduce``.
    """
    tensors = list(tensors)
    for i, t in enumerate(tensors):
        functional.check_group(t, f"tensors[{i}]", "broadcast_parameters")
    for kind in by_kind(tensors):
        with modes.no_grad():
            for to, found in zip(kind, unpacked(functional.broadcast(pack(*kind), src), kind), strict=True):
                to.copy_(found)


def by_kind(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """The tensors by dtype and device: those that fit into one message."""
    kinds: dict[Any, list[Tensor]] = {}
    for t in tensors:
        kinds.setdefault((t.dtype, t.device), []).append(t)
    return list(kinds.values())


def unpacked(flat: Tensor, like: list[Tensor]) -> tuple[Tensor, ...]:
    """The parts of a vector, in the shapes of tensors."""
    return tuple(unpack(flat, shapes=tuple([tuple(t.shape) for t in like])))


def shard(tensor: Tensor, dim: int = 0) -> Tensor:
    """This process's part of what all processes have: as many rows as the others, in the order of the ranks.

    The mean over all processes of a mean over their parts is then the mean over all rows.

    Args:
        tensor: (..., n, ...), the same in all processes, as training points drawn from one seed.
        dim: the dimension that is divided.

    Raises:
        ValueError: n is no multiple of the number of processes, or there is no process group.
        TypeError: ``tensor`` is none. IndexError: it has no dimension ``dim``.
    """
    functional.check_group(tensor, "tensor", "shard")
    n, size = tensor.size(dim), world().size
    if n % size:
        raise ValueError(f"shard: tensor: expected a multiple of {size} rows, one part for each rank, got {n}")
    return tensor.narrow(dim, world().rank * (n // size), n // size)

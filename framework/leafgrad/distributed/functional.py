"""Collectives that return new tensors and can be differentiated.

What is differentiated is the sum over all processes of what they call ``backward`` on, and all of them do so.
"""

from __future__ import annotations

from leafgrad.distributed import ops
from leafgrad.distributed.process_group import world
from leafgrad.distributed.reduce_op import ReduceOp
from leafgrad.tensor import arguments
from leafgrad.tensor.tensor import Tensor

__all__ = ["all_gather", "all_reduce", "broadcast"]


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM) -> Tensor:
    """The elementwise combination of all processes' tensors. (...) -> (...)

    SUM and AVG have gradients, the others not. AVG takes floating-point numbers.

    Raises:
        RuntimeError: the processes came to different collectives, or with different shapes or dtypes.
        ValueError: there is no process group. TypeError: ``tensor`` is none.
    """
    check_group(tensor, "tensor", "all_reduce")
    op = ReduceOp(op)
    if tensor.is_complex() and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(f"all_reduce does not support {op} on complex tensors; SUM and AVG take them")
    if op is ReduceOp.AVG and not tensor.dtype.is_differentiable:
        raise ValueError(f"all_reduce: op: expected SUM for integers, which have no mean, got AVG of {tensor.dtype}")
    found: Tensor
    if op in (ReduceOp.SUM, ReduceOp.AVG):
        found = ops.all_sum(tensor, mean=op is ReduceOp.AVG)
    else:
        found = ops.all_combine(tensor, how=op.value)
    return found


def broadcast(tensor: Tensor, src: int = 0) -> Tensor:
    """The tensor of process ``src``. (...) -> (...)

    Raises: as ``all_reduce``; ValueError: no process has this rank.
    """
    check_group(tensor, "tensor", "broadcast")
    return ops.from_rank(tensor, src=checked_rank(src))


def all_gather(tensor: Tensor) -> Tensor:
    """The tensors of all processes, stacked. (...) -> (processes, ...). Raises: as ``all_reduce``."""
    check_group(tensor, "tensor", "all_gather")
    return ops.all_stacked(tensor)


def check_group(tensor: Tensor, name: str, function: str) -> None:
    """A TypeError if it is no tensor, and a ValueError if there is no process group."""
    world()
    arguments.expect_tensor(tensor, name, function)


def checked_rank(src: int) -> int:
    src = arguments.integer(src, "src", "broadcast")
    if not 0 <= src < world().size:
        raise ValueError(f"src: expected a rank from 0 to {world().size - 1}, got {src}")
    return src

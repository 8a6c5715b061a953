"""``torch._utils``: many tensors as one vector, and back, the size of elements, numbers of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad import devices
from leafgrad.compat.torch.cuda import device_count, is_available
from leafgrad.dtypes import dtype as kind
from leafgrad.nn.parameter import Parameter
from leafgrad.tensor.joining import cat
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "_element_size", "_flatten_dense_tensors", "_get_all_device_indices", "_get_available_device_type",
    "_get_device_index", "_rebuild_parameter", "_unflatten_dense_tensors",
]  # fmt: skip


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """The number of a CUDA device; -1 for the CPU where that is allowed.

    Raises:
        ValueError: it is no such device, or has no number, which is 0 where it is ``optional``.
    """
    where: Any = devices.device(device) if isinstance(device, str) else device
    kind = getattr(where, "type", "cuda")
    if kind == "cpu" and allow_cpu:
        return -1
    if kind != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {where}")
    index = getattr(where, "index", where)
    if index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return int(index or 0)


def _get_available_device_type() -> str | None:
    """ "cuda", or None where there is no such device."""
    return "cuda" if is_available() else None


def _get_all_device_indices() -> list[int]:
    """The numbers of the CUDA devices."""
    return [*range(device_count())]


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    """A Parameter of a tensor."""
    return Parameter(data, requires_grad)


def _element_size(dtype: kind) -> int:
    """Bytes of one element."""
    return dtype.itemsize


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all tensors in one dimension."""
    return cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The parts of ``flat`` in the shapes of ``tensors``, as views."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple([part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)])

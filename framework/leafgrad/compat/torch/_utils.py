"""``torch._utils``: many tensors as one vector, and back, and the size of elements."""

from __future__ import annotations

from collections.abc import Sequence

from leafgrad.dtypes import dtype as kind
from leafgrad.tensor.joining import cat
from leafgrad.tensor.tensor import Tensor

__all__ = ["_element_size", "_flatten_dense_tensors", "_unflatten_dense_tensors"]


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

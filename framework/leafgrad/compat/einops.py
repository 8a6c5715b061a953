"""einops on leafgrad's tensors: importing this module makes ``einops.rearrange`` and the others take them."""

from __future__ import annotations

from typing import Any

from einops._backends import AbstractBackend

from leafgrad.tensor.creation import arange
from leafgrad.tensor.data import from_numpy
from leafgrad.tensor.einsum import einsum
from leafgrad.tensor.joining import cat, stack
from leafgrad.tensor.tensor import Tensor


class LeafgradBackend(AbstractBackend):
    """einops looks through the subclasses of its AbstractBackend: this is leafgrad's."""

    framework_name = "leafgrad"

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Whether it is a Tensor."""
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Tensor:
        """A tensor that shares an array's memory."""
        return from_numpy(x)

    def to_numpy(self, x: Tensor) -> Any:
        """An array on the host."""
        return x.numpy(force=True)

    def arange(self, start: int, stop: int) -> Tensor:
        """start, …, stop - 1."""
        return arange(start, stop)

    def transpose(self, x: Tensor, axes: Any) -> Tensor:
        """With dimensions in another order."""
        return x.permute(axes)

    def reduce(self, x: Tensor, operation: str, axes: Any) -> Tensor:
        """min, max, sum, mean, prod, any or all over dimensions."""
        if operation == "prod":
            for axis in sorted(axes, reverse=True):
                x = x.prod(axis)
            return x
        method: Any = getattr(x, {"min": "amin", "max": "amax"}.get(operation, operation))
        reduced: Tensor = method(tuple(axes))
        return reduced

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
        """Along a new first dimension."""
        return stack(tensors)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        """With a dimension of size 1."""
        return x.unsqueeze(new_position)

    def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
        """With new dimensions along which it is repeated, as a view."""
        sizes = [-1] * n_axes
        for position, length in pos2len.items():
            x = x.unsqueeze(position)
            sizes[position] = length
        return x.expand(sizes)

    def tile(self, x: Tensor, repeats: Any) -> Tensor:
        """Repeated along each dimension."""
        return x.repeat(repeats)

    def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
        """Along a dimension they have."""
        return cat(tensors, axis)

    def is_float_type(self, x: Tensor) -> bool:
        """Whether it can be averaged."""
        return x.dtype.is_floating_point

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        """The sum of products."""
        return einsum(pattern, *x)

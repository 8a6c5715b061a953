"""Layers that put margins around the last dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from leafgrad.nn import functional as F
from leafgrad.nn.module import Module
from leafgrad.ops.scalars import as_int
from leafgrad.tensor.arguments import expect_tensor, shape as sizes
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

Margins = int | Sequence[int]


class Pad(Module):
    """Base of the layers that pad. Margins are (before, after) for the last dimension, then for the one before it, ...

    Args:
        padding: the margins; an int for all.
    """

    dims = 0
    mode = "constant"

    def __init__(self, padding: Margins) -> None:
        super().__init__()
        margins = padding if (one := as_int(padding)) is None else (one,) * (2 * self.dims)
        self.padding = sizes((margins,), type(self).__name__, "padding")

    def forward(self, input: Tensor) -> Tensor:
        """Larger by the margins: (n, c, ...) or (c, ...) -> (n, c, ...) or (c, ...)"""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


# ---- one value ------------------------------------------------------------------------------------------------------


class ConstantPad(Pad):
    """Base of the layers that pad with one value."""

    def __init__(self, padding: Margins, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Larger by the margins: (..., size, ...) -> (..., before + size + after, ...)"""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(ConstantPad):
    """``value`` around the last dimension."""

    dims = 1


class ConstantPad2d(ConstantPad):
    """``value`` around the last two dimensions."""

    dims = 2


class ConstantPad3d(ConstantPad):
    """``value`` around the last three dimensions."""

    dims = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros around the last dimension."""

    def __init__(self, padding: Margins) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Zeros around the last two dimensions."""

    def __init__(self, padding: Margins) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Zeros around the last three dimensions."""

    def __init__(self, padding: Margins) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


# ---- continued from within ------------------------------------------------------------------------------------------


class ReflectionPad(Pad):
    """Base of the layers that mirror."""

    mode = "reflect"


class ReplicationPad(Pad):
    """Base of the layers that repeat the edge."""

    mode = "replicate"


class CircularPad(Pad):
    """Base of the layers that wrap around."""

    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Larger by the margins: (n, c, ...) or (c, ...) -> (n, c, ...) or (c, ...)"""
        if expect_tensor(input, "input", type(self).__name__).ndim not in (self.dims + 1, self.dims + 2):
            raise ValueError(
                f"{type(self).__name__}: expected {self.dims + 1}D or {self.dims + 2}D input (got {input.ndim}D input)"
            )
        return super().forward(input)


class ReflectionPad1d(ReflectionPad):
    """The last dimension mirrored at the edge, which is not repeated. Margins are smaller than the sizes."""

    dims = 1


class ReflectionPad2d(ReflectionPad):
    """The last two dimensions mirrored at the edge, which is not repeated. Margins are smaller than the sizes."""

    dims = 2


class ReflectionPad3d(ReflectionPad):
    """The last three dimensions mirrored at the edge, which is not repeated. Margins are smaller than the sizes."""

    dims = 3


class ReplicationPad1d(ReplicationPad):
    """The elements on the edge repeated around the last dimension."""

    dims = 1


class ReplicationPad2d(ReplicationPad):
    """The elements on the edge repeated around the last two dimensions."""

    dims = 2


class ReplicationPad3d(ReplicationPad):
    """The elements on the edge repeated around the last three dimensions."""

    dims = 3


class CircularPad1d(CircularPad):
    """What is at the other end, around the last dimension. Margins are at most the sizes."""

    dims = 1


class CircularPad2d(CircularPad):
    """What is at the other end, around the last two dimensions. Margins are at most the sizes."""

    dims = 2


class CircularPad3d(CircularPad):
    """What is at the other end, around the last three dimensions. Margins are at most the sizes."""

    dims = 3

"""What functions that are ops as they are take and give, for type checkers: an op itself takes arrays too."""

from __future__ import annotations

from typing import Any, Protocol, cast

from leafgrad.tensor.tensor import Tensor


class Public(Protocol):
    """What all of them have."""

    __name__: str
    name: str
    function: Any


class Unary(Public, Protocol):
    """A function of one tensor."""

    def __call__(self, input: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The result, of the same shape."""


class Binary(Public, Protocol):
    """A function of two tensors, one of which may be a number."""

    def __call__(self, input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        """The result, of the shape that both broadcast to."""


def unary(*ops: Any) -> tuple[Unary, ...]:
    """Ops of one tensor, as functions."""
    return cast(tuple[Unary, ...], ops)


def binary(*ops: Any) -> tuple[Binary, ...]:
    """Ops of two tensors, as functions."""
    return cast(tuple[Binary, ...], ops)

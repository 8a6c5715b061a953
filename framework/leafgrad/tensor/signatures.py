"""What functions that are ops as they are take and give, for type checkers: an op itself takes arrays too."""

from __future__ import annotations

import sys
from typing import Any, Protocol, cast

from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


class PublicOp(Protocol):
    """What all of them have."""

    __name__: str
    name: str
    function: Any


class Unary(PublicOp, Protocol):
    """A function of one tensor."""

    def __call__(self, input: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The result, of the same shape."""


class Binary(PublicOp, Protocol):
    """A function of two tensors, one of which may be a number."""

    def __call__(self, input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        """The result, of the shape that both broadcast to."""


def unary(op: Any, **declared: Any) -> Unary:
    """An op of one tensor as a public function; the rest is that of ``public``."""
    public(module=sys._getframe(1).f_globals["__name__"], **declared)(op)
    return cast(Unary, op)


def binary(op: Any, **declared: Any) -> Binary:
    """An op of two tensors as a public function."""
    public(module=sys._getframe(1).f_globals["__name__"], **declared)(op)
    return cast(Binary, op)

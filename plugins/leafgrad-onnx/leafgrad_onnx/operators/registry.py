"""The operators of ONNX that are run, each declared beside its function."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

import leafgrad
from leafgrad import modes
from leafgrad.ops.abstract import broadcast_shape
from leafgrad_onnx.errors import OnnxLoadError

F = TypeVar("F", bound=Callable[..., Any])
MOST_BYTES: Final = 1 << 32
"""How large a value may be that an operator makes of sizes which a file claims."""


@dataclass(frozen=True)
class Operator:
    """How an operator is run.

    Attributes:
        run: a function of tensors, and of attributes by name; it returns a value, or a tuple of them.
        host: which inputs it takes as NumPy arrays, since they say what to do and not what with; None: all.
        attributes: the names of those that it knows.
        opset, outputs: whether it asks for the opset, and for how many outputs are wanted.
    """

    run: Callable[..., Any]
    host: tuple[int, ...] | None
    attributes: frozenset[str]
    opset: bool
    outputs: bool

    def on_host(self, i: int) -> bool:
        """Whether the ``i``-th input is taken as a NumPy array."""
        return self.host is None or i in self.host


OPERATORS: Final[dict[str, Operator]] = {}


def operator(*names: str, host: Sequence[int] | None = ()) -> Callable[[F], F]:
    """Declare how operators of ONNX are run: a function of inputs, and of attributes after ``*``."""

    def register(run: F) -> F:
        given = inspect.signature(run).parameters.values()
        known = {p.name for p in given if p.kind is p.KEYWORD_ONLY}
        places = None if host is None else tuple(host)
        for name in names:
            attributes = frozenset(known - {"opset", "outputs"})
            OPERATORS[name] = Operator(run, places, attributes, "opset" in known, "outputs" in known)
        return run

    return register


def room(shape: Sequence[int], itemsize: int = 4) -> tuple[int, ...]:
    """The shape, if an array of it is not too large; else an error, before memory is taken."""
    sizes = tuple(map(int, shape))
    if any(n < 0 for n in sizes):
        raise OnnxLoadError(f"expected a shape without negative sizes, got {list(sizes)}")
    if math.prod(sizes) * itemsize > MOST_BYTES:
        raise OnnxLoadError(
            f"a value of shape {list(sizes)} takes {math.prod(sizes) * itemsize:,} bytes, more than the "
            f"{MOST_BYTES:,} that a file may ask for"
        )
    return sizes


def met(*tensors: Any) -> tuple[Any, ...]:
    """Tensors that broadcast together, if the result is not too large."""
    shapes = [tuple(t.shape) for t in tensors if t is not None and hasattr(t, "shape")]
    if len(shapes) > 1:
        try:
            room(broadcast_shape(shapes), 8)
        except ValueError:
            raise OnnxLoadError(f"shapes that do not broadcast: {', '.join(map(str, shapes))}") from None
    return tensors


def ints(array: Any) -> list[int]:
    """A NumPy array of integers, or the numbers of a constant, as a list."""
    if type(array) is list:
        return array
    return [int(n) for n in np.asarray(array).reshape(-1)]


def number(value: Any, default: Any = None) -> Any:
    """The one element of a NumPy array, or of a tensor."""
    if value is None:
        return default
    if type(value) is list and len(value) == 1:
        return value[0]
    array = np.asarray(value)
    if array.size != 1:
        raise OnnxLoadError(f"expected one number, got an array of shape {list(array.shape)}")
    return array.reshape(-1)[0].item()


def axis_of(axis: int, ndim: int) -> int:
    """An axis counted from the front."""
    if not -max(ndim, 1) <= axis < max(ndim, 1):
        raise OnnxLoadError(f"axis {axis} is out of range for {ndim} dimensions")
    return axis % ndim if ndim else 0


def tensor_of(array: np.ndarray[Any, Any]) -> Any:
    """A tensor of a NumPy array, with memory of its own; in a program, a constant."""
    if modes.get() & modes.TRACE:
        dtype = getattr(leafgrad, array.dtype.name)
        return leafgrad.tensor(array.reshape(-1).tolist(), dtype=dtype).reshape(array.shape)
    return leafgrad.from_numpy(np.array(array, order="C"))

"""bfloat16 in ops: stored in 16 bits, computed in float32, rounded once.

Dispatch goes by the class of the arrays, and bfloat16 has one of its own. The forward that it finds there widens its
arguments, runs the op's, and rounds the results. Until the dtype is first named none of this exists, nor is the package
imported that brings it to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from leafgrad import backends, dtypes

Forward = Callable[..., Any]
NAME: Final = dtypes.bfloat16.known_as
TABLES: Final[list[dict[type, tuple[Forward, Any]]]] = []
"""The tables of all ops, by which they find their forwards: what they remembered is void once there is bfloat16."""

_arrays: Any = None  # leafgrad.backends.bfloat16


def begin() -> None:
    """Make bfloat16 known to NumPy and to the dispatch of all ops."""
    global _arrays
    _arrays = import_module("leafgrad.backends.bfloat16")
    for table in TABLES:
        table.clear()


dtypes.bfloat16.load = begin


def begun() -> bool:
    """Whether there may be arrays of bfloat16."""
    return _arrays is not None


def adapted(op: Any, forward: Forward, kind: type) -> Forward:
    """The forward of an op for a class of arrays, of which some, or the result, may be bfloat16."""
    if _arrays is None or ("view" in op.traits and NAME not in op.kernels) or op.crosses:
        return forward
    takes_dtype = "dtype" in op.signature.parameters
    backend = backends.backend_of_type(kind)
    if not backend.has_bfloat16:
        return refusing(op, forward, backend) if takes_dtype else forward
    if backend is not backends.BACKENDS[_arrays.BFloat16Array]:
        return forward
    if kind is _arrays.BFloat16Array:
        return own(op) or in_float32(op, forward)
    same = op.arity < 2 or ("any_dtype" not in op.traits and bool(op.traits & {"elementwise", "promote"}))
    if same and not op.signature.variadic and not takes_dtype:
        return forward
    widened = own(op) or in_float32(op, forward)
    stored = _arrays.BFloat16Array

    def noticing(xp: Any, *args: Any, **params: Any) -> Any:
        if params.get("dtype") == NAME or stored in map(type, args):
            return widened(xp, *args, **params)
        return forward(xp, *args, **params)

    return noticing


def refusing(op: Any, forward: Forward, backend: backends.Backend) -> Forward:
    """``forward`` on a backend without bfloat16: that dtype is an error."""

    def refused(xp: Any, *args: Any, **params: Any) -> Any:
        if params.get("dtype") == NAME:
            raise backend.without_bfloat16(op.name)
        return forward(xp, *args, **params)

    return refused


def own(op: Any) -> Forward | None:
    """The forward of an op that is about the numbers of a dtype themselves: ``@nextafter.kernel("bfloat16")``."""
    kernel, bare, adopt = op.kernels.get(NAME), _arrays.bare, _arrays.adopt
    return kernel and (lambda xp, *args, **params: adopt(kernel(xp, *map(bare, args), **params)))


def rounded(value: Any) -> Any:
    """A Python number as the nearest bfloat16; what is none as it is."""
    return _arrays.widen_numbers(value)


def narrowed(op: Any, value: Any) -> Any:
    """A Python number beside bfloat16, as the op takes it."""
    return rounded(value) if rounds_numbers(op) else value


def rounds_numbers(op: Any) -> bool:
    """Whether it takes a Python number in the dtype of its other argument."""
    return op.arity == 2 and "elementwise" in op.traits and not op.exact


def in_float32(op: Any, forward: Forward) -> Forward:
    """``forward`` for bfloat16: its arguments made float32, and float32 in its results rounded to bfloat16.

    Not the results of an op that is asked for another dtype, or has other floating arrays among its arguments. Ops that
    draw random numbers are told the dtype, since how many bits are drawn depends on it.
    """
    narrow, alone = _arrays.narrow, _arrays.alone
    widen = _arrays.widen_numbers if rounds_numbers(op) else _arrays.widen

    def widened(xp: Any, *args: Any, **params: Any) -> Any:
        asked = params.get("dtype")
        if asked == NAME and "generator" not in params:
            params["dtype"] = dtypes.float32.name
        made = forward(xp, *map(widen, args), **params)
        return narrow(made) if asked == NAME or (asked is None and alone(args)) else made

    return widened

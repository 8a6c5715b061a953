"""New arrays from parameters alone. They take no arrays, so they run through ``dispatch.create``."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op

Shape = tuple[int, ...]


@op("nondifferentiable")
def zeros(xp: Any, *, shape: Shape, dtype: str) -> Any:
    """An array of zeros. -> shape"""
    return xp.zeros(shape, dtype=dtype)


@op("nondifferentiable")
def full(xp: Any, *, shape: Shape, value: float, dtype: str) -> Any:
    """An array filled with ``value``. -> shape"""
    out = xp.empty(shape, dtype=dtype)
    out.fill(value)
    return out


@op("nondifferentiable")
def empty(xp: Any, *, shape: Shape, dtype: str) -> Any:
    """An array whose elements are whatever its memory held. -> shape"""
    return xp.empty(shape, dtype=dtype)


@op("nondifferentiable")
def constant(xp: Any, *, value: Any, dtype: str) -> Any:
    """A Python number, or nested tuples of them, as an array."""
    return xp.array(value, dtype=dtype)


@op("nondifferentiable")
def arange(xp: Any, *, start: float, step: float, count: int, dtype: str) -> Any:
    """start + step * i for i = 0, ..., count - 1. -> (count,)

    Floating results are computed in float64 and rounded once.
    """
    if isinstance(start, int) and isinstance(step, int):
        return (xp.arange(count, dtype="int64") * step + start).astype(dtype)
    return (xp.arange(count, dtype="float64") * step + start).astype(dtype)


arange.shape(lambda *, count: (count,))


def _points(xp: Any, start: float, end: float, count: int) -> Any:
    """``count`` points evenly from ``start`` to ``end``, in float64; from both ends, so that both are exact."""
    if count < 2:
        return xp.full((count,), start, dtype="complex128" if type(start) is complex else "float64")
    i = xp.arange(count, dtype="float64")
    step = (end - start) / (count - 1)
    return xp.where(i < count // 2, start + step * i, end - step * (count - 1 - i))


@op("nondifferentiable")
def linspace(xp: Any, *, start: float, end: float, count: int, dtype: str) -> Any:
    """``count`` points evenly from ``start`` to ``end``. -> (count,)"""
    return _points(xp, start, end, count).astype(dtype)


@op("nondifferentiable")
def logspace(xp: Any, *, start: float, end: float, count: int, base: float, dtype: str) -> Any:
    """``count`` points from base**start to base**end, evenly in the exponent. -> (count,)"""
    return (base ** _points(xp, start, end, count)).astype(dtype)


@op("nondifferentiable")
def eye(xp: Any, *, rows: int, columns: int, dtype: str) -> Any:
    """Ones on the diagonal, zeros elsewhere. -> (rows, columns)"""
    return xp.eye(rows, columns, dtype=dtype)


@op("nondifferentiable")
def triangle(xp: Any, *, rows: int, columns: int, offset: int, lower: bool, dtype: str) -> Any:
    """Row and column numbers of the lower or upper triangle, row by row. -> (2, number of elements)"""
    last = xp.arange(rows, dtype="int64").reshape(rows, 1) + offset
    column = xp.arange(columns, dtype="int64")
    return xp.stack(xp.nonzero(column <= last if lower else column >= last)).astype(dtype)


zeros.lower("native", lambda c, e: c.filled(0))
full.lower("native", lambda c, e: c.filled(e.params["value"]))
for _op in (constant, arange, linspace, logspace, eye, triangle):
    _op.lower("native", lambda c, e: c.constant())

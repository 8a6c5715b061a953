"""Operators that reduce dimensions, or run along one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import leafgrad
from leafgrad_onnx.operators.registry import axis_of, ints, number, operator


def reduction(function: Callable[[Any, list[int]], Any]) -> Any:
    """An operator over axes that are an attribute or, in newer opsets, an input."""

    def run(
        x: Any, axes_input: Any = None, *, axes: list[int] | None = None, keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Any:  # fmt: skip
        chosen = axes if axes_input is None else ints(axes_input)
        if not chosen:
            if noop_with_empty_axes:
                return function(x, [])
            chosen = list(range(x.ndim))
        found = function(x, [axis_of(a, x.ndim) for a in chosen] if x.ndim else [])
        return found if keepdims or not x.ndim else found.squeeze(tuple(axis_of(a, x.ndim) for a in chosen))

    return run


def total(x: Any, dims: list[int]) -> Any:
    return x.sum(dims, keepdim=True, dtype=x.dtype) if dims else x.clone()


def product(x: Any, dims: list[int]) -> Any:
    for d in dims:
        x = x.prod(d, keepdim=True, dtype=x.dtype)
    return x


def extreme(function: Callable[..., Any]) -> Callable[[Any, list[int]], Any]:
    def run(x: Any, dims: list[int]) -> Any:
        if not dims:
            return x.clone()
        empty = any(x.shape[d] == 0 for d in dims)
        if empty:
            low = function is leafgrad.amax
            if x.dtype == leafgrad.bool:
                worst: Any = not low
            elif x.dtype.is_floating_point:
                worst = float("-inf") if low else float("inf")
            else:
                worst = leafgrad.iinfo(x.dtype).min if low else leafgrad.iinfo(x.dtype).max
            return x.new_full([1 if d in dims else n for d, n in enumerate(x.shape)], worst)
        return (
            function(x.to(leafgrad.int8), dims, keepdim=True).to(x.dtype)
            if x.dtype == leafgrad.bool
            else function(x, dims, keepdim=True)
        )

    return run


def logsumexp(x: Any, dims: list[int]) -> Any:
    return leafgrad.logsumexp(x, dims, keepdim=True) if dims else leafgrad.log(leafgrad.exp(x))


for _name, _function in {
    "ReduceSum": total,
    "ReduceProd": product,
    "ReduceMean": lambda x, dims: x.mean(dims, keepdim=True) if dims else x.clone(),
    "ReduceMax": extreme(leafgrad.amax),
    "ReduceMin": extreme(leafgrad.amin),
    "ReduceL1": lambda x, dims: total(x.abs(), dims),
    "ReduceL2": lambda x, dims: leafgrad.sqrt(total(x * x, dims).to(x.dtype)),
    "ReduceSumSquare": lambda x, dims: total(x * x, dims),
    "ReduceLogSum": lambda x, dims: leafgrad.log(total(x, dims)),
    "ReduceLogSumExp": logsumexp,
}.items():
    operator(_name, host=(1,))(reduction(_function))


def place(function: Callable[..., Any]) -> Any:
    def run(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        axis = axis_of(axis, x.ndim)
        if select_last_index:
            found = x.shape[axis] - 1 - function(x.flip(axis), axis, keepdim=bool(keepdims))
            return found
        return function(x, axis, keepdim=bool(keepdims))

    return run


operator("ArgMax")(place(leafgrad.argmax))
operator("ArgMin")(place(leafgrad.argmin))


def running(function: Callable[..., Any], neutral: int) -> Any:
    def run(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
        d = axis_of(number(axis), x.ndim)
        x = x.flip(d) if reverse else x
        if exclusive:
            first = leafgrad.full_like(x.narrow(d, 0, 1), neutral)
            x = leafgrad.cat([first, x.narrow(d, 0, x.shape[d] - 1)], d)
        found = function(x, d, dtype=x.dtype)
        return found.flip(d) if reverse else found

    return run


operator("CumSum", host=(1,))(running(leafgrad.cumsum, 0))
operator("CumProd", host=(1,))(running(leafgrad.cumprod, 1))


@operator("TopK", host=(1,))
def topk(x: Any, k: Any = None, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    """The first of equal ones first, which a stable sort of what is in the other order gives."""
    d = axis_of(axis, x.ndim)
    _, places = leafgrad.sort(x, dim=d, descending=bool(largest), stable=True)
    places = places.narrow(d, 0, number(k))
    return x.gather(d, places), places


@operator("LpNormalization")
def lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    norm = x.norm(p, axis, keepdim=True)
    return leafgrad.where(norm == 0, leafgrad.zeros_like(x), x / norm)

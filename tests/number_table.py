"""Arithmetic of tensors with Python numbers: every op, number, side and dtype, on which programs must equal eager."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from typecheck import check

import leafgrad
from leafgrad.compile.passes import optimize
from leafgrad.compile.record.trace import trace_call

NUMBERS = (True, False, 0, 1, -1, 2, 3, 300, 2**63, 0.0, -0.0, 1.0, -1.0, 2.0, 0.5, math.inf, -math.inf, math.nan)
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "eq": operator.eq,
    "lt": operator.lt,
    "ge": operator.ge,
    "maximum": lambda x, y: leafgrad.where(x > y, x, y),
    "add after neg": lambda x, y: -x + y,
    "sum of three": lambda x, y: x + x + y,
    "scaled": lambda x, y: (x * 2) * y,
    "clamp": lambda x, y: x.clamp(min=y) if isinstance(x, leafgrad.Tensor) else y.clamp(max=x),
}
IN_PLACE = {name: getattr(leafgrad.Tensor, name) for name in ("add_", "sub_", "mul_", "div_", "pow_")}
DTYPES = ("float32", "float64", "int64", "uint8", "bool")


def values(dtype: str) -> Any:
    """Numbers at which arithmetic has corners."""
    if dtype == "bool":
        return leafgrad.tensor([True, False, True])
    if dtype == "uint8":
        return leafgrad.tensor([0, 1, 2, 7, 255]).to(leafgrad.uint8)
    if dtype == "int64":
        return leafgrad.tensor([-3, -1, 0, 1, 2, 7])
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, math.inf, -math.inf, math.nan]
    return leafgrad.tensor(special, dtype=getattr(leafgrad, dtype))


def in_place(name: str, number: Any) -> Callable[[Any], Any]:
    return lambda x: IN_PLACE[name](x.clone(), number)


def sided(function: Callable[[Any, Any], Any], number: Any, right: bool) -> Callable[[Any], Any]:
    return lambda x: function(x, number) if right else function(number, x)


def cases(name: str, dtype: str) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """What eager computes with one op: a label and a function of a tensor."""
    for number in NUMBERS:
        for right in (True, False):
            if name in IN_PLACE:
                if not right:
                    continue
                function = in_place(name, number)
            else:
                function = sided(OPERATORS[name], number, right)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(values(dtype))
            except (RuntimeError, TypeError, ValueError):  # what eager refuses is refused at the first call
                continue
            yield f"{name} {dtype} {number!r} {'right' if right else 'left'}", function


def compare(
    labelled: list[tuple[str, Callable[[Any], Any]]], dtype: str, build: Callable[[Any], Any], ulps: int = 0
) -> list[str]:
    """The labels of functions whose programs differ from eager, in values, dtype or sign of zero."""
    x = values(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [function(x).numpy() for _, function in labelled]
        graph = trace_call(lambda x: tuple([function(x) for _, function in labelled]), (x,), {}).graph
        program = build(check(optimize(graph)))
        results = program([x._data for _ in graph.inputs])
    assert len(results) == len(expected)
    return [
        f"{label}: {got.dtype} {got}, expected {want.dtype} {want}"
        for (label, _), got, want in zip(labelled, results, expected, strict=True)
        if not same(got, want, ulps)
    ]


def same(got: Any, want: Any, ulps: int) -> bool:
    """Whether two arrays are equal up to so many units in the last place, in dtype and signs of zeros too."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return False
    if want.dtype.kind != "f":
        return bool(np.array_equal(got, want))
    zeros = want == 0
    if not np.array_equal(np.signbit(got[zeros]), np.signbit(want[zeros])):
        return False
    return bool(np.allclose(got, want, rtol=ulps * float(np.finfo(want.dtype).eps), atol=0, equal_nan=True))

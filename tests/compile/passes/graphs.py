"""How passes are tested: arrays, traced programs, and graphs that are checked before and after."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from typecheck import typecheck

import leafgrad
from leafgrad import backends
from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.ir.lines import Line
from leafgrad.compile.ir.sources import Argument
from leafgrad.compile.passes import remove_dead
from leafgrad.compile.record.trace import trace_call
from leafgrad.ops import convert, reduce, shape

LINE = Line("<test>", 1, derived=True)
CPU = ("cpu", 0)
INF, NAN = math.inf, math.nan


def array(*shape: int, dtype: str = "float64") -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def program(function: Any, *arrays: Any, derived: bool = True) -> Graph:
    """What a function does; as if it were ``derived``, for which there are more rules than for what a program says."""
    graph = trace_call(function, tuple(leafgrad.from_numpy(a) for a in arrays), {}).graph
    return replace(graph, equations=tuple(replace(e, line=replace(e.line, derived=derived)) for e in graph.equations))


def evaluate(graph: Graph, arrays: tuple[Any, ...]) -> list[Any]:
    """The results, from running the equations one by one."""
    backend = backends.by_device_type("cpu")
    env: dict[Any, Any] = {v: arrays[s.index] for v, s in graph.inputs.items() if isinstance(s, Argument)}
    for e in graph.equations:
        inputs = tuple(env[v] if isinstance(v, Value) else v for v in e.inputs)
        made = e.op.compute(inputs, e.params) if inputs else backend.wrap(e.op.forward(backend.xp, **e.params))
        env.update(zip(e.outputs, made if e.several else (made,), strict=True))
    return [env[v] for v in graph.results]


def equation(op: Any, inputs: tuple[Any, ...], out: Value, **params: Any) -> Equation:
    return Equation(op, inputs, params, (out,), LINE)


def names(graph: Graph) -> list[str]:
    return [e.name for e in graph.equations]


def apply(step: Any, graph: Graph, arrays: tuple[Any, ...], ulps: float = 16) -> Graph:
    """The graph after a pass and the removal of what it left unused, checked."""
    after = typecheck(remove_dead(typecheck(step(graph))))
    for old, new in zip(evaluate(graph, arrays), evaluate(after, arrays), strict=True):
        assert old.dtype == new.dtype
        tolerance = ulps * (np.finfo(old.dtype).eps if old.dtype.kind == "f" else 0)
        scale = np.max(np.abs(old), initial=0, where=np.isfinite(old))
        np.testing.assert_allclose(new, old, rtol=tolerance, atol=tolerance * scale)
    return after


def after(step: Any, function: Any, *arrays: Any) -> list[str]:
    return names(apply(step, typecheck(program(function, *arrays)), arrays))


A, B, C, D = array(4, 3), array(4, 3) + 2, array(4, 3) * 3, array(4, 3) - 1
ROW, COLUMN, W, V, SMALL = array(1, 3), array(4, 1), array(3, 5), array(3, 5) * 2, array(3, 1)
BIG, TALL = array(64, 3), array(64, 1)
CUBE = array(6, 4, 3)


def total(x: Any) -> Any:
    return reduce.sum(x, dim=tuple(range(x.ndim)))


def full(x: Any, number: float, *at: int) -> Any:
    return convert.new_full(x, shape=at or tuple(x.shape), value=number)


def columns(x: Any, start: int, stop: int) -> Any:
    return shape.part(x, at=((0, x.shape[0], 1), (start, stop, 1)))


def spread(x: Any, start: int, width: int) -> Any:
    at = ((0, x.shape[0], 1), (start, start + x.shape[1], 1))
    return shape.unslice(x, at=at, shape=(x.shape[0], width))


def many(x: Any) -> Any:
    return x.reshape(2, 2, 4)


def padded(x: Any, value: float) -> Any:
    return shape.pad(x, at=((0, 4, 1), (1, 4, 1)), shape=(4, 7), value=value)


def joined(*xs: Any) -> Any:
    return shape.cat(*xs, dim=1)

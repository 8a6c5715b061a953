"""Whether two results of one graph differ by rounding only: by how much it moves when what is computed on the way does.

Where values cancel, as in 1 - tanh(x)**2 of a large x, the last digit of a value on the way decides all digits of the
result. No tolerance fits that; but a graph that is run with its own last digits at random shows what they decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leafgrad.compile.ir.graph import Graph, Value
from leafgrad.compile.ir.replay import run, steps

NEAR = {"float32": 1e-4, "float64": 1e-10}  # of the largest element: so near, nothing more is asked
DIGITS = 4  # by so many units in the last place are values moved
RUNS = 8  # with other random digits
MORE = 32  # times as far as those runs are from each other, results may differ


def close(a: Any, b: Any) -> bool:
    """Whether two arrays are equal up to ``NEAR`` of the largest element, with nan and inf in the same places."""
    if b.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.all(np.isfinite(a[finite])):
        return False
    return distance(a, b) <= NEAR.get(b.dtype.name, 0.0) * largest(b)


def explains(ours: Any, right: Any, others: Sequence[Any]) -> bool:
    """Whether ``ours`` is as far from ``right`` as rounding takes results: ``others`` are those of `unsure` runs.

    Of integers, choices, and what is finite, twice as many elements may differ as differ in any of those runs, since
    rounding decides some of them in few.
    """
    floating = right.dtype.kind == "f"

    def apart(a: Any) -> Any:
        return np.isfinite(a) != np.isfinite(right) if floating else a != right

    off, differs = apart(ours), np.logical_or.reduce([apart(other) for other in others])
    if np.count_nonzero(off) > 2 * np.count_nonzero(differs):
        return False
    if not floating:
        return True
    same = ~(np.isfinite(right) | differs | off)
    if not np.array_equal(ours[same], right[same], equal_nan=True):
        return False
    return distance(ours, right) <= MORE * max(distance(other, right) for other in others)


def unsure(graph: Graph, inputs: Sequence[Any], seed: int) -> dict[Value, Any]:
    """The results of a graph, each value that it reads or makes moved by some units in the last place."""
    rng = np.random.default_rng(seed)
    at = {v: nudged(a, rng) for v, a in zip(graph.inputs, inputs, strict=True)}
    with np.errstate(all="ignore"):
        for equation, dead in steps(graph):
            made = run(equation, at)
            for v, array in zip(equation.outputs, made if equation.several else (made,), strict=True):
                at[v] = nudged(array, rng)
            for v in dead:
                del at[v]
    return {v: at[v] for v in graph.results}


def nudged(array: Any, rng: np.random.Generator) -> Any:
    """The array with each number moved by some units in the last place; integers stay."""
    if array.dtype.kind != "f":
        return array
    noise = rng.uniform(-DIGITS, DIGITS, array.shape) * float(np.finfo(array.dtype).eps)
    with np.errstate(all="ignore"):
        return np.asarray(array * (1 + noise), array.dtype)


def distance(a: Any, b: Any) -> float:
    """The largest difference between finite elements."""
    both = np.isfinite(a) & np.isfinite(b)
    return float(np.max(np.abs(a[both].astype("float64") - b[both]), initial=0.0))


def largest(a: Any) -> float:
    """The largest finite element, without its sign."""
    return float(np.max(np.abs(a[np.isfinite(a)]), initial=0.0))

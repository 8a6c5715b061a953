"""What one core could do at best: its multiply-adds per second, and the matrix products of a step at that speed."""

from __future__ import annotations

import ctypes
import math
import time
from typing import Any

from compare import Row, tell

from leafgrad_native import build


def peak(dtype: str) -> float:
    """Multiply-adds per second of one core, measured: independent sums in registers."""
    t, v = ("float", "lg_vf32") if dtype == "float32" else ("double", "lg_vf64")
    sums = range(12)
    text = f"""
double lg_peak(long n, {t} x) {{
    {v} h = ({v}){{0}} + x, {", ".join(f"a{i} = h * {i}" for i in sums)};
    for (long i = 0; i < n; i++) {{ {" ".join(f"a{i} = a{i} * h + h;" for i in sums)} }}
    {v} s = {" + ".join(f"a{i}" for i in sums)};
    return s[0];
}}
"""
    function = build.library(text, False).lg_peak
    function.restype = ctypes.c_double
    lanes, n, best = (build.vector_bytes() // (4 if t == "float" else 8)), 1_000_000, float("inf")
    number = (ctypes.c_float if t == "float" else ctypes.c_double)(0.5)
    for _ in range(20):
        start = time.perf_counter()
        function(ctypes.c_long(n), number)
        best = min(best, time.perf_counter() - start)
    return n * len(sums) * lanes / best


def multiply_adds(graph: Any) -> int:
    """Those of a program's matrix products."""
    found = 0
    for e in graph.equations:
        if e.name == "matmul":
            found += math.prod(e.out.shape) * e.values[0].shape[-1]
        elif e.name == "contract":  # all rows of both
            found += math.prod(e.values[0].shape) * e.out.shape[-1]
    return found


def tell_floor(row: Row, graph: Any) -> None:
    """Beside the figure of a step: its products alone at the peak of a core, which no library can pass."""
    least = 1e3 * multiply_adds(graph) / peak("float32")
    tell(
        Row(
            f"{row.what}: its products at the peak of the core",
            "ms",
            {"leafgrad": least} | dict([*row.values.items()][1:]),
        )
    )

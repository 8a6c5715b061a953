"""Order and memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

from compile.passes.graphs import A, B, apply, array, names, program, total

from leafgrad.compile.passes import group_elementwise
from leafgrad.compile.passes.liveness import Memory
from leafgrad.ops import matmul, shape, trigonometric


def interleaved(x: Any, w: Any) -> Any:
    """Six branches whose first halves all run before any second half."""
    heads = [trigonometric.sin(x * float(k)) for k in range(2, 8)]
    out = x
    for head in heads:
        out = out + matmul.matmul(trigonometric.cos(head), w)
    return out


def test_group_elementwise_lowers_the_peak():
    arrays = array(8, 5), array(5, 5)
    graph = program(interleaved, *arrays)
    grouped = apply(group_elementwise, graph, arrays, ulps=0)
    assert Counter(names(grouped)) == Counter(names(graph))
    memory = Memory(graph)
    assert memory.peak(grouped.equations) < memory.peak(graph.equations) / 2


def test_memory_sees_through_views():
    def step(x, y):
        a = x * y
        b = shape.permute(a, dims=(1, 0))
        return total(b * 2) + total(x + y)

    memory = Memory(program(step, A, B))
    a, b, double, *_ = memory.made
    assert (b.name, double.name) == ("permute", "mul")
    assert memory.made[b] == {}
    assert list(memory.read[double]) == [a.out]
    assert memory.read_by[a.out] == [b, double]

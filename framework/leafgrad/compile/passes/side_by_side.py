"""Matrix products that one larger product could compute."""

from __future__ import annotations

from leafgrad.compile.graph import Equation, Graph, Value
from leafgrad.ops.matmul import matmul


def side_by_side(graph: Graph) -> list[list[Equation]]:
    """Groups of matrix products with one right factor and left factors of one shape, none of which needs another.

    Nothing is rewritten: stacking the left factors costs a copy unless an executor lays them out side by side.
    """
    depth: dict[Value, int] = {}  # products of this right factor on the way to a value
    groups: dict[tuple[Value, tuple[int, ...], int], list[Equation]] = {}
    for factor in dict.fromkeys(e.inputs[1] for e in graph.equations if e.op is matmul):
        assert isinstance(factor, Value)
        depth.clear()
        for e in graph.equations:
            before = max((depth.get(v, 0) for v in e.values), default=0)
            if e.op is matmul and e.inputs[1] is factor and isinstance(e.inputs[0], Value):
                groups.setdefault((factor, e.inputs[0].shape, before), []).append(e)
                before += 1
            depth.update(dict.fromkeys(e.outputs, before))
    return [g for g in groups.values() if len(g) > 1]

"""What a graph says of itself."""

from __future__ import annotations

import leafgrad
from leafgrad.compile.record.trace import trace_call


def test_each_line_says_what_is_made_of_what_and_where():
    w = leafgrad.ones(2, 3, requires_grad=True)
    total = leafgrad.zeros(3)

    def step(x):
        y = (x @ w).sum(dim=0)
        y.backward(leafgrad.ones(3))
        with leafgrad.no_grad():
            total.add_(y)
        return y

    text = str(trace_call(step, (leafgrad.ones(4, 2),), {}).graph)
    first, *lines, last = text.splitlines()
    assert first == "program:"
    assert lines[0].split("#") == [lines[0].split("#")[0], " argument 0"]
    assert lines[0].strip().startswith("in0: f32[4, 2]")
    assert any(": f32[2, 3]" in line and line.endswith("# captured") for line in lines)
    assert any("= matmul(in0, in1)" in line and "test_graph.py" in line for line in lines)
    assert any("= sum(a, dim=(0,))" in line for line in lines)
    assert sum(line.endswith("# effect") for line in lines) == 2
    assert any(".grad = " in line for line in lines)
    assert any("[...] = " in line for line in lines)
    assert last == "  return b"


def test_a_long_parameter_is_cut():
    text = str(trace_call(lambda x: x.reshape(*[1] * 30, 12), (leafgrad.ones(3, 4),), {}).graph)
    (line,) = [line for line in text.splitlines() if "reshape(" in line]
    assert line.split("shape=")[1].split(")")[0].endswith("...")

"""Where in the source a frame is."""

from __future__ import annotations

import sys

import leafgrad
from leafgrad.compile.ir.lines import Line, position_of, positions_in, user_line


def test_the_position_is_that_of_the_expression():
    first = sys._getframe().f_code.co_firstlineno
    frames = [sys._getframe(), position_of(sys._getframe())]
    assert frames[1] == (first + 2, 31, first + 2, 59)


def test_the_innermost_frames_of_some_codes_are_found():
    def inner(depth=0):
        return positions_in(codes) if depth else inner(1)

    codes = {inner.__code__, test_the_innermost_frames_of_some_codes_are_found.__code__}
    first = inner.__code__.co_firstlineno
    assert sorted(line for line, *_ in inner()) == [first + 1, first + 5]
    assert positions_in(()) == set()


def test_a_line_shows_its_source():
    line = user_line()
    assert line == Line(__file__, line.number)
    assert str(line) == f"test_lines.py:{line.number}: line = user_line()"


def test_what_a_derivative_asks_for_is_told_from_what_a_line_says():
    def step(x):
        y = (x * 3).sin()
        (g,) = leafgrad.autograd.grad(y.sum(), x, create_graph=True)
        return g * 2

    graph = leafgrad.trace(step, leafgrad.ones(3, requires_grad=True))
    said = [e.name for e in graph.equations if not e.line.derived]
    assert said == ["mul", "sin", "sum", "mul"]
    assert len(graph.equations) > len(said)

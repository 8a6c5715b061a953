"""Where in the source a frame is."""

from __future__ import annotations

import sys

from leafgrad.compile.ir.lines import Line, position_in, position_of, user_line


def test_the_position_is_that_of_the_expression():
    first = sys._getframe().f_code.co_firstlineno
    frames = [sys._getframe(), position_of(sys._getframe())]
    assert frames[1] == (first + 2, 31, first + 2, 59)


def test_the_innermost_frame_of_some_code_is_found():
    def inner():
        return position_in(test_the_innermost_frame_of_some_code_is_found.__code__)

    found = inner()
    assert found[0] == inner.__code__.co_firstlineno + 3
    assert position_in(None) is None


def test_a_line_shows_its_source():
    line = user_line()
    assert line == Line(__file__, line.number)
    assert str(line) == f"test_lines.py:{line.number}: line = user_line()"

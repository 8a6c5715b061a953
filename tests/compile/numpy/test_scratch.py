"""Generated programs and what they leave behind."""

from __future__ import annotations

import gc
import linecache
import traceback

import numpy as np
import pytest

import leafgrad
from leafgrad.compile.numpy.executor import NumpyProgram


def sources():
    return [name for name in linecache.cache if name.startswith("<leafgrad program")]


def test_the_source_of_programs_goes_with_them():
    gc.collect()
    before = sources()
    graph = leafgrad.trace(lambda x: x.sin() * 2, leafgrad.ones(3))
    programs = [NumpyProgram(graph) for _ in range(200)]
    assert len(sources()) == len(before) + 200
    del programs
    gc.collect()
    assert sources() == before


def test_compiled_functions_that_are_dropped_leave_nothing():
    gc.collect()
    before = sources()
    for k in range(20):
        compiled = leafgrad.compile(lambda x, k=k: x.sin() * k, executor="numpy")
        for _ in range(2):
            compiled(leafgrad.ones(3))
    del compiled
    gc.collect()
    assert sources() == before


def test_a_traceback_shows_the_line_of_a_program():
    broken = leafgrad.op("float", name="scratch_broken")(lambda xp, x: xp.linalg.inv(x))
    program = NumpyProgram(leafgrad.trace(lambda x: broken(x) * 2, leafgrad.eye(2)))
    with pytest.raises(np.linalg.LinAlgError) as caught:
        program([np.zeros((2, 2), np.float32)])
    assert "scratch_broken_forward(xp, v0)" in "".join(traceback.format_exception(caught.value))

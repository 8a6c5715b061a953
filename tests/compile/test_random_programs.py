"""Small random programs, with their first and second derivatives: the NumPy executor agrees with eager."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from random_programs import compare, programs

from leafgrad.compile.numpy_executor import NumpyProgram


def run(graph, arrays):
    return [NumpyProgram(graph, rows)(arrays) for rows in (32, None)]


@settings(max_examples=60, deadline=None)
@given(programs, st.booleans())
def test_executors_agree_with_eager(program, optimized):
    compare(program, optimized, run)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(programs, st.booleans())
def test_many_programs(program, optimized):
    compare(program, optimized, run)

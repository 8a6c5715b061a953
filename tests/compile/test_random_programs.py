"""Small random programs, with their first and second derivatives, or of many dtypes: executors agree with eager."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from mixed_programs import compare as compare_mixed
from random_programs import compare, programs

from leafgrad.compile.numpy.executor import NumpyProgram


def run(graph, arrays):
    return [NumpyProgram(graph, rows)(arrays) for rows in (32, None)]


@settings(max_examples=40, deadline=None)
@given(programs, st.booleans())
def test_executors_agree_with_eager(program, optimized):
    compare(program, optimized, run)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(programs, st.booleans())
def test_many_programs(program, optimized):
    compare(program, optimized, run)


@pytest.mark.parametrize("executor", ["numpy", "replay"])
@pytest.mark.parametrize("start", range(0, 40, 10))
def test_programs_of_many_dtypes(start, executor):
    for seed in range(start, start + 10):
        compare_mixed(seed, executor)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(40, 3040, 60))
def test_many_programs_of_many_dtypes(start):
    for seed in range(start, start + 60):
        compare_mixed(seed, "numpy")

"""Programs reduce tensors without dimensions, without elements, or with one, as eager does."""

from __future__ import annotations

import pytest
from reduction_table import SHAPES, compare

from leafgrad.compile.ir.replay import ReplayProgram
from leafgrad.compile.numpy.executor import NumpyProgram


@pytest.mark.parametrize("program", [NumpyProgram, ReplayProgram])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_small_reductions_are_as_in_eager(shape, dtype, program):
    assert not compare(shape, dtype, program)

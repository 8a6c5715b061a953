"""Programs treat Python numbers as eager does: booleans, zeros of either sign, infinities."""

from __future__ import annotations

import pytest
from number_table import DTYPES, IN_PLACE, OPERATORS, cases, compare

from leafgrad.compile.ir.replay import ReplayProgram
from leafgrad.compile.numpy.executor import NumpyProgram


@pytest.mark.parametrize("program", [NumpyProgram, ReplayProgram])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*OPERATORS, *IN_PLACE])
def test_numbers_are_as_in_eager(name, dtype, program):
    assert not compare(list(cases(name, dtype)), dtype, program, ulps=1)

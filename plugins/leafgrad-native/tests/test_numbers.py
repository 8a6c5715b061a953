"""C treats Python numbers as eager does: booleans, zeros of either sign, infinities."""

from __future__ import annotations

import pytest
from number_table import DTYPES, IN_PLACE, OPERATORS, cases, compare

from leafgrad_native.compiler import NoCompiler, compiler
from leafgrad_native.executor import NativeProgram

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_are_as_in_eager(dtype):
    every = [case for name in (*OPERATORS, *IN_PLACE) for case in cases(name, dtype)]
    assert not compare(every, dtype, NativeProgram, ulps=4)

"""C treats Python numbers as eager does: booleans, zeros of either sign, infinities."""

from __future__ import annotations

import pytest
from number_table import DTYPES, IN_PLACE, OPERATORS, cases, compare

import leafgrad
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


@pytest.mark.parametrize("dtype", [leafgrad.int8, leafgrad.int16, leafgrad.int32, leafgrad.int64])
def test_integers_that_are_too_large_begin_anew(dtype):
    """Also in a later call than the first, which is compared with NumPy; a C compiler may take them for impossible."""
    most = leafgrad.iinfo(dtype).max

    def step(x):
        less = (x - 1 < x) + 0 * x
        return (x + 1 > x) * x, less, (x + 1 - 1 >= 0) * x, (x * 2 // 2 == x) * x, ((x + 1).abs() >= 0) * x, -x - 2

    compiled = leafgrad.compile(step, executor="native")
    for numbers in ([1, 2, 3], [most, most - 1, -most - 1]):
        x = leafgrad.tensor(numbers * 50, dtype=dtype)
        for _ in range(3):
            for found, expected in zip(compiled(x), step(x), strict=True):
                assert leafgrad.equal(found, expected)

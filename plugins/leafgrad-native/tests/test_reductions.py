"""C reduces tensors without dimensions, without elements, or with one, as eager does."""

from __future__ import annotations

import pytest
from reduction_table import SHAPES, compare

from leafgrad_native.compiler import NoCompiler, compiler
from leafgrad_native.executor import NativeProgram

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


@pytest.mark.every(2)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_small_reductions_are_as_in_eager(shape, dtype):
    assert not compare(shape, dtype, NativeProgram)

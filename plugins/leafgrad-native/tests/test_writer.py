"""Arrays that C fills with a number."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad.nn import functional as F
from leafgrad_native.compiler import NoCompiler, compiler
from leafgrad_native.executor import NativeProgram

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

FILLED = {
    "bool from a float": lambda x: leafgrad.full((3,), 0.5, dtype=leafgrad.bool),
    "bool from nothing": lambda x: leafgrad.full((3,), -0.0, dtype=leafgrad.bool),
    "bool like": lambda x: leafgrad.full_like(x > 0, 0.3),
    "int64 of many digits": lambda x: leafgrad.full((3,), 2**62 + 1, dtype=leafgrad.int64),
    "int8 from a float": lambda x: leafgrad.full((3,), -1.9, dtype=leafgrad.int8),
    "padded with True": lambda x: F.pad(x, (1, 2), value=True),
    "padded int64": lambda x: F.pad(x.to(leafgrad.int64), (1, 2), value=2**62 + 1),
    "padded bool": lambda x: F.pad(x > 0, (1, 2), value=0.5),
}


@pytest.mark.parametrize("function", FILLED.values(), ids=FILLED)
def test_numbers_fill_arrays_as_in_eager(function):
    x = leafgrad.tensor([1.0, -1.0, 0.5], dtype=leafgrad.float64)
    graph = leafgrad.trace(lambda x: (function(x), x * 2), x)
    got, want = NativeProgram(graph)([x.numpy()] * len(graph.inputs))[0], function(x).numpy()
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)

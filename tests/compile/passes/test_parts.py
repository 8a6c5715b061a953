"""Slices, and what passes make of them."""

from __future__ import annotations

import numpy as np
import pytest
from typecheck import check

import leafgrad
from leafgrad.compile.ir.replay import ReplayProgram
from leafgrad.compile.passes import optimize
from leafgrad.compile.record.trace import trace_call


@pytest.mark.parametrize("start", [0, 1, 2])
def test_windows_of_nothing(start):
    def function(x, y):
        z = leafgrad.atan2(x, y)[start:start]
        return leafgrad.cat([z, (x * 2)[1:1]]) + 1

    x = leafgrad.ones(1, dtype=leafgrad.float64)
    graph = check(optimize(trace_call(function, (x, x * 2), {}).graph))
    (got,) = ReplayProgram(graph)([x.numpy(), x.numpy()])
    assert (got.shape, got.dtype) == ((0,), np.float64)

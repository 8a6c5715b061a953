"""The op table, and random programs with derivatives, as kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mixed_programs import compare as compare_mixed
from random_programs import compare, programs
from rows import ROWS, outputs, tensors

import leafgrad
from leafgrad_cuda.device import Emulated
from leafgrad_cuda.executor import CudaProgram

STATIC = [row for row in ROWS if "dynamic" not in getattr(row.op, "traits", ())]
SOME = 16  # rows in one program: a compiler is slow to start


def groups(rows):
    return [pytest.param(rows[k : k + SOME], id=f"{rows[k]} and on") for k in range(0, len(rows), SOME)]


@pytest.mark.every(2)
@pytest.mark.parametrize("rows", groups(STATIC))
def test_ops_as_kernels_equal_eager(rows):
    calls = []
    for row in rows:
        for args, params in row.draw(row.dtypes[0]):
            calls.append((row.op, tensors(args, "cpu", requires_grad=True), params))

    def together(*given):
        left = list(given)
        found = []
        for op, args, params in calls:
            now = [left.pop(0) if isinstance(a, leafgrad.Tensor) else a for a in args]
            found += outputs(op(*now, **params))
        return tuple(found)

    args = [a for _, some, _ in calls for a in some if isinstance(a, leafgrad.Tensor)]
    expected = [t.detach().numpy().copy() for t in together(*args)]
    compiled = leafgrad.compile(together, executor="cuda-emulated")
    compiled(*args)  # the first call runs eagerly
    for got, want in zip(compiled(*args), expected, strict=True):
        ours = got.detach().numpy()
        assert ours.dtype == want.dtype
        finite = np.abs(want[np.isfinite(want)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        np.testing.assert_allclose(ours, want, rtol=1e-11, atol=1e-13 * scale)


def run(graph, arrays):
    program = CudaProgram(graph, Emulated())
    return [program(arrays), program(arrays)]


@settings(max_examples=10, deadline=None)
@given(programs, st.booleans())
def test_random_programs(program, optimized):
    compare(program, optimized, run)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(programs, st.booleans())
def test_many_random_programs(program, optimized):
    compare(program, optimized, run)


@pytest.mark.parametrize("seed", [*range(8), 113])
def test_programs_of_many_dtypes(seed):
    compare_mixed(seed, "cuda-emulated")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 200))
def test_many_programs_of_many_dtypes(seed):
    compare_mixed(seed, "cuda-emulated")

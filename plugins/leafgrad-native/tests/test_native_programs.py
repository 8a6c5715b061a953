"""What the core's executors are tested with, as C: the op table, and random programs with two derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mixed_programs import compare as compare_mixed
from random_programs import compare, programs
from rows import ROWS, outputs, tensors

import leafgrad
from leafgrad.compile.run.executor import find
from leafgrad_native.compiler import NoCompiler, compiler
from leafgrad_native.executor import NativeProgram

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

STATIC = [row for row in ROWS if "dynamic" not in getattr(row.op, "traits", ())]
SMOOTH = [row for row in STATIC if row.order >= 2 and "nondifferentiable" not in getattr(row.op, "traits", ())]
SOME = 12  # rows in one program: a compiler is slow to start


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """The tests compare; the executor's own check, which would mend what it finds, is off."""
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", "0")


def groups(rows):
    return [pytest.param(rows[k : k + SOME], id=f"{rows[k]} and on") for k in range(0, len(rows), SOME)]


def samples(rows):
    """(function of tensors, these tensors) for each sample of each row."""
    for row in rows:
        for args, params in row.draw(row.dtypes[0]):
            filled = tensors(args, "cpu", requires_grad=True)
            places = [i for i, a in enumerate(filled) if isinstance(a, leafgrad.Tensor)]

            def function(*given, row=row, filled=tuple(filled), places=tuple(places), params=params):
                now = list(filled)
                for i, t in zip(places, given, strict=True):
                    now[i] = t
                return outputs(row.op(*now, **params))

            yield function, [filled[i] for i in places]


def with_derivatives(function, given):
    """A sum of the results, and its first and second derivatives."""
    inputs = [g for g in given if g.requires_grad]
    found = function(*given)
    if not any(o.requires_grad for o in found):  # of whole numbers, say
        return found
    total = sum((leafgrad.sin(o) * 1.5).sum().real for o in found if o.requires_grad)
    first = leafgrad.autograd.grad(total, inputs, create_graph=True, materialize_grads=True)
    again = sum((leafgrad.cos(g) + g * x).sum().real for g, x in zip(first, inputs, strict=True))
    return total, *first, *leafgrad.autograd.grad(again, inputs, materialize_grads=True)


def check(rows, results):
    calls = list(samples(rows))

    def together(*given):
        found, k = [], 0
        for function, args in calls:
            found += results(function, given[k : k + len(args)])
            k += len(args)
        return tuple(found)

    args = [a for _, some in calls for a in some]
    expected = [t.detach().numpy().copy() for t in together(*args)]
    compiled = leafgrad.compile(together, executor="native")
    compiled(*args)  # the first call runs eagerly
    for _ in range(2):
        for got, want in zip(compiled(*args), expected, strict=True):
            ours = got.detach().numpy()
            assert ours.dtype == want.dtype
            finite = np.abs(want[np.isfinite(want)])
            scale = max(1.0, float(finite.max())) if finite.size else 1.0
            np.testing.assert_allclose(ours, want, rtol=1e-11, atol=1e-13 * scale)


@pytest.mark.parametrize("rows", groups(STATIC))
def test_ops_as_c_equal_eager(rows):
    check(rows, lambda function, given: function(*given))


@pytest.mark.slow
@pytest.mark.parametrize("rows", groups(SMOOTH))
def test_with_two_derivatives(rows):
    check(rows, with_derivatives)


def run(graph, arrays):
    program = NativeProgram(graph)
    return [program(arrays), program(arrays)]


@settings(max_examples=12, deadline=None)
@given(programs, st.booleans())
def test_random_programs(program, optimized):
    compare(program, optimized, run)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(programs, st.booleans())
def test_many_random_programs(program, optimized):
    compare(program, optimized, run)


@pytest.mark.parametrize("seed", range(8))
def test_programs_of_many_dtypes(seed):
    compare_mixed(seed, "native")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 60))
def test_many_programs_of_many_dtypes(seed):
    compare_mixed(seed, "native")


def test_the_executor_is_listed():
    graph = leafgrad.trace(lambda x: x.sin(), leafgrad.ones(3))
    assert find("native", graph).name == "native"

"""Every row of the op table replays equal to eager, alone and inside a composite with two derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from rows import ROWS, outputs, tensors

import leafgrad
from leafgrad.compile.replay import run

EXECUTORS = ("numpy", "replay")
STATIC = [row for row in ROWS if "dynamic" not in getattr(row.op, "traits", ())]


def compare(row, function, args, executor):
    expected = [t.detach().numpy().copy() for t in outputs(function(*args))]
    compiled = leafgrad.compile(function, executor=executor)
    compiled(*args)  # the first call runs eagerly
    for _ in range(2):
        for got, want in zip(outputs(compiled(*args)), expected, strict=True):
            ours = got.detach().numpy()
            assert ours.dtype == want.dtype, row
            np.testing.assert_allclose(ours, want, rtol=1e-11, atol=1e-13 * max(1.0, size(want)), err_msg=str(row))


def size(array):
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max()) if finite.size else 1.0


def calls(row, dtype=None):
    """(function of the tensors among the arguments, these tensors) for each sample."""
    for args, params in row.draw(dtype or row.dtypes[0]):
        all_args = tensors(args, "cpu", requires_grad=dtype is None)
        places = [i for i, a in enumerate(all_args) if isinstance(a, leafgrad.Tensor)]

        def function(*given, all_args=all_args, places=places, params=params):
            filled = list(all_args)
            for i, t in zip(places, given, strict=True):
                filled[i] = t
            return row.op(*filled, **params)

        yield function, tuple(all_args[i] for i in places)


def differentiable(row):
    return "nondifferentiable" not in getattr(row.op, "traits", ())


@pytest.mark.parametrize("row", STATIC, ids=str)
def test_a_trace_states_the_shapes_and_dtypes_that_ops_give(row):
    for dtype in row.dtypes:
        for function, args in calls(row, dtype):
            given = tuple(a.detach().clone() for a in args)
            graph = leafgrad.trace(function, *given)
            arrays = dict(zip(graph.inputs, [given[s.index].numpy() for s in graph.inputs.values()], strict=True))
            for e in graph.equations:
                made = run(e, arrays)
                arrays.update(zip(e.outputs, made if e.several else (made,), strict=True))
                for stated in e.outputs:
                    assert (stated.shape, stated.dtype) == (arrays[stated].shape, arrays[stated].dtype.name), (row, e)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("row", STATIC, ids=str)
def test_replay_equals_eager(row, executor):
    for function, args in calls(row):
        compare(row, function, args, executor)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("row", [row for row in STATIC if row.order >= 2 and differentiable(row)], ids=str)
def test_with_two_derivatives(row, executor):
    for function, args in calls(row):
        leaves = [a for a in args if a.requires_grad]

        def composite(*given, function=function, leaves=leaves):
            inputs = [g for g in given if g.requires_grad]
            total = sum((leafgrad.sin(o) * 1.5).sum() for o in outputs(function(*given)) if o.requires_grad)
            first = leafgrad.autograd.grad(total, inputs, create_graph=True, materialize_grads=True)
            again = sum((leafgrad.cos(g) + g * x).sum() for g, x in zip(first, inputs, strict=True))
            return total, *first, *leafgrad.autograd.grad(again, inputs, materialize_grads=True)

        compare(row, composite, args, executor)

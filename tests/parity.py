"""The same call on leafgrad and on PyTorch: values, dtypes, shapes, and gradients of both orders must agree."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad


def compare(call, *arrays, order=2, rtol=1e-9):
    """``call(library, *tensors)`` on both; floating tensors require grad and are differentiated ``order`` times."""
    torch = pytest.importorskip("torch")
    theirs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    ours = [leafgrad.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    expected, actual = flat(call(torch, *theirs)), flat(call(leafgrad, *ours))
    assert len(expected) == len(actual)
    for e, a in zip(expected, actual, strict=True):
        agree(e, a, rtol)
    if order and expected[0].requires_grad:
        compare_gradients(torch, expected[0], actual[0], theirs, ours, order, rtol)


def compare_gradients(torch, expected, actual, theirs, ours, order, rtol):
    theirs, ours = ([t for t in ts if t.requires_grad] for ts in (theirs, ours))
    left, right = [expected], [actual]
    for _ in range(order):
        found = gradients(torch, left, theirs), gradients(leafgrad, right, ours)
        for e, a in zip(*found, strict=True):
            assert (a is None) == (e is None)
            if e is not None:
                agree(e, a, rtol * 10)
                assert a.requires_grad == e.requires_grad
        left, right = ([g for g in gs if g is not None and g.requires_grad] for gs in found)
        if not left:
            return


def gradients(library, outputs, inputs):
    """For a gradient 1, 2, 3, … of the elements of each output."""
    seeds = [library.tensor(1.0 + np.arange(np.prod(o.shape)).reshape(o.shape), dtype=o.dtype) for o in outputs]
    return library.autograd.grad(outputs, inputs, seeds, create_graph=True, allow_unused=True)


def agree(expected, actual, rtol):
    if not hasattr(expected, "dtype"):
        assert actual == expected
        return
    assert str(expected.dtype).removeprefix("torch.") == actual.dtype.name
    assert tuple(expected.shape) == tuple(actual.shape)
    if expected.dtype.itemsize < 8 and expected.dtype.is_floating_point:
        rtol = 1e-2 if expected.dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(actual.detach().numpy(), expected.numpy(force=True), rtol=rtol, atol=rtol)


def flat(result):
    return list(result) if isinstance(result, tuple) else [result]

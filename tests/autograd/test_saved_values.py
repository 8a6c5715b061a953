"""Every op of the op table with its saved values packed, or computed again: the same derivatives of both orders."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from rows import ROWS, outputs, tensors

import leafgrad
from leafgrad.autograd.graph import saved_tensors_hooks
from leafgrad.utils.checkpoint import checkpoint

TESTS = "ops.packing"


def away(saved):
    """A saved tensor as an array elsewhere, and nothing of the tensor."""
    return saved.numpy(force=True).copy()


def packed(call, args):
    with saved_tensors_hooks(away, leafgrad.from_numpy):
        return call(*args)


def recomputed(call, args):
    return checkpoint(call, *args)


def derivatives(call, args, way):
    """The outputs, their gradients, and the gradients of those."""
    results = outputs(way(call, args))
    inputs = [a for a in args if isinstance(a, leafgrad.Tensor) and a.requires_grad]
    found = [results]
    for _ in range(2):
        results = [r for r in results if isinstance(r, leafgrad.Tensor) and r.requires_grad]
        if not results:
            break
        seeds = [leafgrad.arange(1.0, r.numel() + 1).reshape(r.shape).to(r.dtype) for r in results]
        results = leafgrad.autograd.grad(results, inputs, seeds, create_graph=True, allow_unused=True)
        found.append(results)
    return [None if t is None else t.detach().numpy() for several in found for t in several]


@pytest.mark.parametrize("way", [packed, recomputed])
@pytest.mark.parametrize("row", [row for row in ROWS if row.order], ids=str)
def test_derivatives_are_the_same(row, way):
    for arrays, params in row.draw("float64"):
        args = tensors(arrays, "cpu", requires_grad=True)
        compare(lambda *args, params=params: row.op(*args, **params), args, way)


def compare(call, args, way):
    expected = derivatives(call, args, lambda call, args: call(*args))
    found = derivatives(call, args, way)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b)


def written(x):
    """Views, and writes into them."""
    y = x * 1
    y[0] = y[1].clone().exp() * y[2].clone()
    y[1:].mul_(x[:-1]).sin_()
    parts = (y * y).reshape(2, -1)
    return parts[0], parts.sum() * y


def layers():
    nn = leafgrad.nn
    return {
        "writes": (written, (4, 3)),
        "lstm": (nn.LSTM(3, 2, num_layers=2, bidirectional=True).double(), (4, 2, 3)),
        "gru": (nn.GRU(3, 2).double(), (4, 2, 3)),
        "attention": (lambda x: nn.functional.scaled_dot_product_attention(x, x, x), (2, 4, 3)),
        "encoder": (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).double().eval(), (2, 3, 4)),
        "convolution": (nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.MaxPool2d(2)).double(), (2, 1, 5, 5)),
        "linear": (nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True)).double(), (2, 3)),
    }


@pytest.mark.parametrize("way", [packed, recomputed])
@pytest.mark.parametrize("name", layers())
def test_derivatives_of_layers_are_the_same(name, way):
    leafgrad.manual_seed(0)
    layer, shape = layers()[name]
    x = leafgrad.randn(*shape, dtype=leafgrad.float64, requires_grad=True)

    def call(*args):
        result = layer(args[0])
        return result[0] if name in ("lstm", "gru") else result

    compare(call, (x, *getattr(layer, "parameters", tuple)()), way)


def test_forward_mode_and_vmap_with_packed_values():
    def f(x):
        return (x * x).sin() @ x

    x, tangent = leafgrad.tensor([1.0, 2.0]), leafgrad.tensor([1.0, 0.5])
    with saved_tensors_hooks(lambda saved: saved * 1, lambda kept: kept):
        pushed = leafgrad.func.jvp(f, (x,), (tangent,))
        second = leafgrad.func.hessian(f)(x)
    assert [t.tolist() for t in pushed] == [t.tolist() for t in leafgrad.func.jvp(f, (x,), (tangent,))]
    assert second.tolist() == leafgrad.func.hessian(f)(x).tolist()
    assert leafgrad.func.hessian(lambda x: checkpoint(f, x))(x).tolist() == second.tolist()


@pytest.mark.parametrize("way", [packed, recomputed])
def test_graphs_with_packed_values_are_freed_with_their_last_tensor(way):
    gc.collect()
    gc.disable()
    try:
        x = leafgrad.ones(3, requires_grad=True)
        y = way(lambda x: (x.sin() * x).exp(), (x,))
        node = weakref.ref(y._node)
        y.grad_fn.register_prehook(lambda outputs: None)
        y.sum().backward(retain_graph=True)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_packed_values_are_freed_by_the_backward_pass():
    x = leafgrad.ones(3, requires_grad=True)
    y = packed(lambda x: (x * x).sum(), (x,))
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


@pytest.mark.parametrize("way", [packed, recomputed])
def test_hooks_see_a_whole_batch(way):
    """And get it back as a batch, in a vmap within another, too."""

    def f(x, weight):
        return leafgrad.vmap(leafgrad.vmap(lambda row: (row @ weight).sin() * row.exp()))(x)

    weight = leafgrad.tensor([[0.5, -1.0], [2.0, 0.3]], requires_grad=True)
    compare(f, (leafgrad.ones(3, 2, 2, requires_grad=True), weight), way)

"""The device "meta"."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import nn


def meta(*shape, **options):
    return leafgrad.empty(*shape, device="meta", **options)


X = (2, 3)

RESULTS = {
    "add": lambda x: x + 1,
    "promoted": lambda x: x.long() / 2,
    "compared": lambda x: x > 0,
    "matmul": lambda x: x @ x.t(),
    "sum": lambda x: x.sum(0, keepdim=True),
    "cat": lambda x: leafgrad.cat([x, x], 1),
    "index": lambda x: x[1, ::2],
    "new dimension": lambda x: x[:, None].expand(2, 4, 3),
    "transposed": lambda x: x.view(3, 2).transpose(0, 1),
    "in place": lambda x: x.clone().add_(1).t_(),
    "sort": lambda x: x.sort(1).indices,
    "cumsum": lambda x: x.cumsum(0),
    "max": lambda x: x.max(1).values,
    "gather": lambda x: x.gather(0, x.long()),
    "softmax": lambda x: x.softmax(-1),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "where": lambda x: leafgrad.where(x > 0, x, 0),
    "norm": lambda x: x.norm(),
    "like": lambda x: leafgrad.rand_like(x, dtype=leafgrad.float64),
    "no elements": lambda x: x[:0] * 2,
    "float16": lambda x: x.half() + x,
}


@pytest.mark.parametrize("function", RESULTS.values(), ids=RESULTS)
def test_results_have_the_shape_and_dtype_of_real_ones(function):
    made, real = function(meta(X)), function(leafgrad.zeros(X))
    assert (made.shape, made.dtype) == (real.shape, real.dtype)
    assert made.is_meta
    assert made.device == leafgrad.device("meta")
    assert made._is_view() == real._is_view()


def test_nothing_is_allocated():
    x = leafgrad.zeros(10**6, 10**6, device="meta")
    assert (x + 1).sum(0).shape == (10**6,)
    assert x.normal_().nbytes == 4 * 10**12
    assert x.data_ptr() == 0
    assert repr(x) == "tensor(..., device='meta', size=(1000000, 1000000))"


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.item(),
        lambda x: x.tolist(),
        lambda x: x.numpy(),
        lambda x: bool(x),
        lambda x: x.cpu(),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
    ],
)
def test_there_is_nothing_to_read(read):
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        read(meta(1))


def test_modules():
    with leafgrad.device("meta"):
        model = nn.Sequential(nn.Linear(3, 10**6), nn.ReLU(), nn.LayerNorm(10**6), nn.Linear(10**6, 2))
        cells = nn.LSTM(3, 4, batch_first=True)
    assert {p.device.type for p in model.parameters()} == {"meta"}
    assert model(meta(5, 3)).shape == (5, 2)
    assert cells(meta(5, 7, 3))[0].shape == (5, 7, 4)
    with pytest.raises(NotImplementedError, match="to_empty"):
        model.to("cpu")
    layer = nn.Linear(3, 2, device="meta")
    assert layer.to_empty(device="cpu") is layer
    layer.load_state_dict({"weight": leafgrad.ones(2, 3), "bias": leafgrad.zeros(2)})
    assert layer(leafgrad.ones(1, 3)).tolist() == [[3, 3]]
    assert leafgrad.empty_like(layer.weight, device="meta").shape == (2, 3)


def test_gradients_have_shapes():
    x = leafgrad.ones(2, 3, device="meta", requires_grad=True)
    ((x * 2) @ meta(3, 4)).relu().sum().backward()
    assert (x.grad.shape, x.grad.device.type) == ((2, 3), "meta")


def test_errors():
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        meta(X) @ meta(X)
    with pytest.raises(RuntimeError, match="same device"):
        meta(X) + leafgrad.ones(X)
    assert (meta(X) + leafgrad.tensor(1.0)).shape == X
    with pytest.raises(leafgrad.errors.TraceError, match="cannot be traced or compiled"):
        leafgrad.trace(lambda v: v + 1, meta(X))

"""How results lie in memory: copies and elementwise results as their argument, all others in order."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import nn

x = leafgrad.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
IMAGES = leafgrad.arange(36.0).reshape(1, 4, 3, 3).to(memory_format=leafgrad.channels_last)

ALIKE = {
    "clone": lambda x: x.clone(),
    "clone(preserve)": lambda x: x.clone(memory_format=leafgrad.preserve_format),
    "to": lambda x: x.double(),
    "exp": lambda x: x.exp(),
    "add": lambda x: x + x,
    "add_": lambda x: x.clone().add_(1),
    "zeros_like": leafgrad.zeros_like,
    "ones_like": leafgrad.ones_like,
    "empty_like": leafgrad.empty_like,
    "full_like": lambda x: leafgrad.full_like(x, 2, dtype=leafgrad.int64),
}
IN_ORDER = {
    "contiguous": lambda x: x.contiguous(),
    "clone(contiguous)": lambda x: x.clone(memory_format=leafgrad.contiguous_format),
    "zeros_like(contiguous)": lambda x: leafgrad.zeros_like(x, memory_format=leafgrad.contiguous_format),
    "softmax": lambda x: x.softmax(0),
    "cumsum": lambda x: x.cumsum(0),
    "cat": lambda x: leafgrad.cat([x, x]),
    "stack": lambda x: leafgrad.stack([x, x]),
    "sum": lambda x: x.sum(2),
    "mean": lambda x: x.mean(0),
    "max": lambda x: x.max(0).values,
    "sort": lambda x: x.sort(0).indices,
    "roll": lambda x: x.roll(1, 0),
    "triu": lambda x: x.triu(),
    "index": lambda x: x[leafgrad.tensor([0, 0])],
    "layer_norm": lambda x: nn.functional.layer_norm(x, x.shape[-1:]),
    "cross_entropy": lambda x: nn.functional.cross_entropy(
        x, leafgrad.zeros(x.shape[0], *x.shape[2:]).long(), reduction="none"
    ),
}


@pytest.mark.parametrize("x", [x, IMAGES, x[1:]], ids=["permuted", "channels_last", "with gaps"])
@pytest.mark.parametrize("name", ALIKE)
def test_copies_and_elementwise_results_lie_as_their_argument(name, x):
    out = ALIKE[name](x)
    order = sorted(range(x.ndim), key=x.stride().__getitem__, reverse=True)
    assert out.permute(order).is_contiguous()
    assert not out.is_contiguous()
    assert out._base is None


@pytest.mark.parametrize("x", [x, IMAGES], ids=["permuted", "channels_last"])
@pytest.mark.parametrize("name", IN_ORDER)
def test_other_results_lie_in_order(name, x):
    out = IN_ORDER[name](x.requires_grad_(False))
    assert out.is_contiguous()
    assert (out.view(-1) == IN_ORDER[name](x.contiguous()).view(-1)).all()


def test_copies_of_expanded_tensors_lie_in_order():
    wide = leafgrad.arange(6.0).reshape(2, 3).expand(4, 2, 3)
    assert wide.clone().stride() == leafgrad.zeros_like(wide).stride() == (6, 3, 1)
    assert wide.clone().view(-1)[:12].tolist() == [0, 1, 2, 3, 4, 5] * 2


def test_gradients_of_results_in_order():
    a = x.clone().requires_grad_()
    (a.softmax(0).view(-1) * leafgrad.arange(24.0)).sum().backward()
    b = x.contiguous().requires_grad_()
    (b.softmax(0).view(-1) * leafgrad.arange(24.0)).sum().backward()
    assert leafgrad.allclose(a.grad, b.grad, atol=1e-6)


def test_modules_take_memory_formats():
    layer = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(2, 2)).to(memory_format=leafgrad.channels_last)
    assert layer[0].weight.stride() == (27, 1, 9, 3)
    assert layer[0].weight.is_contiguous(memory_format=leafgrad.channels_last)
    assert layer[0].weight.requires_grad
    assert layer[0].weight.is_leaf
    images = leafgrad.randn(2, 3, 5, 5)
    plain = nn.Conv2d(3, 4, 3)
    plain.load_state_dict(layer[0].state_dict())
    assert leafgrad.allclose(layer[0](images), plain(images))
    layer.to(leafgrad.float64, memory_format=leafgrad.contiguous_format)
    assert layer[0].weight.is_contiguous()
    assert layer[0].weight.dtype is leafgrad.float64

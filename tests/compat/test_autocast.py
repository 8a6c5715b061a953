"""``torch.autocast`` on the CPU: which operations run in 16 bits, and what stays as it is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.compat import as_torch
from leafgrad.nn import functional as F


@pytest.fixture
def torch():
    with as_torch():
        import torch

        yield torch


X = lg.tensor(np.random.default_rng(0).normal(size=(4, 8)).astype("f4"))
W = lg.tensor(np.random.default_rng(1).normal(size=(8, 8)).astype("f4"))

LOW = {
    "matmul": lambda: X @ W,
    "linear": lambda: F.linear(X, W, W[0]),
    "addmm": lambda: lg.addmm(X, X, W),
    "einsum": lambda: lg.einsum("ij,jk->ik", X, W),
    "conv": lambda: F.conv1d(X[None], W[:, :4, None]),
    "transposed": lambda: F.conv_transpose1d(X[None], W[:4, :, None]),
    "attention": lambda: F.scaled_dot_product_attention(X[None], X[None], X[None]),
    "relu of it": lambda: F.relu(X @ W),
}
SAME = {
    "sum": lambda: X + X,
    "softmax": lambda: X.softmax(-1),
    "met": lambda: X + X @ W,
    "embedding": lambda: F.embedding(lg.tensor([1]), W),
    "cross entropy": lambda: F.cross_entropy(X @ W, lg.tensor([1, 2, 3, 0])),
    "mse": lambda: F.mse_loss(X @ W, X),
    "cast back": lambda: (X @ W).float(),
}


@pytest.mark.parametrize("dtype", [lg.bfloat16, lg.float16])
@pytest.mark.parametrize("name", [*LOW, *SAME])
def test_dtypes_are_pytorchs(torch, dtype, name):
    function = (LOW | SAME)[name]
    with torch.autocast("cpu", dtype=dtype):
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cpu") is dtype
        found = function()
        with torch.autocast("cpu", enabled=False):
            assert function().dtype is lg.float32
    assert found.dtype is (dtype if name in LOW else lg.float32)
    assert function().dtype is lg.float32
    np.testing.assert_allclose(found.float().numpy(), function().numpy(), atol=0.15)


@pytest.mark.parametrize(
    "make",
    [
        lambda nn: nn.Sequential(nn.Conv1d(4, 4, 1), nn.Conv1d(4, 4, 1)),
        lambda nn: nn.Sequential(nn.ConvTranspose1d(4, 4, 1), nn.ReLU(), nn.ConvTranspose1d(4, 4, 1)),
        lambda nn: nn.Sequential(nn.Linear(8, 8), nn.GRU(8, 4)),
        lambda nn: lambda x: F.scaled_dot_product_attention(x @ W, x, x),
    ],
    ids=["conv", "transposed", "gru", "attention"],
)
def test_what_is_in_16_bits_already_meets_what_is_not(torch, make):
    net, x = make(torch.nn), lg.stack([X, X])
    with torch.autocast("cpu"):
        found = net(x)
    found, want = [y[0] if isinstance(y, tuple) else y for y in (found, net(x))]
    assert found.dtype is lg.bfloat16
    np.testing.assert_allclose(found.detach().float().numpy(), want.detach().numpy(), atol=0.15)
    with torch.autocast("cpu"), pytest.raises(RuntimeError, match="dtype"):
        F.conv1d(x.double(), W[:, :4, None])


def test_the_numbers_are_those_of_converted_arguments(torch):
    with torch.autocast("cpu"):
        found = F.linear(X, W, W[0])
    want = F.linear(X.bfloat16(), W.bfloat16(), W[0].bfloat16())
    assert found.tolist() == want.tolist()
    with torch.autocast("cpu"):
        assert (X.double() @ W.double()).dtype is lg.float64
        assert (lg.ones(2, 2, dtype=lg.int64) @ lg.ones(2, 2, dtype=lg.int64)).dtype is lg.int64


def test_parameters_and_gradients_keep_their_dtype(torch):
    lg.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    plain = [p.detach().clone() for p in model.parameters()]
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        out = model(X)
        loss = F.cross_entropy(out, lg.tensor([1, 2, 3, 0]))
    loss.backward()
    assert (out.dtype, loss.dtype) == (lg.bfloat16, lg.float32)
    low = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    F.cross_entropy(model(X), lg.tensor([1, 2, 3, 0])).backward()
    for p, before, g in zip(model.parameters(), plain, low, strict=True):
        assert g.dtype is p.dtype is lg.float32
        assert lg.equal(p, before)
        np.testing.assert_allclose(g.numpy(), p.grad.numpy(), atol=0.02)


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_compiled_steps_see_it_from_inside_and_from_outside(torch, executor):
    def inside(x):
        with torch.autocast("cpu"):
            return x @ W

    def plain(x):
        return x @ W

    with torch.autocast("cpu"):
        want = X @ W
    within, step = lg.compile(inside, executor=executor), lg.compile(plain, executor=executor)
    assert within(X).tolist() == want.tolist()
    assert step(X).dtype is lg.float32
    with torch.autocast("cpu"):
        assert step(X).tolist() == want.tolist()
    with torch.autocast("cpu", dtype=torch.float16):
        assert step(X).dtype is lg.float16
    assert step(X).dtype is lg.float32


def test_as_a_decorator_and_under_vmap(torch):
    @torch.autocast("cpu")
    def f(x):
        return x @ W

    assert f(X).dtype is lg.bfloat16
    assert lg.func.vmap(f)(X[:, None]).dtype is lg.bfloat16
    assert (X @ W).dtype is lg.float32


def test_what_switches_it_off(torch):
    with pytest.warns(UserWarning, match="target dtype .* is not supported. Disabling autocast"):
        context = torch.autocast("cpu", dtype=torch.float32)
    with context:
        assert not torch.is_autocast_enabled("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = torch.autocast("cuda")
    with torch.autocast("cpu"), other:
        assert torch.is_autocast_enabled("cpu")

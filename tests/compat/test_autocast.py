"""``torch.autocast`` on the CPU: which operations run in 16 bits, and what stays as it is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.compat import as_torch
from leafgrad.nn import functional as F
from leafgrad.testing import fake

TESTS = "compat.torch.grad_scaler compat.torch.amp"


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


def test_on_other_devices(torch):
    """One switch for all that are not the CPU; each leaves the tensors of the other as they are."""
    fake.register()
    x, w = X.to("fake"), W.to("fake")
    with torch.autocast("fake"):
        assert (x @ w).dtype is lg.float16
        assert (X @ W).dtype is lg.float32
        assert F.cross_entropy(x @ w, lg.tensor([1, 2, 3, 0], device="fake")).dtype is lg.float32
        assert (torch.is_autocast_enabled("fake"), torch.is_autocast_enabled("cpu")) == (True, False)
        with torch.autocast("cpu"):
            assert ((x @ w).dtype, (X @ W).dtype) == (lg.float16, lg.bfloat16)
        with torch.autocast("fake", enabled=False):
            assert (x @ w).dtype is lg.float32
    with torch.autocast("cpu"):
        assert ((x @ w).dtype, (X @ W).dtype) == (lg.float32, lg.bfloat16)
    with pytest.raises(TypeError, match="autocast: bfloat16 is there on the CPU only"):
        torch.autocast("fake", lg.bfloat16)
    with pytest.warns(UserWarning, match="FAKE autocast supports float16"):
        torch.autocast("fake", lg.float32)
    assert (torch.amp.is_autocast_available("fake"), torch.amp.is_autocast_available("mps")) == (True, False)


# ---- GradScaler -----------------------------------------------------------------------------------------------------


def scaled(t, bad):
    """Scales after steps with inf (1) or nan (2) in a gradient of the first or second optimizer, and parameters."""
    p, q = t.ones(3, requires_grad=True), t.ones(2, requires_grad=True)
    first, second = t.optim.SGD([p], lr=0.5, momentum=0.9), t.optim.SGD([q], lr=0.25)
    scaler = t.amp.GradScaler("cpu", init_scale=8.0, growth_factor=4.0, backoff_factor=0.25, growth_interval=2)
    found = []
    for i, which in enumerate(bad):
        first.zero_grad()
        second.zero_grad()
        scaler.scale((p * p).sum() + (q * 3).sum()).backward()
        if which & 1:
            p.grad[0] = float("inf")
        if which & 2:
            q.grad[1] = float("nan")
        if i % 3 == 0:
            scaler.unscale_(first)
        scaler.step(first)
        scaler.step(second)
        scaler.update()
        found.append((scaler.get_scale(), scaler.state_dict()["_growth_tracker"]))
    return found, p.tolist(), q.tolist()


def test_the_scale_is_pytorchs(torch):
    scales, p, q = scaled(lg, [0, 0, 0, 1, 0, 0, 2, 0])
    assert scales == [(8, 1), (32, 0), (32, 1), (8, 0), (8, 1), (32, 0), (8, 0), (8, 1)]
    w, v = 1.0, 0.0
    for skipped in (0, 0, 0, 1, 0, 0, 0, 0):
        v = v if skipped else 0.9 * v + 2 * w
        w = w if skipped else w - 0.5 * v
    np.testing.assert_allclose(p, [w] * 3, rtol=1e-5)
    assert q == [1 - 7 * 0.75] * 2


def test_small_gradients_are_not_lost(torch):
    """In float16 what is below 6e-8 is 0."""
    w = lg.full((1,), 1.0, requires_grad=True)
    for scaler, expected in ((torch.amp.GradScaler("cpu", enabled=False), 0), (torch.amp.GradScaler("cpu"), 1e-8)):
        (sgd := torch.optim.SGD([w], lr=0.0)).zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.linear(lg.full((1, 1), 1e-4), w[None]).float().sum() * 1e-4
        scaler.scale(loss).backward()
        scaler.unscale_(sgd)
        assert w.grad.item() == pytest.approx(expected, rel=1e-2)


def test_wrong_use_of_a_scaler(torch):
    w = lg.ones(2, requires_grad=True)
    sgd, scaler = torch.optim.SGD([w], lr=0.1), torch.amp.GradScaler("cpu")
    for call in (scaler.update, lambda: scaler.step(sgd), lambda: scaler.unscale_(sgd)):
        with pytest.raises(AssertionError, match=r"call scale\(loss\).backward\(\)"):
            call()
    scaler.scale([w.sum(), w.sum()])[1].backward()
    scaler.unscale_(sgd)
    for call in (lambda: scaler.unscale_(sgd), lambda: scaler.step(sgd, closure=None)):
        with pytest.raises(RuntimeError, match=r"already been called|Closure"):
            call()
    scaler.step(sgd)
    for call in (lambda: scaler.unscale_(sgd), lambda: scaler.step(sgd)):
        with pytest.raises(RuntimeError, match=r"after step|already been called"):
            call()
    scaler.update()
    with pytest.raises(AssertionError, match="gradients that were unscaled before"):
        scaler.update()
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors, got int"):
        scaler.scale(3)
    for bad in (lg.ones(2), lg.ones(1, requires_grad=True)):
        with pytest.raises(AssertionError, match="new_scale should be a float or a 1-element"):
            scaler.update(bad)
    scaler.update(4.0)
    scaler.update(lg.tensor(2.0))
    assert (scaler.get_scale(), scaler.get_growth_factor(), scaler.get_growth_interval()) == (2, 2, 2000)
    state = scaler.state_dict()
    other = torch.amp.GradScaler("cpu", backoff_factor=0.1)
    other.load_state_dict(state)
    assert (other.state_dict(), other.get_backoff_factor()) == (state, 0.5)
    with pytest.raises(RuntimeError, match="state dict is empty"):
        other.load_state_dict({})
    low = lg.ones(2, dtype=lg.float16, requires_grad=True)
    scaler.scale(low.sum()).backward()
    with pytest.raises(ValueError, match="unscale FP16 gradients"):
        scaler.step(torch.optim.SGD([low], lr=0.1))
    with pytest.raises(AssertionError, match="growth_factor above 1"):
        torch.amp.GradScaler("cpu", growth_factor=1.0)


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_compiled_steps_with_a_scaler(torch, executor):
    def train(compiled):
        lg.manual_seed(0)
        net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=3)

        def step():
            sgd.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = (net(X).float() * 8).square().mean()
            scaler.scale(loss).backward()
            scaler.step(sgd)
            scaler.update()

        run, scales = lg.compile(step, executor=executor) if compiled else step, []
        for _ in range(12):
            run()
            scales.append(scaler.get_scale())
        return scales, [p.detach().numpy() for p in net.parameters()]

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        (scales, ours), (wanted, theirs) = train(True), train(False)
    assert scales == wanted
    assert min(scales) < 2.0**18  # there was inf
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-2, atol=1e-3)


def test_functions_of_ones_own(torch):
    seen = []

    def product(cast_inputs):
        class Product(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
            def forward(ctx, a, others):
                ctx.save_for_backward(a)
                seen.append((a.dtype, others[0].dtype, (a @ others[0]).dtype))
                return a @ others[0]

            @staticmethod
            @torch.amp.custom_bwd(device_type="cpu")
            def backward(ctx, g):
                seen.append((g.dtype, (g @ ctx.saved_tensors[0]).dtype, torch.is_autocast_enabled("cpu")))
                return g, None

        return Product.apply

    low, full = torch.bfloat16, torch.float32
    for cast_inputs, expected in [
        (None, [(low, low, low), (low, low, True)]),
        (full, [(full, full, full), (full, full, False)]),
    ]:
        seen.clear()
        x = torch.ones(2, 2, dtype=low, requires_grad=True)
        with torch.autocast("cpu"):
            out = product(cast_inputs)(x, [torch.ones(2, 2, dtype=low)])
        out.sum().backward()
        assert seen == expected
        assert x.grad.dtype is low
    seen.clear()
    product(full)(x, [x])  # without autocast nothing is cast
    assert seen == [(low, low, low)]
    assert torch.cuda.amp.custom_fwd(len).__name__ == torch.cuda.amp.custom_bwd(len).__name__ == "len"

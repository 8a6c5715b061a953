"""Norms: values against formulas in NumPy, gradients against differences, running averages, errors."""

from __future__ import annotations

import copy
import math
from collections import Counter

import numpy as np
import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.autograd import grad, gradcheck, gradgradcheck
from leafgrad.compile.passes import optimize
from leafgrad.compile.record.trace import trace_call
from leafgrad.nn import functional as F

TESTS = "nn.batchnorm nn.functional.normalization nn.fused"

RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 4, 2, 3)) * 2 + 1
W, B = RNG.standard_normal(4), RNG.standard_normal(4)


def standard(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def channels(v):
    return v[:, None, None]


def response(x, size, alpha, beta, k):
    squares = np.zeros_like(x)
    for c in range(x.shape[1]):
        low, high = max(0, c - size // 2), min(x.shape[1], c + (size - 1) // 2 + 1)
        squares[:, c] = (x[:, low:high] ** 2).sum(1)
    return x / (k + alpha * squares / size) ** beta


CASES = {
    "batch": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        standard(X, (0, 2, 3)) * channels(W) + channels(B),
    ),
    "instance": (lambda x, w, b: F.instance_norm(x, weight=w, bias=b), standard(X, (2, 3)) * channels(W) + channels(B)),
    "group": (
        lambda x, w, b: F.group_norm(x, 2, w, b),
        standard(X.reshape(3, 2, -1), 2).reshape(X.shape) * channels(W) + channels(B),
    ),
    "layer": (lambda x, w, b: F.layer_norm(x, (2, 3)), standard(X, (2, 3))),
    "rms": (lambda x, w, b: F.rms_norm(x, (3,), eps=0.1), X / np.sqrt((X**2).mean(3, keepdims=True) + 0.1)),
    "response": (lambda x, w, b: F.local_response_norm(x, 3, 0.5, 0.6, 2.0), response(X, 3, 0.5, 0.6, 2.0)),
    "even response": (lambda x, w, b: F.local_response_norm(x, 2, 0.5), response(X, 2, 0.5, 0.75, 1.0)),
    "length": (lambda x, w, b: F.normalize(x, dim=2), X / np.sqrt((X**2).sum(2, keepdims=True))),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name, device):
    function, expected = CASES[name]
    x, w, b = (lg.tensor(a, device=device) for a in (X, W, B))
    np.testing.assert_allclose(function(x, w, b).cpu().numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_both_orders(name):
    function, _ = CASES[name]
    inputs = [lg.tensor(a, requires_grad=True) for a in (X[:1], W, B)]
    if name not in ("batch", "instance", "group"):
        inputs = inputs[:1]

    def call(x, w=None, b=None):
        return function(x, w, b)

    assert gradcheck(call, inputs)
    assert gradgradcheck(call, inputs)


def penalised(norm):
    """A loss with the squared gradient of another in it."""

    def loss(x):
        (g,) = grad(norm(x).tanh().sum(), x, create_graph=True)
        return g.square().sum()

    return loss


@pytest.mark.parametrize("make", [lambda: nn.LayerNorm(3), lambda: nn.BatchNorm2d(4), lambda: nn.RMSNorm(3)])
def test_compiled_with_a_gradient_inside(make):
    norm = make().double()
    state = copy.deepcopy(norm.state_dict())
    x = lg.tensor(X, requires_grad=True)
    runs = []
    for compiler in (lambda f: f, lg.compile):
        norm.load_state_dict(state)
        loss = compiler(penalised(norm))(x)
        runs.append([loss, *grad(loss, [x, norm.weight]), *map(lg.clone, norm.buffers())])
    for ours, theirs in zip(*runs, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-8, atol=1e-10)


def test_a_program_has_one_mean_and_one_variance():
    norm = nn.BatchNorm2d(4).double()
    graph = optimize(trace_call(penalised(norm), (lg.tensor(X, requires_grad=True),), {}).graph)
    names = Counter(e.name for e in graph.equations)
    assert names["rsqrt"] == 1
    assert not {"standardize", "standardize_slope", "affine", "var"} & set(names)


@pytest.mark.parametrize("dtype", [lg.float32, lg.float16])
def test_a_large_mean_and_large_numbers(dtype):
    x = lg.tensor([[30000.0, 30008.0, 29992.0, 30000.0]], dtype=lg.float32).to(dtype)
    close = {"rtol": 2e-3, "atol": 1e-3}
    np.testing.assert_allclose(F.layer_norm(x, (4,)).numpy(), standard(x.double().numpy(), 1), **close)
    np.testing.assert_allclose(F.rms_norm(x, (4,)).float().numpy(), np.ones((1, 4)), rtol=2e-3)


def test_running_averages_of_instance_norm():
    norm = nn.InstanceNorm2d(4, momentum=0.2, track_running_stats=True, dtype=lg.float64)
    norm(lg.tensor(X))
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.2 * X.mean((0, 2, 3)))
    np.testing.assert_allclose(norm.running_var.numpy(), 0.8 + 0.2 * X.var((2, 3), ddof=1).mean(0))
    expected = (X - channels(norm.running_mean.numpy())) / np.sqrt(channels(norm.running_var.numpy()) + 1e-5)
    np.testing.assert_allclose(norm.eval()(lg.tensor(X)).numpy(), expected)


def test_momentum_none_averages_all_batches():
    norm = nn.BatchNorm2d(4, momentum=None, dtype=lg.float64)
    for part in (X, X + 3, X * 2):
        norm(lg.tensor(part))
    np.testing.assert_allclose(norm.running_mean.numpy(), (X.mean((0, 2, 3)) * 4 + 3) / 3)


def test_a_batch_norm_without_running_averages_uses_the_batch():
    norm = nn.BatchNorm3d(4, affine=False, track_running_stats=False, dtype=lg.float64).eval()
    x = X[..., None]
    np.testing.assert_allclose(norm(lg.tensor(x)).numpy(), standard(x, (0, 2, 3, 4)))
    assert not norm.state_dict()


def test_state_of_old_batch_norms_loads():
    norm = nn.BatchNorm1d(2)
    norm(lg.randn(3, 2))
    state = {k: v for k, v in norm.state_dict().items() if k != "num_batches_tracked"}
    assert not norm.load_state_dict(state).missing_keys  # as it was before batches were counted


@pytest.mark.parametrize(
    ("make", "shape", "error", "text"),
    [
        (lambda: nn.BatchNorm2d(3), (2, 3), ValueError, r"expected 4D input \(got 2D input\)"),
        (lambda: nn.BatchNorm3d(3), (2, 3, 1, 1), ValueError, "expected 5D input"),
        (lambda: nn.BatchNorm2d(3), (2, 4, 1, 1), RuntimeError, "expected 3 channels in dimension 1, got 4"),
        (lambda: nn.BatchNorm2d(3), (1, 3, 1, 1), ValueError, "Expected more than 1 value per channel"),
        (lambda: nn.SyncBatchNorm(3), (3,), ValueError, "expected at least 2D input"),
        (lambda: nn.InstanceNorm1d(3), (3,), ValueError, r"expected 2D or 3D input \(got 1D input\)"),
        (
            lambda: nn.InstanceNorm2d(3, affine=True),
            (2, 4, 5, 5),
            ValueError,
            "expected input's size at dim=1 to match",
        ),
        (lambda: nn.InstanceNorm2d(3), (2, 3, 1, 1), ValueError, "Expected more than 1 spatial element"),
        (lambda: nn.GroupNorm(2, 4), (2, 3), RuntimeError, "to be divisible by num_groups"),
        (lambda: nn.GroupNorm(2, 4), (2, 6), RuntimeError, "weight should contain 6 elements not 4"),
        (lambda: nn.GroupNorm(2, 2), (1, 2, 1), ValueError, "Expected more than 1 value per channel"),
        (lambda: nn.GroupNorm(2, 4), (4,), RuntimeError, "Expected at least 2 dimensions"),
        (lambda: nn.RMSNorm(4), (2, 3), RuntimeError, r"Given normalized_shape=\[4\]"),
        (lambda: nn.LocalResponseNorm(3), (2, 3), ValueError, "Expected 3D or higher dimensionality input"),
    ],
)
def test_errors(make, shape, error, text):
    with pytest.raises(error, match=text):
        make()(lg.ones(shape))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.layer_norm(x, (4,)),
        lambda x: F.group_norm(x, 2),
        lambda x: F.instance_norm(x),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.batch_norm(x, lg.zeros(4), lg.ones(4)),
        lambda x: F.rms_norm(x, (4,)),
    ],
)
def test_integers_are_refused(function):
    with pytest.raises(NotImplementedError, match="expected a floating point dtype, got leafgrad"):
        function(lg.arange(32).reshape(2, 4, 4))


@pytest.mark.parametrize("norm", [F.batch_norm, F.instance_norm])
@pytest.mark.parametrize("given", ["running_mean", "running_var"])
def test_one_running_statistic_of_two(norm, given):
    x, statistics = lg.randn(2, 3, 4), {"running_mean": None, "running_var": None, given: lg.ones(3)}
    training = {"training": True} if norm is F.batch_norm else {}
    with pytest.raises(ValueError, match=f"both be None or neither be None, got {given} alone"):
        norm(x, **statistics, **training)
    with pytest.raises(RuntimeError, match="defined"):
        norm(x, **statistics, **({} if training else {"use_input_stats": False}))


@pytest.mark.parametrize(("eps", "training"), [(-1e-5, False), (-1e-5, True), (0.0, True), (math.nan, False)])
def test_eps_of_batch_norm(eps, training):
    with pytest.raises(ValueError, match="eps must be"):
        F.batch_norm(lg.randn(4, 3), lg.zeros(3), lg.ones(3), training=training, eps=eps)


def test_errors_of_construction_and_functions():
    with pytest.raises(RuntimeError, match="size: expected a number greater than zero, got 0"):
        F.local_response_norm(lg.ones(1, 3, 4), 0)
    with pytest.raises(ValueError, match="must be divisible by num_groups"):
        nn.GroupNorm(3, 4)
    with pytest.warns(UserWarning, match="does not match num_features"):
        nn.InstanceNorm1d(3)(lg.ones(2, 4, 5))
    with pytest.raises(RuntimeError, match="weight of shape"):
        F.layer_norm(lg.ones(2, 3), (3,), lg.ones(2))
    with pytest.raises(RuntimeError, match="running_mean should contain 3 elements not 2"):
        F.batch_norm(lg.ones(2, 3), lg.ones(2), lg.ones(3))
    with pytest.raises(RuntimeError, match="use_input_stats=False"):
        F.instance_norm(lg.ones(2, 3, 4), use_input_stats=False)


def test_running_averages_that_are_switched_off_later():
    m = nn.BatchNorm1d(2)
    m.track_running_stats = False
    m(lg.tensor([[1.0, 2.0], [3.0, 5.0]]))
    assert m.num_batches_tracked.item() == 0
    assert m.running_mean.tolist() == [0, 0]


def test_running_statistics_of_all_batches_alike_are_as_exact_as_their_dtype():
    norm = lg.nn.BatchNorm1d(1, momentum=None).double()
    batches = lg.tensor([[1.0, 2.0], [3.0, 7.0], [4.0, 9.5]], dtype=lg.float64)
    for batch in batches:
        norm(batch[:, None])
    assert lg.allclose(norm.running_mean, batches.mean(), rtol=1e-14, atol=0)
    assert lg.allclose(norm.running_var, batches.var(1).mean(), rtol=1e-14, atol=0)


def test_an_empty_batch_leaves_the_running_statistics():
    norm = nn.BatchNorm1d(3)
    x = lg.zeros(0, 3, 4, requires_grad=True)
    y = norm(x)
    assert y.shape == (0, 3, 4)
    y.sum().backward()
    assert (x.grad.shape, norm.weight.grad.tolist()) == ((0, 3, 4), [0, 0, 0])
    assert (norm.running_mean.tolist(), norm.running_var.tolist(), norm.num_batches_tracked) == ([0] * 3, [1] * 3, 1)


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm"])
def test_one_size_may_be_an_integer_of_numpy(t, name):
    layer = getattr(t.nn, name)(np.int64(4))
    assert layer.normalized_shape == (4,)
    assert layer(t.ones(2, 4)).shape == (2, 4)

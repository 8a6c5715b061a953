"""Activations: layers and functions, values, gradients and errors."""

from __future__ import annotations

import copy
import inspect
import math

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.nn import functional as F

TESTS = "nn.functional.activation"


@pytest.fixture(autouse=True)
def _seeded():
    lg.manual_seed(0)


def close(a, b, tolerance=1e-6):
    return bool((a.double() - b.double()).abs().max() <= tolerance)


X = [-4.0, -2.0, -0.7, 0.0, 0.3, 2.0, 7.0]


def norm_cdf(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@pytest.mark.parametrize(
    ("layer", "function"),
    [
        (nn.ReLU(), lambda x: max(x, 0)),
        (nn.ReLU6(), lambda x: min(max(x, 0), 6)),
        (nn.Tanh(), math.tanh),
        (nn.Sigmoid(), lambda x: 1 / (1 + math.exp(-x))),
        (nn.LogSigmoid(), lambda x: -math.log1p(math.exp(-x))),
        (nn.GELU(), lambda x: x * norm_cdf(x)),
        (nn.GELU("tanh"), lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        (nn.SiLU(), lambda x: x / (1 + math.exp(-x))),
        (nn.Mish(), lambda x: x * math.tanh(math.log1p(math.exp(x)))),
        (nn.Softplus(2, 3), lambda x: x if 2 * x > 3 else math.log1p(math.exp(2 * x)) / 2),
        (nn.ELU(0.5), lambda x: x if x > 0 else 0.5 * math.expm1(x)),
        (nn.CELU(0.5), lambda x: x if x > 0 else 0.5 * math.expm1(x / 0.5)),
        (nn.SELU(), lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * math.expm1(x))),
        (nn.LeakyReLU(0.1), lambda x: x if x > 0 else 0.1 * x),
        (nn.PReLU(), lambda x: x if x > 0 else 0.25 * x),
        (nn.Hardtanh(-1, 2), lambda x: min(max(x, -1), 2)),
        (nn.Hardsigmoid(), lambda x: min(max(x / 6 + 0.5, 0), 1)),
        (nn.Hardswish(), lambda x: x * min(max(x / 6 + 0.5, 0), 1)),
        (nn.Threshold(1, 9), lambda x: x if x > 1 else 9),
        (nn.Hardshrink(), lambda x: x if abs(x) > 0.5 else 0),
        (nn.Softshrink(), lambda x: math.copysign(max(abs(x) - 0.5, 0), x)),
        (nn.Softsign(), lambda x: x / (1 + abs(x))),
        (nn.Tanhshrink(), lambda x: x - math.tanh(x)),
    ],
    ids=lambda value: "" if inspect.isfunction(value) else repr(value),
)
def test_activations(layer, function, device):
    layer = copy.deepcopy(layer).to(device)
    x = lg.tensor(X, dtype=lg.float64, device=device)
    expected = [function(v) for v in X]
    assert layer.double()(x).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)
    layer.float()
    assert layer(x.float()).dtype is lg.float32
    if hasattr(layer, "inplace"):
        layer.inplace = True
        assert "inplace=True" in repr(layer)
        assert layer(x) is x
        assert x.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_activations_along_a_dimension(device):
    x = lg.randn(3, 4, device=device)
    assert close(nn.Softmax(1)(x).sum(1), lg.ones(3, device=device))
    assert close(nn.LogSoftmax(0)(x).exp(), nn.Softmax(0)(x))
    assert close(nn.Softmin(1)(x), nn.Softmax(1)(-x))
    assert close(nn.GLU()(x), x[:, :2] * x[:, 2:].sigmoid())
    assert close(nn.GLU()(x[:, None]), (x[:, :2] * x[:, 2:].sigmoid())[:, None])
    assert F.softmax(x, 1, dtype=lg.float64).dtype is lg.float64
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
        assert close(nn.Softmax()(x), nn.Softmax(1)(x))
    with pytest.raises(RuntimeError, match="Halving dimension must be even"):
        F.glu(x, 0)


def test_activation_errors():
    with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh"):
        F.gelu(lg.ones(1), "erf")
    with pytest.raises(ValueError, match="expected min_val <= max_val"):
        F.hardtanh(lg.ones(1), 2, 1)
    with pytest.raises(RuntimeError, match=r"hardtanh: max_val: value cannot be converted to type leafgrad\.float16"):
        F.hardtanh(lg.ones(1, dtype=lg.float16), -1, 1e6)
    with pytest.raises(RuntimeError, match="lambda must be greater or equal to 0"):
        F.softshrink(lg.ones(1), -1)
    with pytest.raises(RuntimeError, match="expected a floating point dtype"):
        F.gelu(lg.arange(3))
    with pytest.raises(RuntimeError, match="prelu: weight: expected 1 element or 3"):
        F.prelu(lg.ones(2, 3), lg.ones(2))
    assert F.prelu(lg.tensor(-2.0), lg.tensor([0.5])).shape == ()
    assert F.prelu(-lg.ones(2, 3), lg.arange(3).float()).tolist() == [[0, -1, -2]] * 2


@pytest.mark.parametrize("executor", [None, "numpy", "native"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.leaky_relu(x, 1e-8),
        lambda x: F.leaky_relu(x, 1e5),
        lambda x: F.elu(x, 0.3),
        lambda x: F.softplus(x, 0.1, 1e5),
        F.silu,
        F.mish,
        F.hardswish,
    ],
)
def test_in_float16_results_are_rounded_once(function, executor):
    if executor == "native":
        pytest.importorskip("leafgrad_native")
    x = lg.tensor([-700.0, -3.0, -0.1, 0.0, 0.1, 3.0, 700.0, 60000.0], dtype=lg.float16)

    def both(x):
        leaf = x.detach().requires_grad_()
        y = function(leaf)
        return y.detach(), lg.autograd.grad(y.sum(), leaf)[0]

    found = (lg.compile(both, executor=executor) if executor else both)(x)
    for a, b in zip(found, both(x.float()), strict=True):
        assert a.dtype is lg.float16
        assert a.tolist() == b.half().tolist()
    assert type(function(x.requires_grad_()).grad_fn).__name__ == type(function(x.float()).grad_fn).__name__

"""Layers, losses, initial values and gradient clipping."""

from __future__ import annotations

import copy
import inspect
import math

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.nn import functional as F, init


@pytest.fixture(autouse=True)
def _seeded():
    lg.manual_seed(0)


def close(a, b, tolerance=1e-6):
    return bool((a.double() - b.double()).abs().max() <= tolerance)


# ---- layers -------------------------------------------------------------------------------------------------------


def test_linear(device):
    layer = nn.Linear(3, 2, device=device, dtype=lg.float64)
    assert (layer.weight.shape, layer.bias.shape) == ((2, 3), (2,))
    assert layer.weight.dtype is lg.float64
    assert layer.weight.device == device
    assert layer.weight.abs().max().item() <= 1 / math.sqrt(3)
    x = lg.randn(4, 5, 3, device=device, dtype=lg.float64)
    assert close(layer(x), x @ layer.weight.t() + layer.bias)
    assert nn.Linear(3, 2, bias=False).bias is None
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        layer(lg.ones(2, 4, device=device, dtype=lg.float64))


def test_bilinear(device):
    layer = nn.Bilinear(3, 4, 2, device=device)
    a, b = lg.randn(5, 3, device=device), lg.randn(5, 4, device=device)
    expected = lg.einsum("ni,kij,nj->nk", a, layer.weight, b) + layer.bias
    assert close(layer(a, b), expected, 1e-5)


def test_linear_to_one_number(device):
    x, w = lg.arange(6.0, device=device).reshape(2, 3), lg.tensor([1.0, 0, 2], device=device, requires_grad=True)
    assert F.linear(x, w).tolist() == [4, 13]
    y = F.linear(x[1], w, lg.tensor(0.5, device=device))
    y.backward()
    assert (y.item(), w.grad.tolist()) == (13.5, [3, 4, 5])


def test_flatten_unflatten_identity():
    x = lg.randn(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Unflatten(2, (2, 2))(x).shape == (2, 3, 2, 2)
    assert nn.Identity(54, unused=3)(x) is x


def test_embedding(device):
    table = nn.Embedding(5, 3, padding_idx=-1, device=device)
    assert table.weight[4].tolist() == [0, 0, 0]
    index = lg.tensor([[0, 4], [2, 0]], device=device)
    out = table(index)
    assert out.shape == (2, 2, 3)
    assert out[1, 0].tolist() == table.weight[2].tolist()
    out.sum().backward()
    assert table.weight.grad.sum(1).tolist() == [6, 0, 3, 0, 0]
    with pytest.raises(RuntimeError, match="embedding: input: expected an integer tensor"):
        table(lg.ones(2, device=device))
    with pytest.raises(ValueError, match="padding_idx"):
        nn.Embedding(3, 2, padding_idx=3)
    frozen = nn.Embedding.from_pretrained(lg.ones(2, 2))
    assert not frozen.weight.requires_grad


def test_one_hot(device):
    assert F.one_hot(lg.tensor([0, 2], device=device)).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(lg.tensor([1], device=device), 4).tolist() == [[0, 1, 0, 0]]
    with pytest.raises(RuntimeError, match="int64"):
        F.one_hot(lg.ones(2, device=device))


def test_dropout(device):
    layer = nn.Dropout(0.25)
    x = lg.ones(100, 100, device=device, requires_grad=True)
    out = layer(x)
    kept = out != 0
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.02)
    assert close(out[kept], lg.tensor(1 / 0.75, device=device))
    out.sum().backward()
    assert close(x.grad, out.detach())
    assert layer.eval()(x) is x
    assert F.dropout(x, 1.0).abs().sum().item() == 0
    y = lg.ones(10, device=device)
    assert F.dropout(y, 0.5, inplace=True) is y
    assert set(y.tolist()) <= {0.0, 2.0}
    for bad in (-0.1, 1.1):
        with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
            nn.Dropout(bad)
        with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
            F.dropout(x, bad)


def test_batch_norm_in_training_and_evaluation(device):
    norm = nn.BatchNorm1d(3, device=device)
    x = lg.randn(50, 3, 4, device=device) * 3 + 2
    out = norm(x)
    assert close(out.mean((0, 2)), lg.zeros(3, device=device), 1e-5)
    assert close(out.var((0, 2), correction=0), lg.ones(3, device=device), 1e-3)
    assert close(norm.running_mean, x.mean((0, 2)) * 0.1, 1e-5)
    assert close(norm.running_var, x.var((0, 2)) * 0.1 + 0.9, 1e-5)
    assert norm.num_batches_tracked.item() == 1
    norm.eval()
    before = norm.running_mean.tolist()
    again = norm(x)
    shape = (1, 3, 1)
    mean, var = norm.running_mean.reshape(shape), norm.running_var.reshape(shape)
    assert close(again, (x - mean) / (var + 1e-5).sqrt(), 1e-5)
    assert norm.running_mean.tolist() == before


def test_batch_norm_averages_all_batches_without_momentum(device):
    norm = nn.BatchNorm1d(2, momentum=None, device=device)
    batches = [lg.randn(8, 2, device=device) for _ in range(3)]
    for x in batches:
        norm(x)
    assert close(norm.running_mean, sum(x.mean(0) for x in batches) / 3)
    norm.reset_running_stats()
    assert norm.num_batches_tracked.item() == 0


def test_batch_norm_options_and_errors():
    bare = nn.BatchNorm1d(2, affine=False, track_running_stats=False)
    assert list(bare.state_dict()) == []
    assert close(bare.eval()(lg.randn(20, 2)).mean(0), lg.zeros(2), 1e-5)
    assert nn.BatchNorm1d(2, bias=False).bias is None
    with pytest.raises(ValueError, match=r"expected 2D or 3D input \(got 1D input\)"):
        nn.BatchNorm1d(2)(lg.ones(2))
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        nn.BatchNorm1d(2)(lg.ones(1, 2))
    with pytest.raises(RuntimeError, match="expected 2 channels in dimension 1, got 3"):
        nn.BatchNorm1d(2)(lg.ones(4, 3))
    with pytest.raises(RuntimeError, match="running_mean must be defined in evaluation mode"):
        F.batch_norm(lg.ones(4, 3), None, None)


def test_layer_norm(device):
    norm = nn.LayerNorm((3, 4), device=device)
    x = lg.randn(5, 3, 4, device=device) * 2 + 1
    assert close(norm(x).mean((1, 2)), lg.zeros(5, device=device), 1e-5)
    assert nn.LayerNorm(4, bias=False).bias is None
    assert list(nn.LayerNorm(4, elementwise_affine=False).parameters()) == []
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[3, 4\], expected input with shape \[\*, 3, 4\]"):
        norm(x.transpose(1, 2))


def test_normalize_and_cosine_similarity(device):
    x = lg.randn(4, 3, device=device)
    assert close(F.normalize(x).norm(2, 1), lg.ones(4, device=device))
    assert close(F.cosine_similarity(x, x * 2), lg.ones(4, device=device))
    assert F.normalize(lg.zeros(1, 3, device=device)).tolist() == [[0, 0, 0]]


# ---- activations --------------------------------------------------------------------------------------------------

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
    with pytest.raises(RuntimeError, match="lambda must be greater or equal to 0"):
        F.softshrink(lg.ones(1), -1)
    with pytest.raises(RuntimeError, match="expected a floating point dtype"):
        F.gelu(lg.arange(3))
    with pytest.raises(RuntimeError, match="prelu: weight: expected 1 element or 3"):
        F.prelu(lg.ones(2, 3), lg.ones(2))
    assert F.prelu(lg.tensor(-2.0), lg.tensor([0.5])).shape == ()
    assert F.prelu(-lg.ones(2, 3), lg.arange(3).float()).tolist() == [[0, -1, -2]] * 2


# ---- losses -------------------------------------------------------------------------------------------------------

ELEMENTWISE = {
    nn.MSELoss: lambda x, t: (x - t) ** 2,
    nn.L1Loss: lambda x, t: abs(x - t),
    nn.SmoothL1Loss: lambda x, t: 0.5 * (x - t) ** 2 if abs(x - t) < 1 else abs(x - t) - 0.5,
    nn.HuberLoss: lambda x, t: 0.5 * (x - t) ** 2 if abs(x - t) < 1 else abs(x - t) - 0.5,
    nn.BCELoss: lambda x, t: -(t * math.log(x) + (1 - t) * math.log(1 - x)),
    nn.BCEWithLogitsLoss: lambda x, t: math.log1p(math.exp(x)) - t * x,
}


@pytest.mark.parametrize("kind", ELEMENTWISE)
def test_elementwise_losses(kind, device):
    x = [0.2, 0.9, 0.5, 0.01] if kind is nn.BCELoss else [-3.0, 0.2, 4.0, 0.6]
    t = [0.3, 1.0, 0.0, 0.6]
    each = [ELEMENTWISE[kind](*pair) for pair in zip(x, t, strict=True)]
    a, b = (lg.tensor(v, dtype=lg.float64, device=device) for v in (x, t))
    assert kind(reduction="none")(a, b).tolist() == pytest.approx(each)
    assert kind(reduction="sum")(a, b).item() == pytest.approx(sum(each))
    assert kind()(a, b).item() == pytest.approx(sum(each) / 4)
    with pytest.raises(ValueError, match="avg is not a valid value for reduction"):
        kind(reduction="avg")(a, b)


def test_shape_parameters_of_losses():
    x, t = lg.tensor([0.0, 3.0]), lg.zeros(2)
    assert F.smooth_l1_loss(x, t, beta=2, reduction="none").tolist() == [0, 2]
    assert F.smooth_l1_loss(x, t, beta=0, reduction="none").tolist() == [0, 3]
    assert F.huber_loss(x, t, delta=2, reduction="none").tolist() == [0, 4]
    with pytest.raises(RuntimeError, match="delta: expected a number > 0"):
        F.huber_loss(x, t, delta=0)
    with pytest.raises(ValueError, match="beta: expected a number >= 0"):
        F.smooth_l1_loss(x, t, beta=-1)


def test_a_loss_given_tensors_at_construction_says_how_to_use_it():
    for kind in (nn.L1Loss, nn.MSELoss, nn.SmoothL1Loss, nn.KLDivLoss):
        with pytest.raises(TypeError, match=rf"call it: nn\.{kind.__name__}\(\)\(input, target\)"):
            kind(lg.ones(1), lg.ones(1))


@pytest.mark.parametrize("function", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_sizes_that_broadcast_by_accident_warn(function):
    with pytest.warns(UserWarning, match="that is different to the input size") as caught:
        function(lg.ones(3), lg.ones(3, 1))
    assert caught[0].filename == __file__


def test_binary_losses_at_the_edges(device):
    x = lg.tensor([0.0, 1.0, 0.0], device=device, requires_grad=True)
    loss = F.binary_cross_entropy(x, lg.tensor([1.0, 0.0, 0.0], device=device), reduction="none")
    assert loss.tolist() == [100, 100, 0]
    loss.sum().backward()
    assert x.grad.tolist()[:2] == pytest.approx([-1e12, 1e12])
    with pytest.raises(RuntimeError, match="input should be between 0 and 1"):
        F.binary_cross_entropy(lg.tensor([2.0]), lg.zeros(1))
    z = lg.tensor([-500.0, 500.0], device=device)
    assert F.binary_cross_entropy_with_logits(z, 1 - lg.sigmoid(z), reduction="sum").item() == 1000
    with pytest.raises(ValueError, match="Target size"):
        F.binary_cross_entropy_with_logits(lg.ones(2), lg.ones(2, 1))
    with pytest.raises(ValueError, match="different to the input size"):
        F.binary_cross_entropy(lg.ones(2), lg.ones(2, 1))


def test_kl_divergence(device):
    p = lg.tensor([[0.2, 0.8], [1.0, 0.0]], device=device)
    q = lg.tensor([[0.5, 0.5], [0.25, 0.75]], device=device)
    expected = 0.2 * math.log(0.4) + 0.8 * math.log(1.6) + math.log(4)
    assert nn.KLDivLoss(reduction="sum")(q.log(), p).item() == pytest.approx(expected)
    assert nn.KLDivLoss(reduction="batchmean")(q.log(), p).item() == pytest.approx(expected / 2)
    twice = nn.KLDivLoss(reduction="sum", log_target=True)(q.log(), q.log())
    assert twice.item() == 0
    with pytest.warns(UserWarning, match="'batchmean'"):
        nn.KLDivLoss()(q.log(), q)


def test_cross_entropy_by_hand(device):
    logits = lg.tensor([[1.0, 2.0, 0.5], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0]], device=device)
    target = lg.tensor([1, 0, -100], device=device)
    first = -(2 - math.log(math.e + math.e**2 + math.e**0.5))
    second = math.log(2 + math.e**3)
    none = nn.CrossEntropyLoss(reduction="none")(logits, target)
    assert none.tolist() == pytest.approx([first, second, 0], rel=1e-6)
    assert nn.CrossEntropyLoss()(logits, target).item() == pytest.approx((first + second) / 2, rel=1e-6)
    assert nn.CrossEntropyLoss(reduction="sum")(logits, target).item() == pytest.approx(first + second, rel=1e-6)
    same = nn.NLLLoss()(F.log_softmax(logits, 1), target)
    assert same.item() == pytest.approx((first + second) / 2, rel=1e-6)
    weight = lg.tensor([3.0, 1.0, 1.0], device=device)
    weighted = nn.CrossEntropyLoss(weight).to(device)(logits, target).item()
    assert weighted == pytest.approx((first + 3 * second) / 4, rel=1e-6)
    one = nn.CrossEntropyLoss()(logits[0], target[0])
    assert one.item() == pytest.approx(first, rel=1e-6)


def test_cross_entropy_of_classes_and_of_probabilities_agree(device):
    logits = lg.randn(6, 4, 2, device=device, dtype=lg.float64)
    target = lg.randint(0, 4, (6, 2), device=device)
    certain = F.one_hot(target, 4).transpose(1, 2).double()
    weight = lg.tensor([1.0, 2.0, 0.5, 1.5], device=device, dtype=lg.float64)
    for smoothing in (0.0, 0.3):
        for reduction in ("none", "sum"):
            options = {"reduction": reduction, "label_smoothing": smoothing}
            a = F.cross_entropy(logits, target, weight, **options)
            b = F.cross_entropy(logits, certain, weight, **options)
            assert close(a, b, 1e-12)
        a = F.cross_entropy(logits, target, label_smoothing=smoothing)
        assert close(a, F.cross_entropy(logits, certain, label_smoothing=smoothing), 1e-12)


def test_cross_entropy_errors():
    logits = lg.ones(2, 3)
    with pytest.raises(IndexError, match="is out of bounds: expected classes from 0 to 2"):
        F.cross_entropy(logits, lg.tensor([0, 3]))
    with pytest.raises(IndexError, match="is out of bounds"):
        F.cross_entropy(logits, lg.tensor([0, -1]))
    with pytest.raises(ValueError, match=r"Expected input batch_size \(2\) to match target batch_size \(3\)"):
        F.cross_entropy(logits, lg.tensor([0, 1, 2]))
    with pytest.raises(RuntimeError, match=r"target: expected size \[2\]"):
        F.nll_loss(logits, lg.tensor([[0], [1]]))
    with pytest.raises(RuntimeError, match=r"expected class numbers of dtype int64, got leafgrad\.float32"):
        F.cross_entropy(logits, lg.ones(2))
    with pytest.raises(RuntimeError, match="for all 3 classes or no classes"):
        F.cross_entropy(logits, lg.tensor([0, 1]), weight=lg.ones(2))
    with pytest.raises(RuntimeError, match="ignore_index is for targets that are classes"):
        F.cross_entropy(lg.ones(2, 3), lg.ones(2, 3), ignore_index=1)
    with pytest.raises(RuntimeError, match="label_smoothing must be between"):
        F.cross_entropy(logits, lg.tensor([0, 1]), label_smoothing=2)
    with pytest.raises(RuntimeError, match="Expected floating point type for target with class probabilities"):
        F.cross_entropy(logits, lg.ones(2, 3).long())
    with pytest.raises(ValueError, match="at least 1 dimension"):
        F.nll_loss(lg.tensor(1.0), lg.tensor(0))


@pytest.mark.parametrize(
    "name", ["mse_loss", "huber_loss", "kl_div", "binary_cross_entropy", "cross_entropy", "nll_loss"]
)
def test_losses_want_tensors(name):
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'input' must be Tensor, not float"):
        getattr(F, name)(1.0, lg.ones(1))
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'target' must be Tensor, not float"):
        getattr(F, name)(lg.ones(1), 1.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.cross_entropy(x, lg.tensor([1, 0, 2]), label_smoothing=0.1),
        lambda x: F.layer_norm(x, (4,)),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.binary_cross_entropy_with_logits(x, lg.full((3, 4), 0.3, dtype=lg.float64)),
        lambda x: F.gelu(x) + F.silu(x) + F.mish(x) + F.softplus(x),
        lambda x: F.normalize(x),
        lambda x: F.bilinear(x, x, lg.ones(2, 4, 4, dtype=lg.float64)),
    ],
)
def test_second_derivatives(function):
    x = lg.randn(3, 4, dtype=lg.float64, requires_grad=True)
    assert lg.autograd.gradcheck(function, (x,))
    assert lg.autograd.gradgradcheck(function, (x,))


# ---- initial values -----------------------------------------------------------------------------------------------


def test_fills(device):
    w = lg.empty(3, 4, device=device, requires_grad=True)
    assert init.ones_(w) is w
    assert w.sum().item() == 12
    assert init.zeros_(w).abs().sum().item() == 0
    assert init.constant_(w, 2.5)[0, 0].item() == 2.5
    assert init.eye_(w).tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert w.is_leaf
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions are supported"):
        init.eye_(lg.ones(3))


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("uniform_", {"a": -1, "b": 3}, 4 / math.sqrt(12)),
        ("normal_", {"mean": 5, "std": 2}, 2),
        ("xavier_uniform_", {"gain": 2}, 2 * math.sqrt(2 / 500)),
        ("xavier_normal_", {}, math.sqrt(2 / 500)),
        ("kaiming_uniform_", {"nonlinearity": "relu"}, math.sqrt(2 / 300)),
        ("kaiming_normal_", {"mode": "fan_out", "a": 0.5}, math.sqrt(2 / 1.25 / 200)),
        ("trunc_normal_", {"std": 1}, 0.8796),
        ("trunc_normal_", {"mean": -1.5, "a": 0, "b": 3}, 0.3862),
    ],
)
def test_spread(name, options, expected, device):
    w = getattr(init, name)(lg.empty(200, 300, device=device), **options)
    assert w.std().item() == pytest.approx(expected, rel=0.02)


def test_truncation(device):
    w = init.trunc_normal_(lg.empty(10_000, device=device), mean=1, std=2, a=0, b=4)
    assert w.min().item() >= 0
    assert w.max().item() <= 4
    with pytest.raises(ValueError, match="expected a < b"):
        init.trunc_normal_(w, a=1, b=1)


@pytest.mark.parametrize("size", [(5, 3), (3, 5), (4, 4), (2, 3, 2)])
def test_orthogonal(size, device):
    w = init.orthogonal_(lg.empty(*size, dtype=lg.float64, device=device), gain=2).reshape(size[0], -1)
    gram = w @ w.t() if w.shape[0] <= w.shape[1] else w.t() @ w
    assert close(gram, lg.eye(len(gram), dtype=lg.float64, device=device) * 4, 1e-12)


def test_gains_and_errors():
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("leaky_relu", 0.5) == math.sqrt(2 / 1.25)
    with pytest.raises(ValueError, match="Unsupported nonlinearity cube"):
        init.calculate_gain("cube")
    with pytest.raises(ValueError, match="negative_slope True not a valid number"):
        init.calculate_gain("leaky_relu", True)
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        init.xavier_uniform_(lg.ones(3))
    with pytest.raises(ValueError, match="Mode fan_mid not supported"):
        init.kaiming_normal_(lg.ones(3, 3), mode="fan_mid")
    with pytest.raises(ValueError, match="2 or more dimensions"):
        init.orthogonal_(lg.ones(3))


def test_a_seed_decides_the_parameters():
    lg.manual_seed(3)
    a = nn.Linear(4, 4)
    lg.manual_seed(3)
    b = nn.Linear(4, 4)
    assert a.weight.tolist() == b.weight.tolist()
    generator = lg.Generator().manual_seed(5)
    c = init.normal_(lg.empty(3), generator=generator)
    d = init.normal_(lg.empty(3), generator=generator.manual_seed(5))
    assert c.tolist() == d.tolist()


# ---- utilities ----------------------------------------------------------------------------------------------------


def with_gradients(device, *gradients):
    params = [nn.Parameter(lg.zeros(len(g), device=device)) for g in gradients]
    for p, g in zip(params, gradients, strict=True):
        p.grad = lg.tensor(g, device=device)
    return [*params, nn.Parameter(lg.zeros(1, device=device))]


def test_clip_grad_norm(device):
    params = with_gradients(device, [3.0, 0.0], [4.0])
    assert nn.utils.clip_grad_norm_(params, 1.0).item() == 5
    assert params[0].grad.tolist() == pytest.approx([0.6, 0])
    assert params[1].grad.tolist() == pytest.approx([0.8])
    assert nn.utils.clip_grad_norm_(iter(params), 9.0).item() == pytest.approx(1)
    assert params[1].grad.tolist() == pytest.approx([0.8])
    assert nn.utils.clip_grad_norm_(params, 1.0, norm_type=float("inf")).item() == pytest.approx(0.8)
    assert nn.utils.clip_grad_norm_(params[2], 1.0).item() == 0
    params[0].grad.fill_(float("nan"))
    assert nn.utils.clip_grad_norm_(params, 1.0).isnan().item()
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


def test_clip_grad_value(device):
    params = with_gradients(device, [3.0, -0.5, -9.0])
    nn.utils.clip_grad_value_(params, 1)
    assert params[0].grad.tolist() == [1, -0.5, -1]


def test_parameters_as_a_vector(device):
    net = nn.Linear(2, 3, device=device)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (9,)
    assert vector.requires_grad
    nn.utils.vector_to_parameters(lg.arange(9, device=device).float(), net.parameters())
    assert net.weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert net.bias.tolist() == [6, 7, 8]
    with pytest.raises(RuntimeError, match="expected at least 9 elements, got 8"):
        nn.utils.vector_to_parameters(lg.ones(8, device=device), net.parameters())
    with pytest.raises(TypeError, match="vec: expected a Tensor, got list"):
        nn.utils.vector_to_parameters([1.0], net.parameters())


def test_unflatten_takes_sizes():
    for sizes in ("22", (2, "2"), 4):
        with pytest.raises(TypeError, match="unflattened_size must be tuple of ints"):
            nn.Unflatten(1, sizes)


@pytest.mark.parametrize(
    ("shape", "remedy"),
    [
        ((3, 2, 2, 2), r"flatten it first, with nn.Flatten\(\)"),
        ((8, 3), "transpose it with .mT"),
        ((3, 7), "give the layer as many in_features"),
        ((7,), "give the layer as many in_features"),
        ((), "give the layer as many in_features"),
    ],
)
def test_an_input_that_does_not_go_through_linear(shape, remedy):
    expected = rf"expected a last dimension of 8, the in_features of weight \(2, 8\), got .*; {remedy}"
    with pytest.raises(RuntimeError, match=expected):
        nn.Linear(8, 2)(lg.ones(shape))

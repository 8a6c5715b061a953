"""Layers that are not of one family, and initial values."""

from __future__ import annotations

import math

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.nn import functional as F, init

TESTS = "nn.functional.linear nn.linear"


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


def test_the_slope_of_a_cosine_of_short_vectors_is_that_of_their_lengths(t):
    def slopes(a, b, eps):
        return t.autograd.grad(t.nn.functional.cosine_similarity(a, b, 0, eps=eps), (a, b))

    a, b = (t.tensor(v, dtype=t.float64, requires_grad=True) for v in ([0.3, 0.4], [3.0, 4.0]))
    expected = {0.1: [0.0, 0.0], 1.0: [0.3, 0.4]}  # b/|b| - (a.b / |b|) a/|a| where eps is a's length
    for eps, slope in expected.items():
        for function in (slopes, lg.compile(slopes) if t is lg else slopes):
            of_a, of_b = function(a, b, eps)
            assert of_a.tolist() == pytest.approx(slope, abs=1e-12)
            assert of_b.tolist() == pytest.approx([0, 0], abs=1e-12)


def test_the_cosine_of_long_vectors(device):
    x = lg.full((1, 64), 256.0, dtype=lg.float16, device=device)  # the product of two such lengths is infinite
    y = x * lg.tensor([1.0, -1.0, 1.0, 1.0], dtype=lg.float16, device=device).repeat(16)
    for other, cosine in ((x, 1.0), (-x, -1.0), (y, 0.5)):
        assert F.cosine_similarity(x, other).item() == pytest.approx(cosine, abs=2**-8)
    longer = lg.full((1, 64), 1e20, device=device)
    assert F.cosine_similarity(longer, longer).isfinite().all()


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


def test_a_number_may_be_saved_in_one_dimension():
    norm = nn.BatchNorm1d(2)
    norm.load_state_dict({**norm.state_dict(), "num_batches_tracked": lg.tensor([5])})
    assert norm.num_batches_tracked.equal(lg.tensor(5))

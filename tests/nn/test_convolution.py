"""Convolution layers and functions: against SciPy, derivatives of both orders, devices, compiled, and their errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import correlate

import leafgrad as lg
from leafgrad import nn
from leafgrad.autograd import gradcheck, gradgradcheck
from leafgrad.nn import functional as F
from leafgrad.ops import convolution

TESTS = "nn.functional.convolution nn.functional.windows"


def draw(*shape, seed=0, **options):
    return lg.tensor(np.random.default_rng(seed).normal(size=shape), **options)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [lg.float32, lg.float64, lg.float16])
def test_sums_of_correlations(dims, dtype, device):
    sizes, kernel = (7, 6, 5)[:dims], (3, 2, 2)[:dims]
    x, w, b = draw(2, 3, *sizes), draw(4, 3, *kernel, seed=1), draw(4, seed=2)
    result = getattr(F, f"conv{dims}d")(*(t.to(dtype).to(device) for t in (x, w, b)))
    assert (result.dtype, result.device) == (dtype, device)
    for n in range(2):
        for o in range(4):
            want = sum(correlate(x[n, c].numpy(), w[o, c].numpy(), "valid") for c in range(3)) + b[o].item()
            tolerance = {2: 3e-2, 4: 1e-5, 8: 1e-12}[dtype.itemsize]
            np.testing.assert_allclose(result[n, o].cpu().double().numpy(), want, rtol=tolerance, atol=tolerance)


def test_many_blocks_give_what_one_gives():
    x, w = draw(70, 4, 9, 40), draw(6, 4, 3, 3, seed=1)
    whole = F.conv2d(x, w, padding=1)
    assert whole.is_contiguous()
    assert (whole[13:15] - F.conv2d(x[13:15], w, padding=1)).abs().max() < 1e-12
    g = draw(*whole.shape, seed=2)
    back = F.conv_transpose2d(g, w, padding=1)
    assert (back[50:51] - F.conv_transpose2d(g[50:51], w, padding=1)).abs().max() < 1e-12


@pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf")])
@pytest.mark.parametrize("stride", [1, 2])
def test_long_kernels_make_few_elements(stride, bad, monkeypatch):
    x, w = draw(2, 4, 2000), draw(4, 1, 50, seed=1, requires_grad=True)
    x[0, 0, 75] = bad
    made, columns = [], convolution._columns
    monkeypatch.setattr(convolution, "_columns", lambda *args: made.append(columns(*args)) or made[-1])
    y = F.conv1d(x, w, stride=stride, groups=4)
    assert sum(block.size for block in made) < y.numel() * 10 or bad  # of 50 in each window
    parts = np.lib.stride_tricks.sliding_window_view(x.numpy(), 50, -1)[..., ::stride, :]
    np.testing.assert_allclose(y.detach().numpy(), (parts * w.detach().numpy()).sum(-1), atol=1e-11)
    y.sum().backward()
    np.testing.assert_allclose(w.grad[:, 0].numpy(), parts.sum((0, 2)), atol=1e-11)


@pytest.mark.parametrize(
    ("shapes", "options"),
    [
        ([(2, 4, 999), (8, 2, 101), (8,)], {"groups": 2, "padding": 50}),
        ([(3, 3, 2001), (2, 3, 70), (2,)], {"stride": 3, "padding": (7,)}),
        ([(3, 2, 40, 61), (1, 2, 3, 33), (1,)], {"stride": (2, 1), "dilation": (2, 1)}),
    ],
)
def test_windows_taken_together_give_what_each_gives(shapes, options, monkeypatch):
    def derivatives():
        x, w, b = (draw(*shape, seed=i, requires_grad=True) for i, shape in enumerate(shapes))
        y = (F.conv1d if x.ndim == 3 else F.conv2d)(x, w, b, **options)
        first = lg.autograd.grad(y, (x, w, b), draw(*y.shape, seed=4), create_graph=True)
        again = [draw(*g.shape, seed=5 + i) for i, g in enumerate(first)]
        return [y, *first, *lg.autograd.grad(first[:2], (x, w), again[:2])]

    chosen, known = [], convolution._together
    monkeypatch.setattr(convolution, "_together", lambda *args: chosen.append(known(*args)) or chosen[-1])
    together = derivatives()
    assert max(chosen) >= 8
    monkeypatch.setattr(convolution, "_together", lambda *args: 1)
    for one, other in zip(together, derivatives(), strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("transposed", [False, True])
def test_derivatives_of_both_orders(transposed, groups):
    options = {"stride": 2, "padding": 1, "dilation": (1, 2), "groups": groups}
    x = draw(2, 2, 4, 5, requires_grad=True)
    w, b = draw(2, 2 // groups, 2, 2, seed=1, requires_grad=True), draw(2, seed=2, requires_grad=True)

    def call(x, w, b):
        return F.conv_transpose2d(x, w, b, **options) if transposed else F.conv2d(x, w, b, **options)

    assert gradcheck(call, (x, w, b))
    assert gradgradcheck(call, (x, w, b))


def test_the_transpose_is_the_gradient():
    x, w = draw(2, 3, 7, 6, requires_grad=True), draw(4, 3, 3, 2, seed=1)
    y = F.conv2d(x, w, stride=2, padding=1)
    g = draw(*y.shape, seed=2)
    (gradient,) = lg.autograd.grad(y, x, g)
    transposed = nn.ConvTranspose2d(4, 3, (3, 2), stride=2, padding=1, bias=False, dtype=lg.float64)
    transposed.weight.data.copy_(w)
    assert (transposed(g, output_size=(7, 6)) - gradient).abs().max() < 1e-12


def test_unfolding_and_folding():
    x, w = draw(2, 3, 6, 5), draw(4, 3, 3, 2, seed=1)
    columns = F.unfold(x, (3, 2), padding=1)
    assert columns.shape == (2, 18, 6 * 6)
    product = (w.reshape(4, -1) @ columns).reshape(2, 4, 6, 6)
    assert (product - F.conv2d(x, w, padding=1)).abs().max() < 1e-12
    counts = F.fold(F.unfold(lg.ones(1, 1, 3, 3), 2), 3, 2)
    assert counts[0, 0].tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]


def test_padding_modes_and_words():
    x = draw(1, 2, 5, 6)
    for mode in ("reflect", "replicate", "circular"):
        layer = nn.Conv2d(2, 3, (3, 4), padding="same", padding_mode=mode, dtype=lg.float64)
        assert layer(x).shape == (1, 3, 5, 6)
        assert (layer(x) - F.conv2d(F.pad(x, (1, 2, 1, 1), mode), layer.weight, layer.bias)).abs().max() < 1e-12
    same = nn.Conv2d(2, 3, 4, padding="same", dtype=lg.float64)
    assert (same(x) - F.conv2d(F.pad(x, (1, 2, 1, 2)), same.weight, same.bias)).abs().max() < 1e-12
    assert nn.Conv2d(2, 3, 4, padding="valid", dtype=lg.float64)(x).shape == (1, 3, 2, 3)


def test_parameters():
    layer = nn.Conv2d(4, 6, (3, 2), groups=2)
    assert {name: tuple(p.shape) for name, p in layer.state_dict().items()} == {"weight": (6, 2, 3, 2), "bias": (6,)}
    assert layer.weight.abs().max() <= 12**-0.5
    assert layer.bias.abs().max() <= 12**-0.5
    assert nn.ConvTranspose2d(4, 6, (3, 2), groups=2).weight.shape == (4, 3, 3, 2)
    assert repr(nn.Conv1d(4, 4, 3, 2, 1, 2, 4, False, "reflect")) == (
        "Conv1d(4, 4, kernel_size=(3,), stride=(2,), padding=(1,), dilation=(2,), groups=4, bias=False, "
        "padding_mode=reflect)"
    )
    assert repr(nn.ConvTranspose2d(1, 2, 3, 2, 1, 1)) == (
        "ConvTranspose2d(1, 2, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), output_padding=(1, 1))"
    )
    assert (
        F.conv2d(lg.ones(1, 1, 3, 3, requires_grad=True), lg.ones(1, 1, 2, 2)).grad_fn.name() == "ConvolutionBackward0"
    )


def network():
    lg.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 6, 3, stride=2, groups=2), nn.Tanh(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(6, 3),
    ).double()  # fmt: skip


def test_a_compiled_training_step_equals_the_eager_one():
    x, y = draw(8, 1, 6, 6), lg.arange(8) % 3
    results = []
    for compiled in (False, True):
        net = network()
        adam = lg.optim.Adam(net.parameters(), lr=0.01)

        def step(x, y, net=net, adam=adam):
            adam.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            adam.step()
            return loss

        run = lg.compile(step) if compiled else step
        losses = [run(x, y).item() for _ in range(5)]
        results.append([*losses, *(p.detach() for p in net.parameters())])
    assert results[0][4] < results[0][0]
    for eager, compiled in zip(*results, strict=True):
        assert abs(eager - compiled).max() < 1e-12 if isinstance(eager, lg.Tensor) else abs(eager - compiled) < 1e-12


def test_a_compiled_gradient_penalty_equals_the_eager_one(device):
    net = network().to(device)
    x = draw(4, 1, 6, 6).to(device).requires_grad_()

    def penalty(x):
        (g,) = lg.autograd.grad(net(x).sum(), x, create_graph=True)
        loss = (g * g).sum()
        return loss, *lg.autograd.grad(loss, [net[0].weight, net[2].weight, net[2].bias])

    compiled = lg.compile(penalty)
    for _ in range(3):
        for eager, ours in zip(penalty(x), compiled(x), strict=True):
            assert (eager - ours).abs().max().item() < 1e-12


# ---- errors ---------------------------------------------------------------------------------------------------------

X = (2, 4, 6, 6)
WRONG = {
    "channels": (lambda x: F.conv2d(x, lg.ones(4, 3, 3, 3)), r"conv2d: .* to have 3 channels, but got 4 channels"),
    "dims": (lambda x: F.conv2d(x[0, 0], lg.ones(4, 4, 3, 3)), r"Expected 3D \(unbatched\) or 4D \(batched\)"),
    "small": (lambda x: F.conv2d(x, lg.ones(4, 4, 7, 7)), r"input size per channel: \(6 x 6\). Kernel size: \(7 x 7\)"),
    "stride": (
        lambda x: F.conv2d(x, lg.ones(4, 4, 3, 3), stride=0),
        r"conv2d: stride: expected at least 1, got \[0, 0\]",
    ),
    "pairs": (
        lambda x: F.conv2d(x, lg.ones(4, 4, 3, 3), padding=(1, 1, 1)),
        r"padding: expected an int or a tuple of 2",
    ),
    "bias": (lambda x: F.conv2d(x, lg.ones(4, 4, 3, 3), lg.ones(3)), r"expected bias to be 1-dimensional with 4"),
    "dtype": (lambda x: F.conv2d(x.double(), lg.ones(4, 4, 3, 3)), r"Input type \(leafgrad.float64\) and weight type"),
    "words": (lambda x: F.conv2d(x, lg.ones(4, 4, 3, 3), padding="full"), r"Invalid padding string: 'full'"),
    "output": (
        lambda x: F.conv_transpose2d(x, lg.ones(4, 4, 3, 3), output_padding=1),
        r"output padding must be smaller than either stride or dilation",
    ),
    "blocks": (lambda x: F.unfold(x, 7), r"calculated shape of the array of sliding blocks as \(0, 0\)"),
    "columns": (lambda x: F.fold(lg.ones(2, 16, 8), 4, 2), r"sliding blocks 3 x 3 = 9, but got input.size\(2\)=8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    call, pattern = WRONG[name]
    with pytest.raises(RuntimeError, match=pattern):
        call(lg.ones(*X))


def test_errors_of_arguments():
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        F.conv2d([1.0], lg.ones(4, 4, 3, 3))
    with pytest.raises(TypeError, match="argument 'stride' must be int or tuple of ints, not float"):
        F.conv2d(lg.ones(*X), lg.ones(4, 4, 3, 3), stride=1.5)
    with pytest.raises(TypeError, match=r"Conv2d\(\): argument 'in_channels' must be int, not float"):
        nn.Conv2d(4.0, 4, 3)
    for options, pattern in (
        ({"groups": 3}, "in_channels must be divisible by groups, got 4 and 3"),
        ({"padding": "full"}, "Invalid padding string 'full'"),
        ({"padding": "same", "stride": 2}, "not supported for strided convolutions"),
        ({"padding_mode": "zero"}, "padding_mode must be one of zeros, reflect"),
    ):
        with pytest.raises(ValueError, match=pattern):
            nn.Conv2d(4, 4, 3, **options)
    with pytest.raises(ValueError, match='Only "zeros" padding mode'):
        nn.ConvTranspose1d(4, 4, 3, padding_mode="reflect")

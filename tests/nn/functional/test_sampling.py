"""Images read at any places, filters that skip nothing, and the loss of sequences without alignment."""

from __future__ import annotations

import itertools
import math

import numpy as np
import parity
import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.autograd import gradcheck, gradgradcheck
from leafgrad.nn import functional as F

TESTS = "nn.functional.sequence_loss"

RNG = np.random.default_rng(7)

# ---- grids ----------------------------------------------------------------------------------------------------------


def test_the_grid_of_the_identity():
    theta = lg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    inner = F.affine_grid(theta, (1, 1, 2, 2), align_corners=False)
    assert inner.tolist() == [[[[-0.5, -0.5], [0.5, -0.5]], [[-0.5, 0.5], [0.5, 0.5]]]]
    assert F.affine_grid(theta, (1, 1, 1, 2), align_corners=True).tolist() == [[[[-1, 0], [1, 0]]]]
    with pytest.raises(ValueError, match="Expected a batch of 2D affine matrices"):
        F.affine_grid(theta, (1, 1, 2, 2, 2), align_corners=True)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("aligned", [False, True])
def test_the_identity_gives_the_image_back(mode, aligned, device):
    x = lg.tensor(RNG.standard_normal((1, 2, 3, 4)), device=device)
    theta = lg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], dtype=lg.float64, device=device)
    grid = F.affine_grid(theta, x.shape, align_corners=aligned)
    same = F.grid_sample(x, grid, mode, "border", align_corners=aligned)
    assert same.device == device
    np.testing.assert_allclose(same.cpu().numpy(), x.cpu().numpy(), rtol=1e-12, atol=1e-12)


def test_outside_of_an_image():
    x = lg.tensor([[[[1.0, 2.0, 4.0]]]])
    grid = lg.tensor([[[[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0]]]])
    for padding, expected in (("zeros", [0, 2, 0]), ("border", [1, 2, 4]), ("reflection", [2, 2, 2])):
        got = F.grid_sample(x, grid, padding_mode=padding, align_corners=True)
        assert got.reshape(-1).tolist() == expected
        nearest = F.grid_sample(x, grid, "nearest", padding, align_corners=True)
        assert nearest.reshape(-1).tolist() == expected


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("dtype", [lg.float16, lg.float32])
def test_the_dtype_of_an_image_stays_and_reaches_all_of_it(mode, dtype):
    x = lg.arange(90.0).expand(1, 1, 90, 90).to(dtype).requires_grad_()  # more elements than float16 can count
    grid = lg.tensor([[[[-1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]]], dtype=dtype, requires_grad=True)
    y = F.grid_sample(x, grid, mode, "border", align_corners=True)
    assert y.dtype is dtype
    assert y.tolist() == [[[[0, 44 if mode == "nearest" else 44.5, 89]]]]
    y.sum().backward()
    assert x.grad.dtype is grid.grad.dtype is dtype
    assert (grid.grad == 0).all() if mode == "nearest" else grid.grad[0, 0, 1, 0] != 0


PLACES = RNG.uniform(-1.7, 1.7, (2, 5, 4, 2))


@pytest.mark.parametrize(
    ("mode", "padding", "aligned"),
    list(itertools.product(["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"], [False, True])),
)
def test_grid_sample_as_pytorch(mode, padding, aligned):
    def call(t, x, grid):
        return t.nn.functional.grid_sample(x, grid, mode, padding, aligned)

    parity.compare(call, RNG.standard_normal((2, 3, 4, 6)), PLACES, order=0 if mode == "nearest" else 1, rtol=1e-9)
    if mode != "bicubic":
        grid = RNG.uniform(-1.5, 1.5, (1, 3, 2, 4, 3))
        parity.compare(call, RNG.standard_normal((1, 2, 3, 4, 5)), grid, order=0 if mode == "nearest" else 1, rtol=1e-9)


@pytest.mark.parametrize("aligned", [False, True])
def test_affine_grid_as_pytorch(aligned):
    def call(t, theta):
        size = (2, 3, 4, 5) if theta.shape[1] == 2 else (2, 3, 4, 2, 5)
        return t.nn.functional.affine_grid(theta, size, align_corners=aligned)

    parity.compare(call, RNG.standard_normal((2, 2, 3)))
    parity.compare(call, RNG.standard_normal((2, 3, 4)))


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("padding", ["border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_places_that_are_no_numbers_count_as_the_first(mode, padding, aligned):
    x = lg.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    grid = lg.tensor([[[[math.nan, 0.0], [math.nan, math.nan], [-1.0, 0.0]]]], requires_grad=True)
    y = F.grid_sample(x, grid, mode, padding, aligned)
    assert y.reshape(-1).tolist() == [4, 1, 4]
    assert lg.autograd.grad(y.sum(), grid)[0].isfinite().all()
    outside = F.grid_sample(x, grid[:, :, :2], "nearest", align_corners=aligned)
    assert outside.reshape(-1).tolist() == [0, 0]
    assert F.grid_sample(x, grid[:, :, :2], align_corners=aligned).isnan().all()  # between elements and zeros


@pytest.mark.parametrize(("batch", "out"), [(0, 2), (1, 0)])
def test_grids_without_places(batch, out, t):
    x, grid = t.zeros(batch, 1, 3, 3, requires_grad=True), t.zeros(batch, out, 2, 2)
    y = t.nn.functional.grid_sample(x, grid, align_corners=False)
    assert y.shape == (batch, 1, out, 2)
    y.sum().backward()
    assert not x.grad.any()


def test_gradients_of_grids():
    x = lg.tensor(RNG.standard_normal((2, 2, 4, 5)), requires_grad=True)
    grid = lg.tensor(PLACES, requires_grad=True)
    for mode in ("bilinear", "bicubic"):
        assert gradcheck(lambda x, g, m=mode: F.grid_sample(x, g, m, align_corners=False), (x, grid), fast_mode=True)
        assert gradgradcheck(
            lambda x, g, m=mode: F.grid_sample(x, g, m, align_corners=False), (x, grid), fast_mode=True
        )


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, g: F.grid_sample(x, g, "cubic", align_corners=True), ValueError, "expected mode to be one of"),
        (lambda x, g: F.grid_sample(x, g, padding_mode="a", align_corners=True), ValueError, "expected padding_mode"),
        (lambda x, g: F.grid_sample(x, g.double(), align_corners=True), RuntimeError, "to have same dtype"),
        (lambda x, g: F.grid_sample(x, g[..., :1], align_corners=True), RuntimeError, r"expected \(n, c, h, w\)"),
        (lambda x, g: F.grid_sample(x[:, :, :0], g, align_corners=True), RuntimeError, "non-empty spatial"),
    ],
)
def test_errors_of_grid_sample(call, error, words):
    with pytest.raises(error, match=words):
        call(lg.ones(1, 1, 2, 2), lg.zeros(1, 3, 3, 2))


# ---- filters as wide as the step ------------------------------------------------------------------------------------


def test_a_smaller_image_is_a_mean_of_all_it_covers():
    x = lg.tensor([[[[0.0, 0.0, 8.0, 0.0]]]])
    small = F.interpolate(x, (1, 2), mode="bilinear", antialias=True)
    assert small.reshape(-1).tolist() == pytest.approx([8 / 7, 24 / 7])
    with pytest.raises(ValueError, match="restricted to bilinear and bicubic"):
        F.interpolate(x, (1, 2), mode="nearest", antialias=True)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialias_reads_what_its_filters_weigh_alone(mode):
    x = lg.arange(256.0).reshape(1, 1, 16, 16)
    x[0, 0, 0, 0] = math.nan
    small = F.interpolate(x, (4, 4), mode=mode, antialias=True)
    assert 1 <= int(small.isnan().sum()) <= 4


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize(
    "size", [{"size": (3, 5)}, {"size": (9, 4)}, {"scale_factor": 0.6}, {"scale_factor": (1.5, 0.4)}]
)
def test_antialias_as_pytorch(mode, aligned, size):
    def call(t, x):
        return t.nn.functional.interpolate(x, **size, mode=mode, align_corners=aligned, antialias=True)

    parity.compare(call, RNG.standard_normal((2, 3, 7, 11)), rtol=1e-6)


# ---- connectionist temporal classification --------------------------------------------------------------------------


def probability(p, target):
    """The sum over all paths of classes that become ``target`` without repetitions and blanks."""
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        if [k for k, _ in itertools.groupby(path) if k] == list(target):
            total += np.prod([p[t, k] for t, k in enumerate(path)])
    return total


LOGITS = RNG.standard_normal((4, 3, 3))


def test_ctc_sums_over_all_paths(device):
    x = lg.tensor(LOGITS, device=device).log_softmax(2)
    targets = lg.tensor([[1, 2], [1, 1], [2, 0]], device=device)
    loss = F.ctc_loss(x, targets, [4, 4, 3], [2, 2, 1], reduction="none")
    p = np.exp(x.cpu().numpy())
    wanted = [probability(p[:, 0], [1, 2]), probability(p[:, 1], [1, 1]), probability(p[:3, 2], [2])]
    np.testing.assert_allclose(loss.cpu().numpy(), -np.log(wanted), rtol=1e-12)
    flat = F.ctc_loss(x, lg.tensor([1, 2, 1, 1, 2]), lg.tensor([4, 4, 3]), lg.tensor([2, 2, 1]), reduction="none")
    assert flat.tolist() == loss.tolist()
    one = F.ctc_loss(x[:, 0], targets[0], 4, 2, reduction="sum")
    assert one.item() == pytest.approx(loss[0].item())


def test_ctc_of_what_is_too_long_or_empty():
    x = lg.tensor(LOGITS).log_softmax(2).requires_grad_()
    targets = lg.tensor([[1, 1, 1], [1, 2, 1], [0, 0, 0]])
    loss = F.ctc_loss(x, targets, [4, 2, 2], [3, 3, 0], reduction="none")
    assert loss.tolist()[:2] == [math.inf, math.inf]
    assert loss[2].item() == pytest.approx(-x[:2, 2, 0].sum().item())
    zero = nn.CTCLoss(zero_infinity=True, reduction="none")(x, targets, [4, 2, 2], [3, 3, 0])
    assert zero.tolist()[:2] == [0, 0]
    (g,) = lg.autograd.grad(zero.sum(), x)
    assert g[:, :2].abs().sum() == 0
    assert g.isfinite().all()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_an_infinite_ctc_loss_has_no_gradient(t, reduction):
    def slopes(x, **options):
        x, targets = x.detach().requires_grad_(), t.tensor([[1, 1, 1], [1, 2, 1], [2, 0, 0]])
        lengths = t.tensor([4, 2, 3]), t.tensor([3, 3, 1])
        loss = t.nn.functional.ctc_loss(x.log_softmax(2), targets, *lengths, reduction=reduction, **options)
        assert loss.dtype is x.dtype
        loss.sum().backward()
        return x.grad

    x = t.tensor(LOGITS, dtype=t.float32)
    for function in (slopes, lg.compile(slopes) if t is lg else slopes):
        g = function(x)
        assert g[:, 0].isnan().all()
        assert g[:2, 1].isnan().all()
        assert g[2:, 1].abs().sum() == 0
        assert g[:, 2].isfinite().all()
        assert function(x, zero_infinity=True).isfinite().all()


def test_gradients_of_ctc():
    x = lg.tensor(LOGITS, requires_grad=True)

    def loss(x):
        targets = lg.tensor([[1, 2], [1, 1], [2, 0]])
        return F.ctc_loss(x.log_softmax(2), targets, [4, 4, 3], [2, 2, 1])

    assert gradcheck(loss, (x,), fast_mode=True)
    assert gradgradcheck(loss, (x,), fast_mode=True)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_ctc_as_pytorch(reduction):
    def call(t, x):
        targets = t.tensor([[1, 2, 2], [4, 0, 0], [3, 3, 1]])
        lengths = t.tensor([9, 6, 8]), t.tensor([3, 1, 3])
        return t.nn.functional.ctc_loss(x.log_softmax(2), targets, *lengths, reduction=reduction)

    parity.compare(call, RNG.standard_normal((9, 3, 5)), order=1, rtol=1e-8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"input_lengths": [5, 4, 4]}, "input_lengths to have value at least 0 and at most 4, got 5"),
        ({"target_lengths": [1, 1]}, "target_lengths must be of size batch_size, 3, got 2"),
        ({"targets": lg.tensor([1, 2])}, "expected 3, the sum of target_lengths"),
        ({"targets": lg.ones(3, 1)}, "expected integers, got leafgrad.float32"),
        ({"blank": 7}, "blank must be in label range"),
    ],
)
def test_errors_of_ctc(change, words):
    given = {"targets": lg.ones(3, 1).long(), "input_lengths": [4] * 3, "target_lengths": [1] * 3} | change
    with pytest.raises(RuntimeError, match=words):
        F.ctc_loss(lg.tensor(LOGITS), **given)

"""Pooling: values from NumPy, derivatives, devices, compiled, and errors."""

from __future__ import annotations

import numpy as np
import parity
import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.autograd import gradcheck, gradgradcheck
from leafgrad.nn import functional as F
from leafgrad.ops import ranges

TESTS = "nn.functional.average_pooling nn.functional.fractional_pooling nn.functional.pooling"


def distinct(*shape, **options):
    numbers = np.random.default_rng(0).permutation(int(np.prod(shape))).reshape(shape) / 10.0
    return lg.tensor(numbers, **options)


def test_blocks(device):
    x = distinct(2, 3, 4, 6)
    blocks = x.numpy().reshape(2, 3, 2, 2, 2, 3)
    for result, want in (
        (F.max_pool2d(x.to(device), (2, 3)), blocks.max((3, 5))),
        (F.avg_pool2d(x.to(device), (2, 3)), blocks.mean((3, 5))),
        (F.adaptive_max_pool2d(x.to(device), 2), blocks.max((3, 5))),
        (F.adaptive_avg_pool2d(x.to(device), 2), blocks.mean((3, 5))),
        (F.lp_pool2d(x.to(device), 2, (2, 3)), np.sqrt((blocks**2).sum((3, 5)))),
    ):
        assert result.device == device
        np.testing.assert_allclose(result.cpu().numpy(), want, rtol=1e-12)


def test_means_of_long_windows_share_sums(monkeypatch):
    x = lg.tensor(np.random.default_rng(0).normal(size=(3, 900)), requires_grad=True)
    with lg.no_grad():
        x[1, 100], x[2, 100] = float("nan"), float("inf")
    taken, steps = [], ranges._steps
    monkeypatch.setattr(ranges, "_steps", lambda given: taken.append(steps(given)) or taken[-1])
    y = F.avg_pool1d(x, 500, 1)
    want = np.lib.stride_tricks.sliding_window_view(x.detach().numpy(), 500, -1).mean(-1)
    np.testing.assert_allclose(y.detach().numpy(), want, rtol=1e-10)
    y.sum().backward()
    within = np.minimum(np.minimum(np.arange(900), np.arange(900)[::-1]) + 1, 401)
    np.testing.assert_allclose(x.grad.numpy(), np.tile(within / 500, (3, 1)), rtol=1e-10)
    assert all(len(each) <= 9 for _, each in taken)  # of 500 elements in each window


@pytest.mark.parametrize("executor", [None, "numpy", "native"])
@pytest.mark.parametrize("dtype", [lg.float16, lg.bfloat16])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.avg_pool2d(x, 8),
        lambda x: F.adaptive_avg_pool2d(x, 1),
        lambda x: F.interpolate(x, size=1, mode="area"),
    ],
)
def test_means_of_16_bits_are_rounded_once(function, dtype, executor):
    if executor == "native":
        pytest.importorskip("leafgrad_native")
    big = lg.full((1, 1, 8, 8), 60000.0, dtype=dtype)
    x = (big * lg.linspace(0.9, 1.0, 64).reshape(1, 1, 8, 8)).to(dtype)
    found = (lg.compile(function, executor=executor) if executor else function)(x)
    assert found.dtype is dtype
    assert found.item() == x.double().mean().to(dtype).item()


@pytest.mark.parametrize("executor", [None, "numpy", "native"])
def test_the_gradient_of_a_mean_of_many_in_float16(executor):
    if executor == "native":
        pytest.importorskip("leafgrad_native")

    def gradient(x):
        x = x.detach().requires_grad_()
        return lg.autograd.grad(F.adaptive_avg_pool2d(x, 1).sum(), x)[0]

    x = lg.ones(1, 1, 300, 300, dtype=lg.float16)
    found = (lg.compile(gradient, executor=executor) if executor else gradient)(x)
    assert found[0, 0, 0, 0].item() == lg.tensor(1 / 90000, dtype=lg.float16).item()


def test_overlapping_windows_in_one_dimension():
    x = lg.tensor([[[3.0, 1, 4, 1, 5, 9, 2]]])
    values, indices = F.max_pool1d(x, 3, 2, padding=1, return_indices=True)
    assert values.tolist() == [[[3, 4, 9, 9]]]
    assert indices.tolist() == [[[0, 2, 5, 5]]]
    for mean, want in (
        (F.avg_pool1d(x, 3, 2, padding=1), [4 / 3, 2, 5, 11 / 3]),
        (F.avg_pool1d(x, 3, 2, 1, count_include_pad=False), [2, 2, 5, 5.5]),
        (F.avg_pool1d(x, 4, 4, ceil_mode=True), [9 / 4, 16 / 3]),
        (F.avg_pool2d(x[None], (1, 7), divisor_override=5)[0], [5]),
        (F.adaptive_avg_pool1d(x, 3), [8 / 3, 10 / 3, 16 / 3]),
    ):
        assert mean[0, 0].tolist() == pytest.approx(want)
    assert F.adaptive_max_pool1d(x, 3, return_indices=True)[1].tolist() == [[[2, 4, 5]]]


def test_maxima_go_back_where_they_were():
    x = distinct(2, 2, 5, 6, requires_grad=True)
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(values, indices, 2, output_size=x.shape)
    assert back.shape == x.shape
    assert ((back == x) | (back == 0)).all()
    (gradient,) = lg.autograd.grad(values.sum(), x)
    assert lg.equal(gradient, (back != 0).double())


def test_the_first_of_equal_maxima_gets_the_gradient():
    x = lg.zeros(1, 1, 4, requires_grad=True)
    F.max_pool1d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[1, 0, 1, 0]]]


def test_writing_over_the_result_of_a_pool_leaves_its_gradient():
    x = distinct(1, 1, 4, 4, requires_grad=True)
    F.relu(F.max_pool2d(x, 2), inplace=True).sum().backward()
    assert x.grad.sum() == 4


CALLS = {
    "max": lambda x: F.max_pool2d(x, 3, 2, 1, 1, True),
    "max with indices": lambda x: F.max_pool2d(x, 2, 1, return_indices=True)[0],
    "mean": lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
    "norm": lambda x: F.lp_pool2d(x + 1, 3, 2),
    "adaptive max": lambda x: F.adaptive_max_pool2d(x, (2, 3)),
    "adaptive mean": lambda x: F.adaptive_avg_pool2d(x, (None, 3)),
    "max of lines": lambda x: F.max_pool1d(x[0], 2, dilation=2),
    "max of solids": lambda x: F.max_pool3d(x, (1, 2, 2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_both_orders_and_compiled(name, device):
    call, x = CALLS[name], distinct(1, 2, 4, 5, requires_grad=True)
    if device.type == "cpu":
        assert gradcheck(call, (x,))
        assert gradgradcheck(lambda x: call(x).sin(), (x,))

    def with_gradient(x):
        y = call(x).sin()
        return y, *lg.autograd.grad(y.sum(), x)

    there = x.detach().to(device).requires_grad_()
    compiled = lg.compile(with_gradient)
    for _ in range(2):
        for ours, want in zip(compiled(there), with_gradient(x), strict=True):
            assert (ours.cpu() - want).abs().max() < 1e-12


def test_layers():
    x = distinct(2, 3, 6, 6)
    assert nn.MaxPool2d(2)(x).shape == (2, 3, 3, 3)
    assert [tuple(t.shape) for t in nn.MaxPool2d(2, return_indices=True)(x)] == [(2, 3, 3, 3)] * 2
    assert nn.AdaptiveAvgPool2d((1, None))(x).shape == (2, 3, 1, 6)
    assert nn.AvgPool1d(2)(x[0]).shape == (3, 6, 3)
    assert nn.LPPool2d(2, 2)(x).shape == (2, 3, 3, 3)
    assert repr(nn.MaxPool2d(3, 2)) == "MaxPool2d(kernel_size=3, stride=2, padding=0, dilation=1, ceil_mode=False)"
    assert repr(nn.AvgPool1d(2)) == "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"


@pytest.mark.parametrize(
    ("call", "error", "pattern"),
    [
        (lambda x: F.max_pool2d(x, 7), RuntimeError, r"Given input size: \(4x6x6\). Calculated output size: \(4x0x0\)"),
        (lambda x: F.max_pool2d(x[..., :1], 2, 1, 1, 2), RuntimeError, "dilation=2 one has nothing but padding, for a"),
        (lambda x: F.max_pool2d(x, 2, padding=2), RuntimeError, "padding: expected at most half of kernel_size"),
        (lambda x: F.max_pool2d(x, 0), RuntimeError, r"kernel_size: expected at least 1, got \[0, 0\]"),
        (lambda x: F.max_pool2d(x, 2.0), TypeError, "argument 'kernel_size'.* must be .*int.*, not float"),
        (lambda x: F.max_pool2d(x > 0, 2), NotImplementedError, "not implemented for bool"),
        (lambda x: F.max_pool2d(x[0, 0], 2), RuntimeError, "Expected 3D .* input of size"),
        (lambda x: F.avg_pool2d(x[:, :0], 2), RuntimeError, "non-zero size for non-batch dimensions"),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
        (lambda x: F.adaptive_avg_pool2d(x, (3,)), RuntimeError, "output_size: expected an int or a tuple of 2"),
        (lambda x: F.adaptive_avg_pool2d(x.long(), 3), NotImplementedError, "expected a floating point dtype"),
        (lambda x: F.max_unpool2d(x, x.int(), 2), RuntimeError, "should be type int64 but got"),
        (lambda x: F.max_unpool2d(x, x.long(), 2, output_size=(9, 19)), ValueError, "dim 0 must be between 10 and 14"),
    ],
)
def test_errors(call, error, pattern):
    with pytest.raises(error, match=pattern):
        call(lg.ones(2, 4, 6, 6))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_of_an_empty_batch(n, t):
    x = t.zeros(0, 3, *(2,) * n, requires_grad=True)
    unpool = getattr(t.nn.functional, f"max_unpool{n}d")
    out = unpool(x, t.zeros(x.shape, dtype=t.int64), 2)
    assert tuple(out.shape) == (0, 3, *(4,) * n)
    assert t.autograd.grad(out.sum(), x)[0].shape == x.shape


def test_places_outside_the_result_of_unpooling():
    x = lg.ones(1, 1, 2)
    for wrong in (-1, 4):
        with pytest.raises(RuntimeError, match="invalid max index; expected places from 0 to 3"):
            F.max_unpool1d(x, lg.tensor([[[wrong, 2]]]), 2)


# ---- by chance ------------------------------------------------------------------------------------------------------


def test_windows_by_chance(device):
    x = lg.arange(50.0, device=device).reshape(1, 1, 5, 10).requires_grad_()
    chance = lg.tensor([[[0.3, 0.7]]], device=device)
    largest, at = F.fractional_max_pool2d(x, 2, (3, 4), return_indices=True, _random_samples=chance)
    expected = [[11, 14, 17, 19], [21, 24, 27, 29], [41, 44, 47, 49]]
    assert largest.tolist() == at.tolist() == [[expected]]
    largest.sum().backward()
    assert x.grad.reshape(-1).nonzero().reshape(-1).tolist() == [i for row in expected for i in row]
    for _ in range(5):
        drawn = nn.FractionalMaxPool2d(2, output_ratio=0.5)(x[0])
        assert drawn.shape == (1, 2, 5)
        assert drawn[0, -1, -1].item() == 49
    assert nn.FractionalMaxPool3d((1, 2, 2), 1)(x.unsqueeze(1)).item() == 49


def test_windows_by_chance_as_pytorch():
    rng = np.random.default_rng(2)
    for n, size, wanted in ((2, (7, 9), (4, 5)), (3, (5, 6, 7), (2, 3, 4))):
        chance = rng.uniform(size=(2, 3, n))

        def call(t, x, n=n, wanted=wanted, chance=chance):
            f = getattr(t.nn.functional, f"fractional_max_pool{n}d")
            return f(x, 2, wanted, return_indices=True, _random_samples=t.tensor(chance))

        x = rng.standard_normal((2, 3, *size))
        parity.compare(call, x, order=0)  # PyTorch's gradient has none of its own
        ours = lg.tensor(x, requires_grad=True)
        assert gradcheck(lambda x, call=call: call(lg, x)[0], (ours,), fast_mode=True)


@pytest.mark.parametrize("n", [2, 3])
def test_windows_by_chance_of_no_images(n):
    pool = getattr(F, f"fractional_max_pool{n}d")
    assert pool(lg.zeros(0, 1, *[4] * n), 2, output_size=2).shape == (0, 1, *[2] * n)


def test_errors_of_windows_by_chance():
    x = lg.ones(1, 1, 4, 4)
    with pytest.raises(ValueError, match="either an output_size or an output_ratio"):
        F.fractional_max_pool2d(x, 2)
    with pytest.raises(ValueError, match="must be between 0 and 1"):
        F.fractional_max_pool2d(x, 2, output_ratio=1.5)
    with pytest.raises(RuntimeError, match="at most 4, got 4 and 2"):
        F.fractional_max_pool2d(x, 2, 4)
    with pytest.raises(ValueError, match="expected one of output_size and output_ratio"):
        nn.FractionalMaxPool2d(2)


@pytest.mark.parametrize(
    ("n", "pool"),
    [
        (2, lambda x: F.max_pool2d(x, 2)),
        (2, lambda x: F.avg_pool2d(x, 2)),
        (2, lambda x: F.adaptive_avg_pool2d(x, 2)),
        (2, lambda x: F.adaptive_max_pool2d(x, 2)),
        (2, lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)),
        (3, lambda x: F.max_pool3d(x, 2)),
    ],
)
def test_pooling_keeps_channels_last(n, pool):
    kind = lg.channels_last if n == 2 else lg.channels_last_3d
    x = lg.rand((2, 3, 4, 6, 4)[: n + 2]).requires_grad_()
    last = x.detach().contiguous(memory_format=kind).requires_grad_()
    plain, found = pool(x), pool(last)
    assert plain.is_contiguous()
    assert found.is_contiguous(memory_format=kind)
    assert not found.is_contiguous()
    assert found.equal(plain)
    slopes = [lg.autograd.grad((y * y).sum(), t)[0] for y, t in ((plain, x), (found, last))]
    assert slopes[0].equal(slopes[1])


KEEPING = {
    "conv2d": lambda x: F.conv2d(x, lg.ones(4, 3, 3, 3)),
    "grouped": lambda x: F.conv2d(x, lg.ones(3, 1, 3, 3), groups=3),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, lg.ones(3, 4, 3, 3)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "running averages": lambda x: F.batch_norm(x, lg.zeros(3), lg.ones(3)),
    "local_response_norm": lambda x: F.local_response_norm(x, 2),
    "pad": lambda x: F.pad(x, (1, 1, 1, 1)),
    "reflected": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "dropout": lambda x: lg.manual_seed(0) and F.dropout(x),
    "alpha_dropout": lambda x: lg.manual_seed(0) and F.alpha_dropout(x, 0.5, True),
    "lp_pool2d": lambda x: F.lp_pool2d(x, 2, 2),
}


@pytest.mark.parametrize("name", KEEPING)
def test_functions_of_channels_keep_channels_last(name):
    lg.manual_seed(1)  # the gradient of batch_norm's squares is the rounding of a sum that cancels
    function, x = KEEPING[name], lg.rand(2, 3, 6, 6)
    last = x.to(memory_format=lg.channels_last)
    found = []
    for given in (x, last):
        given = given.detach().requires_grad_()
        result = function(given)
        result.square().sum().backward()
        found.append((result, given.grad))
    (plain, gradient), (kept, other) = found
    assert plain.is_contiguous()
    assert kept.is_contiguous(memory_format=lg.channels_last)
    lg.testing.assert_close(kept, plain)
    lg.testing.assert_close(other, gradient)
    assert F.dropout(last, 0.5, False) is last or F.dropout(last, 0.5, False).equal(last)
    written = last.clone()
    assert F.dropout(written, 1.0, True, True) is written
    assert not written.any()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_complex_numbers_have_a_mean_of_all(n, t):
    x = t.arange(4.0).reshape(1, 2, *(1,) * (n - 1), 2) * (1 - 2j)
    x.requires_grad_()
    functional = t.nn.functional
    y = getattr(functional, f"adaptive_avg_pool{n}d")(x, 1)
    assert y.flatten().tolist() == functional.interpolate(x, size=1, mode="area").flatten().tolist()
    assert y.flatten().tolist() == [0.5 - 1j, 2.5 - 5j]
    y.abs().sum().backward()
    assert x.grad.dtype is t.complex64
    with pytest.raises(NotImplementedError):
        getattr(functional, f"adaptive_avg_pool{n}d")(x, (1,) * (n - 1) + (2,))

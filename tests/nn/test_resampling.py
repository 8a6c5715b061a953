"""Interpolation and shuffling: closed forms, derivatives, devices, compiled, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.autograd import gradcheck
from leafgrad.nn import functional as F

TESTS = "nn.functional.resampling"

AA = {"antialias": True}


def test_the_nearest_of_whole_multiples_are_copies(device):
    x = lg.arange(24.0).reshape(1, 2, 3, 4)
    want = x.numpy().repeat(2, 2).repeat(3, 3)
    for mode in ("nearest", "nearest-exact", "area"):
        result = F.interpolate(x.to(device), scale_factor=(2, 3), mode=mode)
        np.testing.assert_array_equal(result.cpu().numpy(), want)
    assert lg.equal(F.interpolate(F.interpolate(x, scale_factor=2), size=(3, 4)), x)


@pytest.mark.parametrize("size", [2, 5, 9, 13])
def test_linear_with_aligned_corners_is_numpys(size):
    x = np.random.default_rng(0).normal(size=5)
    want = np.interp(np.linspace(0, 4, size), np.arange(5), x)
    result = F.interpolate(lg.tensor(x)[None, None], size, mode="linear", align_corners=True)
    np.testing.assert_allclose(result[0, 0].numpy(), want, rtol=1e-12)


def test_smooth_modes_reproduce_planes_within():
    rows, columns = lg.arange(8.0).double(), lg.arange(9.0).double()
    plane = (2 * rows[:, None] - columns)[None, None]
    want = lg.arange(15.0).double()[:, None] - lg.arange(17.0).double() / 2
    for mode in ("bilinear", "bicubic"):
        larger = F.interpolate(plane, (15, 17), mode=mode, align_corners=True)
        assert (larger - want)[..., 2:-2, 2:-2].abs().max() < 1e-12


def test_infinity_stays_where_it_is():
    x = lg.zeros(1, 1, 8)
    x[..., 3] = float("inf")
    larger = F.interpolate(x, scale_factor=2, mode="linear")
    assert larger.isfinite()[0, 0].tolist() == [i not in (5, 6, 7, 8) for i in range(16)]


MODES = {"nearest": 2, "area": 2, "linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scale", [1.7, 0.6])
def test_derivatives_and_compiled(mode, scale, device):
    x = lg.tensor(np.random.default_rng(0).normal(size=(1, 2, *(4, 5, 3)[: MODES[mode]])), requires_grad=True)
    if device.type == "cpu":
        assert gradcheck(lambda x: F.interpolate(x, scale_factor=scale, mode=mode), (x,), fast_mode=True)

    def with_gradients(x):
        y = F.interpolate(x, scale_factor=scale, mode=mode).sin()
        (first,) = lg.autograd.grad(y.sum(), x, create_graph=True)
        return y, first, *lg.autograd.grad(first.sin().sum(), x)

    there = x.detach().to(device).requires_grad_()
    compiled = lg.compile(with_gradients)
    for _ in range(2):
        for ours, want in zip(compiled(there), with_gradients(x), strict=True):
            assert (ours.cpu() - want).abs().max() < 1e-12


@pytest.mark.parametrize(
    ("mode", "options"), [("linear", {}), ("bilinear", {}), ("trilinear", {}), ("bilinear", AA), ("bicubic", AA)]
)
def test_a_dimension_of_the_same_size_stays_as_it_is_whatever_the_scale(mode, options):
    n = MODES[mode]
    x = lg.arange(3.0 * 2**n).reshape(1, 3, *(2,) * n) ** 2
    result = F.interpolate(x, scale_factor=1.3, mode=mode, **options)
    assert lg.equal(result, x)
    assert result.data_ptr() != x.data_ptr()
    if n > 1:
        more = F.interpolate(x, scale_factor=(*(1.3,) * (n - 1), 2.0), mode=mode, **options)
        assert lg.equal(more, F.interpolate(x, scale_factor=(*(1.0,) * (n - 1), 2.0), mode=mode, **options))


def test_shuffling():
    x = lg.arange(32.0).reshape(1, 8, 2, 2)
    large = F.pixel_shuffle(x, 2)
    assert large[0, 0].tolist() == [[0, 4, 1, 5], [8, 12, 9, 13], [2, 6, 3, 7], [10, 14, 11, 15]]
    assert lg.equal(F.pixel_unshuffle(large, 2), x)
    assert F.channel_shuffle(x, 4)[0, :, 0, 0].tolist() == [0, 8, 16, 24, 4, 12, 20, 28]


@pytest.mark.parametrize(
    ("shuffle", "shape"),
    [
        (lambda x: F.pixel_shuffle(x, 2), (1, 4, 1, 1)),
        (lambda x: F.pixel_unshuffle(x, 2), (1, 1, 2, 2)),
        (lambda x: F.channel_shuffle(x, 1), (1, 4, 2, 2)),
        (lambda x: F.channel_shuffle(x, 4), (2, 4, 3)),
    ],
)
def test_shuffling_gives_memory_of_its_own(shuffle, shape):
    """Also where no element has to move."""
    x = lg.ones(shape)
    shuffle(x).zero_()
    assert x.all()


def test_layers():
    x = lg.ones(1, 4, 4, 6)
    assert nn.Upsample(scale_factor=1.5)(x).shape == (1, 4, 6, 9)
    assert nn.Upsample((2, 3), mode="bicubic")(x).shape == (1, 4, 2, 3)
    assert nn.UpsamplingBilinear2d(scale_factor=2)(x).shape == nn.UpsamplingNearest2d((8, 12))(x).shape
    assert nn.PixelShuffle(2)(x).shape == (1, 1, 8, 12)
    assert nn.PixelUnshuffle(2)(x).shape == (1, 16, 2, 3)
    assert nn.ChannelShuffle(2)(x).shape == x.shape
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2.0, mode='nearest')"
    assert repr(nn.UpsamplingBilinear2d((4, 4))) == "UpsamplingBilinear2d(size=(4, 4), mode='bilinear')"


@pytest.mark.parametrize(
    ("call", "error", "pattern"),
    [
        (lambda x: F.interpolate(x, 3, 2), ValueError, "only one of size or scale_factor"),
        (lambda x: F.interpolate(x), ValueError, "either size or scale_factor"),
        (lambda x: F.interpolate(x, (3,)), ValueError, "same number of spatial dimensions"),
        (lambda x: F.interpolate(x, (3.0, 3)), TypeError, "argument 'size'.* must be .*int"),
        (lambda x: F.interpolate(x, scale_factor=0.1), RuntimeError, "sizes should be greater than 0"),
        (lambda x: F.interpolate(x, 3, mode="linear"), NotImplementedError, "Got 4D input, but linear mode needs 3D"),
        (lambda x: F.interpolate(x, 3, mode="cubist"), NotImplementedError, "mode: expected one of nearest"),
        (lambda x: F.interpolate(x, 3, align_corners=True), ValueError, "align_corners option can only be set"),
        (lambda x: F.interpolate(x, 3, mode="area", antialias=True), ValueError, "restricted to bilinear and bicubic"),
        (lambda x: F.pixel_shuffle(x, 3), RuntimeError, "4 is not divisible by 9"),
        (lambda x: F.pixel_unshuffle(x, 4), RuntimeError, r"height to be divisible .* input.size\(-2\)=6"),
        (lambda x: F.channel_shuffle(x, 3), RuntimeError, "Got 4 channels and 3 groups"),
    ],
)
def test_errors(call, error, pattern):
    with pytest.raises(error, match=pattern):
        call(lg.ones(2, 4, 6, 6))

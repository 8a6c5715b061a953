"""Convolution, pooling, padding and resampling in PyTorch, where it is installed: values, gradients, reprs, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from parity import compare

import leafgrad as lg

torch = pytest.importorskip("torch")


def numbers(*shape, seed=0):
    """Distinct numbers, so that maxima are unique."""
    count = int(np.prod(shape))
    return (np.random.default_rng(seed).permutation(count) / max(count, 1) * 4 - 2).reshape(shape)


def check(call, *arrays, **options):
    """As ``compare``, of the sine: what is linear has no second derivative, with which libraries deal differently."""

    def curved(t, *tensors):
        out = call(t, *tensors)
        first, *rest = out if isinstance(out, tuple) else (out,)
        return (first.sin() if first.is_floating_point() else first, *rest)

    compare(curved, *arrays, **options)


# ---- convolution ----------------------------------------------------------------------------------------------------

CONVOLUTIONS = [
    # in size, weight size, options
    ((2, 3, 7), (4, 3, 3), {}),
    ((3, 7), (4, 3, 2), {"stride": 2, "padding": 1}),
    ((2, 4, 6, 5), (6, 2, 3, 2), {"groups": 2, "padding": (1, 0), "stride": (2, 1)}),
    ((1, 2, 7, 6), (3, 2, 3, 2), {"dilation": (2, 3), "padding": 2}),
    ((2, 3, 5, 4), (3, 1, 3, 3), {"groups": 3, "padding": "same"}),
    ((2, 2, 5, 4), (3, 2, 4, 2), {"padding": "same", "dilation": (1, 2)}),
    ((2, 2, 5, 4), (3, 2, 2, 2), {"padding": "valid"}),
    ((3, 2, 4, 4), (2, 2, 1, 1), {"stride": 3}),
    ((4, 2, 5, 3), (2, 2, 2, 3, 2), {"groups": 2, "padding": (1, 0, 1)}),
    ((2, 2, 3, 4, 5), (3, 2, 2, 2, 3), {"stride": (1, 2, 2), "padding": 1, "dilation": (2, 1, 1)}),
]


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize(("size", "kernel", "options"), CONVOLUTIONS)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_convolution(size, kernel, options, with_bias):
    arrays = [numbers(*size), numbers(*kernel, seed=1)] + [numbers(kernel[0], seed=2)] * with_bias
    name = f"conv{len(kernel) - 2}d"
    check(lambda t, *tensors: getattr(t.nn.functional, name)(*tensors, **options), *arrays)


TRANSPOSED = [
    ((2, 3, 4), (3, 2, 3), {"stride": 2, "output_padding": 1}),
    ((4, 3), (4, 2, 2), {"groups": 2}),
    ((2, 4, 3, 4), (4, 3, 3, 2), {"groups": 2, "stride": (2, 3), "padding": 1, "output_padding": (0, 2)}),
    ((1, 2, 3, 3), (2, 3, 3, 3), {"dilation": (2, 1), "padding": (2, 0), "output_padding": (1, 0)}),
    ((2, 2, 2, 3, 2), (2, 1, 2, 3, 2), {"stride": (2, 1, 2)}),
]


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize(("size", "kernel", "options"), TRANSPOSED)
def test_transposed_convolution(size, kernel, options, with_bias):
    channels = kernel[1] * options.get("groups", 1)
    arrays = [numbers(*size), numbers(*kernel, seed=1)] + [numbers(channels, seed=2)] * with_bias
    name = f"conv_transpose{len(kernel) - 2}d"
    check(lambda t, *tensors: getattr(t.nn.functional, name)(*tensors, **options), *arrays)


@pytest.mark.parametrize("options", [
    {"kernel_size": 2}, {"kernel_size": (3, 2), "padding": (1, 0), "stride": 2}, {"kernel_size": 2, "dilation": 2},
])  # fmt: skip
@pytest.mark.parametrize("batch", [(2,), ()])
def test_unfold_and_fold(options, batch):
    check(lambda t, x: t.nn.functional.unfold(x, **options), numbers(*batch, 3, 6, 5))
    columns = torch.nn.functional.unfold(torch.zeros(*batch, 3, 6, 5), **options).shape
    check(lambda t, x: t.nn.functional.fold(x, (6, 5), **options), numbers(*columns))


def test_integers():
    x, w = np.arange(36).reshape(1, 1, 6, 6), np.arange(4).reshape(1, 1, 2, 2)
    check(lambda t, x, w: t.nn.functional.conv2d(x, w), x, w)
    check(lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True), -x)
    check(lambda t, x: t.nn.functional.avg_pool2d(x, 3, 2, 1), -x)


# ---- pooling --------------------------------------------------------------------------------------------------------

POOLS = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": 3, "stride": 3, "padding": 1, "ceil_mode": True},
    {"kernel_size": 3, "stride": 1, "padding": 1},
    {"kernel_size": 2, "stride": 4},
    {"kernel_size": 1, "stride": 2},
]
SIZES = [(2, 3, 8), (3, 7), (2, 3, 7, 8), (3, 8, 6), (1, 2, 6, 7, 5), (2, 5, 6, 6)]


@pytest.mark.parametrize(("options", "size"), list(itertools.product(POOLS, SIZES)))
def test_max_and_mean_of_windows(options, size):
    dims = {(2, 3, 8): 1, (3, 7): 1, (1, 2, 6, 7, 5): 3, (2, 5, 6, 6): 3}.get(size, 2)
    x = numbers(*size)
    check(lambda t, x: getattr(t.nn.functional, f"max_pool{dims}d")(x, **options), x)
    check(lambda t, x: getattr(t.nn.functional, f"max_pool{dims}d")(x, **options, return_indices=True), x)
    for include in (True, False):
        more = {**options, "count_include_pad": include}
        check(lambda t, x, more=more: getattr(t.nn.functional, f"avg_pool{dims}d")(x, **more), x)
    if dims > 1:
        check(lambda t, x: getattr(t.nn.functional, f"avg_pool{dims}d")(x, **options, divisor_override=5), x)


@pytest.mark.parametrize("options", [
    {"kernel_size": (2, 3), "dilation": (3, 2)}, {"kernel_size": 3, "dilation": 2, "padding": 1, "stride": 3},
])  # fmt: skip
def test_dilated_max(options):
    check(lambda t, x: t.nn.functional.max_pool2d(x, **options, return_indices=True), numbers(2, 2, 9, 8))


@pytest.mark.parametrize("kernel", [(2, 2, 0), (3, 2, 1), (3, 1, 1)])
def test_max_of_equal_infinite_and_nan(kernel):
    k, s, p = kernel
    inf, nan = np.inf, np.nan
    for x in ([0.0, 0, 1, 1, 0, 0], [-inf] * 6, [nan, 1, nan, 2, 3, -inf], [inf, -inf, -inf, inf, -inf, -inf]):
        lines = np.array([[x] * 4])
        compare(lambda t, x: t.nn.functional.max_pool1d(x, k, s, p, return_indices=True), lines, order=0)
        for image in (lines, lines.transpose(0, 2, 1)):

            def call(t, x):
                found = t.nn.functional.max_pool2d(x, k, s, p, return_indices=True)
                ones = t.ones_like(found[0])
                (without,) = t.autograd.grad(t.nn.functional.max_pool2d(x, k, s, p), x, ones)
                return (*found, without, *t.autograd.grad(found[0], x, ones))

            compare(call, image, order=0)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("batch", [(2,), ()])
def test_as_many_windows_as_asked_for(dims, size, batch):
    x = numbers(*batch, 2, *(6, 5, 4)[:dims])
    check(lambda t, x: getattr(t.nn.functional, f"adaptive_avg_pool{dims}d")(x, size), x)
    check(lambda t, x: getattr(t.nn.functional, f"adaptive_max_pool{dims}d")(x, size), x)
    check(lambda t, x: getattr(t.nn.functional, f"adaptive_max_pool{dims}d")(x, size, return_indices=True), x)


@pytest.mark.parametrize("size", [(None, 2), (3, None), (0, 2), [4, 1]])
def test_mixed_sizes(size):
    x, order = numbers(2, 2, 6, 5), 0 if 0 in size else 2
    check(lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, size), x, order=order)
    check(lambda t, x: t.nn.functional.adaptive_max_pool2d(x, size), x, order=order)


@pytest.mark.parametrize("p", [1, 2, 3, 1.5, float("inf"), -float("inf")])
@pytest.mark.parametrize("ceil_mode", [True, False])
def test_norms_of_windows(p, ceil_mode):
    for dims in (1, 2, 3):
        x = np.abs(numbers(2, 2, *(7, 5, 4)[:dims])) + 0.1

        def norm(t, x, dims=dims):
            return getattr(t.nn.functional, f"lp_pool{dims}d")(x, p, 2, ceil_mode=ceil_mode)

        check(norm, x, rtol=1e-8)
    check(lambda t, x: t.nn.functional.lp_pool1d(x, 2, 3, 1), numbers(2, 7))


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (2, 1, 0)])
def test_unpooling(kernel, stride, padding):
    for dims in (1, 2, 3):

        def call(t, x, dims=dims):
            F = t.nn.functional
            found = getattr(F, f"max_pool{dims}d")(x, kernel, stride, padding, return_indices=True)
            return getattr(F, f"max_unpool{dims}d")(*found, kernel, stride, padding, output_size=x.shape)

        check(call, numbers(2, 2, *(6, 7, 5)[:dims]))


# ---- padding --------------------------------------------------------------------------------------------------------

MARGINS = [(1, 2), (0, 3), (1, 2, 2, 0), (3, 3, 1, 2), (-1, 2, 0, 1), (1, 0, 2, 1, 0, 3), (2, -2, -1, 1, 1, 0)]


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize(("pad", "batch"), list(itertools.product(MARGINS, [(), (2,)])))
def test_padding(mode, pad, batch):
    x = numbers(*batch, 2, *(4, 5, 6)[: len(pad) // 2])
    check(lambda t, x: t.nn.functional.pad(x, pad, mode), x)
    check(lambda t, x: t.nn.functional.pad(x, pad, mode), (x * 9).astype("int64"))


def test_constant_padding():
    check(lambda t, x: t.nn.functional.pad(x, (1, 1, 0, 2, 1, 0, 2, 2), value=1.5), numbers(1, 2, 3, 4))
    check(lambda t, x: t.nn.functional.pad(x, ()), numbers(2, 2))
    check(lambda t, x: t.nn.functional.pad(x, (1, 1), value=1), np.array([True, False]))


# ---- resampling -----------------------------------------------------------------------------------------------------

MODES = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3), "linear": (1,), "bilinear": (2,),
         "bicubic": (2,), "trilinear": (3,)}  # fmt: skip
TARGETS = [
    {"size": 7},
    {"size": 3},
    {"size": 1},
    {"scale_factor": 2},
    {"scale_factor": 1.7},
    {"scale_factor": 0.6},
    {"scale_factor": 1.7, "recompute_scale_factor": True},
    {"scale_factor": 3.0},
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", TARGETS)
def test_interpolation(mode, target):
    smooth = "linear" in mode or "cubic" in mode
    for dims in MODES[mode]:
        x = numbers(2, 2, *(5, 6, 4)[:dims])
        for align in (None, True, False) if smooth else (None,):

            def resample(t, x, align=align):
                return t.nn.functional.interpolate(x, mode=mode, align_corners=align, **target)

            check(resample, x, rtol=1e-8)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_the_nearest_of_many(mode):
    for dtype in ("float32", "float64"):
        x = np.arange(61, dtype=dtype)[None, None]
        for size in (*range(1, 200), 366, 610, 999):
            compare(lambda t, x, size=size: t.nn.functional.interpolate(x, size, mode=mode), x, order=0)
        for scale in (0.1, 0.3, 0.7, 1.3, 1.9, 2.3, 3.3, 3.7):
            compare(lambda t, x, s=scale: t.nn.functional.interpolate(x, scale_factor=s, mode=mode), x, order=0)


def test_channels_for_resolution():
    for x in (numbers(2, 8, 4, 6), numbers(8, 4, 6), numbers(1, 2, 4, 2, 4)):
        check(lambda t, x: t.nn.functional.pixel_shuffle(x, 2), x)
        check(lambda t, x: t.nn.functional.pixel_unshuffle(x, 2), x)
    check(lambda t, x: t.nn.functional.channel_shuffle(x, 4), numbers(2, 8, 4, 6))
    check(lambda t, x: t.nn.functional.channel_shuffle(x, 2), numbers(2, 6, 3))


# ---- modules --------------------------------------------------------------------------------------------------------

LAYERS = {
    "Conv1d": (lambda nn: nn.Conv1d(2, 4, 3, 2, 1, 2, 2, False, "reflect"), (3, 2, 9)),
    "Conv2d": (lambda nn: nn.Conv2d(2, 4, 3), (3, 2, 5, 6)),
    "Conv2d unbatched": (lambda nn: nn.Conv2d(2, 4, (3, 2), padding=(1, 0)), (2, 5, 6)),
    "Conv2d same": (lambda nn: nn.Conv2d(2, 4, (4, 3), padding="same"), (3, 2, 5, 6)),
    "Conv2d same circular": (lambda nn: nn.Conv2d(2, 4, (4, 3), padding="same", padding_mode="circular"), (3, 2, 5, 6)),
    "Conv2d valid replicate": (lambda nn: nn.Conv2d(2, 4, 3, padding="valid", padding_mode="replicate"), (3, 2, 5, 6)),
    "Conv2d replicate": (lambda nn: nn.Conv2d(2, 2, 3, padding=(2, 1), padding_mode="replicate"), (1, 2, 5, 6)),
    "Conv3d": (lambda nn: nn.Conv3d(1, 2, (1, 2, 3), padding=(1, 0, 1)), (2, 1, 3, 4, 5)),
    "ConvTranspose1d": (lambda nn: nn.ConvTranspose1d(2, 4, 3, groups=2, bias=False), (2, 2, 5)),
    "ConvTranspose2d": (lambda nn: nn.ConvTranspose2d(2, 4, 3, 2, 1, 1, dilation=2), (2, 2, 4, 3)),
    "ConvTranspose3d": (lambda nn: nn.ConvTranspose3d(2, 3, 2, 2), (2, 2, 2, 3, 2)),
    "Unfold": (lambda nn: nn.Unfold((2, 3), 1, 1), (2, 2, 4, 5)),
    "Fold": (lambda nn: nn.Fold((4, 4), 3, 1, 0, 1), (2, 18, 4)),
    "ConstantPad1d": (lambda nn: nn.ConstantPad1d(2, 1.5), (2, 3)),
    "ConstantPad2d": (lambda nn: nn.ConstantPad2d((1, 2, -1, 3), 2), (2, 3, 4)),
    "ConstantPad3d": (lambda nn: nn.ConstantPad3d(1, -1.0), (2, 3, 4, 2)),
    "MaxPool1d": (lambda nn: nn.MaxPool1d(3, 2, 1, return_indices=True), (2, 3, 8)),
    "MaxPool2d": (lambda nn: nn.MaxPool2d(2), (2, 3, 8, 7)),
    "MaxPool2d all": (lambda nn: nn.MaxPool2d((3, 2), (2, 1), (1, 0), (1, 2), ceil_mode=True), (2, 3, 8, 7)),
    "MaxPool3d": (lambda nn: nn.MaxPool3d((1, 2, 3)), (1, 2, 3, 4, 6)),
    "AvgPool1d": (lambda nn: nn.AvgPool1d(2), (2, 3, 7)),
    "AvgPool2d": (lambda nn: nn.AvgPool2d(3, 2, 1, True, False), (2, 3, 7, 8)),
    "AvgPool2d divisor": (lambda nn: nn.AvgPool2d(3, divisor_override=2), (2, 3, 7, 8)),
    "AvgPool3d": (lambda nn: nn.AvgPool3d(2), (1, 2, 4, 4, 5)),
    "LPPool1d": (lambda nn: nn.LPPool1d(2, 3, ceil_mode=True), (2, 3, 7)),
    "LPPool2d": (lambda nn: nn.LPPool2d(2, (2, 3), stride=(2, 1)), (2, 3, 7, 5)),
    "LPPool3d": (lambda nn: nn.LPPool3d(2, 2), (1, 2, 4, 4, 5)),
    "AdaptiveAvgPool1d": (lambda nn: nn.AdaptiveAvgPool1d(3), (2, 3, 7)),
    "AdaptiveAvgPool2d": (lambda nn: nn.AdaptiveAvgPool2d((None, 3)), (2, 3, 7, 5)),
    "AdaptiveAvgPool3d": (lambda nn: nn.AdaptiveAvgPool3d(2), (2, 3, 3, 4, 5)),
    "AdaptiveMaxPool1d": (lambda nn: nn.AdaptiveMaxPool1d(3), (2, 3, 7)),
    "AdaptiveMaxPool2d": (lambda nn: nn.AdaptiveMaxPool2d((2, 3), True), (2, 3, 7, 5)),
    "AdaptiveMaxPool3d": (lambda nn: nn.AdaptiveMaxPool3d(2), (2, 3, 3, 4, 5)),
    "Upsample": (lambda nn: nn.Upsample(scale_factor=2), (2, 3, 4, 5)),
    "Upsample each": (lambda nn: nn.Upsample(scale_factor=(2, 3), mode="bicubic"), (2, 3, 4, 5)),
    "Upsample size": (lambda nn: nn.Upsample((3, 4), mode="bilinear"), (2, 3, 4, 5)),
    "UpsamplingNearest2d": (lambda nn: nn.UpsamplingNearest2d(scale_factor=2), (2, 3, 4, 5)),
    "UpsamplingBilinear2d": (lambda nn: nn.UpsamplingBilinear2d((4, 7)), (2, 3, 4, 5)),
    "PixelShuffle": (lambda nn: nn.PixelShuffle(2), (2, 4, 3, 3)),
    "PixelUnshuffle": (lambda nn: nn.PixelUnshuffle(2), (2, 4, 4, 2)),
    "ChannelShuffle": (lambda nn: nn.ChannelShuffle(2), (2, 4, 3, 3)),
    **{
        f"{kind}Pad{n}d": (
            lambda nn, kind=kind, n=n: getattr(nn, f"{kind}Pad{n}d")((1, 2, 0, 1, 2, 2)[: 2 * n] if n > 1 else 2),
            (2, 3, 4, 5, 3)[: n + 2],
        )
        for kind in ("Zero", "Reflection", "Replication", "Circular")
        for n in (1, 2, 3)
    },
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_layers(name):
    make, size = LAYERS[name]
    theirs, ours = make(torch.nn).double(), make(lg.nn).double()
    assert repr(ours) == repr(theirs)
    state = theirs.state_dict()
    assert {n: tuple(p.shape) for n, p in ours.state_dict().items()} == {n: tuple(p.shape) for n, p in state.items()}
    ours.load_state_dict({n: lg.from_numpy(p.numpy()) for n, p in state.items()})
    check(lambda t, x: (theirs if t is torch else ours)(x), numbers(*size), order=1)


def test_repr_of_unpooling():
    for nn in ("MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"):
        assert repr(getattr(lg.nn, nn)(2, 3, 1)) == repr(getattr(torch.nn, nn)(2, 3, 1))


@pytest.mark.parametrize("size", [None, (9, 8), (2, 3, 10, 7)])
def test_output_size_of_a_transposed_layer(size):
    theirs, ours = (nn.ConvTranspose2d(2, 3, 3, stride=2).double() for nn in (torch.nn, lg.nn))
    ours.load_state_dict({n: lg.from_numpy(p.numpy()) for n, p in theirs.state_dict().items()})
    check(lambda t, x: (theirs if t is torch else ours)(x, output_size=size), numbers(2, 2, 4, 3))


# ---- errors ---------------------------------------------------------------------------------------------------------

ERRORS = {
    "channels": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 3, 3, 3)),
    "channels of groups": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 4, 3, 3), groups=2),
    "outputs of groups": lambda t, x: t.nn.functional.conv2d(x, t.ones(3, 2, 3, 3), groups=2),
    "stride": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 4, 3, 3), stride=0),
    "padding": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 4, 3, 3), padding=-1),
    "dilation": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 4, 3, 3), dilation=0),
    "strides": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 4, 3, 3), stride=(1, 1, 1)),
    "small": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 4, 7, 7)),
    "same": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 4, 3, 3), stride=2, padding="same"),
    "full": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 4, 3, 3), padding="full"),
    "bias": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 4, 3, 3), t.ones(3)),
    "dims": lambda t, x: t.nn.functional.conv2d(x[0, 0], t.ones(4, 4, 3, 3)),
    "weight dims": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 4, 3)),
    "dtype": lambda t, x: t.nn.functional.conv2d(x.double(), t.ones(4, 4, 3, 3)),
    "list": lambda t, x: t.nn.functional.conv2d([1.0], t.ones(4, 4, 3, 3)),
    "transposed channels": lambda t, x: t.nn.functional.conv_transpose2d(x, t.ones(3, 4, 3, 3)),
    "output padding": lambda t, x: t.nn.functional.conv_transpose2d(x, t.ones(4, 4, 3, 3), stride=2, output_padding=2),
    "no output": lambda t, x: t.nn.functional.conv_transpose2d(x, t.ones(4, 4, 1, 1), padding=4),
    "output size": lambda t, x: t.nn.ConvTranspose2d(4, 4, 3, stride=2)(x, output_size=(16, 14)),
    "output sizes": lambda t, x: t.nn.ConvTranspose2d(4, 4, 3, stride=2)(x, output_size=(14,)),
    "in_channels": lambda t, x: t.nn.Conv2d(3, 4, 3, groups=2),
    "out_channels": lambda t, x: t.nn.Conv2d(4, 3, 3, groups=2),
    "groups": lambda t, x: t.nn.Conv2d(4, 4, 3, groups=0),
    "padding word": lambda t, x: t.nn.Conv2d(4, 4, 3, padding="full"),
    "strided same": lambda t, x: t.nn.Conv2d(4, 4, 3, stride=2, padding="same"),
    "padding mode": lambda t, x: t.nn.Conv2d(4, 4, 3, padding_mode="zero"),
    "transposed mode": lambda t, x: t.nn.ConvTranspose2d(4, 4, 3, padding_mode="reflect"),
    "unfold large": lambda t, x: t.nn.functional.unfold(x, 7),
    "unfold stride": lambda t, x: t.nn.functional.unfold(x, 2, stride=0),
    "unfold sizes": lambda t, x: t.nn.functional.unfold(x, (2, 2, 2)),
    "fold columns": lambda t, x: t.nn.functional.fold(t.ones(2, 16, 8), (4, 4), 2),
    "fold rows": lambda t, x: t.nn.functional.fold(t.ones(2, 15, 9), (4, 4), 2),
    "pool kernel": lambda t, x: t.nn.functional.max_pool2d(x, 0),
    "pool padding": lambda t, x: t.nn.functional.max_pool2d(x, 2, padding=2),
    "pool large": lambda t, x: t.nn.functional.max_pool2d(x, 7),
    "pool dims": lambda t, x: t.nn.functional.max_pool2d(x[0, 0], 2),
    "pool float": lambda t, x: t.nn.functional.max_pool2d(x, 2.0),
    "pool bool": lambda t, x: t.nn.functional.max_pool2d(x > 0, 2),
    "pool empty": lambda t, x: t.nn.functional.max_pool2d(x[:, :0], 2),
    "mean stride": lambda t, x: t.nn.functional.avg_pool2d(x, 2, 0),
    "mean divisor": lambda t, x: t.nn.functional.avg_pool2d(x, 2, divisor_override=0),
    "mean sizes": lambda t, x: t.nn.functional.avg_pool1d(x[0], (2, 2)),
    "adaptive sizes": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (3,)),
    "adaptive negative": lambda t, x: t.nn.functional.adaptive_max_pool2d(x, -1),
    "adaptive integer": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x.long(), 2),
    "unpool shape": lambda t, x: t.nn.functional.max_unpool2d(x, x[:, :2].long(), 2),
    "unpool dtype": lambda t, x: t.nn.functional.max_unpool2d(x, x.int(), 2),
    "unpool size": lambda t, x: t.nn.functional.max_unpool2d(x, x.long(), 2, output_size=(19, 19)),
    "unpool place": lambda t, x: t.nn.functional.max_unpool2d(x, (x * 0).long() + 200, 2),
    "pad odd": lambda t, x: t.nn.functional.pad(x, (1, 1, 1)),
    "pad long": lambda t, x: t.nn.functional.pad(x, (1,) * 10),
    "pad int": lambda t, x: t.nn.functional.pad(x, 1),
    "pad floats": lambda t, x: t.nn.functional.pad(x, (1.0, 1.0)),
    "pad negative": lambda t, x: t.nn.functional.pad(x, (-4, -4)),
    "pad mode": lambda t, x: t.nn.functional.pad(x, (1, 1), "mirror"),
    "pad value": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), "reflect", 2),
    "pad dims": lambda t, x: t.nn.functional.pad(x, (1, 1), "reflect"),
    "reflect large": lambda t, x: t.nn.functional.pad(x, (6, 0, 0, 0), "reflect"),
    "circular large": lambda t, x: t.nn.functional.pad(x, (7, 0, 0, 0), "circular"),
    "CircularPad1d": lambda t, x: t.nn.CircularPad1d(1)(x),
    "interpolate both": lambda t, x: t.nn.functional.interpolate(x, 3, 2),
    "interpolate neither": lambda t, x: t.nn.functional.interpolate(x),
    "interpolate sizes": lambda t, x: t.nn.functional.interpolate(x, (3,)),
    "interpolate scales": lambda t, x: t.nn.functional.interpolate(x, scale_factor=(2,)),
    "interpolate nothing": lambda t, x: t.nn.functional.interpolate(x, scale_factor=0.1),
    "interpolate dims": lambda t, x: t.nn.functional.interpolate(x, 3, mode="linear"),
    "interpolate mode": lambda t, x: t.nn.functional.interpolate(x, 3, mode="cubist"),
    "interpolate corners": lambda t, x: t.nn.functional.interpolate(x, 3, align_corners=False),
    "interpolate recompute": lambda t, x: t.nn.functional.interpolate(x, 3, recompute_scale_factor=True),
    "interpolate float": lambda t, x: t.nn.functional.interpolate(x, (3.0, 3)),
    "interpolate integers": lambda t, x: t.nn.functional.interpolate(x.long(), 3, mode="bilinear"),
    "shuffle channels": lambda t, x: t.nn.functional.pixel_shuffle(x, 3),
    "shuffle factor": lambda t, x: t.nn.functional.pixel_shuffle(x, 0),
    "shuffle dims": lambda t, x: t.nn.functional.pixel_shuffle(x[0, 0], 2),
    "unshuffle height": lambda t, x: t.nn.functional.pixel_unshuffle(x, 4),
    "channel groups": lambda t, x: t.nn.functional.channel_shuffle(x, 3),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_of_the_same_type(name):
    kinds = []
    for t in (torch, lg):
        with pytest.raises(Exception, match=r".") as error:
            ERRORS[name](t, t.ones(2, 4, 6, 6))
        kinds.append(error.type.__mro__)
    theirs, ours = kinds
    assert theirs[0] in ours, f"PyTorch raises {theirs[0].__name__}, we raise {ours[0].__name__}"

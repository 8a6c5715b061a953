"""Ops and functions by the conformance kit, with NumPy's transforms as the reference; layers; errors."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import leafgrad
import leafgrad_fft
from leafgrad import plugins
from leafgrad.autograd import grad, gradcheck, gradgradcheck
from leafgrad.testing import CHECKS, check_op
from leafgrad_fft import ops as fft_ops

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(2, 5, 6))
COMPLEX = RNG.normal(size=(2, 5, 4)) + 1j * RNG.normal(size=(2, 5, 4))


def counts(n):
    """How many of n coefficients each of the first half stands for."""
    return np.array([1] + [2] * ((n - 1) // 2) + [1] * (n % 2 == 0))


def complex_transform(x, *, dims, inverse, norm):
    return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=dims, norm=norm)


def real_transform(x, *, dim, norm, doubled):
    return np.fft.rfft(x, axis=dim, norm=norm) * (counts(x.shape[dim]) if doubled else 1)


def real_inverse(x, *, n, dim, norm, halved):
    return np.fft.irfft(x / counts(n) if halved else x, n, axis=dim, norm=norm)


def numpys(name, x, *, norm=None, **options):
    """NumPy's function of the name."""
    axes = {"dim": "axes" if "s" in options else "axis", "n": "n", "s": "s"}
    options = {axes[key]: value for key, value in options.items()}
    if options.get("axes", 0) is None:
        options["axes"] = tuple(range(-(3 if options["s"] is None else len(options["s"])), 0))
    return getattr(np.fft, name)(x, norm=norm, **options)


def samples(x, *options):
    """Each of the options, and the first with each norm."""
    return [((x,), each) for each in options] + [((x,), {**options[0], "norm": n}) for n in ("ortho", "forward")]


FLAGS = (False, True)
ONE = [{"n": n, "dim": d} for n in (None, 1, 7, 8) for d in (-1, 0)]
TWO = [{"s": None, "dim": (-2, -1)}, {"s": (3, 7), "dim": (0, -1)}]
SEVERAL = [{"s": s, "dim": None} for s in (None, (4, 5), (3, 2, 5))]
OPS = fft_ops.fft_complex, fft_ops.fft_real, fft_ops.fft_real_inverse
# Op or function, samples, reference.
ROWS = [
    (
        fft_ops.fft_complex,
        [((COMPLEX,), {"dims": d, "inverse": i, "norm": "ortho"}) for d in [(-1,), (-3, -2)] for i in FLAGS],
        complex_transform,
    ),
    (
        fft_ops.fft_real,
        [((REAL[..., :n],), {"dim": -1, "norm": "backward", "doubled": d}) for n in (1, 5, 6) for d in FLAGS],
        real_transform,
    ),
    (
        fft_ops.fft_real_inverse,
        [((COMPLEX,), {"n": n, "dim": -1, "norm": "backward", "halved": h}) for n in (6, 7) for h in FLAGS],
        real_inverse,
    ),
    *[
        (getattr(leafgrad_fft, kind + dims), samples(REAL if kind == "rfft" else COMPLEX, *options),
         partial(numpys, kind + dims))
        for kind in ("fft", "ifft", "rfft", "irfft")
        for dims, options in [("", ONE), ("2", TWO), ("n", SEVERAL)]
    ],
]  # fmt: skip


@pytest.mark.parametrize(("op", "samples", "reference"), ROWS, ids=[getattr(row[0], "__name__", "op") for row in ROWS])
def test_ops_and_functions(op, samples, reference):
    """Functions are made of ops, which guards, executors and chunks see alone."""
    whole = op in OPS
    check_op(op, samples, reference, executors=["numpy"] if whole else [],
             checks=None if whole else [name for name in CHECKS if name != "chunks"])  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("op", "samples", "reference"), ROWS[len(OPS) :])
def test_functions_compiled_and_in_chunks(op, samples, reference):
    check_op(op, samples, reference, executors=["numpy"], checks=["compile", "chunks"])


def test_a_program_and_its_derivative_run_in_chunks():
    rows = 35_000  # that no cache holds

    def step(x):
        spectrum = leafgrad_fft.rfft2(leafgrad.sin(x))
        return grad((leafgrad_fft.irfft2(spectrum * spectrum, s=(4, 5)) ** 2).sum(), x)[0]

    x = leafgrad.tensor(RNG.normal(size=(rows, 4, 5)), requires_grad=True)
    compiled = leafgrad.compile(step, executor="numpy")
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).numpy(), step(x).numpy(), rtol=1e-12)
    text = compiled.explain()
    assert "closed; 1 program" in text
    assert f"loop over {rows} rows" in text
    assert "not chunked" not in text


def test_no_norm_is_backward():
    x = leafgrad.tensor(COMPLEX)
    for function in (leafgrad_fft.fft, leafgrad_fft.ifft, leafgrad_fft.irfft):
        np.testing.assert_array_equal(function(x).numpy(), function(x, norm="backward").numpy())


@pytest.mark.parametrize(
    "name", [k + d for k in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for d in ("", "2", "n")]
)
def test_results_are_written_into_out(name):
    function = getattr(leafgrad_fft, name)
    x = leafgrad.tensor(REAL)
    expected = function(x)
    out = leafgrad.empty(expected.shape[::-1], dtype=expected.dtype).permute(2, 1, 0)
    strides = out.stride()
    assert function(x, out=out) is out
    assert leafgrad.equal(out, expected)
    assert out.stride() == strides
    if expected.is_complex():
        with pytest.raises(RuntimeError, match="can't be cast"):
            function(x, out=leafgrad.empty(2))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        function(x.requires_grad_(), out=out)


@pytest.mark.parametrize("name", "fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn".split())
def test_the_array_apis_extension(name):
    xp = leafgrad.ones(1).__array_namespace__()
    x = REAL if ("rfft" in name and "ir" not in name) or name == "ihfft" else COMPLEX
    for options in (
        [{"s": (3, 4), "axes": (0, 2)}, {"axes": (1,), "norm": "ortho"}]
        if name[-1] == "n"
        else [{"n": 4, "axis": 1}, {"norm": "forward"}]
    ):
        found = getattr(xp.fft, name)(leafgrad.tensor(x), **options)
        np.testing.assert_allclose(found.numpy(), getattr(np.fft, name)(x, **options), rtol=1e-10, atol=1e-13)


def test_the_array_apis_helpers():
    xp = leafgrad.ones(1).__array_namespace__()
    for name in ("fftshift", "ifftshift"):
        found = getattr(xp.fft, name)(leafgrad.tensor(REAL), axes=(1, 2))
        assert np.array_equal(found.numpy(), getattr(np.fft, name)(REAL, axes=(1, 2)))
    for name in ("fftfreq", "rfftfreq"):
        found = getattr(xp.fft, name)(5, d=0.5, dtype=xp.float64)
        assert np.array_equal(found.numpy(), getattr(np.fft, name)(5, d=0.5))


def test_no_dimensions_leave_numbers_alone():
    x = leafgrad.tensor(REAL)
    assert leafgrad.equal(leafgrad_fft.fftn(x, dim=()), x + 0j)
    assert leafgrad.equal(leafgrad_fft.ifft2(x, s=[], dim=[]), x + 0j)
    z = x + 0j
    leafgrad_fft.fftn(z, dim=()).zero_()
    assert leafgrad.equal(z, x + 0j)
    out = leafgrad.empty(0, dtype=leafgrad.float64)
    assert leafgrad.equal(leafgrad_fft.fftfreq(4, 0.5, out=out), leafgrad.tensor([0.0, 0.5, -1.0, -0.5]))


def test_transforms_are_undone():
    z, x = leafgrad.tensor(COMPLEX), leafgrad.tensor(REAL)
    for norm, n in itertools.product([None, "ortho", "forward"], [4, 5]):
        back = leafgrad_fft.ifftn(leafgrad_fft.fftn(z, norm=norm), norm=norm)
        np.testing.assert_allclose(back.numpy(), COMPLEX, atol=1e-14)
        cut = x[..., :n]
        back = leafgrad_fft.irfft2(leafgrad_fft.rfft2(cut, norm=norm), s=cut.shape[1:], norm=norm)
        np.testing.assert_allclose(back.numpy(), cut.numpy(), atol=1e-14)


def test_views_empty_batches_and_integers():
    z = leafgrad.tensor(COMPLEX)
    turned = leafgrad_fft.fft(z.transpose(0, 2))
    np.testing.assert_allclose(turned.numpy(), numpys("fft", COMPLEX.transpose(2, 1, 0)), atol=1e-14)
    assert leafgrad_fft.rfft(leafgrad.zeros(0, 6)).shape == (0, 4)
    assert leafgrad_fft.rfft(leafgrad.tensor([1, 2, 3])).dtype is leafgrad.complex64


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n):
    np.testing.assert_allclose(leafgrad_fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5), rtol=1e-6)
    np.testing.assert_allclose(leafgrad_fft.rfftfreq(n, 0.5).numpy(), np.fft.rfftfreq(n, 0.5), rtol=1e-6)


def test_what_is_made_of_conjugates_and_shifts():
    z, x = leafgrad.tensor(COMPLEX), leafgrad.tensor(REAL)
    for norm in (None, "ortho", "forward"):
        np.testing.assert_allclose(leafgrad_fft.hfft(z, norm=norm).numpy(), np.fft.hfft(COMPLEX, norm=norm), atol=1e-13)
        np.testing.assert_allclose(leafgrad_fft.ihfft(x, norm=norm).numpy(), np.fft.ihfft(REAL, norm=norm), atol=1e-13)
    for dim in (None, -1, (0, 2)):
        np.testing.assert_array_equal(leafgrad_fft.fftshift(z, dim).numpy(), np.fft.fftshift(COMPLEX, dim))
        np.testing.assert_array_equal(leafgrad_fft.ifftshift(z, dim).numpy(), np.fft.ifftshift(COMPLEX, dim))


def test_gradients_by_real_and_complex_numbers():
    z, x = (leafgrad.tensor(a[:1, :2], requires_grad=True) for a in (COMPLEX, REAL))
    for function, point in ((leafgrad_fft.fft2, z), (leafgrad_fft.irfft, z), (leafgrad_fft.rfft2, x)):
        assert gradcheck(function, (point,), check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(function, (point,))


# ---- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda z: leafgrad_fft.rfft(z),
            RuntimeError,
            r"rfft expects a real input tensor, but got leafgrad.complex128; use fft",
        ),
        (lambda z: leafgrad_fft.fft(z, 0), RuntimeError, r"fft: Invalid number of data points \(0\) specified"),
        (lambda z: leafgrad_fft.fft(z, -1), RuntimeError, r"fft: Invalid number of data points \(-1\) .* for n"),
        (lambda z: leafgrad_fft.hfft(z, -1), RuntimeError, r"hfft: Invalid number of data points \(-1\)"),
        (lambda z: leafgrad_fft.ihfft(z.real, -1), RuntimeError, r"ihfft: Invalid number of data points \(-1\)"),
        (lambda z: leafgrad_fft.rfft(z.real, "mean"), TypeError, r"rfft: n: expected an int, got 'mean' \(str\)"),
        (lambda z: leafgrad_fft.rfft(z.real, math.nan), TypeError, r"rfft: n: expected an int, got nan"),
        (lambda z: leafgrad_fft.rfft(z.real, dim=True), TypeError, r"rfft: dim: expected an int, got True"),
        (lambda z: leafgrad_fft.fftn(z, (2.5,)), TypeError, r"fftn: s: expected an int, got 2.5"),
        (lambda z: leafgrad_fft.fftn(z, (0,)), RuntimeError, r"fftn: .* expected at least one along dimension -1"),
        (lambda z: leafgrad_fft.fft(z, dim=3), IndexError, r"fft: dim: Dimension out of range .* \[-3, 2\], but got 3"),
        (
            lambda z: leafgrad_fft.fft2(z, dim=(1, -2)),
            RuntimeError,
            r"fft2: dim: FFT dims must be unique, got \(-2, -2\)",
        ),
        (lambda z: leafgrad_fft.fft2(z, (3,)), RuntimeError, r"fft2: dim and shape .* got 2 dimensions and 1 sizes"),
        (
            lambda z: leafgrad_fft.fftn(z, (1, 2, 3, 4)),
            RuntimeError,
            r"fftn: s: got 4 values but .* only has 3 dimensions",
        ),
        (lambda z: leafgrad_fft.irfftn(z, dim=()), RuntimeError, r"irfftn must transform at least one axis"),
        (lambda z: leafgrad_fft.fft(z, norm="both"), RuntimeError, r"norm: expected 'backward', 'ortho' or 'forward'"),
        (
            lambda z: leafgrad_fft.irfft(z[..., :1]),
            RuntimeError,
            r"irfft: .* points \(0\) .* dimension -1; give its size",
        ),
        (lambda z: leafgrad_fft.fft(3.0), TypeError, r"fft: input: expected a Tensor, got float"),
        (lambda z: leafgrad_fft.rfftfreq("mean"), TypeError, r"rfftfreq: n: expected an int, got"),
        (lambda z: leafgrad_fft.fftfreq(2.5), TypeError, r"fftfreq: n: expected an int, got 2.5"),
        (lambda z: leafgrad_fft.rfftfreq(-1), RuntimeError, r"rfftfreq: n: expected no negative number of points"),
        (lambda z: leafgrad_fft.fftfreq(3, None), TypeError, r"fftfreq: d: expected the distance of points, a number"),
    ],
)
def test_what_is_refused(call, error, match):
    with pytest.raises(error, match=match):
        call(leafgrad.tensor(COMPLEX))


# ---- layers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("modes", "grid"), [(3, (8,)), ((2, 3), (5, 6)), ((1, 2, 2), (4, 5, 3))])
def test_a_spectral_convolution_is_one(modes, grid, device):
    """Against complex numbers of NumPy, on all frequencies, with zeros where the layer has none."""
    layer = leafgrad_fft.SpectralConv(2, 3, modes, dtype=leafgrad.float64, device=device)
    x = RNG.normal(size=(4, 2, *grid))
    weight = layer.weight.detach().cpu().numpy()
    weight = weight[..., 0] + 1j * weight[..., 1]
    axes = tuple(range(2, x.ndim))
    spectrum = np.fft.rfftn(x, axes=axes)
    filtered = np.zeros((4, 3, *spectrum.shape[2:]), complex)
    for at in np.ndindex(*weight.shape[2:]):
        *lead, last = at  # the second half of what there is in the leading dimensions has negative frequencies
        place = (*[k if k < m else k - 2 * m for k, m in zip(lead, layer.modes[:-1], strict=True)], last)
        filtered[:, :, *place] = spectrum[:, :, *place] @ weight[:, :, *at]
    y = layer(leafgrad.tensor(x, device=device))
    np.testing.assert_allclose(y.detach().cpu().numpy(), np.fft.irfftn(filtered, grid, axes=axes), atol=1e-13)


def test_a_spectral_convolution_knows_no_grid():
    layer = leafgrad_fft.SpectralConv(1, 1, 4, dtype=leafgrad.float64)
    fine = leafgrad.tensor(np.sin(2 * np.pi * np.arange(64) / 64)[None, None])
    found, expected = layer(fine)[..., ::4], layer(fine[..., ::4])
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-14)


def test_gradients_of_a_spectral_convolution():
    layer = leafgrad_fft.SpectralConv(1, 2, (1, 2), dtype=leafgrad.float64)
    x = leafgrad.tensor(RNG.normal(size=(1, 1, 3, 4)), requires_grad=True)
    assert gradcheck(lambda x, w: layer(x) * 1.0, (x, layer.weight))
    assert gradgradcheck(lambda x, w: layer(x) ** 2, (x, layer.weight), fast_mode=True)


def test_what_a_spectral_convolution_refuses():
    with pytest.raises(RuntimeError, match="modes: expected a positive number for each dimension, got"):
        leafgrad_fft.SpectralConv(1, 1, 0)
    with pytest.raises(RuntimeError, match="in_channels: expected a positive number, got"):
        leafgrad_fft.SpectralConv(0, 1, 3)
    for wrong in ((1, 1, "x"), (1, 1, None), (1, 1, (2, 2.5)), ("a", 1, 2), (1, 1.5, 2)):
        with pytest.raises(TypeError, match=r"SpectralConv: (modes|in_channels|out_channels): expected integers, got"):
            leafgrad_fft.SpectralConv(*wrong)
    layer = leafgrad_fft.SpectralConv(2, 1, 3)
    with pytest.raises(TypeError, match="input: expected a Tensor, got int"):
        layer(3)
    with pytest.raises(RuntimeError, match=r"expected input of shape \(N, 2, \*grid\) with a grid of 1 dimensions"):
        layer(leafgrad.zeros(1, 1, 8))
    with pytest.raises(RuntimeError, match=r"expected a grid of at least \(5,\) for modes \(3,\), got \(4,\)"):
        layer(leafgrad.zeros(1, 2, 4))
    assert repr(layer) == "SpectralConv(2, 1, modes=(3,))"


def test_the_entry_point_is_found():
    plugins.load()
    (found,) = [p for p in plugins.status() if p.name == "fft"]
    assert (found.distribution, found.status) == ("leafgrad-fft", "active")
    assert plugins.op("fft_real") is leafgrad_fft.leafgrad_ops()[1]


def test_loading_the_plugin_leaves_layers_for_later():
    program = "import leafgrad, sys; leafgrad.plugins.load(); import leafgrad_fft; print('leafgrad.nn' in sys.modules, "
    program += "all(hasattr(leafgrad_fft, name) for name in dir(leafgrad_fft)), 'leafgrad.nn' in sys.modules)"
    environment = {**os.environ, "LEAFGRAD_PLUGINS": "fft"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert run.stdout.split() == ["False", "True", "True"]
    with pytest.raises(AttributeError, match="module 'leafgrad_fft' has no attribute 'Conv'"):
        _ = leafgrad_fft.Conv


@pytest.mark.parametrize(("modes", "grid", "padding"), [(3, (8,), 0.0), ((2, 3), (6, 8), 0.0), ((2, 2), (6, 5), 0.4)])
def test_a_fourier_neural_operator_is_its_layers(modes, grid, padding):
    """Against its formula, with the values of its own layers at each point."""
    net = leafgrad_fft.FNO(2, 3, modes, width=4, depth=2, padding=padding, dtype=leafgrad.float64)
    x = leafgrad.tensor(RNG.normal(size=(5, 2, *grid)))

    def at_each(layer, x):
        rows = x.movedim(1, -1)
        return (rows @ layer.weight[:, :, 0].T + layer.bias).movedim(-1, 1)

    places = np.stack(np.meshgrid(*[np.linspace(0, 1, n) for n in grid], indexing="ij"))
    h = at_each(net.lift, leafgrad.cat([x, leafgrad.tensor(np.repeat(places[None], 5, 0))], 1))
    larger = leafgrad.zeros(5, 4, *[n + round(padding * n) for n in grid], dtype=leafgrad.float64)
    inside = (slice(None), slice(None), *[slice(n) for n in grid])
    larger[inside] = h
    h = leafgrad.nn.functional.gelu(net.spectral[0](larger) + at_each(net.local[0], larger))
    h = (net.spectral[1](h) + at_each(net.local[1], h))[inside]
    expected = at_each(net.project[2], leafgrad.nn.functional.gelu(at_each(net.project[0], h)))
    found = net(x)
    assert tuple(found.shape) == (5, 3, *grid)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-12)


def test_a_fourier_neural_operator_takes_any_grid_and_refuses_others():
    net = leafgrad_fft.FNO(1, 1, (2, 2), width=4, depth=1)
    assert tuple(net(leafgrad.rand(2, 1, 9, 12)).shape) == (2, 1, 9, 12)
    with pytest.raises(
        RuntimeError, match=r"FNO: expected input of shape \(N, 1, \*grid\) with a grid of 2 dimensions"
    ):
        net(leafgrad.rand(2, 1, 9))
    with pytest.raises(RuntimeError, match="expected a grid of at least"):
        net(leafgrad.rand(2, 1, 3, 3))
    with pytest.raises(TypeError, match="FNO: input: expected a Tensor, got int"):
        net(3)
    with pytest.raises(
        ValueError, match="FNO: expected a depth of at least 1 and a padding of at least 0, got 0 and 0"
    ):
        leafgrad_fft.FNO(1, 1, 2, depth=0)
    with pytest.raises(TypeError, match="modes: expected integers"):
        leafgrad_fft.FNO(1, 1, 2.5)


def test_of_a_misspelt_name_python_is_told_where_to_look_for_another():
    with pytest.raises(AttributeError, match="'leafgrad_fft' has no attribute 'ftt'") as caught:
        _ = leafgrad_fft.ftt
    assert caught.value.obj is leafgrad_fft


def test_a_name_that_it_lacks_does_not_read_as_if_it_were_missing():
    program = "import leafgrad; leafgrad.fft; from leafgrad.compat import install_as_torch; install_as_torch(); "
    program += "import torch; torch.fft.foo"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "AttributeError: torch.fft.foo: leafgrad-fft, which is installed, has no 'foo'" in run.stderr

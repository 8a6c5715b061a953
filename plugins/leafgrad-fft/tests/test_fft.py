"""Values against NumPy's transforms, derivatives against differences, dtypes, devices, batches, programs, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import leafgrad
import leafgrad_fft
from leafgrad import plugins
from leafgrad.autograd import grad, gradcheck, gradgradcheck
from leafgrad.func import vmap
from leafgrad_fft import ops as fft_ops

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(2, 5, 6))
COMPLEX = RNG.normal(size=(2, 5, 4, 2))

# Name, arguments; of those of complex numbers and of those of real ones.
OF_COMPLEX = [
    *[(name, {"n": n, "dim": d}) for name in ("fft", "ifft", "irfft") for n in (None, 1, 7) for d in (-1, 0)],
    *[
        (name, {"s": s, "dim": d})
        for name in ("fft2", "ifft2", "irfft2")
        for s, d in [(None, (-2, -1)), ((3, 7), (0, -1))]
    ],
    *[(name, {"s": s, "dim": None}) for name in ("fftn", "ifftn", "irfftn") for s in [None, (4, 5), (3, 2, 5)]],
]
OF_REAL = [
    *[("rfft", {"n": n, "dim": d}) for n in (None, 1, 8) for d in (-1, 0)],
    *[("rfft2", {"s": s, "dim": d}) for s, d in [(None, (-2, -1)), ((3, 7), (0, -1))]],
    *[("rfftn", {"s": s, "dim": None}) for s in [None, (4, 5), (3, 2, 5)]],
]
ROWS = [(name, options, COMPLEX) for name, options in OF_COMPLEX] + [(name, options, REAL) for name, options in OF_REAL]
rows = pytest.mark.parametrize(("name", "options", "x"), ROWS, ids=[f"{n}-{o}" for n, o, _ in ROWS])
norms = pytest.mark.parametrize("norm", [None, "ortho", "forward"])
dtypes = pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 3e-6), ("float16", 5e-3)])


def numpys(name, x, options):
    """NumPy's function of the name, on and to pairs."""
    axes = {"dim": "axes" if "s" in options else "axis", "n": "n", "s": "s", "norm": "norm"}
    options = {axes[key]: value for key, value in options.items()}
    if options.get("axes", 0) is None:
        options["axes"] = tuple(range(-(3 if options["s"] is None else len(options["s"])), 0))
    z = getattr(np.fft, name)(x if name.startswith("r") else x[..., 0] + 1j * x[..., 1], **options)
    return np.stack([z.real, z.imag], -1) if np.iscomplexobj(z) else z


@rows
@norms
@dtypes
def test_values_are_numpys_in_the_dtype_of_the_argument(name, options, x, norm, dtype, tolerance, device):
    x = x.astype(dtype)
    y = getattr(leafgrad_fft, name)(leafgrad.tensor(x, device=device), norm=norm, **options)
    expected = numpys(name, x.astype("float64"), {**options, "norm": norm})
    assert (y.dtype.name, y.device, tuple(y.shape)) == (dtype, device, expected.shape)
    np.testing.assert_allclose(y.cpu().numpy(), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@rows
@norms
def test_derivatives(name, options, x, norm):
    x = leafgrad.tensor(x[:, :3, :3], requires_grad=True)

    def function(x):
        y = getattr(leafgrad_fft, name)(x, norm=norm, **options)
        return y * y  # so that the second derivative is not zero

    assert gradcheck(function, (x,), fast_mode=True)
    assert gradgradcheck(function, (x,), fast_mode=True)


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def numbers(x):
    return x[..., 0] + 1j * x[..., 1]


def counts(n):
    """How many of n coefficients each of the first half stands for."""
    return np.array([1] + [2] * ((n - 1) // 2) + [1] * (n % 2 == 0))[:, None]


def complex_transform(x, *, dims, inverse, norm):
    return pairs((np.fft.ifftn if inverse else np.fft.fftn)(numbers(x), axes=dims, norm=norm))


def real_transform(x, *, dim, norm, doubled):
    return pairs(np.fft.rfft(x, axis=dim, norm=norm)) * (counts(x.shape[dim]) if doubled else 1)


def real_inverse(x, *, n, dim, norm, halved):
    return np.fft.irfft(numbers(x / counts(n) if halved else x), n, axis=dim, norm=norm)


FLAGS = (False, True)
# Op, samples, reference.
OP_ROWS = [
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
]


@pytest.mark.parametrize(("op", "samples", "reference"), OP_ROWS, ids=lambda row: getattr(row, "name", ""))
def test_ops(op, samples, reference, device):
    for (x,), params in samples:
        y = op(leafgrad.tensor(x, device=device), **params)
        np.testing.assert_allclose(y.cpu().numpy(), reference(x, **params), atol=1e-13)
        x = leafgrad.tensor(x, requires_grad=True)

        def function(x, op=op, params=params):
            return op(x, **params) ** 2

        assert gradcheck(function, (x,), fast_mode=True, check_forward_ad=True)
        assert gradgradcheck(function, (x,), fast_mode=True, check_fwd_over_rev=True)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_every_element_of_the_jacobian_and_of_the_third_derivative(name):
    function = getattr(leafgrad_fft, name)
    for n in (1, 4, 5):
        x = leafgrad.tensor(COMPLEX[0, 0] if name != "rfft" else REAL[0, 0, :4], requires_grad=True)
        assert gradcheck(lambda x, n=n: function(x, n), (x,))

        def second(x, n=n):
            (g,) = grad((function(x, n) ** 4).sum(), x, create_graph=True)
            return grad((g * g).sum(), x, create_graph=True)[0]

        assert gradcheck(second, (x,), atol=1e-4)


@rows
def test_gradients_keep_dtype_and_device(name, options, x, device):
    x = leafgrad.tensor(x, dtype=leafgrad.float32, device=device, requires_grad=True)
    (g,) = grad((getattr(leafgrad_fft, name)(x, **options) ** 2).sum(), x, create_graph=True)
    assert (g.dtype, g.device, g.shape) == (leafgrad.float32, device, x.shape)


@pytest.mark.parametrize(("name", "x"), [("fft", COMPLEX), ("ifft", COMPLEX), ("irfft", COMPLEX), ("rfft", REAL)])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_batch_anywhere(name, x, place):
    function = getattr(leafgrad_fft, name)
    batch = np.moveaxis(np.stack([x, 2 * x]), 0, place)
    found = vmap(lambda x: function(x, 5, 1), place)(leafgrad.tensor(batch)).numpy()
    expected = function(leafgrad.tensor(x), 5, 1).numpy()
    np.testing.assert_allclose(found, [expected, 2 * expected], rtol=1e-14)


def test_no_norm_is_backward():
    x = leafgrad.tensor(COMPLEX)
    for function in (leafgrad_fft.fft, leafgrad_fft.ifft, leafgrad_fft.irfft):
        np.testing.assert_array_equal(function(x).numpy(), function(x, norm="backward").numpy())


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
    np.testing.assert_allclose(turned.numpy(), numpys("fft", COMPLEX.transpose(2, 1, 0, 3), {"dim": -1}), atol=1e-14)
    assert leafgrad_fft.rfft(leafgrad.zeros(0, 6)).shape == (0, 4, 2)
    assert leafgrad_fft.rfft(leafgrad.tensor([1, 2, 3])).dtype is leafgrad.float32


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n):
    np.testing.assert_allclose(leafgrad_fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5), rtol=1e-6)
    np.testing.assert_allclose(leafgrad_fft.rfftfreq(n, 0.5).numpy(), np.fft.rfftfreq(n, 0.5), rtol=1e-6)


def spectral_derivative(x):
    """A step with transforms and gradients of them."""
    spectrum = leafgrad_fft.rfft(leafgrad.sin(x), norm="ortho")
    energy = (spectrum[..., 1:, :] ** 2).sum()
    (g,) = grad(energy, x, create_graph=True)
    return grad((g * g).sum(), x)[0]


def test_compiled_and_eager_agree(device):
    x = leafgrad.linspace(0, 2, 12, dtype=leafgrad.float64, device=device).reshape(2, 6).requires_grad_()
    compiled = leafgrad.compile(spectral_derivative)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).cpu().numpy(), spectral_derivative(x).cpu().numpy(), rtol=1e-12)


# ---- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda z: leafgrad_fft.fft(z[..., 0]),
            RuntimeError,
            r"fft: input: expected complex numbers as a last dim.*rfft",
        ),
        (lambda z: leafgrad_fft.fft(z, 0), RuntimeError, r"fft: expected at least one point along dimension -1, got 0"),
        (lambda z: leafgrad_fft.fft(z, dim=3), IndexError, r"fft: dim: expected a dimension from -3 to 2, got 3"),
        (lambda z: leafgrad_fft.fft2(z, dim=(1, -2)), RuntimeError, r"fft2: dim: expected each dimension once"),
        (lambda z: leafgrad_fft.fft2(z, (3,)), RuntimeError, r"fft2: s: expected 2 sizes, one for each of dim, got 1"),
        (lambda z: leafgrad_fft.fftn(z, dim=()), RuntimeError, r"fftn: dim: expected at least one dimension"),
        (lambda z: leafgrad_fft.rfft(z, norm="both"), RuntimeError, r"norm: expected 'backward', 'ortho' or 'forward'"),
        (lambda z: leafgrad_fft.irfft(z[..., :1, :]), RuntimeError, r"irfft: expected at least one .* got 0; give its"),
        (lambda z: leafgrad_fft.fft(3.0), TypeError, r"fft: input: expected a Tensor, got float"),
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
    with pytest.raises(RuntimeError, match="modes: expected a positive number for each dimension, got 0"):
        leafgrad_fft.SpectralConv(1, 1, 0)
    layer = leafgrad_fft.SpectralConv(2, 1, 3)
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

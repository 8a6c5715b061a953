"""Short-time transforms: values and gradients are PyTorch's, compiled and on batches too; errors."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

import leafgrad
from leafgrad import fft, func
from leafgrad.autograd import grad, gradcheck, gradgradcheck

RNG = np.random.default_rng(0)
SIGNAL, WINDOW = RNG.normal(size=(2, 30)), RNG.uniform(0.3, 1, 7)
FORMS = [
    dict(zip(("hop_length", "center", "normalized", "onesided", "pad_mode"), form, strict=True))
    for form in itertools.product((None, 3), (True, False), (True, False), (None, False), ("reflect", "constant"))
]


def of(t, x, window, hop_length=2, center=True, normalized=False, onesided=None, pad_mode="reflect"):
    """The transform, and the signal back from it."""
    options = {"hop_length": hop_length, "win_length": 7, "window": window, "center": center, "normalized": normalized}
    spectra = t.stft(x, 8, **options, onesided=onesided, pad_mode=pad_mode, return_complex=True)
    return spectra, t.istft(spectra * 1.5, 8, **options, onesided=onesided, length=26)


@pytest.mark.parametrize("form", FORMS)
def test_values_and_gradients_are_pytorchs(form):
    torch = pytest.importorskip("torch")
    found = []
    for t in (torch, leafgrad):
        x, window = t.tensor(SIGNAL, requires_grad=True), t.tensor(WINDOW, requires_grad=True)
        results = of(t, x, window, **form)
        loss = sum((r.abs() ** 2).sum() for r in results) + t.sin(results[1]).sum()
        first = t.autograd.grad(loss, x, create_graph=True)[0]
        found.append([*results, first, t.autograd.grad(t.sin(first).sum(), x)[0]])
    for ours, theirs in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.numpy(force=True), rtol=1e-9, atol=1e-10)


def test_the_inverse_gives_the_signal_back_with_gradients_of_both_orders():
    x, window = leafgrad.tensor(SIGNAL, requires_grad=True), leafgrad.tensor(WINDOW, requires_grad=True)
    assert np.allclose(of(leafgrad, x, window)[1].detach().numpy(), 1.5 * SIGNAL[:, :26])
    small = x[0, :12].detach().requires_grad_()

    def function(x, window):
        return x.stft(8, 3, 7, window, return_complex=True)

    assert gradcheck(function, (small, window), check_forward_ad=True)
    assert gradgradcheck(lambda x: function(x, window.detach()).abs(), (small,))


def test_steps_are_compiled_and_samples_mapped():
    x, window = leafgrad.tensor(SIGNAL, requires_grad=True), leafgrad.tensor(WINDOW)

    def step(x, window):
        spectra, again = of(leafgrad, x, window)
        return grad((spectra.abs() ** 3).sum() + (again**3).sum(), x)[0]

    compiled = leafgrad.compile(step)
    for factor in (1.0, 1.0, 0.5):
        np.testing.assert_allclose(compiled(x * factor, window).numpy(), step(x * factor, window).numpy(), rtol=1e-10)
    mapped = func.vmap(lambda x: of(leafgrad, x, window))(x.detach())
    for ours, whole in zip(mapped, of(leafgrad, x.detach(), window), strict=True):
        np.testing.assert_allclose(ours.numpy(), whole.numpy(), rtol=1e-12, atol=1e-14)


def test_complex_signals_have_both_sides():
    x, window = leafgrad.tensor(SIGNAL * (1 + 2j)), leafgrad.tensor(WINDOW)
    spectra = leafgrad.stft(x, 7, 2, window=window)
    assert (spectra.shape, spectra.dtype) == ((2, 7, 15), leafgrad.complex128)
    again = leafgrad.istft(spectra, 7, 2, window=window, length=30, return_complex=True)
    np.testing.assert_allclose(again.numpy(), x.numpy(), rtol=1e-12)
    parts = leafgrad.stft(x.real, 7, 2, window=window, return_complex=False)
    assert parts.shape == (2, 4, 15, 2)


def test_frames_may_begin_with_the_window():
    x, window = leafgrad.tensor(SIGNAL), leafgrad.tensor(WINDOW)
    spectra = leafgrad.stft(x, 10, 3, 7, window, center=False, return_complex=True, align_to_window=True)
    assert spectra.shape == (2, 6, 8)
    frames = np.lib.stride_tricks.sliding_window_view(SIGNAL, 7, 1)[:, ::3] * WINDOW
    expected = np.fft.rfft(np.pad(frames, ((0, 0), (0, 0), (1, 2)))).swapaxes(1, 2)
    np.testing.assert_allclose(spectra.numpy(), expected, rtol=1e-12, atol=1e-14)


def test_they_are_where_pytorch_has_them():
    assert leafgrad.stft is fft.stft
    assert inspect.unwrap(leafgrad.Tensor.istft) is inspect.unwrap(fft.istft)  # which classes of tensors may ask about


def test_what_goes_wrong_is_said():
    x, window = leafgrad.tensor(SIGNAL), leafgrad.ones(8, dtype=leafgrad.float64)
    spectra = leafgrad.stft(x, 8, window=window, return_complex=True)
    ends = leafgrad.hann_window(8, dtype=leafgrad.float64)
    for call, message in [
        (lambda: fft.stft(x, 8, window=window), "requires the return_complex parameter"),
        (lambda: fft.stft(x + 0j, 8, window=window, onesided=True), "Cannot have onesided output"),
        (lambda: fft.stft(x.long(), 8, return_complex=True), "floating point or complex values, got leafgrad.int64"),
        (lambda: fft.stft(x[None], 8, return_complex=True), "expected a 1D or 2D tensor, got 3D"),
        (lambda: fft.stft(x, 8, return_complex=True, align_to_window=False), "only be set when center = false"),
        (lambda: fft.stft(x, 8, 0, return_complex=True), "expected hop_length > 0, but got hop_length=0"),
        (lambda: fft.stft(x, 8, 2, 9, return_complex=True), "0 < win_length <= n_fft, but got win_length=9"),
        (lambda: fft.stft(x, 8, 2, 7, window, return_complex=True), r"equal to win_length=7, but got .* size \[8\]"),
        (lambda: fft.stft(x, 31, window=leafgrad.ones(31), center=False, return_complex=True), "0 < n_fft <= 30"),
        (lambda: fft.istft(x, 8, window=window), "requires a complex-valued input tensor"),
        (lambda: fft.istft(spectra, 12, window=leafgrad.ones(12)), r"the frequency dimension .* but got 5"),
        (lambda: fft.istft(spectra, 8, window=window, return_complex=True), "cannot have onesided input"),
        (lambda: fft.istft(spectra, 8, 2, window=ends, center=False), "window overlap add min: 1"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.raises(TypeError, match=r"hop_length: expected an int, got 1.5"):
        fft.stft(x, 8, 1.5)
    with pytest.warns(UserWarning, match="A window was not provided"):
        fft.stft(x, 8, return_complex=True)
    with pytest.warns(UserWarning, match="The length of signal is shorter"):
        assert fft.istft(spectra, 8, window=window, length=50).shape == (2, 50)


@pytest.mark.filterwarnings("ignore:A window was not provided")
def test_flags_and_sizes_of_numpy():
    x = leafgrad.from_numpy(SIGNAL)
    whole = fft.stft(x, 8, 2, onesided=False, return_complex=True)
    for no in (0, np.False_):
        assert leafgrad.equal(fft.stft(x, 8, 2, onesided=no, return_complex=True), whole)
        assert fft.stft(x, 8, 2, return_complex=no).shape == (2, 5, 16, 2)
    sizes = np.int64(8), np.int64(2), np.int64(8)
    spectra = fft.stft(x, *sizes, return_complex=True)
    assert leafgrad.equal(fft.istft(spectra, *sizes), fft.istft(spectra, 8, 2))

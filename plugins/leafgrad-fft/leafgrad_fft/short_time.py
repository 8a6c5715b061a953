"""Short-time Fourier transforms: the spectra of overlapping frames of a signal, and the signal back from them."""

from __future__ import annotations

import warnings
from typing import Any

import leafgrad
from leafgrad import Tensor
from leafgrad.ops.refuse import refuse
from leafgrad.ops.runtime import runtime
from leafgrad_fft.transforms import expect_int, fft, ifft, irfft, rfft

LEFT_OUT = (
    "istft: window overlap add min: 1; the windows leave a point of the signal out: expected a window without zeros at "
    "its ends, or a smaller hop_length, or center=True"
)


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The spectra of frames of a signal. (..., length) -> (..., frequencies, frames) complex

    Args:
        input: one signal or a batch of them, real or complex.
        n_fft: the number of points of each frame.
        hop_length: from frame to frame; n_fft // 4 by default.
        win_length: the size of ``window``, around which zeros fill up to n_fft; n_fft by default.
        window: what each frame is multiplied with, (win_length,); ones by default.
        center: frame t is centred at t * hop_length, and the signal padded by ``pad_mode``; else it begins there.
        normalized: divide by the root of n_fft.
        onesided: the n_fft // 2 + 1 coefficients that tell the others; by default unless a signal or window is complex.
        return_complex: True; or False for real and imaginary part in a last dimension.
        align_to_window: without ``center``, frames are the win_length points of the window, to which zeros are added,
            so that the first one begins with the signal; else they are n_fft points of the signal.

    Raises:
        RuntimeError: sizes that do not fit, integers, or no ``return_complex`` for a real signal.
    """
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    _expect_signal(input)
    n_fft, hop, window = _frame_of("stft", n_fft, hop_length, win_length, window, input.dtype.to_real(), input.device)
    both = input.dtype.is_complex or window.dtype.is_complex
    if return_complex is None and not both:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs; expected return_complex=True"
        )
    if onesided and both:
        raise RuntimeError("Cannot have onesided output if window or input is complex; expected onesided=False or None")
    x = input if input.ndim == 2 else input[None]
    if not align_to_window:
        window = _between_zeros(window, n_fft)
    if center:
        x = leafgrad.nn.functional.pad(x[:, None], (n_fft // 2, n_fft // 2), mode=pad_mode)[:, 0]
    if not 0 < (points := window.shape[0]) <= x.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {x.shape[-1]}, the padded length, but got n_fft={points}")
    transform = fft if both or not (onesided is None or onesided) else rfft
    frames = _between_zeros(x.unfold(-1, points, hop) * window, n_fft)
    spectra = transform(frames, norm="ortho" if normalized else None).transpose(1, 2)
    spectra = spectra if input.ndim == 2 else spectra[0]
    return leafgrad.view_as_real(spectra) if not (return_complex is None or return_complex) else spectra


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The inverse of `stft`, by least squares where frames disagree. (..., frequencies, frames) -> (..., length)

    Griffin and Lim (1984). Arguments are those of `stft`, and:

    Args:
        length: of the signal, which is cut, or filled up with zeros, to it; by default what the frames reach.
        return_complex: of all n_fft coefficients, give a complex signal.

    Raises:
        RuntimeError: sizes that do not fit, real input, or windows that leave a point out.
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"istft: input: expected a Tensor, got {type(input).__name__}")
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True, got "
            f"{input.dtype}"
        )
    if input.ndim not in (2, 3) or not input.numel():
        raise RuntimeError(
            f"istft: input: expected (frequencies, frames) or a batch of them, not empty, got {list(input.shape)}"
        )
    n_fft, hop, window = _frame_of("istft", n_fft, hop_length, win_length, window, input.dtype.to_real(), input.device)
    window = _between_zeros(window, n_fft)
    x = (input if input.ndim == 3 else input[None]).transpose(1, 2)
    frequencies, count = x.shape[2], x.shape[1]
    if onesided is None:
        onesided = frequencies != n_fft
    if frequencies != (n_fft // 2 + 1 if onesided else n_fft):
        raise RuntimeError(
            "istft: expected the frequency dimension of the input tensor to match n_fft / 2 + 1 when onesided=True, "
            f"and n_fft else, but got {frequencies} with n_fft={n_fft} and onesided={onesided}"
        )
    if return_complex and onesided:
        raise RuntimeError("cannot have onesided input with complex output; expected onesided=False")
    if not return_complex and window.dtype.is_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    norm = "ortho" if normalized else None
    if return_complex:
        frames = ifft(x, norm=norm)
    else:
        frames = irfft(x if onesided else x.narrow(2, 0, n_fft // 2 + 1), n_fft, norm=norm)
    total = n_fft + hop * (count - 1)
    signal = _overlapped(frames * window, hop, total)
    weight = _overlapped((window * window).expand(1, count, n_fft), hop, total)
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else total - (n_fft // 2 if center else 0)
    signal, weight = signal[:, start:stop], weight[:, start:stop]
    refuse(weight.abs() <= 1e-11, error=RuntimeError, message=LEFT_OUT)
    signal = signal / weight
    if length is not None and signal.shape[1] < length:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings.",
            stacklevel=2,
        )
        signal = leafgrad.nn.functional.pad(signal, (0, length - signal.shape[1]))
    return signal if input.ndim == 3 else signal[0]


def _expect_signal(input: Any) -> None:
    if not isinstance(input, Tensor):
        raise TypeError(f"stft: input: expected a Tensor, got {type(input).__name__}")
    if not input.dtype.is_differentiable:
        raise RuntimeError(f"stft: expected a tensor of floating point or complex values, got {input.dtype}")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, got {input.ndim}D")


def _frame_of(
    function: str, n_fft: int, hop_length: int | None, win_length: int | None, window: Any, dtype: Any, device: Any
) -> tuple[int, int, Tensor]:
    """How many points a frame has, how far it is to the next one, and the window, (win_length,)."""
    n_fft = expect_int(function, "n_fft", n_fft)
    hop = n_fft // 4 if hop_length is None else expect_int(function, "hop_length", hop_length)
    size = n_fft if win_length is None else expect_int(function, "win_length", win_length)
    for name, value in (("n_fft", n_fft), ("hop_length", hop), ("win_length", size)):
        if value <= 0:
            raise RuntimeError(f"{function}: expected {name} > 0, but got {name}={value}")
    if size > n_fft:
        raise RuntimeError(f"{function}: expected 0 < win_length <= n_fft, but got win_length={size}")
    if window is None:
        warnings.warn(
            "A window was not provided. A rectangular window will be applied, which is known to cause spectral "
            "leakage; pass another as window, such as leafgrad.hann_window.",
            stacklevel=3,
        )
        window = leafgrad.ones(size, dtype=dtype, device=device)
    if not isinstance(window, Tensor) or tuple(window.shape) != (size,):
        got = list(window.shape) if isinstance(window, Tensor) else repr(window)
        raise RuntimeError(
            f"{function}: expected a 1D window tensor of size equal to win_length={size}, but got window with size "
            f"{got}"
        )
    return n_fft, hop, window


def _between_zeros(x: Tensor, n: int) -> Tensor:
    """(..., m) -> (..., n), of which the m are in the middle."""
    more = n - x.shape[-1]
    return leafgrad.nn.functional.pad(x, (more // 2, more - more // 2)) if more else x


def _overlapped(frames: Tensor, hop: int, total: int) -> Tensor:
    """The sum of frames, each ``hop`` further on. (batch, frames, n) -> (batch, total)"""
    n = frames.shape[-1]
    return leafgrad.nn.functional.fold(frames.transpose(1, 2), (1, total), (1, n), stride=(1, hop)).reshape(-1, total)


runtime.attach("stft", stft)
runtime.attach("istft", istft)

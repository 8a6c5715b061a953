"""Window functions against NumPy's, and those of torch.signal."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import windows as reference

import leafgrad
from leafgrad.compat.torch.signal import windows

NAMES = ("bartlett", "blackman", "hamming", "hann", "kaiser")


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("name", NAMES)
def test_windows(name, length):
    make = getattr(leafgrad, f"{name}_window")
    of = {"kaiser": lambda n: np.kaiser(n, 12.0), "hann": np.hanning}.get(name) or getattr(np, name)
    np.testing.assert_allclose(make(length, False, dtype=leafgrad.float64), of(length), atol=1e-15)
    periodic = of(length + 1)[:length] if length > 1 else of(length)
    np.testing.assert_allclose(make(length, dtype=leafgrad.float64), periodic, atol=1e-15)
    assert make(length).dtype is leafgrad.float32


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("length", [1, 2, 7, 8])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in ("bartlett", "blackman", "cosine", "hamming", "hann", "nuttall")),
        ("exponential", {"tau": 2.0}), ("gaussian", {"std": 2.0}), ("general_cosine", {"a": [0.5, 0.3, 0.2]}),
        ("general_hamming", {"alpha": 0.6}), ("kaiser", {"beta": 5.0}),
    ],
)  # fmt: skip
def test_windows_of_signal(name, options, length, sym):
    made = getattr(windows, name)(length, sym=sym, dtype=leafgrad.float64, **options)
    np.testing.assert_allclose(made, getattr(reference, name)(length, sym=sym, **options), atol=1e-14)


def test_errors():
    with pytest.raises(RuntimeError, match="non-negative window_length, got window_length=-1"):
        leafgrad.hann_window(-1)
    with pytest.raises(RuntimeError, match=r"floating point dtypes, got: leafgrad\.int64"):
        leafgrad.hann_window(3, dtype=leafgrad.int64)
    assert leafgrad.kaiser_window(4, requires_grad=True).is_leaf

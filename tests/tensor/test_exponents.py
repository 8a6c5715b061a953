"""Powers of two that are no numbers of a dtype, where their products with its numbers are some."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad

X = [1.5, -1.25, 2.0**-14, 2.0**14, 0.0, -0.0, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ldexp_is_that_of_c(dtype, device):
    """Numbers that are powers of two times others alone: so the last of them may not be rounded."""
    most = np.finfo(dtype).maxexp
    powers = [*range(-2 * most, 2 * most, 1 if most < 1000 else 37), 2**40, -(2**40)]
    x, n = np.meshgrid(np.array(X, dtype), powers)
    result = leafgrad.ldexp(leafgrad.tensor(x, device=device), leafgrad.tensor(n, device=device))
    with np.errstate(over="ignore", under="ignore"):
        expected = np.ldexp(x, n.clip(-(10**6), 10**6).astype("int32"))
    if device.type == "cuda":  # CuPy's powers of two are rounded, and its numbers below the least normal one are 0
        least, rtol = np.finfo(dtype).tiny, 4 * np.finfo(dtype).eps
        np.testing.assert_allclose(result.cpu().numpy(), expected, rtol=rtol, atol=least)
    else:
        np.testing.assert_array_equal(result.cpu().numpy(), expected, strict=True)


@pytest.mark.parametrize("kind", [leafgrad.float16, leafgrad.float64, leafgrad.complex128])
def test_ldexp_has_the_dtype_of_input(kind):
    assert leafgrad.ldexp(leafgrad.ones((), dtype=kind), leafgrad.arange(3)).dtype is kind
    assert leafgrad.ldexp(leafgrad.tensor(3), leafgrad.tensor(-1, dtype=leafgrad.int8)).item() == 1.5


def test_gradients_of_ldexp():
    x, n = leafgrad.tensor([2.0**-100, 3.0], requires_grad=True), leafgrad.tensor([150, -1])
    leafgrad.ldexp(x, n).backward(leafgrad.tensor([2.0**-100, 1.0]))
    assert x.grad.tolist() == [2.0**50, 0.5]

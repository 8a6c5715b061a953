"""The inverse of the error function near its ends, where few bits are left of what it is given."""

from __future__ import annotations

import numpy as np
from scipy import special as sp

import leafgrad


def test_it_keeps_its_digits_up_to_the_ends():
    rest = np.concatenate([10.0 ** np.linspace(-15.9, -0.31, 400), [2.0**-53]])
    x = np.concatenate([1 - rest, rest - 1])
    found = leafgrad.erfinv(leafgrad.tensor(x)).numpy()
    np.testing.assert_allclose(found, sp.erfinv(x), rtol=2e-15)
    assert (np.diff(found[:400]) <= 0).all()
    quantile = leafgrad.distributions.Normal(leafgrad.tensor(0.0, dtype=leafgrad.float64), 1.0).icdf
    np.testing.assert_allclose(quantile(leafgrad.tensor(1 - 2.0**-53, dtype=leafgrad.float64)).item(), 8.20953615160139)

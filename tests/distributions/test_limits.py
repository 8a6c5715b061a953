"""Distributions where their formulas divide 0 by 0, or what is small by what is smaller: values and derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import leafgrad
from leafgrad import distributions as d
from leafgrad.autograd import grad

TESTS = "distributions.bernoulli"

DTYPES = [leafgrad.float32, leafgrad.float64]


def near(dtype):
    return 1e-5 if dtype is leafgrad.float32 else 1e-10


# ---- trials until success -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_entropy_of_rare_success(dtype):
    p = np.array([1e-30, 1e-17, 1e-10, 1e-8, 1e-7, 0.1, 0.5, 0.9])
    want = -np.log(p) - (1 - p) / p * np.log1p(-p)
    rate = leafgrad.tensor(p, dtype=dtype, requires_grad=True)
    found = d.Geometric(probs=rate).entropy()
    np.testing.assert_allclose(found.detach().numpy(), want, rtol=near(dtype))
    slope = grad(found.sum(), rate)[0].numpy()
    np.testing.assert_allclose(slope, np.where(p < 1e-6, -1 / p, np.log1p(-p) / p**2), rtol=1e-4)
    assert d.Geometric(probs=leafgrad.tensor(1.0, dtype=dtype)).entropy().item() == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_entropy_of_rare_success_by_logits(dtype):
    at = leafgrad.tensor([-1000.0, -80.0, -40.0, 0.3, 40.0, 80.0], dtype=dtype, requires_grad=True)
    entropy = d.Geometric(logits=at).entropy()
    assert entropy.tolist() == pytest.approx(
        [1001, 81, 41, stats.geom(1 / (1 + math.exp(-0.3))).entropy(), 41 * math.exp(-40), 81 * math.exp(-80)],
        rel=near(dtype),
    )
    assert grad(entropy.sum(), at)[0][:3].tolist() == pytest.approx([-1, -1, -1], rel=near(dtype))

"""Angles and conjugates."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad


def test_real_tensors_are_their_own_conjugates():
    x = leafgrad.tensor([1.0, -2.0], requires_grad=True)
    assert x.real is x
    assert x.conj() is x
    assert leafgrad.real(x) is x
    assert x is leafgrad.conj_physical(x) is x.resolve_conj()
    assert not x.is_conj()
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        leafgrad.imag(x)
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        _ = x.imag


def test_angle():
    t = leafgrad.tensor([-1.0, 0.0, 2.0, float("nan")], requires_grad=True)
    np.testing.assert_array_equal(t.angle().detach(), np.float32([np.pi, 0, 0, np.nan]))
    assert leafgrad.angle(leafgrad.tensor([-2, 3])).tolist() == pytest.approx([np.pi, 0])

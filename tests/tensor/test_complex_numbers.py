"""Angles and conjugates."""

from __future__ import annotations

import math

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


def test_parts_are_joined_into_out():
    out = leafgrad.empty(2, dtype=leafgrad.complex64)
    assert leafgrad.complex(leafgrad.ones(2), leafgrad.zeros(2), out=out) is out
    assert out.tolist() == [1, 1]
    assert leafgrad.polar(leafgrad.ones(2) * 2, leafgrad.zeros(2), out=out).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match=r"Expected out tensor to have dtype leafgrad.complex64, but got"):
        leafgrad.complex(leafgrad.ones(2), leafgrad.ones(2), out=out.to(leafgrad.complex128))


def test_pairs_as_complex_numbers_say_what_is_wrong():
    for x, words in [
        (leafgrad.tensor(1.0), "Input tensor must have one or more dimensions"),
        (leafgrad.ones(2, 2).mT, "last dimension with stride 1"),
        (leafgrad.ones(3, 3).as_strided((2, 2), (1, 1)), r"stride divisible by 2 for all but last .* \(1, 1\)"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            leafgrad.view_as_complex(x)


def test_gradients_are_complex_where_results_are():
    x = leafgrad.ones(2, requires_grad=True)
    for result, given in ((x * 1j, leafgrad.ones(2)), (x * 2, leafgrad.ones(2) * 1j)):
        with pytest.raises(RuntimeError, match="For complex Tensors, both grad_output and output are required"):
            result.backward(given)
    (x * 1j).backward(leafgrad.ones(2, dtype=leafgrad.complex128))


@pytest.mark.parametrize("name", ["mT", "mH", "H"])
def test_the_transpose_of_a_number_is_itself(name):
    with pytest.warns(UserWarning, match="deprecated on 0-D tensors"):
        assert getattr(leafgrad.tensor(1 + 2j), name) == leafgrad.tensor(1 + (2j if name == "mT" else -2j))
    with pytest.raises(RuntimeError, match=f"tensor.{'H' if name == 'H' else 'mT'} is only supported on matrices"):
        getattr(leafgrad.ones(2), name)


def test_zeros_keep_their_signs_in_sgn():
    z = leafgrad.tensor([complex(-2, -0.0), complex(-0.0, 3), complex(math.inf, -0.0), complex(1, math.inf), 0])
    assert [repr(v) for v in z.sgn().tolist()] == ["(-1-0j)", "(-0+1j)", "(nan+nanj)", "(nan+nanj)", "0j"]

"""``leafgrad.testing``: what is close, in which words it is not, and tensors for tests."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad
from leafgrad.testing import assert_close, make_tensor

TESTS = "testing.making"


def test_what_is_close():
    x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    assert_close(x, x + 1e-6)
    assert_close([x, {"a": (1, 2.0)}], [x.clone(), {"a": (1, 2.0 + 1e-9)}])
    assert_close(np.ones(2), np.ones(2))
    assert_close(1, 1.0, rtol=0, atol=0)
    assert_close(x, x.double(), check_dtype=False)
    assert_close(leafgrad.tensor(math.nan), leafgrad.tensor(math.nan), equal_nan=True)
    assert_close(leafgrad.tensor([True]), leafgrad.tensor([True]))
    assert_close(None, None)
    for dtype in (leafgrad.bfloat16, leafgrad.complex64, leafgrad.complex128):
        z = leafgrad.tensor([1, 3]).to(dtype) / 3
        assert_close(z, z * 3 / 3)
        assert_close(z, z + leafgrad.tensor(1e-3 if dtype is leafgrad.bfloat16 else 1e-8j).to(dtype))
    assert_close(1 + 1j, 1 + 1j + 1e-9j)


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (leafgrad.tensor([1.0, 2.0]), leafgrad.tensor([1.0, 2.5]), r"1 / 2 \(50.0%\).*0.5, at index \(1,\).*got 2.0"),
        (leafgrad.tensor([1.0, math.nan]), leafgrad.tensor([1.0, 1.0]), r"at index \(1,\).*got nan"),
        (leafgrad.tensor([1]), leafgrad.tensor([2]), "Mismatched elements: 1 / 1"),
        (leafgrad.tensor([1]), leafgrad.tensor([1.0]), "attribute 'dtype'.*int64 != leafgrad.float32"),
        (leafgrad.ones(2), leafgrad.ones(1), "attribute 'shape'"),
        ([1.0, {"a": 2.0}], [1.0, {"a": 2.5}], r"Values\[1\]\['a'\] are not close! Expected 2.5 but got 2.0"),
        (
            leafgrad.tensor([1, 1 + 2j]),
            leafgrad.tensor([1, 1 + 2.5j]),
            r"Mismatched elements: 1 / 2 .*0.5, at index \(1,\)",
        ),
        (leafgrad.tensor([1.0]).bfloat16(), leafgrad.tensor([1.1]).bfloat16(), "Mismatched elements: 1 / 1"),
        (1j, 1.5j, "Expected 1.5j but got 1j"),
        ([1.0], [1.0, 2.0], "lengths of the sequences do not match: 1 != 2"),
        ({"a": 1}, {"b": 1}, r"keys of the mappings do not match: \['a', 'b'\]"),
    ],
)
def test_what_is_not_close(actual, expected, words):
    with pytest.raises(AssertionError, match=words):
        assert_close(actual, expected)


def test_messages_and_misuse():
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1.0, 2.0, msg="mine")
    with pytest.raises(AssertionError, match=r"^see: Values are not close"):
        assert_close(1.0, 2.0, msg=lambda words: f"see: {words}")
    with pytest.raises(ValueError, match="both of rtol and atol"):
        assert_close(1.0, 1.0, rtol=1e-3)
    with pytest.raises(TypeError, match="got Tensor and str"):
        assert_close(leafgrad.ones(1), "a")


def test_tensors_for_tests(device):
    x = make_tensor(50, 3, dtype=leafgrad.float32, device=device, low=1, high=2, requires_grad=True)
    assert (x.dtype, x.device, x.shape, x.requires_grad) == (leafgrad.float32, device, (50, 3), True)
    assert x.min() >= 1
    assert x.max() < 2
    for dtype in (leafgrad.bool, leafgrad.uint8, leafgrad.int8, leafgrad.float16):
        assert make_tensor((4,), dtype=dtype, device=device).dtype is dtype
    z = make_tensor(50, 3, dtype=leafgrad.complex64, device=device, low=1, high=2, requires_grad=True)
    for part in (z.real, z.imag):
        assert part.min() >= 1
        assert part.max() < 2
    assert not make_tensor(2, dtype=leafgrad.complex128, device=device)._is_view()
    assert not make_tensor(3, 4, dtype=leafgrad.int64, noncontiguous=True).is_contiguous()
    assert make_tensor(99, dtype=leafgrad.int64, low=0, high=2, exclude_zero=True).tolist() == [1] * 99
    with pytest.raises(ValueError, match="low < high"):
        make_tensor(1, dtype=leafgrad.int64, low=2, high=2)


def test_made_tensors_without_dimensions():
    for dtype in (leafgrad.float32, leafgrad.int64, leafgrad.bool):
        assert make_tensor((), dtype=dtype, device="cpu").shape == ()

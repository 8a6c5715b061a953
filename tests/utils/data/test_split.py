"""random_split. What PyTorch shares runs on it too."""

from __future__ import annotations

import collections
import importlib

import pytest

Point = collections.namedtuple("Point", "a b")


@pytest.fixture
def d(t):
    """``utils.data`` of leafgrad, and of PyTorch where it is installed."""
    return importlib.import_module(f"{t.__name__}.utils.data")


@pytest.mark.parametrize(
    ("lengths", "expected"), [([7, 3], [7, 3]), ([0.35, 0.65], [4, 6]), ([0.25] * 4, [3, 3, 2, 2])]
)
def test_random_split(t, d, lengths, expected):
    parts = d.random_split(range(10), lengths, generator=t.Generator().manual_seed(0))
    assert [len(part) for part in parts] == expected
    assert sorted(i for part in parts for i in part) == list(range(10))
    again = d.random_split(range(10), lengths, generator=t.Generator().manual_seed(0))
    assert [part.indices for part in parts] == [part.indices for part in again]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [([3, 3], "Sum of input lengths"), ([0.5, 0.6], "Sum of input lengths"), ([-0.5, 1.5], "Fraction at index 0")],
)
def test_random_split_refuses(d, lengths, message):
    with pytest.raises(ValueError, match=message):
        d.random_split(range(10), lengths)

"""Combinations of elements, and pieces that may be written."""

from __future__ import annotations

import pytest

import leafgrad


def test_combinations():
    x = leafgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert leafgrad.combinations(x).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert leafgrad.combinations(x[:2], with_replacement=True).tolist() == [[1, 1], [1, 2], [2, 2]]
    assert leafgrad.combinations(x, 4).shape == (0, 4)
    assert leafgrad.combinations(x, 0).shape == (0,)
    leafgrad.combinations(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("name", "size"), [("unsafe_split", 2), ("unsafe_chunk", 2), ("unsafe_split_with_sizes", [2, 2])]
)
def test_unsafe_parts_may_be_written(name, size):
    for function in (getattr(leafgrad, name), getattr(leafgrad.Tensor, name)):
        x = leafgrad.zeros(4, requires_grad=True)
        first, second = function(x * 1, size)
        first.mul_(second + 1)  # whose version is its own
        first.sum().backward()
        assert x.grad.tolist() == [1, 1, 0, 0]
    with pytest.raises(RuntimeError, match="split_with_sizes"):
        leafgrad.unsafe_split_with_sizes(x, [1, 2])

"""Choices of elements."""

from __future__ import annotations

import leafgrad


def test_combinations():
    x = leafgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert leafgrad.combinations(x).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert leafgrad.combinations(x[:2], with_replacement=True).tolist() == [[1, 1], [1, 2], [2, 2]]
    assert leafgrad.combinations(x, 4).shape == (0, 4)
    assert leafgrad.combinations(x, 0).shape == (0,)
    leafgrad.combinations(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]

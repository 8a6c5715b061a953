"""Choices of elements."""

from __future__ import annotations

import numpy as np
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


@pytest.mark.parametrize("largest", [True, False])
def test_few_of_many_in_order(largest):
    x = leafgrad.tensor(np.random.default_rng(0).integers(0, 4000, (3, 5000)).astype("float32"))
    x[1], x[2, ::99] = x[1].unique().repeat(5)[:5000], float("nan")
    step = leafgrad.compile(lambda x: x.topk(7, largest=largest))
    for values, places in (x.topk(7, largest=largest), step(x)):
        order = x.sort(descending=largest, stable=True)
        assert places.equal(order.indices[:, :7])
        np.testing.assert_array_equal(values.numpy(), order.values[:, :7].numpy())

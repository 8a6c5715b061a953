"""Elements and slices written at indices."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad.autograd import gradcheck

REDUCED = {"prod": [3.0, 40.0], "mean": [2.0, 11 / 3], "amax": [3.0, 5.0], "amin": [1.0, 2.0]}


@pytest.mark.parametrize("reduce", REDUCED)
def test_slices_are_combined_at_an_index(reduce):
    x, index = leafgrad.tensor([[1.0, 2.0]]), leafgrad.tensor([1, 1, 0])
    source = leafgrad.tensor([[4.0, 5.0, 3.0]])
    out = x.index_reduce(1, index, source, reduce)
    assert out.tolist()[0] == pytest.approx(REDUCED[reduce])
    alone = x.index_reduce(1, leafgrad.tensor([1]), source[:, :1], reduce, include_self=False)
    assert alone.tolist() == [[1.0, 4.0]]
    inputs = (x.double().requires_grad_(), source.double().requires_grad_())
    assert gradcheck(lambda a, b: a.index_reduce(1, index, b, reduce), inputs)


def test_slices_to_combine_that_do_not_fit():
    x = leafgrad.ones(2, 3)
    for index, source, reduce in (
        (leafgrad.tensor([0]), leafgrad.ones(2, 2), "prod"),
        (leafgrad.tensor([[0]]), leafgrad.ones(2, 1), "prod"),
        (leafgrad.tensor([0]), leafgrad.ones(2, 1), "sum"),
    ):
        with pytest.raises(RuntimeError, match="index_reduce"):
            x.index_reduce(1, index, source, reduce)
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        x.index_reduce(1, leafgrad.tensor([5]), leafgrad.ones(2, 1), "prod")


def test_index_reduce_in_place():
    t = leafgrad.ones(3, 2)
    out = t.index_reduce_(0, leafgrad.tensor([0, 2, 0]), leafgrad.full((3, 2), 2.0), "prod")
    assert out is t
    assert t.tolist() == [[4, 4], [1, 1], [2, 2]]

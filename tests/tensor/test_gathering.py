"""Elements picked by their indices."""

from __future__ import annotations

import pytest

import leafgrad


def test_unravel_index(device):
    at = leafgrad.tensor([[0, 7], [-1, 11]], device=device)
    found = leafgrad.unravel_index(at, (3, 4))
    assert [t.tolist() for t in found] == [[[0, 1], [2, 2]], [[0, 3], [3, 3]]]
    assert leafgrad.unravel_index(at[:1], 8)[0].tolist() == [[0, 7]]
    with pytest.raises(ValueError, match="expected indices below 6"):
        leafgrad.unravel_index(at, (2, 3))
    with pytest.raises(TypeError, match="expected 'indices' to be integer dtype"):
        leafgrad.unravel_index(at.float(), (3, 4))


@pytest.mark.parametrize("dtype", [leafgrad.uint8, leafgrad.int32])
def test_coordinates_are_int64_whatever_the_index(dtype):
    found = leafgrad.unravel_index(leafgrad.tensor([5], dtype=dtype), (4, 2**30))
    assert [(t.dtype, t.tolist()) for t in found] == [(leafgrad.int64, [0]), (leafgrad.int64, [5])]


def test_so_many_places_of_what_is_not_zero():
    x = leafgrad.tensor([[0, 5], [6, 0]])
    assert leafgrad.nonzero_static(x, size=3).tolist() == [[0, 1], [1, 0], [-1, -1]]
    assert x.nonzero_static(size=1, fill_value=9).tolist() == [[0, 1]]
    assert leafgrad.nonzero_static(x, size=0).shape == (0, 2)
    with pytest.raises(RuntimeError, match="non-negative"):
        leafgrad.nonzero_static(x, size=-1)


@pytest.mark.parametrize("of", [lambda x: x.max(0).values, lambda x: x.median(0).values, lambda x: x.cummax(0).values])
def test_gradients_of_an_element_without_dimensions(of):
    x = leafgrad.tensor(2.0, requires_grad=True)
    of(x).backward()
    assert x.grad.item() == 1

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

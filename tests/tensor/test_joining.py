"""Pieces: how many, of what sizes, and those that may be written."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad


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


@pytest.mark.parametrize("integer", [np.int64, np.int32, lambda n: n], ids=["int64", "int32", "int"])
def test_numbers_of_sections_may_be_numpys(t, integer):
    x = t.arange(24.0).reshape(2, 4, 3)
    assert [p.shape[0] for p in t.vsplit(x, integer(2))] == [1, 1]
    assert [p.shape[1] for p in t.hsplit(x, integer(4))] == [1, 1, 1, 1]
    assert [p.shape[2] for p in t.dsplit(x, integer(3))] == [1, 1, 1]
    assert [p.shape[1] for p in t.tensor_split(x, integer(3), 1)] == [2, 1, 1]
    assert [p.shape[1] for p in t.tensor_split(x, (integer(1), 3), 1)] == [1, 2, 1]
    with pytest.raises(RuntimeError, match="not divisible by the split_size 3"):
        t.hsplit(x, integer(3))


def test_sizes_of_pieces_may_be_arrays_and_tensors_of_one(t):
    x = t.arange(12.0).reshape(4, 3)
    assert [p.shape[0] for p in t.tensor_split(x, np.array(3))] == [2, 1, 1]
    assert [p.shape[0] for p in x.split(t.tensor(3))] == [3, 1]
    assert [p.shape[0] for p in t.unsafe_split(x, np.int64(3))] == [3, 1]


@pytest.mark.parametrize(
    "cut",
    [
        lambda t, x: t.narrow(x, 0, 0, 2.0),
        lambda t, x: t.narrow(x, 0, 0, True),
        lambda t, x: t.chunk(x, 2.0),
        lambda t, x: t.vsplit(x, True),
        lambda t, x: t.split(x, True),
    ],
)
def test_sizes_are_no_floats_and_no_flags(t, cut):
    with pytest.raises(TypeError):
        cut(t, t.zeros(4, 3))


def test_unsafe_parts_share_memory(t):
    for cut in (t.unsafe_split, t.unsafe_chunk):
        x = t.zeros(4)
        first = cut(x, 2)[0]
        first.fill_(7.0)
        assert x.tolist() == [7, 7, 0, 0]
        assert first._base is None


def test_unsafe_parts_share_memory_in_compiled_steps():
    @leafgrad.compile
    def step(x):
        leafgrad.unsafe_split(x, 2)[0].fill_(7.0)
        return x * 1

    for _ in range(3):
        assert step(leafgrad.zeros(4)).tolist() == [7, 7, 0, 0]

"""Samplers. Those that PyTorch shares run on it too."""

from __future__ import annotations

import collections
import importlib
from collections import Counter

import pytest

import leafgrad.utils.data

Point = collections.namedtuple("Point", "a b")


@pytest.fixture
def d(t):
    """``utils.data`` of leafgrad, and of PyTorch where it is installed."""
    return importlib.import_module(f"{t.__name__}.utils.data")


def values(samples):
    return [tuple(v.tolist() if hasattr(v, "tolist") else v for v in sample) for sample in samples]


def test_random_sampler(t, d):
    sampler = d.RandomSampler(range(50), generator=t.Generator().manual_seed(3))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert list(d.RandomSampler(range(50), generator=t.Generator().manual_seed(3))) == first
    longer = d.RandomSampler(range(4), num_samples=10)
    assert len(longer) == 10
    assert sorted(Counter(list(longer)[:8]).values()) == [2] * 4
    drawn = list(d.RandomSampler(range(4), replacement=True, num_samples=2000))
    assert (len(drawn), set(drawn)) == (2000, {0, 1, 2, 3})


def test_the_order_follows_from_the_state_of_the_generator(t, d):
    generator = t.Generator().manual_seed(1)
    loader = d.DataLoader(range(20), batch_size=4, shuffle=True, generator=generator)
    list(loader)
    state = generator.get_state()
    epoch = [batch.tolist() for batch in loader]
    generator.set_state(state)
    assert [batch.tolist() for batch in loader] == epoch


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (ValueError, lambda d: d.RandomSampler([])),
        (ValueError, lambda d: d.RandomSampler([1], num_samples=0)),
        (ValueError, lambda d: d.RandomSampler([1], num_samples=1.5)),
        (TypeError, lambda d: d.RandomSampler([1], replacement=3)),
        (ValueError, lambda d: d.WeightedRandomSampler([1, 2], 0)),
        (ValueError, lambda d: d.WeightedRandomSampler([[1, 2]], 1)),
        (ValueError, lambda d: d.WeightedRandomSampler([1, 2], 1, replacement=1)),
        (RuntimeError, lambda d: list(d.WeightedRandomSampler([1, 0.0], 3, replacement=False))),
        (ValueError, lambda d: d.BatchSampler([1], 0, False)),
        (ValueError, lambda d: d.BatchSampler([1], True, False)),
        (ValueError, lambda d: d.BatchSampler([1], 1, 3)),
        (ValueError, lambda d: d.DistributedSampler([1])),
        (ValueError, lambda d: d.DistributedSampler([1], 3, 3)),
    ],
)
def test_samplers_refuse(d, error, make):
    with pytest.raises(error):
        make(d)


def test_other_samplers(t, d):
    assert list(d.SequentialSampler("abc")) == [0, 1, 2]
    subset = d.SubsetRandomSampler([3, 5, 9])
    assert (len(subset), sorted(subset)) == (3, [3, 5, 9])
    weighted = d.WeightedRandomSampler([0.0, 3.0, 1.0], 400, generator=t.Generator().manual_seed(0))
    counts = Counter(weighted)
    assert set(counts) == {1, 2}
    assert 250 < counts[1] < 350
    assert sorted(d.WeightedRandomSampler([1, 2, 3], 3, replacement=False)) == [0, 1, 2]


@pytest.mark.parametrize(("drop_last", "expected"), [(False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])])
def test_batch_sampler(d, drop_last, expected):
    sampler = d.BatchSampler(range(5), 2, drop_last)
    assert list(sampler) == list(sampler) == expected
    assert len(sampler) == len(expected)


def test_distributed_sampler(d):
    shares = [list(d.DistributedSampler(range(10), 3, rank, shuffle=False)) for rank in range(3)]
    assert shares == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    equal = d.DistributedSampler(range(10), 3, 2, shuffle=False, drop_last=True)
    assert (list(equal), len(equal)) == ([2, 5, 8], 3)
    samplers = [d.DistributedSampler(range(9), 3, rank) for rank in range(3)]
    for epoch in range(2):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        assert sorted(i for sampler in samplers for i in sampler) == list(range(9))


@pytest.mark.parametrize("replacement", [False, True])
def test_nothing_is_drawn_of_an_empty_dataset(replacement):
    with pytest.raises(ValueError, match="RandomSampler: expected a dataset of which to draw 3 samples"):
        list(leafgrad.utils.data.RandomSampler(range(0), replacement=replacement, num_samples=3))

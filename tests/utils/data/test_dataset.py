"""Datasets. Those that PyTorch shares run on it too."""

from __future__ import annotations

import collections
import importlib
import warnings

import pytest

import leafgrad
from leafgrad.utils import data

Point = collections.namedtuple("Point", "a b")


@pytest.fixture
def d(t):
    """``utils.data`` of leafgrad, and of PyTorch where it is installed."""
    return importlib.import_module(f"{t.__name__}.utils.data")


def stream(d, *items):
    class Stream(d.IterableDataset):
        def __iter__(self):
            return iter(items)

    return Stream()


def values(samples):
    return [tuple(v.tolist() if hasattr(v, "tolist") else v for v in sample) for sample in samples]


def test_tensor_dataset(t, d):
    dataset = d.TensorDataset(t.arange(4.0), t.arange(8).reshape(4, 2))
    assert len(dataset) == 4
    assert values([dataset[1], dataset[-1]]) == [(1.0, [2, 3]), (3.0, [6, 7])]
    assert values([dataset[1:3]]) == [([1.0, 2.0], [[2, 3], [4, 5]])]
    with pytest.raises(IndexError):
        dataset[4]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        d.TensorDataset(t.zeros(2), t.zeros(3))


def test_tensor_dataset_takes_tensors():
    with pytest.raises(
        TypeError, match=r"argument 'tensors' .* must be Tensor, not list; make one with leafgrad.tensor"
    ):
        data.TensorDataset([1, 2])


def test_concat_dataset(t, d):
    joined = d.TensorDataset(t.arange(3)) + d.TensorDataset(t.arange(3, 5))
    assert isinstance(joined, d.ConcatDataset)
    assert joined.cumulative_sizes == [3, 5]
    assert values(joined[i] for i in (0, 2, 3, 4, -1, -5)) == [(0,), (2,), (3,), (4,), (4,), (0,)]
    with pytest.raises(IndexError):
        joined[5]
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        joined[-6]
    for wrong, message in (([], "should not be an empty iterable"), ([stream(d)], "does not support IterableDataset")):
        with pytest.raises(AssertionError, match=message):
            d.ConcatDataset(wrong)


def test_chain_dataset(d):
    joined = stream(d, 1, 2) + stream(d, 3)
    assert isinstance(joined, d.ChainDataset)
    assert list(joined) == list(joined) == [1, 2, 3]
    with pytest.raises(TypeError, match="has no len"):
        len(joined)
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(d.ChainDataset([[1, 2]]))


def test_stack_dataset(t, d):
    numbers = d.TensorDataset(t.arange(3))
    pairs, named = d.StackDataset(numbers, "abc"), d.StackDataset(x=numbers, name="abc")
    assert (len(pairs), len(named)) == (3, 3)
    assert pairs[1][1] == named[1]["name"] == "b"
    assert [p[1] for p in pairs.__getitems__([2, 0])] == [n["name"] for n in named.__getitems__([2, 0])] == ["c", "a"]
    for wrong in (lambda: d.StackDataset(), lambda: d.StackDataset("ab", x="ab"), lambda: d.StackDataset("ab", "a")):
        with pytest.raises(ValueError, match=r"t least one dataset|both|Size mismatch"):
            wrong()
    for dataset in (3, None):
        with pytest.raises(TypeError, match=r"StackDataset: expected datasets with a length|has no len"):
            d.StackDataset(dataset)


def test_subset(t, d):
    subset = d.Subset(d.TensorDataset(10 * t.arange(5)), [4, 2, 0])
    assert len(subset) == 3
    assert values([subset[0], subset[-1]]) == [(40,), (0,)]
    assert values([subset[[0, 1]]]) == [([40, 20],)]
    assert values(subset.__getitems__([2, 1])) == [(0,), (20,)]


def test_a_dataset_that_gives_samples_at_once(d):
    class AtOnce(d.Dataset):
        def __getitems__(self, indices):
            return [10 * i for i in indices] if indices != [0] else []

        def __len__(self):
            return 3

    assert d.Subset(AtOnce(), [2, 1]).__getitems__([0, 1]) == [20, 10]
    with pytest.raises(ValueError, match=r"[Ee]xpected 1"):
        d.StackDataset(AtOnce(), "abc").__getitems__([0])


def test_what_a_subclass_has_to_define(d):
    with pytest.raises(NotImplementedError, match="should implement __getitem__"):
        d.Dataset()[0]
    with pytest.raises(TypeError, match="__iter__"):
        d.IterableDataset()
    with pytest.raises(NotImplementedError):
        iter(d.Sampler())
    assert issubclass(d.Dataset[int].__origin__, d.Dataset)


def test_data_is_there_after_importing_leafgrad():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert leafgrad.utils.data.DataLoader is data.DataLoader
    with pytest.raises(AttributeError, match=r"leafgrad\.utils.*no attribute 'dataa'"):
        _ = leafgrad.utils.dataa


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


def test_modules_have_what_pytorch_has_there(d):
    module = importlib.import_module(f"{d.__name__}.dataset")
    assert module.Subset is d.Subset
    assert len(module.random_split(range(3), [2, 1])) == 2

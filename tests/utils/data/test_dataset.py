"""Datasets, samplers, random_split and default_collate. Those that PyTorch shares run on it too."""

from __future__ import annotations

import collections
import importlib
import warnings
from collections import Counter

import numpy as np
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


# ---- datasets -------------------------------------------------------------------------------------------------------


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


# ---- random_split ---------------------------------------------------------------------------------------------------


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


# ---- samplers -------------------------------------------------------------------------------------------------------


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


# ---- default_collate ------------------------------------------------------------------------------------------------

CASES = {
    "ints": [1, 2],
    "bools": [True, False],
    "floats": [1.0, 2.5],
    "ints and floats": [1, 2.5],
    "strings": ["a", "b"],
    "bytes": [b"a"],
    "tuples": [(1, 2.0), (3, 4.0)],
    "lists": [[1, 2], [3, 4]],
    "ranges": [range(2), range(2)],
    "dicts": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
    "ordered": [collections.OrderedDict(a=1)],
    "defaults": [collections.defaultdict(int, a=1)],
    "named": [Point(1, 2.0), Point(3, 4.0)],
    "arrays": [np.zeros(2), np.ones(2)],
    "float32 scalars": [np.float32(1), np.float32(2)],
    "float64 scalars": [np.float64(1), np.float64(2)],
    "nested": [{"x": (np.ones(2, np.float32), [1])}, {"x": (np.zeros(2, np.float32), [2])}],
}


def described(value):
    if hasattr(value, "tolist"):
        return str(value.dtype).rpartition(".")[2], value.tolist()
    if isinstance(value, dict):
        return type(value), {key: described(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [described(v) for v in value]
    return value


@pytest.mark.parametrize("batch", CASES.values(), ids=CASES)
def test_default_collate_as_pytorch(batch):
    torch_data = pytest.importorskip("torch.utils.data")
    assert described(data.default_collate(batch)) == described(torch_data.default_collate(batch))
    assert described(data.default_convert(batch)) == described(torch_data.default_convert(batch))


def test_default_collate():
    assert described(data.default_collate(CASES["tuples"])) == (list, [("int64", [1, 3]), ("float64", [2.0, 4.0])])
    assert data.default_collate([(1, "x"), (3, "y")])[1] == ("x", "y")
    assert described(data.default_collate(CASES["named"])) == (Point, [("int64", [1, 3]), ("float64", [2.0, 4.0])])
    assert described(data.default_collate(CASES["float32 scalars"])) == ("float32", [1.0, 2.0])
    assert described(data.default_collate(CASES["dicts"])) == (dict, {"a": ("int64", [1, 2]), "b": (list, ["x", "y"])})
    assert described(data.default_convert([1, np.ones(1)])) == (list, [1, ("float64", [1.0])])


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_default_collate_of_tensors(t, d, shape, requires_grad):
    samples = [(t.ones(shape) * i).requires_grad_(requires_grad) for i in range(4)]
    batch = d.default_collate(samples)
    assert tuple(batch.shape) == (4, *shape)
    assert batch.tolist() == [sample.tolist() for sample in samples]
    assert (batch.dtype, batch.requires_grad, batch.is_leaf) == (t.float32, requires_grad, not requires_grad)
    batch[0] = 7  # a copy: samples stay
    assert samples[0].tolist() == (t.ones(shape) * 0).tolist()


def test_default_collate_on_a_device(device):
    batch = data.default_collate([leafgrad.tensor(1.0, device=device), leafgrad.tensor(2.0, device=device)])
    assert batch.device == device if device.type != "cpu" else True
    assert batch.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("error", "batch"),
    [
        (TypeError, [None]),
        (TypeError, [object()]),
        (TypeError, [1j]),
        (TypeError, [np.array(["a"])]),
        (RuntimeError, [[1, 2], [3]]),
        (RuntimeError, [np.zeros(2), np.zeros(3)]),
        (KeyError, [{"a": 1}, {"b": 1}]),
        ((TypeError, KeyError), {"a": 1}),  # PyTorch looks for an item 0
        (IndexError, []),
    ],
)
def test_default_collate_refuses(d, error, batch):
    with pytest.raises(error):
        d.default_collate(batch)


@pytest.mark.parametrize("shapes", [((2, 3), (1, 3), (3, 3)), ((2,), (3,)), ((), (1,))])
def test_default_collate_refuses_other_sizes(t, d, shapes):
    with pytest.raises(RuntimeError, match="equal size"):
        d.default_collate([t.zeros(shape) for shape in shapes])


@pytest.mark.parametrize("batch", [3, None, iter([1]), [[1, 2], 3], [{"a": 1}, 2]])
def test_default_collate_names_what_is_wrong(batch):
    with pytest.raises(TypeError, match=r"default_collate: (batch: expected a list|expected samples of one kind, got)"):
        data.default_collate(batch)


def test_what_cannot_be_batched_is_said():
    with pytest.raises(TypeError, match=r"found <class 'NoneType'>; pass the DataLoader a collate_fn"):
        data.default_collate([None])


def test_data_is_there_after_importing_leafgrad():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert leafgrad.utils.data.DataLoader is data.DataLoader
    with pytest.raises(AttributeError, match=r"leafgrad\.utils.*no attribute 'dataa'"):
        _ = leafgrad.utils.dataa

"""default_collate. What PyTorch shares runs on it too."""

from __future__ import annotations

import collections
import importlib

import numpy as np
import pytest

import leafgrad
from leafgrad.utils import data

Point = collections.namedtuple("Point", "a b")


@pytest.fixture
def d(t):
    """``utils.data`` of leafgrad, and of PyTorch where it is installed."""
    return importlib.import_module(f"{t.__name__}.utils.data")


def values(samples):
    return [tuple(v.tolist() if hasattr(v, "tolist") else v for v in sample) for sample in samples]


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
    "deques": [collections.deque([1, 2]), collections.deque([3, 4])],
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
    if isinstance(value, (list, tuple, collections.deque)):
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
    pairs = [("int64", [1, 3]), ("int64", [2, 4])]
    assert described(data.default_collate(CASES["deques"])) == (collections.deque, pairs)
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


def test_default_collate_asks_the_functions_of_classes(monkeypatch):
    class Words(str):
        """A class of samples that somebody brings along."""

    from leafgrad.utils.data.collate import default_collate_fn_map

    def joined(batch, *, collate_fn_map):
        assert collate_fn_map is default_collate_fn_map
        return "+".join(batch)

    monkeypatch.setitem(default_collate_fn_map, Words, joined)
    assert data.default_collate([{"a": Words("x"), "b": "z"}, {"a": Words("y"), "b": "z"}]) == {
        "a": "x+y",
        "b": ["z", "z"],
    }

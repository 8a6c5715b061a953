"""leafgrad.save and leafgrad.load."""

from __future__ import annotations

import enum
import io
import json
import os
import pickle
import random
import struct
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import safetensors.numpy

import leafgrad as lg
from leafgrad import nn, optim
from leafgrad.utils import safetensors as st, serialization, structure, trust
from leafgrad.utils.bounds import Bounds
from leafgrad.utils.serialization import load, save

TESTS = "utils.bounds utils.safetensors utils.structure"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize(
    "obj",
    [
        None,
        True,
        3,
        2.5,
        float("inf"),
        "text with ü",
        [],
        {},
        (1, (2, [3])),
        {"a": [1, {"b": None}], "c": "d"},
        {0: "int key", "0": "string key", 1.5: (), True: False},
        {"$tensor": 1, "$tuple": {"$dict": [2]}},
    ],
)
def test_plain_values_survive(path, obj):
    save(obj, path)
    again = load(path)
    assert again == obj
    assert type(again) is type(obj)


class Number(float):
    pass


class Count(int):
    pass


class Word(str):
    __slots__ = ()


class Kind(enum.Enum):
    A = 1


class Level(enum.IntEnum):
    A = 1


class Flag(enum.IntFlag):
    A = 1
    B = 2


class Pair(NamedTuple):
    a: object
    b: object


class Row(tuple):
    __slots__ = ()


class Rows(list):
    pass


class Options(dict):
    pass


class Ordered(OrderedDict):
    pass


class View(Mapping):
    def __init__(self, of):
        self.of = of

    def __getitem__(self, key):
        return self.of[key]

    def __iter__(self):
        return iter(self.of)

    def __len__(self):
        return len(self.of)


@dataclass
class Record:
    a: int
    b: object


OWN = [Number, Count, Word, Kind, Level, Flag, Pair, Row, Rows, Options, Ordered, View, Record, Fraction, date]


def same(a, b):
    """Whether two objects are equal, and all in them of one class."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, Mapping):
        return len(a) == len(b) and all(map(same, a.items(), b.items())) and vars_of(a) == vars_of(b)
    if isinstance(a, (list, tuple, deque)):
        return len(a) == len(b) and all(map(same, a, b)) and getattr(a, "maxlen", None) == getattr(b, "maxlen", None)
    return str(a) == str(b) if a != a else a == b


def vars_of(a):
    return {name: value for name, value in getattr(a, "__dict__", {}).items() if name != "of"}


KEPT = [
    *(Number(1.5), Count(3), Word("x"), Kind.A, Level.A, Flag.A | Flag.B, Pair(1, [2]), Row((1, 2)), Rows([1, [2]])),
    *(Options(a=1, b={}), Ordered(a=1), View({"a": 1}), Record(1, [Pair(1, 2)]), Fraction(1, 3), date(2020, 2, 29)),
    *(
        lg.Size([2, 3]),
        (lg.Size([]),),
        [Pair(lg.Size([1]), Level.A)],
        OrderedDict(a=1),
        Counter("aab"),
        1 + 2j,
        b"a\0\xff",
    ),
    *(deque([1, 2], maxlen=3), deque(maxlen=0), deque([1]), deque([Pair(1, 2)], maxlen=1), -0.0, 10**30, "a\0b"),
    *({True: 1, 2: False}, {1: "a", "1": "b", 1.5: None}, {1, "a"}, frozenset([(1, 2)]), defaultdict(list, a=[1])),
    *(np.float64(1.5), np.float32(1.5), np.int64(3), np.bool_(True), np.complex64(1 + 2j), np.arange(3), Path("a/b")),
    *(lg.float32, lg.device("cpu"), Namespace(a=1), SimpleNamespace(a=(1,)), float("nan"), float("-inf")),
]
REFUSED = [
    *({Level.A: 1}, {Number(1.5): 1}, {Word("a"): 1}, {np.float64(1.5): 1}, {np.int64(1): 1}, {(1, 2): 3}, {None: 1}),
    *(
        {Number(1.5)},
        {Level.A},
        {Pair(1, 2)},
        frozenset([lg.Size([1])]),
        np.str_("x"),
        np.bytes_(b"x"),
        bytearray(b"a"),
    ),
    *(range(3), slice(1, 2), ..., MappingProxyType({"a": 1}), np.array(["a"]), np.array([None]), np.dtype("f4"), len),
    *(np.zeros(2, dtype=[("a", "i4")]), np.ma.array([1, 2], mask=[0, 1])),
]


@pytest.mark.parametrize("obj", KEPT)
def test_what_is_saved_comes_back_as_it_was(path, obj):
    save({"obj": [obj]}, path)
    with lg.serialization.safe_globals(OWN):
        again = load(path)["obj"][0]
    assert same(again, obj), again


@pytest.mark.parametrize("obj", REFUSED)
def test_what_would_come_back_as_something_else_is_refused(path, obj):
    with pytest.raises(TypeError, match=r"save: obj at 'obj(\.0)?': expected .*, got"):
        save({"obj": [obj]}, path)
    assert not path.exists()


def test_a_class_of_its_own_is_made_only_if_it_is_trusted(path):
    save(Pair(1, 2), path)
    with pytest.raises(RuntimeError, match=r"it has .*test_serialization\.Pair in it, which load takes only from you"):
        load(path)


def test_what_functions_return_is_trusted(path):
    found = lg.arange(6.0).reshape(2, 3).max(1)
    save([found, lg.linalg.slogdet(lg.eye(2)), found.values.shape], path)
    again, other, shape = load(path)
    assert (type(again), type(other), shape) == (type(found), type(lg.linalg.slogdet(lg.eye(2))), lg.Size([2]))
    assert again.values.tolist() == [2, 5]
    assert type(shape) is lg.Size


def test_tensors_survive_bit_by_bit(path, device):
    lg.manual_seed(0)
    every = {
        name: (lg.randn(2, 3) * 10).to(getattr(lg, name)).to(device)
        for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
    }
    every["scalar"] = lg.tensor(1.5, device=device)
    every["empty"] = lg.zeros(0, 3, device=device)
    every["transposed"] = lg.arange(6, device=device).reshape(2, 3).t()
    save({"tensors": every, "one": lg.ones(2, device=device, requires_grad=True)}, str(path))
    again = load(path, map_location=device)
    assert list(again["tensors"]) == list(every)
    for name, t in every.items():
        found = again["tensors"][name]
        assert (found.dtype, found.shape, found.device) == (t.dtype, t.shape, t.device), name
        assert found.tolist() == t.tolist(), name
    assert again["one"].requires_grad
    assert load(path)["one"].device == lg.device("cpu")


def test_a_bare_tensor(path):
    save(lg.arange(3), path)
    assert load(path).tolist() == [0, 1, 2]


def test_training_resumes(path):
    lg.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    x = lg.randn(8, 3)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        return model.state_dict()

    step(model, optimizer)
    save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 7}, path)
    expected = {name: t.tolist() for name, t in step(model, optimizer).items()}

    state = load(path)
    assert state["epoch"] == 7
    resumed = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    resumed.load_state_dict(state["model"])
    again = optim.Adam(resumed.parameters(), lr=0.1)
    again.load_state_dict(state["optimizer"])
    assert {name: t.tolist() for name, t in step(resumed, again).items()} == expected


class Halved(nn.Linear):
    """Weights that were twice as large up to version 1."""

    _version = 2

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *report):
        if local_metadata.get("version", 1) < 2:
            state_dict[f"{prefix}weight"] = state_dict[f"{prefix}weight"] / 2
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *report)


@pytest.mark.parametrize("map_location", [None, "cpu"])
def test_modules_see_the_version_that_wrote_their_state(path, map_location):
    net = nn.Sequential(Halved(2, 1))
    save({"net": net.state_dict()}, path)
    state = load(path, map_location)["net"]
    assert type(state) is OrderedDict
    assert list(state) == ["0.weight", "0.bias"]
    again = nn.Sequential(Halved(2, 1))
    again.load_state_dict(state)
    assert again[0].weight.tolist() == net[0].weight.tolist()


def test_other_programs_can_read_it(path):
    save(OrderedDict(nn.Linear(2, 1).state_dict()), path)
    found = safetensors.numpy.load_file(path)
    assert sorted(found) == ["bias", "weight"]
    assert found["weight"].shape == (1, 2)


def test_files_of_other_programs_can_be_read(path):
    safetensors.numpy.save_file({"a": lg.ones(2).numpy(), "b.c": lg.arange(3).numpy()}, path)
    found = load(path)
    assert {name: t.tolist() for name, t in found.items()} == {"a": [1, 1], "b.c": [0, 1, 2]}


def test_a_file_without_metadata(path):
    written(path, {"__metadata__": None, "x": ENTRY}, struct.pack("<2f", 1, 2))
    assert load(path)["x"].tolist() == [1, 2]


def test_equal_paths_are_kept_apart(path):
    save({"a.b": lg.tensor(1), "a": {"b": lg.tensor(2)}}, path)
    found = load(path)
    assert found["a.b"].item() == 1
    assert found["a"]["b"].item() == 2


def test_a_tensor_in_two_places_stays_one(path):
    t = lg.ones(3)
    save([t, {"again": t}], path)
    first, rest = load(path)
    assert rest["again"] is first


def test_loaded_tensors_can_be_written(path):
    save(lg.ones(2), path)
    assert load(path).add_(1).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"a": [1, {(2, (3,))}]}, r"save: obj at 'a.1': expected a set of numbers, strings or flat tuples of them"),
        ({"a": np.array(["text"])}, "save: obj at 'a': expected numbers that leafgrad has, got <U4"),
        ([defaultdict(lambda: 1)], "save: obj at '0': expected a defaultdict of dict, .* convert it to a dict"),
        ({2**70: 1}, "save: obj: expected keys that are strings or numbers"),
        (
            {"net": [lambda x: x]},
            r"save: obj at 'net.0': expected a class or function that can be imported, got .*lambda",
        ),
        (
            {"lines": (i for i in "abc")},
            r"save: obj at 'lines': .* got generator: cannot pickle .*; save its state_dict",
        ),
        ({"key": range(3)}, "save: obj at 'key': expected a Tensor, .* got range: its class and attributes do not"),
        (range(2), "save: obj: expected a Tensor, .* got range"),
        ({"x": {(1, 2): 3}}, r"save: obj at 'x': expected keys that are strings or numbers, got \(1, 2\)"),
    ],
)
def test_what_cannot_be_saved(path, obj, message):
    with pytest.raises(TypeError, match=message):
        save(obj, path)
    assert os.listdir(path.parent) == []


def test_a_failed_save_leaves_the_old_file(path, monkeypatch):
    save({"epoch": 1}, path)

    def full(descriptor):
        raise OSError("No space left on device")

    monkeypatch.setattr(serialization.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save({"epoch": 2}, path)
    assert load(path) == {"epoch": 1}
    assert os.listdir(path.parent) == [path.name]


def test_a_folder_that_is_not_there(path):
    with pytest.raises(RuntimeError, match=r"Parent directory .*nowhere does not exist; make it first"):
        save({}, path.parent / "nowhere" / "file")


def test_damaged_files(path):
    with pytest.raises(FileNotFoundError):
        load(path)
    path.write_bytes(b"no safetensors file")
    with pytest.raises(RuntimeError, match="expected a whole safetensors file"):
        load(path)


def test_a_file_cut_anywhere_is_refused(path):
    save({"x": lg.ones(3), "y": [lg.arange(2), "text"]}, path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(RuntimeError, match=UNREADABLE):
            load(path)
    path.write_bytes(whole + b"!")
    with pytest.raises(RuntimeError, match="goes on after its end"):
        load(path)


def written(path, header, data=b""):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + data)


UNREADABLE = "expected a whole safetensors file, but it cannot be read: "
ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "error", "message"),
    [
        (b"{oh no}", RuntimeError, UNREADABLE),
        ([1], RuntimeError, UNREADABLE),
        ({"x": {**ENTRY, "shape": [3]}}, RuntimeError, UNREADABLE),
        ({"x": {**ENTRY, "shape": [-2]}}, RuntimeError, UNREADABLE),
        ({"x": {"dtype": "F32"}}, RuntimeError, UNREADABLE),
        ({"x": {**ENTRY, "data_offsets": [8, 16]}}, RuntimeError, UNREADABLE),
        (
            {"x": {**ENTRY, "shape": [8], "dtype": "F8_E5M2"}},
            TypeError,
            "'x': leafgrad has no dtype for 'F8_E5M2'; convert it",
        ),
        ({"__metadata__": {"leafgrad": "{}"}, "x": ENTRY}, RuntimeError, "it has one only of 'leafgrad'"),
        ({"__metadata__": {"leafgrad": "{"}, "x": ENTRY}, RuntimeError, "expected a whole safetensors file"),
    ],
)
def test_a_header_that_cannot_be(path, header, error, message):
    written(path, header, bytes(8))
    with pytest.raises(error, match=message):
        load(path)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_not_opened_and_the_error_says_what_to_do(path, protocol, monkeypatch):
    path.write_bytes(pickle.dumps({"w": 1}, protocol=protocol))
    monkeypatch.setattr(pickle, "loads", None)
    monkeypatch.setattr(pickle, "Unpickler", None)
    for weights_only in (True, False):
        with pytest.raises(RuntimeError, match=r"it is a pickle .* never unpickles.*leafgrad.save"):
            load(path, weights_only=weights_only)


def test_a_pickle_is_not_run(path):
    path.write_bytes(b"cos\nsystem\n(S'echo oh no'\ntR.")
    with pytest.raises(RuntimeError, match="expected a whole safetensors file"):
        load(path)


def test_a_header_as_long_as_a_pickles_first_bytes_is_none(path):
    """A header of 0x280 bytes: the file begins as a pickle of protocol 2 does."""
    header = json.dumps({"x": ENTRY}).encode()
    written(path, header + b" " * (0x280 - len(header)), struct.pack("<2f", 1, 2))
    assert path.read_bytes().startswith(b"\x80\x02")
    assert load(path)["x"].tolist() == [1, 2]


def test_bfloat16_is_read_and_written(path):
    numbers = [1.0, -2.5, 3.0e38, 2.0**-126, float("inf"), 0.0]
    data = b"".join(struct.pack("<f", x)[2:] for x in numbers)
    entry = {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}
    written(path, {"w": entry, "empty": {"dtype": "BF16", "shape": [0], "data_offsets": [12, 12]}}, data)
    exact = [struct.unpack("<f", b"\0\0" + struct.pack("<f", x)[2:])[0] for x in numbers]
    for _ in range(2):
        found = load(path)
        assert found["w"].dtype is found["empty"].dtype is lg.bfloat16
        assert found["w"].shape == (2, 3)
        assert found["w"].flatten().tolist() == exact
        assert (found["w"] + 0.0).dtype is lg.bfloat16
        save({"w": found["w"].T.contiguous().T, "empty": found["empty"]}, path)


def test_binary_files_are_written_and_read_in_place_of_paths(path):
    buffer = io.BytesIO()
    buffer.write(b"before")
    save({"a": lg.arange(3), "n": 2}, buffer)
    save(lg.ones(2), buffer)
    buffer.seek(6)
    assert load(buffer)["a"].tolist() == [0, 1, 2]
    assert load(buffer).tolist() == [1, 1]
    with open(path, "wb") as file:
        save([1, lg.ones(1)], file)
    with open(path, "rb") as file:
        assert load(file)[1].tolist() == [1]
    with pytest.raises(TypeError, match="load: f: expected a path or a binary file, got int"):
        load(3)
    with pytest.raises(TypeError, match="save: f: expected a path or a binary file, got list"):
        save(1, [])


def test_tensors_are_put_where_map_location_says(path, device):
    save({"w": lg.ones(2), "b": lg.zeros(1)}, path)
    for where in (device, str(device), {"cpu": str(device)}, lambda t, location: t.to(device)):
        assert {t.device for t in load(path, where).values()} == {device}
    for where in (None, {}, lambda t, location: None):
        assert load(path, map_location=where)["w"].device == lg.device("cpu")


def test_schedules_and_generators_are_saved(path):
    optimizer = optim.SGD([lg.zeros(1, requires_grad=True)], lr=1.0)
    schedule = optim.lr_scheduler.MultiStepLR(optimizer, [2, 2, 5])
    save({"schedule": schedule.state_dict(), "rng": lg.get_rng_state()}, path)
    found = load(path)
    assert found["schedule"] == schedule.state_dict()
    lg.set_rng_state(found["rng"])


def test_what_shares_memory_and_what_requires_grad_does_so_again(tmp_path):
    layer = nn.Linear(2, 2)
    x = lg.arange(6.0)
    saved = {
        "state": nn.Sequential(layer, layer).state_dict(),
        "weight": lg.ones(2, requires_grad=True),
        "plain": lg.ones(2),
        "x": x,
        "part": x[:3],
        "turned": x.view(2, 3).T,
        "empty": [lg.empty(0), lg.empty(0)],
    }
    saved["again"] = saved["weight"].detach()
    save(saved, tmp_path / "a")
    found = load(tmp_path / "a")
    state = found["state"]
    state["0.weight"].fill_(7)
    assert state["1.weight"].eq(7).all()
    assert state["0.weight"] is not state["1.weight"]
    assert found["weight"].requires_grad
    assert found["weight"].is_leaf
    assert not found["again"].requires_grad
    assert not found["plain"].requires_grad
    found["again"].zero_()
    assert found["weight"].tolist() == [0, 0]
    assert found["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    found["x"].zero_()
    assert found["part"].tolist() == [0, 0, 0]
    assert found["turned"].sum() == 0


def test_parts_that_overlap_do_so_again(path):
    x = lg.arange(10.0)
    parts = [x[:6], x[4:], x[::3], x[3].expand(2, 2)]
    save([*parts, lg.zeros(3)], path)
    assert {k: v.shape for k, v in safetensors.numpy.load_file(path).items()} == {"0": (10,), "4": (3,)}
    found = load(path)
    found[0][3:5] = -1
    x[3:5] = -1
    assert [t.tolist() for t in found[:4]] == [t.tolist() for t in parts]


def test_random_views_stay_tied(path):
    chance = random.Random(0)
    for _ in range(100):
        bases = [lg.randn(3, 4, 2), lg.arange(10), lg.randn(5, 5, dtype=lg.float64)]
        saved = []
        for _ in range(4):
            t = chance.choice(bases)
            d = chance.randrange(t.ndim)
            start = chance.randrange(t.shape[d])
            t = t.narrow(d, start, chance.randint(1, t.shape[d] - start))
            saved.append(t.transpose(0, -1)[:: chance.randint(1, 2)])
        save(saved, path)
        found = load(path)
        for ours, theirs in zip(saved, found, strict=True):
            ours.add_(1)
            theirs.add_(1)
            assert [t.tolist() for t in found] == [t.tolist() for t in saved]


@pytest.mark.parametrize(
    "obj",
    [
        Counter("hello"),
        defaultdict(list, {"a": [1]}),
        defaultdict(None, {1: 2}),
        Namespace(lr=0.1, folder=Path("a") / "b"),
        SimpleNamespace(a=1),
        {1, "a", (2, None)},
        frozenset([1.5]),
        deque([1, 2]),
        np.float32(1.5),
        np.float64(0.1),
        np.bool_(True),
        OrderedDict(b=1, a=2),
        1 - 2j,
        b"\x00\xff",
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_containers_and_numbers_come_back_as_what_they_were(path, obj):
    save({"it": obj}, path)
    found = load(path)["it"]
    assert found == obj
    assert type(found) is type(obj)
    assert getattr(found, "default_factory", None) is getattr(obj, "default_factory", None)


def test_arrays_come_back_as_arrays(path):
    array = np.arange(6, dtype="int16").reshape(2, 3).T
    save({"one": array, "same": array}, path)
    found = load(path)
    assert type(found["one"]) is np.ndarray
    assert found["one"].dtype == np.int16
    assert found["one"].tolist() == array.tolist()


HOSTILE = {
    "unhashable": [["list", [1]], ["set", [{"row": 0}]]],
    "tuples of tuples": [["tuple", [1]], ["tuple", [{"row": 0}, {"row": 0}]], ["set", [{"row": 1}]]],
    "large keys": [["dict", [[2**61 - 1, 1]]]],
    "factory": [["defaultdict", [[None, "eval"]]]],
    "names": [["Namespace", [[1, 2]]]],
    "part": [["list", [{"tensor": "t", "size": [2], "stride": [3], "offset": 0}]]],
    "part of nothing": [["list", [{"tensor": "t", "size": [1], "stride": [1], "offset": -1}]]],
    "sizes": [["list", [{"tensor": "t", "size": [True], "stride": [1], "offset": 0}]]],
    "no stride": [["list", [{"tensor": "t", "size": [1]}]]],
}


def test_one_long_tuple_in_many_sets():
    rows = [["tuple", list(range(1000))], *[["set", [{"row": 0}]] for _ in range(1000)]]
    with pytest.raises(ValueError, match="far more than its 30000 bytes explain"):
        structure.unpack({"rows": rows, "root": {"row": 1}}, {}, Bounds(30_000), trust.found)


@pytest.mark.parametrize("name", HOSTILE)
def test_structures_that_nobody_saved(name):
    rows = HOSTILE[name]
    with pytest.raises(ValueError, match=r"its structure has|it has a part|, not a string or a number"):
        structure.unpack({"rows": rows, "root": {"row": len(rows) - 1}}, {"t": lg.zeros(3)}, Bounds(1000), trust.found)


@pytest.mark.parametrize("row", [["complex", [["angle", 2]]], ["bytes", [["", 1]]], ["bytes", [["", "\u0100"]]]])
def test_numbers_and_bytes_that_nobody_saved(row):
    with pytest.raises((TypeError, ValueError), match=r"complex|str instance, int found|can't encode"):
        structure.unpack({"rows": [row], "root": {"row": 0}}, {}, Bounds(1000), trust.found)


def test_complex_tensors_are_pairs_in_the_file(tmp_path):
    tensors = {
        "a": lg.tensor([[1 + 2j, 3], [-1j, 0.5]]), "b": lg.zeros(0, 3, dtype=lg.complex128), "c": lg.tensor(2j),
        "t": lg.tensor([[1 + 2j, 3], [-1j, 0.5]]).T, "real": lg.ones(3, 2),
    }  # fmt: skip
    lg.save(tensors, tmp_path / "c.safetensors")
    found = lg.load(tmp_path / "c.safetensors")
    for name, t in tensors.items():
        assert (found[name].dtype, found[name].shape) == (t.dtype, t.shape)
        assert found[name].tolist() == t.tolist()


@pytest.mark.parametrize("names", ['["b"]', '["a", "a"]', '{"a": 1}', "[[]]", "[1]", "no json"])
def test_names_of_complex_tensors_that_do_not_fit(names):
    with pytest.raises(ValueError, match=r"'leafgrad\.complex' does not name tensors of pairs"):
        st._names_of_pairs({st.COMPLEX: names}, {"a": lg.ones(2), "b": lg.ones(3)})


@pytest.mark.parametrize(
    "value",
    [
        np.random.RandomState(0).get_state()[1],
        np.uint64(2**63 + 5),
        np.arange(6, dtype=np.uint16).reshape(2, 3).T,
        np.array(["2026-01-01", "NaT"], dtype="datetime64[D]"),
        np.zeros((0, 2), np.uint32),
        np.uint8(3),
    ],
)
def test_numbers_of_numpy_that_tensors_have_not(value, tmp_path):
    save({"a": [value]}, tmp_path / "x")
    (found,) = load(tmp_path / "x")["a"]
    assert type(found) is type(value)
    assert found.dtype == value.dtype
    assert np.array_equal(found, value, equal_nan=value.dtype.kind == "M")

"""leafgrad.save and leafgrad.load."""

from __future__ import annotations

import os
from collections import OrderedDict

import pytest

import leafgrad as lg
from leafgrad import nn, optim
from leafgrad.utils import checkpoint
from leafgrad.utils.checkpoint import load, save

safetensors = pytest.importorskip("safetensors.numpy")


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
    assert not again["one"].requires_grad
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


def test_other_programs_can_read_it(path):
    save(OrderedDict(nn.Linear(2, 1).state_dict()), path)
    found = safetensors.load_file(path)
    assert sorted(found) == ["bias", "weight"]
    assert found["weight"].shape == (1, 2)


def test_files_of_other_programs_can_be_read(path):
    safetensors.save_file({"a": lg.ones(2).numpy(), "b.c": lg.arange(3).numpy()}, path)
    found = load(path)
    assert {name: t.tolist() for name, t in found.items()} == {"a": [1, 1], "b.c": [0, 1, 2]}


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
        ({"a": [1, {2, 3}]}, r"save: obj at 'a.1': expected a Tensor, .* got set"),
        ({"net": nn.Linear(1, 1)}, r"save: obj at 'net': .* got Linear; save its state_dict\(\)"),
        (b"bytes", "save: obj: expected a Tensor, .* got bytes"),
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

    monkeypatch.setattr(checkpoint.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save({"epoch": 2}, path)
    assert load(path) == {"epoch": 1}
    assert os.listdir(path.parent) == [path.name]


def test_damaged_files(path):
    with pytest.raises(FileNotFoundError):
        load(path)
    path.write_bytes(b"no safetensors file")
    with pytest.raises(RuntimeError, match="expected a whole safetensors file"):
        load(path)
    save({"x": lg.ones(100)}, path)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(RuntimeError, match="expected a whole safetensors file"):
        load(path)


def test_a_pickle_is_not_run(path):
    path.write_bytes(b"cos\nsystem\n(S'echo oh no'\ntR.")
    with pytest.raises(RuntimeError, match="expected a whole safetensors file"):
        load(path)

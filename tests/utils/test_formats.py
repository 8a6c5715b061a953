"""File formats that plugins bring, and NumPy's archives."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import nn

TESTS = "backends.npz"


def test_npz_keeps_what_save_takes(tmp_path):
    path, base = tmp_path / "all.npz", leafgrad.arange(6.0)
    kept = {
        "model": nn.Linear(2, 3).state_dict(),
        "list": [base, base[2:4], 3, "text", None],
        "weight": nn.Parameter(leafgrad.ones(2, 2)),
        "integers": leafgrad.tensor([1, 2]),
        "flags": leafgrad.tensor([True, False]),
        "half": leafgrad.ones(2).half(),
    }
    leafgrad.save(kept, path)
    found = leafgrad.load(path)
    assert found["list"][1].tolist() == [2.0, 3.0]
    found["list"][0][2] = 9.0
    assert found["list"][1].tolist() == [9.0, 3.0]  # still a view
    assert found["list"][2:] == [3, "text", None]
    assert found["weight"].requires_grad
    assert found["half"].dtype is leafgrad.float16
    for name, t in kept["model"].items():
        assert leafgrad.equal(found["model"][name], t)
    assert np.load(path)["integers"].tolist() == [1, 2]


def test_an_archive_of_another_program(tmp_path):
    np.savez(tmp_path / "theirs.npz", a=np.arange(3), b=np.ones((2, 2), "float32"))
    found = leafgrad.load(tmp_path / "theirs.npz")
    assert found["a"].tolist() == [0, 1, 2]
    assert found["b"].dtype is leafgrad.float32


def test_what_is_no_archive(tmp_path):
    path = tmp_path / "bad.npz"
    leafgrad.save([leafgrad.ones(100)], path)
    whole = path.read_bytes()
    for cut in (0, 3, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(RuntimeError, match=r"load: .*bad.npz: expected a whole file of its format"):
            leafgrad.load(path)
    np.savez(path, a=np.array([{}], dtype=object))
    with pytest.raises(RuntimeError, match="Object arrays cannot be loaded"):
        leafgrad.load(path)


def test_a_file_that_was_written_as_safetensors_under_that_name(tmp_path):
    with open(tmp_path / "old.npz", "wb") as file:
        leafgrad.save({"a": 1}, file)
    assert leafgrad.load(tmp_path / "old.npz") == {"a": 1}


def test_names_that_are_taken_and_dtypes_that_it_has_not(tmp_path):
    with pytest.raises(ValueError, match="the name 'leafgrad' is taken"):
        leafgrad.save({"leafgrad": leafgrad.ones(1)}, tmp_path / "x.npz")
    with pytest.raises(ValueError, match="'a' is of bfloat16, which npz files have not"):
        leafgrad.save({"a": leafgrad.ones(1, dtype=leafgrad.bfloat16)}, tmp_path / "x.npz")
    assert not (tmp_path / "x.npz").exists()

"""Which code is the user's."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import leafgrad
from leafgrad import backends
from leafgrad.compile.record import pure
from leafgrad.compile.record.watch import is_library

ARRAYS = "import numpy as np\nclass Mine(np.ndarray): pass\n"
STEP = "RATE = 1.0\ndef step(x):\n    return (x * RATE).sin() + 1\n"


def test_a_package_with_a_subclass_of_arrays_is_the_users(tmp_path, monkeypatch):
    folder = tmp_path / "somebodys"
    folder.mkdir()
    for name, text in (("__init__", ""), ("arrays", ARRAYS), ("train", STEP)):
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    arrays, train = (importlib.import_module(f"somebodys.{name}") for name in ("arrays", "train"))
    is_library.cache_clear()
    try:
        backends.backend_of(np.zeros(2).view(arrays.Mine))
        assert not is_library(train.__file__)
        compiled, x = leafgrad.compile(train.step), leafgrad.arange(3.0)
        for rate in (1.0, 1.0, 1.0, 2.0, -3.0):
            train.RATE = rate
            assert leafgrad.allclose(compiled(x), train.step(x))
    finally:
        backends.contract.BACKENDS.pop(arrays.Mine)
        is_library.cache_clear()
        for name in [n for n in sys.modules if n.partition(".")[0] == "somebodys"]:
            del sys.modules[name]


@pytest.mark.parametrize("name", [*pure.SAFE, *pure.UNSAFE])
def test_what_is_listed_of_this_package_is_there(name):
    """A file that moves would be known no more, and steps that call it open."""
    assert Path(leafgrad.__file__).parent.joinpath(name).exists()

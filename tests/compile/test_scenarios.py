"""A compiled function does at every call what the eager function does, or raises an error that names the line."""

from __future__ import annotations

import importlib.util
import shutil

import pytest
from compile.scenarios import ROWS, check

NATIVE = importlib.util.find_spec("leafgrad_native") is not None and shutil.which("cc") is not None
needs_native = pytest.mark.skipif(not NATIVE, reason="needs leafgrad-native and a C compiler")
ONCE = ("before the third call",)
IN_C = """
numbers-attribute numbers-argument
""".split()

rows = pytest.mark.parametrize("name", sorted(ROWS))


@rows
def test_rows_are_fair(name):
    """Eager against eager: nothing but the compiler may make a row fail."""
    assert check(ROWS[name], None) == []


@rows
def test_numpy(name, record_property):
    record_property("refused", check(ROWS[name], "numpy"))


@rows
def test_replay(name, record_property):
    record_property("refused", check(ROWS[name], "replay", ONCE))


@needs_native
@pytest.mark.parametrize("name", IN_C)
def test_native(name, record_property):
    record_property("refused", check(ROWS[name], "native", ONCE))


@needs_native
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(ROWS) - set(IN_C)))
def test_native_on_all_rows(name, record_property):
    record_property("refused", check(ROWS[name], "native", ONCE))

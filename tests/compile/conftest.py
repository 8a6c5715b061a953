"""What tests of several rooms of the compiler need."""

import pytest

from leafgrad.compile.numpy import executor


@pytest.fixture
def in_chunks(monkeypatch):
    """The NumPy executor runs each batch in chunks that can be, however few its rows are."""
    monkeypatch.setattr(executor, "better_whole", lambda loops: None)

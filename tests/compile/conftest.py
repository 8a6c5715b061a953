"""What tests of several rooms of the compiler need."""

import pytest

from leafgrad.compile.numpy import executor
from leafgrad.compile.run import idle


@pytest.fixture(autouse=True)
def small_steps_are_programs(monkeypatch):
    """As larger ones are, which tests have no time for."""
    monkeypatch.setattr(idle, "FEW", 4)


@pytest.fixture
def in_chunks(monkeypatch):
    """The NumPy executor runs each batch in chunks that can be, however few its rows are."""
    monkeypatch.setattr(executor, "better_whole", lambda loops: None)

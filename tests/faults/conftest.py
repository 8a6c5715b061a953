"""How often a fault is tried, and the note of it for the table in docs/reliability.md."""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc):
    """``count``: how often. ``@pytest.mark.times(few, many)``: few in the default run, many among the slow tests."""
    mark = metafunc.definition.get_closest_marker("times")
    if mark is not None:
        few, many = mark.args
        metafunc.parametrize("count", [few, pytest.param(many, marks=pytest.mark.slow)])


@pytest.fixture
def tried(record_property):
    """Notes that a fault was tried so often, and what came of it each time."""

    def note(fault, count, outcome):
        record_property("tried", (fault, count, outcome))

    return note

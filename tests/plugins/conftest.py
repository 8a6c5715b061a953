"""A manager of its own for each test."""

from __future__ import annotations

import sys

import pytest
from installed_plugins import NamedOp, plugin

from leafgrad.plugins import BackendSpec, manager
from leafgrad.plugins.manager import Manager


@pytest.fixture
def fresh(monkeypatch):
    """Makes a manager with a small core and the given entry points installed."""
    core = plugin("test_core", ops=[NamedOp("tanh")], backends=[BackendSpec("numpy", "cpu", "m:A")])
    monkeypatch.setitem(sys.modules, "test_core", core)
    monkeypatch.delenv("LEAFGRAD_PLUGINS", raising=False)
    monkeypatch.delenv("LEAFGRAD_STRICT_PLUGINS", raising=False)

    def make(*entries):
        monkeypatch.setattr(manager, "_installed", lambda: entries)
        return Manager(core="test_core")

    return make

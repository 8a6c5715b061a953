"""What tests of semantics run on: leafgrad, and PyTorch."""

from __future__ import annotations

import importlib.util

import pytest


@pytest.fixture(params=["leafgrad", *(["torch"] if importlib.util.find_spec("torch") else [])])
def t(request):
    """leafgrad, and PyTorch where it is installed: a test of semantics that both share runs on both."""
    return importlib.import_module(request.param)

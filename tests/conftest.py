"""What tests run on: devices, and libraries."""

from __future__ import annotations

import importlib.util

import pytest

import leafgrad
from leafgrad.testing import fake


@pytest.fixture(params=["cpu", "fake:0", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request):
    """Each device in turn: the CPU, a stand-in stricter than a GPU, and under `-m gpu` a GPU."""
    if request.param.startswith("fake"):
        fake.register()
    return leafgrad.device(request.param)


@pytest.fixture(params=["leafgrad", *(["torch"] if importlib.util.find_spec("torch") else [])])
def t(request):
    """leafgrad, and PyTorch where it is installed: a test of semantics that both share runs on both."""
    return importlib.import_module(request.param)

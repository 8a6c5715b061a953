"""The devices of these tests."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad.testing import fake


@pytest.fixture(params=["cpu", "fake:0", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request):
    """Each device in turn: the CPU, a stand-in stricter than a GPU, and under `-m gpu` a GPU."""
    if request.param.startswith("fake"):
        fake.register()
    return leafgrad.device(request.param)

"""For pytest: the fixture ``device``.

Ask for it in the conftest.py at the top: ``pytest_plugins = ["leafgrad.testing.pytest_plugin"]``. It is no entry point,
which would import leafgrad into every run of pytest wherever leafgrad is installed.
"""

from __future__ import annotations

from typing import Any

import pytest

import leafgrad


def pytest_configure(config: Any) -> None:
    """Make the mark known that tests on a GPU have."""
    config.addinivalue_line("markers", "gpu: needs a CUDA device")


@pytest.fixture(params=["cpu", "fake:0", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request: Any) -> Any:
    """Each device in turn: the CPU, a stand-in stricter than a GPU, and where there is one (``-m gpu``) a GPU.

    A test is skipped on ``cuda:0`` where there is none, unless ``-m`` asks for it.
    """
    if request.param.startswith("fake"):
        from leafgrad.testing import fake

        fake.register()
    if request.param.startswith("cuda") and "gpu" not in request.config.option.markexpr and not _cuda():
        pytest.skip("no CUDA device")
    return leafgrad.device(request.param)


def _cuda() -> bool:
    """Whether there is a GPU."""
    try:
        leafgrad.zeros(1, device="cuda:0")
    except (RuntimeError, ImportError):
        return False
    return True

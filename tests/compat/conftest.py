"""What the tests of PyTorch's surface share."""

from __future__ import annotations

import sys

import pytest

from leafgrad.compat import as_torch


@pytest.fixture
def torch():
    """The stand-in, while no real PyTorch is imported."""
    if "torch" in sys.modules:
        pytest.skip("PyTorch is imported")
    with as_torch():
        import torch

        yield torch

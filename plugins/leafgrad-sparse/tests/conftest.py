"""The devices of these tests."""

from __future__ import annotations

import inspect
from functools import cache

import numpy
import pytest

import leafgrad
from leafgrad.testing import fake
from leafgrad.testing.fake.array import run
from leafgrad_sparse.ops import sparse_matmul


@cache
def register():
    """SciPy refuses the stand-in's arrays, so the product gets a kernel that runs it on what they hide."""
    fake.register()

    def kernel(xp, *args, **params):
        return run(lambda *hidden: sparse_matmul.forward(numpy, *hidden, **params), args)

    kernel.__signature__ = inspect.signature(sparse_matmul.forward)
    sparse_matmul.kernel("fake")(kernel)


@pytest.fixture(params=["cpu", "fake:0", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request):
    """Each device in turn: the CPU, a stand-in stricter than a GPU, and under `-m gpu` a GPU."""
    if request.param.startswith("fake"):
        register()
    return leafgrad.device(request.param)

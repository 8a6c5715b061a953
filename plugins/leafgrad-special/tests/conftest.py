"""The devices of these tests."""

from __future__ import annotations

import inspect
from functools import cache

import numpy
import pytest

import leafgrad
import leafgrad_special
from leafgrad.testing import fake
from leafgrad.testing.fake.array import run


def on_fake(op):
    """A kernel that runs the op's NumPy forward on what the stand-in device's arrays hide."""

    def kernel(xp, *args, **params):
        return run(lambda *hidden: op.forward(numpy, *hidden, **params), args)

    kernel.__signature__ = inspect.signature(op.forward)
    return kernel


@cache
def register():
    """SciPy refuses the stand-in's arrays, so the ops get kernels for it: their rules are what is tested there."""
    fake.register()
    for op in leafgrad_special.leafgrad_ops():
        op.kernel("fake")(on_fake(op))


@pytest.fixture(params=["cpu", "fake:0", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request):
    """Each device in turn: the CPU, a stand-in stricter than a GPU, and under `-m gpu` a GPU."""
    if request.param.startswith("fake"):
        register()
    return leafgrad.device(request.param)

"""What Python's own tools find of an op: its name, signature and source."""

from __future__ import annotations

import inspect

import pytest

import leafgrad
from leafgrad import op, plugins


@op
def smooth_max(xp, x, y=None, *, dim, keepdim=False):
    """A soft maximum."""
    return x


def test_ops_of_ones_own():
    assert (smooth_max.__name__, smooth_max.__qualname__) == ("smooth_max", "smooth_max")
    assert str(inspect.signature(smooth_max)) == "(x, y=None, *, dim, keepdim=False)"
    assert inspect.getsource(smooth_max).startswith("@op\ndef smooth_max(xp, x")
    assert inspect.getdoc(smooth_max) == "A soft maximum."


@pytest.mark.parametrize("name", ["add", "exp", "relu", "softmax", "cat", "sum", "matmul", "where"])
def test_ops_of_the_core(name):
    found = plugins.op(name)
    assert found.__name__ == name
    assert "xp" not in inspect.signature(found).parameters
    assert "xp" in inspect.getsource(found)


@pytest.mark.parametrize("name", ["relu", "sin", "mul", "add", "softmax", "max", "linspace", "digamma"])
def test_public_functions(name):
    function = getattr(leafgrad, name)
    assert function.__name__ == name
    assert inspect.signature(function).parameters
    assert inspect.getsource(function)

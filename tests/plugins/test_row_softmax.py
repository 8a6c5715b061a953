"""A plugin's row softmax, in a package of its own, reaches what the core's ops reach: chunks, vmap, C, a method."""

from __future__ import annotations

import importlib
import sys
import warnings
from shutil import which

import numpy as np
import pytest

import leafgrad
from leafgrad import plugins
from leafgrad.compile.numpy.executor import NumpyProgram
from leafgrad.compile.passes import optimize
from leafgrad.compile.schedule.schedule import Loop
from leafgrad.func import vmap
from leafgrad.tensor.methods import DECLARED, Methods
from leafgrad.testing import check_op

PACKAGE = '''
from leafgrad import op, rules
from leafgrad.plugins import hookimpl


@op("along", "float")
def row_softmax(xp, x, *, dim=-1):
    """softmax along dim. (..., n) -> (..., n) for dim = -1"""
    e = xp.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


row_softmax.vjp(x=lambda g, out, *, dim: out * (g - rules.sum(g * out, dim, keepdim=True)))
row_softmax.method("row_softmax")


@row_softmax.lower("native")
def in_c(c, equation):
    return c.along(
        """
        real top = x(0);
        for (long i = 1; i < n; i++) top = maximum(top, x(i));
        real total = 0;
        for (long i = 0; i < n; i++) total += exp(x(i) - top);
        for (long i = 0; i < n; i++) out(i) = exp(x(i) - top) / total;
        """,
        equation.params["dim"],
    )


@op
def last_softmax(xp, x):
    """The same along the last dimension, without a trait: each rule is declared."""
    return row_softmax.forward(xp, x, dim=-1)


last_softmax.vjp(x=lambda g, out: out * (g - rules.sum(g * out, -1, keepdim=True)))
last_softmax.shape(lambda x: x.shape)
last_softmax.chunk(lambda call: call.aligned(whole=[-1]))
last_softmax.batched(lambda call: call.again(call.args[0]))
last_softmax.lower("native", lambda c, equation: c.normalized("softmax", -1))


@hookimpl
def leafgrad_ops():
    return [row_softmax, last_softmax]
'''
ROWS = 150
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package, imported and registered."""
    before = {*DECLARED}
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "leafgrad_rows.py").write_text(PACKAGE)
    sys.path.insert(0, str(folder))
    module = importlib.import_module("leafgrad_rows")
    plugins.register(module, "rows")
    yield module
    for name in DECLARED.keys() - before:
        del DECLARED[name]
        delattr(Methods, name)
    sys.path.remove(str(folder))


NAMES = ["row_softmax", "last_softmax"]


def softmax(x, *, dim=-1):
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


@pytest.mark.parametrize("name", NAMES)
def test_by_the_kit(package, name):
    x = RNG.normal(size=(3, 4, 5))
    dims = [{}, {"dim": 0}, {"dim": 1}] if name == "row_softmax" else [{}]
    check_op(getattr(package, name), [((x,), params) for params in dims], softmax, executors=["numpy", "replay"])


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_in_the_loop_over_chunks_with_its_gradient(package, name):
    op = getattr(package, name)

    def step(x):
        x = x.detach().requires_grad_()
        y = op(leafgrad.sin(x))
        return y, *leafgrad.autograd.grad((y * y).sum(), x)

    x = leafgrad.tensor(RNG.normal(size=(ROWS, 6)))
    program = NumpyProgram(optimize(leafgrad.trace(step, x)), rows=64)
    (loop,) = [stage for stage in program.schedule.stages if isinstance(stage, Loop)]
    assert name in {equation.name for equation in loop.equations}
    assert loop is program.schedule.stages[-1]
    for found, expected in zip(program([x.numpy()]), step(x), strict=True):
        np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_rule_for_vmap(package, name):
    x = leafgrad.tensor(RNG.normal(size=(3, 4, 5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of the performance, if it ran sample by sample
        found = vmap(getattr(package, name), in_dims=1, out_dims=1)(x)
    np.testing.assert_allclose(found.numpy(), softmax(x.numpy()), rtol=1e-13)


@pytest.mark.skipif(which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("name", NAMES)
def test_it_runs_as_c_from_its_own_package(package, name):
    op = getattr(package, name)

    def step(x):
        y = op(leafgrad.tanh(x))
        return y, leafgrad.autograd.grad((y * y).sum(), x)[0]

    x = leafgrad.tensor(RNG.normal(size=(ROWS, 6)), requires_grad=True)
    compiled = leafgrad.compile(step, executor="native")
    for _ in range(3):
        for found, expected in zip(compiled(x), step(x), strict=True):
            np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-12)
    assert name in compiled.source()
    assert "NumPy" not in compiled.explain()


def test_it_is_a_method_and_says_what_it_has(package):
    x = leafgrad.tensor(RNG.normal(size=(2, 3)))
    np.testing.assert_allclose(x.row_softmax(0).numpy(), softmax(x.numpy(), dim=0), rtol=1e-13)
    assert leafgrad.row_softmax(x).shape == (2, 3)
    described = str(plugins.op("row_softmax"))
    for part in ("vjp x", "shape", "chunk", "batched", "lower native", "method row_softmax"):
        assert part in described

"""What C is handed is looked at before it is read."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad_native import arrays
from leafgrad_native.compiler import NoCompiler, compiler
from leafgrad_native.executor import NativeProgram

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


def test_the_backward_pass_of_a_step_that_numpy_runs(monkeypatch):
    net, x, y = nn.Linear(3, 1), leafgrad.rand(5, 3), leafgrad.rand(5, 1)

    def loss(x):
        return nn.functional.mse_loss(net(x), y) + 0.1 * net.weight.norm()

    loss(x).backward()
    expected = net.weight.grad.numpy().copy()
    for forward, backward in (("numpy", "native"), ("native", "numpy"), ("native", "native")):
        compiled = leafgrad.compile(loss)
        monkeypatch.setenv("LEAFGRAD_EXECUTOR", forward)
        compiled(x)
        result = compiled(x)
        monkeypatch.setenv("LEAFGRAD_EXECUTOR", backward)  # which is built when it is first asked for
        net.zero_grad()
        result.backward()
        np.testing.assert_allclose(net.weight.grad.numpy(), expected, rtol=1e-4)


WRONG = {
    "a scalar": (lambda x: np.float64(2.0), r"gave a float64 for s, expected an array"),
    "a number": (lambda x: 2.0, r"gave a float for s, expected an array"),
    "another dtype": (lambda x: np.array(2, np.float32), r"gave float32 of shape \(\) for s, expected float64"),
    "another order of bytes": (lambda x: np.array(2, ">f8"), r"gave >f8 of shape \(\) for s"),
    "another shape": (lambda x: np.ones(1), r"gave float64 of shape \(1,\) for s, expected float64 of shape \(\)"),
}


@pytest.mark.parametrize(("given", "match"), WRONG.values(), ids=WRONG)
def test_what_is_not_as_it_was_is_refused(given, match):
    x, s = leafgrad.ones(4, dtype=leafgrad.float64), leafgrad.ones((), dtype=leafgrad.float64)
    program = NativeProgram(leafgrad.trace(lambda x, s: x * s, x, s))
    with pytest.raises(TypeError, match=match):
        program([x.numpy(), given(x)])
    with pytest.raises(TypeError, match="gave 1 arrays, expected 2"):
        program([x.numpy()])
    np.testing.assert_array_equal(program([x.numpy(), s.numpy()])[0], np.ones(4))


def test_an_op_whose_shape_depends_on_values_is_an_error():
    positive = leafgrad.op("float", name="native_positive")(lambda xp, x: x[x > 0])
    graph = leafgrad.trace(lambda x: positive(x) * 2, leafgrad.ones(4))
    with pytest.raises(TypeError, match=r"the op 'native_positive' gave float32 of shape \(2,\) for a, expected"):
        NativeProgram(graph)([np.array([1, -1, 1, -1], np.float32)])


@pytest.mark.parametrize("trusted", [True, False])
def test_addresses_are_those_of_numpy(monkeypatch, trusted):
    """Copies stand for arrays that C cannot walk in order; None is passed over."""
    assert arrays.trusted()
    monkeypatch.setattr(arrays, "trusted", lambda: trusted)
    given = [
        np.ones((2, 3)),
        None,
        np.ones((2, 3)).T,
        np.arange(6)[::2],
        np.ones((0, 4)),
        np.array(2.0),
        np.ones(3)[:0],
    ]
    given += [np.zeros(17, np.uint8)[1:].view(np.float64)]
    table, kept = (ctypes.c_void_p * len(given))(), list(given)
    arrays.point(table, given)
    for k, (array, before) in enumerate(zip(given, kept, strict=True)):
        if array is None:
            assert table[k] is None
            continue
        assert table[k] == array.ctypes.data
        assert array.flags.c_contiguous
        assert array.flags.aligned
        assert (array is before) == (k not in (2, 3, 7))
        np.testing.assert_array_equal(array, before)

"""Code is refused where it is wrong, not where rounding decides; and who is wrong is named."""

from __future__ import annotations

import os

import numpy as np
import pytest

import leafgrad
from leafgrad.lowering import expressions
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Code of earlier runs is compared too."""
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", "1")


def compiled(function, *arguments):
    found = leafgrad.compile(function, executor="native")
    found(*arguments)
    return found


def slope(x):
    y = leafgrad.tanh(x)
    return 1 - y * y


CANCELS = {
    "slopes of tanh": slope,
    "a derivative": lambda x: leafgrad.autograd.grad(leafgrad.tanh(x).sum(), x)[0],
    "one over nothing": lambda x: 1 / slope(x),
    "its logarithm": lambda x: leafgrad.log(slope(x)),
    "equal or not": lambda x: leafgrad.tanh(x) == 1,
    "a choice": lambda x: leafgrad.where(leafgrad.tanh(x) < 1, x, -x),
    "a sine of a difference": lambda x: (leafgrad.exp(x) - leafgrad.exp(x * 1.0000001)) * 1e6,
    "a sum": lambda x: (leafgrad.sin(x) - leafgrad.sin(x + 2 * np.pi)).sum(),
}


@pytest.mark.parametrize("dtype", [leafgrad.float32, leafgrad.float64])
@pytest.mark.parametrize("rows", [9, 300])
@pytest.mark.parametrize("function", CANCELS.values(), ids=CANCELS)
def test_right_code_is_not_refused(function, rows, dtype):
    for low, high in ((5, 40), (15, 20), (-30, -8)):
        x = leafgrad.linspace(low, high, rows, dtype=dtype).reshape(-1, 1).requires_grad_()
        c = compiled(function, x)
        c(x)
        assert "refused" not in c.explain()


def test_a_wrong_body_is_refused_by_the_name_of_its_op():
    wrong = leafgrad.op("elementwise", "float", name="check_wrong", c="x + 2")(lambda xp, x: x + 1)
    right = leafgrad.op("elementwise", "float", name="check_right", c="x + 1")(lambda xp, x: x + 1)
    x = leafgrad.randn(50, dtype=leafgrad.float64)
    c = leafgrad.compile(lambda x: right(wrong(leafgrad.exp(x)) * 2), executor="native")
    message = r"op 'check_wrong', from test_check.py:\d+: .*: its c='x \+ 2', from .*:\d+, computes something"
    with pytest.warns(RuntimeWarning, match=message):
        got = c(x)
    for result in (got, c(x)):
        np.testing.assert_allclose(result.numpy(), 2 * (np.exp(x.numpy()) + 1) + 1, rtol=1e-14)
    assert "refused" in c.explain()


def test_wrong_code_of_ours_is_written_down(monkeypatch):
    monkeypatch.setattr(expressions, "worded", lambda *given, worded=expressions.worded: f"{worded(*given)} + 1")
    x = leafgrad.randn(50, dtype=leafgrad.float64)
    c = leafgrad.compile(lambda x: leafgrad.exp(x) * 2, executor="native")
    with pytest.warns(RuntimeWarning, match=r"differently from NumPy \(by [\d.]+\).*Please file (\S+)") as caught:
        got = c(x)
    for result in (got, c(x)):
        np.testing.assert_allclose(result.numpy(), 2 * np.exp(x.numpy()), rtol=1e-14)
    assert "refused" in c.explain()
    report = str(caught[0].message).rpartition("file ")[2].partition("; ")[0]
    with open(report, encoding="utf-8") as file:
        text = file.read()
    os.unlink(report)
    assert "= exp(x)" in text
    assert " + 1)" in text


def test_rounding_does_not_explain_what_is_wrong_elsewhere():
    wrong = leafgrad.op("elementwise", "float", name="check_small", c="x * 1.00001")(lambda xp, x: x * 1.0)
    x = leafgrad.linspace(0.1, 40, 50, dtype=leafgrad.float64)
    c = leafgrad.compile(lambda x: wrong(slope(x)), executor="native")
    with pytest.warns(RuntimeWarning, match="check_small"):
        c(x)

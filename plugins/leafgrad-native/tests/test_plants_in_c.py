"""Wrong C of an op is found by the kit, with the numbers for which it is wrong, and at its first run in a program."""

from __future__ import annotations

import re

import numpy as np
import pytest

import leafgrad
from leafgrad import op
from leafgrad.testing import ConformanceError, check_op
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

X = np.linspace(0.2, 2.0, 12).reshape(3, 4)

# Each passes where its arguments are between 0.1 and 2, which samples are.
PLANTS = {
    "overflow": ("log(1 + exp(x))", lambda xp, x: xp.logaddexp(x, 0)),
    "nan": ("x > 0 ? x * x : 0", lambda xp, x: x * x * (x > 0)),
    "nan in a maximum": ("x > 1 ? x : 1", lambda xp, x: xp.maximum(x, 1)),
    "infinity": ("x / (1 + x)", lambda xp, x: 1 / (1 + 1 / x)),
    "negative": ("pow(x, 0.5) * pow(x, 0.5) * x", lambda xp, x: x * xp.abs(x)),
    "a squared overflow": ("sqrt(x * x)", lambda xp, x: xp.abs(x)),
    "cancellation": ("log(1 + x)", lambda xp, x: xp.log1p(x)),
    "more cancellation": ("exp(x) - 1", lambda xp, x: xp.expm1(x)),
    "a zero of the other sign": ("x < 0 ? -x : x", lambda xp, x: xp.abs(x)),
    "signed zero": ("1 / abs(x)", lambda xp, x: 1 / x),
    "a branch from 40 on": ("x < 30 ? exp(x) : exp(30.0)", lambda xp, x: xp.exp(x)),
    "tiny numbers": ("(x * 1e-300) * 1e300", lambda xp, x: x + 0),
    "a sign": ("sqrt(x)", lambda xp, x: xp.sign(x) * xp.sqrt(xp.abs(x))),
}


def made(c, forward):
    return op("elementwise", "float", name="planted", c=c)(forward)


@pytest.mark.parametrize(("c", "forward"), PLANTS.values(), ids=PLANTS)
def test_wrong_c_at_edges(c, forward):
    planted = made(c, lambda xp, x: forward(xp, x))
    with pytest.raises(ConformanceError) as caught:
        check_op(planted, [((X,), {})], executors=["native"], checks="edges")
    (result,) = caught.value.report.results
    assert re.search(
        r"sample 0 at edge values, planted\(x: float\d\d \(\d+,\)\), executor 'native'.* x=", result.reason
    )
    assert f"c={c!r} ({__file__}:" in result.reason


def test_wrong_c_of_two_arguments_and_a_parameter():
    @op("elementwise", "float", c="x * pow(y, n)")
    def planted(xp, x, y, *, n=2.0):
        return x * xp.abs(y) ** n

    with pytest.raises(ConformanceError, match=r"edges: sample 0 .*, executor 'native'.* x=.*, y=-"):
        check_op(planted, [((X, X), {"n": 3.0})], executors=["native"], checks="edges")


@pytest.mark.parametrize(
    ("c", "forward"),
    {
        "the same": ("exp(-x * x)", lambda xp, x: xp.exp(-x * x)),
        "nearly the same": ("1 - tanh(x) * tanh(x)", lambda xp, x: 1 - xp.tanh(x) ** 2),
        "another order": ("x * (x + 3) + 2", lambda xp, x: (x + 1) * (x + 2)),
        "a better way": ("log1p(x)", lambda xp, x: xp.log(1 + x)),
        "an angle": ("sin(x) * cos(x)", lambda xp, x: xp.sin(x) * xp.cos(x)),
    }.values(),
)
def test_right_c_passes(c, forward):
    planted = made(c, lambda xp, x: forward(xp, x))
    assert check_op(planted, [((X,), {})], executors=["native"], checks="edges").ok


@pytest.mark.parametrize(
    ("c", "forward"),
    {
        "affine": ("scale * x + shift", lambda xp, x, scale, shift: scale * x + shift),
        "a determinant": ("x * scale - shift * shift", lambda xp, x, scale, shift: x * scale - shift * shift),
        "half of a step": ("x - 0.5 * (scale + shift)", lambda xp, x, scale, shift: x - 0.5 * (scale + shift)),
    }.values(),
    ids=["affine", "a determinant", "half of a step"],
)
def test_c_that_rounds_once_passes(c, forward, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", "1")  # the executor, too, compares what it is given
    planted = op("elementwise", "float", name="planted", c=c)(lambda xp, x, scale, shift: forward(xp, x, scale, shift))
    assert check_op(planted, [((X, X + 1, X - 1), {})], executors=["native"], checks="edges").ok


@pytest.mark.parametrize("plant", ["overflow", "nan"])
def test_the_first_run_tries_edges(plant, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", "1")
    c, forward = PLANTS[plant]
    planted = made(c, lambda xp, x: forward(xp, x))
    step = leafgrad.compile(lambda x: planted(x) * 2, executor="native")
    with pytest.warns(
        RuntimeWarning, match=rf"its c={re.escape(repr(c))}, .* computes something else than its forward, .* at x="
    ):
        step(leafgrad.ones(3))
    far = leafgrad.tensor([801.0, float("nan"), 1.0])
    with np.errstate(all="ignore"):
        assert step(far).tolist()[0] == planted(far).tolist()[0] * 2
        assert np.isnan(step(far)[1].item())

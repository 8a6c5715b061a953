"""Numbers that change from call to call, in Python's arithmetic and in NumPy's."""

import json
import math
import re
import statistics
from decimal import Decimal

import numpy as np
import pytest

import leafgrad

X = leafgrad.tensor([1.0, 2.0])
WHOLE = leafgrad.tensor([16777217, 3])

STEPS = {
    "powers of a negative number": (lambda k: X * (-1) ** k, [0, 1, 2, 3, 4, 5]),
    "powers of a negative fraction": (lambda k: X * (-0.5) ** k, [0, 1, 2, 3, 4, 5]),
    "a negative factor": (lambda k: X * -2 * k - -3 * k, [2, 3, 4, 5, 6]),
    "powers of two, one of which is none": (lambda k: WHOLE * 2**k, [1, -1, 0, 2, -2, 3]),
    "roots": (lambda k: X * abs(k**0.5), [4.0, 1.0, 2.0, 9.0, -4.0, 5.0]),
    "powers that may be complex": (lambda k: X * abs((-2.0) ** k), [2.0, 1.0, 3.0, 0.5, 4.0]),
    "a small integer of NumPy's": (lambda k: X * int(np.uint8(249) + k), [1, 2, 3, 7, 8, 250]),
    "a float of NumPy's over it": (lambda k: X * float(np.float64(1) / k), [1.0, 2.0, 4.0, 0.0, 8.0]),
    "beyond float32": (lambda k: X * float(np.float32(3e38) * k), [1.0, 2.0, 0.5, 0.0, 8.0]),
    "functions of NumPy's": (lambda k: X * np.sin(k) + np.sqrt(k) + np.floor(k), [1.5, 2.5, 3.0, 0.0, 8.0]),
    "an array with it": (lambda k: X * leafgrad.tensor(np.array([k, 1.0])), [1.5, 2.5, 3.0, 0.0, 8.0]),
    "a filled array": (lambda k: X * leafgrad.tensor(np.full(2, k)), [1, 2, 3, 0, 8]),
    "an array times it": (lambda k: X * leafgrad.tensor(np.ones(2) * k), [1, 2, 3, 0, 8]),
    "places up to it": (lambda k: X * leafgrad.tensor(np.arange(k + 2)[:2]), [1, 2, 3, 0, 8]),
    "tensors of it": (
        lambda k: X * leafgrad.tensor([k, 1]) + leafgrad.tensor(k) + leafgrad.arange(2, dtype=X.dtype),
        [1, 2, 3, 4],
    ),
    "a text": (lambda k: (X * 2, json.dumps({"k": k}), f"{k:03d}", str(Decimal(k))), [1, 2, 3, 0, 8]),
    "rounded": (
        lambda k: X * round(k, 1) + int(k) + round(k) + math.floor(k) + math.ceil(k) + math.trunc(k),
        [0.5, 1.5, 1.52, -0.04, 0.04, 2.5, math.nan, 3.5, math.inf, 0.5],
    ),
    "rounded to a zero of either sign": (lambda k: X / round(k, 1), [0.5, 0.04, -0.04, 0.03, -0.03, 0.0, -0.0]),
    "rounded badly": (lambda k: X * round(k, 1.0), [1.5, 2.5, 3.5, 4.5]),
    "its bits": (
        lambda k: X * (k & 3) + (k >> 1) + (k << 1) + (k ^ 5) + (k | 2) + divmod(k, 3)[1] + divmod(k, 2.5)[0],
        [1, 2, 5, 9, 8, -3],
    ),
    "bits of a fraction": (lambda k: X * (k & 3), [1.5, 2.5, 3.5, 4.5]),
    "parts by zero": (lambda k: X * divmod(k, k - k)[0], [1, 2, 3, 4]),
    "parts by what is no number": (
        lambda k: (X * divmod(k, math.inf)[1], divmod(k, -math.inf)[0], math.isnan(divmod(k, math.nan)[1])),
        [1.0, 2.0, 3.0, -4.0, 5.0],
    ),
    "an int too long for a text": (lambda k: (X * 2, k << 20000)[0], [1, 2, 3, 4]),
    "texts": (lambda k: (X * k, f"{k:.1f}", f"{k!r:>9}", format(k), f"{k:+.0%}"), [0.51, 0.52, 0.53, 1.0, -0.0, 0.0]),
    "a bad text": (lambda k: (X * k, f"{k:d}"), [0.5, 1.5, 2.5, 3.5]),
    "too large, where nobody reads it": (lambda k: (X * 2, k / 7)[0], [3, 4, 5, 10**400, 6]),
    "too large beside a fraction": (lambda k: (X * 2, k * 0.5)[0], [3, 4, 5, 10**400, 6]),
    "a mean": (lambda k: X * statistics.mean([k, 2]), [1, 2, 3, 0, 8]),
}


def shown(value):
    if isinstance(value, tuple):
        return [shown(v) for v in value]
    return (value.dtype, value.tolist()) if isinstance(value, leafgrad.Tensor) else (type(value), value)


def done(step, k):
    try:
        with np.errstate(all="ignore"):
            return shown(step(k))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", STEPS)
def test_is_as_uncompiled(name):
    step, numbers = STEPS[name]
    compiled = leafgrad.compile(lambda k: step(k))
    for k in numbers:
        assert done(compiled, k) == done(step, k)


@pytest.mark.parametrize(
    ("step", "numbers"),
    [
        (lambda k: X * k + int(k), [0.1, 0.2, 0.3, 0.7]),
        (lambda k: X[: math.ceil(k)] * k, [0.1, 0.2, 0.3, 0.7]),
        (lambda k: X * k + round(k, 1), [0.51, 0.52, 0.53, 0.54]),
        (lambda k: X * k + (k & 1), [1, 3, 5, 7]),
        (lambda k: (X * k, f"{k:.1f}"), [0.51, 0.52, 0.53, 0.54]),
    ],
    ids=["int", "ceil", "round", "bits", "text"],
)
def test_a_program_is_bound_to_what_is_made_of_it(step, numbers):
    compiled = leafgrad.compile(lambda k: step(k))
    for k in numbers:
        assert done(compiled, k) == done(step, k)
    assert "closed; 1 program, traced again 0 times" in compiled.explain().summary
    compiled(numbers[-1] + 1)
    assert re.search(r"what is computed of k was \S+ and became", compiled.explain())


@pytest.mark.parametrize("step", [lambda k: leafgrad.rand(k % 4 + 1), lambda k: X[k % 4 + 1]], ids=["size", "index"])
def test_what_is_no_int_is_refused_as_uncompiled(step):
    compiled = leafgrad.compile(lambda k: step(k))
    for k in (0.5, 1.5, 2.5, 3.5):
        with pytest.raises((TypeError, IndexError)) as expected:
            step(k)
        with pytest.raises(expected.type) as error:
            compiled(k)
        assert str(error.value) == str(expected.value)


@pytest.mark.parametrize("executor", ["numpy", None])
@pytest.mark.parametrize(
    ("step", "numbers"),
    [
        (lambda x, k: x.half().clamp(max=k), (1, 2, 3, 70000, 80000)),
        (lambda x, k: leafgrad.autograd.grad((k**x).sum(), x)[0], (2.0, 3.0, 4.0, 0.0, 1.5)),
        (lambda x, k: leafgrad.func.hessian(lambda x: (k**x).sum())(x.detach()), (2, 3, 4, 1, 0, 5)),
        (
            lambda x, k: leafgrad.autograd.grad(((x * x) ** k).sum(), x, create_graph=True)[0].requires_grad,
            (4, 5, 6, 0),
        ),
    ],
)
def test_what_an_op_asks_of_a_number_is_asked_of_a_symbolic_one(step, numbers, executor):
    def told(function, k):
        try:
            result = function(leafgrad.tensor([0.5, 2.0], requires_grad=True), k)
        except RuntimeError as error:
            return str(error)
        return result if isinstance(result, bool) else result.tolist()

    compiled = leafgrad.compile(step, executor=executor)
    for k in numbers:
        assert told(compiled, k) == told(step, k)


def test_what_a_long_sum_is_made_of_is_told_once():
    state = {"sum": 0.0}

    def step(x, n):
        for _ in range(300):
            state["sum"] += n * 0.5
        return x.sum() * state["sum"]

    compiled = leafgrad.compile(step)
    for n in range(7):
        compiled(leafgrad.ones(3), n)
    assert compiled.explain().summary.count(" n ") + compiled.explain().summary.count(" n,") == 1

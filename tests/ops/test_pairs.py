"""What ops compute of pairs of real numbers is what they compute of complex ones."""

import inspect

import numpy as np
import pytest

import leafgrad
from leafgrad import plugins
from leafgrad.ops import complex as parts, elementwise as ew, exponential, pairs, select, trigonometric as trig
from leafgrad.ops.pairs import Pair, rule_of

RNG = np.random.default_rng(0)
UNARY = [
    ew.abs, ew.neg, ew.reciprocal, ew.rsqrt, ew.sqrt, ew.square, exponential.exp, exponential.log, exponential.sigmoid,
    parts.angle, parts.conj, parts.imag, parts.real, parts.sgn, parts.view_as_real,
    trig.cos, trig.cosh, trig.sin, trig.sinh, trig.tan, trig.tanh,
]  # fmt: skip
GROWING = {exponential.exp, exponential.sigmoid, trig.cos, trig.cosh, trig.sin, trig.sinh, trig.tan, trig.tanh}


def apart(a):
    return Pair(a.real, a.imag) if np.iscomplexobj(a) else a


def together(made, like):
    if not isinstance(made, Pair):
        return made
    out = np.zeros_like(like)
    out.real, out.imag = made.re, 0 if made.im is None else made.im
    return out


def numbers(spread, dtype):
    """Complex numbers whose parts are of many sizes, some of them zero."""
    made = [RNG.standard_normal(400) * 10.0 ** RNG.uniform(-spread, spread, 400) for _ in range(2)]
    made[0][:20], made[1][10:40] = 0, 0
    return (made[0] + 1j * made[1]).astype(dtype)


def compare(op, args, tolerance, **params):
    with np.errstate(all="ignore"):
        want = op(*args, **params)
        made = rule_of(op)(*map(apart, args), **op.signature.bind(params))
    got = together(made, want)
    assert got.shape == want.shape
    size = np.maximum(np.abs(want), np.finfo(want.real.dtype).tiny) if want.dtype.kind in "fc" else 1
    finite = np.isfinite(want)
    assert (finite == np.isfinite(got)).all(), (args[0][finite != np.isfinite(got)][:3], got, want)
    apart_by = np.abs(got[finite] * 1.0 - want[finite])
    assert (apart_by <= tolerance * np.broadcast_to(size, want.shape)[finite]).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_elements(op, dtype):
    tolerance = 64 * np.finfo(dtype).eps
    compare(op, [numbers(0, dtype)], tolerance)
    if op not in GROWING:
        far = {"complex64": 15, "complex128": 120}[dtype]
        compare(op, [numbers(far, dtype)], tolerance)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("op", [ew.add, ew.sub, ew.mul, ew.div], ids=lambda op: op.name)
def test_arithmetic(op, dtype):
    far = {"complex64": 15, "complex128": 120}[dtype]
    for spread in (0, far if op is ew.div else far / 3):
        x, y = numbers(spread, dtype), numbers(spread, dtype)
        if op is ew.div:
            y[y == 0] = 1
        for args in ((x, y), (x, y.real + (y.real == 0)), (x.real.copy(), y)):
            compare(op, args, 64 * np.finfo(dtype).eps)


@pytest.mark.parametrize("y", [0.0, -0.0])
@pytest.mark.parametrize("x", [-4.0, 4.0, 0.0, -0.0])
def test_branch_cuts(x, y):
    """Signs of zero say on which side of a cut a number lies."""
    z = np.array([complex(x, y)])
    for op in (ew.sqrt, parts.angle, *((exponential.log,) if x else ())):
        got, want = together(rule_of(op)(apart(z)), op(z)), op(z)
        assert got == want
        assert np.array_equal(np.signbit(got.imag), np.signbit(want.imag))


def test_division_by_zero():
    with np.errstate(all="ignore"):
        for x in (1 + 2j, -1j, 0j, 3 + 0j):
            want = np.array([x]) / np.array([0j])
            got = pairs.quotient(Pair(np.array([x.real]), np.array([x.imag])), Pair(np.zeros(1), np.zeros(1)))
            for g, w in ((got.re, want.real), (got.im, want.imag)):
                assert np.isnan(g) == np.isnan(w)
                assert np.isinf(g) == np.isinf(w)


def test_powers_and_choices():
    x, y = numbers(0, "complex128")[40:], numbers(0, "complex128")[40:]
    for power in (-1, 0.5, 2, 3):
        got = rule_of(ew.pow)(apart(x), power)
        assert np.allclose(together(got, x), x**power, rtol=1e-13)
    assert rule_of(ew.pow)(apart(x), 2.5) is None
    for w in (0.2, 0.7, np.abs(x.real), y):
        compare(ew.lerp, [x, y, w], 1e-12)
    compare(select.where, [x.real > 0, x, y], 0)
    compare(select.where, [x.real > 0, x, 2.0], 0)


@pytest.mark.parametrize("op", pairs.RULES, ids=lambda op: op.name)
def test_rules_take_what_their_ops_take(op):
    inspect.signature(pairs.RULES[op]).bind(*op.signature.arguments, **op.signature.parameters)


def test_every_op_of_two_parts_maps_real_numbers_to_real_ones():
    """Traits stand for a rule where the op of real numbers is real; others are left to the op."""
    plugins.load()
    for op in plugins.ops():
        if (
            op.takes_complex
            and "linear" in op.traits
            and len(op.signature.arguments) == 1
            and not op.signature.parameters
        ):
            made = op(np.ones((3, 2)))
            assert made.dtype.kind == "f" or "pairs" in op.lowering, op
    assert leafgrad.complex64.to_real() is leafgrad.float32

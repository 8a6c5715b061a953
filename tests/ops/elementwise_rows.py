"""Arithmetic, exponentials, trigonometry, rounding, choosing, comparing."""

from __future__ import annotations

import math

import numpy as np
from op_table import Row, uniform
from scipy import special as sp

from leafgrad.ops import (
    compare,
    convert,
    divisors,
    elementwise as ew,
    exponential,
    gamma,
    inverse_erf,
    refuse,
    rounding,
    select,
    special,
    trigonometric,
)

POSITIVE = (0.3, 2.0)
INSIDE = (-0.9, 0.9)
MISMATCH = (np.ones(3), np.ones(4)), {}, RuntimeError, r"size of tensor a \(3\) must match .* tensor b \(4\)"
TEXT = (np.ones(3), "a"), {}, TypeError, "expected a Tensor or a number, got str"
ARRAY_FREE = (2.0,), {}, TypeError, "expected at least one Tensor"
WHOLE = ("int64", "int32", "int8")
FLOAT_BITS = (np.ones(2), np.ones(2)), {}, NotImplementedError, "expected integers or bools, got floats"


def nothing_bad(rng, dtype):
    return [((np.zeros(shape, dtype),), {"error": ValueError, "message": "one is bad"}) for shape in ((), (2, 3), (0,))]


def zeros_and_ones(rng, dtype):
    """Where xlogy and pow are special."""
    x, y = np.array([0.0, 0.0, 1.0, 2.0], dtype), np.array([0.0, 2.0, 1.0, 3.0], dtype)
    return [((x, y), {}), ((uniform(rng, dtype, (3,), 0.3, 2.0), uniform(rng, dtype, (3,), 0.3, 2.0)), {})]


def near(rng, dtype):
    """Shape parameters and gamma distributed numbers."""
    return [((a := uniform(rng, dtype, (9,), 0.2, 20.0), sp.gammaincinv(a, uniform(rng, dtype, (9,), 0.05, 0.95))), {})]


def slope_at_a_probability(alpha, x):
    """By central differences of the inverse of the distribution function."""
    u, h = sp.gammainc(alpha, x), alpha * 1e-3
    far, step = (
        sp.gammaincinv(alpha + 2 * h, u) - sp.gammaincinv(alpha - 2 * h, u),
        8 * (sp.gammaincinv(alpha + h, u) - sp.gammaincinv(alpha - h, u)),
    )
    return (step - far) / (12 * h)


def powers(rng, dtype):
    x = uniform(rng, dtype, (2, 3), 0.3, 2.0)
    fixed = [((x, y), {}) for y in (0, 1, 2, 3, -1, 0.5, 2.5)]
    return [*fixed, ((2, x), {}), ((x, uniform(rng, dtype, (3,))), {})]


def whole_powers(rng, dtype):
    x, y = np.repeat(np.arange(-3, 4), 7).astype(dtype), np.tile(np.arange(-3, 4), 7).astype(dtype)
    return [((x, y), {}), ((2, y), {}), ((-1, y), {})]


def whole_power(x, y):
    """Negative powers are rounded towards zero, and are 0 for 0."""
    numbers = np.broadcast_arrays(x, y)
    powers = [math.trunc(float(a) ** b) if a or b >= 0 else 0 for a, b in zip(*map(np.ravel, numbers), strict=True)]
    return np.array(powers, y.dtype)


def blends(rng, dtype):
    x, y, w = (uniform(rng, dtype, s) for s in ((3, 4), (4,), (3, 1)))
    return [((x, y, w), {}), ((x, y, 0.3), {}), ((x, y, 0.7), {})]


ARITHMETIC = [
    Row(ew.add, np.add, errors=[MISMATCH, TEXT, ((2, 3), {}, TypeError, "expected at least one Tensor")]),
    Row(ew.sub, np.subtract, errors=[MISMATCH, TEXT, ((np.ones(2, bool),) * 2, {}, RuntimeError, "not supported")]),
    Row(ew.mul, np.multiply, errors=[MISMATCH, TEXT]),
    Row(ew.div, np.divide, domain=[(-2.0, 2.0), POSITIVE], errors=[MISMATCH]),
    Row(ew.neg, np.negative, errors=[ARRAY_FREE]),
    Row(ew.reciprocal, np.reciprocal, domain=POSITIVE),
    Row(ew.pow, np.power, samples=powers, errors=[((np.array([2]), -1), {}, RuntimeError, "negative integer powers")]),
    Row(ew.pow, whole_power, samples=whole_powers, order=0, dtypes=WHOLE, name="pow of integers"),
    Row(
        ew.bent_square,
        lambda x, end: np.where(abs(x) < end, x * x / 2, end * (abs(x) - end / 2)),
        order=2,
        params=[{"end": 0.7}],
        integers=False,
    ),
    Row(ew.square, np.square),
    Row(ew.lerp, lambda x, y, w: x + w * (y - x), samples=blends, integers=False),
    Row(ew.sqrt, np.sqrt, domain=POSITIVE),
    Row(ew.rsqrt, lambda x: 1 / np.sqrt(x), domain=POSITIVE),
    Row(ew.hypot, np.hypot, domain=POSITIVE),
    Row(ew.abs, np.abs, order=2),
    Row(ew.sign, np.sign, order=2),
    Row(ew.copysign, np.copysign, order=2),
    Row(ew.nextafter, np.nextafter, order=0, dtypes=["float64"]),
    Row(ew.heaviside, np.heaviside, order=0),
]

EXPONENTIAL = [
    Row(exponential.exp, np.exp, errors=[ARRAY_FREE]),
    Row(exponential.exp2, np.exp2),
    Row(exponential.expm1, np.expm1),
    Row(exponential.log, np.log, domain=POSITIVE),
    Row(exponential.log2, np.log2, domain=POSITIVE),
    Row(exponential.log10, np.log10, domain=POSITIVE),
    Row(exponential.log1p, np.log1p, domain=POSITIVE),
    Row(exponential.sigmoid, sp.expit, domain=(-8.0, 8.0)),
    Row(exponential.logit, lambda x, eps=None: sp.logit(np.clip(x, eps or 0, 1 - (eps or 0))), domain=(0.1, 0.9),
        params=[{}, {"eps": 0.2}], integers=False),
    Row(exponential.binary_entropy, lambda x, y: -(sp.xlogy(y, x) + sp.xlog1py(1 - y, -x)), domain=(0.1, 0.9),
        integers=False),
    Row(exponential.logaddexp, np.logaddexp, domain=(-4.0, 4.0)),
    Row(exponential.xlogy, sp.xlogy, samples=zeros_and_ones, order=0, name="xlogy at zero"),
    Row(exponential.xlogy, sp.xlogy, domain=POSITIVE),
    Row(special.erf, sp.erf, domain=(-3.0, 3.0), rtol=1e-14),
    Row(special.entr, sp.entr, domain=POSITIVE),
    Row(special.xlog1py, sp.xlog1py, domain=POSITIVE),
    Row(special.erfc, sp.erfc, domain=(-3.0, 3.0), rtol=1e-14),
    Row(special.erfc, sp.erfc, samples=lambda rng, dtype: [((np.array([0.5, 4, 7.9, 8, 20, 26, -8], dtype),), {})],
        dtypes=["float64"], order=0, name="erfc far out"),
    Row(inverse_erf.inverse_erf, sp.erfinv, domain=(-0.99, 0.99), rtol=1e-12),
    Row(gamma.log_gamma, sp.gammaln, domain=(0.2, 30.0), rtol=1e-13),
    Row(gamma.log_gamma, lambda x: np.where((x < 0) & (x != np.floor(x)), np.nan, sp.gammaln(x)), dtypes=["float64"],
        order=0, samples=lambda rng, dtype: [
            ((np.array([1e-300, 0.0, -0.5, -1.0, -9.0, 1.0, 2.0, np.inf, np.nan, 1e100], dtype),), {})],
        name="log_gamma far out"),
    Row(gamma.psi, lambda x, order=0: sp.psi(x) if order == 0 else sp.polygamma(order, x), domain=(0.2, 30.0),
        params=[{}, {"order": 1}, {"order": 3}], rtol=1e-12),
    Row(gamma.standard_gamma_grad, slope_at_a_probability, samples=near, order=0, dtypes=["float64"], rtol=1e-7),
    Row(special.sinc, np.sinc, domain=(-4.0, 4.0)),
    Row(special.sinc, np.sinc, samples=lambda rng, dtype: [((np.array([0.0, 1e-9], dtype),), {})], name="sinc at zero"),
]  # fmt: skip

TRIGONOMETRIC = [
    Row(trigonometric.sin, np.sin),
    Row(trigonometric.cos, np.cos),
    Row(trigonometric.tan, np.tan, domain=(-1.2, 1.2)),
    Row(trigonometric.asin, np.arcsin, domain=INSIDE),
    Row(trigonometric.acos, np.arccos, domain=INSIDE),
    Row(trigonometric.atan, np.arctan),
    Row(trigonometric.atan2, np.arctan2, domain=[(0.5, 2.0), (-2.0, -0.5)]),
    Row(trigonometric.sinh, np.sinh),
    Row(trigonometric.cosh, np.cosh),
    Row(trigonometric.tanh, np.tanh),
    Row(trigonometric.tanh_slope, lambda x, y: x * (1 - y**2)),
    Row(trigonometric.asinh, np.arcsinh),
    Row(trigonometric.acosh, np.arccosh, domain=(1.5, 3.0), integers=False),
    Row(trigonometric.atanh, np.arctanh, domain=INSIDE, integers=False),
]

DIVISOR = [(-5.0, 5.0), (0.7, 2.0)]
BY_ZERO = (np.array([2]), 0), {}, RuntimeError, "ZeroDivisionError"

ROUNDING = [
    Row(rounding.floor, np.floor, order=2),
    Row(rounding.ceil, np.ceil, order=2),
    Row(rounding.trunc, np.trunc, order=2),
    Row(rounding.frac, lambda x: x - np.trunc(x), order=2),
    Row(rounding.round, lambda x, decimals=0: np.round(x, decimals), params=[{}, {"decimals": 1}], order=1),
    Row(rounding.floor_divide, np.floor_divide, domain=DIVISOR, order=0, errors=[BY_ZERO]),
    Row(rounding.div_floor, np.floor_divide, domain=DIVISOR, order=2),
    Row(rounding.div_trunc, lambda x, y: np.trunc(x / y), domain=DIVISOR, order=2),
    Row(rounding.remainder, np.remainder, domain=DIVISOR, order=2, errors=[BY_ZERO]),
    Row(rounding.fmod, np.fmod, domain=DIVISOR, order=2),
]


def conditional(rng, dtype):
    x, y = uniform(rng, dtype, (3, 4)), uniform(rng, dtype, (4,))
    return [((x > 0, x, y), {}), ((x > 0, x, 0), {}), ((np.array(True), 1.5, y), {})]


def bounds(rng, dtype):
    x, low, high = (uniform(rng, dtype, s) for s in ((3, 4), (4,), (3, 1)))
    return [((x, *b), {}) for b in ((low, high), (low, None), (None, high), (-0.5, 0.5), (0.5, low))]


def clamped(x, low=None, high=None):
    return np.clip(x, low, high)


def with_nan(rng, dtype):
    return [((np.array([np.nan, 1.0, -2.0, np.nan], dtype), np.array([1.0, np.nan, 2.0, np.nan], dtype)), {})]


def infinite(rng, dtype):
    x = np.array([np.nan, np.inf, -np.inf, 1.5, 0.0, -0.0], dtype)
    return [((x,), {}), ((uniform(rng, dtype, (0, 2)),), {})]


def replaced(x, nan, posinf, neginf):
    info = np.finfo(np.float64)
    return np.nan_to_num(x, nan=nan, posinf=posinf or info.max, neginf=neginf or info.min)


SELECT = [
    Row(select.where, np.where, samples=conditional, integers=False),
    Row(select.gate, lambda x, y, low, high=None, leak=0.0: np.where((y > low) & (y < (high or np.inf)), x, x * leak),
        order=2,
        params=[{"low": 0.0}, {"low": -1.0, "high": 1.0}, {"low": 0.0, "leak": 0.1}], integers=False),
    Row(select.maximum, np.maximum, order=2),
    Row(select.minimum, np.minimum, order=2),
    Row(select.fmax, np.fmax, order=2),
    Row(select.fmin, np.fmin, order=2),
    Row(select.maximum, np.maximum, samples=with_nan, order=0, name="maximum of nan"),
    Row(select.fmax, np.fmax, samples=with_nan, order=0, name="fmax of nan"),
    Row(select.clamp, clamped, samples=bounds, order=2),
    Row(select.nan_to_num, replaced, samples=lambda rng, dtype: [
        (args, {"nan": 1.0, "posinf": 9.0, "neginf": -9.0}) for args, _ in infinite(rng, dtype)], order=0),
]  # fmt: skip


def near(rng, dtype):
    x = uniform(rng, dtype, (20,))
    y = x * (1 + rng.choice([0, 1e-9, 1e-2], 20)).astype(dtype)
    y[:3], x[1:4] = np.nan, np.inf
    return [((x, y), {"rtol": 1e-5, "atol": 1e-8, "equal_nan": e}) for e in (False, True)]


def integral(rng, dtype):
    x, y = (rng.integers(0, 5, s).astype(dtype) for s in ((3, 4), (4,)))
    return [((x, y), {})]


def few(rng, dtype):
    """Values among which many are equal."""
    x, y = (rng.integers(-1, 2, s).astype(dtype) for s in ((3, 4), (4,)))
    return [((x, y), {}), ((x, 0), {})]


def signed(rng, dtype):
    x, y = (rng.integers(-12, 13, s).astype(dtype) for s in ((3, 4), (4,)))
    return [((x, y), {}), ((x, 6), {}), ((x[:0], y), {})]


BITS = ("bool", "int64", "uint8")
FLOAT_DIVISORS = (np.ones(2), np.ones(2)), {}, NotImplementedError, "expected integers, got floats or bools"
MIXED = ("float64", "float32", "float16", "int64", "bool")

COMPARE = [
    *(
        Row(op, reference, samples=few, order=0, dtypes=MIXED)
        for op, reference in [
            (compare.eq, np.equal), (compare.ne, np.not_equal), (compare.lt, np.less), (compare.le, np.less_equal),
            (compare.gt, np.greater), (compare.ge, np.greater_equal), (compare.logical_and, np.logical_and),
            (compare.logical_or, np.logical_or), (compare.logical_xor, np.logical_xor),
        ]
    ),
    Row(divisors.gcd, np.gcd, samples=signed, order=0, dtypes=WHOLE, errors=[FLOAT_DIVISORS]),
    Row(divisors.lcm, np.lcm, samples=signed, order=0, dtypes=WHOLE, errors=[FLOAT_DIVISORS]),
    Row(compare.logical_not, np.logical_not, order=0),
    Row(compare.isnan, np.isnan, samples=infinite, order=0),
    Row(compare.isinf, np.isinf, samples=infinite, order=0),
    Row(compare.isfinite, np.isfinite, samples=infinite, order=0),
    Row(refuse.refuse, lambda bad, error, message: bad, samples=nothing_bad, order=0, dtypes=["bool"], integers=False,
        errors=[((np.array([False, True]),), {"error": OSError, "message": "this"}, OSError, "^this$")]),
    Row(compare.signbit, np.signbit, samples=infinite, order=0),
    Row(compare.isclose, np.isclose, samples=near, order=0, integers=False),
    Row(compare.bitwise_and, np.bitwise_and, samples=integral, order=0, dtypes=BITS, errors=[FLOAT_BITS]),
    Row(compare.bitwise_or, np.bitwise_or, samples=integral, order=0, dtypes=BITS, errors=[FLOAT_BITS]),
    Row(compare.bitwise_xor, np.bitwise_xor, samples=integral, order=0, dtypes=BITS, errors=[FLOAT_BITS]),
    Row(compare.bitwise_not, np.invert, samples=lambda rng, dtype: [(integral(rng, dtype)[0][0][:1], {})], order=0,
        dtypes=BITS),
    Row(compare.bitwise_left_shift, np.left_shift, samples=integral, order=0, dtypes=BITS[1:], errors=[FLOAT_BITS]),
    Row(compare.bitwise_right_shift, np.right_shift, samples=integral, order=0, dtypes=BITS[1:], errors=[FLOAT_BITS]),
]  # fmt: skip


def new_full(rng, dtype):
    x = uniform(rng, dtype, (2,))
    return [((x,), {"shape": (2, 3), "value": 1.5}), ((x,), {"shape": (), "value": 3, "dtype": "int64"})]


CONVERT = [
    Row(convert.clone, np.copy, integers=False),
    Row(convert.contiguous, np.copy, integers=False),
    Row(convert.new_full, lambda x, shape, value, dtype=None: np.full(shape, value, dtype or x.dtype), samples=new_full,
        order=0),
    Row(convert.to_dtype, lambda x, dtype, source: x.astype(dtype), dtypes=["float64"],
        params=[{"dtype": "float64", "source": "float64"}], name="to_dtype float64"),
    Row(convert.to_dtype, lambda x, dtype, source: x.astype(dtype), dtypes=["float64"], order=0,
        params=[{"dtype": d, "source": "float64"} for d in ("float32", "float16", "int64", "bool")]),
]  # fmt: skip

ELSEWHERE = {convert.to_device: "test_ops.py", convert.nearest_bfloat16: "compile/passes/test_widen.py"}
ROWS = [*ARITHMETIC, *EXPONENTIAL, *TRIGONOMETRIC, *ROUNDING, *SELECT, *COMPARE, *CONVERT]

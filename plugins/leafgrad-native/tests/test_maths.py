"""The functions of maths.h: values against NumPy's in higher precision, and everything that is no ordinary number."""

from __future__ import annotations

import ctypes
import math
import platform
import re
import subprocess
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import leafgrad_native
from leafgrad.ops.define import C_FUNCTIONS
from leafgrad_native.cache import library
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

RUNTIME = Path(leafgrad_native.__file__).parent / "runtime"
ULPS = {"f32": 4.0, "f64": 2.0}
DTYPES = {"f32": np.float32, "f64": np.float64}
WIDER = {"f32": np.float64, "f64": np.longdouble}
EXACT = np.finfo(np.longdouble).nmant > 60  # or else float64 has no reference but itself

random = np.random.default_rng(0)


def sample(*intervals, small=False):
    """Uniform in each interval; and, if asked for, small numbers of every size."""
    parts = [random.uniform(low, high, 5000) for low, high in intervals]
    parts += [10 ** random.uniform(-37, 0, 5000) * random.choice([-1, 1], 5000)] if small else []
    return np.concatenate(parts)


@np.vectorize(otypes=[np.float64])
def erf(x):
    return math.erf(x)


@np.vectorize(otypes=[np.float64])
def erfc(x):
    return math.erfc(x)


# NumPy's function, and where it is compared; relative errors of some tend to infinity at a root, hence atol of 1.
FUNCTIONS = {
    "exp": (np.exp, sample((-1, 1), (-87, 88), (-740, 709), small=True)),
    "exp2": (np.exp2, sample((-1, 1), (-126, 127), (-1070, 1023), small=True)),
    "expm1": (np.expm1, sample((-1, 1), (-50, 88), (88, 709), small=True)),
    "log": (np.log, np.abs(sample((0.5, 2), (0.9, 1.1), (0, 1e6), small=True))),
    "log2": (np.log2, np.abs(sample((0.5, 2), (0.9, 1.1), (0, 1e6), small=True))),
    "log10": (np.log10, np.abs(sample((0.5, 2), (0.9, 1.1), (0, 1e6), small=True))),
    "log1p": (np.log1p, sample((-1, 1), (-0.1, 0.1), (0, 1e6), small=True)),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), sample((-1, 1), (-80, 80), small=True)),
    "softplus": (lambda x: np.logaddexp(x, 0), sample((-1, 1), (-80, 80), small=True)),
    "sinh": (np.sinh, sample((-1, 1), (-88, 88), (-709, 709), small=True)),
    "cosh": (np.cosh, sample((-1, 1), (-88, 88), (-709, 709), small=True)),
    "tanh": (np.tanh, sample((-1, 1), (-10, 10), (-20, 20), small=True)),
    "erf": (erf, sample((-1, 1), (-4, 4), (-6, 6), small=True)),
    "erfc": (erfc, sample((-1, 1), (-4, 6), (-6, 9), small=True)),
    "asinh": (np.arcsinh, sample((-1, 1), (-1e6, 1e6), small=True)),
    "acosh": (np.arccosh, sample((1, 1.1), (1, 5), (1, 1e6))),
    "atanh": (np.arctanh, sample((-1, 1), (-0.1, 0.1), small=True)),
    "sin": (np.sin, sample((-4, 4), (-100, 100), (-1e5, 1e5), small=True)),
    "cos": (np.cos, sample((-4, 4), (-100, 100), (-1e5, 1e5), small=True)),
    "tan": (np.tan, sample((-4, 4), (-100, 100), (-1e5, 1e5), small=True)),
    "asin": (np.arcsin, sample((-1, 1), (-0.1, 0.1), small=True)),
    "acos": (np.arccos, sample((-1, 1), (0.99, 1), small=True)),
    "atan": (np.arctan, sample((-1, 1), (-10, 10), (-1e6, 1e6), small=True)),
    "sqrt": (np.sqrt, sample((0, 1), (0, 1e6))),
    "floor": (np.floor, sample((-5, 5))),
    "ceil": (np.ceil, sample((-5, 5))),
    "trunc": (np.trunc, sample((-5, 5))),
    "round": (np.round, np.concatenate([sample((-5, 5)), np.arange(-10, 10) / 2])),
    "sign": (np.sign, sample((-5, 5))),
    "abs": (np.abs, sample((-5, 5))),
}
PAIRS = {
    "pow": (np.power, sample((0, 3), (0, 1e6), (0.9, 1.1)), sample((-8, 8), (-5, 5), (-100, 100))),
    "atan2": (np.arctan2, sample((-5, 5), (-1e6, 1e6)), sample((-5, 5), (-1, 1))),
    "copysign": (np.copysign, sample((-5, 5)), sample((-5, 5), small=True)),
    "hypot": (np.hypot, sample((-5, 5), (-1e6, 1e6)), sample((-5, 5), (-1, 1))),
    "logaddexp": (np.logaddexp, sample((0, 5), (0, 100)), sample((0, 5), (-100, 100))),
    "maximum": (np.maximum, sample((-5, 5)), sample((-5, 5))),
    "minimum": (np.minimum, sample((-5, 5)), sample((-5, 5))),
    "fmod": (np.fmod, sample((-50, 50), (-1e6, 1e6)), sample((-5, 5), (-1, 1))),
    "remainder": (np.remainder, sample((-50, 50), (-1e6, 1e6)), sample((-5, 5), (-1, 1))),
    "floor_divide": (np.floor_divide, sample((-50, 50), (-1e6, 1e6)), sample((-5, 5), (-1, 1))),
}
SAME = {"fmod", "remainder", "floor_divide", "maximum", "minimum"}  # the same steps as NumPy's, in the same precision
EDGES = [0.0, 1.0, 0.5, 2.0, 3.0, 7.5, np.inf, np.nan, 1e-310, 1e-40, 100.0, 90.0, 710.0, 745.1, 800.0, 1e30, 1e300]
EDGES = np.array([*EDGES, *(-x for x in EDGES)])


@cache
def source():
    """Each function as a loop over arrays."""
    text = '#include "maths.h"\n'
    for t, c in (("f32", "float"), ("f64", "double")):
        head, loop = f"{c} *restrict out, long n", "for (long i = 0; i < n; i++) out[i] ="
        for name in FUNCTIONS:
            text += f"void {name}_{t}(const {c} *x, {head}) {{ {loop} lg_{name}_{t}(x[i]); }}\n"
        for name in PAIRS:
            text += f"void {name}_{t}(const {c} *x, const {c} *y, {head}) {{ {loop} lg_{name}_{t}(x[i], y[i]); }}\n"
        text += f"int far_{t}(const {c} *x, long n) {{ int far = 0; "
        text += f"for (long i = 0; i < n; i++) far |= lg_is_far_{t}(x[i]); return far; }}\n"
    return inlined(text)


def inlined(text):
    return re.sub(r'#include "(.*)"', lambda match: inlined((RUNTIME / match[1]).read_text(encoding="utf-8")), text)


def call(name, *arrays, lib=None):
    """The function of C on arrays of one dtype."""
    arrays = [np.ascontiguousarray(a) for a in arrays]
    out = np.empty_like(arrays[0])
    t = {4: "f32", 8: "f64"}[out.itemsize]
    function = getattr(lib or library(source(), "maths"), f"{name}_{t}")
    function(*(ctypes.c_void_p(a.ctypes.data) for a in (*arrays, out)), ctypes.c_long(out.size))
    return out


def ulps(ours, exact):
    """Errors in units in the last place of the exact value, where that is an ordinary number."""
    with np.errstate(all="ignore"):
        size = np.spacing(np.abs(exact.astype(ours.dtype)))
        error = np.abs(ours.astype(exact.dtype) - exact) / size.astype(exact.dtype)
        return np.where(np.isfinite(exact.astype(ours.dtype)), error, 0)


def check(ours, exact, bound, *arguments):
    with np.errstate(all="ignore"):
        error = ulps(ours, exact)
        worst = np.nanargmax(error)
        assert error[worst] <= bound, (error[worst], *(a[worst] for a in arguments), ours[worst], exact[worst])
        special = ~np.isfinite(exact.astype(ours.dtype))
        np.testing.assert_array_equal(ours[special], exact.astype(ours.dtype)[special])


def test_what_c_expressions_may_call_is_there():
    assert not C_FUNCTIONS - FUNCTIONS.keys() - PAIRS.keys()


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, t):
    function, x = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        x = x.astype(DTYPES[t])
        exact = np.asarray(function(x.astype(WIDER[t])))
    slack = 0 if t == "f32" or (EXACT and exact.dtype == np.longdouble) else 1  # of the reference itself
    check(call(name, x), exact, ULPS[t] + slack, x)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("name", PAIRS)
def test_values_of_pairs(name, t):
    function, x, y = PAIRS[name]
    n = min(x.size, y.size)
    x, y = x[:n].astype(DTYPES[t]), y[:n].astype(DTYPES[t])
    wide = DTYPES[t] if name in SAME else WIDER[t]
    with np.errstate(all="ignore"):
        exact = function(x.astype(wide), y.astype(wide))
    check(call(name, x, y), exact, 0 if name in SAME else ULPS[t] + (0 if EXACT else 1), x, y)


def same(ours, expected):
    """Equal to the bit, sign of zero included, or 4 ulp apart, or both nan."""
    with np.errstate(all="ignore"):
        near = np.abs(ours - expected) <= 4 * np.spacing(np.abs(expected))
        bits = (ours == expected) & (np.signbit(ours) == np.signbit(expected))
        return bits | (near & (expected != 0) & np.isfinite(expected)) | (np.isnan(ours) & np.isnan(expected))


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name, t):
    with np.errstate(all="ignore"):
        x = EDGES.astype(DTYPES[t])
        if name in ("sin", "cos", "tan"):
            x = x[~(np.abs(x) > 1e5) | np.isinf(x)]
        expected = np.asarray(FUNCTIONS[name][0](x)).astype(x.dtype)
        ours = call(name, x)
    fine = same(ours, expected)
    assert fine.all(), (x[~fine], ours[~fine], expected[~fine])


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("name", PAIRS)
def test_edges_of_pairs(name, t):
    with np.errstate(all="ignore"):
        x, y = (np.array(a).astype(DTYPES[t]) for a in zip(*product(EDGES, EDGES), strict=True))
        expected = PAIRS[name][0](x, y)
        ours = call(name, x, y)
        if name in ("maximum", "minimum"):  # which of two zeros NumPy gives depends on the processor
            ours, expected = ours + 0, expected + 0
    fine = same(ours, expected)
    assert fine.all(), (x[~fine], y[~fine], ours[~fine], expected[~fine])


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_far_angles_are_told(t):
    x = np.array([1e5, -1e5, np.inf, np.nan, -0.0], DTYPES[t])

    def far(x):
        function = getattr(library(source(), "maths"), f"far_{t}")
        return bool(function(ctypes.c_void_p(x.ctypes.data), ctypes.c_long(x.size)))

    assert not far(x)
    assert far(np.append(x, x.dtype.type(-1e30)))


def test_powers_that_are_whole_are_exact():
    x, y = (a.ravel().astype(np.float64) for a in np.meshgrid(np.arange(-9, 10), np.arange(0, 17)))
    np.testing.assert_array_equal(call("pow", x, y), x**y)
    np.testing.assert_array_equal(call("exp2", np.arange(-1074, 1024.0)), np.exp2(np.arange(-1074, 1024.0)))
    np.testing.assert_array_equal(call("log2", np.exp2(np.arange(-1074, 1024.0))), np.arange(-1074, 1024.0))


@pytest.mark.slow
@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize(
    "name", [name for name in FUNCTIONS if name not in ("softplus", "erfc", "round", "trunc", "abs", "sign")]
)
def test_values_against_mpmath(name, t):
    mpmath = pytest.importorskip("mpmath")
    named = {"log2": lambda x: mpmath.log(x, 2), "exp2": lambda x: mpmath.mpf(2) ** x, "floor": mpmath.floor}
    named["sigmoid"] = lambda x: 1 / (1 + mpmath.exp(-x))
    function = named.get(name) or getattr(mpmath, name)
    x = FUNCTIONS[name][1].astype(DTYPES[t])
    x = x[np.isfinite(x)][::10]
    ours = call(name, x)
    with mpmath.workdps(50), np.errstate(all="ignore"):
        for a, b in zip(x, ours, strict=True):
            exact = function(mpmath.mpf(float(a)))
            size = float(np.spacing(DTYPES[t](abs(float(exact)))))
            if np.isfinite(size) and not isinstance(exact, mpmath.mpc):
                assert abs(float((mpmath.mpf(float(b)) - exact) / size)) <= ULPS[t], (a, b, exact)


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="for processors that may lack fma")
def test_values_without_fma(tmp_path):
    """Old processors: products are rounded, and pi / 2 is cut into shorter parts."""
    flags = [flag for flag in compiler().flags if not flag.startswith(("-march", "-mcpu"))]
    made = tmp_path / "plain"
    (tmp_path / "maths.c").write_text(source())
    replace(compiler(), flags=(*flags, "-march=x86-64")).compile(tmp_path / "maths.c", made)
    plain = ctypes.CDLL(str(made))
    for (name, (function, x)), (t, bound) in product(FUNCTIONS.items(), ULPS.items()):
        with np.errstate(all="ignore"):
            x = x.astype(DTYPES[t])
            exact = np.asarray(function(x.astype(WIDER[t])))
        check(call(name, x, lib=plain), exact, 2 * bound, x)


@pytest.mark.slow
@pytest.mark.skipif("gcc" not in compiler().kind, reason="reads what gcc reports")
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="for vectors of AVX2 and AVX-512")
@pytest.mark.parametrize("machine", ["x86-64-v3", "x86-64-v4"])
def test_every_loop_becomes_vector_code(tmp_path, machine):
    flags = [flag for flag in compiler().flags if not flag.startswith(("-march", "-mcpu"))]
    (tmp_path / "maths.c").write_text(source())
    arguments = [*compiler().command, *flags, f"-march={machine}", "-fopt-info-vec", "-o", str(tmp_path / "made")]
    done = subprocess.run([*arguments, str(tmp_path / "maths.c")], capture_output=True, text=True, check=True)
    lines = {int(line) for line in re.findall(r":(\d+):\d+: optimized: loop vectorized", done.stderr)}
    names = {
        text.split("(")[0].split()[-1]
        for number, text in enumerate(source().splitlines(), 1)
        if number not in lines and text.startswith(("void ", "int "))
    }
    called = {f"{name}_{t}" for name in ("erfc", "fmod", "remainder", "floor_divide") for t in ULPS}
    assert names - called == set()

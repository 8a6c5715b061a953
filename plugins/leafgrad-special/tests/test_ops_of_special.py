"""Each op by the conformance kit, with SciPy as the reference, and on a GPU's library: one table."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special as sp

import leafgrad
import leafgrad_special as special
from leafgrad.testing import CHECKS, check_op, fake
from leafgrad_special import cupy_kernels

OPS = {op.name: op for op in special.leafgrad_ops()}

WIDE = np.linspace(-3.0, 3.0, 7)
INSIDE = np.linspace(-0.9, 0.9, 7)
UNIT = np.linspace(0.05, 0.95, 7)
UP_TO_TWO = np.linspace(0.1, 1.9, 7)
POSITIVE = np.linspace(0.3, 6.0, 7)
BELOW = np.array([-2.7, -1.5, -0.3])
ZERO_INSIDE = np.array([-2.0, -0.1, 0.0, 0.1, 2.0])
NOT_ZERO = np.array([-5.0, -2.0, -0.3, 0.4, 1.0, 3.0])
ORDERS = [{"n": n} for n in (0, 1, 2, 5)]
REAL_ORDERS = [{"v": v} for v in (0, 1, 2, 2.5)]
FAMILIES = [{"n": n, "alpha": alpha} for n in (0, 1, 2, 5) for alpha in (0.5, 1.0, 2.5)]


def at(*points):
    """Samples of an op without parameters, of one argument, the last without dimensions."""
    return [((x,), {}) for x in (*points, points[0][1])]


def each(x, all_params):
    """Samples of an op of one argument, for each of several parameters, the last without dimensions."""
    return [((x,), params) for params in all_params] + [((x[1],), all_params[-1])]


def pairs(x, y):
    """Samples of two arguments: of one shape, that broadcast, without dimensions, and with a number on either side."""
    return [((x, y), {}), ((x[:, None], y[:3]), {}), ((x[1], y[1]), {}), ((x, float(y[1])), {}), ((float(x[2]), y), {})]


def one_of_two(function):
    return lambda x, *, cosine: function(x)[cosine]


def real_w(x, *, k):
    w = sp.lambertw(x, k)
    return np.where(w.imag == 0, w.real, math.nan)


# Name of the op, samples, SciPy's function.
ROWS = [
    ("airy", each(WIDE, [{"kind": k} for k in range(4)]), lambda x, *, kind: sp.airy(x)[kind]),
    ("beta", pairs(POSITIVE, UP_TO_TWO), sp.beta),
    ("betainc", [((1 + UNIT, POSITIVE, UNIT), {}), ((2.0, 0.5, UNIT), {})], sp.betainc),
    ("betaincinv", [((1 + UNIT, POSITIVE, UNIT), {}), ((2.0, 0.5, UNIT), {})], sp.betaincinv),
    ("betaln", pairs(POSITIVE, UP_TO_TWO), sp.betaln),
    ("boxcox", pairs(POSITIVE, np.array([-1.0, -0.1, 0.0, 0.1, 1.0, 2.0, 3.0])), sp.boxcox),
    ("boxcox1p", pairs(INSIDE, np.array([-1.0, -0.1, 0.0, 0.1, 1.0, 2.0, 3.0])), sp.boxcox1p),
    ("chebyt", each(WIDE, ORDERS), lambda x, *, n: sp.eval_chebyt(n, x)),
    ("dawsn", at(WIDE), sp.dawsn),
    ("digamma", at(POSITIVE, BELOW), sp.digamma),
    ("ellipe", at(INSIDE, ZERO_INSIDE[:4], -POSITIVE), sp.ellipe),
    ("ellipk", at(INSIDE, ZERO_INSIDE[:4], -POSITIVE), sp.ellipk),
    ("entr", at(UNIT), sp.entr),
    ("erfc", at(WIDE), sp.erfc),
    ("erfcinv", at(UP_TO_TWO), sp.erfcinv),
    ("erfcx", at(WIDE), sp.erfcx),
    ("erfi", at(WIDE), sp.erfi),
    ("erfinv", at(INSIDE), sp.erfinv),
    ("exp1", at(POSITIVE), sp.exp1),
    ("expi", at(NOT_ZERO), sp.expi),
    ("expn", each(POSITIVE, ORDERS), lambda x, *, n: sp.expn(n, x)),
    ("exprel", at(ZERO_INSIDE, 3 * WIDE), lambda x: sp.exprel(x)),
    ("fresnel", each(WIDE, [{"cosine": c} for c in (False, True)]), one_of_two(sp.fresnel)),
    ("gamma", at(POSITIVE, BELOW), sp.gamma),
    ("gammainc", pairs(POSITIVE, 2 * UNIT), sp.gammainc),
    ("gammaincc", pairs(POSITIVE, 2 * UNIT), sp.gammaincc),
    ("gammainccinv", pairs(POSITIVE, UNIT), sp.gammainccinv),
    ("gammaincinv", pairs(POSITIVE, UNIT), sp.gammaincinv),
    ("gammaln", at(POSITIVE, BELOW), sp.gammaln),
    ("gammasgn", at(POSITIVE, BELOW), sp.gammasgn),
    ("gegenbauer", each(WIDE, FAMILIES), lambda x, *, n, alpha: sp.eval_gegenbauer(n, alpha, x)),
    ("genlaguerre", each(WIDE, FAMILIES), lambda x, *, n, alpha: sp.eval_genlaguerre(n, alpha, x)),
    ("hermite", each(WIDE, ORDERS), lambda x, *, n: sp.eval_hermite(n, x)),
    ("hermitenorm", each(WIDE, ORDERS), lambda x, *, n: sp.eval_hermitenorm(n, x)),
    ("huber", pairs(POSITIVE, 1.07 * NOT_ZERO[[0, 1, 2, 3, 4, 5, 0]]), sp.huber),
    ("hyp2f1", each(INSIDE, [{"a": 0.5, "b": -1.5, "c": 2.0}]), lambda x, *, a, b, c: sp.hyp2f1(a, b, c, x)),
    ("iv", each(ZERO_INSIDE, ORDERS), lambda x, *, n: sp.iv(n, x)),
    ("ive", each(np.concatenate([POSITIVE, -POSITIVE]), ORDERS), lambda x, *, n: sp.ive(n, x)),
    ("jv", each(ZERO_INSIDE, ORDERS), lambda x, *, n: sp.jv(n, x)),
    ("kl_div", pairs(POSITIVE, UP_TO_TWO), sp.kl_div),
    ("kv", each(POSITIVE, REAL_ORDERS), lambda x, *, v: sp.kv(v, x)),
    ("kve", each(POSITIVE, REAL_ORDERS), lambda x, *, v: sp.kve(v, x)),
    ("lambertw", [((WIDE[3:],), {"k": 0}), ((-UNIT[:3] / 3,), {"k": 0}), ((-UNIT[:3] / 3,), {"k": -1})], real_w),
    ("log_ndtr", at(WIDE), sp.log_ndtr),
    ("mills", at(WIDE), lambda x: np.exp(-x * x / 2) / math.sqrt(2 * math.pi) / sp.ndtr(x)),
    ("ndtr", at(WIDE), sp.ndtr),
    ("ndtri", at(UNIT), sp.ndtri),
    ("poch", pairs(POSITIVE, UP_TO_TWO), sp.poch),
    ("polygamma", each(POSITIVE, [{"n": n} for n in (1, 2, 3)]), lambda x, *, n: sp.polygamma(n, x)),
    ("pseudo_huber", pairs(POSITIVE, 1.07 * NOT_ZERO[[0, 1, 2, 3, 4, 5, 0]]), sp.pseudo_huber),
    ("rel_entr", pairs(POSITIVE, UP_TO_TWO), sp.rel_entr),
    ("shichi", each(NOT_ZERO, [{"cosine": True}]) + each(ZERO_INSIDE, [{"cosine": False}]), one_of_two(sp.shichi)),
    ("sici", each(NOT_ZERO, [{"cosine": True}]) + each(ZERO_INSIDE, [{"cosine": False}]), one_of_two(sp.sici)),
    ("spence", at(POSITIVE, 1 + ZERO_INSIDE[1:]), sp.spence),
    ("spherical_in", each(ZERO_INSIDE, ORDERS), lambda x, *, n: sp.spherical_in(n, x)),
    ("spherical_jn", each(ZERO_INSIDE, ORDERS), lambda x, *, n: sp.spherical_jn(n, x)),
    ("spherical_kn", each(POSITIVE, ORDERS), lambda x, *, n: sp.spherical_kn(n, x)),
    ("spherical_yn", each(NOT_ZERO, ORDERS), lambda x, *, n: sp.spherical_yn(n, x)),
    ("struve", each(ZERO_INSIDE, ORDERS), lambda x, *, n: sp.struve(n, x)),
    ("xlog1py", pairs(WIDE, INSIDE), sp.xlog1py),
    ("yn", each(POSITIVE, ORDERS), lambda x, *, n: sp.yn(n, x)),
    ("zeta", pairs(1 + POSITIVE, POSITIVE), sp.zeta),
]
rows = pytest.mark.parametrize(("name", "samples", "reference"), ROWS, ids=[name for name, _, _ in ROWS])


def test_every_op_is_in_the_table():
    assert {name for name, _, _ in ROWS} == OPS.keys()


@rows
def test_ops(name, samples, reference):
    fake.on_host(*OPS.values())  # rules call each other's
    checks = [check for check in CHECKS if check not in ("chunks", "compile")]
    check_op(OPS[name], samples, reference, executors=[], checks=checks)


@pytest.mark.every(3)
@rows
def test_ops_compiled(name, samples, reference):
    check_op(OPS[name], samples, reference, executors=["numpy"], checks="compile")


@pytest.mark.parametrize(("name", "check"), [("pseudo_huber", "edges"), ("zeta", "gradients")])
def test_samples_that_the_kit_draws(name, check):
    """As of ``leafgrad check special``, where there are numbers at the ends of the dtype, and some of no value."""
    check_op(OPS[name], executors=["numpy", "cuda-emulated"], checks=check)


@pytest.mark.slow
@rows
def test_ops_in_chunks(name, samples, reference):
    check_op(OPS[name], samples, reference, executors=["numpy"], checks="chunks")


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.c])
def test_c_expressions_give_what_the_forwards_give(name):
    pytest.importorskip("leafgrad_native")
    op = OPS[name]
    edges = [-math.inf, -2.0, -1.0, -1e-310, -0.0, 0.0, 1e-310, 0.3, 1.0, 5.0, 30.0, math.inf, math.nan]
    args = [leafgrad.tensor(a.ravel()) for a in np.meshgrid(*[edges] * len(op.signature.arguments))]
    compiled = leafgrad.compile(lambda *args: op(*args), executor="native")
    found = [compiled(*args) for _ in range(3)][-1]
    assert "C: 1 equations" in compiled.explain()
    np.testing.assert_allclose(found.numpy(), op(*args).numpy(), rtol=2e-15)


# ---- on a GPU -----------------------------------------------------------------------------------------------------

# What all of CuPy 14 has of SciPy's functions that are used here; what else there is, is in none or in some.
IN_CUPY = """
beta betainc betaincinv betaln boxcox boxcox1p digamma ellipk entr erfc erfcinv erfcx erfinv exp1 expi expn gamma
gammainc gammaincc gammainccinv gammaincinv gammaln gammasgn huber i0 i0e i1 i1e k0 k0e k1 k1e kl_div lambertw
log_ndtr ndtr ndtri poch pseudo_huber rel_entr sici spherical_yn xlog1py y0 y1 yn zeta
""".split()
NOT_IN_CUPY = set("airy dawsn ellipe erfi fresnel hyp2f1 shichi spence spherical_in spherical_jn spherical_kn".split())
NOT_IN_CUPY |= {"struve"}


@pytest.fixture
def cupyx(monkeypatch):
    """SciPy in the place of cupyx.scipy, with the functions that this has too; kernels then run on NumPy's arrays."""
    monkeypatch.setattr(
        cupy_kernels, "library", lambda: SimpleNamespace(**{name: getattr(sp, name) for name in IN_CUPY})
    )
    monkeypatch.setattr(cupy_kernels, "bessel_j", lambda: lambda n, x: sp.jv(n, x).astype(x.dtype))


@rows
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 2e-13), ("float32", 4e-6), ("float16", 4e-3)])
def test_cupys_kernels_do_what_the_forwards_do(name, samples, reference, dtype, tolerance, cupyx):
    op = OPS[name]
    kernel = op.kernels.get("cupy", op.forward)
    for args, params in samples:
        args = [np.asarray(a, dtype) if isinstance(a, np.ndarray | np.generic) else a for a in args]
        if name in NOT_IN_CUPY:
            with pytest.raises(NotImplementedError, match=rf"cupyx.scipy.special has no {name}; compute it on the CPU"):
                kernel(np, *args, **params)
        elif params.get("v") == 2.5:
            with pytest.raises(NotImplementedError, match=rf"{name} of order 2.5: CuPy has integer orders"):
                kernel(np, *args, **params)
        else:
            actual, expected = kernel(np, *args, **params), op.forward(np, *args, **params)
            assert actual.dtype == dtype
            np.testing.assert_allclose(actual, expected, rtol=tolerance)


@pytest.mark.parametrize("n", range(7))
def test_modified_bessel_functions_of_every_order_in_plain_array_functions(n):
    x = np.concatenate([np.linspace(-600, 600, 1201), np.linspace(-25, 25, 1000)])
    expected = sp.ive(n, x)
    actual = cupy_kernels.scaled_bessel_i(np, x, n)
    np.testing.assert_allclose(actual, expected, rtol=2e-14, atol=1e-300)
    assert cupy_kernels.scaled_bessel_i(np, x.astype("float32"), n).dtype == "float32"

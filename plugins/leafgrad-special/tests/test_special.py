"""What the functions refuse, what they do at the edges of their domains, and the package as a plugin."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import special as sp

import leafgrad
import leafgrad_special as special
from leafgrad import plugins
from leafgrad.autograd import grad
from leafgrad.errors import MissingGradientError
from leafgrad.testing import fake


def test_gradients_of_xlog1py_where_the_factor_is_zero():
    x = leafgrad.tensor([0.0, 0.0], requires_grad=True)
    (g,) = grad(special.xlog1py(x, leafgrad.tensor([-1.0, 3.0])).sum(), x)
    assert g.tolist() == pytest.approx([0.0, math.log(4)])


def test_entropy_of_zero():
    assert special.entr(leafgrad.tensor([0.0, -1.0])).tolist() == [0, -math.inf]


def test_the_tail_of_the_normal_distribution_keeps_its_gradient():
    x = leafgrad.tensor([-200.0, -40.0, 40.0, 200.0], requires_grad=True)
    (g,) = grad(special.log_ndtr(x).sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    assert g.tolist() == pytest.approx([200.005, 40.025, 0, 0], rel=1e-6)
    assert h.tolist() == pytest.approx([-1, -1, 0, 0], abs=0.01)


def test_integers_become_the_default_dtype():
    assert special.gammaln(leafgrad.tensor([1, 2, 5])).dtype is leafgrad.float32


@pytest.mark.parametrize(
    "function",
    [getattr(special, name) for name in "eval_chebyt expn iv ive jv polygamma spherical_kn struve yn".split()],
)
def test_orders_are_integers_and_not_negative(function):
    with pytest.raises(RuntimeError, match="expected an order >= 0, got -1"):
        function(-1, leafgrad.tensor([1.0]))
    with pytest.raises(TypeError, match=r"n: expected an int, got 0\.5"):
        function(0.5, leafgrad.tensor([1.0]))


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match=r"jv.*expected at least one Tensor"):
        special.jv(0, "r")


# ---- as a plugin --------------------------------------------------------------------------------------------------


def test_the_entry_point_is_found():
    plugins.load()
    (found,) = [p for p in plugins.status() if p.name == "special"]
    assert (found.distribution, found.status) == ("leafgrad-special", "active")
    assert [*found.hooks] == ["leafgrad_ops"]
    assert plugins.op("erfcx") is special.erfcx


def test_importing_leafgrad_does_not_load_it():
    code = "import sys, leafgrad; sys.exit('scipy' in sys.modules or 'leafgrad_special' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- in programs --------------------------------------------------------------------------------------------------


def bessel_residual(r):
    """J_0 solves r u'' + u' + r u = 0; so does nothing that this computes wrongly."""
    u = special.j0(r)
    (u_r,) = grad(u.sum(), r, create_graph=True)
    (u_rr,) = grad(u_r.sum(), r, create_graph=True)
    return (r * u_rr + u_r + r * u).detach()


def test_a_trace_records_the_ops():
    program = leafgrad.trace(bessel_residual, leafgrad.rand(4, requires_grad=True))
    assert {"jv"} < {equation.name for equation in program.equations}
    assert "n=1" in str(program)


def test_compiled_and_eager_agree(device):
    fake.on_host(*special.leafgrad_ops())
    r = leafgrad.linspace(0, 20, 1000, dtype=leafgrad.float64, device=device).reshape(-1, 1).requires_grad_()
    compiled = leafgrad.compile(bessel_residual)
    expected = bessel_residual(r).cpu().numpy()
    for _ in range(3):
        np.testing.assert_allclose(compiled(r).cpu().numpy(), expected, atol=1e-13)
    assert np.abs(expected).max() < 1e-13
    assert "program 1, run 3 times" in compiled.explain()


# ---- functions ----------------------------------------------------------------------------------------------------

X = np.array([0.2, 0.5, 0.9])
ORDERED = """expn eval_chebyt eval_chebyu eval_hermite eval_hermitenorm eval_laguerre eval_legendre iv ive jv kv kve
polygamma spherical_in spherical_jn spherical_kn spherical_yn struve yn""".split()
PARAMETERS = {
    **{name: (n,) for name in ORDERED for n in (3,)},
    "eval_gegenbauer": (3, 1.5),
    "eval_genlaguerre": (3, 1.5),
    "hyp2f1": (0.5, 1.5, 2.0),
    **dict.fromkeys("beta betaln boxcox boxcox1p gammainc gammaincc gammainccinv gammaincinv".split(), (1.3,)),
    **dict.fromkeys("huber kl_div poch pseudo_huber rel_entr xlog1py zeta".split(), (1.3,)),
    "betainc": (2.0, 0.5),
    "betaincinv": (2.0, 0.5),
}


@pytest.mark.parametrize("name", [name for name in special.__all__ if name not in ("mills", "multigammaln")])
def test_names_arguments_and_values_are_scipys(name):
    ahead = PARAMETERS.get(name, ())
    found = getattr(special, name)(*ahead, leafgrad.tensor(X))
    expected = getattr(sp, name)(*ahead, X)
    found, expected = (v if isinstance(v, tuple) else (v,) for v in (found, expected))
    for actual, value in zip(found, expected, strict=True):
        np.testing.assert_allclose(actual.numpy(), value.real, rtol=1e-13)


def test_gamma_of_several_dimensions():
    found = special.multigammaln(leafgrad.tensor(3 + X), 3)
    np.testing.assert_allclose(found.numpy(), [sp.multigammaln(a, 3) for a in 3 + X], rtol=1e-14)


def test_names_with_an_order_in_them():
    for name, order in [("j0", 0), ("j1", 1), ("y0", 0), ("y1", 1), ("i0", 0), ("i1", 1), ("k0", 0), ("k1", 1)]:
        of_order = getattr(special, {"j": "jv", "y": "yn", "i": "iv", "k": "kv"}[name[0]])
        found, expected = getattr(special, name)(leafgrad.tensor(X)), of_order(order, leafgrad.tensor(X))
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("n", range(4))
def test_modified_bessel_functions_of_large_numbers_and_their_derivatives(n):
    x = leafgrad.tensor([1e10, -1e10, 1e300, np.inf], dtype=leafgrad.float64, requires_grad=True)
    y, size = special.ive(n, x), x.detach().abs()
    expected = (1 - (4 * n * n - 1) / (8 * size)) * (2 * np.pi * size) ** -0.5 * x.detach().sign() ** n
    np.testing.assert_allclose(y.detach().numpy(), expected.numpy(), rtol=1e-14)
    slope = leafgrad.autograd.grad(y.sum(), x)[0]
    np.testing.assert_allclose(slope.numpy(), (-expected / (2 * x.detach())).nan_to_num().numpy(), rtol=1e-4)


EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, -2.0, 1.0])
POLYNOMIALS = {name for name in special.__all__ if name.startswith("eval_")}  # nan beyond 1e100 in SciPy, but not here
SCALED = {"ive", "kve"}  # which SciPy has 0 at inf for some orders, and nan for others


@pytest.mark.parametrize("name", sorted({*special.__all__} - {"mills", "multigammaln"} - POLYNOMIALS - SCALED))
def test_infinities_nan_and_poles_are_scipys(name):
    ahead = PARAMETERS.get(name, ())
    found, expected = getattr(special, name)(*ahead, leafgrad.tensor(EDGES)), getattr(sp, name)(*ahead, EDGES)
    found, expected = (v if isinstance(v, tuple) else (v,) for v in (found, expected))
    for actual, value in zip(found, expected, strict=True):
        value = np.where(np.isneginf(EDGES), np.inf, value) if name == "gammaln" else value  # as PyTorch and C have it
        value = np.where(value.imag == 0, value.real, np.nan) if value.dtype.kind == "c" else value
        np.testing.assert_allclose(actual.numpy(), value, rtol=1e-13)


def test_airys_functions_far_out():
    """Where SciPy has nan."""
    found = special.airy(leafgrad.tensor([1e3, 2e6, 1e10]))
    assert [t.tolist() for t in found] == [[0.0] * 3, [0.0] * 3, [np.inf] * 3, [np.inf] * 3]


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("ellipk", [0.0, -1e-9]),
        ("ellipe", [0.0, 1e-9]),
        ("spence", [1.0, 1 + 1e-9]),
        ("exprel", [0.0, -1e-9]),
        ("j1", [0.0]),
        ("i0", [0.0]),
    ],
)
def test_second_derivatives_where_the_textbook_divides_by_zero(name, points):
    """Against the Taylor series there."""
    series = {
        "ellipk": math.pi * 9 / 64, "ellipe": -math.pi * 3 / 64, "spence": 0.5, "exprel": 1 / 3, "j1": 0.0, "i0": 0.5,
    }  # fmt: skip
    x = leafgrad.tensor(points, dtype=leafgrad.float64, requires_grad=True)
    (slope,) = grad(getattr(special, name)(x).sum(), x, create_graph=True)
    (curvature,) = grad(slope.sum(), x)
    assert curvature.tolist() == pytest.approx([series[name]] * len(points), abs=1e-8)


# ---- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "gammaincinv", "gammainccinv", "zeta"])
def test_a_derivative_that_nobody_has_is_refused_by_name(name):
    a = leafgrad.tensor([1.5], requires_grad=True)
    with pytest.raises(MissingGradientError, match=f"op '{name}' has no gradient for its argument '[ax]'"):
        grad(getattr(special, name)(a, leafgrad.tensor([0.5])).sum(), a)


def test_parameters_out_of_range_are_refused():
    x = leafgrad.tensor([0.5])
    with pytest.raises(RuntimeError, match="lambertw: k: expected 0 or -1, the branches that are real, got 1"):
        special.lambertw(x, 1)
    with pytest.raises(RuntimeError, match=r"eval_gegenbauer: alpha: expected a number > -1/2 and not 0, got 0"):
        special.eval_gegenbauer(2, 0, x)
    with pytest.raises(RuntimeError, match=r"eval_genlaguerre: alpha: expected a number > -1, got -1"):
        special.eval_genlaguerre(2, -1, x)
    with pytest.raises(RuntimeError, match=r"multigammaln: d: expected an order >= 1, got 0"):
        special.multigammaln(x, 0)
    with pytest.raises(TypeError, match=r"kv: v: expected a number, got '1'"):
        special.kv("1", x)


def test_lambertw_is_nan_where_it_is_not_real():
    x = leafgrad.tensor([-1.0, 0.5, -0.1])
    assert [math.isnan(v) for v in special.lambertw(x, -1).tolist()] == [True, True, False]
    assert [math.isnan(v) for v in special.lambertw(x).tolist()] == [True, False, False]


def test_methods_of_tensor():
    a, x = leafgrad.tensor([0.5, 2.5]), leafgrad.tensor([1.0, 2.0])
    assert a.lgamma().tolist() == special.gammaln(a).tolist() == leafgrad.lgamma(a).tolist()
    assert a.digamma().tolist() == special.digamma(a).tolist()
    assert (a.igamma(x) + a.igammac(x)).tolist() == pytest.approx([1, 1])
    assert leafgrad.lgamma(input=a).tolist() == a.lgamma().tolist()
    assert leafgrad.igamma(a, other=x).tolist() == leafgrad.igamma(input=a, other=x).tolist() == a.igamma(x).tolist()
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        a.lgamma(axis=0)


# ---- derivatives of float32, and far from 0 -------------------------------------------------------------------------

FAR = np.array([-1e6, -1e4, -300.0, -20.0, -3.0, -1e-5, 1e-5, 0.3, 1.0, 7.0, 100.0, 1e4, 3e5], "f4")
BOTH = {
    **{name: getattr(special, name) for name in "dawsn erfcx log_ndtr i0e i1e k0e k1e j0 y1 spence digamma".split()},
    **{f"{name}{n}": lambda x, name=name, n=n: getattr(special, name)(n, x)
       for name in "struve ive kve yn spherical_yn".split() for n in (0, 2, 5)},
    "fresnel": lambda x: special.fresnel(x)[0],
    "shichi": lambda x: special.shichi(x)[0],
    "poch": lambda x: special.poch(x, 0.25),
    "beta": lambda x: special.beta(x, 1.5),
    "beta of number": lambda x: special.beta(2.5, x),
    "betaln": lambda x: special.betaln(x, 3.0),
    "kl_div": lambda x: special.kl_div(x, 1.00001),
    "pseudo_huber": lambda x: special.pseudo_huber(0.1, x),
}  # fmt: skip


def derivatives(function, points, dtype):
    x = leafgrad.tensor(points, dtype=getattr(leafgrad, dtype), requires_grad=True)
    first = grad(function(x).sum(), x, create_graph=True)[0]
    return [d.detach().numpy() for d in (first, grad(first.sum(), x)[0])]


@pytest.mark.parametrize("name", BOTH)
def test_derivatives_of_float32_are_those_of_float64(name):
    for single, double in zip(*(derivatives(BOTH[name], FAR, dtype) for dtype in ("float32", "float64")), strict=True):
        assert single.dtype == "float32"
        with np.errstate(over="ignore", under="ignore"):
            np.testing.assert_array_equal(single, double.astype("f4"))


# Function, point, and the first two derivatives there, by mpmath with 70 digits.
REFERENCE = [
    (special.dawsn, 1e3, -5.0000075000187501e-7, 1.0000030000112501e-9),
    (special.dawsn, 31.0, -0.000521105592869068, 3.3672383918697808e-5),
    (special.erfcx, 1e4, -5.6418957508491275e-9, 1.1283791332441388e-12),
    (special.log_ndtr, -1e3, 1000.000999998, -0.99999900000599995),
    (lambda x: special.ive(1, x), 1e5, -6.3077603415786143e-9, 9.461569548526527e-14),
    (lambda x: special.kve(2, x), 1e5, -1.9817751181960381e-8, 2.972774147499873e-13),
    (lambda x: special.struve(2, x), 1e4, 0.21930365645279007, 0.0036456764386509073),
    (lambda x: special.beta(x, 1.0), 1e8, -1e-16, 2e-24),
    (lambda x: special.poch(x, 2.0), 0.0, 1.0, 2.0),
    (lambda x: special.poch(x, 2.0), -2.0, -3.0, 2.0),
    (lambda x: special.poch(x, 3.0), -2.0, 2.0, -6.0),
    (lambda x: special.poch(x, 2.0), -7.0, -13.0, 2.0),
    (lambda x: special.poch(x, 1.5), -2.0, -7.0898154036220641, 12.567326827222353),
]


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-6)])
@pytest.mark.parametrize(("function", "point", "first", "second"), REFERENCE)
def test_derivatives_far_from_zero(function, point, first, second, dtype, tolerance):
    found = derivatives(function, [point], dtype)
    np.testing.assert_allclose(found, [[first], [second]], rtol=tolerance)


@pytest.mark.parametrize("a", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_densities_have_limits_at_the_ends(a):
    """Of x**(a - 1), times 1 - x, and their slopes."""
    density = {0.5: math.inf, 1.0: 1.0}.get(a, 0.0)
    slope = {0.5: -math.inf, 1.0: -1.0, 1.5: math.inf, 2.0: 1.0}.get(a, 0.0)
    for sign, function in ((1, special.gammainc), (-1, special.gammaincc)):
        found = derivatives(lambda x, function=function: function(a, x), [0.0], "float64")
        np.testing.assert_array_equal(found, [[sign * density], [sign * slope]])
    scale = np.array([[1.0], [1.0]]) / sp.beta(a, 2.0)
    found = derivatives(lambda x: special.betainc(a, 2.0, x), [0.0], "float32")
    np.testing.assert_allclose(found, scale * [[density], [slope]], rtol=1e-6)
    found = derivatives(lambda x: special.betainc(2.0, a, x), [1.0], "float64")
    np.testing.assert_allclose(found, scale * [[density], [-slope]], rtol=1e-14)


@pytest.mark.parametrize(
    ("function", "point", "first", "second"),
    [
        (lambda x: special.gammaincinv(0.5, x), 0.0, 0.0, math.pi / 2),
        (lambda x: special.gammaincinv(1.0, x), 0.0, 1.0, 1.0),
        (lambda x: special.gammaincinv(0.75, x), 0.0, 0.0, math.inf),
        (lambda x: special.gammaincinv(2.3, x), 0.0, math.inf, -math.inf),
        (lambda x: special.gammaincinv(2.3, x), 1e-300, 2.454e169, -math.inf),
        (lambda x: special.gammainccinv(0.5, x), 1.0, 0.0, math.pi / 2),
        (lambda x: special.betaincinv(0.5, 1.5, x), 0.0, 0.0, math.pi**2 / 8),
        (lambda x: special.betaincinv(0.5, 0.5, x), 1.0, 0.0, -(math.pi**2) / 2),
        (lambda x: special.betaincinv(1.0, 2.0, x), 0.0, 0.5, 0.25),
        (lambda x: special.betaincinv(20.0, 2.0, x), 1e-300, math.nan, -math.inf),
        (lambda x: special.boxcox(x, 2.3), 0.0, 0.0, 0.0),
        (lambda x: special.boxcox(x, 2.0), 0.0, 0.0, 1.0),
        (lambda x: special.boxcox(x, 1.5), 0.0, 0.0, math.inf),
        (lambda x: special.boxcox1p(x, 2.3), -1.0, 0.0, 0.0),
        (lambda x: special.boxcox1p(x, 2.0), -1.0, 0.0, 1.0),
    ],
)
def test_second_derivatives_at_the_ends(function, point, first, second):
    found = derivatives(function, [point], "float64")
    assert math.isnan(first) or found[0][0] == pytest.approx(first, rel=1e-3, abs=1e-14)
    assert found[1][0] == pytest.approx(second, rel=1e-13)


def test_derivatives_of_higher_order_at_the_ends():
    """gammaincinv(1/2, y) begins as s + s**2 / 1.5, s = pi y**2 / 4; betaincinv of halves is sin(pi y / 2)**2."""
    for function, expected in (
        (lambda y: special.gammaincinv(0.5, y), [0, math.pi / 2, 0, 16 * (math.pi / 4) ** 2]),
        (lambda y: special.betaincinv(0.5, 0.5, y), [0, math.pi**2 / 2, 0, -(math.pi**4) / 2]),
    ):
        x = leafgrad.tensor(0.0, dtype=leafgrad.float64, requires_grad=True)
        value = function(x)
        for slope in expected:
            (value,) = grad(value, x, create_graph=True)
            assert value.item() == pytest.approx(slope, rel=1e-13)


def test_polynomials_of_nan_are_nan():
    for name in sorted(POLYNOMIALS - {"eval_gegenbauer", "eval_genlaguerre"}):
        for n in range(3):
            assert math.isnan(getattr(special, name)(n, leafgrad.tensor(math.nan)).item())


def test_polynomials_that_overflow_are_infinite():
    x = leafgrad.tensor([-math.inf, -1e20, 1e20, math.inf, math.nan], dtype=leafgrad.float32)
    for polynomial in (special.eval_chebyt, special.eval_hermite, special.eval_legendre):
        assert str(polynomial(3, x).tolist()) == "[-inf, -inf, inf, inf, nan]"
        assert str(polynomial(4, x).tolist()) == "[inf, inf, inf, inf, nan]"
    assert str(special.eval_laguerre(3, x).tolist()) == "[inf, inf, -inf, -inf, nan]"


def test_the_smallest_numbers():
    """Where SciPy gives inf or nan."""
    tiny = leafgrad.tensor([1e-310, -5e-324], dtype=leafgrad.float64)
    assert special.gammaln(tiny).tolist() == pytest.approx([713.8013788281542, 744.4400719213812])
    assert leafgrad.func.grad(lambda x: special.i1(x).sum())(tiny).tolist() == [0.5, 0.5]
    assert leafgrad.func.hessian(lambda x: special.i0(x).sum())(tiny).tolist() == [[0.5, 0], [0, 0.5]]


def test_orders_may_be_integers_of_numpy():
    x = leafgrad.tensor([3.0, 4.0])
    assert leafgrad.mvlgamma(x, np.int64(2)).tolist() == leafgrad.mvlgamma(x, 2).tolist()
    assert leafgrad.polygamma(np.int64(1), x).tolist() == leafgrad.polygamma(1, x).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, **more: leafgrad.lgamma(x, **more),
        lambda x, **more: leafgrad.digamma(x, **more),
        lambda x, **more: leafgrad.i0(x, **more),
        lambda x, **more: leafgrad.igamma(x, x, **more),
        lambda x, **more: leafgrad.igammac(x, x, **more),
        lambda x, **more: leafgrad.mvlgamma(x, 2, **more),
        lambda x, **more: leafgrad.polygamma(1, x, **more),
        lambda x, **more: leafgrad.special.zeta(x, 2, **more),
        lambda x, **more: leafgrad.special.erfcx(x, **more),
        lambda x, **more: leafgrad.special.hermite_polynomial_h(x, 2, **more),
    ],
)
def test_results_go_into_out(call):
    x, out = leafgrad.tensor([3.0, 4.0]), leafgrad.zeros(2)
    assert call(x, out=out) is out
    assert out.tolist() == call(x).tolist()
    with pytest.raises(TypeError, match="argument 'out' must be Tensor"):
        call(x, out=1)

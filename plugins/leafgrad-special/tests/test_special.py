"""Values against SciPy, derivatives against differences, dtypes, devices, errors."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from scipy import special as sp

import leafgrad
import leafgrad_special as special
from leafgrad import plugins
from leafgrad.autograd import grad, gradcheck
from leafgrad_special import cupy_kernels

WIDE = np.linspace(-3.0, 3.0, 13)
INSIDE = np.linspace(-0.9, 0.9, 13)
UNIT = np.linspace(0.05, 0.95, 13)
POSITIVE = np.linspace(0.3, 6.0, 13)
ZERO_INSIDE = np.array([-2.0, -0.1, 0.0, 0.1, 2.0])

# A function, SciPy's, and where: the first two of them of tensors and arrays alike.
CASES = {
    "erfc": (special.erfc, sp.erfc, WIDE),
    "erfcx": (special.erfcx, sp.erfcx, WIDE),
    "erfinv": (special.erfinv, sp.erfinv, INSIDE),
    "ndtr": (special.ndtr, sp.ndtr, WIDE),
    "log_ndtr": (special.log_ndtr, sp.log_ndtr, WIDE),
    "ndtri": (special.ndtri, sp.ndtri, UNIT),
    "mills": (special.mills, lambda x: np.exp(-x * x / 2) / math.sqrt(2 * math.pi) / sp.ndtr(x), WIDE),
    "gammaln": (special.gammaln, sp.gammaln, POSITIVE),
    "gammaln below 0": (special.gammaln, sp.gammaln, np.array([-2.7, -1.5, -0.3])),
    "digamma": (special.digamma, sp.digamma, POSITIVE),
    "entr": (special.entr, sp.entr, UNIT),
    "j0": (special.j0, sp.j0, ZERO_INSIDE),
    "j1": (special.j1, sp.j1, ZERO_INSIDE),
    "i0": (special.i0, sp.i0, ZERO_INSIDE),
    "i1": (special.i1, sp.i1, ZERO_INSIDE),
    "i0e": (special.i0e, sp.i0e, POSITIVE),
    "i1e": (special.i1e, sp.i1e, -POSITIVE),
    **{f"polygamma {n}": (partial(special.polygamma, n), partial(sp.polygamma, n), POSITIVE) for n in (0, 1, 2)},
    **{f"jv {n}": (partial(special.jv, n), partial(sp.jv, n), ZERO_INSIDE) for n in (0, 1, 2, 5)},
    **{f"iv {n}": (partial(special.iv, n), partial(sp.iv, n), ZERO_INSIDE) for n in (0, 1, 2, 5)},
    **{f"ive {n}": (partial(special.ive, n), partial(sp.ive, n), POSITIVE) for n in (0, 1, 2, 5)},
}
cases = pytest.mark.parametrize(("function", "reference", "x"), CASES.values(), ids=CASES)
TOLERANCE = {"float64": 1e-13, "float32": 2e-6, "float16": 2e-3}


def summed_gradient(function):
    """The derivative of an elementwise function, as a function."""

    def derivative(x):
        return grad(function(x).sum(), x, create_graph=True)[0]

    return derivative


@cases
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_values_are_scipys_in_the_dtype_of_the_argument(function, reference, x, dtype, device):
    x = x.astype(dtype)
    y = function(leafgrad.tensor(x, device=device))
    assert (y.dtype.name, y.device, y.shape) == (dtype, device, x.shape)
    np.testing.assert_allclose(y.cpu().numpy(), reference(x.astype("float64")), rtol=TOLERANCE[dtype], atol=1e-6)


@cases
def test_a_tensor_without_dimensions(function, reference, x):
    y = function(leafgrad.tensor(x[1]))
    assert y.shape == ()
    assert float(y) == pytest.approx(float(reference(x[1])), rel=1e-13)


@cases
def test_derivatives_to_third_order(function, reference, x):
    x = leafgrad.tensor(x, dtype=leafgrad.float64, requires_grad=True)
    for order in range(3):
        assert gradcheck(function, (x,), atol=1e-5 * 10**order, rtol=1e-4)
        function = summed_gradient(function)


@cases
def test_gradients_keep_dtype_and_device(function, reference, x, device):
    x = leafgrad.tensor(x, dtype=leafgrad.float32, device=device, requires_grad=True)
    for _ in range(3):
        function = summed_gradient(function)
        g = function(x)
        assert (g.dtype, g.device) == (leafgrad.float32, device)


def test_xlog1py(device):
    x, y = np.array([0.0, 0.0, 1.0, 2.0]), np.array([-1.0, 3.0, 0.5, 2.0])
    result = special.xlog1py(leafgrad.tensor(x, device=device), leafgrad.tensor(y, device=device))
    np.testing.assert_allclose(result.cpu().numpy(), sp.xlog1py(x, y), rtol=1e-14)
    assert special.xlog1py(leafgrad.tensor(2.0), 0.5).dtype is leafgrad.float32
    arguments = [leafgrad.tensor(a[2:], dtype=leafgrad.float64, requires_grad=True) for a in (x, y)]
    assert gradcheck(special.xlog1py, arguments)
    assert leafgrad.autograd.gradgradcheck(special.xlog1py, arguments)


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


@pytest.mark.parametrize("n", range(7))
def test_modified_bessel_functions_of_every_order_in_plain_array_functions(n):
    x = np.concatenate([np.linspace(-600, 600, 1201), np.linspace(-25, 25, 1000)])
    expected = sp.ive(n, x)
    actual = cupy_kernels.scaled_bessel_i(np, x, n)
    np.testing.assert_allclose(actual, expected, rtol=2e-14, atol=1e-300)
    assert cupy_kernels.scaled_bessel_i(np, x.astype("float32"), n).dtype == "float32"


@pytest.mark.parametrize("op", special.leafgrad_ops(), ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_cupys_kernels_do_what_the_forwards_do(op, dtype, monkeypatch):
    """On NumPy's arrays, with SciPy in the place of cupyx.scipy, which has the same functions."""
    monkeypatch.setattr(cupy_kernels, "library", lambda: sp)
    monkeypatch.setattr(cupy_kernels, "bessel_j", lambda: lambda n, x: sp.jv(n, x).astype(x.dtype))
    x = np.linspace(0.1, 0.9, 5).astype(dtype)
    args = [x] * len(op.signature.arguments)
    for params in [{"n": n} for n in range(1, 5)] if op.signature.parameters else [{}]:
        actual, expected = op.kernels["cupy"](np, *args, **params), op.forward(np, *args, **params)
        assert actual.dtype == dtype
        np.testing.assert_allclose(actual, expected, rtol=TOLERANCE[dtype])


def test_integers_become_the_default_dtype():
    assert special.gammaln(leafgrad.tensor([1, 2, 5])).dtype is leafgrad.float32


@pytest.mark.parametrize("function", [special.jv, special.iv, special.ive, special.polygamma])
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
    assert "jv(r, n=1)" in str(program)


def test_compiled_and_eager_agree(device):
    r = leafgrad.linspace(0, 20, 1000, dtype=leafgrad.float64, device=device).reshape(-1, 1).requires_grad_()
    compiled = leafgrad.compile(bessel_residual)
    expected = bessel_residual(r).cpu().numpy()
    for _ in range(3):
        np.testing.assert_allclose(compiled(r).cpu().numpy(), expected, atol=1e-13)
    assert np.abs(expected).max() < 1e-13
    assert "program 1, run 2 times" in compiled.explain()


@cases
def test_every_function_compiles_with_its_derivatives(function, reference, x):
    def derivatives(x):
        y = function(x)
        (y_x,) = grad(y.sum(), x, create_graph=True)
        (y_xx,) = grad(y_x.sum(), x)
        return y.detach(), y_x.detach(), y_xx

    x = leafgrad.tensor(x, dtype=leafgrad.float64, requires_grad=True)
    compiled = leafgrad.compile(derivatives)
    for _ in range(2):
        found = compiled(x)
    for actual, expected in zip(found, derivatives(x), strict=True):
        np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-12, atol=1e-14)

"""Complex fields: their arithmetic is that of complex numbers, and equations of them are two real ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.complex import ComplexValue

RNG = np.random.default_rng(0)
A, B = (RNG.normal(size=5) + 1j * RNG.normal(size=5) for _ in range(2))
PLACES = np.linspace(0, 1, 11)
R = RNG.normal(size=5) + 3
RING = pinn.Interval("x", -math.pi, math.pi, periodic=True) * pinn.Time("t", 0, 1)
NET = pinn.MLP(6, 1, embed=pinn.Periodic(x=1))


def value(z):
    return ComplexValue(lg.tensor(z.real.copy()), lg.tensor(z.imag.copy()))


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b, r: a + b,
        lambda a, b, r: a - b,
        lambda a, b, r: a * b,
        lambda a, b, r: a / b,
        lambda a, b, r: 1j * a + 2 - a * 3,
        lambda a, b, r: (2 + 1j) / a,
        lambda a, b, r: 1 - a,
        lambda a, b, r: 1j - a / 2j,
        lambda a, b, r: r * a + a * r - r,
        lambda a, b, r: r - a / r + r / b,
        lambda a, b, r: -(a**3),
        lambda a, b, r: a * 0 + b,
        lambda a, b, r: 1j * r * a - (r + 2j) / b,
        lambda a, b, r: (1j * r - a) + b / (r + 2j) + (a + 1j * r),
    ],
)
def test_arithmetic(function):
    expected = function(A, B, R)
    found = function(value(A), value(B), lg.tensor(R))
    real, imag = (part if isinstance(part, int) else part.numpy() for part in (found.real, found.imag))
    assert np.abs(real + 1j * imag - expected).max() < 1e-13


def test_moduli_and_conjugates():
    assert np.abs(value(A).abs2.numpy() - abs(A) ** 2).max() < 1e-14
    assert np.abs(abs(value(A)).numpy() - abs(A)).max() < 1e-14
    assert np.abs((value(A).conj * value(A)).real.numpy() - abs(A) ** 2).max() < 1e-14
    with pytest.raises(TypeError, match="expected an integer of at least 1"):
        value(A) ** 0.5


@pytest.mark.slow
def test_the_schroedinger_equation():
    """A plane wave: i psi_t + psi_xx / 2 + |psi|^2 psi = 0 for psi = exp(i (x + t / 2))."""
    start = (pinn.Hard(lambda x: lg.cos(x)), pinn.Hard(lambda x: lg.sin(x)))
    psi = pinn.ComplexField("psi", RING, NET, initial=start)
    equation = pinn.Interior(lambda psi: 1j * psi.t + psi.xx / 2 + psi.abs2 * psi, n=64)
    truth = pinn.references.exact(
        RING, points=21, psi_re=lambda x, t: np.cos(x + t / 2), psi_im=lambda x, t: np.sin(x + t / 2)
    )
    sol = pinn.Problem(psi, [equation]).solve(pinn.GaussNewton(13), reference=truth)
    assert max(sol.errors.l2["psi_re"][0], sol.errors.l2["psi_im"][0]) < 2e-2
    wave = sol(np.array([0.0, 1.0]), 0.5)
    assert wave.dtype == np.complex128
    assert np.abs(wave - np.exp(1j * (np.array([0, 1]) + 0.25))).max() < 5e-2


def residuals(condition, *others):
    psi = pinn.ComplexField("psi", RING, NET)
    problem = pinn.Problem(psi, [condition, *others])
    system = problem.system()
    system.fields = lambda columns: {
        "psi_re": columns["x"] * columns["t"], "psi_im": columns["x"] + 2 * columns["t"],
    }  # fmt: skip
    batch = problem.draw(np.random.default_rng(0))[0]
    found = system(0, {name: lg.tensor(np.ascontiguousarray(v)) for name, v in batch.items()})
    return found.detach().numpy() * problem.sizes[0], *batch["points"].T


def test_conditions_on_complex_fields():
    found, x, t = residuals(pinn.Interior(lambda psi, psi_re: (1j * psi.t, psi_re.x), n=8))
    assert np.abs(found - np.stack([0 * x - 2, x, t], 1)).max() < 1e-12
    found, x, t = residuals(pinn.Initial(lambda x: x, n=8))
    assert np.abs(found - np.stack([-x, x], 1)).max() < 1e-12
    found, x, t = residuals(pinn.Wrap("x", n=8))
    assert np.abs(found - np.stack([-2 * math.pi * t, 0 * t - 2 * math.pi, 0 * t, 0 * t], 1)).max() < 1e-12


def test_tensors_of_complex_numbers_are_complex_beside_fields():
    z = value(A) + lg.tensor(B)
    assert np.abs(abs(z).numpy() - abs(A + B)).max() < 1e-14
    assert np.abs(z.imag.numpy() - (A + B).imag).max() < 1e-14
    assert np.abs(z.conj.imag.numpy() + (A + B).imag).max() < 1e-14


def test_complex_values_on_edges_and_at_the_start():
    found, x, _ = residuals(pinn.Initial(lambda x: lg.exp(1j * x), n=8))
    assert np.abs(found - np.stack([-np.cos(x), x - np.sin(x)], 1)).max() < 1e-12
    line = pinn.Interval("x", 0, 1)
    psi = pinn.ComplexField("psi", line, pinn.MLP(8, 1))
    turned = [pinn.Interior(lambda psi, x: psi.x - 1j * lg.exp(1j * x), n=20), pinn.Dirichlet(lambda x: lg.exp(1j * x))]
    sol = pinn.Problem(psi, turned).solve(pinn.LevenbergMarquardt(20))
    assert np.abs(sol(PLACES) - np.exp(1j * PLACES)).max() < 1e-3
    with pytest.raises(ValueError, match=r"expected one real number for each point.*takes a pair of Hard\(...\)"):
        pinn.ComplexField("psi", RING, NET, initial=pinn.Hard(lambda x: lg.exp(1j * x)))


def test_integrals_and_estimated_laplacians_of_complex_fields():
    line = pinn.Interval("x", 0, 1)
    psi = pinn.ComplexField("psi", line, pinn.MLP(8, 1))
    total = pinn.Integral(lambda psi: psi, equals=1 + 0.5j)
    sol = pinn.Problem(psi, [pinn.Interior(lambda psi: psi.x - 2j, n=20), total]).solve(pinn.LevenbergMarquardt(10))
    assert np.abs(sol(PLACES) - (1 + 0.5j + 2j * (PLACES - 0.5))).max() < 1e-3
    fredholm = pinn.Integral(lambda psi, x, at: (at.psi - psi) * x, lambda psi, x: psi / 2 - 0.25j, n=8)
    problem = pinn.Problem(psi, [fredholm, pinn.Stochastic(lambda psi, lap: lap(1j * psi) + 2, n=8)])
    system = problem.system()
    system.fields = lambda columns: {"psi_re": 0 * columns["x"], "psi_im": columns["x"] ** 2}
    for index, batch in enumerate(problem.some()):
        assert system(index, batch).abs().max().item() < 1e-12


def test_complex_data():
    x = np.array([0.5, 1.0])
    found, x, _ = residuals(pinn.Data({"x": x, "t": 0 * x + 0.5}, {"psi": x * (1 + 2j)}))
    assert np.abs(found - np.stack([0.5 * x - x, x + 1 - 2 * x], 1)).max() < 1e-12
    u = pinn.Field("u", RING, NET)
    with pytest.raises(ValueError, match="expected real numbers for u, got complex ones"):
        pinn.Problem(u, [pinn.Data({"x": x, "t": 0 * x}, {"u": x * 1j})])


def test_they_are_saved(tmp_path):
    psi = pinn.ComplexField("psi", RING, NET, initial=pinn.Hard(lambda x: lg.cos(x)))
    sol = pinn.Problem(psi, [pinn.Interior(lambda psi: psi.t, n=8)]).solve(pinn.Adam(1))
    sol.save(tmp_path / "s.safetensors")
    x = np.linspace(0, 1, 5)
    assert np.array_equal(pinn.Solution.load(tmp_path / "s.safetensors")(x, 0.5), sol(x, 0.5))
    assert np.abs(sol(x, 0.0) - np.cos(x)).max() < 1e-15


def test_an_unknown_times_a_complex_field():
    k = pinn.Unknown("k", 2.0)
    psi = pinn.ComplexField("psi", RING, NET)
    one, two = (
        pinn.Problem(psi, [pinn.Interior(f, n=8)], k).system()(0, {"points": lg.tensor(np.full((3, 2), 0.5))})
        for f in (lambda psi: 1j * psi.t + k * psi.xx, lambda psi: psi.xx * k + psi.t * 1j)
    )
    assert lg.equal(one, two)


def test_derivatives_of_complex_expressions():
    psi = pinn.ComplexField("psi", RING, NET)
    one, two = (
        pinn.Problem(psi, [pinn.Interior(f, n=8)]).system()(0, {"points": lg.tensor(np.full((3, 2), 0.5))})
        for f in (
            lambda psi, x: pinn.d(psi * psi.conj + 1j * psi, x),
            lambda psi: 2 * (psi.x * psi.conj).real + 1j * psi.x,
        )
    )
    assert np.abs((one - two).detach().numpy()).max() < 1e-12


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        (lambda psi: psi.conj.x, "x: expected a complex field, got an expression of some: differentiate first"),
        (lambda psi: lg.exp(psi), r"functions of real numbers, as lg.exp\(psi.real\), abs\(psi\) or psi.conj, got one"),
        (lambda psi: psi.conj() * psi, "psi.conj, psi.abs2, psi.x have no brackets"),
        (lambda psi: psi.abs(), r"abs: expected a derivative of a complex field, .* its modulus is abs\(psi\)"),
        (lambda psi: psi.angle(), r"its angle lg.atan2\(psi.imag, psi.real\)"),
        (lambda psi: psi.xq, "xq: expected a derivative of a complex field"),
        (lambda psi, x: psi.real - lg.exp(1j * x), "expected a real number for each point, got complex ones without"),
    ],
)
def test_what_complex_fields_cannot_do_is_said(equation, message):
    psi = pinn.ComplexField("psi", RING, NET)
    with pytest.raises((TypeError, AttributeError), match=message):
        pinn.Problem(psi, [pinn.Interior(equation, n=8)])


def test_a_wave_leaves_by_a_condition_with_a_complex_factor():
    k = 3.0
    psi = pinn.ComplexField("psi", pinn.Interval("x", 0, 1), net=pinn.MLP(10, 1))
    out = pinn.Robin(0, "x_max", a=-1j * k, b=1)
    conditions = [pinn.Interior(lambda psi: psi.xx + k**2 * psi, n=40), pinn.Dirichlet(1, "x_min"), out]
    sol = pinn.Problem(psi, conditions).solve(pinn.LevenbergMarquardt(30))
    assert abs(sol(1.0) - np.exp(1j * k)) < 1e-3
    u = pinn.Field("u", pinn.Interval("x", 0, 1), net=pinn.MLP(4, 1))
    with pytest.raises(TypeError, match="robin x_max: a: expected a real number for the field u, got"):
        pinn.Problem(u, [pinn.Interior(lambda u: u.xx), out])

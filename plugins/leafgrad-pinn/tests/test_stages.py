"""Each stage against a textbook iteration, on problems small enough to know the answer."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.stages.gauss_newton import CURVED
from leafgrad_pinn.stages.linear import SCALE, DenseJacobian, MatrixFree
from leafgrad_pinn.stages.quasi_newton import broyden
from leafgrad_pinn.stages.soap import SoapOptimizer
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.training import Training

LINE = pinn.Interval("x", 0, 1)


def wave():
    """Two equations on one network, soft conditions, an unknown."""
    domain = LINE * pinn.Time("t", 0, 1)
    u, v = pinn.fields("u v", domain, pinn.MLP(5, 2))
    speed = pinn.Unknown("speed", 0.7, positive=True)
    inside = pinn.Interior(lambda u, v: (u.t - v, v.t - speed * u.xx), n=12)
    sides = [pinn.Dirichlet(0, field="u", n=6, weight=3.0), pinn.Initial(lambda x: x, field="v", n=7)]
    return Trainee(pinn.Problem([u, v], [inside, *sides], [speed]), 1, lg.float64, "cpu")


def numbers(tensor):
    return tensor.numpy().copy()


def numeric(function, flat, h=1e-6):
    """The derivative of a function of vectors, by central differences."""
    columns = []
    for i in range(len(flat)):
        step = lg.zeros_like(flat)
        step[i] = h
        columns.append((numbers(function(flat + step)) - numbers(function(flat - step))) / (2 * h))
    return np.stack(columns, -1)


@pytest.mark.slow
def test_the_objective_is_consistent():
    trainee = wave()
    objective, batches = trainee.objective, trainee.batches
    rng = np.random.default_rng(0)
    weights = [lg.tensor(rng.random(len(w)) + 0.5) for w in trainee.weights]
    flat = trainee.flat
    gradient, terms, squares = objective.gradient(flat, batches, weights)
    expected = [s * float((w * q).mean()) for s, w, q in zip(objective.equations.scales, weights, squares, strict=True)]
    assert np.allclose(numbers(terms), expected, rtol=1e-13)
    rows = numbers(objective.rows(flat, batches, weights))
    jacobian, residuals = rows[:, :-1], rows[:, -1]
    assert rows.shape == (2 * 12 + 6 + 7, objective.size + 1)
    assert np.isclose((residuals**2).sum(), numbers(terms).sum(), rtol=1e-12)
    assert np.allclose(2 * jacobian.T @ residuals, numbers(gradient), atol=1e-12)
    assert np.allclose(numeric(lambda f: objective.rows(f, batches, weights)[:, -1], flat), jacobian, atol=1e-7)
    v = lg.tensor(rng.standard_normal(objective.size))
    assert np.allclose(numbers(objective.product(flat, batches, weights, v)), jacobian.T @ (jacobian @ v.numpy()))
    signs = [lg.tensor(rng.standard_normal((len(w), k))) for w, k in zip(weights, trainee.equations, strict=True)]
    flat_signs = np.concatenate([s.numpy().ravel() for s in signs])
    assert np.allclose(numbers(objective.pulled(flat, batches, weights, signs)), jacobian.T @ flat_signs)
    near = [numbers(objective.rows(flat + h * v, batches, weights))[:, -1] for h in (-1e-4, 0, 1e-4)]
    second = (near[0] - 2 * near[1] + near[2]) / 1e-8
    assert np.allclose(numbers(objective.bend(flat, batches, weights, v)), jacobian.T @ second, rtol=1e-4, atol=1e-4)
    assert trainee.equations == [2, 1, 1]
    ends = np.cumsum([24, 6, 7])
    parts = np.split(rows, ends[:-1])
    for part, norm, scale in zip(parts, objective.norms(flat, batches, weights).tolist(), (1, 3, 1), strict=True):
        assert np.isclose(np.linalg.norm(2 * part[:, :-1].T @ part[:, -1]) / scale, norm)
    plain = np.split(numbers(objective.rows(flat, batches, trainee.ones())), ends[:-1])
    for part, trace, scale in zip(plain, objective.traces(flat, batches, weights).tolist(), (1, 3, 1), strict=True):
        assert np.isclose((part[:, :-1] ** 2).sum() / scale, trace)


def reference_broyden(H, s, y, b):
    """Formulas 13 to 23 of Urban, Stefanou and Pons, one by one."""
    n, ys, Hy = len(s), y @ s, H @ y
    h, v = (y @ Hy) / ys, math.sqrt(y @ Hy) * (s / ys - Hy / (y @ Hy))
    a = h * b - 1
    low = min(1, h * (1 - math.sqrt(a / (1 + a))))
    theta = max((low - 1) / a, min(1 / low, (1 - b) / b))
    sigma = 1 + a * theta
    tau = min(1, 1 / b)
    power = sigma ** (-1 / (n - 1))
    tau = tau * min(power, 1 / theta) if theta > 0 else min(tau * power, sigma)
    phi = (1 - theta) / sigma
    return (H - np.outer(Hy, Hy) / (y @ Hy) + phi * np.outer(v, v)) / tau + np.outer(s, s) / ys


@pytest.mark.parametrize("length", [0.01, 0.3, 1.0, 5.0])
def test_broyden_is_the_formula(length):
    rng = np.random.default_rng(int(100 * length))
    for _ in range(20):
        A, B = rng.standard_normal((2, 6, 6))
        H, hessian, g = A @ A.T + np.eye(6), B @ B.T + 0.1 * np.eye(6), rng.standard_normal(6)
        s = -length * H @ g
        y = hessian @ s
        b = -length * (s @ g) / (y @ s)
        found = broyden(*map(lg.tensor, (H, s, y)), lg.tensor(b, dtype=lg.float64)).numpy()
        assert np.allclose(found, reference_broyden(H, s, y, b), rtol=1e-9)
        assert np.allclose(found @ y, s)  # the secant equation
        assert np.linalg.eigvalsh(found).min() > 0


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("dtype", [lg.float32, lg.float64])
def test_broyden_of_a_step_that_is_right_already_divides_by_no_zero(dtype):
    H, s, y, b = (lg.tensor(x, dtype=dtype) for x in (np.diag([1.0, 4.0]), [1.0, 1.0], [1.0, 1.0], 1.0))
    expected = reference_broyden(*(t.numpy() for t in (H, s, y)), 1.0)
    assert np.allclose(broyden(H, s, y, b).numpy(), expected, rtol=1e-5)


def rosenbrock(a=-1.2, b=1.0):
    """(10 (b - a^2), 1 - a) as residuals: the least is at a = b = 1. The network takes no part."""
    one, two = pinn.Unknown("a", a), pinn.Unknown("b", b)
    u = pinn.Field("u", LINE, pinn.MLP(2, 1))
    valley = pinn.Interior(lambda u: (0 * u + 10 * (two - one * one.current()), 0 * u + (1 - one)), n=1)
    return pinn.Problem(u, [valley], [one, two])


@pytest.mark.every(4)
@pytest.mark.parametrize(
    ("stage", "accuracy"),
    [
        (pinn.LBFGS(60), 1e-6),
        (pinn.SSBroyden(80), 1e-6),
        (pinn.GaussNewton(40), 1e-6),
        (pinn.LevenbergMarquardt(30), 1e-6),
        (pinn.GaussNewton(30, solver="cg"), 1e-5),
        (pinn.LevenbergMarquardt(40, solver="cg"), 1e-5),
        (pinn.Adam(400, lr=0.1, final=1.0), 0.1),
        (pinn.Muon(400, lr=0.1, final=1.0), 0.1),
        (pinn.SOAP(400, lr=0.1, final=1.0), 0.1),
    ],
    ids=lambda v: type(v).__name__ + getattr(v, "solver", "") if isinstance(v, pinn.stages.Stage) else "",
)
def test_rosenbrock(stage, accuracy):
    sol = rosenbrock().solve(stage)
    assert abs(sol.unknowns["a"] - 1) < accuracy
    assert abs(sol.unknowns["b"] - 1) < 2 * accuracy
    assert sol.run.reasons[0]


@pytest.mark.parametrize("damping", [0.1, 1e-4])
def test_a_step_of_levenberg_and_marquardt_bends_as_the_valley(damping):
    """d + a / 2 on Rosenbrock's function, where r'' = (-20 d_a^2, 0); without a / 2 where it is too long.

    What is trained of an unknown is its ratio to where it starts.
    """
    a, b = start = np.array([0.5, 1.0])
    jacobian, residuals = np.array([[-20 * a, 10], [-1, 0]]) * start, np.array([10 * (b - a * a), 1 - a])
    norms = np.linalg.norm(jacobian, axis=0)
    D = norms + SCALE * norms.max()
    matrix = jacobian.T @ jacobian + damping * np.linalg.norm(jacobian / D, 2) ** 2 * np.diag(D**2)
    d = -np.linalg.solve(matrix, jacobian.T @ residuals)
    change = -np.linalg.solve(matrix, jacobian.T @ [-20 * (a * d[0]) ** 2, 0])
    trusted = np.linalg.norm(D * change) <= CURVED * np.linalg.norm(D * d)
    assert trusted == (damping == 0.1)
    problem = rosenbrock(float(a), float(b))
    problem.sizes = [[1.0, 1.0]]
    sol = problem.solve(pinn.LevenbergMarquardt(1, damping=damping))
    assert np.allclose([sol.unknowns["a"], sol.unknowns["b"]], start * (1 + d + trusted * change / 2), rtol=1e-10)


def test_linear_least_squares_need_one_step():
    """A polynomial's coefficients, fitted to data: damped Gauss-Newton against NumPy's own solution."""
    c, d = pinn.Unknown("c", 0.0), pinn.Unknown("d", 0.0)
    x = np.linspace(0, 1, 9)
    y = 2 + 3 * x + 0.1 * np.cos(40 * x)
    best = np.linalg.lstsq(np.stack([np.ones(9), x], 1), y, rcond=None)[0]
    u = pinn.Field("u", LINE, pinn.MLP(2, 1))
    data = pinn.Data({"x": x}, {"u": y})
    fit = pinn.At(data, lambda u, x: 0 * u + (c + d * x - (2 + 3 * x + 0.1 * lg.cos(40 * x))))
    for stage in (pinn.GaussNewton(6, damping=1e-12), pinn.LevenbergMarquardt(6, damping=1e-12), pinn.SSBroyden(20)):
        sol = pinn.Problem(u, [fit], [c, d]).solve(stage)
        assert np.allclose([sol.unknowns["c"], sol.unknowns["d"]], best, atol=1e-7)


@pytest.mark.parametrize("damping", [1e-1, 1e-3, 1e-6])
def test_a_damped_step_is_that_of_numpy(damping):
    rows = np.random.default_rng(0).standard_normal((30, 8)) * 10.0 ** np.arange(0, -8, -1)
    jacobian, residuals = rows[:, :-1], rows[:, -1]
    model = DenseJacobian(lg.tensor(rows))
    norms = np.linalg.norm(jacobian, axis=0)
    D = norms + SCALE * norms.max()
    mu = damping * np.linalg.norm(jacobian / D, 2) ** 2
    stacked = np.vstack([jacobian, math.sqrt(mu) * np.diag(D)])
    expected = -np.linalg.lstsq(stacked, np.concatenate([residuals, np.zeros(7)]), rcond=None)[0]
    step = model.step(damping)
    assert np.allclose(step.numpy(), expected, rtol=1e-8)
    assert np.allclose(model.solve(lg.tensor(jacobian.T @ residuals), damping).numpy(), expected, rtol=1e-6)
    gain = residuals @ residuals - np.square(residuals + jacobian @ expected).sum()
    assert np.isclose(model.gain(step), gain, rtol=1e-8)


@pytest.mark.slow
def test_conjugate_gradients_find_the_dense_step():
    trainee = wave()
    free = MatrixFree(trainee, trainee.objective, trainee.flat, 0, 1, 500)
    rows = trainee.objective.rows(trainee.flat, trainee.batches, trainee.weights).numpy()
    jacobian, residuals = rows[:, :-1], rows[:, -1]
    D = free.size.numpy()
    norms = np.linalg.norm(jacobian, axis=0)
    assert 0.3 < np.median(D / (norms + SCALE * norms.max())) < 3  # estimated by eight random vectors
    top = np.linalg.norm(jacobian / D, 2) ** 2
    assert 0.7 * top < free.top < 1.0001 * top
    mu = 1e-2 * free.top
    expected = -np.linalg.solve(jacobian.T @ jacobian + mu * np.diag(D**2), jacobian.T @ residuals)
    step = free.step(1e-2)
    assert np.linalg.norm((step.numpy() - expected) * D) < 1e-2 * np.linalg.norm(expected * D)
    gain = residuals @ residuals - np.square(residuals + jacobian @ step.numpy()).sum()
    assert np.isclose(free.gain(step), gain, rtol=1e-8)


def test_soap_is_adam_in_the_eigenbasis():
    rng = np.random.default_rng(0)
    p = lg.nn.Parameter(lg.tensor(rng.standard_normal((4, 3))))
    here = p.detach().numpy().copy()
    optimizer = SoapOptimizer([p], lr=0.1, every=2)
    M, V = np.zeros((4, 3)), np.zeros((4, 3))
    for k in range(7):
        G = rng.standard_normal((4, 3)) * np.arange(1, 4)
        p.grad = lg.tensor(G)
        optimizer.step()
        if k == 0:
            L, R = 0.05 * G @ G.T, 0.05 * G.T @ G
            U, W = np.linalg.eigh(L)[1][:, ::-1], np.linalg.eigh(R)[1][:, ::-1]
            assert np.array_equal(p.detach().numpy(), here)
            continue
        M, V = 0.95 * M + 0.05 * G, 0.95 * V + 0.05 * (U.T @ G @ W) ** 2
        mean, size = U.T @ M @ W / (1 - 0.95**k), np.sqrt(V / (1 - 0.95**k)) + 1e-8
        here = here - 0.1 * U @ (mean / size) @ W.T
        L, R = 0.95 * L + 0.05 * G @ G.T, 0.95 * R + 0.05 * G.T @ G
        if k % 2 == 0:
            U, W = np.linalg.qr(L @ U)[0], np.linalg.qr(R @ W)[0]
        assert np.allclose(p.detach().numpy(), here, atol=1e-10)


def poisson(n=40):
    u = pinn.Field("u", LINE, net=pinn.MLP(8, 1), boundary=pinn.Hard(0))
    return pinn.Problem(u, [pinn.Interior(lambda u, x: u.xx + math.pi**2 * lg.sin(math.pi * x), n=n, sampler="grid")])


def slope():
    """An equation that is soon traced."""
    u = pinn.Field("u", LINE, pinn.MLP(8, 1))
    return pinn.Problem(u, [pinn.Interior(lambda u, x: u.x - lg.sin(9 * x), n=40, sampler="grid")])


@pytest.mark.compiled
@pytest.mark.every(2)
@pytest.mark.parametrize(
    "stage",
    [
        pinn.Adam(40, points=pinn.Fresh(5), weights=pinn.RBA()),
        pinn.LBFGS(60, block=10, points=pinn.RAD(every=20)),
        pinn.SSBroyden(40, points=pinn.R3(10), weights=pinn.SelfAdaptive(), hold=5),
        pinn.GaussNewton(8, points=pinn.Fresh(2)),
        pinn.LevenbergMarquardt(8, points=pinn.Fresh(2), weights=(pinn.GradNorm(every=2), pinn.NTK(every=2))),
        pinn.GaussNewton(3, solver="cg", points=pinn.Fresh(1)),
    ],
    ids=lambda stage: type(stage).__name__,
)
def test_nothing_is_traced_again(stage, caplog):
    """Points and weights are arguments of the same shape, whatever they are."""
    with caplog.at_level(logging.INFO, "leafgrad.compile"):
        slope().solve(stage)
    messages = [record.getMessage() for record in caplog.records]
    assert any("traced in" in message for message in messages)
    assert not [message for message in messages if "traced in" not in message]


@pytest.mark.parametrize(
    ("n", "stages", "compiles"),
    [
        (40, [pinn.GaussNewton(20)], False),
        (40, [pinn.Adam(150), pinn.GaussNewton(20)], True),
        (40, [pinn.SSBroyden(99)], False),
        (40, [pinn.SSBroyden(100)], True),
        (400_000, [pinn.Adam(20)], True),
    ],
    ids=["few", "both", "nearly", "many", "large"],
)
def test_few_steps_of_a_small_problem_are_not_compiled(n, stages, compiles):
    """By numbers alone, which are the same on every machine."""
    training = Training(poisson(n), stages, 0, lg.float64, "cpu", lambda modules, domain: {}, None, False)
    assert training.trainee.compiles is training.setup["compiles"] is compiles
    assert hasattr(training.trainee.objective.programs["rows"], "explain") is compiles


def test_what_is_not_compiled_is_told(capsys):
    poisson().solve(pinn.GaussNewton(1))
    assert "seed 0: not compiled: 3 gradients at 40 points by 25 parameters" in capsys.readouterr().err
    poisson().solve(pinn.GaussNewton(1), compile=True)
    assert "not compiled" not in capsys.readouterr().err
    with pytest.raises(TypeError, match="compile: expected True, False, or None for where it pays, got 'yes'"):
        poisson().solve(pinn.GaussNewton(1), compile="yes")


def test_linear_least_squares_begin_with_little_damping_at_each_step(monkeypatch):
    """What helped far from the solution of an equation that is not linear held all later steps."""
    tried = []
    step = DenseJacobian.step
    monkeypatch.setattr(DenseJacobian, "step", lambda self, damping: (tried.append(damping), step(self, damping))[1])
    worker = pinn.LeastSquares(2).start(Trainee(poisson(), 0, lg.float64, "cpu"), 0)
    worker.damping = 1.0
    worker.advance()
    assert tried[0] == pytest.approx(1e-14)


def burgers():
    domain = pinn.Interval("x", -1, 1) * pinn.Time("t", 0, 1)
    u = pinn.Field("u", domain, net=pinn.MLP(5, 2))
    inside = pinn.Interior(lambda u: u.t + u * u.x - 0.01 * u.xx, n=12)
    conditions = [inside, pinn.Initial(lambda x: -lg.sin(math.pi * x), n=6), pinn.Neumann(0, on="x_min", n=5)]
    return Trainee(pinn.Problem(u, conditions), 1, lg.float64, "cpu")


@pytest.mark.compiled
@pytest.mark.every(2)
@pytest.mark.parametrize("make", [wave, burgers])
@pytest.mark.parametrize("function", ["gradient", "rows", "bend"])
def test_what_stages_ask_for_is_a_closed_program(make, function, caplog):
    trainee = make()
    more = [lg.ones_like(trainee.flat)] * (function == "bend")
    with caplog.at_level(logging.INFO, "leafgrad.compile"):
        getattr(trainee.objective, function)(trainee.flat, trainee.batches, trainee.weights, *more)
    messages = [record.getMessage() for record in caplog.records]
    assert [message for message in messages if "traced in" in message] == messages != []


@pytest.mark.slow
def test_large_problems_are_solved_without_a_jacobian(capsys, monkeypatch):
    from leafgrad_pinn.stages import gauss_newton

    monkeypatch.setattr(gauss_newton, "COLUMNS", 20)
    sol = poisson().solve(pinn.GaussNewton(12, tolerance=0))
    assert "40 points and 25 parameters: by conjugate gradients" in capsys.readouterr().err
    assert sol.run.history[-1]["loss"] < 1e-2 * sol.run.history[0]["loss"]
    poisson().solve(pinn.GaussNewton(1, solver="dense"))
    assert "40 points and 25 parameters: factorised" in capsys.readouterr().err


def test_too_large_is_an_error(monkeypatch):
    from leafgrad_pinn.stages import gauss_newton, quasi_newton
    from leafgrad_pinn.weights import balance

    monkeypatch.setattr(gauss_newton, "LARGEST", 100)
    with pytest.raises(ValueError, match=r"40 rows \(points\) and 25 columns .* or solver='cg'"):
        poisson().solve(pinn.LevenbergMarquardt(1, solver="dense"))
    monkeypatch.setattr(quasi_newton, "LARGEST", 100)
    with pytest.raises(ValueError, match="inverse Hessian has 25 rows and columns: expected at most 100"):
        poisson().solve(pinn.SSBroyden(1))
    monkeypatch.setattr(balance, "LARGEST", 100)
    with pytest.raises(ValueError, match="NTK: the Jacobian has 40 rows and 25 columns"):
        poisson().solve(pinn.Adam(1, weights=pinn.NTK()))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: pinn.Adam(0), "Adam: steps: expected a whole number, at least 1, got 0"),
        (lambda: pinn.Adam(1.5), "Adam: steps: expected a whole number"),
        (lambda: pinn.Muon(1, lr=0), "Muon: lr: expected more than 0, got 0"),
        (lambda: pinn.SOAP(1, every=0), "SOAP: every: expected more than 0"),
        (lambda: pinn.LBFGS(1, history=0), "LBFGS: history: expected more than 0"),
        (lambda: pinn.SSBroyden(1, hold=0), "SSBroyden: hold: expected more than 0"),
        (lambda: pinn.GaussNewton(1, solver="qr"), "GaussNewton: solver: expected one of auto, dense, cg, got 'qr'"),
        (lambda: pinn.LevenbergMarquardt(1, damping=-1), "LevenbergMarquardt: damping: expected more than 0"),
        (lambda: pinn.GaussNewton(1, tolerance=-1), "GaussNewton: tolerance: expected at least 0, got -1"),
        (lambda: pinn.Adam(1, weights="causal"), r"Adam: weights: expected a scheme such as Causal\(\)"),
        (lambda: pinn.Adam(1, weights=(pinn.RBA(), pinn.RBA(lr=1.0))), "expected each scheme once, got RBA, RBA"),
        (lambda: pinn.Adam(1, points=pinn.RBA()), "Adam: points: expected Fresh"),
        (lambda: pinn.Causal(intervals=1), "Causal: intervals: expected at least 2, got 1"),
        (lambda: pinn.Causal(least=2), "Causal: least: expected a number between 0 and 1"),
        (lambda: pinn.Causal(epsilon=-1), "Causal: epsilon: expected a number not below 0"),
        (lambda: pinn.GradNorm(every=0), "GradNorm: every: expected at least 1"),
        (lambda: pinn.NTK(mean=1.0), "NTK: mean: expected a number from 0 to below 1"),
        (lambda: pinn.SelfAdaptive(lr=0), "SelfAdaptive: lr: expected a positive number"),
        (lambda: pinn.SelfAdaptive(most=0.5), "SelfAdaptive: most: expected at least 1"),
        (lambda: pinn.RBA(decay=1), "RBA: decay: expected a number from 0 to below 1"),
        (lambda: pinn.RAD(n=0), "RAD: n: expected at least 1"),
        (lambda: pinn.RAD(k=0, c=0), "k and c not negative and not both 0"),
        (lambda: pinn.R3(0), "R3: every: expected at least 1"),
    ],
)
def test_wrong_arguments(make, error):
    with pytest.raises((ValueError, TypeError), match=error):
        make()

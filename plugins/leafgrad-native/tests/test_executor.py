"""The native executor as its users meet it: choice, exactness, threads, refusals, and what C leaves to NumPy."""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, plugins
from leafgrad.lowering import expressions
from leafgrad_native import build, executor, target
from leafgrad_native.compiler import NoCompiler, compiler

TESTS = "lowering.*"

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


def burgers(dtype=leafgrad.float64, points=300, width=8):
    """A step with two derivatives inside: the loss and the gradients of the weights."""
    leafgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
    net.to(dtype)
    x, t = (leafgrad.rand(points, 1, dtype=dtype, requires_grad=True) for _ in range(2))

    def step(x, t):
        u = net(leafgrad.cat([x, t], 1))
        u_x, u_t = leafgrad.autograd.grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = leafgrad.autograd.grad(u_x.sum(), x, create_graph=True)
        loss = ((u_t + u * u_x - 0.01 * u_xx) ** 2).mean()
        return loss, *leafgrad.autograd.grad(loss, list(net.parameters()))

    return step, (x, t)


def arrays(tensors):
    return [t.detach().numpy().copy() for t in tensors]


def compiled(step, arguments, name="native"):
    found = leafgrad.compile(step, executor=name)
    found(*arguments)
    return found


# ---- choice ---------------------------------------------------------------------------------------------------------


def test_it_is_chosen_for_graphs_that_gain(monkeypatch):
    monkeypatch.delenv("LEAFGRAD_EXECUTOR")
    step, arguments = burgers()
    c = compiled(step, arguments, None)
    c(*arguments)
    assert "equations in one function" in c.explain()
    assert "#pragma omp simd" in c.source()
    short = compiled(lambda x: x.sin() + 1, (leafgrad.ones(3),), None)
    short(leafgrad.ones(3))
    assert "def run(" in short.source()


def test_the_environment_chooses(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_EXECUTOR", "native")
    c = compiled(lambda x: x.sin() + 1, (leafgrad.ones(3),), None)
    c(leafgrad.ones(3))
    assert "C: 2 equations" in c.explain()


def test_without_a_compiler_numpy_runs_after_one_notice(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_CC", "none")
    executor.notice.cache_clear()
    step, arguments = burgers()
    c = leafgrad.compile(step, executor="native")
    with pytest.warns(RuntimeWarning, match="run with NumPy, not as C: LEAFGRAD_CC is none"):
        got = arrays(c(*arguments))
    assert "def run(" in c.source()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = compiled(lambda x: x.cos(), (leafgrad.ones(3),))
        again(leafgrad.ones(3))
    for a, b in zip(got, arrays(step(*arguments)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


# ---- exactness ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "rtol"), [(leafgrad.float64, 1e-11), (leafgrad.float32, 2e-4)])
@pytest.mark.parametrize("points", [64, 65, 300])
def test_a_step_with_derivatives_equals_eager(dtype, rtol, points):
    step, arguments = burgers(dtype, points)
    c = compiled(step, arguments)
    for got, want in zip(arrays(c(*arguments)), arrays(step(*arguments)), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.abs(want).max())


@pytest.mark.parametrize(("width", "count"), [(16, 32), (16, 16), (32, 16)])
@pytest.mark.parametrize("dtype", [leafgrad.float32, leafgrad.float64])
def test_other_processors_vectors(processor, dtype, width, count):
    """The code for narrower vectors and fewer registers, which any processor of the kind can run."""
    if width > target.vector_bytes():
        pytest.skip("this processor's vectors are narrower")
    processor(width, count)
    step, arguments = burgers(dtype, 150, 20)
    c = compiled(step, arguments)
    rtol = 1e-11 if dtype is leafgrad.float64 else 2e-4
    for got, want in zip(arrays(c(*arguments)), arrays(step(*arguments)), strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.abs(want).max())


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")
@pytest.mark.parametrize("system", ["aarch64-macos", "x86_64-macos", "aarch64-linux-gnu", "x86_64-windows-gnu"])
def test_the_code_compiles_for_other_systems(monkeypatch, processor, tmp_path, system):
    texts = []
    processor(16, 32)
    original = build.compiled
    monkeypatch.setattr(build, "compiled", lambda text, *more: texts.append(text) or original(text, *more))
    step, arguments = burgers(leafgrad.float32, 150, 20)
    compiled(step, arguments)(*arguments)
    (tmp_path / "step.c").write_text(texts[-1])
    flags = ["-O2", "-fopenmp-simd", "-fno-math-errno", "-std=gnu11", "-c"]
    command = [sys.executable, "-m", "ziglang", "cc", "-target", system, *flags, "step.c", "-o", "step.o"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=300)


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_training_equals_eager(rule):
    def train(wrap):
        leafgrad.manual_seed(1)
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to(leafgrad.float64)
        rules = {
            "sgd": lambda p: leafgrad.optim.SGD(p, lr=0.05, momentum=0.9),
            "adam": lambda p: leafgrad.optim.Adam(p, lr=0.01),
        }
        optimizer = rules[rule](net.parameters())
        schedule = leafgrad.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
        x, target = leafgrad.randn(100, 8, dtype=leafgrad.float64), leafgrad.randint(3, (100,))

        def step():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), target)
            loss.backward()
            optimizer.step()
            return loss

        run, losses = wrap(step), []
        for _ in range(60):
            losses.append(run().item())
            schedule.step()
        return losses, run

    expected, _ = train(lambda f: f)
    got, run = train(lambda f: leafgrad.compile(f, executor="native"))
    assert got == pytest.approx(expected, rel=1e-9)
    assert "1 program, traced again 0 times" in run.explain()


EDGES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-310, -5e-324, 1e308, 0.5, -2.5]


@pytest.mark.parametrize("dtype", [leafgrad.float64, leafgrad.float32])
def test_nan_infinities_and_zeros_are_as_in_numpy(dtype):
    x = leafgrad.tensor(EDGES * 6, dtype=dtype)
    y = leafgrad.tensor([e for e in EDGES[:6] for _ in EDGES], dtype=dtype)

    def f(x, y):
        low = leafgrad.minimum(x, y), leafgrad.maximum(x, y), x < y, x == y, x != x
        arithmetic = x + y, x - y, x * y, x / y, -x, x.abs(), 0 * x, x - x
        functions = leafgrad.sqrt(x), leafgrad.exp(x), leafgrad.log(x), leafgrad.tanh(x), leafgrad.relu(x)
        return *low, *arithmetic, *functions, leafgrad.where(x > 0, x, y), x.sum(), leafgrad.amax(x, 0)

    c = compiled(f, (x, y))
    for got, want in zip(arrays(c(x, y)), arrays(f(x, y)), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-6 if dtype is leafgrad.float32 else 1e-14)
        if want.dtype.kind == "f":
            numbers = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


def test_large_angles_go_to_numpy():
    x = leafgrad.tensor([1e30, 1.0, -1e22], dtype=leafgrad.float64)
    c = compiled(lambda x: (x.sin(), x.cos() + 1), (x,))
    for _ in range(2):
        for got, want in zip(arrays(c(x)), [np.sin(x.numpy()), np.cos(x.numpy()) + 1], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-15)


def test_what_goes_to_numpy_halfway_finds_what_it_began_with():
    """The memory of what a phase reads of an earlier one is not given again before the phase is over."""

    def step(x):
        a = x * 3
        a = a + 0 * a.flatten().sort().values.sum()
        a = a * a - 1
        return (a + a.T).sin()

    c, x = leafgrad.compile(step, executor="native"), leafgrad.rand(40, 40)
    for _ in range(3):
        c(x)
    assert c.explain().count("  C: ") == 2
    x[39, 39] = 1e5
    np.testing.assert_allclose(c(x).numpy(), step(x).numpy(), rtol=1e-5, atol=1e-5)


def test_inputs_in_any_order_of_memory():
    x = leafgrad.randn(6, 80, dtype=leafgrad.float64)
    c = compiled(lambda x: leafgrad.tanh(x) @ leafgrad.tanh(x).T, (x.t(),))
    for given in (x.t(), x.t().contiguous(), leafgrad.randn(160, 6, dtype=leafgrad.float64)[::2]):
        np.testing.assert_allclose(
            c(given).numpy(), np.tanh(given.numpy()) @ np.tanh(given.numpy()).T, rtol=1e-13, atol=1e-14
        )


def test_results_have_memory_of_their_own():
    x = leafgrad.randn(80, 3)
    c = compiled(lambda x: (x.exp().t(), x.exp(), x.exp()), (x,))
    first = c(x)
    kept = arrays(first)
    c(x + 1)
    for now, before in zip(arrays(first), kept, strict=True):
        np.testing.assert_array_equal(now, before)
    assert len({t.numpy().ctypes.data for t in (*first, x)}) == 4


def test_what_an_op_gives_in_the_memory_of_its_argument_is_copied():
    def step(z):
        y = leafgrad.view_as_complex(leafgrad.view_as_real(z) * 2)  # the product in C, its view by NumPy
        return y, (y.abs() ** 2).sum() + leafgrad.sin(y.real).sum()

    z = leafgrad.tensor(np.arange(9.0).reshape(3, 3) * (1 + 2j))
    step_in_c = leafgrad.compile(step, executor="native")
    for _ in range(3):
        for found, expected in zip(step_in_c(z), step(z), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy())


def test_a_target_out_of_range_is_the_error_of_eager():
    def f(x, target):
        return nn.functional.cross_entropy(leafgrad.tanh(x), target)

    x, good = leafgrad.randn(70, 3), leafgrad.randint(3, (70,))
    c = compiled(f, (x, good))
    c(x, good)
    bad = good.clone()
    bad[5] = 3
    with pytest.raises(IndexError) as eager:
        f(x, bad)
    with pytest.raises(IndexError) as ours:
        c(x, bad)
    assert str(ours.value) == str(eager.value)
    assert c(x, good).item() == pytest.approx(f(x, good).item(), rel=1e-5)


# ---- threads and processes ------------------------------------------------------------------------------------------


def test_the_same_bits_on_any_number_of_threads():
    step, arguments = burgers(leafgrad.float32, 3000)
    c = compiled(step, arguments)
    before = leafgrad.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3, 1):
            leafgrad.set_num_threads(count)
            found.append(arrays(c(*arguments)))
    finally:
        leafgrad.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_threads_may_call_at_once():
    step, arguments = burgers(points=1000)
    c = compiled(step, arguments)
    want = arrays(c(*arguments))
    wrong = []

    def work():
        for _ in range(20):
            wrong.extend(1 for a, b in zip(arrays(c(*arguments)), want, strict=True) if not np.array_equal(a, b))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_it_runs_after_a_fork():
    code = """
import os, leafgrad
leafgrad.set_num_threads(2)
x = leafgrad.randn(5000, 2)
c = leafgrad.compile(lambda x: (leafgrad.tanh(x) @ x.t()[:, :2]).sum(), executor="native")
c(x); want = c(x).item()
child = os.fork()
if not child:
    os._exit(0 if c(x).item() == want else 1)
print(os.waitpid(child, 0)[1], c(x).item() == want)
"""
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=300)
    assert found.stdout.split() == ["0", "True"], found.stderr


# ---- ops ------------------------------------------------------------------------------------------------------------


def test_an_op_with_a_c_body_runs_in_c():
    bump = leafgrad.op("elementwise", "float", name="native_bump", c="exp(-x * x) * height")(
        lambda xp, x, *, height: xp.exp(-x * x) * height
    )
    x = leafgrad.randn(200, dtype=leafgrad.float64)
    c = compiled(lambda x: bump(x, height=2.5) + 1, (x,))
    np.testing.assert_allclose(c(x).numpy(), 2.5 * np.exp(-(x.numpy() ** 2)) + 1, rtol=1e-14)
    assert "NumPy:" not in c.explain()


def test_an_op_without_one_runs_between_two_phases():
    twist = leafgrad.op("elementwise", "float", name="native_twist")(lambda xp, x: xp.arctan(x) * 2)
    x = leafgrad.randn(200, dtype=leafgrad.float64)
    c = compiled(lambda x: leafgrad.tanh(twist(leafgrad.exp(x))), (x,))
    np.testing.assert_allclose(c(x).numpy(), np.tanh(2 * np.arctan(np.exp(x.numpy()))), rtol=1e-14)
    assert "NumPy: native_twist, from test_executor.py" in c.explain()
    assert "no C body" in c.explain()


@pytest.mark.parametrize(("c", "match"), [("x + z", "c: unknown name 'z'"), ("system(x)", "c: unknown name 'system'")])
def test_a_body_of_unknown_names_is_an_error(c, match):
    with pytest.raises(leafgrad.errors.OpDefinitionError, match=match):
        leafgrad.op("elementwise", name="native_odd", c=c)(lambda xp, x: x)


def test_a_body_is_for_elementwise_ops():
    with pytest.raises(leafgrad.errors.OpDefinitionError, match="c is for ops with the trait 'elementwise'"):
        leafgrad.op(name="native_odd", c="x")(lambda xp, x: x)


def test_constants_are_made_once_with_the_program():
    x = leafgrad.randn(300, 6, dtype=leafgrad.float64)

    def step(x):
        places = leafgrad.arange(6, dtype=x.dtype)
        h = leafgrad.tanh(x[:, [0, 2, 5]]).sum() + (x * places + leafgrad.tensor([1.0, 2, 3, 4, 5, 6])).sin().sum()
        return h + (x @ leafgrad.eye(6, dtype=x.dtype)).square().sum(), places, leafgrad.tensor([[1, 2, 3]])

    c = compiled(step, (x,))
    for _ in range(3):
        got = c(x)
        for ours, right in zip(got, step(x), strict=True):
            np.testing.assert_allclose(ours.numpy(), right.numpy(), rtol=1e-12)
        got[1].add_(1)  # results are the caller's
        got[2].zero_()
    assert "NumPy:" not in c.explain()


def test_comments_of_the_source_cannot_end_early():
    x = leafgrad.randn(100)
    c = compiled(lambda x: x.exp() * 2 + 1, (x,))  # */ \\ ??/
    np.testing.assert_allclose(c(x).numpy(), np.exp(x.numpy()) * 2 + 1, rtol=1e-5)


def test_numbers_that_c_writes_otherwise():
    assert expressions.literal(float("inf"), "float64") == "((double)INFINITY)"
    assert expressions.literal(None, "float32") == "((float)NAN)"
    assert expressions.literal(True, "int64") == "((int64_t)1LL)"


@pytest.mark.parametrize(("width", "loops"), [(4, True), (64, False)])
def test_products_of_a_matrix_for_each_point_run_in_a_loop_while_a_chunk_fits_the_cache(width, loops):
    leafgrad.manual_seed(0)
    a, b = leafgrad.randn(100, width, width, dtype=leafgrad.float64), leafgrad.randn(100, width, width).double()

    def step(a, b):
        c = leafgrad.tanh(a @ b)
        return (c @ a - b).mT @ c + leafgrad.exp(-c * c)

    compiled = leafgrad.compile(step, executor="native")
    for _ in range(3):
        np.testing.assert_allclose(compiled(a, b).numpy(), step(a, b).numpy(), rtol=1e-12, atol=1e-12)
    assert ("loop over 100 rows" in compiled.explain()) is loops


@pytest.mark.parametrize("shape", [(7,), (130, 3), (1,)])
def test_elements_that_an_op_refuses_stop_c(shape):
    seen = leafgrad.zeros(())

    def step(p, target):
        loss = leafgrad.nn.functional.binary_cross_entropy(p, target)
        seen.add_(1)
        return loss

    compiled = leafgrad.compile(step, executor="native")
    target = leafgrad.ones(*shape)
    for _ in range(3):
        assert compiled(leafgrad.full(shape, 0.5), target).item() == pytest.approx(math.log(2))
    equations = len(compiled.graph)
    assert f"C: {equations} equations in one function" in compiled.explain()
    for wrong in (1.5, -0.5, math.nan):
        p = leafgrad.full(shape, 0.5)
        p.view(-1)[-1] = wrong
        with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
            compiled(p, target)
    assert seen.item() == 3
    assert compiled(leafgrad.full(shape, 0.5), target).item() == pytest.approx(math.log(2))


def test_other_preferred_executors_are_asked_before():
    class Later:
        leafgrad_executors = staticmethod(plugins.hookimpl(lambda: [plugins.ExecutorSpec("later", "math:sin", True)]))

    plugins.load()
    plugins.register(Later(), "later")
    try:
        names = [spec.name for spec in plugins.executors()]
        assert names.index("later") < names.index("native")
    finally:
        plugins.unregister("later")

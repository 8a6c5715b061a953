"""Whole steps as kernels, each launch in three orders of threads and blocks, against eager."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from compiled_steps import burgers, classifier, trained

import leafgrad
from leafgrad import backends, nn, optim
from leafgrad.compile.run.executor import find
from leafgrad.errors import CompileError
from leafgrad.nn import functional as F
from leafgrad.testing import check_executor, fake
from leafgrad_cuda import nvrtc, patterns
from leafgrad_cuda.device import Emulated
from leafgrad_cuda.executor import CudaProgram, EmulatedExecutor, gains
from leafgrad_cuda.launches import Launch
from leafgrad_cuda.plan import CudaPlan

NAME = "cuda-emulated"
OPTIMIZERS = [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.Adadelta, optim.NAdam]


def agree(make, rtol=2e-4, **options):
    """Losses and parameters of a step as kernels equal eager's; returns what compiled it."""
    want, _ = trained(make(**options), None)
    got, run = trained(make(**options), NAME)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * np.abs(w).max())
    return run


def has_nvrtc():
    try:
        return bool(nvrtc.library())
    except CompileError:
        return False


def program(run):
    return CudaProgram(run.graph, Emulated(("forward",)))


def test_the_contract_of_executors():
    check_executor(NAME)


@pytest.mark.parametrize("rows", [64, 65, 200, 333])
def test_a_residual_of_second_order(rows):
    run = agree(burgers, rows=rows)
    (loop,) = [p for p in program(run).plan.launches if p.segment]
    assert loop.length == rows
    assert loop.chunks * loop.chunk >= rows


def test_sums_over_a_long_batch_are_in_its_loop(monkeypatch):
    monkeypatch.setattr(EmulatedExecutor, "recorded", graphs := [])
    trained(burgers(rows=10_000), NAME, calls=2)
    first, loop, *rest = CudaPlan(graphs[0], Emulated.shared).launches
    assert loop.length == 10_000
    assert len(rest) <= 4
    shapes = [v.shape for launch in (first, *rest) for e in launch.equations for v in (*e.values, *e.outputs)]
    assert not [s for s in shapes if 10_000 in s]


@pytest.mark.parametrize(
    ("left", "right"), [((20, 3000), (3000, 5)), ((2000,), (2000, 3)), ((600,), (600,)), ((2, 7, 700), (2, 700, 3))]
)
def test_long_products_for_few_elements_are_cut(left, right):
    x, y = leafgrad.rand(left, dtype=leafgrad.float64), leafgrad.rand(right, dtype=leafgrad.float64)
    run = leafgrad.compile(lambda x, y: (x @ y).sin() * 2 + 1, executor=NAME)
    for _ in range(2):
        got = run(x, y)
    rounding = 1e-14 * left[-1]  # of sums of so many terms, which the sine takes whole
    np.testing.assert_allclose(got.numpy(), ((x @ y).sin() * 2 + 1).numpy(), rtol=0, atol=rounding)
    tasks = [t for launch in program(run).plan.launches for t in launch.tasks if t.function.startswith("product")]
    assert all(t.operations < 2 * 4 * 512 for t in tasks)
    assert tasks


def test_in_float64():
    agree(burgers, dtype=leafgrad.float64, rtol=1e-10)


def test_arrays_that_do_not_fit_in_shared_memory_lie_in_global_memory():
    run = agree(burgers, width=50, depth=3, rows=100)
    (loop,) = [p for p in program(run).plan.launches if p.segment]
    assert loop.spilled
    assert loop.shared <= Emulated.shared


@pytest.mark.every(2)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer):
    agree(classifier, optimizer=optimizer)


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "activation", [nn.ReLU, nn.GELU, nn.SiLU, nn.Softplus, nn.ELU, nn.Sigmoid, nn.LeakyReLU, nn.Hardtanh]
)
def test_activations(activation):
    agree(classifier, activation=activation)


def test_sums_and_updates_of_all_parameters_are_one_launch():
    plan = program(agree(classifier)).plan
    last = max(k for k, p in enumerate(plan.parts) if p.segment)
    _, update = plan.parts[last + 1 :]  # sums first
    assert len(update.equations) >= 6
    assert sum(t.guarded for t in update.tasks) == len(plan.targets)


def test_the_device_of_tests_and_no_synchronisation():
    fake.register()
    model, step, args = burgers(device="fake:0")
    run = leafgrad.compile(step, executor=NAME)
    for _ in range(3):
        run(*args)
    with fake.no_sync():
        for _ in range(3):
            run(*args)
    want, _ = trained(burgers(), None, calls=6)
    for p, w in zip(model.parameters(), want[6:], strict=True):
        np.testing.assert_allclose(p.detach().cpu().numpy(), w, rtol=1e-4, atol=1e-5)


def test_parameters_are_written_by_one_graph(monkeypatch):
    fake.register()
    model, step, args = burgers(device="fake:0")
    run = leafgrad.compile(step, executor=NAME)
    for _ in range(3):
        run(*args)
    found = run._calls.runner().program
    written = []
    kind = backends.by_device_type("fake").array_type
    monkeypatch.setattr(kind, "__setitem__", lambda *given: written.append(given))
    before = found.launched
    for _ in range(3):
        run(*args)
    assert found.launched - before == 6
    assert not written
    want, _ = trained(burgers(), None, calls=6)
    for p, w in zip(model.parameters(), want[6:], strict=True):
        np.testing.assert_allclose(p.detach().cpu().numpy(), w, rtol=1e-4, atol=1e-5)


def test_parameters_that_share_memory_are_written_one_by_one():
    fake.register()
    whole = leafgrad.zeros(200).to("fake:0")
    a, b = whole[:100], whole[50:150]

    def step(x):
        a.copy_(x.tanh() + 1)
        b.copy_(x * 2)

    run = leafgrad.compile(step, executor=NAME)
    for k in range(4):
        x = leafgrad.arange(100.0) / (k + 1)
        run(x.to("fake:0"))
        np.testing.assert_allclose(whole[:50].cpu().numpy(), x[:50].tanh().numpy() + 1, rtol=1e-6)
        np.testing.assert_allclose(whole[50:150].cpu().numpy(), 2 * x.numpy(), rtol=1e-6)


def test_launches_are_counted():
    _, run = trained(burgers(), NAME)
    found = program(run)
    arrays = [leafgrad.zeros(v.shape, dtype=getattr(leafgrad, v.dtype)).numpy() for v in run.graph.inputs]
    found(arrays)
    found(arrays)
    assert found.launched == 2
    assert len(found.plan.launches) <= 6


def test_changing_numbers_come_in_one_copy(monkeypatch):
    fake.register()
    backend = backends.by_device_type("fake")
    brought = []
    asarray = backend.asarray
    monkeypatch.setattr(backend, "asarray", lambda *given: brought.append(given) or asarray(*given))

    def step(x, a, b, c):
        return (x * a + b).tanh() * c

    run = leafgrad.compile(step, executor=NAME)
    x = leafgrad.rand(70, 3).to("fake:0")
    for k in range(6):
        brought.clear()
        numbers = (0.5 + k, 0.25 * k, 1.5 - k)
        got = run(x, *numbers)
        np.testing.assert_allclose(got.cpu().numpy(), step(x.cpu(), *numbers).numpy(), rtol=1e-6)
    assert [given[0] for given in brought] == [[5.5, 1.25, -3.5]]


def test_ops_without_kernels_part_graphs():
    x = leafgrad.rand(70, 6)
    run = leafgrad.compile(lambda x: ((x * 2).mode(0)[0].exp() * 2, x.sum(0)), executor=NAME)
    for _ in range(2):
        run(x)
    found = program(run)
    found([x.numpy()])
    found([x.numpy() * 2])
    assert found.launched == 4
    lines = [line.strip() for line in str(run.explain()).splitlines()]
    kinds = [line.split(" ")[0] for line in lines if line.startswith(("CUDA graph", "op by op: argmode"))]
    assert kinds == ["CUDA", "op", "CUDA"]


def test_the_same_bits_in_any_order():
    _, run = trained(burgers(rows=300), NAME)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=v.shape).astype(v.dtype) for v in run.graph.inputs]
    found = {
        tuple(a.tobytes() for a in CudaProgram(run.graph, Emulated((order,)))(arrays))
        for order in ("forward", "backward", "shuffled")
    }
    assert len(found) == 1


def test_what_has_no_kernel_is_told_and_right():
    x = leafgrad.rand(70, 6)

    def function(x):
        return (x * 2).cumsum(0).mode(0)[0].exp() * 2

    run = leafgrad.compile(function, executor=NAME)
    for _ in range(3):
        np.testing.assert_allclose(run(x).numpy(), function(x).numpy(), rtol=1e-5)
    assert any(line.strip().startswith("op by op: argmode") for line in str(run.explain()).splitlines())


def test_an_index_out_of_range_is_the_ops_own_error():
    table = leafgrad.rand(5, 3)
    run = leafgrad.compile(lambda i: (table * 2)[i].sum(0).tanh(), executor=NAME)
    good, bad = leafgrad.tensor([0, -5, 4]), leafgrad.tensor([0, 5, 1])
    for _ in range(3):
        run(good)
    with pytest.raises(IndexError, match="5"):
        run(bad)
    np.testing.assert_allclose(run(good).numpy(), (table * 2)[good].sum(0).tanh().numpy(), rtol=1e-6)


def bad_class(place):
    """A training step on a device that reads values when asked, and a batch with a class that is not there."""
    fake.register()
    model, step, (x, y) = classifier(device=place, optimizer=optim.Adam)
    wrong = y.cpu().clone()
    wrong[77] = 5
    return model, leafgrad.compile(step, executor=NAME), x, y, wrong.to(place)


def test_a_class_out_of_range_is_told_with_the_next_value(tmp_path):
    model, run, x, y, wrong = bad_class("fake:0")
    for _ in range(3):
        run(x, y)
    before = [p.detach().cpu().numpy() for p in model.parameters()]
    with fake.no_sync():
        run(x, wrong)
        run(x, y)
    with pytest.raises(IndexError, match=r"class 5 is out of range for 5 classes \(\w+, from .*compiled_steps.py.*\)"):
        next(iter(model.parameters())).detach().cpu()
    for p, old in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().cpu().numpy(), old)
    run(x, y)
    assert not np.array_equal(next(iter(model.parameters())).detach().cpu().numpy(), before[0])


def test_synchronize_tells_it_too():
    backend = backends.by_device_type("fake")
    _, run, x, y, wrong = bad_class("fake:0")
    for _ in range(3):
        run(x, y)
    run(x, wrong)
    with pytest.raises(IndexError, match="class 5"):
        backend.synchronize(0)
    backend.synchronize(0)
    run(x, wrong)
    with pytest.raises(IndexError, match="class 5"):
        run(x, y).item()


def test_on_the_processor_it_is_told_at_once():
    model, run, x, y, wrong = bad_class("cpu")
    for _ in range(3):
        run(x, y)
    before = [p.detach().numpy().copy() for p in model.parameters()]
    with pytest.raises(IndexError, match="5"):
        run(x, wrong)
    for p, old in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), old)


def test_an_index_and_a_refused_element_are_told():
    fake.register()
    table, p = leafgrad.rand(5, 3).to("fake:0"), leafgrad.rand(9).to("fake:0")
    run = leafgrad.compile(lambda i, p: ((table * 2)[i].sum(0), F.gaussian_nll_loss(p, p, p)), executor=NAME)
    good, bad = (leafgrad.tensor(k).to("fake:0") for k in ([0, -5, 4], [0, 4, -6]))
    for _ in range(3):
        run(good, p)
    run(bad, p)
    with pytest.raises(IndexError, match=r"index -6 is out of bounds for size 5 \(\w+, from "):
        backends.by_device_type("fake").synchronize(0)
    run(good, p - 2)
    with pytest.raises(ValueError, match=r"var has negative entry/entries \(refuse, from "):
        backends.by_device_type("fake").synchronize(0)
    run(good, p)
    backends.by_device_type("fake").synchronize(0)


def test_without_memory_all_is_as_before_the_call():
    model, step, (x, y) = classifier(rows=70, optimizer=optim.Adam)
    noise = nn.Dropout(0.3)

    def noisy(x, y):
        return step(noise(x), y)

    run = leafgrad.compile(noisy, executor=NAME)
    for _ in range(3):
        run(x, y)
    before, state = [p.detach().numpy().copy() for p in model.parameters()], leafgrad.get_rng_state()
    found = run._calls.runner().program
    backend, empty = found.backend, []

    def full(shape, dtype):
        empty.append(shape)
        if len(empty) == 5:
            raise MemoryError("out of memory")
        return np.empty(shape, dtype)

    library = SimpleNamespace(empty=full, ascontiguousarray=np.ascontiguousarray)
    for made in (m for side in found.sides for m in side.made):
        made.arrays = []
    found.backend = SimpleNamespace(xp=library, wrap=backend.wrap, device_scope=backend.device_scope)
    with pytest.raises(MemoryError, match=r"expected [\d,]+ bytes for the result of \w+, from .*holds [\d,]+ bytes"):
        run(x, y)
    found.backend = backend
    for p, old in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), old)
    np.testing.assert_array_equal(leafgrad.get_rng_state(), state)
    run(x, y)


def test_cuda_on_the_processor_is_refused():
    graph = leafgrad.trace(lambda x: x * 2, leafgrad.ones(3))
    with pytest.raises(CompileError, match="'cuda' runs programs on 'cuda', but this one has arrays on cpu"):
        find("cuda", graph)


def test_explain_says_what_each_kernel_takes():
    run = agree(burgers)
    text = str(run.explain())
    assert "loop over 200 rows" in text
    assert "kB of shared memory" in text
    assert "Mflop" in text
    assert re.search(r", \d+ registers a thread", text) or not has_nvrtc()


def test_wide_products_are_left_to_a_library(monkeypatch):
    monkeypatch.setattr(patterns, "LONG", 1 << 20)
    x, w = leafgrad.rand(128, 130), leafgrad.rand(130, 128)
    run = leafgrad.compile(lambda x: (x @ w).tanh() + 1, executor=NAME)
    for _ in range(2):
        run(x)
    assert [p.equation.name for p in program(run).plan.parts if not isinstance(p, Launch)] == ["matmul"]


def test_an_op_written_for_c_runs_as_it_is():
    from leafgrad import op

    @op("elementwise", c="exp(-x * x) * k")
    def bump(xp, x, *, k=2.0):
        return xp.exp(-x * x) * k

    bump.vjp(x=lambda g, x, *, k: -2 * g * x * bump(x, k=k))
    x = leafgrad.rand(9, 4, requires_grad=True)

    def function(x):
        y = bump(x, k=3.0).sum(1)
        return y, leafgrad.autograd.grad(y.sum(), x)[0]

    run = leafgrad.compile(function, executor=NAME)
    for _ in range(2):
        for g, w in zip(run(x), function(x), strict=True):
            np.testing.assert_allclose(g.detach().numpy(), w.detach().numpy(), rtol=1e-5)
    assert not [p for p in program(run).plan.parts if not isinstance(p, Launch)]


def test_a_device_that_is_not_the_current_one():
    fake.register()
    x = leafgrad.rand(80, 3).to("fake:1")
    run = leafgrad.compile(lambda x: (x.tanh().sum(0), x.sort(0)[0] * 2), executor=NAME)
    for _ in range(3):
        for got, want in zip(run(x), (x.cpu().tanh().sum(0), x.cpu().sort(0)[0] * 2), strict=True):
            assert str(got.device) == "fake:1"
            np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-6)


def test_a_rule_for_cuda_goes_before_that_for_c():
    @leafgrad.op("elementwise", c="x * 0 + 1")
    def third(xp, x):
        return xp.full_like(x, 3)

    third.lower("cuda", lambda c, e: c.elementwise("x * 0 + 3"))
    x = leafgrad.rand(4, 5)
    run = leafgrad.compile(lambda x: third(x) + x * 2, executor=NAME)
    for _ in range(2):
        np.testing.assert_allclose(run(x).numpy(), 3 + 2 * x.numpy(), rtol=1e-6)
    assert not [p for p in program(run).plan.parts if not isinstance(p, Launch)]


def test_graphs_that_gain():
    x = leafgrad.rand(100, 3)
    assert gains(leafgrad.trace(lambda x: (x * 2).tanh().exp().sum() + 1, x))
    assert not gains(leafgrad.trace(lambda x: x * 2, x))
    assert not gains(leafgrad.trace(lambda x: x.mode(0, keepdim=True)[0].mode(1)[0].mode(0)[0] * 2, x))


@pytest.mark.parametrize("shape", [(1, 5000), (5000, 1), (3, 70, 70), (70, 101)])
def test_long_reductions(shape):
    def function(x):
        total = x.sum() + (x * x).sum()
        return total, x.sum(1), x.amax(), (x * total).mean(0), x.reshape(-1).prod()

    x = 1 + leafgrad.rand(shape, dtype=leafgrad.float64) / 1e5
    run = leafgrad.compile(function, executor=NAME)
    for _ in range(2):
        for g, w in zip(run(x), function(x), strict=True):
            np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-11)

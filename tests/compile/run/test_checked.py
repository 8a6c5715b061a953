"""What an executor returns is checked: no wrong number reaches a weight, whoever chose the executor."""

from __future__ import annotations

import sys
import types
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

import leafgrad
from leafgrad import nn, plugins
from leafgrad.compile.numpy.executor import NumpyExecutor
from leafgrad.compile.run import executor
from leafgrad.errors import CompileError
from leafgrad.plugins import ExecutorSpec, PluginWarning

TESTS = "compile.ir.draws compile.ir.edges"


class Program:
    """The core's program, whose results are changed; ``calls`` counts its runs."""

    def __init__(self, graph, change):
        self.right, self.graph, self.change, self.calls = NumpyExecutor().compile(graph), graph, change, 0

    def __call__(self, inputs):
        self.calls += 1
        return self.change(self, inputs, self.right(inputs))

    def source(self):
        return ""

    def explain(self):
        return []


def one_number(program, inputs, arrays):
    for a in arrays:
        a[...] = 0.5
    return arrays


def nudged(program, inputs, arrays):
    arrays[0][...] += 1e-3
    return arrays


def too_few(program, inputs, arrays):
    return arrays[:-1]


def nothing(program, inputs, arrays):
    return None


def doubles(program, inputs, arrays):
    return [a.astype("float64") for a in arrays]


def flat(program, inputs, arrays):
    return [a.reshape(-1, 1) for a in arrays]


def lists(program, inputs, arrays):
    return [a.tolist() for a in arrays]


def scalars(program, inputs, arrays):
    return [a[()] for a in arrays]  # NumPy's own, where there are no dimensions


def the_input(program, inputs, arrays):
    return [next((i for i in inputs if i.shape == a.shape), a) for a in arrays]


def one_memory(program, inputs, arrays):
    return [arrays[0]] * len(arrays) if len({a.shape for a in arrays}) == 1 else [*arrays[:1], *arrays[:-1]]


def into_inputs(program, inputs, arrays):
    for a in inputs:
        if a.ndim:
            a += 1
    return arrays


def one_buffer(program, inputs, arrays):
    if program.calls == 1:
        program.buffers = arrays
    for buffer, a in zip(program.buffers, arrays, strict=True):
        buffer[...] = a
    return list(program.buffers)


def later_shape(program, inputs, arrays):
    return arrays if program.calls < 4 else flat(program, inputs, arrays)


def permuted(program, inputs, arrays):
    return arrays[::-1]


def stale(program, inputs, arrays):
    if program.calls == 1:
        program.first = [a.copy() for a in arrays]
    return [a.copy() for a in program.first]


def fails(program, inputs, arrays):
    raise ZeroDivisionError("planted")


def fails_later(program, inputs, arrays):
    return arrays if program.calls < 4 else fails(program, inputs, arrays)


CHANGES = [
    one_number, nudged, too_few, nothing, doubles, flat, lists, scalars, the_input, one_memory, into_inputs, one_buffer,
    later_shape, permuted, fails, fails_later,
]  # fmt: skip


@pytest.fixture
def install(monkeypatch):
    """Lists an executor "planted" that changes what the core's returns."""

    def listed(change, preferred):
        class Planted:
            name, device_type = "planted", None

            def compile(self, graph):
                return Program(graph, change)

            def gains(self, graph):
                return True

        module = types.ModuleType("planted_executors")
        module.Planted = Planted
        monkeypatch.setitem(sys.modules, "planted_executors", module)
        monkeypatch.setattr(executor, "BROKEN", {})
        monkeypatch.delenv("LEAFGRAD_EXECUTOR", raising=False)
        spec = ExecutorSpec("planted", "planted_executors:Planted", preferred)
        find, known = plugins.executor, [s for s in plugins.executors() if not s.preferred]
        record = plugins.Plugin("bad", "leafgrad-bad", "0.3", hooks={"leafgrad_executors": ("planted",)})
        monkeypatch.setattr(plugins, "executors", lambda: iter([spec, *known]))
        monkeypatch.setattr(plugins, "executor", lambda name: spec if name == "planted" else find(name))
        monkeypatch.setattr(plugins, "status", lambda: [record])

    return listed


def training():
    """A network, its optimizer's step with dropout, and inputs."""
    leafgrad.manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.3), nn.Linear(4, 2))
    optimizer = leafgrad.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, step, leafgrad.rand(5, 3)


def run(step, x, n=7):
    return [step(x).item() for _ in range(n)]


@pytest.mark.parametrize("change", CHANGES)
def test_a_preferred_one_is_left_out_and_nothing_is_lost(install, change):
    model, step, x = training()
    losses = run(step, x)
    weights = [p.tolist() for p in model.parameters()]
    install(change, True)
    model, step, x = training()
    with pytest.warns(PluginWarning, match=r"plugin 'bad' .*'planted' failed.* from .*test_checked.py:\d+|result|it "):
        found = run(leafgrad.compile(step), x)
    assert found == pytest.approx(losses, rel=1e-5)
    for p, right in zip(model.parameters(), weights, strict=True):
        leafgrad.testing.assert_close(p.detach(), leafgrad.tensor(right), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("change", CHANGES)
def test_one_that_was_named_is_an_error_and_leaves_weights_alone(install, change):
    install(change, False)
    model, step, x = training()
    compiled = leafgrad.compile(step, executor="planted")
    seen = []

    def state():
        return [p.tolist() for p in model.parameters()], leafgrad.get_rng_state().tolist()

    def calls():
        for _ in range(7):
            seen.append(state())
            compiled(x)

    with pytest.raises(CompileError, match="planted"):
        calls()
    assert state() == seen[-1]


def test_a_wrong_result_names_the_equation(install):
    install(one_number, False)
    with pytest.raises(CompileError, match=r"mul, from .*test_checked.py:\d+: .*from replay's"):
        leafgrad.compile(lambda x: (x * 3).exp(), executor="planted")(leafgrad.ones(3))


def test_a_scalar_of_numpy_is_no_array(install):
    install(scalars, False)
    words = (
        r"sum, from .*test_checked.py:\d+: .*result 0 is a float32, which is no array, .*return xp.asarray\(...\) of it"
    )
    with pytest.raises(CompileError, match=words):
        leafgrad.compile(lambda x: (x * 3).sum(), executor="planted")(leafgrad.ones(3))


def test_check_compares_every_run(install, monkeypatch):
    install(stale, False)
    compiled = leafgrad.compile(lambda x: x * 3, executor="planted")
    compiled(leafgrad.ones(3))
    assert compiled(leafgrad.zeros(3)).tolist() == [3, 3, 3]  # what the plant is: only the first run is right
    monkeypatch.setenv("LEAFGRAD_COMPILE", "check")
    with pytest.raises(CompileError, match="from replay's"):
        compiled(leafgrad.zeros(3))


def test_rounding_is_no_mismatch(install):
    def rounded(program, inputs, arrays):
        return [a * (1 + 1e-6) if a.dtype.kind == "f" else a for a in arrays]

    install(rounded, False)
    compiled = leafgrad.compile(lambda x: ((x * 1e4).sin() - x, (x > 0).sum(), 1 - x.tanh() ** 2), executor="planted")
    for _ in range(3):
        compiled(leafgrad.linspace(-9, 9, 50))


def test_results_may_be_views_of_memory_of_their_own(install):
    install(lambda program, inputs, arrays: [a.repeat(2, axis=0)[: len(a)] for a in arrays], False)
    compiled = leafgrad.compile(lambda x: x * 2 + 1, executor="planted")
    x = leafgrad.ones(5)
    for _ in range(4):
        assert compiled(x).tolist() == [3] * 5


@pytest.mark.parametrize("name", ["numpy", "replay"])
def test_a_call_that_fails_draws_nothing_twice(name):
    def drawn(function):
        leafgrad.manual_seed(0)
        found = []
        for k in range(8):
            try:
                found.append(function(leafgrad.ones(6), leafgrad.tensor([0, 9 if k == 5 else 1])).item())
            except IndexError:
                found.append(None)
        return found, leafgrad.rand(2).tolist()

    def step(x, i):
        return nn.functional.dropout(x, 0.5, True)[i].sum()

    assert drawn(leafgrad.compile(step, executor=name)) == drawn(step)


def test_one_that_is_registered_again_is_tried_again(monkeypatch):
    """As in a notebook, where the cell of an executor runs once more after it was mended."""
    runs, module = [], types.ModuleType("mended_executors")
    monkeypatch.setitem(sys.modules, "mended_executors", module)
    monkeypatch.delenv("LEAFGRAD_EXECUTOR", raising=False)

    def cell(change):
        class Mended:
            name, device_type = "mended", None

            def compile(self, graph):
                return Program(graph, change)

            def gains(self, graph):
                return True

        module.Mended = Mended

        class Hooks:
            leafgrad_executors = staticmethod(plugins.hookimpl(lambda: [ExecutorSpec(*spec)]))

        plugins.register(Hooks(), "mended", replace=True)

    def counted(program, inputs, arrays):
        runs.append(program)
        return arrays

    spec = ExecutorSpec("mended", "mended_executors:Mended", preferred=True)
    monkeypatch.setattr(
        plugins, "executors", lambda: iter([plugins.executor(n) for n in ("mended", "numpy", "replay")])
    )
    try:
        cell(nudged)
        with pytest.warns(PluginWarning, match="plugin 'mended' .*its preferred executor 'mended' failed"):
            leafgrad.compile(lambda x: x * 3)(leafgrad.ones(3))
        cell(counted)
        assert leafgrad.compile(lambda x: x * 3)(leafgrad.ones(3)).tolist() == [3, 3, 3]
        assert runs
    finally:
        plugins.unregister("mended")


def test_check_finds_no_difference_after_a_call_that_raised(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "check")
    held = SimpleNamespace(n=0)

    @leafgrad.compile
    def step(x):
        held.n += 1
        leafgrad.linalg.cholesky(leafgrad.diag(x))
        held.n += 1
        return x * held.n

    counts = []
    for value in (1.0, 1.0, 1.0, 1.0, -5.0, 1.0, 1.0, -2.0, 1.0):
        with nullcontext() if value > 0 else pytest.raises(leafgrad.linalg.LinAlgError):
            step(leafgrad.ones(3) * value)
        counts.append(held.n)
    assert counts == [2, 4, 6, 8, 9, 11, 13, 14, 16]

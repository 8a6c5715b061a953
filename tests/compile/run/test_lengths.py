"""What runs one program for batches of several lengths."""

import numpy as np
import pytest

import leafgrad
import leafgrad.nn.functional as F
from leafgrad import nn, optim
from leafgrad.compile.ir.lengths import resized
from leafgrad.compile.numpy import executor
from leafgrad.compile.run import executor as executors, misses
from leafgrad.compile.run.runner import Prepared, Runner
from leafgrad.errors import CompileError
from leafgrad.ops import elementwise
from leafgrad.ops.define import op

pytestmark = pytest.mark.filterwarnings("ignore:.*has been traced again")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """No length waits until it has come often."""
    monkeypatch.setattr(misses, "EARLY", 1000)


@pytest.fixture(autouse=True, params=["whole", "in chunks"])
def stages(request):
    """Whether batches are cut into chunks."""
    if request.param == "in chunks":
        request.getfixturevalue("in_chunks")


@pytest.fixture
def emitted(monkeypatch):
    """The programs whose source was written."""
    found, emit = [], executor.emit
    monkeypatch.setattr(executor, "emit", lambda *args: found.append(emit(*args)) or found[-1])
    return found


def training(kind):
    """A step, and a batch of some length."""
    leafgrad.manual_seed(0)
    if kind == "mlp":
        net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    elif kind == "convolution":
        net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    else:
        net = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    adam = optim.Adam(net.parameters())

    def step(x):
        adam.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        adam.step()
        return loss.detach(), x.mean(0), F.softmax(x, 0).cumsum(0)

    shape = {"mlp": (8,), "convolution": (1, 4, 4), "transformer": (16,)}[kind]
    return step, lambda n: leafgrad.rand(*((3, n) if kind == "transformer" else (n,)), *shape)


def lengths_of(compiled):
    (found,) = [call.lengths for call in compiled._calls.programs if call.lengths is not None]
    return found


LENGTHS = [100, 100, 101, 101, 101, *range(70, 127), 128, 255, 257, 1000]


@pytest.mark.parametrize("kind", ["mlp", "convolution", "transformer"])
def test_programs_of_many_lengths_are_made_at_a_few(kind, emitted):
    step, batch = training(kind)
    compiled = leafgrad.compile(step, executor="numpy")
    for n in LENGTHS[:-4]:
        compiled(batch(n))
    assert len(lengths_of(compiled).runners) == 32
    assert len(emitted) <= 3  # of them one for the first length
    assert len(lengths_of(compiled).made) < len(emitted)


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", ["mlp", "convolution", "transformer"])
def test_they_are_the_programs_that_would_be_made_at_each(kind):
    step, batch = training(kind)
    compiled = leafgrad.compile(step, executor="numpy")
    for n in LENGTHS[:5]:
        compiled(batch(n))
    found, (call,) = lengths_of(compiled), [c for c in compiled._calls.programs if c.lengths is not None]
    for n in (2, 3, 63, 64, 65, 101, 127, 128, 129, 255, 256, 257, 1000):
        leaves, _ = compiled._calls.following.leaves((batch(n),), {})
        sizes = call.sizes(leaves)
        runner, alone = found.runner(sizes), Runner(Prepared(resized(found.graph, found.at(sizes)), "numpy"))
        draw = np.random.default_rng(n)
        inputs = [draw.uniform(0.1, 1, v.shape).astype(v.dtype) for v in alone.graph.inputs]
        state = leafgrad.get_rng_state()
        ours = runner(inputs)
        leafgrad.set_rng_state(state)
        for a, b in zip(ours, alone(inputs), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    assert 1 < len(found.made) < 8


def test_a_length_that_answers_otherwise_has_a_program_of_its_own(emitted):
    compiled = leafgrad.compile(lambda x: ((x @ x.T).tanh() @ x).sum(0), executor="numpy")
    for n in (12, 12, 20, 20, 20, 21, 25):
        compiled(leafgrad.rand(n, 4))
    before = len(emitted)
    compiled(leafgrad.rand(40, 4))  # 40 x 40 elements are worth a buffer
    compiled(leafgrad.rand(41, 4))
    assert len(emitted) == before + 1


def test_an_op_whose_rule_needs_the_number_has_a_program_for_each_length(emitted):
    @op("elementwise")
    def twice(xp, x):
        return x * 2

    twice.rewrite(lambda graph, e: graph.emit(elementwise.mul, *e.inputs, 2 if e.out.shape[0] & 1 else 2.0))
    compiled = leafgrad.compile(lambda x: twice(x).sum(0), executor="numpy")
    for n in (12, 12, 20, 20, 20, 21, 22, 23, 24):
        x = leafgrad.rand(n, 4)
        assert leafgrad.allclose(compiled(x), 2 * x.sum(0))
    assert len(emitted) == 6


def test_programs_for_many_lengths_are_not_made_again_and_again(emitted):
    compiled = leafgrad.compile(lambda x: x.sum(0) / (x.shape[0] & 3 | 1), executor="numpy")
    for n in range(2, 40):
        compiled(leafgrad.rand(n, 4))
        compiled(leafgrad.rand(n, 4))
    assert all(call.lengths is None or len(call.lengths.made) <= 8 for call in compiled._calls.programs)


def test_a_plan_that_is_wrong_at_a_length_serves_no_other(monkeypatch):
    """An executor's plan is compared with replay at a few lengths; one that differs is not tried again."""

    class Wrong(executor.NumpyExecutor):
        def plan(self, graph):
            plan = super().plan(graph)

            class Other(executor.NumpyPlan):
                def at(self, settled):
                    program = plan.at(settled)
                    made.append(settled.values)
                    return lambda inputs: [a + 1 for a in program(inputs)]

            return Other(graph)

    made = []
    Wrong.__module__ = "elsewhere"
    monkeypatch.setattr(executors, "load", lambda name: Wrong())
    compiled = leafgrad.compile(lambda x: x.sin().sum(0), executor="numpy")
    for n in (12, 12):
        compiled(leafgrad.rand(n, 4))
    for _ in range(2):
        with pytest.raises(CompileError, match="from replay's"):
            compiled(leafgrad.rand(20, 4))
    for n in (21, 22, 23):
        x = leafgrad.rand(n, 4)
        assert leafgrad.allclose(compiled(x), x.sin().sum(0))
    assert len(made) == 1


def test_where_there_is_no_memory_for_a_length_the_error_names_what_takes_it(monkeypatch):
    compiled = leafgrad.compile(lambda x: x.sin().sum(0), executor="numpy")
    for n in (12, 12, 20, 20):
        compiled(leafgrad.rand(n, 4))

    def refuse(*args):
        raise MemoryError("none left")

    monkeypatch.setattr(executor.NumpyProgram, "allocate", refuse)
    with pytest.raises(MemoryError, match="take a smaller batch"):
        compiled(leafgrad.rand(21, 4))

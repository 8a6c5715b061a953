"""What makes a step open is an error that names the line, where a closed one is asked for; other errors of compile."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, plugins
from leafgrad.errors import CompileError, TraceError

HERE = "test_errors.py"


def traced_call(f, *args):
    """The second call of a function that must be closed."""
    compiled = leafgrad.compile(f, closed=True)
    compiled(*args)
    return compiled(*args)


def branch(x):
    return x * 2 if x.sum() > 0 else x


VALUES = {
    "float": lambda x: float(x.sum()),
    "int": lambda x: int(x.sum()),
    "bool": branch,
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.detach().numpy(),
    "print": lambda x: print(x),
    "format": lambda x: f"{x.sum():.3f}",
    "repr": lambda x: repr(x),
    "index": lambda x: [1, 2, 3, 4, 5][x.sum().long()],
    "nonzero": lambda x: leafgrad.nonzero(x),
    "mask": lambda x: x[x > 0],
    "in": lambda x: 1.0 in x,
}


@pytest.mark.parametrize("what", sorted(VALUES.keys() - {"bool", "item", "in"}))  # these may be known later
def test_values_are_not_known(what):
    x = leafgrad.ones(3)
    with pytest.raises(TraceError) as info:
        traced_call(VALUES[what], x)
    text = str(info.value)
    assert HERE in text
    assert "leafgrad.where" in text or "outside" in text
    assert x.tolist() == [1, 1, 1]
    assert (x + 1).tolist() == [2, 2, 2]


@pytest.mark.parametrize("what", VALUES)
def test_values_are_not_known_to_a_trace(what):
    with pytest.raises(TraceError, match="inside a traced function") as info:
        leafgrad.trace(VALUES[what], leafgrad.ones(3))
    assert HERE in str(info.value)


def test_values_of_captured_tensors_make_a_step_open():
    limit = leafgrad.tensor(3.0)
    with pytest.raises(TraceError, match=r"item\(\) at test_errors.py.* makes the step open"):
        traced_call(lambda x: x * limit.item(), leafgrad.ones(3))


@pytest.mark.parametrize("make", [leafgrad.tensor, leafgrad.as_tensor, leafgrad.from_numpy])
def test_arrays_make_a_step_open(make):
    array = np.ones(3, np.float32)
    with pytest.raises(TraceError, match=r"at test_errors.py.* makes the step open"):
        traced_call(lambda x: x + make(array), leafgrad.ones(3))
    with pytest.raises(TraceError, match="would bake the array into the program"):
        leafgrad.trace(lambda x: x + make(array), leafgrad.ones(3))


def test_python_data_is_a_constant():
    f = leafgrad.compile(lambda x: x + leafgrad.tensor([1.0, 2.0]))
    assert [f(leafgrad.ones(2)).tolist() for _ in range(3)] == [[2, 3]] * 3


class Counter:
    def __init__(self):
        self.calls = 0
        self.history = []
        self.last = None

    def count(self, x):
        self.calls += 1
        return x * 2

    def remember(self, x):
        self.history.append(1.0)
        return x * 2

    def recall(self, x):
        self.history.append(1.0)
        return x * len(self.history)

    def keep(self, x):
        self.last = x * 2
        return self.last + 1


def test_python_state_that_the_function_changes():
    counter = Counter()
    f = leafgrad.compile(counter.recall, closed=True)
    f(leafgrad.ones(1))
    f(leafgrad.ones(1))  # tells that the list changes
    with pytest.raises(TraceError, match=r"appends to the list self\.history, and reads it"):
        f(leafgrad.ones(1))


def test_python_state_changes_at_each_call_of_an_open_step():
    for name in ("count", "remember", "recall", "keep"):
        counter, other = Counter(), Counter()
        f = leafgrad.compile(getattr(counter, name))
        for i in range(5):
            x = leafgrad.ones(1) * i
            assert f(x).tolist() == getattr(other, name)(x).tolist()
        assert (counter.calls, counter.history) == (other.calls, other.history)
        assert name != "keep" or counter.last.tolist() == other.last.tolist() == [8]
        closes = name != "recall"  # numbers and tensors that change are followed, and lists that only grow
        assert ("open, since it" in f.explain()) is not closes


def test_tensors_that_no_guard_could_watch():
    batches = itertools.cycle([leafgrad.zeros(2), leafgrad.ones(2)])
    with pytest.raises(TraceError, match="is reached neither through its arguments nor through variables"):
        traced_call(lambda x: x + next(batches), leafgrad.ones(2))


def test_generators_are_not_reset():
    own = leafgrad.Generator()
    for f in (lambda: leafgrad.manual_seed(0), lambda: own.manual_seed(0), leafgrad.get_rng_state, own.seed):
        with pytest.raises(TraceError, match="not possible in a traced function"):
            leafgrad.trace(f)


def test_a_mode_that_is_left_behind():
    def f(x):
        leafgrad.set_grad_enabled(False)
        return x

    try:
        with pytest.raises(TraceError, match="leaves another gradient mode"):
            leafgrad.trace(f, leafgrad.ones(1))
        assert leafgrad.is_grad_enabled()
    finally:
        leafgrad.set_grad_enabled(True)


def test_create_graph_in_backward():
    w = nn.Parameter(leafgrad.ones(2))

    def f():
        w.grad = None
        (w**3).sum().backward(create_graph=True)

    with pytest.warns(UserWarning, match="reference cycle"), pytest.raises(TraceError, match="that is in a graph"):
        leafgrad.trace(f)
    assert w.grad is None


def test_what_can_be_compiled():
    with pytest.raises(TypeError, match="expected a function, a method or a Module, got the class Linear"):
        leafgrad.compile(nn.Linear)
    with pytest.raises(TypeError, match="got int"):
        leafgrad.compile(3)

    class Slotted:
        __slots__ = ()

        @leafgrad.compile
        def f(self, x):
            return x

    with pytest.raises(TypeError, match="compile the bound method instead"):
        Slotted().f(leafgrad.ones(1))


def test_an_error_of_the_function_is_its_own():
    def f(x):
        return x @ leafgrad.ones(5, 5)

    with pytest.raises(RuntimeError, match=r"cannot be multiplied|size mismatch|shapes"):
        leafgrad.trace(f, leafgrad.ones(2, 3))


# ---- executors ------------------------------------------------------------------------------------------------------


class Picky:
    """An executor that fails on one op: while it compiles, or later."""

    name = "picky"
    device_type = "cpu"
    late = False

    def compile(self, graph):
        from leafgrad.compile.ir.replay import ReplayProgram

        program = ReplayProgram(graph)
        bad = any(e.name == "sin" for e in graph.equations)
        if bad and not self.late:
            raise ValueError("no sines here")
        if not bad:
            return program
        return PickyProgram()


class PickyProgram:
    def __call__(self, inputs):
        raise ValueError("no sines now")

    def source(self):
        return ""

    def explain(self):
        return []


@pytest.fixture
def picky(monkeypatch):
    spec = plugins.ExecutorSpec("picky", "picky:Picky")
    find = plugins.executor
    monkeypatch.setattr(plugins, "executor", lambda name: spec if name == "picky" else find(name))
    resolve = plugins.resolve
    monkeypatch.setattr(plugins, "resolve", lambda target: Picky if target == "picky:Picky" else resolve(target))


@pytest.mark.parametrize("late", [False, True])
def test_an_executor_that_fails_names_the_equation_and_its_line(picky, monkeypatch, late):
    monkeypatch.setattr(Picky, "late", late)
    w = leafgrad.zeros(2)

    def f(x):
        w.add_(1)
        y = x.exp()
        y = y.sin()
        return y.cos()

    compiled = leafgrad.compile(f, executor="picky")
    with pytest.raises(CompileError, match=r"executor 'picky' failed on sin, from test_errors.py.*y = y.sin.*no sines"):
        compiled(leafgrad.ones(2))
    assert w.tolist() == [0, 0]


def test_executors_by_name_and_device():
    f = leafgrad.compile(lambda x: x * 2, executor="fortran")
    with pytest.raises(LookupError, match="unknown executor 'fortran': known are"):
        f(leafgrad.ones(1))
    leafgrad.testing.fake.register()
    f = leafgrad.compile(lambda x: x * 2, executor="numpy")
    x = leafgrad.ones(1, device="fake:0")
    with pytest.raises(CompileError, match="runs programs on 'cpu', but this one has arrays on fake"):
        f(x)


def test_an_error_of_an_op_while_a_program_runs_is_the_ops_own():
    @leafgrad.compile
    def f(x):
        return leafgrad.linalg.inv(x)

    good, singular = leafgrad.eye(2), leafgrad.zeros(2, 2)
    for _ in range(3):
        f(good)
    with pytest.raises(leafgrad.linalg.LinAlgError) as info:
        f(singular)
    assert "f" in [entry.name for entry in info.traceback]
    assert "open" not in f.explain()
    assert f(good).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_where_memory_runs_out_the_operation_is_named_and_nothing_is_done(executor):
    scarce = False

    @leafgrad.op("elementwise")
    def hungry(xp, x):
        if scarce:
            raise MemoryError("no more of it")
        return x * 1

    total = leafgrad.zeros(3)

    @leafgrad.compile(executor=executor)
    def step(x):
        total.add_(1)
        return hungry(x + leafgrad.rand(3))

    x = leafgrad.ones(3)
    for _ in range(3):
        step(x)
    before, scarce = leafgrad.get_rng_state().tolist(), True
    with pytest.raises(MemoryError, match=r"(?s)(?=.*hungry\(x: float32 \(3,\)\))(?=.*no more of it)") as info:
        step(x)
    assert info.value.__cause__ is not info.value
    assert (total.tolist(), leafgrad.get_rng_state().tolist()) == ([3, 3, 3], before)
    scarce = False
    step(x)
    assert total.tolist() == [4, 4, 4]


def test_a_write_through_a_view_that_only_its_own_rule_can_batch():
    """It is written sample by sample."""
    total = leafgrad.zeros(2, 3)

    @leafgrad.compile
    def add(x):
        return leafgrad.vmap(lambda row, x: row.as_strided((2,), (1,)).add_(x[:2]))(total, x)

    add(leafgrad.ones(2, 3))
    assert total.tolist() == [[1.0, 1.0, 0.0]] * 2


INTEGERS = {
    "repeat_interleave": lambda x, k: x.repeat_interleave(k, 0),
    "diagonal": lambda x, k: x.diagonal(k),
    "diag_embed": lambda x, k: x.diag_embed(k),
    "group_norm": lambda x, k: nn.functional.group_norm(x[None], k),
}


@pytest.mark.parametrize("function", INTEGERS.values(), ids=INTEGERS)
def test_a_float_in_place_of_an_int_is_eagers_error(function):
    errors = []
    for call in (function, leafgrad.compile(function)):
        with pytest.raises(TypeError) as caught:
            call(leafgrad.ones(4, 4), 2.0)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert "must be int" in errors[0]

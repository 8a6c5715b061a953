"""Closed steps of few ops on small arrays, which run uncompiled."""

import threading

import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.compile.run import idle as rule
from leafgrad.compile.run.idle import CALLS, FEW
from leafgrad.utils.checkpoints import Checkpoints

SMALL = leafgrad.ones(4)


@pytest.fixture(autouse=True)
def nobody_asks_for_an_executor(monkeypatch, small_steps_are_programs):
    monkeypatch.delenv("LEAFGRAD_EXECUTOR")
    monkeypatch.setattr(rule, "FEW", FEW)


def idle(compiled, x, calls=20):
    """How many of so many calls ran uncompiled."""
    for _ in range(calls):
        compiled(x)
    return compiled._calls.idle.total


def step(x):
    return (x * 3).sin().sum()


def test_a_step_of_few_small_ops_runs_uncompiled_once_its_program_is_known():
    compiled = leafgrad.compile(step)
    assert idle(compiled, SMALL) == 17
    assert compiled(SMALL).item() == pytest.approx(step(SMALL).item())
    assert "18 calls ran uncompiled, since so little takes no longer without a program" in str(compiled.explain())
    assert compiled.explain().summary.startswith("step: closed; 1 program")


def test_it_is_asked_again_now_and_then():
    compiled = leafgrad.compile(step)
    assert idle(compiled, SMALL, 3 * CALLS + 6) == 3 * CALLS
    assert compiled._calls.programs[0].hits == 6  # recorded, confirmed, and each time that it was asked


@pytest.mark.parametrize("rows", [40_000, 4])
def test_a_larger_batch_runs_as_a_program_at_once(rows):
    compiled = leafgrad.compile(step)
    idle(compiled, SMALL)
    assert idle(compiled, leafgrad.ones(rows, 1)) == 17 + (0 if rows > 4 else 17)
    assert compiled(leafgrad.ones(rows, 1)).item() == pytest.approx(step(leafgrad.ones(rows, 1)).item(), rel=1e-5)


def test_a_batch_of_any_length_is_judged_by_its_own():
    compiled = leafgrad.compile(lambda x: (x * 3).sin().sum(1))
    for n in (2, 3, 40_000):
        x = leafgrad.ones(n, 2)
        before = idle(compiled, x, 4)
        assert (idle(compiled, x) == before) is (n == 40_000)


def test_what_is_recorded_counts_not_what_is_left_after_the_passes():
    weight = leafgrad.ones(4, requires_grad=True)
    gradient = leafgrad.compile(lambda x: leafgrad.autograd.grad((weight * x).sum(), weight)[0])
    assert idle(gradient, SMALL) == 0
    many = leafgrad.compile(lambda x: sum(x * i for i in range(20)))
    assert idle(many, SMALL) == 0


def test_a_training_step_never_does():
    net = nn.Linear(2, 1)
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def train(x):
        sgd.zero_grad()
        net(x).sum().backward()
        sgd.step()

    assert idle(leafgrad.compile(train), leafgrad.ones(1, 2)) == 0


@pytest.mark.parametrize("asked", [{"executor": "numpy"}, {"closed": True}])
def test_who_asks_for_programs_gets_them(asked):
    assert idle(leafgrad.compile(step, **asked), SMALL) == 0


@pytest.mark.parametrize("setting", ["LEAFGRAD_EXECUTOR=numpy", "LEAFGRAD_COMPILE=always", "LEAFGRAD_COMPILE=check"])
def test_so_does_who_asks_by_the_environment(setting, monkeypatch):
    monkeypatch.setenv(*setting.split("="))
    assert idle(leafgrad.compile(step), SMALL) == 0


def test_what_the_step_reads_may_change_meanwhile():
    held = {"scale": 2.0, "count": 0}

    def counting(x):
        held["count"] += 1
        return (x * held["scale"]).sum() + held["count"]

    compiled = leafgrad.compile(counting)
    for i in range(300):
        held["scale"] = float(i // 7)
        assert compiled(SMALL).item() == 4 * held["scale"] + i + 1


def test_its_results_have_gradients():
    net = nn.Linear(2, 1)
    compiled = leafgrad.compile(net)
    x = leafgrad.ones(1, 2)
    for _ in range(10):
        net.zero_grad()
        compiled(x).sum().backward()
        assert net.weight.grad.tolist() == [[1, 1]]
    assert compiled._calls.idle.total


def test_calls_of_a_second_thread_run_as_programs():
    """They must not see what stands for numbers while the first one records."""
    compiled = leafgrad.compile(step)
    idle(compiled, SMALL)
    thread = threading.Thread(target=idle, args=(compiled, SMALL))
    thread.start()
    thread.join()
    assert compiled._calls.idle.total == 17
    assert idle(compiled, SMALL) == 37


def test_after_a_checkpoint_it_is_learnt_anew(tmp_path):
    """As in a process that resumes from there."""
    compiled = leafgrad.compile(step)
    idle(compiled, SMALL)
    first = compiled._calls
    Checkpoints(tmp_path).save({"x": SMALL})
    compiled(SMALL)
    assert compiled._calls is not first

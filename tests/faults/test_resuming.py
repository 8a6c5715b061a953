"""Trainings of many kinds that real signals kill go on to the bits of those that nobody killed."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time

import pytest
from small_trainings import EXECUTORS, MODELS, UPDATES, Small

import leafgrad
from leafgrad import Tensor, nn, optim
from leafgrad.batching.pytree import flatten
from leafgrad.utils import Checkpoints, Training

TESTS = "utils.checkpoints"
pytestmark = pytest.mark.usefixtures("hangups")

END, EVERY = 12, 2
CHANGING = ("draws", "appends", "counts", "steps a schedule", "reads a value", "is given a number")
QUICK = {("batch norm", "AdamW", "native"), ("GRU", "NAdam", "numpy"), ("dropout", "SGD", "none")}
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def in_child(act):
    """The process id of a child that does something, and then exits with 0."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        act()
        code = 0
    except SystemExit as end:
        code = end.code
    finally:
        os._exit(code)


def train(folder, kind, after=lambda: None):
    """A training in this folder, begun or continued; what it comes to lies there, too."""
    run = Small(*kind)
    checkpoints = Checkpoints(folder)
    parts = {"net": run.net, "optimizer": run.optimizer}
    with Training(folder, every=EVERY, resume=bool(checkpoints.paths()), **parts) as training:
        for n in training.steps(END):
            run.train(n, n + 1)
            after()
    leafgrad.save(run.state(), folder / "end")


def end_of(folder, kind):
    """The bits of a training that runs to its end in a process of its own."""
    assert os.waitpid(in_child(lambda: train(folder, kind)), 0)[1] == 0
    leaves, _ = flatten(leafgrad.load(folder / "end"))
    return [leaf.numpy().tobytes() if isinstance(leaf, Tensor) else leaf for leaf in leaves]


def kill(folder, kind, chance):
    """Begin or continue a training, and kill it some steps later, anywhere in one of them or as it saves."""
    reader, writer = os.pipe()
    pid = in_child(lambda: train(folder, kind, lambda: os.write(writer, b".")))
    os.close(writer)
    begun = None
    for _ in range(chance.randrange(1, END - 2)):
        if not os.read(reader, 1):
            break
        begun, before = time.monotonic(), begun
    if begun is not None:
        time.sleep(chance.uniform(0, min(0.2, begun - (before or begun - 0.01))))
    os.kill(pid, chance.choice(SIGNALS))
    os.waitpid(pid, 0)
    os.close(reader)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, id=", ".join(kind), marks=() if kind in QUICK else pytest.mark.slow)
        for kind in itertools.product(MODELS, UPDATES, EXECUTORS)
    ],
)
def test_killed_and_resumed_to_the_same_bits(kind, tmp_path, tried):
    chance = random.Random(str(kind))
    expected = end_of(tmp_path / "whole", kind)
    for _ in range(2):
        kill(tmp_path / "killed", kind, chance)
    assert end_of(tmp_path / "killed", kind) == expected
    tried("a training of one of 12 models by one of 4 optimizers, killed", 2, "resumed to the same bits")


class Counter:
    """A number that a checkpoint has, too."""

    def __init__(self):
        self.numbers = {"n": 0}

    def state_dict(self):
        return dict(self.numbers)

    def load_state_dict(self, state):
        self.numbers.update(state)


def changing(does, folder, executor, end, every, resume):
    """The bits to which a training comes whose compiled step, beside what it computes, does this."""
    leafgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
    adam, counter, kept = optim.Adam(net.parameters(), lr=0.05), Counter(), []
    schedule, numbers = optim.lr_scheduler.ExponentialLR(adam, 0.9), counter.numbers
    data = leafgrad.randn(16, 6)

    def step(x, number):
        adam.zero_grad()
        loss = net(x * number).square().mean() / 3
        if does == "draws":
            loss = loss * random.uniform(0.5, 1.5)
        if does == "counts":
            numbers["n"] += 1
            loss = loss * (1 + 0.1 / numbers["n"])
        loss.backward()
        adam.step()
        if does == "appends":
            kept.append(loss.detach())
        if does == "steps a schedule":
            schedule.step()
        return loss.item() if does == "reads a value" else loss

    compiled = leafgrad.compile(step, executor=executor)
    parts = {"net": net, "adam": adam, "schedule": schedule, "counter": counter}
    with Training(folder, every=every, resume=resume, **parts) as training:
        for n in training.steps(end):
            random.seed(n)
            compiled(data, 1 / (n + 3) if does == "is given a number" else 0.3)
    return [t.numpy().tobytes() for t in flatten([net.state_dict(), adam.state_dict()])[0] if isinstance(t, Tensor)]


@pytest.mark.parametrize(
    ("does", "every", "executor"),
    [
        pytest.param(*given, marks=() if given == ("counts", 3, "numpy") else pytest.mark.slow)
        for given in itertools.product(CHANGING, (1, 2, 3, 5), ("numpy", "native"))
    ],
)
def test_a_step_that_learns_from_its_calls_is_resumed_to_the_same_bits(does, every, executor, tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "always")
    expected = changing(does, tmp_path / "whole", executor, 2 * every + 5, every, False)
    for end in (2 * every, 2 * every + 5):
        found = changing(does, tmp_path / "stopped", executor, end, every, end > 2 * every)
    assert found == expected

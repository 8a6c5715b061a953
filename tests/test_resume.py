"""Exact resume: a run that is stopped, saved and continued ends with the bits of one that was never stopped.

In a new process as in this one, uncompiled and in closed compiled steps, by whichever executor.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from small_trainings import MODELS, UPDATES, Small

import leafgrad
from leafgrad import Tensor, nn, optim
from leafgrad.batching.pytree import flatten
from leafgrad.utils import Checkpoints
from leafgrad.utils.data import BatchSampler, RandomSampler

OPTIMIZERS = {
    "SGD": lambda params: optim.SGD(params, lr=0.05, momentum=0.9),
    "Adam": lambda params: optim.Adam(params, lr=0.01, amsgrad=True),
    "NAdam": lambda params: optim.NAdam(params, lr=0.01),
}
CASES = {
    "SGD": ("SGD", False),
    "Adam": ("Adam", False),
    "SGD compiled": ("SGD", True),
    "Adam compiled": ("Adam", True),
    "NAdam compiled": ("NAdam", True),
}
STOP, END = 13, 24  # steps; an epoch has 8, so the run stops within one


class Run:
    """A small training with dropout, a schedule and shuffled batches; all that it depends on is in its state."""

    def __init__(self, optimizer, compiled):
        leafgrad.manual_seed(0)
        self.data = leafgrad.randn(32, 5)
        self.net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 1))
        self.optimizer = OPTIMIZERS[optimizer](self.net.parameters())
        self.schedule = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 30)
        self.shuffle = leafgrad.Generator().manual_seed(1)
        self.sampler = BatchSampler(RandomSampler(self.data, generator=self.shuffle), 4, drop_last=True)
        self.epoch = self.shuffle.get_state()  # from which the order of the current epoch was drawn
        self.batch = 0  # batches of the epoch that are done
        self.steps = 0
        self.step = leafgrad.compile(self.eager) if compiled else self.eager

    def eager(self, x):
        self.optimizer.zero_grad()
        loss = ((self.net(x) - x.sum(1, keepdim=True)) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def train(self, end):
        while self.steps < end:
            self.shuffle.set_state(self.epoch)
            for i, indices in enumerate(self.sampler):
                if i < self.batch:
                    continue
                self.step(self.data[indices])
                self.schedule.step()
                self.steps, self.batch = self.steps + 1, i + 1
                if self.steps == end:
                    return
            self.epoch, self.batch = self.shuffle.get_state(), 0

    def state(self):
        return {
            "net": self.net.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "rng": leafgrad.get_rng_state(),
            "place": (self.epoch, self.batch, self.steps),
        }

    def load(self, state):
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        leafgrad.set_rng_state(state["rng"])
        self.epoch, self.batch, self.steps = state["place"]


def resumed(folder, name):
    """A run that was saved in a folder, continued."""
    run = Run(*CASES[name])
    run.load(leafgrad.load(folder / f"{name}.before"))
    run.train(END)
    return run.state()


def resume(folder):
    """Continue all runs that were saved in a folder."""
    for name in CASES:
        leafgrad.save(resumed(folder, name), folder / f"{name}.after")


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    """The last states of all runs: never stopped, continued in this process, and in a new one."""
    folder = tmp_path_factory.mktemp("runs")
    whole = {}
    for name in CASES:
        run = Run(*CASES[name])
        run.train(STOP)
        leafgrad.save(run.state(), folder / f"{name}.before")
        run.train(END)
        whole[name] = run.state()
    subprocess.run([sys.executable, str(Path(__file__)), str(folder)], check=True, timeout=120)
    return {name: (whole[name], resumed(folder, name), leafgrad.load(folder / f"{name}.after")) for name in CASES}


def tensors(state):
    """The weights, and what the optimizer remembers."""
    found = dict(state["net"])
    for i, entry in state["optimizer"]["state"].items():
        found |= {f"{i}.{key}": t for key, t in entry.items()}
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_new_process_goes_on_to_the_same_bits(states, name):
    whole, here, found = states[name]
    for expected in (whole, here):
        theirs = tensors(found)
        assert theirs.keys() == tensors(expected).keys()
        for key, t in tensors(expected).items():
            assert theirs[key].numpy().tobytes() == t.numpy().tobytes(), key
        assert found["optimizer"]["param_groups"] == expected["optimizer"]["param_groups"]
        assert found["schedule"] == expected["schedule"]
        assert found["rng"].tolist() == expected["rng"].tolist()
        assert found["place"][1:] == expected["place"][1:]


def test_a_step_that_reads_its_loss_begins_to_learn_at_each_checkpoint(tmp_path):
    """What its first calls compute before they learn that is rounded otherwise than in its program."""
    checkpoints = Checkpoints(tmp_path)

    def weights(start, end):
        leafgrad.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
        sgd = optim.SGD(net.parameters(), lr=0.1)

        @leafgrad.compile(closed=True)
        def step(x, y):
            sgd.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            sgd.step()
            return loss.item()

        if start:
            net.load_state_dict(checkpoints.latest())
        for i in range(start, end):
            draw = leafgrad.Generator().manual_seed(i)
            step(leafgrad.randn(8, 4, generator=draw), leafgrad.randint(0, 3, (8,), generator=draw))
            if i == STOP - 1:
                checkpoints.save(net.state_dict())
        return [p.tolist() for p in net.parameters()]

    whole = weights(0, END)
    assert weights(STOP, END) == whole


# ---- models, optimizers and executors ------------------------------------------------------------------------------

QUICK = {("batch norm", "AdamW"), ("dropout", "SGD"), ("GRU", "RMSprop"), ("spectral norm", "NAdam")}


@pytest.mark.parametrize("executor", ["numpy", "replay", pytest.param("native", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("model", "update"),
    [
        pytest.param(m, u, marks=() if (m, u) in QUICK else pytest.mark.slow)
        for m, u in itertools.product(MODELS, UPDATES)
    ],
)
def test_a_compiled_run_goes_on_to_the_same_bits(model, update, executor, tmp_path):
    whole = Small(model, update, executor)
    whole.train(0, 6)
    leafgrad.save(whole.state(), tmp_path / "state")
    whole.train(6, 12)
    expected = whole.state()
    run = Small(model, update, executor)
    run.load(leafgrad.load(tmp_path / "state"))
    run.train(6, 12)
    assert run.step.explain().splitlines()[0].endswith("traced again 0 times")
    found = run.state()
    for theirs, ours in zip(flatten(found)[0], flatten(expected)[0], strict=True):
        same = isinstance(ours, Tensor) and ours.numpy().tobytes() == theirs.numpy().tobytes()
        assert same or theirs == ours


if __name__ == "__main__":
    resume(Path(sys.argv[1]))

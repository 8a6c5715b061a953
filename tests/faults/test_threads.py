"""Eight threads train and compute at once, on models of their own and on one that they share, as each would alone."""

from __future__ import annotations

import copy
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import leafgrad as lg
from leafgrad import nn, optim
from leafgrad.compile.record.trace import trace_call
from leafgrad.errors import TraceError
from leafgrad.ops import op, rounding, shape
from leafgrad.utils.data import DataLoader, TensorDataset

THREADS = 8
OPTIMIZERS = [optim.SGD, optim.Adam, optim.RMSprop, optim.AdamW]


class Job:
    """One training, eager or compiled, which reads a model that others read as well."""

    def __init__(self, number, shared):
        lg.manual_seed(number)
        self.net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
        self.optimizer = OPTIMIZERS[number % len(OPTIMIZERS)](self.net.parameters(), lr=0.01)
        self.shared = shared
        x = lg.rand(40, 3)
        generator = lg.Generator().manual_seed(number)
        self.loader = DataLoader(TensorDataset(x, x.sum(1)), batch_size=8, shuffle=True, generator=generator)
        self.step = lg.compile(self.eager) if number % 2 else self.eager

    def eager(self, x, y):
        self.optimizer.zero_grad()
        with lg.no_grad():
            target = y.unsqueeze(1) + self.shared(x)
        loss = (self.net(x) - target).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self, epochs=6):
        """All losses, and the weights at the end."""
        losses = [self.step(x, y).item() for _ in range(epochs) for x, y in self.loader]
        return losses, [t.tolist() for t in self.net.state_dict().values()]


@pytest.mark.times(1, 5)
def test_each_trains_as_it_would_alone(count, tried):
    shared = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    before = sys.getswitchinterval()
    for turn in range(count):
        expected = [Job(turn + n, shared).run() for n in range(THREADS)]
        jobs = [Job(turn + n, shared) for n in range(THREADS)]
        sys.setswitchinterval(1e-5)
        try:
            with ThreadPoolExecutor(THREADS) as pool:
                found = [future.result(timeout=120) for future in [pool.submit(job.run) for job in jobs]]
        finally:
            sys.setswitchinterval(before)
        assert found == expected
    tried("eight threads that train, half of them compiled", THREADS * count, "the bits of each as if it were alone")


def test_gradients_of_a_shared_model(tried):
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    alone = copy.deepcopy(net)
    parameters = list(net.parameters())
    inputs = [lg.rand(10, 3) for _ in range(THREADS)]

    def gradients(x):
        return [
            [g.tolist() for g in lg.autograd.grad(net(x).square().sum(), parameters)] for _ in range(50)
        ]  # fmt: skip

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(gradients, inputs))
    for x, each in zip(inputs, found, strict=True):
        alone.zero_grad()
        alone(x).square().sum().backward()
        expected = [p.grad.tolist() for p in alone.parameters()]
        assert all(one == expected for one in each)
    tried("gradients of a model that eight threads share", 50 * THREADS, "right in each")


def test_rules_of_one_op_are_made_while_those_of_another_are(monkeypatch):
    """In a child of a fork nobody would open a lock that both take."""
    going, free = threading.Event(), threading.Event()
    compile_rule = op.compile_rule

    def slow(call):
        going.set()
        free.wait(20)
        return compile_rule(call)

    monkeypatch.setattr(op, "compile_rule", slow)
    vars(rounding.ceil).pop("rules", None)
    vars(shape.cat).pop("rules", None)
    first = threading.Thread(target=rounding.ceil.written)
    first.start()
    going.wait(20)
    monkeypatch.setattr(op, "compile_rule", compile_rule)
    second = threading.Thread(target=shape.cat.written)
    second.start()
    second.join(10)
    late = second.is_alive()
    free.set()
    first.join()
    assert not late


def test_a_trace_leaves_the_default_dtype_that_another_thread_sets():
    def other():
        thread = threading.Thread(target=lg.set_default_dtype, args=(lg.float64,))
        thread.start()
        thread.join()

    def f(x):
        other()
        return x * 2

    try:
        trace_call(f, (lg.ones(2),), {})
        assert lg.get_default_dtype() is lg.float64
    finally:
        lg.set_default_dtype(lg.float32)
    with pytest.raises(TraceError, match="default dtype"):
        trace_call(lambda x: lg.set_default_dtype(lg.float64), (lg.ones(2),), {})
    assert lg.get_default_dtype() is lg.float32


def test_the_default_dtype_is_that_of_the_process():
    """As PyTorch's."""
    found = []
    lg.set_default_dtype(lg.float64)
    try:
        thread = threading.Thread(target=lambda: found.append(lg.ones(2).dtype))
        thread.start()
        thread.join()
    finally:
        lg.set_default_dtype(lg.float32)
    assert found == [lg.float64]

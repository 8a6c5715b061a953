"""Other threads compute and train as ever while one traces and compiles, on models of their own and on the same."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.compile.record.watch import Watch, watching
from leafgrad.compile.run import executor

THREADS = 4


def network(seed):
    leafgrad.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))


def data(seed):
    return (leafgrad.arange(20.0) + seed).reshape(10, 2).sin()


def train(net, x, steps=60):
    """The parameters after some steps of eager training."""
    adam = optim.Adam(net.parameters(), lr=0.01)
    for _ in range(steps):
        adam.zero_grad()
        (net(x) - x.sum(dim=1, keepdim=True)).square().mean().backward()
        adam.step()
    return [p.detach().clone() for p in net.parameters()]


@contextlib.contextmanager
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def beside(compiling, *others):
    """Run ``others`` in threads while ``compiling()`` is called again and again in one; the results of the others."""
    done = threading.Event()

    def again():
        count = 0
        while not done.is_set():
            compiling()
            count += 1
        return count

    with frequent_switches(), ThreadPoolExecutor(len(others) + 1) as pool:
        traces = pool.submit(again)
        futures = [pool.submit(other) for other in others]
        try:
            results = [future.result(timeout=60) for future in futures]
        finally:
            done.set()
        assert traces.result(timeout=60) > 0
    return results


def compile_a_step(net, x, executor="numpy"):
    """Compile a step of training on a model and call it three times: once eagerly, once traced, once as a program."""
    sgd = optim.SGD(net.parameters(), lr=0.0)

    @leafgrad.compile(executor=executor)
    def step(x):
        sgd.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        sgd.step()
        return loss

    losses = [step(x) for _ in range(3)]
    assert leafgrad.allclose(losses[0], losses[2])


def compile_an_inference(net, x, executor="numpy"):
    f = leafgrad.compile(lambda x: net(x) * 2, executor=executor)
    results = [f(x) for _ in range(3)]
    assert leafgrad.allclose(results[0], results[2])


def same(a, b):
    return all(leafgrad.allclose(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_training_on_models_of_their_own(executor):
    expected = [train(network(i), data(i)) for i in range(THREADS)]
    nets, traced = [network(i) for i in range(THREADS)], network(99)
    others = [lambda i=i: train(nets[i], data(i)) for i in range(THREADS)]
    results = beside(lambda: compile_a_step(traced, data(99), executor), *others)
    assert all(same(a, b) for a, b in zip(results, expected, strict=True))


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_inference_on_the_model_that_is_traced(executor):
    net = network(0)
    expected = [net(data(i)).detach() for i in range(THREADS)]

    def infer(i):
        with leafgrad.no_grad():
            return [net(data(i)) for _ in range(400)]

    results = beside(
        lambda: compile_an_inference(net, data(9), executor), *[lambda i=i: infer(i) for i in range(THREADS)]
    )
    for each, right in zip(results, expected, strict=True):
        assert all(leafgrad.allclose(result, right) for result in each)


def test_gradients_on_the_model_that_is_traced():
    net = network(0)
    parameters = list(net.parameters())

    def gradients(i):
        return leafgrad.autograd.grad(net(data(i)).square().mean(), parameters)

    expected = [gradients(i) for i in range(THREADS)]
    others = [lambda i=i: [gradients(i) for _ in range(500)] for i in range(THREADS)]
    results = beside(lambda: compile_an_inference(net, data(9)), *others)
    for each, right in zip(results, expected, strict=True):
        assert all(same(result, right) for result in each)


def assign(p, which, count=800):
    """Assign again and again, and count the assignments that were not there at once or at the next one."""
    lost = 0
    for i in range(count):
        value = leafgrad.full(tuple(p.shape), float(i))
        setattr(p, which, value)
        now = getattr(p, which)
        lost += now is None or bool((now != i).any())
        leafgrad.ones(3).sum()
        now = getattr(p, which)
        lost += now is None or bool((now != i).any())
    return lost


@pytest.mark.parametrize("which", ["grad", "data"])
def test_assignments_to_parameters_that_are_traced_are_not_lost(which):
    net = network(0)
    lost = beside(lambda: traced_only(net), *[lambda p=p: assign(p, which) for p in net.parameters()])
    assert lost == [0] * len(lost)


def traced_only(net):
    """Trace and run a function that reads a model which others write to: its values are theirs to choose."""
    f = leafgrad.compile(lambda x: net(x) * 2)
    for _ in range(3):
        assert f(data(9)).shape == (10, 1)


@pytest.mark.parametrize("which", ["grad", "data"])
def test_assignments_to_other_parameters_are_not_lost(which):
    net, traced = network(0), network(1)
    lost = beside(lambda: compile_a_step(traced, data(9)), *[lambda p=p: assign(p, which) for p in net.parameters()])
    assert lost == [0] * len(lost)


def test_tensors_made_in_other_threads_hold_numbers():
    """Nothing that another thread makes while one traces is a placeholder."""
    net = network(0)

    def make():
        made = []
        for i in range(500):
            made.append((leafgrad.full((3,), float(i)) * 2 + 1).sum().item())
            assert leafgrad.tensor([1.0, 2.0]).tolist() == [1.0, 2.0]
        return made

    results = beside(lambda: compile_a_step(net, data(9)), *[make] * THREADS)
    assert results == [[3 * (2.0 * i + 1) for i in range(500)]] * THREADS


def test_modes_of_other_threads_are_their_own():
    net, p = network(0), nn.Parameter(leafgrad.ones(3))

    def modes(quiet):
        for _ in range(500):
            with leafgrad.no_grad() if quiet else leafgrad.enable_grad():
                assert (p * 2).requires_grad is not quiet
        return True

    assert all(beside(lambda: compile_a_step(net, data(9)), *[lambda q=q: modes(q) for q in (True, False) * 2]))


def test_one_compiled_function_in_many_threads():
    net = network(0)
    f = leafgrad.compile(lambda x, k: net(x) * k)

    def call(i):
        for n in range(40):
            x, k = data(i)[: 2 + (n + i) % 3], float(n % 3)
            assert leafgrad.allclose(f(x, k), net(x) * k)
        return True

    with frequent_switches(), ThreadPoolExecutor(THREADS) as pool:
        assert all(future.result(timeout=60) for future in [pool.submit(call, i) for i in range(THREADS)])


def test_compiled_training_in_many_threads():
    expected = [train(network(i), data(i)) for i in range(THREADS)]

    def compiled_training(net, x):
        adam = optim.Adam(net.parameters(), lr=0.01)

        @leafgrad.compile
        def step():
            adam.zero_grad()
            loss = (net(x) - x.sum(dim=1, keepdim=True)).square().mean()
            loss.backward()
            adam.step()

        for _ in range(60):
            step()
        return [p.detach().clone() for p in net.parameters()]

    nets = [network(i) for i in range(THREADS)]
    with frequent_switches(), ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(compiled_training, nets[i], data(i)) for i in range(THREADS)]
        results = [future.result(timeout=60) for future in futures]
    for ours, theirs in zip(results, expected, strict=True):
        assert all(leafgrad.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(ours, theirs, strict=True))


def test_the_collector_stays_off_while_any_thread_is_watched():
    """Its callbacks, in the thread that is still watched, would count as what the function does."""
    inside, leave = threading.Event(), threading.Event()

    def other():
        with watching(Watch()):
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with watching(Watch()):
        thread.start()
        assert inside.wait(10)
    assert not gc.isenabled()
    with watching(Watch()):
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_the_collector_rests_while_a_call_becomes_a_program_and_then_goes_on(monkeypatch):
    asked = []

    def find(name, graph):
        asked.append(gc.isenabled())
        return found(name, graph)

    found = executor.find
    monkeypatch.setattr(executor, "find", find)
    step = leafgrad.compile(lambda x: x.sin() * x)
    for _ in range(3):
        step(leafgrad.ones(3))
        assert gc.isenabled()
    assert asked == [False]

    failing = leafgrad.compile(lambda x: x + leafgrad.ones(2))
    for _ in range(3):
        with pytest.raises(RuntimeError):
            failing(leafgrad.ones(3))
        assert gc.isenabled()

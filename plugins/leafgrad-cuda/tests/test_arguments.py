"""What kernels are given: told to the device only where it is new, and memory that is used again only by its owner."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_steps import burgers

import leafgrad
from leafgrad import nn
from leafgrad.compile.ir.sources import Expression
from leafgrad_cuda.device import Emulated
from leafgrad_cuda.executor import CudaProgram


@pytest.fixture
def asked(monkeypatch):
    """What the device was asked for: addresses of arrays, copies of the table, and arrays of results."""
    counts = {"address": 0, "write": 0, "empty": 0}
    for name in counts:
        real = getattr(Emulated, name)

        def count(self, *given, _name=name, _real=real):
            counts[_name] += len(given[1]) if _name == "empty" else 1
            return _real(self, *given)

        monkeypatch.setattr(Emulated, name, count)
    return counts


def test_a_call_asks_nothing_of_parameters_and_their_updates(asked):
    _, step, args = burgers(rows=64, width=8, depth=2)
    run = leafgrad.compile(step, executor="cuda-emulated")
    for _ in range(5):
        run(*args)
    asked.update(address=0, write=0, empty=0)
    run(*args)
    assert asked["empty"] == 0  # gradients and the loss are where those of the call before the last were
    numbers = sum(isinstance(source, Expression) for source in run.graph.inputs.values())
    assert asked["address"] <= len(args) + numbers  # not of parameters and the optimizer's state
    assert asked["write"] <= 1  # for both graphs of the call


def program_of(step, *args):
    run = leafgrad.compile(step, executor="cuda-emulated")
    for _ in range(3):
        run(*args)
    return CudaProgram(run.graph, Emulated(("forward",)))


def test_what_is_only_written_has_its_memory_again_when_its_results_are_gone():
    w, kept = leafgrad.ones(6), leafgrad.ones(6)

    def step(x):
        with leafgrad.no_grad():
            w.add_(x.sin().cos().exp() * 2)
        return x * 3

    program = program_of(step, kept)
    given = [np.full(6, 2, "float32") for _ in program.graph.inputs]
    first = program(given)
    second = program(given)
    (at,) = [i for i, v in enumerate(program.graph.ends) if v in program.graph.written]
    assert second[at] is not first[at]  # somebody has the first
    was = id(first[at])
    del first
    third = program(given)
    assert id(third[at]) == was
    assert third[1 - at] is not second[1 - at]  # which somebody has


def test_results_have_their_memory_again_when_nobody_has_it():
    program = program_of(lambda x: (x.sin().exp() * 2, x.cos().exp() + 1), leafgrad.ones(6))
    given = [np.full(6, 2, "float32")]
    want = [a.copy() for a in program(given)]

    def agree(*kept):
        """Many calls, of which each is right, and what was kept stays."""
        before = [a.copy() for a in kept]
        for k in range(5):
            for got, w in zip(program([np.full(6, 2 + k, "float32")]), program(given), strict=True):
                assert not np.shares_memory(got, w)
        np.testing.assert_array_equal(program(given), want)
        for a, b in zip(kept, before, strict=True):
            np.testing.assert_array_equal(a, b)

    agree()
    seen = {id(a) for _ in range(6) for a in program(given)}
    assert len(seen) == 4  # of two calls in turn
    agree(program(given)[0])
    agree(program(given)[1][2:4])
    agree(*program(given))
    agree(np.frombuffer(memoryview(program(given)[0]), "float32"))
    agree(np.from_dlpack(program(given)[1]))


def test_a_result_that_others_hold_as_an_array_is_not_used_again():
    run = leafgrad.compile(lambda x: (x.sin().exp() * 2).cos(), executor="cuda-emulated")
    held, want = [], []
    for k in range(12):
        out = run(leafgrad.full((5,), float(k)))
        held.append(out.numpy())
        want.append(out.clone())
    np.testing.assert_array_equal(held, leafgrad.stack(want).numpy())


def test_a_result_that_is_kept_keeps_no_gradients():
    _, step, args = burgers(rows=64, width=8, depth=2)
    run = leafgrad.compile(step, executor="cuda-emulated")
    for _ in range(4):
        run(*args)
    (loss,), *gradients = CudaProgram(run.graph, Emulated(("forward",))).fresh
    assert loss.shape == ()
    assert len(gradients) == 1


def test_a_parameter_with_another_array_is_read_and_written_there():
    leafgrad.manual_seed(0)
    net = nn.Linear(3, 2)
    x = leafgrad.rand(5, 3)

    def step():
        loss = (net(x) ** 2).mean().exp()
        (g,) = leafgrad.autograd.grad(loss, [net.weight])
        with leafgrad.no_grad():
            net.weight.sub_(g, alpha=0.1)
        return loss

    run = leafgrad.compile(step, executor="cuda-emulated")
    for _ in range(4):
        run()
    old = net.weight.detach()
    before = old.numpy().copy()
    net.weight.data = leafgrad.zeros(2, 3)
    bias = float((net.bias.detach() ** 2).mean().exp())
    assert float(run()) == pytest.approx(bias, rel=1e-6)
    assert net.weight.detach().abs().sum() > 0
    np.testing.assert_array_equal(old.numpy(), before)

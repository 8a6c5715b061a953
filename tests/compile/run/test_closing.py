"""Ordinary steps close: all are compiled with ``closed=True``, or are closed in the end."""

from __future__ import annotations

import collections
import math
import operator
from types import SimpleNamespace

import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.autograd import Function
from leafgrad.utils.checkpoint import checkpoint

X = leafgrad.ones(2, 3)


def trained(make, compiled=True):
    """The losses of five calls of the step that ``make`` gives of a net and Adam."""
    leafgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    step = make(net, optim.Adam(net.parameters(), lr=0.1))
    run = leafgrad.compile(step, closed=True) if compiled else step
    return [run(X).item() for _ in range(5)]


def closes(make):
    assert trained(make) == pytest.approx(trained(make, compiled=False), rel=1e-4)


def test_a_compiled_method_that_is_named_as_another_that_it_calls():
    class Trainer:
        def __init__(self):
            self.net = nn.Linear(3, 1)
            self.adam = optim.Adam(self.net.parameters())

        @leafgrad.compile
        def step(self, x):
            self.adam.zero_grad()
            self.net(x).sum().backward()
            self.adam.step()
            return self.net.weight.grad * 1

    trainer = Trainer()
    for _ in range(4):
        assert trainer.step(X).tolist() == [[2, 2, 2]]
    assert "open" not in trainer.step.explain()


def test_shapes_in_attributes():
    class Keeps(nn.Module):
        def __init__(self, w):
            super().__init__()
            self.shape = w.shape

        def forward(self, w):
            return w.reshape(self.shape) * self.shape[0]

    net = nn.Linear(3, 1)
    net.keeps = Keeps(net.weight)
    f = leafgrad.compile(lambda: net.keeps(net.weight).sum() * 1, closed=True)
    f()
    assert f().item() == pytest.approx(net.weight.sum().item())


def test_hooks_of_parameters():
    factor = 3.0

    def step(net, adam):
        net[0].weight.register_hook(lambda g: g * factor)

        def run(x):
            adam.zero_grad()
            loss = net(x).pow(2).sum()
            loss.backward()
            adam.step()
            return loss

        return run

    closes(step)
    w = leafgrad.ones(2, requires_grad=True)
    w.register_hook(lambda g: g * factor)
    f = leafgrad.compile(lambda x: leafgrad.autograd.grad((w * x).sum(), w)[0], closed=True)
    assert [f(leafgrad.ones(2)).tolist() for _ in range(4)] == [[3, 3]] * 4
    factor = 5.0
    assert f(leafgrad.ones(2)).tolist() == [5, 5]


def test_an_optimizer_for_each_parameter_that_steps_in_the_backward_pass():
    def step(net, _):
        steps = {p: optim.Adam([p], lr=0.1) for p in net.parameters()}

        def take(p):
            steps[p].step()
            steps[p].zero_grad()

        for p in net.parameters():
            p.register_post_accumulate_grad_hook(take)

        def run(x):
            loss = net(x).pow(2).sum()
            loss.backward()
            return loss

        return run

    closes(step)


class Reversed(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -g


def test_a_function_that_saves_nothing_below_what_is_freed():
    def step(net, adam):
        def run(x):
            adam.zero_grad()
            loss = Reversed.apply(net(x)).pow(2).sum()
            loss.backward()
            adam.step()
            return loss

        return run

    closes(step)


def test_a_function_that_saves_nothing_and_would_run():
    f = leafgrad.compile(lambda x: Reversed.apply(x) * 2)
    x = leafgrad.ones(3, requires_grad=True)
    for _ in range(4):
        (g,) = leafgrad.autograd.grad(f(x).sum(), x)
        assert g.tolist() == [-2, -2, -2]
    assert "the backward of ReversedBackward would have to run" in f.explain()


def test_a_function_beside_what_is_freed():
    def step(a, b):
        freed = (a * a).exp()
        leafgrad.autograd.grad(freed.sum(), a)
        return Reversed.apply(b) * 2 + freed

    for run in (step, *[leafgrad.compile(step)] * 4):
        a, b = leafgrad.ones(2, requires_grad=True), leafgrad.ones(2, requires_grad=True)
        (g,) = leafgrad.autograd.grad(run(a, b).sum(), b)
        assert g.tolist() == [-2, -2]


def test_a_checkpoint():
    def step(net, adam):
        def run(x):
            adam.zero_grad()
            loss = checkpoint(net, x).pow(2).sum()
            loss.backward()
            adam.step()
            return loss

        return run

    closes(step)


def test_what_only_the_first_call_executes():
    made = []
    w = nn.Parameter(leafgrad.ones(3))
    sgd = optim.SGD([w], lr=0.1)

    def prepare(x):
        made.append(dir(x))  # may read all attributes, such as the counters of an optimizer

    def step(x):
        if not made:
            prepare(x)
        sgd.zero_grad()
        (w * x).sum().backward()
        sgd.step()
        return w.grad * 1

    compiled = leafgrad.compile(step)
    for _ in range(5):
        compiled(leafgrad.ones(3))
    assert "open" not in compiled.explain()


CHANGES = {
    "pop": lambda held, n: held.tasks.pop(),
    "pop the first": lambda held, n: held.tasks.pop(0),
    "insert": lambda held, n: held.tasks.insert(0, float(n)),
    "remove": lambda held, n: held.tasks.remove(held.tasks[1]),
    "append and reverse": lambda held, n: (held.tasks.append(0.5), held.tasks.reverse()),
    "append and sort": lambda held, n: (held.tasks.append(-0.5), held.tasks.sort()),
    "pop of a set": lambda held, n: held.tasks.append(held.numbers.pop()),
    "discard of a set": lambda held, n: held.numbers.discard(float(n)),
    "add to a set": lambda held, n: held.numbers.add(float(20 + n)),
    "another dict of an object": lambda held, n: setattr(held.part, "__dict__", {"k": held.part.k + 1}),
}
IN_C = {
    "a slice": lambda held, n: setattr(held, "kept", slice(n, n + 2)),
    "a deque": lambda held, n: setattr(held, "kept", collections.deque(range(3), maxlen=n)),
    "a text": lambda held, n: setattr(held, "kept", operator.mod("%*d", (n, 1))),
    "a float": lambda held, n: setattr(held, "kept", math.ldexp(1.0, n)),
}


class Part:
    def __init__(self):
        self.k = 1


@pytest.mark.parametrize("given", IN_C)
@pytest.mark.parametrize("change", CHANGES)
def test_a_call_that_begins_anew_changes_lists_and_sets_once(change, given):
    def found(compiler):
        held = SimpleNamespace(n=0, tasks=[float(i) for i in range(20)], numbers={float(i) for i in range(20)}, kept=0)
        held.part = Part()

        def step(x):
            held.n += 1
            CHANGES[change](held, held.n)
            IN_C[given](held, held.n)
            return x * held.tasks[0] * held.part.k

        step, said = compiler(step), []
        for _ in range(7):
            said.append((step(leafgrad.ones(1)).item(), held.tasks[:], [*held.numbers], held.part.k, str(held.kept)))
        return said, [held.numbers.pop() for _ in range(3)]

    assert found(leafgrad.compile) == found(lambda step: step)


def test_keys_of_the_user_are_compared_as_often_as_uncompiled():
    class Key:
        asked = 0

        def __hash__(self):
            Key.asked += 1
            return 1

        def __eq__(self, other):
            Key.asked += 1
            return True

    def found(compiler):
        held, seen = {Key(): 2.0}, []
        step = compiler(lambda x: x * held[Key()])
        Key.asked = 0
        for _ in range(6):
            step(leafgrad.ones(1))
            seen.append(Key.asked)
        return seen

    assert found(leafgrad.compile) == found(lambda step: step)


def test_arguments_that_overlap_are_told_from_arrays_of_numpy():
    @leafgrad.compile
    def step(a, b):
        a.add_(b)
        return a * b

    for _ in range(4):
        x = leafgrad.ones(4, 3)
        step(x[:3], x[1:])
    assert "since it writes memory that another tensor of it shows" in step.explain().summary

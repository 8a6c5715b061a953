"""Tensors and numbers that a step keeps in objects outside."""

from __future__ import annotations

import collections
import copy
import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn, optim


@row
def history_of_losses_as_numbers(w):
    net, history = nn.Linear(3, 1), []
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        sgd.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        sgd.step()
        history.append(loss.item())

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)


@row
def history_of_losses_as_tensors(w):
    net, history = nn.Linear(3, 1), []

    def step(x):
        loss = net(x).square().mean()
        history.append(loss.detach())
        return loss

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)


@row
def tensor_with_history_is_kept(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(last=None)

    def step(x):
        o.last = p * x
        return o.last.sum()

    step = w.compile(step)
    for i in range(6):
        w.call(step, points() + i)
        o.last.sum().backward()
        w.see("gradient", p.grad)


@row
def tensor_in_a_dict_is_kept(w):
    table = {}

    def step(x, name):
        table[name] = x * 2
        return sum(table.values())

    step = w.compile(step)
    for name in w.turns("a", "b", "c"):
        w.call(step, points(), name)


@row
def tensor_in_a_global_is_kept(w):
    m = w.module("keeping", "last = None\ndef step(x):\n    global last\n    last = x * 2\n    return last + 1\n")
    step = w.compile(m.step)
    for i in range(7):
        w.call(step, points() + i)
        w.see("kept", m.last)


@row(leaves=False)
def argument_is_kept(w):
    log = []

    def step(x):
        log.append(x)
        return x * 2

    step = w.compile(step)
    for i in range(7):
        x = points() + i
        w.call(step, x)
        w.see("is it one", log[-1] is x)
        x.zero_()


@row
def tensors_of_last_calls_are_used(w):
    recent = collections.deque([leafgrad.zeros(3), leafgrad.ones(3)], maxlen=2)

    def step(x):
        y = x + recent[0] * 2 - recent[1]
        recent.append(y)
        return y

    step = w.compile(step)
    for i in range(8):
        w.call(step, points() + i)


@row
def parameter_is_rebound_inside(w):
    o = types.SimpleNamespace(p=leafgrad.ones(3, requires_grad=True))

    def step(x):
        (g,) = leafgrad.autograd.grad((o.p * x).square().sum(), o.p)
        o.p = (o.p - 0.1 * g).detach().requires_grad_()
        return o.p

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def parameters_are_made_inside(w):
    layers = []

    def step(x):
        if len(layers) < 3:
            layers.append(nn.Linear(3, 3))
        for layer in layers:
            x = layer(x)
        return x

    step = w.compile(step)
    for i in range(8):
        w.call(step, points())
        if i == 5:
            layers.pop()


@row
def attribute_is_deleted_inside(w):
    o = types.SimpleNamespace(once=1.0)

    def step(x):
        k = getattr(o, "once", 5.0)
        if hasattr(o, "once"):
            del o.once
        return x * k

    step = w.compile(step)
    for i in range(8):
        w.call(step, points())
        if i == 4:
            o.once = 3.0


@row
def list_is_sorted_and_reversed_inside(w):
    numbers = [3.0, 1.0, 2.0]

    def step(x):
        numbers.reverse()
        return x * numbers[0]

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def set_grows_inside(w):
    seen = set()

    def step(x, name):
        known = name in seen
        seen.add(name)
        return x * 2 if known else x

    step = w.compile(step)
    for name in w.turns("a", "b", "c"):
        w.call(step, points(), name)


@row
def argument_list_is_changed_inside(w):
    def step(x, log):
        log.append(len(log))
        return x * len(log)

    step, log = w.compile(step), []
    for _ in range(7):
        w.call(step, points(), log)


@row
def deep_copies_that_share_memory(w):
    o = types.SimpleNamespace(table=leafgrad.arange(6.0).reshape(2, 3))

    def step(x):
        y = (x * 2).detach()
        memo = {}
        made, part, table, row_of_it = copy.deepcopy([y, y.view(-1)[1:], o.table, o.table[0]], memo)
        made.add_(1)
        row_of_it.mul_(3)
        later = copy.deepcopy(y[:1], memo)
        return made, part, table, row_of_it, later, part._is_view()

    step = w.compile(step)
    for k in range(8):
        w.call(step, points() + k)

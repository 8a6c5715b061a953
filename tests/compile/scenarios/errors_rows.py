"""Exceptions raised by a step on some of its calls, and what it did before."""

from __future__ import annotations

import sys
import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn


@row
def exception_on_some_calls(w):
    o = types.SimpleNamespace(bad=False)

    def step(x):
        if o.bad:
            raise ValueError("bad")
        return x * 2

    step = w.compile(step)
    for o.bad in w.turns(False, True, False):
        w.call(step, points())


@row
def exception_after_effects(w):
    o, t, log = types.SimpleNamespace(bad=False), points(), []

    def step(x):
        t.add_(x)
        log.append(o.bad)
        if o.bad:
            raise ValueError("bad")
        t.mul_(2)
        return x * 2

    step = w.compile(step)
    for o.bad in w.turns(False, True, False):
        w.call(step, points())


@row
def exception_between_backward_and_step(w):
    net, o = nn.Linear(3, 1), types.SimpleNamespace(bad=False)
    sgd = leafgrad.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        sgd.zero_grad()
        net(x).sum().backward()
        if o.bad:
            raise RuntimeError("bad")
        sgd.step()

    step = w.compile(step)
    for o.bad in w.turns(False, True, False):
        w.call(step, points())


@row
def exception_of_the_first_call(w):
    o = types.SimpleNamespace(calls=0)

    def step(x):
        o.calls += 1
        if o.calls < 3:
            raise ValueError("not yet")
        return x * 2

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)


@row
def exception_of_a_shape(w):
    step = w.compile(lambda x, y: x + y)
    for n in w.turns(3, 4, 1):
        w.call(step, points(), points(n))


@row
def exception_caught_inside(w):
    o = types.SimpleNamespace(n=3)

    def step(x):
        try:
            return x + leafgrad.ones(o.n)
        except RuntimeError:
            return x * 100

    step = w.compile(step)
    for o.n in w.turns(3, 4, 1):
        w.call(step, points())


@row
def exception_of_the_user_with_a_value(w):
    class Stop(Exception):
        pass

    o = types.SimpleNamespace(limit=100.0)

    def step(x):
        loss = x.sum()
        if loss.item() > o.limit:
            raise Stop(loss.item())
        return loss

    step = w.compile(step)
    for o.limit in w.turns(100.0, 1.0, 7.0):
        w.call(step, points())


@row
def keyboard_interrupt(w):
    o, log = types.SimpleNamespace(bad=False), []

    def step(x):
        log.append(1)
        if o.bad:
            raise KeyboardInterrupt
        return x * 2

    step = w.compile(step)
    for o.bad in w.turns(False, True, False):
        w.call(step, points())


@row
def keyboard_interrupt_within_no_grad(w):
    o, p = types.SimpleNamespace(bad=False), nn.Parameter(points())

    def step(x):
        with leafgrad.no_grad():
            p.add_(x)
            if o.bad:
                raise KeyboardInterrupt
        return p * x

    step = w.compile(step)
    for o.bad in w.turns(False, True, False):
        w.call(step, points())


@row
def system_exit(w):
    o = types.SimpleNamespace(bad=False)

    def step(x):
        if o.bad:
            sys.exit(3)
        return x * 2

    step = w.compile(step)
    for o.bad in w.turns(False, True, False):
        w.call(step, points())


@row
def finally_with_state(w):
    o = types.SimpleNamespace(bad=False, entered=0, left=0)

    def step(x):
        o.entered += 1
        try:
            if o.bad:
                raise ValueError("bad")
            return x * o.entered
        finally:
            o.left += 1

    step = w.compile(step)
    for o.bad in w.turns(False, True, False):
        w.call(step, points())

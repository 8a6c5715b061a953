"""Leaves that are views, tensors filled bit by bit."""

from __future__ import annotations

import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn, optim


@row
def leaf_that_is_a_view_of_what_was_made_for_it(w):
    x = leafgrad.linspace(0, 1, 5)[:, None].requires_grad_()

    def step(y):
        (x * y).sum().backward()
        return (x**2).sum()

    step = w.compile(step)
    for i in range(8):
        w.call(step, leafgrad.full((5, 1), 1.0 + i))
        if i in (1, 4):
            x.grad = None


@row
def leaf_that_is_a_column(w):
    xy = points(6).reshape(3, 2)
    x = xy[:, :1].requires_grad_()

    def step():
        x.grad = None
        (x**2).sum().backward()
        return x.grad

    step = w.compile(step)
    w.watch(xy)
    for i in range(7):
        w.call(step)
        xy.add_(1 + i)


@row
def leaf_that_is_a_view_is_written_to(w):
    x = leafgrad.linspace(0, 1, 5)[:, None].requires_grad_()

    def step():
        x.grad = None
        (x.sin() ** 2).sum().backward()

    step = w.compile(step)
    for i in range(7):
        w.call(step)
        with leafgrad.no_grad():
            x.add_(0.1 * (i + 1))


@row
def leaf_that_is_a_view_is_written_to_inside(w):
    base = points(6)
    x = base[1:4].requires_grad_()

    def step():
        x.grad = None
        (x.sin() ** 2).sum().backward()
        with leafgrad.no_grad():
            x.sub_(x.grad, alpha=0.1)

    step = w.compile(step)
    w.watch(base)
    for _ in range(7):
        w.call(step)


@row
def optimizer_over_a_leaf_that_is_a_view(w):
    base = points(6)
    x = base[1:4].requires_grad_()
    adam = optim.Adam([x], lr=0.1)

    def step():
        adam.zero_grad()
        loss = (x.sin() ** 2).sum()
        loss.backward()
        adam.step()
        return loss

    step = w.compile(step)
    w.watch(base)
    for i in range(8):
        w.call(step)
        if i in (1, 4):
            base.mul_(2)


@row
def derivative_with_respect_to_a_leaf_that_is_a_view(w):
    net = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))
    o = types.SimpleNamespace(x=None)

    def step():
        net.zero_grad()
        (u_x,) = leafgrad.autograd.grad(net(o.x).sum(), o.x, create_graph=True)
        loss = (u_x**2).mean()
        loss.backward()
        return loss

    step = w.compile(step)
    for n in w.turns(5, 6, 7):
        o.x = leafgrad.linspace(0, 1, n)[:, None].requires_grad_()
        w.call(step)


@row
def leaf_made_inside_by_a_view(w):
    xy = points(6).reshape(3, 2)

    def step(k):
        x = xy[:, :1].detach().requires_grad_()
        (x**2 * k).sum().backward()
        return x.grad

    step = w.compile(step)
    for k in w.turns(1.0, 2.0, 3.0):
        w.call(step, k)
        xy.add_(1)


@row
def fill_by_a_loop(w):
    table, o = leafgrad.zeros(4, 3), types.SimpleNamespace(i=0)

    def step(x):
        table[o.i % 4] = x
        o.i += 1
        return table.sum(dim=0)

    step = w.compile(step)
    for i in range(9):
        w.call(step, points() + i)


@row
def replay_buffer_of_tensors(w):
    buffer, o = leafgrad.zeros(4, 3), types.SimpleNamespace(i=0)
    step = w.compile(lambda x: (buffer[o.i].copy_(x), buffer.mean())[1])
    for o.i in w.turns(0, 1, 3):
        w.call(step, points() * (o.i + 1))

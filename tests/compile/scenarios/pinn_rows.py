"""Physics-informed steps: derivatives of derivatives inside, points drawn anew in many ways, weights that move."""

from __future__ import annotations

import itertools
import math
import random
import types

import numpy as np
from compile.scenarios.harness import row

import leafgrad
from leafgrad import nn, optim
from leafgrad.autograd import grad

LEGACY = np.random


def physics(w, draw, *turns, change=None, clip=None):
    """A step of training on u'' + k u = 0 at the points of ``draw()``; ``change(value)`` between the calls."""
    net = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1))
    adam = optim.Adam(net.parameters(), lr=0.01)
    o = types.SimpleNamespace(k=1.0)

    def step():
        x = draw()
        u = net(x)
        (u_x,) = grad(u.sum(), x, create_graph=True)
        (u_xx,) = grad(u_x.sum(), x, create_graph=True)
        loss = ((u_xx + o.k * u) ** 2).mean() + net(leafgrad.zeros(1, 1)).square().sum()
        adam.zero_grad()
        loss.backward(inputs=list(net.parameters()))
        adam.step()
        return loss

    step = w.compile(step)
    for value in w.turns(*turns) if turns else range(7):
        if change:
            change(o, value)
        w.call(step)


def column(numbers):
    return leafgrad.tensor([[float(v)] for v in numbers], requires_grad=True)


@row
def points_fixed_and_a_coefficient_that_changes(w):
    x = column([0.1, 0.5, 0.9])
    physics(w, lambda: x, 1.0, 2.0, 4.0, change=lambda o, k: setattr(o, "k", k))


@row
def points_drawn_by_leafgrad(w):
    physics(w, lambda: leafgrad.rand(5, 1, requires_grad=True))


@row
def points_drawn_by_a_generator_of_leafgrad(w):
    source = leafgrad.Generator().manual_seed(1)
    physics(w, lambda: leafgrad.rand(5, 1, generator=source).requires_grad_())


@row
def points_drawn_by_random(w):
    physics(w, lambda: column(random.random() for _ in range(5)))


@row
def points_drawn_by_numpy_legacy(w):
    physics(w, lambda: leafgrad.tensor(LEGACY.rand(5, 1), dtype=leafgrad.float32, requires_grad=True))


@row
def points_drawn_by_a_numpy_generator(w):
    rng = np.random.default_rng(0)
    physics(w, lambda: leafgrad.from_numpy(rng.random((5, 1), dtype="float32")).requires_grad_())


@row
def points_written_into_an_array(w):
    a, rng = np.zeros((5, 1), "float32"), np.random.default_rng(0)

    def draw():
        a[:] = rng.random((5, 1))
        return leafgrad.from_numpy(a).requires_grad_()

    physics(w, draw)


@row
def points_written_into_a_tensor(w):
    x = leafgrad.zeros(5, 1, requires_grad=True)

    def draw():
        with leafgrad.no_grad():
            x.uniform_()
        return x

    physics(w, draw)


@row
def points_from_an_iterator(w):
    batches = itertools.cycle([column([0.1, 0.2]), column([0.5, 0.6]), column([0.8, 0.9])])
    physics(w, lambda: next(batches))


@row
def points_from_a_generator_function(w):
    def sampler():
        i = 0
        while True:
            i += 1
            yield leafgrad.linspace(0, 1 / i, 5)[:, None].requires_grad_()

    it = sampler()
    physics(w, lambda: next(it))


@row
def points_from_a_list_that_is_refilled(w):
    pool = []

    def draw():
        if not pool:
            pool.extend(column([i / 10, i / 5]) for i in range(1, 4))
        return pool.pop()

    physics(w, draw)


@row
def points_from_an_attribute_replaced_outside(w):
    holder = types.SimpleNamespace(x=None)
    physics(w, lambda: holder.x, 0.1, 0.5, 0.9, change=lambda o, v: setattr(holder, "x", column([v, v / 2])))


@row
def more_points_at_some_calls(w):
    holder = types.SimpleNamespace(x=None)

    def change(o, n):
        holder.x = leafgrad.linspace(0, 1, n)[:, None].requires_grad_()

    physics(w, lambda: holder.x, 4, 6, 5, change=change)


@row
def points_of_a_low_discrepancy_sequence(w):
    o = types.SimpleNamespace(i=0)

    def draw():
        o.i += 5
        return column((o.i + j) * math.sqrt(2) % 1 for j in range(5))

    physics(w, draw)


@row
def points_where_the_residual_was_large(w):
    o = types.SimpleNamespace(x=column([0.1, 0.4, 0.6, 0.9]))

    def draw():
        worst = int((o.x.detach() * 7).sin().abs().argmax())
        centre = o.x[worst].item()
        o.x = column([centre * 0.5, centre * 0.9, centre * 0.95 + 0.05, 0.5])
        return o.x

    physics(w, draw)


def parts(net, x):
    """The two parts of a loss: residual and boundary."""
    u = net(x)
    (u_x,) = grad(u.sum(), x, create_graph=True)
    return ((u_x - u) ** 2).mean(), (net(leafgrad.zeros(1, 1)) - 1).square().sum()


@row
def loss_weights_that_change(w):
    net, x, weights = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1)), column([0.1, 0.9]), [1.0, 1.0]

    def step():
        net.zero_grad()
        loss = sum(weight * part for weight, part in zip(weights, parts(net, x), strict=True))
        loss.backward(inputs=list(net.parameters()))
        return loss

    step = w.compile(step)
    for weights[1] in w.turns(1.0, 10.0, 0.0):
        w.call(step)


@row
def loss_weights_balanced_inside(w):
    net, x, o = (
        nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1)),
        column([0.1, 0.9]),
        types.SimpleNamespace(k=1.0),
    )
    sgd = optim.SGD(net.parameters(), lr=0.05)

    def step():
        residual, boundary = parts(net, x)
        o.k = 0.9 * o.k + 0.1 * (residual / boundary).item()
        sgd.zero_grad()
        (residual + o.k * boundary).backward(inputs=list(net.parameters()))
        sgd.step()
        return residual, boundary

    step = w.compile(step)
    for _ in range(7):
        w.call(step)


@row
def causal_weights_kept_in_a_tensor(w):
    net, x = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1)), column([0.1, 0.5, 0.9])
    o = types.SimpleNamespace(eps=1.0, weights=leafgrad.ones(3, 1))

    def step():
        net.zero_grad()
        u = net(x)
        (u_x,) = grad(u.sum(), x, create_graph=True)
        each = (u_x - u) ** 2
        o.weights = leafgrad.exp(-o.eps * each.detach().cumsum(dim=0))
        loss = (o.weights * each).mean()
        loss.backward(inputs=list(net.parameters()))
        return loss

    step = w.compile(step)
    for o.eps in w.turns(1.0, 10.0, 0.1):
        w.call(step)


@row
def unknown_coefficient_is_trained(w):
    net, x = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1)), column([0.1, 0.5, 0.9])
    k, o = nn.Parameter(leafgrad.tensor(0.5)), types.SimpleNamespace(every=2, i=0)
    adam, other = optim.Adam(net.parameters(), lr=0.01), optim.SGD([k], lr=0.1)

    def step():
        o.i += 1
        u = net(x)
        (u_x,) = grad(u.sum(), x, create_graph=True)
        loss = ((u_x - k * u) ** 2).mean()
        adam.zero_grad()
        other.zero_grad()
        loss.backward(inputs=[*net.parameters(), k])
        adam.step()
        if o.i % o.every == 0:
            other.step()
        return loss, k

    step = w.compile(step)
    for o.every in w.turns(2, 1, 3):
        w.call(step)


@row
def operator_is_a_function_in_an_attribute(w):
    net, x = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1)), column([0.1, 0.5])
    o = types.SimpleNamespace(residual=None)

    def step():
        net.zero_grad()
        u = net(x)
        (u_x,) = grad(u.sum(), x, create_graph=True)
        loss = (o.residual(x, u, u_x) ** 2).mean()
        loss.backward(inputs=list(net.parameters()))
        return loss

    step = w.compile(step)
    for o.residual in w.turns(lambda x, u, u_x: u_x - u, lambda x, u, u_x: u_x * x, lambda x, u, u_x: u):
        w.call(step)


@row
def order_of_the_derivative_changes(w):
    net, x, o = (
        nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1)),
        column([0.1, 0.5]),
        types.SimpleNamespace(n=1),
    )

    def step():
        net.zero_grad()
        u = net(x)
        for _ in range(o.n):
            (u,) = grad(u.sum(), x, create_graph=True)
        loss = (u**2).mean()
        loss.backward(inputs=list(net.parameters()))
        return loss

    step = w.compile(step)
    for o.n in w.turns(1, 2, 3):
        w.call(step)


@row
def gradient_of_the_points_accumulates(w):
    net, x = nn.Linear(1, 1), column([0.1, 0.5])

    def step():
        u = net(x).sin()
        (u_x,) = grad(u.sum(), x, create_graph=True)
        (u_x**2).sum().backward()

    step = w.compile(step)
    for i in range(7):
        w.call(step)
        if i == 4:
            x.grad = None

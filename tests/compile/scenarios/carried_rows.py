"""What a step carries from call to call: graphs, losses, copies, and what it asks of tensors."""

from __future__ import annotations

import copy
import types

from compile.scenarios.harness import points, row
from compile.scenarios.steps import batch, network

import leafgrad
from leafgrad import nn, optim


@row
def tensor_kept_by_a_generator_between_calls(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(x=None)

    def averages():
        mean = leafgrad.zeros(3)
        while True:
            mean = mean * 0.5 + (p * o.x).detach() * 0.5
            yield mean

    it = averages()

    def step(x):
        o.x = x
        return next(it) * 2

    step = w.compile(step)
    for i in range(8):
        w.call(step, points() + i)


@row
def history_over_several_calls(w):
    cell, o = nn.RNNCell(3, 2), types.SimpleNamespace(h=None, i=0)

    def step(x):
        o.i += 1
        o.h = cell(x, o.h)
        if o.i % 3 == 0:
            cell.zero_grad()
            o.h.square().sum().backward()
            o.h = o.h.detach()
        return o.h

    step = w.compile(step)
    w.watch(cell)
    for i in range(9):
        w.call(step, batch(i))


@row
def loss_of_the_last_call_is_differentiated(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(loss=None)

    def step(x):
        if o.loss is not None:
            o.loss.backward()
        o.loss = (p.sin() * x).sum()

    step = w.compile(step)
    w.watch(p)
    for i in range(8):
        w.call(step, points() + i)


@row
def best_weights_are_kept(w):
    net, o = network(), types.SimpleNamespace(best=float("inf"), weights=None)
    sgd = optim.SGD(net.parameters(), lr=0.3)

    def step(x):
        sgd.zero_grad()
        loss = net(x).square().mean()
        if loss.item() < o.best:
            o.best = loss.item()
            o.weights = {name: t.clone() for name, t in net.state_dict().items()}
        loss.backward()
        sgd.step()
        return loss

    step = w.compile(step)
    for i in range(9):
        w.call(step, batch(i % 3))


@row
def copies_of_a_net_are_kept(w):

    net, kept = network(), []
    sgd = optim.SGD(net.parameters(), lr=0.3)

    def step(x):
        sgd.zero_grad()
        net(x).square().mean().backward()
        sgd.step()
        if len(kept) < 3:
            kept.append(copy.deepcopy(net))
        return sum(other(x).mean() for other in kept)

    step = w.compile(step)
    for i in range(7):
        w.call(step, batch(i))


@row
def facts_about_tensors_are_read(w):
    p, log = nn.Parameter(points()), []

    def step(x):
        y = p * x
        log.append((y.shape, y.dtype, y.requires_grad, y.is_leaf, y.dim(), y.numel(), len(y), p.grad is None))
        y.sum().backward()
        log.append((isinstance(y, leafgrad.Tensor), type(p) is nn.Parameter, y.grad_fn is None, p.grad is None))
        return y

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)
        if i == 3:
            p.grad = None


@row
def identity_of_tensors_is_read(w):
    p, log = nn.Parameter(points()), []

    def step(x):
        y = x.detach()
        log.append((x is y, p.grad is p.grad, x is x.requires_grad_(False), p.data is p, y in [1, None][:0]))
        (p * x).sum().backward()
        log.append(p.grad is p.grad)
        return {id(x): 1, id(p): 2}[id(x)] * x

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)

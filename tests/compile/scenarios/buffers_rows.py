"""Buffers, statistics, dropout, tied weights and what else lives in networks."""

from __future__ import annotations

import copy
import types

from compile.scenarios.harness import points, row
from compile.scenarios.steps import batch, gradients, network

import leafgrad
from leafgrad import nn, optim


@row
def probability_of_dropout(w):
    net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5))
    step = w.compile(net)
    for net[1].p in w.turns(0.5, 0.1, 0.0):
        w.call(step, batch())


@row
def dropout_in_training_and_evaluation(w):
    net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5))
    step = w.compile(net)
    for training in w.turns(True, False, True):
        net.train(training)
        w.call(step, batch())


@row
def batch_norm_keeps_statistics(w):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    step = gradients(w, net)
    for i in range(7):
        w.call(step, batch(i))


@row
def batch_norm_in_training_and_evaluation(w):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    step = w.compile(net)
    for i, training in enumerate(w.turns(True, False, True)):
        net.train(training)
        w.call(step, batch(i))


@row
def batch_norm_whose_momentum_changes(w):
    norm = nn.BatchNorm1d(3)
    step = w.compile(norm)
    for i, norm.momentum in enumerate(w.turns(0.1, 0.9, None)):
        w.call(step, batch(i))


@row
def batch_norm_whose_statistics_are_reset(w):
    norm = nn.BatchNorm1d(3)
    step = w.compile(norm)
    for i in range(8):
        w.call(step, batch(i))
        if i in (1, 4):
            norm.reset_running_stats()
        if i == 5:
            norm.running_mean = leafgrad.ones(3)


@row
def eval_inside(w):
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))

    def step(x):
        net.eval()
        quiet = net(x)
        net.train()
        return quiet + net(x)

    step = w.compile(step)
    for _ in range(6):
        w.call(step, batch())


@row
def buffer_that_counts(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", leafgrad.tensor(0))

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    net = Net()
    step = w.compile(net)
    for i in range(8):
        w.call(step, points())
        if i == 4:
            net.calls.zero_()


@row
def buffer_that_is_reassigned(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", leafgrad.zeros(3))

        def forward(self, x):
            self.mean = 0.5 * self.mean + 0.5 * x.mean(dim=0)
            return x - self.mean

    net = Net()
    step = w.compile(net)
    for i in range(8):
        w.call(step, batch(i))


@row
def weights_that_are_tied(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.b(self.a(x).tanh())

    net = Net()
    step = gradients(w, net)
    for tied in w.turns(False, True, False):
        net.b.weight = net.a.weight if tied else nn.Parameter(leafgrad.ones(3, 3))
        w.call(step, batch())


@row
def lazy_layer(w):
    net = nn.Sequential(nn.LazyLinear(4), nn.Tanh())
    step = w.compile(net)
    for i in range(6):
        w.call(step, batch(i))


@row
def recurrent_state_is_carried(w):
    cell, o = nn.GRUCell(3, 4), types.SimpleNamespace(h=None)

    def step(x):
        o.h = cell(x, o.h)
        o.h = o.h.detach()
        return o.h.sum()

    step = w.compile(step)
    for i in range(8):
        w.call(step, batch(i))
        if i == 4:
            o.h = None


@row
def exponential_average_of_a_net(w):
    net = network()
    average = copy.deepcopy(net)
    sgd, o = optim.SGD(net.parameters(), lr=0.1), types.SimpleNamespace(decay=0.9)

    def step(x):
        sgd.zero_grad()
        (net(x) ** 2).mean().backward()
        sgd.step()
        with leafgrad.no_grad():
            for ours, theirs in zip(average.parameters(), net.parameters(), strict=True):
                ours.mul_(o.decay).add_(theirs, alpha=1 - o.decay)

    step = w.compile(step)
    for o.decay in w.turns(0.9, 0.5, 0.0):
        w.call(step, batch())


@row
def gradient_clipping(w):
    net, o = network(), types.SimpleNamespace(limit=1.0)
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        sgd.zero_grad()
        (net(x) ** 2).sum().backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), o.limit)
        sgd.step()
        return norm

    step = w.compile(step)
    for o.limit in w.turns(1.0, 0.1, 0.01):
        w.call(step, batch())


@row
def embedding_of_changing_indices(w):
    table = nn.Embedding(5, 3)

    def step(index):
        table.zero_grad()
        (table(index) ** 2).sum().backward()

    step = w.compile(step)
    for index in w.turns([0, 1], [1, 1], [4, 2, 3]):
        w.call(step, leafgrad.tensor(index))


@row
def initialization_inside(w):
    net, o = nn.Linear(3, 2), types.SimpleNamespace(gain=1.0)

    def step(x):
        nn.init.xavier_uniform_(net.weight, gain=o.gain)
        return net(x)

    step = w.compile(step)
    for o.gain in w.turns(1.0, 2.0, 3.0):
        w.call(step, batch())

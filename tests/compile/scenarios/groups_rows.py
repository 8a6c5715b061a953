"""Optimizers whose groups, parameters and states come and go; closures; optimizers of the user."""

from __future__ import annotations

import copy
import types

from compile.scenarios.harness import row
from compile.scenarios.steps import batch, network, training

import leafgrad
from leafgrad import nn, optim


def late_group(w, optimizer_of, when):
    net, extra = network(), nn.Parameter(leafgrad.ones(3))
    optimizer = optimizer_of(net.parameters())

    def step(x):
        optimizer.zero_grad()
        loss = (net(x * extra) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    step = w.compile(step)
    for i in range(9):
        if i == when:
            optimizer.add_param_group({"params": [extra], "lr": 0.5})
        w.call(step, batch(i))


@row
def group_added_to_adam_before_the_second_call(w):
    late_group(w, lambda p: optim.Adam(p, lr=0.1), 1)


@row
def group_added_to_adam_late(w):
    late_group(w, lambda p: optim.Adam(p, lr=0.1), 5)


@row
def group_added_to_sgd_with_momentum(w):
    late_group(w, lambda p: optim.SGD(p, lr=0.1, momentum=0.9), 2)


@row
def parameter_that_has_its_first_gradient_late(w):
    net, extra, o = network(), nn.Parameter(leafgrad.ones(3)), types.SimpleNamespace(on=False)
    adam = optim.Adam([*net.parameters(), extra], lr=0.1)

    def step(x):
        adam.zero_grad()
        loss = (net(x * extra if o.on else x) ** 2).mean()
        loss.backward()
        adam.step()
        return loss

    step = w.compile(step)
    for o.on in w.turns(False, True, False):
        w.call(step, batch())


@row
def freezing_and_thawing(w):
    net = network()
    adam = optim.Adam(net.parameters(), lr=0.1)
    step = training(w, net, adam)
    for frozen in w.turns(False, True, False):
        net[0].weight.requires_grad_(not frozen)
        w.call(step, batch())


@row
def network_that_grows_under_its_optimizer(w):
    net = network()
    sgd = optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
    step = training(w, net, sgd)
    for i in range(8):
        w.call(step, batch(i))
        if i in (1, 4):
            layer = nn.Linear(1, 1)
            net.append(layer)
            sgd.add_param_group({"params": layer.parameters()})


@row
def optimizer_is_replaced(w):
    net = network()
    o = types.SimpleNamespace(optimizer=None)

    def step(x):
        o.optimizer.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        o.optimizer.step()
        return loss

    step = w.compile(step)
    for cls in w.turns(optim.SGD, optim.Adam, optim.RMSprop):
        o.optimizer = cls(net.parameters(), lr=0.05)
        w.call(step, batch())


@row
def optimizer_as_an_argument(w):
    net = network()
    choices = {cls: cls(net.parameters(), lr=0.05) for cls in (optim.SGD, optim.Adam, optim.Adagrad)}

    def step(optimizer, x):
        optimizer.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    step = w.compile(step)
    w.watch(choices)
    for cls in w.turns(optim.SGD, optim.Adam, optim.Adagrad):
        w.call(step, choices[cls], batch())


@row
def state_of_an_optimizer_is_cleared(w):
    net = network()
    adam = optim.Adam(net.parameters(), lr=0.1)
    step = training(w, net, adam)
    for i in range(9):
        w.call(step, batch(i))
        if i in (1, 5):
            adam.state.clear()


@row
def state_of_an_optimizer_is_loaded(w):

    net = network()
    adam = optim.Adam(net.parameters(), lr=0.1)
    step = training(w, net, adam)
    for i in range(9):
        w.call(step, batch(i))
        if i == 0:
            saved = copy.deepcopy((net.state_dict(), adam.state_dict()))
        if i in (1, 5):
            net.load_state_dict(saved[0])
            adam.load_state_dict(saved[1])


@row
def state_of_an_optimizer_is_written_to(w):
    net = network()
    sgd = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    step = training(w, net, sgd)
    for i in range(8):
        w.call(step, batch(i))
        if i in (1, 4):
            for state in sgd.state.values():
                state["momentum_buffer"].mul_(0.1)
        if i == 5:
            for state in sgd.state.values():
                state["momentum_buffer"] = leafgrad.zeros_like(state["momentum_buffer"])


@row
def step_with_a_closure(w):
    net = network()
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        def closure():
            sgd.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            return loss

        return sgd.step(closure)

    step = w.compile(step)
    for i in range(7):
        w.call(step, batch(i))


@row
def lbfgs_in_a_step(w):
    net = network()
    lbfgs = optim.LBFGS(net.parameters(), lr=0.5, max_iter=3)

    def step(x):
        def closure():
            lbfgs.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            return loss

        return lbfgs.step(closure)

    step = w.compile(step)
    for _ in range(6):
        w.call(step, batch())


@row
def lbfgs_around_a_compiled_closure(w):
    net = network()
    lbfgs = optim.LBFGS(net.parameters(), lr=0.5, max_iter=3, line_search_fn="strong_wolfe")
    o = types.SimpleNamespace(x=batch())

    def closure():
        lbfgs.zero_grad()
        loss = (net(o.x) ** 2).mean()
        loss.backward()
        return loss

    closure = w.compile(closure)
    for i in range(6):
        o.x = batch(i)
        w.call(lbfgs.step, closure)


@row
def zero_grad_that_keeps_the_memory(w):
    net, o = network(), types.SimpleNamespace(to_none=True)
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        sgd.zero_grad(set_to_none=o.to_none)
        (net(x) ** 2).mean().backward()
        sgd.step()

    step = w.compile(step)
    for o.to_none in w.turns(True, False, True):
        w.call(step, batch())


@row
def two_optimizers_in_turn(w):
    net = network()
    first, second = optim.SGD(net[0].parameters(), lr=0.1), optim.Adam(net[2].parameters(), lr=0.1)
    o = types.SimpleNamespace(i=0)

    def step(x):
        o.i += 1
        optimizer = first if o.i % 2 else second
        net.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    step = w.compile(step)
    w.watch(first, second)
    for i in range(8):
        w.call(step, batch(i))


@row
def optimizer_of_the_user(w):
    class Sign(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})
            self.taken = 0

        @leafgrad.no_grad()
        def step(self, closure=None):
            self.taken += 1
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"] / self.taken)

    net = network()
    optimizer = Sign(net.parameters(), 0.1)
    step = training(w, net, optimizer)
    for i in range(7):
        w.call(step, batch(i))
        w.see("steps taken", optimizer.taken)

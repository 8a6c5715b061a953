"""Optimizers: options that change, groups and parameters that come and go, schedulers, closures."""

from __future__ import annotations

import math
import types

from compile.scenarios.harness import row
from compile.scenarios.steps import batch, network, training

import leafgrad
from leafgrad import optim


def option_changes(w, optimizer_of, key, *values):
    net = network()
    optimizer = optimizer_of(net.parameters())
    step = training(w, net, optimizer)
    for i, value in enumerate(w.turns(*values)):
        optimizer.param_groups[0][key] = value
        w.call(step, batch(i))


@row
def learning_rate_of_sgd(w):
    option_changes(w, lambda p: optim.SGD(p, lr=0.1), "lr", 0.1, 0.05, 0.2)


@row
def learning_rate_that_is_zero(w):
    option_changes(w, lambda p: optim.SGD(p, lr=0.1, momentum=0.9), "lr", 0.1, 0.0, 1)


@row
def learning_rate_of_adam(w):
    option_changes(w, lambda p: optim.Adam(p, lr=0.1), "lr", 0.1, 0.05, 0.2)


@row
def learning_rate_as_a_tensor_or_a_number(w):
    option_changes(w, lambda p: optim.Adam(p, lr=0.1), "lr", 0.1, leafgrad.tensor(0.05), 0.2)


@row
def momentum(w):
    option_changes(w, lambda p: optim.SGD(p, lr=0.1, momentum=0.9), "momentum", 0.9, 0.5, 0.0)


@row
def momentum_switched_on(w):
    option_changes(w, lambda p: optim.SGD(p, lr=0.1), "momentum", 0.0, 0.9, 0.5)


@row
def nesterov_and_dampening(w):
    option_changes(w, lambda p: optim.SGD(p, lr=0.1, momentum=0.9), "nesterov", False, True, False)


@row
def betas(w):
    option_changes(w, lambda p: optim.Adam(p, lr=0.1), "betas", (0.9, 0.999), (0.5, 0.999), (0.9, 0.9))


@row
def weight_decay(w):
    option_changes(w, lambda p: optim.AdamW(p, lr=0.1), "weight_decay", 0.0, 0.1, 0.5)


@row
def weight_decay_switched_on(w):
    option_changes(w, lambda p: optim.SGD(p, lr=0.1), "weight_decay", 0.0, 0.1, 0.5)


@row
def eps_of_adam(w):
    option_changes(w, lambda p: optim.Adam(p, lr=0.1), "eps", 1e-8, 1e-2, 1.0)


@row
def maximize(w):
    option_changes(w, lambda p: optim.Adam(p, lr=0.1), "maximize", False, True, False)


@row
def amsgrad(w):
    option_changes(w, lambda p: optim.Adam(p, lr=0.1, amsgrad=True), "lr", 0.1, 0.05, 0.2)


@row
def rmsprop_and_its_alpha(w):
    option_changes(w, lambda p: optim.RMSprop(p, lr=0.01), "alpha", 0.99, 0.5, 0.9)


@row
def option_under_a_computed_key(w):
    net, o = network(), types.SimpleNamespace(kind="l")
    sgd = optim.SGD(net.parameters(), lr=0.1)
    step = w.compile(lambda x: (net(x) * sgd.param_groups[0][f"{o.kind}r"]).sum())
    for sgd.param_groups[0]["lr"] in w.turns(0.1, 0.2, 0.3):
        w.call(step, batch())


@row
def own_option_of_a_group(w):
    net = network()
    sgd = optim.SGD(net.parameters(), lr=0.1)
    sgd.param_groups[0]["scale"] = 1.0

    def step(x):
        sgd.zero_grad()
        ((net(x) * sgd.param_groups[0]["scale"]) ** 2).mean().backward()
        sgd.step()

    step = w.compile(step)
    for sgd.param_groups[0]["scale"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, batch())


@row
def schedule_computed_inside(w):
    net, o = network(), types.SimpleNamespace(i=0)
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        o.i += 1
        for group in sgd.param_groups:
            group["lr"] = 0.1 / math.sqrt(o.i)
        sgd.zero_grad()
        (net(x) ** 2).mean().backward()
        sgd.step()

    step = w.compile(step)
    for i in range(8):
        w.call(step, batch(i))


@row
def rate_set_before_and_after_the_step(w):
    net, o = network(), types.SimpleNamespace(last=50.0)
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        (net(x) ** 2).mean().backward()
        sgd.param_groups[0]["lr"] = 0.05
        sgd.step()
        sgd.param_groups[0]["lr"] = 0.005
        sgd.step()
        sgd.param_groups[0]["lr"] = o.last
        sgd.zero_grad()

    step = w.compile(step)
    for i, value in enumerate(w.turns(50.0, 7.0, 50.0)):
        o.last = value
        w.call(step, batch(i))
        sgd.param_groups[0]["lr"] = float(i)


@row
def momentum_and_betas_in_a_cycle(w):
    net = network()
    sgd = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    adam = optim.Adam(net.parameters(), lr=0.01)
    cycles = [optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=12) for o in (sgd, adam)]
    step = w.compile(
        lambda x: [(o.zero_grad(), (net(x) ** 2).mean().backward(), o.step()) for o in (sgd, adam)] and None
    )
    for i in range(8):
        w.call(step, batch(i))
        for cycle in cycles:
            cycle.step()


@row
def scheduler_outside(w):
    net = network()
    adam = optim.Adam(net.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(adam, step_size=2, gamma=0.5)
    step = training(w, net, adam)
    for i in range(8):
        w.call(step, batch(i))
        scheduler.step()


@row
def scheduler_inside(w):
    net = network()
    adam = optim.Adam(net.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.ExponentialLR(adam, gamma=0.5)

    def step(x):
        adam.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        adam.step()
        scheduler.step()
        return loss

    step = w.compile(step)
    for i in range(8):
        w.call(step, batch(i))


@row
def scheduler_on_a_plateau_inside(w):
    net = network()
    adam = optim.Adam(net.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(adam, patience=0, threshold=0.9)

    def step(x):
        adam.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        adam.step()
        scheduler.step(loss.item())
        return loss

    step = w.compile(step)
    for i in range(8):
        w.call(step, batch(i))


@row
def one_cycle_of_rates_and_momenta(w):
    net = network()
    sgd = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = optim.lr_scheduler.OneCycleLR(sgd, max_lr=0.2, total_steps=20)
    step = training(w, net, sgd)
    for i in range(8):
        w.call(step, batch(i))
        scheduler.step()

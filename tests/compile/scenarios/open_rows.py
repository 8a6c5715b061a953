"""Steps whose Python must run at each call, and whose numbers, operations and tensors differ from call to call."""

from __future__ import annotations

import random
import types

import numpy as np
from compile.scenarios.harness import points, row
from compile.scenarios.steps import batch, network

import leafgrad
from leafgrad import nn, optim
from leafgrad.nn import functional as F

NUMBERS = (1.0, 1.0, 2.0, 0.0, -1.0, 0.5, 1.0, 3.0)


def numbers(w, compute, *values):
    """A step that counts its calls, so that its Python runs at each, and computes with the number of the call."""
    o = types.SimpleNamespace(calls=0)

    def step(x):
        k = values[o.calls % len(values)]
        o.calls += 1
        return compute(x, k)

    step = w.compile(step)
    for i in range(len(values) + 3):
        w.call(step, points() + i)


@row
def factor_that_is_one_or_zero_at_first(w):
    numbers(w, lambda x, k: x * k + k, *NUMBERS)


@row
def divisor_and_subtrahend(w):
    numbers(w, lambda x, k: (x - k) / (k + 2) + k / x - (k - x), *NUMBERS)


@row
def exponent(w):
    numbers(w, lambda x, k: x**k, 2, 2, 3, 1, 0, 0.5, -1, 2)


@row
def base_of_a_power(w):
    numbers(w, lambda x, k: k**x, 1.0, 2.0, 0.0, 3, 0.5, 1.0)


@row
def signs_of_zero_and_nan(w):
    numbers(w, lambda x, k: 1 / (x * k), 0.0, -0.0, 1.0, float("nan"), -0.0, float("inf"), 0.0)


@row
def int_float_bool(w):
    numbers(w, lambda x, k: leafgrad.arange(3) * k + x.long() * k, 1, 1.0, True, 0, 2, 2.5, False)


@row
def large_numbers(w):
    numbers(w, lambda x, k: x * k, 1e30, 1e39, 1e-46, 2**40, 2**53 + 1, 1.0)


@row
def limits_of_a_clamp(w):
    numbers(w, lambda x, k: x.clamp(min=k) + x.clamp(max=2.0 if k is None else k), 1.0, 2.0, 3.0, 2.5, -1.0)


@row
def limit_that_may_be_none(w):
    numbers(w, lambda x, k: x.clamp(min=k, max=3.0), None, 2.0, None, 2.5, None)


@row
def alpha_of_an_addition(w):
    numbers(w, lambda x, k: x.add(x, alpha=k).lerp(x * 2, k), *NUMBERS)


@row
def value_of_a_fill(w):
    numbers(w, lambda x, k: leafgrad.full((3,), k) + leafgrad.zeros(3).fill_(k) + x.masked_fill(x > 2, k), *NUMBERS)


@row
def number_that_is_a_size(w):
    numbers(w, lambda x, k: x.sum() * leafgrad.arange(k) + leafgrad.zeros(k), 2, 3, 3, 1, 2, 4)


@row
def number_that_is_an_index(w):
    numbers(w, lambda x, k: x[k] * 2 + x[: k + 1].sum() + x.roll(k), 0, 1, 2, 0, -1, 1)


@row
def number_that_is_a_dimension(w):
    numbers(w, lambda x, k: x.reshape(1, 3).sum(dim=k).sum() * 2 + x.unsqueeze(k).sum(dim=k), 0, 1, -1, 0, 1)


@row
def number_that_is_a_probability(w):
    numbers(w, lambda x, k: F.dropout(x.expand(4, 3), k), 0.5, 0.1, 0.0, 0.9, 0.5)


@row
def number_behind_a_function(w):
    numbers(w, lambda x, k: F.leaky_relu(x - 3, k) + F.softplus(x, beta=k + 1), 0.1, 0.5, 1.0, 0.0, 0.1)


@row
def numbers_of_which_one_stays(w):
    numbers(w, lambda x, k: x * 2.0 + k * 3.0, *NUMBERS)


@row
def equal_numbers_that_part(w):
    o = types.SimpleNamespace(i=0)

    def step(x):
        o.i += 1
        a, b = (1.0, 1.0) if o.i < 4 else (2.0, float(o.i))
        return x * a + x.sin() * b

    step = w.compile(step)
    for i in range(8):
        w.call(step, points() + i)


@row
def gradient_with_numbers_that_differ(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(i=0)

    def step(x):
        o.i += 1
        p.grad = None
        loss = ((p * o.i) ** (o.i % 3)).sum() / o.i
        loss.backward()
        return loss

    step = w.compile(step)
    for i in range(9):
        w.call(step, points() + i)


@row
def more_and_fewer_operations(w):
    o = types.SimpleNamespace(i=0)

    def step(x):
        o.i += 1
        for _ in range((1, 2, 4, 2, 1, 3)[o.i % 6]):
            x = x.sin() + 1
        return x

    step = w.compile(step)
    for i in range(9):
        w.call(step, points() + i)


@row
def operations_in_another_order(w):
    def step(x):
        acts = [leafgrad.sin, leafgrad.exp, leafgrad.tanh]
        random.shuffle(acts)
        for act in acts:
            x = act(x) * 0.5
        return x

    step = w.compile(step)
    for i in range(9):
        w.call(step, points() + i)


@row
def tensors_in_another_order(w):
    tensors, o = [points() * k for k in (1, 2, 3)], types.SimpleNamespace(i=0)

    def step(x):
        o.i += 1
        a, b = tensors[o.i % 3], tensors[(o.i * o.i) % 3]
        return x + a - b * 2

    step = w.compile(step)
    for i in range(9):
        w.call(step, points() + i)


@row
def writes_to_tensors_that_change_places(w):
    tensors, o = [points() * k for k in (1, 2, 3)], types.SimpleNamespace(i=0)

    def step(x):
        o.i += 1
        a, b = tensors[o.i % 3], tensors[(o.i * o.i) % 3]
        a.add_(x)
        return b * 2

    step = w.compile(step)
    w.watch(tensors)
    for i in range(9):
        w.call(step, points() + i)


@row
def values_read_between_writes(w):
    t, log = points(), []

    def step(x):
        log.append(t.sum().item())
        t.add_(x)
        log.append(t.sum().item())
        t.mul_(0.5)
        log.append(t[0].item())
        return t * log[-1]

    step = w.compile(step)
    for i in range(6):
        w.call(step, points() + i)


@row
def view_held_while_a_value_is_read(w):
    t = points(6)

    def step(x):
        part = t[1:4]
        part.add_(x)
        k = t.sum().item()
        part.mul_(1 / k)
        return t[2] * k, part

    step = w.compile(step)
    for i in range(6):
        w.call(step, points() + i)


@row
def value_read_before_the_backward_pass(w):
    net, o = network(), types.SimpleNamespace(scale=1.0)

    def step(x):
        net.zero_grad()
        hidden = net[0](x)
        o.scale = 1 / (1 + hidden.abs().max().item())
        loss = (net[2](hidden.tanh()) * o.scale).square().mean()
        loss.backward()
        return loss

    step = w.compile(step)
    for i in range(7):
        w.call(step, batch(i))


@row
def value_of_a_gradient_decides(w):
    net, o = network(), types.SimpleNamespace(skipped=0)
    sgd = optim.SGD(net.parameters(), lr=0.5, momentum=0.5)

    def step(x):
        sgd.zero_grad()
        net(x).square().mean().backward()
        if net[0].weight.grad.norm().item() > 0.15:
            o.skipped += 1
            return
        sgd.step()

    step = w.compile(step)
    for i in range(9):
        w.call(step, batch(i) * (0.5 + i % 2))


@row
def value_read_and_then_an_exception(w):
    t, o = points(), types.SimpleNamespace(limit=1e9)

    def step(x):
        t.add_(x)
        if t.sum().item() > o.limit:
            raise OverflowError
        t.mul_(0.5)

    step = w.compile(step)
    for o.limit in w.turns(1e9, 1.0, 9.0):
        w.call(step, points())


@row
def gradient_of_a_sum_set_to_zero(w):
    p, numbers = nn.Parameter(points()), np.array([1.0, 2.0])
    optimizer = leafgrad.optim.SGD([p], lr=0.1)

    def step(x):
        k = float(numbers.max())
        p.sum().backward()
        optimizer.zero_grad(set_to_none=False)
        return x * k

    step = w.compile(step)
    for i in range(8):
        numbers[0] = i
        w.call(step, points())
        if i % 4 == 3:
            optimizer.zero_grad()
        else:
            with leafgrad.no_grad():
                p.grad.add_(points())

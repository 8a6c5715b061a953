"""Results that are differentiated outside of the compiled function."""

from __future__ import annotations

import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn


@row
def one_of_several_is_differentiated(w):
    a, b = nn.Parameter(points()), nn.Parameter(points())
    step = w.compile(lambda x: ((a * x).sum(), (b * x).sum(), (a * b).sum()))
    for i in w.turns(0, 1, 2):
        a.grad = b.grad = None
        w.call(step, points())[i].backward()
        w.see("gradients", a.grad, b.grad)


@row
def gradient_of_what_is_not_used_is_none(w):
    a, b = nn.Parameter(points()), nn.Parameter(points())
    step = w.compile(lambda x: (a * x, b * x))
    for i in range(6):
        first, second = w.call(step, points() + i)
        grads = leafgrad.autograd.grad((first if i % 2 else second).sum(), (a, b), allow_unused=True)
        w.see("gradients", grads)


@row
def gradient_with_respect_to_an_argument(w):
    p = nn.Parameter(points())
    step = w.compile(lambda x: (p * x**2).sum())
    for i in range(6):
        x = (points() + i).requires_grad_()
        w.call(step, x).backward()
        w.see("gradients", x.grad, p.grad)


@row
def result_differentiated_after_later_calls(w):
    p, kept = nn.Parameter(points()), []
    step = w.compile(lambda x: (p.sin() * x).sum())
    for i in range(8):
        kept.append(w.call(step, points() + i))
        if i % 3 == 2:
            kept[i - 2].backward()
            w.see("gradient", p.grad)


@row
def result_differentiated_after_the_parameter_changed(w):
    p = nn.Parameter(points())
    step = w.compile(lambda x: (p.sin() * x).sum())
    for i in range(6):
        loss = w.call(step, points() + i)
        with leafgrad.no_grad():
            p.add_(1)
        w.attempt("backward pass", loss.backward)
        w.see("gradient", p.grad)


@row
def backward_twice(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(retain=False)
    step = w.compile(lambda x: (p.sin() * x).sum())
    for o.retain in w.turns(False, True, False):
        loss = w.call(step, points())
        loss.backward(retain_graph=o.retain)
        w.attempt("second backward pass", loss.backward)
        w.see("gradient", p.grad)


@row
def second_derivatives_outside(w):
    step = w.compile(lambda x: (x**3).sum())
    for i in range(6):
        x = (points() + i).requires_grad_()
        loss = w.call(step, x)
        w.attempt("first", lambda loss=loss, x=x: leafgrad.autograd.grad(loss, x, retain_graph=True))

        def twice(loss=loss, x=x):
            (first,) = leafgrad.autograd.grad(loss, x, create_graph=True)
            return leafgrad.autograd.grad(first.sum(), x)

        w.attempt("second", twice)


@row
def backward_with_a_given_gradient(w):
    p = nn.Parameter(points())
    step = w.compile(lambda x: p * x)
    for k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points()).backward(leafgrad.full((3,), k))
        w.see("gradient", p.grad)


@row
def result_written_to_before_its_backward_pass(w):
    p = nn.Parameter(points())
    step = w.compile(lambda x: p.exp() * x)
    for i in range(6):
        y = w.call(step, points() + i)
        y.mul_(2)
        y.sum().backward()
        w.see("gradient", p.grad)


@row
def result_used_as_the_next_argument(w):
    p, u = nn.Parameter(points()), points()
    step = w.compile(lambda u: u * 0.5 + p)
    for i in range(7):
        u = w.call(step, u)
        if i % 3 == 2:
            u.sum().backward()
            w.see("gradient", p.grad)
            u = u.detach()


@row
def attribute_of_a_result_is_set(w):
    step = w.compile(lambda x: x * 2)
    for i in range(6):
        y = w.call(step, points() + i)
        y.requires_grad_()
        (y**2).sum().backward()
        w.see("gradient", y.grad)


@row
def detached_and_attached_results(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(detached=False)

    def step(x):
        y = p * x
        return y.detach() if o.detached else y

    step = w.compile(step)
    for o.detached in w.turns(False, True, False):
        w.call(step, points())


@row
def part_of_a_tensor_as_a_gradient(w):
    p, t, o = nn.Parameter(points()), points(6).reshape(2, 3), types.SimpleNamespace(k=0.5)

    def step(x):
        p.grad = t[1]
        return (x * t).sum()

    step = w.compile(step)
    for o.k in w.turns(0.5, 2.0, 3.0):
        w.call(step, points())
        p.grad.mul_(o.k)
        w.see("memory", t, p.grad)


@row
def one_gradient_of_two_leaves_and_a_result(w):
    p, q, o = nn.Parameter(points()), nn.Parameter(points()), types.SimpleNamespace(kind=0)

    def step(x):
        g = (x * 2).detach()
        p.grad = g
        q.grad = g[:] if o.kind == 0 else g if o.kind == 1 else None
        return g.detach() if o.kind == 2 else x.sum()

    step = w.compile(step)
    for o.kind in w.turns(0, 1, 2):
        result = w.call(step, points())
        p.grad.mul_(o.kind + 2)
        w.see("memory", result, p.grad, q.grad)


@row(leaves=False)
def argument_that_requires_grad_from_then_on(w):
    def f(x, t):
        x.requires_grad_()
        t.mul_(2)
        return (x * t).sum()

    step = w.compile(f)
    for i in range(6):
        x = points() + i
        w.call(step, x, points() * 1).backward()
        w.see("gradient", x.grad)


@row(leaves=False)
def argument_written_with_history(w):
    p = nn.Parameter(points())

    def f(x):
        x.mul_(p)
        x.mul_(3.0)
        return x * 2

    step = w.compile(f)
    for i in range(6):
        x = points() + i
        y = w.call(step, x)
        (y.sum() + x.sum()).backward()
        w.see("gradient", p.grad)


@row(leaves=False)
def view_that_is_an_argument_written_with_history(w):
    p = nn.Parameter(points())

    def f(x):
        x[0] = p[1] * 2
        x.mul_(p)
        return x * x

    step = w.compile(f)
    for i in range(6):
        base = (points(6) + i).reshape(2, 3)
        y = w.call(step, base[1])
        (y.sum() + base.sum()).backward()
        w.see("gradient", p.grad)


@row
def view_of_a_leaf_is_not_written(w):
    def f(x):
        return x.mul_(2)

    step = w.compile(f)
    for i in range(6):
        w.call(step, (points() + i).requires_grad_(i % 2 > 0)[:])


@row
def backward_through_a_graph_from_outside_that_saved_nothing(w):
    p = nn.Parameter(points())
    step = w.compile(lambda x: x.sum().backward())
    for f in w.turns(lambda: p + 1, lambda: -p - p, lambda: p[:2].flip(0)):
        p.grad = None
        w.call(step, f())
        w.see("gradient", p.grad)

"""Writes in place: to arguments, captured tensors and their views, and leaves that are views."""

from __future__ import annotations

import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn, optim


@row
def write_to_an_argument(w):
    o = types.SimpleNamespace(k=2.0)

    def step(x):
        x.mul_(o.k)
        return x + 1

    step = w.compile(step)
    for o.k in w.turns(2.0, 3.0, 5.0):
        w.call(step, points())


@row
def write_to_a_view_of_an_argument(w):
    def step(x):
        x[1:] = 0
        x[0].add_(5)
        return x.sum()

    step = w.compile(step)
    for i in range(6):
        w.call(step, points() + i)


@row
def argument_is_a_view(w):
    base = points(6).reshape(2, 3)
    w.watch(base)
    step = w.compile(lambda x: x.mul_(2).sum())
    for i in range(6):
        w.call(step, base[i % 2])


@row
def argument_is_a_transposed_view(w):
    base = points(6).reshape(2, 3)
    w.watch(base)
    step = w.compile(lambda x: x.add_(x.sum(dim=0)))
    for view in w.turns(lambda: base, lambda: base.T, lambda: base[:, 1:]):
        w.call(step, view())


@row
def overlapping_slices(w):
    t = points(6)

    def step():
        t[1:] = t[:-1] * 2
        t[:3].add_(t[3:])

    step = w.compile(step)
    for _ in range(6):
        w.call(step)


@row
def shift_without_a_copy(w):
    t = points(6)

    def step(x):
        t[1:] = t[:-1].clone()
        t[0] = x.sum()

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)


@row
def two_arguments_that_are_one(w):
    def step(x, y):
        x.add_(1)
        return y * 2

    step = w.compile(step)
    for same in w.turns(False, True, False):
        x = points()
        w.call(step, x, x if same else points())


@row
def two_arguments_that_overlap(w):
    base = points(6)
    w.watch(base)

    def step(x, y):
        x.add_(1)
        return y * 2

    step = w.compile(step)
    for lo in w.turns(3, 1, 0):
        w.call(step, base[:3], base[lo : lo + 3])


@row
def captured_tensor_and_argument_overlap(w):
    t = points(6)

    def step(x):
        t.mul_(2)
        return x + 1

    step = w.compile(step)
    for view in w.turns(False, True, False):
        w.call(step, t[:3] if view else points())


@row
def captured_tensor_and_its_captured_view(w):
    t = points(6)
    part = t[2:4]

    def step(x):
        t.add_(x.sum())
        part.mul_(2)
        return part + t[2:4]

    step = w.compile(step)
    for i in range(6):
        w.call(step, points() + i)


@row
def detached_alias(w):
    p = nn.Parameter(points())
    alias = p.detach()

    def step(x):
        with leafgrad.no_grad():
            p.add_(x)
        return alias * 2

    step = w.compile(step)
    for i in range(6):
        w.call(step, points() + i)


@row
def alias_through_data(w):
    p = nn.Parameter(points())

    def step(x):
        p.data.add_(x)
        return p * 2

    step = w.compile(step)
    for i in range(6):
        w.call(step, points() + i)


@row
def assignment_by_index_and_mask(w):
    t, o = points(6), types.SimpleNamespace(at=[0, 1])

    def step(x):
        t[o.at] = x.sum()
        t[t > 10] = 0.0

    step = w.compile(step)
    for o.at in w.turns([0, 1], [2, 3], [5]):
        w.call(step, points())


@row
def state_of_a_simulation(w):
    u, v = points(), leafgrad.zeros(3)

    def step(dt):
        v.sub_(u, alpha=dt)
        u.add_(v, alpha=dt)
        return (u * u + v * v).sum()

    step = w.compile(step)
    for dt in w.turns(0.1, 0.05, 0.2):
        w.call(step, dt)


@row
def swap_of_two_names(w):
    o = types.SimpleNamespace(old=points(), new=leafgrad.zeros(3))

    def step(x):
        o.new.copy_(o.old * 2 + x)
        o.old, o.new = o.new, o.old
        return o.old.sum()

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)


@row
def swap_of_two_names_outside(w):
    o = types.SimpleNamespace(old=points(), new=leafgrad.zeros(3))
    step = w.compile(lambda x: o.new.copy_(o.old * 2 + x).sum())
    for i in range(8):
        w.call(step, points() + i)
        o.old, o.new = o.new, o.old


@row
def write_to_a_gradient(w):
    p = nn.Parameter(points())

    def step(x):
        p.grad = None
        (p * x).sum().backward()
        p.grad.clamp_(max=2.0)
        p.grad[0] = 100.0

    step = w.compile(step)
    for i in range(6):
        w.call(step, points() + i)


@row
def write_by_out_of_a_tensor_that_requires_grad(w):
    p, buffer = nn.Parameter(points()), leafgrad.zeros(3)

    def step(x):
        buffer.copy_((p * x).detach())
        return buffer * p

    step = w.compile(step)
    for i in range(6):
        loss = w.call(step, points() + i)
        loss.sum().backward()
        w.see("gradient", p.grad)


@row
def tensor_outside_becomes_part_of_the_graph(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(buffer=None)

    def step(x):
        o.buffer.add_(p * x)
        return o.buffer.sum()

    step = w.compile(step)
    for i in range(6):
        o.buffer = leafgrad.zeros(3)
        loss = w.call(step, points() + i)
        loss.backward()
        w.see("gradient", p.grad, o.buffer.requires_grad)


@row
def write_that_eager_refuses(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(forbidden=False)

    def step(x):
        if o.forbidden:
            p.add_(1)
        return p * x

    step = w.compile(step)
    for o.forbidden in w.turns(False, True, False):
        w.call(step, points())


@row
def saved_tensor_is_overwritten(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(overwrite=False)

    def step(x):
        p.grad = None
        y = p * x
        z = (y * y).sum()
        if o.overwrite:
            y.detach().zero_()
            x.zero_()
        z.backward()

    step = w.compile(step)
    for o.overwrite in w.turns(False, True, False):
        w.call(step, points())


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

"""Writes in place: to arguments, captured tensors and their views, and leaves that are views."""

from __future__ import annotations

import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn


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
def parameters_and_buffers_made_of_tensors_are_written(w):
    held, o = points(), types.SimpleNamespace(k=2.0)

    def step(x):
        made = x * 1
        with leafgrad.no_grad():
            nn.Parameter(x).mul_(o.k)
            nn.Parameter(held[1:]).add_(1)
            nn.Buffer(made).sub_(1)
        return x * held + made

    step = w.compile(step)
    for o.k in w.turns(2.0, 3.0, 5.0):
        w.call(step, points())


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
def argument_views_of_a_captured_tensor(w):
    t, u = points(6), points(6) * 10

    def step(x):
        t.mul_(2)
        return x + 1

    step = w.compile(step)
    for x in (t[:3], t[:3], t[:3], t[:3], t[3:], t[3:], u[:3], t[::2], points(), t[:3].detach(), t[:3]):
        w.call(step, x)


@row
def argument_views_of_another_argument(w):
    def step(x, y):
        x.mul_(2)
        return y + 1

    step = w.compile(step)
    for part in w.turns(slice(0, 3), slice(3, 6), slice(0, 6, 2)):
        x = points(6)
        w.call(step, x, x[part])


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
        p.grad.clamp_(max=4.5)
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


@row(leaves=False)
def shape_changes_in_place_beside_views(w):
    t, o = points(4).reshape(2, 2), types.SimpleNamespace(kept=None, k=2.0)

    def step(a):
        first = t[0]
        t.t_()
        a.add_(o.k)
        first.mul_(2)
        o.kept = t[1]
        return t.sum() + a.sum()

    step = w.compile(step)
    for o.k in w.turns(2.0, 3.0, 5.0):
        w.call(step, t[1])
        o.kept.add_(1)
        w.see("memory", t, o.kept)


@row
def an_argument_changes_its_shape_beside_a_view(w):
    t, o = points(6).reshape(2, 3), types.SimpleNamespace(k=2.0)

    def step(a):
        rest = a[1:]
        a.unsqueeze_(0)
        rest.add_(o.k)
        a.mul_(2)
        return rest.sum() + t.sum()

    step = w.compile(step)
    for o.k in w.turns(2.0, 3.0, 5.0):
        w.call(step, t[1])
        w.see("memory", t)


@row
def data_is_a_part_of_a_tensor(w):
    t, u, o = points(2), points(4).reshape(2, 2), types.SimpleNamespace(k=2.0)

    def step(x):
        made = x * o.k
        old = t[:1]
        t.data = u[1] if o.k > 2 else made[:2]
        old.add_(1)
        t.mul_(o.k)
        return made, old + u.sum()

    step = w.compile(step)
    for o.k in w.turns(2.0, 3.0, 5.0):
        w.call(step, points(4))
        t.add_(1)
        w.see("memory", t, u)

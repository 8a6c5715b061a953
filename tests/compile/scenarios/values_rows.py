"""Values of tensors that Python reads inside the step, and shapes that depend on them."""

from __future__ import annotations

import math
import types

import numpy as np
from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn, optim


@row
def item(w):
    step = w.compile(lambda x: x * x.sum().item())
    for i in range(7):
        w.call(step, points() + i)


@row
def float_and_int_of_a_tensor(w):
    step = w.compile(lambda x: x * float(x.mean()) + int(x.max()))
    for i in range(7):
        w.call(step, points() + i)


@row
def result_that_is_a_number(w):
    step = w.compile(lambda x: (x * 2).sum().item())
    for i in range(7):
        w.call(step, points() + i)


@row
def branch_on_a_loss(w):
    o = types.SimpleNamespace(tol=10.0)

    def step(x):
        loss = x.sum()
        if loss < o.tol:
            return loss * 100
        return loss

    step = w.compile(step)
    for o.tol, k in w.turns((10.0, 1.0), (10.0, 3.0), (100.0, 3.0)):
        w.call(step, points() * k)


@row
def truth_of_a_tensor(w):
    step = w.compile(lambda x: x * 2 if (x > 2).any() else x * 3)
    for k in w.turns(1.0, 0.1, 5.0):
        w.call(step, points() * k)


@row
def comparison_chain_and_boolean_operators(w):
    step = w.compile(lambda x: x if 1 < x.sum() < 10 and not x[0] > 5 else -x)
    for k in w.turns(1.0, 0.1, 0.0):
        w.call(step, points() * k)


@row
def while_on_a_value(w):
    def step(x):
        while x.sum() < 50:
            x = x * 2
        return x

    step = w.compile(step)
    for k in w.turns(1.0, 3.0, 20.0):
        w.call(step, points() * k)


@row
def for_over_a_tensor(w):
    def step(x):
        total = 0
        for i, part in enumerate(x):
            total = total + part * i
        return total

    step = w.compile(step)
    for n in w.turns(3, 4, 2):
        w.call(step, points(n))


@row
def number_of_steps_from_a_value(w):
    def step(x):
        for _ in range(int(x[0])):
            x = x + 1
        return x

    step = w.compile(step)
    for k in w.turns(1.0, 2.0, 4.0):
        w.call(step, points() * k)


@row
def index_from_a_value(w):
    step = w.compile(lambda x, i: x[i] * 2 + x[int(i) :].sum())
    for i in w.turns(0, 1, 2):
        w.call(step, points(), leafgrad.tensor(i))


@row
def tolist(w):
    step = w.compile(lambda x: (x * 2).tolist())
    for i in range(6):
        w.call(step, points() + i)


@row
def numpy_of_a_tensor(w):
    step = w.compile(lambda x: x * float(np.median((x * 2).numpy())))
    for i in range(6):
        w.call(step, points() + i)


@row
def numpy_result(w):
    step = w.compile(lambda x: (x * 2).detach().numpy() + 1)
    for i in range(6):
        w.call(step, points() + i)


@row
def numpy_written_to(w):
    t = points()

    def step(x):
        y = x * 2
        y.numpy()[0] = 100.0
        t.numpy()[1] += 1
        return y + t

    step = w.compile(step)
    for i in range(6):
        w.call(step, points() + i)


@row
def numpy_function_of_a_tensor(w):
    step = w.compile(lambda x: leafgrad.from_numpy(np.sort((x * -1).numpy())))
    for i in range(6):
        w.call(step, points() + i)


@row
def asarray_of_a_tensor(w):
    step = w.compile(lambda x: x + float(np.asarray(x * 2).sum()))
    for i in range(6):
        w.call(step, points() + i)


@row
def format_and_text(w):
    step = w.compile(lambda x: (f"{x.sum():.2f}", str(x.sum()), f"{x.sum().item():>8.1f}"))
    for i in range(6):
        w.call(step, points() + i)


@row
def masked_select(w):
    step = w.compile(lambda x: x[x > 2] * 2)
    for k in w.turns(1.0, 2.0, 0.1):
        w.call(step, points() * k)


@row
def nonzero(w):
    step = w.compile(lambda x: (x > 2).nonzero().sum(dim=0) + x.nonzero().shape[0])
    for k in w.turns(1.0, 2.0, 0.0):
        w.call(step, points() * k)


@row
def unique(w):
    step = w.compile(lambda x: (x * 2).unique())
    for k in w.turns(1.0, 0.4, 0.0):
        w.call(step, (points() * k).round())


@row
def gradient_through_a_mask(w):
    p = nn.Parameter(points())

    def step(x):
        p.grad = None
        loss = (p * x)[x > 2].sum()
        loss.backward()
        return loss

    step = w.compile(step)
    for k in w.turns(1.0, 2.0, 0.1):
        w.call(step, points() * k)


@row
def where_with_one_argument(w):
    step = w.compile(lambda x: leafgrad.where(x > 2)[0] * 2)
    for k in w.turns(1.0, 2.0, 0.1):
        w.call(step, points() * k)


@row
def repeat_interleave_by_a_tensor(w):
    step = w.compile(lambda x, n: leafgrad.repeat_interleave(x, n) * 2)
    for n in w.turns([1, 2, 0], [1, 1, 1], [3, 0, 0]):
        w.call(step, points(), leafgrad.tensor(n))


@row
def shape_that_depends_on_a_value(w):
    step = w.compile(lambda n: leafgrad.zeros(int(n)) + n)
    for n in w.turns(2, 3, 1):
        w.call(step, leafgrad.tensor(n))


@row
def tensor_of_a_list_of_values(w):
    step = w.compile(lambda x: leafgrad.tensor([x.sum().item(), 2.0, float(x[0])]) * 2)
    for i in range(6):
        w.call(step, points() + i)


@row
def tensor_of_tensors(w):
    step = w.compile(lambda x: leafgrad.tensor([x[0], x[1] * 2]) + 1)
    for i in range(6):
        w.call(step, points() + i)


@row
def math_of_a_tensor(w):
    step = w.compile(lambda x: x * math.sqrt(x.sum()) + math.floor(x.mean()))
    for i in range(6):
        w.call(step, points() + i)


@row
def equality_and_allclose(w):
    t = points()
    step = w.compile(lambda x: x * 2 if leafgrad.allclose(x, t) else (x * 3 if x.equal(t + 1) else x))
    for k in w.turns(0.0, 1.0, 2.0):
        w.call(step, points() + k)


@row
def tensor_in_a_list(w):
    step = w.compile(lambda x: x * 2 if x[0] in [1.0, 2.0] else x * 3)
    for k in w.turns(0.0, 1.0, 2.0):
        w.call(step, points() + k)


@row
def maximum_by_python(w):
    step = w.compile(lambda x: max(x) * min(x[1:]) + sum(sorted(x)))
    for k in w.turns(1.0, -1.0, 2.0):
        w.call(step, points() * k)


@row
def line_search(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(tried=0)

    def step():
        loss = (p**4).sum()
        (g,) = leafgrad.autograd.grad(loss, p)
        rate = 1.0
        with leafgrad.no_grad():
            while ((p - rate * g) ** 4).sum() > loss:
                rate *= 0.5
                o.tried += 1
            p.sub_(rate * g)
        return loss

    step = w.compile(step)
    for i in range(7):
        w.call(step)
        if i == 4:
            p.data.mul_(10)


@row
def newton_until_it_converges(w):
    def step(a):
        x = a
        for _ in range(20):
            update = (x * x - a) / (2 * x)
            x = x - update
            if update.abs().max() < 1e-4:
                break
        return x

    step = w.compile(step)
    for k in w.turns(1.0, 4.0, 100.0):
        w.call(step, points() * k)


@row
def adaptive_step_size(w):
    o = types.SimpleNamespace(dt=0.5, u=points())

    def step():
        k1 = -o.u
        k2 = -(o.u + o.dt * k1)
        error = ((k2 - k1) * o.dt).abs().max().item()
        if error > 0.1:
            o.dt *= 0.5
        else:
            o.u.add_(k1 * o.dt)
        return error

    step = w.compile(step)
    for i in range(9):
        w.call(step)
        if i == 6:
            o.u.add_(5.0)


@row
def weights_balanced_by_gradients(w):
    net = nn.Linear(3, 1)

    def step(x):
        first, second = net(x).square().sum(), net(x).abs().sum()
        (a,) = leafgrad.autograd.grad(first, net.weight, retain_graph=True)
        (b,) = leafgrad.autograd.grad(second, net.weight, retain_graph=True)
        weight = (a.norm() / b.norm()).item()
        net.zero_grad()
        (first + weight * second).backward()
        return weight

    step = w.compile(step)
    for i in range(6):
        w.call(step, points() + i)


@row
def early_stop_inside_a_training_step(w):
    net, o = nn.Linear(3, 1), types.SimpleNamespace(stopped=False)
    sgd = optim.SGD(net.parameters(), lr=0.02)

    def step(x):
        sgd.zero_grad()
        loss = net(x).square().mean()
        if loss.item() < 1e-2:
            o.stopped = True
            return loss
        loss.backward()
        sgd.step()
        return loss

    step = w.compile(step)
    for i in range(9):
        w.call(step, points() * (1.0 if i < 7 else 3.0))


@row
def nan_check(w):
    p = nn.Parameter(points())
    sgd, o = optim.SGD([p], lr=0.1), types.SimpleNamespace(skipped=0)

    def step(x):
        sgd.zero_grad()
        loss = (p * x).sum()
        loss.backward()
        if math.isnan(loss) or not p.grad.isfinite().all():
            o.skipped += 1
            return
        sgd.step()

    step = w.compile(step)
    for k in w.turns(1.0, float("nan"), float("inf")):
        w.call(step, points() * k)

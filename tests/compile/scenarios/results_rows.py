"""Results: containers, identity, shared memory, and what is differentiated later."""

from __future__ import annotations

import collections
import dataclasses
import types
from typing import Any, NamedTuple

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn
from leafgrad.tensor.overrides import unwrapped


@row(leaves=False)
def view_of_an_argument(w):
    step = w.compile(lambda x: x[1:])
    for i in range(6):
        x = points() + i
        part = w.call(step, x)
        part.mul_(10)
        w.see("argument", x)
        x.zero_()
        w.see("result", part)


@row(leaves=False)
def reshaped_argument(w):
    step = w.compile(lambda x: x.reshape(3, 2))
    for i in range(6):
        x = points(6) + i
        other = w.call(step, x)
        x[0] = 100.0
        w.see("result", other)


@row
def transposed_parameter(w):
    p = nn.Parameter(points(6).reshape(2, 3))
    step = w.compile(lambda: p.T)
    for i in range(6):
        other = w.call(step)
        with leafgrad.no_grad():
            p.add_(1 + i)
        w.see("result", other)


@row
def detached_parameter_is_written_to(w):
    p = nn.Parameter(points())
    step = w.compile(lambda: p.detach())
    for i in range(6):
        w.call(step)[0] = 10.0 + i


@row
def view_of_a_captured_tensor_is_written_to(w):
    t = points(6)
    step = w.compile(lambda: t[2:4])
    for i in range(6):
        w.call(step).fill_(10.0 + i)


@row
def results_that_share_memory(w):
    def step(x):
        y = x * 2
        return y, y[1:], y.reshape(1, 3)

    step = w.compile(step)
    for i in range(6):
        y, part, row = w.call(step, points() + i)
        part.zero_()
        w.see("results", y, part, row)
        row[0, 0] = 5.0
        w.see("results", y, part, row)


@row
def view_of_what_vmap_made(w):
    def step(x):
        each = leafgrad.func.vmap(lambda r: (r * 2).sin())(x)
        return each, each[0], each.reshape(-1)

    step = w.compile(step)
    for i in range(6):
        whole, first, flat = w.call(step, points(6).reshape(2, 3) + i)
        with leafgrad.no_grad():
            first.mul_(10)
        w.see("the others", whole, flat)


@row
def results_that_do_not_share_memory(w):
    def step(x):
        y = x * 2
        return y, y.clone(), y + 0, x.clone(), y * 1

    step = w.compile(step)
    for i in range(6):
        results = w.call(step, points() + i)
        for k, result in enumerate(results):
            result.add_(k + 1)
        w.see("results", results)


@row
def same_tensor_twice(w):
    def step(x):
        y = x * 2
        return y, [y, {"y": y}]

    step = w.compile(step)
    for i in range(6):
        y, (again, _) = w.call(step, points() + i)
        y.add_(1)
        w.see("is it one", y is again, again)


@row(leaves=False)
def argument_itself(w):
    step = w.compile(lambda x, y: (y, x, x * 2))
    for i in range(6):
        x, y = points() + i, points(2)
        results = w.call(step, x, y)
        w.see("identity", results[0] is y, results[1] is x)
        results[1].zero_()
        w.see("argument", x)


@row
def captured_tensor_itself(w):
    o = types.SimpleNamespace(t=points())
    step = w.compile(lambda: (o.t, o.t + 1))
    for i in range(8):
        t, _ = w.call(step)
        w.see("identity", t is o.t)
        t.add_(1)
        if i in (1, 4):
            o.t = points() * i


@row
def parameter_and_gradient_themselves(w):
    p = nn.Parameter(points())

    def step(x):
        p.grad = None
        (p * x).sum().backward()
        return p, p.grad

    step = w.compile(step)
    for i in range(6):
        same, grad = w.call(step, points() + i)
        w.see("identity", same is p, grad is p.grad)
        grad.mul_(2)
        w.see("gradient", p.grad)


@row
def list_that_is_changed_afterwards(w):
    step = w.compile(lambda x: [x, x * 2])
    for i in range(6):
        results = w.call(step, points() + i)
        results.append(None)
        results[0] = "gone"


@row
def dict_that_is_changed_afterwards(w):
    step = w.compile(lambda x: {"x": x * 2, "n": [1, 2]})
    for i in range(6):
        results = w.call(step, points() + i)
        results["n"].append(3)
        results.pop("x")


@row
def list_from_outside_is_returned(w):
    log = [points()]
    step = w.compile(lambda x: log)
    for i in range(6):
        results = w.call(step, points(), keep=False)
        w.see("is it one", results is log)
        results.append(i)


@row
def ordered_dict_and_default_dict(w):
    def step(x):
        table = collections.defaultdict(list)
        table["a"].append(x + 1)
        return collections.OrderedDict(b=x, a=x * 2), table

    step = w.compile(step)
    for i in range(6):
        ordered, table = w.call(step, points() + i)
        ordered.move_to_end("b")
        table["new"].append(i)


class Pair(NamedTuple):
    loss: Any
    extra: Any = 1.0


@row
def named_tuple(w):
    step = w.compile(lambda x: Pair(x.sum(), extra={"x": x}))
    for i in range(6):
        w.call(step, points() + i)


@row
def data_class(w):
    @dataclasses.dataclass
    class Losses:
        total: Any
        parts: list
        note: str = "sum"

    step = w.compile(lambda x: Losses(x.sum(), [x, x * 2]))
    for i in range(6):
        losses = w.call(step, points() + i)
        losses.parts.clear()
        losses.total = None


@row
def object_of_a_class(w):
    class State:
        def __init__(self, u):
            self.u, self.steps = u, 0

    step = w.compile(lambda x: State(x * 2))
    for i in range(6):
        w.call(step, points() + i).steps = i


@row
def numbers_and_texts(w):
    o = types.SimpleNamespace(n=1, name="a")
    step = w.compile(lambda x: (x * 2, o.n, o.name, None, o.n > 1, x.shape, x.dtype, 2.5))
    for o.n, o.name in w.turns((1, "a"), (2, "a"), (2, "b")):
        w.call(step, points())


@row
def numbers_only(w):
    o = types.SimpleNamespace(n=1)
    step = w.compile(lambda: o.n * 2)
    for o.n in w.turns(1, 2, 1.0):
        w.call(step)


@row
def nothing_or_something(w):
    o = types.SimpleNamespace(give=True)
    step = w.compile(lambda x: x * 2 if o.give else None)
    for o.give in w.turns(True, False, True):
        w.call(step, points())


@row
def set_and_frozen_set_of_tensors(w):
    step = w.compile(lambda x: ({1, 2, len(x)}, frozenset({x.dim()}), x * 2))
    for n in w.turns(3, 4, 5):
        w.call(step, points(n))


@row
def generator_returned(w):
    o = types.SimpleNamespace(k=1.0)

    def step(x):
        return (x * i * o.k for i in range(3))

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        numbers = w.call(step, points(), keep=False, hide=True)
        w.attempt("its numbers", lambda numbers=numbers: list(numbers))


@row
def function_returned(w):
    o = types.SimpleNamespace(k=1.0)

    def step(x):
        y = x * o.k
        return lambda z: y + z

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        add = w.call(step, points(), keep=False, hide=True)
        w.attempt("its value", lambda add=add: add(points()))


@row
def module_returned(w):
    net, o = nn.Linear(3, 1), types.SimpleNamespace(k=1.0)
    step = w.compile(lambda x: (net, net(x) * o.k))
    for o.k in w.turns(1.0, 2.0, 3.0):
        same, _ = w.call(step, points())
        w.see("is it one", same is net)


class Labelled(leafgrad.Tensor):
    """A tensor of a class of the user's."""

    __torch_function__ = unwrapped


@row
def attribute_of_a_result(w):
    def f(x):
        y = x * 2
        y.info = {"calls": 1}
        return [y, x + 1]

    step = w.compile(f)
    for i in range(6):
        w.see("info", w.call(step, points() + i)[0].info)


@row
def attribute_of_an_argument(w):
    def f(x):
        x.calls = getattr(x, "calls", 0) + 1
        return x * x.calls

    step = w.compile(f)
    for i in range(6):
        x = points() + i
        w.call(step, x)
        w.call(step, x)
        w.see("calls", x.calls)


@row
def result_of_another_class(w):
    step = w.compile(lambda x: (x * 2).as_subclass(Labelled))
    for i in range(6):
        w.see("class", type(w.call(step, points() + i)).__name__)


@row
def result_with_a_hook(w):
    p = nn.Parameter(points())
    seen = []

    def f(x):
        y = x * p
        y.register_hook(lambda g: seen.append(g.tolist()))
        return y

    step = w.compile(f)
    for i in range(6):
        w.call(step, points() + i).sum().backward()
        w.see("seen", list(seen))


@row
def result_that_retains_its_gradient(w):
    p = nn.Parameter(points())

    def f(x):
        y = x * p
        y.retain_grad()
        return y

    step = w.compile(f)
    for i in range(6):
        y = w.call(step, points() + i)
        (y * y).sum().backward()
        w.see("gradient", y.grad)


@row
def result_that_is_a_leaf(w):
    step = w.compile(lambda x: (x * 2).requires_grad_())
    for i in range(6):
        y = w.call(step, points() + i)
        (y * y).sum().backward()
        w.see("gradient", y.grad)


@row
def result_with_a_gradient_of_its_own(w):
    def f(x):
        y = x * 2
        y.grad = x * 3
        return y

    step = w.compile(f)
    for i in range(6):
        w.see("gradient", w.call(step, points() + i).grad)

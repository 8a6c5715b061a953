"""Built-in functions and tools of the standard library that read state: operator, functools, bound methods."""

from __future__ import annotations

import functools
import operator
import types

from compile.scenarios.harness import points, row


@row
def partialmethod(w):
    class Scale:
        k = 1.0

        def scaled(self, x, power):
            return x**power * self.k

        squared = functools.partialmethod(scaled, power=2)

    o = Scale()
    step = w.compile(lambda x: o.squared(x))
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def reduce(w):
    factors = [1.0, 2.0]
    step = w.compile(lambda x: functools.reduce(operator.mul, factors, x))
    for factors[1] in w.turns(2.0, 3.0, 4.0):
        w.call(step, points())


@row
def singledispatch_registered_later(w):
    @functools.singledispatch
    def gain(value):
        return 1.0

    step = w.compile(lambda x: x * gain(3))
    for i in range(8):
        w.call(step, points())
        if i in (0, 4):
            gain.register(int, lambda value, i=i: 10.0 + i)


@row
def attrgetter(w):
    o = types.SimpleNamespace(inner=types.SimpleNamespace(k=1.0))
    get = operator.attrgetter("inner.k")
    step = w.compile(lambda x: x * get(o))
    for o.inner.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def itemgetter(w):
    table = {"a": 1.0, "b": 2.0}
    get = operator.itemgetter("a", "b")
    step = w.compile(lambda x: x * sum(get(table)))
    for table["b"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def methodcaller(w):
    class Holder:
        k = 1.0

        def gain(self, n):
            return self.k * n

    o, call = Holder(), operator.methodcaller("gain", 2)
    step = w.compile(lambda x: x * call(o))
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def bound_append_of_a_list(w):
    log = []
    append = log.append

    def step(x):
        append(len(log))
        return x * len(log)

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def bound_get_of_a_dict(w):
    table = {"k": 1.0}
    get = table.get
    step = w.compile(lambda x: x * get("k", 5.0))
    for k in w.turns(1.0, 2.0, None):
        table.pop("k", None)
        if k is not None:
            table["k"] = k
        w.call(step, points())


@row
def bound_getitem_and_pop(w):
    stack = [float(i) for i in range(20)]
    pop, at = stack.pop, stack.__getitem__
    step = w.compile(lambda x: x * pop() + at(-1))
    for _ in range(7):
        w.call(step, points())


@row
def max_min_sorted_sum_of_state(w):
    numbers = [3.0, 1.0, 2.0]
    step = w.compile(lambda x: x * max(numbers) + min(numbers) + sorted(numbers)[1] * sum(numbers) + any(numbers))
    for numbers[1] in w.turns(1.0, 5.0, 0.0):
        w.call(step, points())


@row
def map_over_attributes(w):
    objects = [types.SimpleNamespace(k=1.0), types.SimpleNamespace(k=2.0)]
    step = w.compile(lambda x: x * sum(map(operator.attrgetter("k"), objects)))
    for objects[1].k in w.turns(2.0, 3.0, 4.0):
        w.call(step, points())

"""Functions: their attributes, defaults, code, closures; helpers, methods, partials and decorators that change."""

from __future__ import annotations

import functools
import types

from compile.scenarios.harness import points, row

import leafgrad


@row
def attribute_of_a_function(w):
    def gain():
        return gain.value

    gain.value = 1.0
    step = w.compile(lambda x: x * gain())
    for gain.value in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def counter_on_a_function(w):
    def gain():
        gain.calls += 1
        return float(gain.calls)

    gain.calls = 0
    step = w.compile(lambda x: x * gain())
    for _ in range(7):
        w.call(step, points())


@row
def attribute_of_the_step_itself(w):
    def step(x):
        return x * state.k

    state = step
    step.k = 1.0
    compiled = w.compile(step)
    for step.k in w.turns(1.0, 2.0, 3.0):
        w.call(compiled, points())


@row
def default_argument_that_is_mutated(w):
    def gain(table=None):
        return table[0]

    gain.__defaults__ = ([1.0],)

    step = w.compile(lambda x: x * gain())
    for gain.__defaults__[0][0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def default_argument_that_remembers(w):
    def gain(seen=None):
        seen.append(len(seen))
        return float(sum(seen))

    gain.__defaults__ = ([],)

    step = w.compile(lambda x: x * gain())
    for _ in range(7):
        w.call(step, points())


@row
def defaults_assigned(w):
    def step(x, k=1.0):
        return x * k

    compiled = w.compile(step)
    for k in w.turns(1.0, 2.0, 3.0):
        step.__defaults__ = (k,)
        w.call(compiled, points())


@row
def defaults_of_a_helper_assigned(w):
    def gain(k=1.0, *, b=0.0):
        return k + b

    step = w.compile(lambda x: x * gain())
    for k, b in w.turns((1.0, 0.0), (2.0, 0.0), (2.0, 1.0)):
        gain.__defaults__, gain.__kwdefaults__ = (k,), {"b": b}
        w.call(step, points())


@row
def code_assigned(w):
    def gain():
        return 1.0

    def other():
        return 2.0

    codes = gain.__code__, other.__code__
    step = w.compile(lambda x: x * gain())
    for i in w.turns(0, 1, 0):
        gain.__code__ = codes[i]
        w.call(step, points())


@row
def code_of_the_step_assigned(w):
    def step(x):
        return x * 2

    def other(x):
        return x * 3

    codes, compiled = (step.__code__, other.__code__), w.compile(step)
    for i in w.turns(0, 1, 0):
        step.__code__ = codes[i]
        w.call(compiled, points())


@row
def helper_in_a_variable(w):
    act = leafgrad.sin

    def step(x):
        return act(x)

    step = w.compile(step)
    for value in w.turns(leafgrad.sin, leafgrad.cos, leafgrad.tanh):
        act = value
        w.call(step, points())


@row
def helper_in_a_dict(w):
    acts, o = {"sin": leafgrad.sin, "cos": leafgrad.cos}, types.SimpleNamespace(name="sin")
    step = w.compile(lambda x: acts[o.name](x))
    for o.name, acts["sin"] in w.turns(("sin", leafgrad.sin), ("cos", leafgrad.sin), ("sin", leafgrad.exp)):
        w.call(step, points())


@row
def helper_that_looks_the_same_but_is_another(w):
    def scale(k):
        return lambda x: x * k

    o = types.SimpleNamespace(f=scale(1.0))
    step = w.compile(lambda x: o.f(x))
    for k in w.turns(1.0, 2.0, 3.0):
        o.f = scale(k)
        w.call(step, points())


@row
def function_as_argument(w):
    step = w.compile(lambda x, f: f(x) + 1)
    for f in w.turns(leafgrad.sin, leafgrad.cos, lambda x: x * 2):
        w.call(step, points(), f)


@row
def partial_argument_changed(w):
    def scaled(x, *, k):
        return x * k["k"]

    options = {"k": 1.0}
    step = w.compile(functools.partial(scaled, k=options))
    for options["k"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def partial_keywords_changed(w):
    f = functools.partial(lambda x, k: x * k, k=1.0)
    step = w.compile(lambda x: f(x))
    for f.keywords["k"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def partial_replaced(w):
    o = types.SimpleNamespace(f=None)
    step = w.compile(lambda x: o.f(x))
    for k in w.turns(1.0, 2.0, 3.0):
        o.f = functools.partial(leafgrad.mul, k)
        w.call(step, points())


@row
def decorator_with_state(w):
    state = types.SimpleNamespace(k=1.0, calls=0)

    def scaled(function):
        @functools.wraps(function)
        def wrapper(*args):
            state.calls += 1
            return function(*args) * state.k

        return wrapper

    @scaled
    def step(x):
        return x.sin()

    step = w.compile(step)
    for state.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def nonlocal_counter(w):
    n = 0

    def step(x):
        nonlocal n
        n += 1
        return x * n

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def recursion_by_state(w):
    o = types.SimpleNamespace(depth=2)

    def nested(x, n):
        return x if n == 0 else nested(x * 2 + n, n - 1)

    step = w.compile(lambda x: nested(x, o.depth))
    for o.depth in w.turns(2, 3, 0):
        w.call(step, points())


@row
def closures_made_inside(w):
    o = types.SimpleNamespace(k=1.0)

    def step(x):
        scales = [lambda x, i=i: x * o.k + i for i in range(3)]
        return sum(f(x) for f in scales)

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def class_made_inside(w):
    o = types.SimpleNamespace(k=1.0)

    def step(x):
        class Scale:
            k = o.k

            def __call__(self, x):
                return x * self.k

        return Scale()(x)

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def comprehension_and_generator_inside(w):
    table = {"a": 1.0, "b": 2.0}

    def terms(x):
        for name in sorted(table):
            yield x * table[name]

    step = w.compile(
        lambda x: sum(terms(x)) + sum([2 * table[k] for k in table]) + len({v // 2 for v in table.values()})
    )
    for table["b"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def eval_and_exec_of_text(w):
    o = types.SimpleNamespace(formula="x * 2")
    step = w.compile(lambda x: eval(o.formula, {"x": x}))
    for o.formula in w.turns("x * 2", "x * 3", "x ** 2"):
        w.call(step, points())


@row
def globals_read_by_name(w):
    space = {"gain": 1.0}
    exec("def gained(x):\n    return x * globals()['gain']", space)
    gained = space["gained"]
    step = w.compile(lambda x: gained(x))
    for space["gain"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def frames_are_read(w):
    m = w.module("frames", "import sys\ndef caller_gain():\n    return sys._getframe(1).f_locals['gain']\n")
    o = types.SimpleNamespace(k=1.0)

    def step(x):
        gain = o.k
        return x * m.caller_gain() + gain * 0

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())

"""Autograd functions and ops of the user, with state, NumPy and Python inside."""

from __future__ import annotations

import types

import numpy as np
from compile.scenarios.harness import points, row

import leafgrad
from leafgrad.autograd import Function


def made_op(function, **rules):
    """An op of this name, made anew for each run."""
    made = leafgrad.op(function)
    if rules:
        made.vjp(**rules)
    return made


@row
def function_that_reads_state(w):
    o = types.SimpleNamespace(k=1.0)

    class Scale(Function):
        @staticmethod
        def forward(ctx, x):
            return x * o.k

        @staticmethod
        def backward(ctx, g):
            return g * o.k * 10

    def step(x):
        y = Scale.apply(x).sum()
        y.backward()
        return y

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points().requires_grad_())


@row
def function_differentiated_outside(w):
    o = types.SimpleNamespace(k=1.0)

    class Scale(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.k = o.k
            return x * o.k

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k * o.k

    step = w.compile(lambda x: Scale.apply(x).sum())
    for o.k in w.turns(1.0, 2.0, 3.0):
        x = points().requires_grad_()
        y = w.call(step, x)
        o.k += 1
        y.backward()
        w.see("gradient", x.grad)


@row
def function_that_counts(w):
    o = types.SimpleNamespace(forward=0, backward=0)

    class Counting(Function):
        @staticmethod
        def forward(ctx, x):
            o.forward += 1
            return x * 2

        @staticmethod
        def backward(ctx, g):
            o.backward += 1
            return g * o.backward

    def step(x):
        Counting.apply(x).sum().backward()

    step = w.compile(step)
    w.watch(o)
    for i in range(7):
        w.call(step, (points() + i).requires_grad_())


@row
def function_that_saves_tensors(w):
    class Cube(Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return x**3 * k

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * g * ctx.k, None

    step = w.compile(lambda x, k: Cube.apply(x, k).sum())
    for k in w.turns(1.0, 2.0, 3.0):
        x = points().requires_grad_()
        w.call(step, x, k).backward()
        w.see("gradient", x.grad)


@row
def function_through_numpy(w):
    table = np.array([1.0, 2.0, 3.0], "float32")

    class Table(Function):
        @staticmethod
        def forward(ctx, x):
            return leafgrad.from_numpy(x.detach().numpy() * table)

        @staticmethod
        def backward(ctx, g):
            return g * leafgrad.from_numpy(table.copy())

    def step(x):
        y = Table.apply(x)
        y.sum().backward()
        return y

    step = w.compile(step)
    for table[0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points().requires_grad_())


@row
def backward_of_a_function_replaced(w):
    class Scale(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def step(x):
        Scale.apply(x).sum().backward()

    step = w.compile(step)
    for k in w.turns(2.0, 3.0, 4.0):
        Scale.backward = staticmethod(lambda ctx, g, k=k: g * k)
        w.call(step, points().requires_grad_())


@row
def op_that_calls_a_helper(w):
    o = types.SimpleNamespace(k=1.0)

    def gain():
        return o.k

    @leafgrad.op
    def scaled_by_a_helper(xp, x):
        return x * gain()

    step = w.compile(lambda x: scaled_by_a_helper(x) + 1)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def op_that_reads_an_array(w):
    table = np.array([1.0, 2.0, 3.0], "float32")

    @leafgrad.op
    def times_a_table(xp, x):
        return x * table

    step = w.compile(lambda x: times_a_table(x) + 1)
    for table[0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def op_that_counts(w):
    o = w.watch(types.SimpleNamespace(calls=0))

    @leafgrad.op
    def counted(xp, x):
        o.calls += 1
        return x * o.calls

    step = w.compile(lambda x: counted(x) + 1)
    for _ in range(7):
        w.call(step, points())


@row
def op_that_draws(w):
    rng = np.random.default_rng(0)

    @leafgrad.op
    def jittered(xp, x):
        return x + rng.random(3).astype("float32")

    step = w.compile(lambda x: jittered(x) * 2)
    for _ in range(7):
        w.call(step, points())


@row
def op_with_a_cache(w):
    o, cache = types.SimpleNamespace(k=1.0), {}

    @leafgrad.op
    def cached(xp, x):
        if "k" not in cache:
            cache["k"] = o.k
        return x * cache["k"]

    step = w.compile(lambda x: cached(x) + 1)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())
        cache.clear()


@row
def op_that_calls_an_object_compiled_elsewhere(w):
    class Jitted:
        """Stands for a function of numba: a callable without Python code."""

        def __init__(self):
            self.k = np.float32(1.0)

        def __call__(self, a):
            return a * self.k

    jitted = Jitted()

    @leafgrad.op
    def jitted_op(xp, x):
        return jitted(x)

    step = w.compile(lambda x: jitted_op(x) + 1)
    for k in w.turns(1.0, 2.0, 3.0):
        jitted.k = np.float32(k)
        w.call(step, points())


@row
def op_whose_rule_reads_state(w):
    o = types.SimpleNamespace(k=1.0)

    @leafgrad.op
    def doubled(xp, x):
        return x * 2

    doubled.vjp(x=lambda g, out, x: g * o.k)

    def step(x):
        doubled(x).sum().backward()

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points().requires_grad_())


@row
def op_whose_shape_depends_on_state(w):
    o = types.SimpleNamespace(n=2)

    @leafgrad.op
    def repeated(xp, x):
        return xp.concatenate([x] * o.n)

    step = w.compile(lambda x: repeated(x) + 1)
    for o.n in w.turns(2, 3, 1):
        w.call(step, points())


@row
def op_with_an_option(w):
    @leafgrad.op
    def powered(xp, x, *, p=2):
        return x**p

    o = types.SimpleNamespace(p=2)
    step = w.compile(lambda x: powered(x, p=o.p) + 1)
    for o.p in w.turns(2, 3, 1):
        w.call(step, points())


@row
def op_that_raises_on_some_values(w):
    @leafgrad.op
    def careful(xp, x):
        if float(x.sum()) > 10:
            raise ValueError("too large")
        return x * 1

    t = points()

    def step(x):
        t.add_(1)
        return careful(x)

    step = w.compile(step)
    for k in w.turns(1.0, 5.0, 0.5):
        w.call(step, points() * k)


@row
def attribute_of_a_tensor(w):
    t = points()
    t.gain = 1.0
    step = w.compile(lambda x: x * t * t.gain)
    for t.gain in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def attribute_of_an_argument(w):
    step = w.compile(lambda x: x * getattr(x, "gain", 1.0))
    for k in w.turns(None, 2.0, 3.0):
        x = points()
        if k is not None:
            x.gain = k
        w.call(step, x)


@row
def vmap_inside(w):
    o = types.SimpleNamespace(k=1.0)
    step = w.compile(lambda x: leafgrad.vmap(lambda row: row.sum() * o.k)(x))
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points(6).reshape(2, 3))


@row
def jacobian_inside(w):
    o = types.SimpleNamespace(k=1.0)
    step = w.compile(lambda x: leafgrad.func.jacrev(lambda v: v**2 * o.k)(x))
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def functional_call_inside(w):
    net = leafgrad.nn.Linear(3, 1)
    weights = {"weight": leafgrad.ones(1, 3), "bias": leafgrad.zeros(1)}
    step = w.compile(lambda x: leafgrad.func.functional_call(net, weights, (x,)))
    for k in w.turns(1.0, 2.0, 3.0):
        weights["weight"] = leafgrad.full((1, 3), k)
        w.call(step, points())

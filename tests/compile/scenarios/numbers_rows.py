"""Python numbers that a step reads, and that change: as argument, attribute, global, closure, item."""

from __future__ import annotations

import decimal
import fractions
import functools
import types

from compile.scenarios.harness import points, row

import leafgrad

GAIN = 2.0
TABLE = {"gain": 2.0, "nested": {"gains": [1.0, 2.0]}}


@row
def argument(w):
    step = w.compile(lambda x, k: x * k)
    for k in w.turns(2.0, 3.0, 5.0, 7.0, 11.0):
        w.call(step, points(), k)


@row
def where_slices_begin(w):
    data = points(12).reshape(6, 2)
    step = w.compile(lambda x, i, j: (data[i : i + 2] * x[j] + data[-1 - i, j]).sum(0))
    for i, j in w.turns((0, 0), (1, 1), (3, 2), (4, 0), (2, -1)):
        w.call(step, points(), i, j)


@row
def slice_that_is_written_and_one_that_is_returned(w):
    data = points(12)

    def step(x, i):
        part = data[i : i + 3]
        with leafgrad.no_grad():
            data[i].add_(1)
        return part * x, data[i : i + 2]

    step = w.compile(step)
    for i in w.turns(0, 1, 5, 9, 3):
        w.call(step, points(), i)


@row
def keyword_argument_with_a_default(w):
    def step(x, *, k=2.0, power=1):
        return (x * k) ** power

    step = w.compile(step)
    for given in w.turns({}, {"k": 3.0}, {"power": 2}, {"k": 2.0, "power": 1}):
        w.call(step, points(), **given)


@row
def positional_arguments_of_any_count(w):
    step = w.compile(lambda x, *factors: sum((x * f for f in factors), x))
    for factors in w.turns((1.0,), (1.0, 2.0), (), (4.0,), (2.0, 1.0)):
        w.call(step, points(), *factors)


@row
def attribute(w):
    o = types.SimpleNamespace(k=2.0)
    step = w.compile(lambda x: x * o.k)
    for o.k in w.turns(2.0, 3.0, 5.0):
        w.call(step, points())


@row
def nested_attribute(w):
    o = types.SimpleNamespace(inner=types.SimpleNamespace(options={"k": [0.0, 2.0]}))
    step = w.compile(lambda x: x * o.inner.options["k"][1])
    for k in w.turns(2.0, 3.0, 5.0):
        o.inner.options["k"][1] = k
        w.call(step, points())


@row
def object_in_the_middle_of_a_path_is_replaced(w):
    o = types.SimpleNamespace(inner=types.SimpleNamespace(k=1.0))
    step = w.compile(lambda x: x * o.inner.k)
    for k in w.turns(2.0, 3.0, 5.0):
        o.inner = types.SimpleNamespace(k=k)
        w.call(step, points())


@row
def closure(w):
    k = 2.0

    def step(x):
        return x * k

    step = w.compile(step)
    for value in w.turns(2.0, 3.0, 5.0):
        k = value
        w.call(step, points())


def scaled_by_a_global(x):
    return x * GAIN + TABLE["nested"]["gains"][0]


@row
def global_variable(w):
    step = w.compile(scaled_by_a_global)
    for k in w.turns(2.0, 3.0, 5.0):
        w.patch.setitem(globals(), "GAIN", k)
        w.call(step, points())


@row
def item_of_a_global_dict(w):
    step = w.compile(lambda x: scaled_by_a_global(x) * TABLE["gain"])
    for k in w.turns(2.0, 3.0, 5.0):
        w.patch.setitem(TABLE, "gain", k)
        w.patch.setitem(TABLE, "nested", {"gains": [k / 2]})
        w.call(step, points())


@row
def int_float_or_bool(w):
    o = types.SimpleNamespace(k=1)
    step = w.compile(lambda x: leafgrad.arange(3) * o.k)
    for o.k in w.turns(1, 1.0, True):
        w.call(step, points())


@row
def int_float_or_bool_as_argument(w):
    step = w.compile(lambda x, k: x * k)
    for k in w.turns(1, 1.0, True, 0, False, 0.0):
        w.call(step, leafgrad.arange(3), k)


@row
def minus_zero(w):
    o = types.SimpleNamespace(k=0.0)
    step = w.compile(lambda x: 1 / (x * o.k))
    for o.k in w.turns(0.0, -0.0, 1.0):
        w.call(step, points())


@row
def minus_zero_as_argument(w):
    step = w.compile(lambda x, k: 1 / (x * k))
    for k in w.turns(0.0, -0.0, 1.0):
        w.call(step, points(), k)


@row
def nan_and_infinity(w):
    o = types.SimpleNamespace(k=1.0)
    step = w.compile(lambda x: x + o.k)
    for o.k in w.turns(1.0, float("nan"), float("inf"), float("nan"), -float("inf")):
        w.call(step, points())


@row
def branch_on_nan(w):
    o = types.SimpleNamespace(k=1.0)
    step = w.compile(lambda x: x * 2 if o.k == o.k else x * 3)
    for o.k in w.turns(1.0, float("nan"), 2.0):
        w.call(step, points())


@row
def big_int(w):
    o = types.SimpleNamespace(n=2**70)
    step = w.compile(lambda x: x * (o.n % 1000) + float(o.n >> 60))
    for o.n in w.turns(2**70, 2**70 + 1, 2**71):
        w.call(step, points())


@row
def fraction(w):
    o = types.SimpleNamespace(q=fractions.Fraction(1, 3))
    step = w.compile(lambda x: x * float(o.q) + o.q.numerator)
    for o.q in w.turns(fractions.Fraction(1, 3), fractions.Fraction(2, 3), fractions.Fraction(1, 4)):
        w.call(step, points())


@row
def decimal_number(w):
    o = types.SimpleNamespace(d=decimal.Decimal("0.1"))
    step = w.compile(lambda x: x * float(o.d))
    for d in w.turns("0.1", "0.2", "0.10"):
        o.d = decimal.Decimal(d)
        w.call(step, points())


@row
def precision_of_the_decimal_context(w):
    context = decimal.getcontext()
    w.patch.setattr(context, "prec", 28)
    step = w.compile(lambda x: x * float(decimal.Decimal(1) / decimal.Decimal(3)))
    for prec in w.turns(28, 2, 1):
        w.patch.setattr(context, "prec", prec)
        w.call(step, points())


@row
def complex_number(w):
    o = types.SimpleNamespace(z=1 + 2j)
    step = w.compile(lambda x: x * o.z.imag + o.z.real)
    for o.z in w.turns(1 + 2j, 1 + 3j, 2 + 2j):
        w.call(step, points())


@row
def branch_by_a_threshold(w):
    o = types.SimpleNamespace(epoch=0)
    step = w.compile(lambda x: x * 2 if o.epoch < 3 else x.sum())
    for o.epoch in w.turns(0, 5, 2, 3):
        w.call(step, points())


@row
def number_of_a_loop(w):
    o = types.SimpleNamespace(n=2)

    def step(x):
        for i in range(o.n):
            x = x * 1.5 + i
        return x

    step = w.compile(step)
    for o.n in w.turns(2, 3, 0, 5):
        w.call(step, points())


@row
def number_that_counts_up_at_each_call(w):
    o = types.SimpleNamespace(t=0)
    step = w.compile(lambda x: x / (1 + 0.1 * o.t))
    for _ in range(14):
        w.call(step, points())
        o.t += 1


@row
def exponent(w):
    o = types.SimpleNamespace(p=2)
    step = w.compile(lambda x: x**o.p)
    for o.p in w.turns(2, 3, 0.5, 1, 0, -1):
        w.call(step, points())


@row
def dimension_and_shape(w):
    o = types.SimpleNamespace(dim=0, shape=(3, 2))
    step = w.compile(lambda x: x.reshape(o.shape).sum(dim=o.dim))
    for o.dim, o.shape in w.turns((0, (3, 2)), (1, (3, 2)), (-1, (2, 3)), (0, (6,))):
        w.call(step, points(6))


@row
def size_of_what_is_made(w):
    o = types.SimpleNamespace(n=3)
    step = w.compile(lambda: leafgrad.linspace(0, 1, o.n) * leafgrad.ones(o.n))
    for o.n in w.turns(3, 4, 1):
        w.call(step)


@row
def text_that_names_the_operation(w):
    o = types.SimpleNamespace(how="sin")
    step = w.compile(lambda x: getattr(leafgrad, o.how)(x))
    for o.how in w.turns("sin", "cos", "exp"):
        w.call(step, points())


@row
def loss_weights_in_a_list(w):
    weights = [1.0, 0.5]
    step = w.compile(lambda x: sum(k * (x**i).sum() for i, k in enumerate(weights)))
    for k in w.turns(0.5, 2.0, 3.0):
        weights[1] = k
        w.call(step, points())


@row
def list_that_grows_and_shrinks(w):
    weights = [1.0]
    step = w.compile(lambda x: sum(x * k for k in weights))
    for n in w.turns(1, 2, 4):
        weights[:] = [1.0 + i for i in range(n)]
        w.call(step, points())


@row
def time_step_of_an_integrator(w):
    state = types.SimpleNamespace(dt=0.1, t=0.0, u=leafgrad.ones(3))

    def step():
        k = -state.u + state.t
        state.u.add_(k * state.dt)
        return state.u.sum()

    step = w.compile(step)
    for state.dt in w.turns(0.1, 0.05, 0.2):
        w.call(step)
        state.t += state.dt


@row
def number_that_a_cache_keeps(w):
    o = types.SimpleNamespace(k=1.0)

    @functools.lru_cache
    def scaled(n):
        return o.k * n

    step = w.compile(lambda x, n: x * scaled(n))
    for i, n in enumerate((1, 1, 1, 2, 2, 3, 3, 1)):
        o.k = i + 1.0
        w.call(step, points(), n)

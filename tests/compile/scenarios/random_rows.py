"""Random numbers, clocks, the environment, iterators held outside: what differs at each call by itself."""

from __future__ import annotations

import contextvars
import functools
import itertools
import os
import random
import time
import types

import numpy as np
from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn
from leafgrad.nn import functional as F

LEGACY = np.random


@row
def random_random(w):
    step = w.compile(lambda x: x * random.random())
    for _ in range(7):
        w.call(step, points())


@row
def random_random_that_is_seeded_between_calls(w):
    step = w.compile(lambda x: x * random.uniform(1.0, 2.0))
    for seed in w.turns(1, 2, 3):
        random.seed(seed)
        w.call(step, points())


@row
def random_choice_decides_a_branch(w):
    step = w.compile(lambda x: x.sin() if random.choice([True, False]) else x.cos())
    for _ in range(10):
        w.call(step, points())


@row
def random_choice_of_an_activation(w):
    step = w.compile(lambda x: random.choice([leafgrad.sin, leafgrad.tanh, leafgrad.exp])(x))
    for _ in range(10):
        w.call(step, points())


@row
def random_shuffle_of_a_list_outside(w):
    order = [0, 1, 2]

    def step(x):
        random.shuffle(order)
        return x[order[0]] * 10 + x[order[1]]

    step = w.compile(step)
    for _ in range(8):
        w.call(step, points())


@row
def random_sample_of_indices(w):
    step = w.compile(lambda x: x[random.sample(range(6), 3)])
    for _ in range(8):
        w.call(step, points(6))


@row
def generator_of_random_held(w):
    source = random.Random(5)
    step = w.compile(lambda x: x + source.gauss(0, 1))
    for _ in range(7):
        w.call(step, points())


@row
def bound_method_of_a_random_generator(w):
    draw = random.Random(5).random
    step = w.compile(lambda x: x + draw())
    for _ in range(7):
        w.call(step, points())


@row
def random_number_drawn_in_a_helper_in_an_object(w):
    class Jitter:
        def __init__(self):
            self.source = random.Random(1)

        def __call__(self, x):
            return x + 0.1 * self.source.random()

    jitter = Jitter()
    step = w.compile(lambda x: jitter(x).sum())
    for _ in range(7):
        w.call(step, points())


@row
def numpy_legacy_number(w):
    step = w.compile(lambda x: x * LEGACY.rand())
    for _ in range(7):
        w.call(step, points())


@row
def numpy_legacy_array(w):
    step = w.compile(lambda x: x + leafgrad.tensor(LEGACY.uniform(size=3), dtype=leafgrad.float32))
    for _ in range(7):
        w.call(step, points())


@row
def numpy_legacy_seeded_inside(w):
    o = types.SimpleNamespace(seed=0)

    def step(x):
        LEGACY.seed(o.seed)
        return x * LEGACY.rand()

    step = w.compile(step)
    for o.seed in w.turns(0, 1, 2):
        w.call(step, points())


@row
def numpy_generator_number(w):
    rng = np.random.default_rng(0)
    step = w.compile(lambda x: x * float(rng.random()))
    for _ in range(7):
        w.call(step, points())


@row
def numpy_generator_array(w):
    rng = np.random.default_rng(0)
    step = w.compile(lambda x: x + leafgrad.from_numpy(rng.normal(size=3).astype("float32")))
    for _ in range(7):
        w.call(step, points())


@row
def numpy_generator_permutation_of_a_batch(w):
    rng, data = np.random.default_rng(0), points(8)
    step = w.compile(lambda: data[rng.permutation(8)[:3].tolist()])
    for _ in range(7):
        w.call(step)


@row
def generator_of_leafgrad(w):
    source = leafgrad.Generator().manual_seed(3)
    step = w.compile(lambda x: x + leafgrad.rand(3, generator=source))
    for i in range(8):
        if i == 5:
            source.manual_seed(3)
        w.call(step, points())


@row
def generator_of_leafgrad_that_is_replaced(w):
    o = types.SimpleNamespace(source=leafgrad.Generator())
    step = w.compile(lambda x: x + leafgrad.randn(3, generator=o.source))
    for seed in w.turns(1, 2, 3):
        o.source = leafgrad.Generator().manual_seed(seed)
        w.call(step, points())


@row
def manual_seed_inside(w):
    o = types.SimpleNamespace(seed=0)

    def step(x):
        leafgrad.manual_seed(o.seed)
        return x + leafgrad.rand(3)

    step = w.compile(step)
    for o.seed in w.turns(0, 1, 2):
        w.call(step, points())


@row
def manual_seed_outside(w):
    step = w.compile(lambda x: x + leafgrad.rand(3))
    for seed in w.turns(0, 1, 2):
        leafgrad.manual_seed(seed)
        w.call(step, points())
        w.call(step, points())


@row
def state_of_the_generator_saved_and_restored_inside(w):
    def step(x):
        state = leafgrad.get_rng_state()
        first = leafgrad.rand(3)
        leafgrad.set_rng_state(state)
        return x + first - 2 * leafgrad.rand(3)

    step = w.compile(step)
    for _ in range(6):
        w.call(step, points())
        leafgrad.rand(1)


@row
def draws_outside_between_calls(w):
    step = w.compile(lambda x: F.dropout(x, 0.5) + leafgrad.randn(3))
    for i in range(7):
        w.call(step, points())
        leafgrad.rand(i)


@row
def number_of_draws_depends_on_state(w):
    o = types.SimpleNamespace(n=1)
    step = w.compile(lambda x: sum((leafgrad.rand(3) for _ in range(o.n)), x))
    for o.n in w.turns(1, 3, 0):
        w.call(step, points())


@row
def draw_from_a_distribution(w):
    normal = leafgrad.distributions.Normal(leafgrad.zeros(3), leafgrad.ones(3))
    step = w.compile(lambda x: x + normal.sample())
    for _ in range(7):
        w.call(step, points())


@row(constant=True)
def time_perf_counter(w):
    step = w.compile(lambda x: x + time.perf_counter())
    last = 0.0
    for _ in range(6):
        now = w.call(step, leafgrad.zeros(1, dtype=leafgrad.float64), hide=True)
        w.see("it grew", bool((now > last).all()))
        last = now


@row
def time_time_on_a_clock_that_is_set(w):
    o = types.SimpleNamespace(now=1.0)
    w.patch.setattr(time, "time", lambda: o.now)
    step = w.compile(lambda x: x + time.time())
    for o.now in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def time_since_the_last_call(w):
    o = types.SimpleNamespace(last=time.monotonic())

    def step(x):
        late = time.monotonic() - o.last > 500
        o.last = None
        return x * 2 if late else x

    step = w.compile(step)
    for pause in w.turns(0, 1000):
        o.last = time.monotonic() - pause
        w.call(step, points())


@row(constant=True)
def datetime_now(w):
    m = w.module(
        "a_module_with_a_date", "import datetime\ndef stamp():\n    return datetime.datetime.now().timestamp()\n"
    )
    step = w.compile(lambda x: x + m.stamp())
    last = 0.0
    for _ in range(6):
        now = w.call(step, leafgrad.zeros(1, dtype=leafgrad.float64), hide=True)
        w.see("it grew", bool((now > last).all()))
        last = now
        time.sleep(0.001)


@row
def environment_variable(w):
    w.patch.setenv("A_GAIN", "2.0")
    step = w.compile(lambda x: x * float(os.environ["A_GAIN"]))
    for value in w.turns("2.0", "3.0", "5.0"):
        w.patch.setenv("A_GAIN", value)
        w.call(step, points())


@row
def environment_variable_that_may_be_missing(w):
    step = w.compile(lambda x: x * float(os.getenv("A_GAIN", "1")) + ("A_FLAG" in os.environ))
    for value in w.turns(None, "3.0", "5.0"):
        w.patch.delenv("A_GAIN", raising=False)
        w.patch.delenv("A_FLAG", raising=False)
        if value:
            w.patch.setenv("A_GAIN", value)
            w.patch.setenv("A_FLAG", "")
        w.call(step, points())


@row
def working_directory_and_files(w):
    o = types.SimpleNamespace(path=os.devnull)
    step = w.compile(lambda x: x * (1 + os.path.isdir(o.path)) + len(os.path.basename(o.path)))
    for o.path in w.turns(os.devnull, "/", "/nowhere"):
        w.call(step, points())


@row
def context_variable(w):
    gain = contextvars.ContextVar("gain", default=1.0)
    step = w.compile(lambda x: x * gain.get())
    for k in w.turns(1.0, 3.0, 5.0):
        gain.set(k)
        w.call(step, points())


@row
def context_variable_that_is_reset(w):
    gain = contextvars.ContextVar("gain", default=1.0)
    step = w.compile(lambda x: x * gain.get())
    for k in w.turns(None, 3.0, 5.0):
        token = gain.set(k) if k else None
        w.call(step, points())
        if token:
            gain.reset(token)


@row
def helper_with_a_cache_that_is_cleared(w):
    o = types.SimpleNamespace(k=1.0)

    @functools.cache
    def gain():
        return o.k

    step = w.compile(lambda x: x * gain())
    for o.k in w.turns(1.0, 3.0, 5.0):
        w.call(step, points())
        gain.cache_clear()


@row
def helper_with_a_bounded_cache(w):
    asked = []

    @functools.lru_cache(maxsize=2)
    def gain(i):
        asked.append(i)
        return 1.0 + i + len(asked)

    o = types.SimpleNamespace(i=0)
    step = w.compile(lambda x: x * gain(o.i))
    for o.i in w.turns(0, 1, 2):
        w.call(step, points())


@row
def cached_property(w):
    class Settings:
        scale = 2.0

        @functools.cached_property
        def gain(self):
            return self.scale + 1

    o = Settings()
    step = w.compile(lambda x: x * o.gain)
    for o.scale in w.turns(2.0, 3.0, 5.0):
        w.call(step, points())
        if o.scale == 3.0:
            vars(o).pop("gain", None)


@row
def itertools_count(w):
    counter = itertools.count()
    step = w.compile(lambda x: x * next(counter))
    for _ in range(7):
        w.call(step, points())


def drawn_before(name, function):
    """A row in which an op without a shape rule comes late, after a draw that is followed, and reads it."""

    def script(w):
        dropout, late = nn.Dropout(0.5), [False]

        def step(x):
            y = dropout(x.repeat(3, 1))
            drawn = leafgrad.rand(3)
            if late[0]:
                y = y + function(y) * 0
            return y + leafgrad.rand(3) + drawn

        step = w.compile(step)
        for late[0] in w.turns(False, True, False):
            w.call(step, points())

    script.__name__ = f"draws_around_a_late_{name}"
    row(script)


drawn_before("svd", lambda y: leafgrad.linalg.svd(y)[1].sum())
drawn_before("quantile", lambda y: leafgrad.quantile(y, 0.5))
drawn_before("empty_slice", lambda y: y[3:].sum())
drawn_before("sort", lambda y: y.sort()[0].sum())


@row
def empty_batch_before_a_draw(w):
    def step(x):
        empty = leafgrad.rand(0, 3, requires_grad=True)
        (empty * x).sum().backward()
        return x * leafgrad.rand(3)

    step = w.compile(step)
    for k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points() * k)

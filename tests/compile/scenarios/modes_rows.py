"""Modes: gradients on and off, the default dtype, threads and other settings, changed outside and inside."""

from __future__ import annotations

import contextlib
import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn


@row
def no_grad_outside(w):
    p = nn.Parameter(points())
    step = w.compile(lambda x: p * x)
    for on in w.turns(True, False, True):
        with leafgrad.set_grad_enabled(on):
            w.call(step, points())


@row
def no_grad_outside_left_on(w):
    p = nn.Parameter(points())
    step = w.compile(lambda x: p * x)
    for on in w.turns(True, False, True):
        leafgrad.set_grad_enabled(on)
        w.call(step, points())
    leafgrad.set_grad_enabled(True)


@row
def inference_mode_outside(w):
    p = nn.Parameter(points())
    step = w.compile(lambda x: p * x)
    for on in w.turns(False, True, False):
        with leafgrad.inference_mode(on):
            w.call(step, points())


@row
def no_grad_inside(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(quiet=False)

    def step(x):
        with leafgrad.set_grad_enabled(not o.quiet):
            y = p * x
        return y + p.detach()

    step = w.compile(step)
    for o.quiet in w.turns(False, True, False):
        w.call(step, points())


@row
def gradients_left_off_inside(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(on=True)

    def step(x):
        leafgrad.set_grad_enabled(o.on)
        return p * x

    step = w.compile(step)
    for o.on in w.turns(True, False, True):
        w.call(step, points())
        w.see("enabled", leafgrad.is_grad_enabled())
        leafgrad.set_grad_enabled(True)


@row
def gradients_enabled_inside_no_grad(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(on=True)

    def step(x):
        with leafgrad.enable_grad() if o.on else leafgrad.no_grad():
            return p * x

    step = w.compile(step)
    for o.on in w.turns(True, False, True):
        with leafgrad.no_grad():
            w.call(step, points())


@row
def decorated_by_no_grad(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(k=1.0)

    @leafgrad.no_grad()
    def step(x):
        p.sub_(x * o.k)
        return p * x

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def mode_is_asked_inside(w):
    step = w.compile(lambda x: x * 2 if leafgrad.is_grad_enabled() else x * 3)
    for on in w.turns(True, False, True):
        with leafgrad.set_grad_enabled(on):
            w.call(step, points())


@row
def default_dtype_outside(w):
    step = w.compile(lambda x: x * leafgrad.linspace(0, 1, 3) + leafgrad.tensor([1.0, 2.0, 3.0]))
    for dtype in w.turns(leafgrad.float32, leafgrad.float64, leafgrad.float32):
        leafgrad.set_default_dtype(dtype)
        w.call(step, leafgrad.ones(3, dtype=leafgrad.float32))


@row
def default_dtype_set_inside(w):
    o = types.SimpleNamespace(dtype=leafgrad.float32)

    def step(x):
        leafgrad.set_default_dtype(o.dtype)
        return x * leafgrad.ones(3)

    step = w.compile(step)
    for o.dtype in w.turns(leafgrad.float32, leafgrad.float64, leafgrad.float32):
        w.call(step, leafgrad.ones(3, dtype=leafgrad.float32))
        leafgrad.set_default_dtype(leafgrad.float32)


@row
def default_dtype_is_asked_inside(w):
    step = w.compile(lambda x: x.to(leafgrad.get_default_dtype()) * 2)
    for dtype in w.turns(leafgrad.float32, leafgrad.float64, leafgrad.float32):
        leafgrad.set_default_dtype(dtype)
        w.call(step, leafgrad.ones(3, dtype=leafgrad.float32))


@row
def dtype_in_an_attribute(w):
    o = types.SimpleNamespace(dtype=leafgrad.float32)
    step = w.compile(lambda x: x.to(o.dtype) + leafgrad.ones(3, dtype=o.dtype))
    for o.dtype in w.turns(leafgrad.float32, leafgrad.float64, leafgrad.int64):
        w.call(step, points())


@row
def device_in_an_attribute(w):
    o = types.SimpleNamespace(device="cpu", k=1.0)
    step = w.compile(lambda x: x.to(o.device) * leafgrad.ones(3, device=o.device) * o.k)
    for o.device, o.k in w.turns(("cpu", 1.0), (leafgrad.device("cpu"), 1.0), ("cpu", 2.0)):
        w.call(step, points())


@row
def print_options_and_texts(w):
    step = w.compile(lambda x: str(x / 3))
    for precision in w.turns(4, 2, 6):
        leafgrad.set_printoptions(precision=precision)
        w.call(step, points())
    leafgrad.set_printoptions(precision=4)


@row
def number_of_threads_is_asked(w):
    before = leafgrad.get_num_threads()
    step = w.compile(lambda x: x * leafgrad.get_num_threads())
    for n in w.turns(1, 2, 3):
        leafgrad.set_num_threads(n)
        w.call(step, points())
    leafgrad.set_num_threads(before)


@row
def requires_grad_of_an_argument_flips(w):
    step = w.compile(lambda x: x * x)
    for on in w.turns(False, True, False):
        x = points().requires_grad_(on)
        y = w.call(step, x)
        if on:
            y.sum().backward()
            w.see("gradient", x.grad)


@row
def requires_grad_set_inside(w):
    def step(x):
        x.requires_grad_()
        (x**3).sum().backward()
        return x.grad

    step = w.compile(step)
    for i in range(6):
        w.call(step, points() + i)


@row
def requires_grad_of_a_captured_tensor_set_inside(w):
    o = types.SimpleNamespace(t=points())

    def step(x):
        o.t.requires_grad_()
        o.t.grad = None
        (o.t * x).sum().backward()

    step = w.compile(step)
    for i in range(8):
        w.call(step, points() + i)
        if i in (0, 4):
            o.t = points() * 2


@row
def leaf_or_not(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(t=None)

    def step(x):
        return (o.t * x).sum() * (2 if o.t.is_leaf else 3)

    step = w.compile(step)
    for leaf in w.turns(True, False, True):
        o.t = p if leaf else p * 1
        p.grad = None
        w.call(step, points()).backward()
        w.see("gradient", p.grad)


@row
def captured_tensor_with_history_from_outside(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(h=None)
    step = w.compile(lambda x: (o.h * x).sum())
    for k in w.turns(1.0, 2.0, 3.0):
        o.h = (p * k).sin()
        p.grad = None
        w.call(step, points()).backward()
        w.see("gradient", p.grad)


@row
def backward_into_history_from_outside(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(h=None)

    def step(x):
        (o.h * x).sum().backward()

    step = w.compile(step)
    w.watch(p)
    for k in w.turns(1.0, 2.0, 3.0):
        o.h = (p * k).sin()
        w.call(step, points())


@row(constant=True)
def anomaly_detection(w):
    p = nn.Parameter(points())

    def step(x):
        p.grad = None
        (p * x).sum().backward()

    step = w.compile(step)
    for on in w.turns(False, True, False):
        with leafgrad.autograd.set_detect_anomaly(on):
            w.call(step, points())


@row
def autograd_version_of_a_step_without_results(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(create=False)

    def step(x):
        (g,) = leafgrad.autograd.grad((p**3 * x).sum(), p, create_graph=o.create)
        return g

    step = w.compile(step)
    for o.create in w.turns(False, True, False):
        g = w.call(step, points())
        if o.create:
            g.sum().backward()
            w.see("gradient", p.grad)


@row
def retain_graph_and_two_passes_inside(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(retain=True)

    def step(x):
        p.grad = None
        loss = (p.exp() * x).sum()
        loss.backward(retain_graph=o.retain)
        loss.backward()

    step = w.compile(step)
    for o.retain in w.turns(True, False, True):
        w.call(step, points())


@row
def no_grad_that_is_entered_in_one_step_and_left_in_another(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(mode=None)

    def step(x, enters):
        if enters:
            o.mode = leafgrad.no_grad()
            o.mode.__enter__()
        y = p * x
        if not enters:
            o.mode.__exit__(None, None, None)
        return y

    step = w.compile(step)
    for _ in range(6):
        for enters in (True, False):
            w.call(step, points(), enters)
            w.see("enabled", leafgrad.is_grad_enabled())


@row(constant=True)
def no_grad_that_the_caller_leaves(w):
    p = nn.Parameter(points())
    step = w.compile(lambda x, stack: (stack.enter_context(leafgrad.no_grad()), p * x)[1])
    for _ in range(6):
        with contextlib.ExitStack() as stack:
            w.call(step, points(), stack)
        w.see("after", p * 2)


@row
def enable_grad_in_a_generator_that_calls_share(w):
    p, o = nn.Parameter(points()), types.SimpleNamespace(batches=None)

    def batches():
        with leafgrad.enable_grad():
            yield 1.0
            yield 2.0

    def step(x):
        for _ in range(2):
            o.batches = o.batches or batches()
            for factor in o.batches:
                return p * x * factor
            o.batches = None

    step = w.compile(step)
    for _ in range(9):
        w.call(step, points())
    o.batches.close()
    w.see("after", p * 2)

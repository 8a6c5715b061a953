"""Control flow: branches, early returns, exceptions, contexts, threads, profilers, nested compiled functions."""

from __future__ import annotations

import contextlib
import sys
import threading
import types
import warnings

from compile.scenarios.harness import points, row

import leafgrad


@row
def early_return(w):
    o, t = types.SimpleNamespace(done=False), points()

    def step(x):
        if o.done:
            return None
        t.add_(x)
        return t.sum()

    step = w.compile(step)
    for o.done in w.turns(False, True, False):
        w.call(step, points())


@row
def context_manager_with_state(w):
    class Scaled:
        def __init__(self):
            self.k, self.entered = 1.0, 0

        def __enter__(self):
            self.entered += 1
            return self.k

        def __exit__(self, *error):
            self.entered -= 1

    o = Scaled()

    def step(x):
        with o as k:
            return x * k * o.entered

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def context_manager_that_swallows(w):
    o = types.SimpleNamespace(bad=False)

    def step(x):
        y = x
        with contextlib.suppress(ValueError):
            if o.bad:
                raise ValueError("bad")
            y = x * 2
        return y

    step = w.compile(step)
    for o.bad in w.turns(False, True, False):
        w.call(step, points())


@row
def context_manager_made_by_a_generator(w):
    o = types.SimpleNamespace(k=1.0, log=[])

    @contextlib.contextmanager
    def scaled():
        o.log.append("in")
        yield o.k
        o.log.append("out")

    def step(x):
        with scaled() as k:
            return x * k

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def exit_stack(w):
    o = types.SimpleNamespace(quiet=False, left=0)

    def leave():
        o.left += 1

    def step(x):
        with contextlib.ExitStack() as stack:
            if o.quiet:
                stack.enter_context(leafgrad.no_grad())
            stack.callback(leave)
            return x * x

    step = w.compile(step)
    for o.quiet in w.turns(False, True, False):
        w.call(step, points().requires_grad_())


@row
def lock_held_inside(w):
    lock, o = threading.Lock(), types.SimpleNamespace(k=1.0)

    def step(x):
        with lock:
            return x * o.k

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())
        w.see("it is free", lock.locked())


@row
def thread_inside_that_changes_state(w):
    o = types.SimpleNamespace(k=1.0)

    def change():
        o.k += 1

    def step(x):
        thread = threading.Thread(target=change)
        thread.start()
        thread.join()
        return x * o.k

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def thread_inside_that_reads_state(w):
    o = types.SimpleNamespace(k=1.0, seen=0.0)

    def read():
        o.seen = o.k * 2

    def step(x):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        return x * o.seen

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def thread_inside_that_computes_with_tensors(w):
    o = types.SimpleNamespace(k=1.0, out=None)

    def step(x):
        def compute():
            o.out = x * o.k

        thread = threading.Thread(target=compute)
        thread.start()
        thread.join()
        return o.out + 1

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def profiler_switched_off_inside(w):
    o = types.SimpleNamespace(k=1.0)

    def gain():
        return o.k

    def step(x):
        sys.setprofile(None)
        return x * gain()

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def tracer_switched_on_and_off_inside(w):
    o = types.SimpleNamespace(k=1.0)

    def gain():
        return o.k

    def step(x):
        before = sys.gettrace()
        sys.settrace(None)
        k = gain()
        sys.settrace(before)
        return x * k

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def compiled_function_inside(w):
    o = types.SimpleNamespace(k=1.0)
    inner = w.compile(lambda x: x * o.k)
    step = w.compile(lambda x: inner(x) + 1)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def compiled_function_inside_and_outside(w):
    o = types.SimpleNamespace(k=1.0)
    inner = w.compile(lambda x: x * o.k)
    step = w.compile(lambda x: inner(x) + inner(x * 2))
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(inner, points())
        w.call(step, points())


@row
def compiled_function_inside_with_effects(w):
    o = types.SimpleNamespace(calls=0)

    def inner(x):
        o.calls += 1
        return x * o.calls

    inner = w.compile(inner)
    step = w.compile(lambda x: inner(x) + inner(x))
    for _ in range(6):
        w.call(step, points())


@row
def compiled_recursion(w):
    o = types.SimpleNamespace(depth=1)

    def nested(x, n):
        return x if n == 0 else step(x * 2, n - 1) + 1

    step = w.compile(nested)
    for o.depth in w.turns(1, 2, 0):
        w.call(step, points(), o.depth)


@row
def function_compiled_inside(w):
    o = types.SimpleNamespace(k=1.0)
    step = w.compile(lambda x: w.compile_only(lambda y: y * o.k)(x))
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def warning_inside(w):
    o, caught = types.SimpleNamespace(calls=0), []

    def step(x):
        warnings.warn("again", DeprecationWarning, stacklevel=1)
        return x * 2

    step = w.compile(step)
    for i in range(6):
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            w.call(step, points() + i)
        caught.append([str(entry.message) for entry in log if entry.category is DeprecationWarning])
        w.see("warnings", caught, o)


@row
def match_statement(w):
    o = types.SimpleNamespace(how={"kind": "scale", "by": 2.0})

    def step(x):
        match o.how:
            case {"kind": "scale", "by": k}:
                return x * k
            case {"kind": "shift", **rest}:
                return x + rest["by"]
            case [first, *_]:
                return x - first
        return x

    step = w.compile(step)
    for o.how in w.turns({"kind": "scale", "by": 2.0}, {"kind": "shift", "by": 3.0}, [1.0, 2.0], None):
        w.call(step, points())


@row
def assertion_inside(w):
    o = types.SimpleNamespace(n=3)

    def step(x):
        assert x.shape[0] == o.n, "another shape"
        return x * 2

    step = w.compile(step)
    for o.n in w.turns(3, 4, 3):
        w.call(step, points())

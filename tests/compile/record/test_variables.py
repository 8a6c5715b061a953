"""Who holds what: also what the garbage collector was told not to look at."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
import types

import pytest

import leafgrad as lg

STORES = {
    "attribute": lambda o, x, n: setattr(o, "a", n * 2),
    "key": lambda o, x, n: o.d.update(k=n + 1),
    "item": lambda o, x, n: o.items.__setitem__(0, n * 3),
    "tuple": lambda o, x, n: o.items.__setitem__(0, (x, n)),
    "appended": lambda o, x, n: o.items.append(n),
    "module": lambda o, x, n: setattr(o.net, "extra", n * 2),
}


def seen(value):
    if isinstance(value, lg.Tensor):
        return value.tolist()
    return (type(value), [*map(seen, value)]) if isinstance(value, (list, tuple)) else (type(value), value)


def kept_by_each_step(way, wrap):
    o = types.SimpleNamespace(a=0, d={"k": 0}, items=[0], net=lg.nn.Linear(1, 1))
    o.net.extra = 0
    gc.freeze()

    def step(x, n):
        STORES[way](o, x, n)
        return (x * n).sum()

    step, kept = wrap(step), []
    for n in range(2, 9):
        step(lg.ones(2), n)
        kept.append((seen(o.a), seen(o.d["k"]), seen(o.items), seen(o.net.extra)))
    return kept


def as_eager():
    """Of each way, whether a compiled step leaves what an eager one does."""
    return {way: kept_by_each_step(way, lg.compile) == kept_by_each_step(way, lambda step: step) for way in STORES}


@pytest.fixture(scope="module")
def found():
    """The same in a process of its own: to find what holds a number, all that is frozen is looked through."""
    code = "import runpy, sys; print(runpy.run_path(sys.argv[1])['as_eager']())"
    done = subprocess.run([sys.executable, "-c", code, __file__], capture_output=True, text=True, check=True)
    return ast.literal_eval(done.stdout)


@pytest.mark.parametrize("way", STORES)
def test_numbers_that_frozen_objects_keep_are_ordinary_ones(way, found):
    assert found[way]

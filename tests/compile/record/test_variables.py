"""Who holds what: also what the garbage collector was told not to look at."""

from __future__ import annotations

import gc
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


@pytest.mark.parametrize("way", STORES)
def test_numbers_that_frozen_objects_keep_are_ordinary_ones(way, monkeypatch):
    found = []
    for wrap in (lambda step: step, lg.compile):
        o = types.SimpleNamespace(a=0, d={"k": 0}, items=[0], net=lg.nn.Linear(1, 1))
        o.net.extra = 0
        gc.freeze()
        monkeypatch.setattr(gc, "get_freeze_count", lambda: 1)

        def step(x, n, o=o):
            STORES[way](o, x, n)
            return (x * n).sum()

        step, kept = wrap(step), []
        for n in range(2, 9):
            step(lg.ones(2), n)
            kept.append((seen(o.a), seen(o.d["k"]), seen(o.items), seen(o.net.extra)))
        found.append(kept)
    assert found[0] == found[1]

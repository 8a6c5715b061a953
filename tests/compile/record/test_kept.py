"""What a call keeps outside of it leaves it open, the first call too, of which nobody knows what was before."""

from __future__ import annotations

import types

import pytest

import leafgrad as lg

KEPT = types.SimpleNamespace(item=None, items=[], keys={}, group=set())


def as_attribute(h):
    KEPT.item = h


def in_a_list(h):
    KEPT.items.append((1, {"a": [h]}))


def as_a_key(h):
    KEPT.keys[h] = 1


def in_a_set(h):
    KEPT.group.add(h)


def in_a_closure(h):
    KEPT.item = lambda: h


def in_a_generator(h):
    KEPT.item = (t for t in [h])


def in_an_error(h):
    KEPT.item = ValueError(h)


FOUND = {
    as_attribute: lambda: [KEPT.item],
    in_a_list: lambda: [t for _, held in KEPT.items for t in held["a"]],
    as_a_key: lambda: list(KEPT.keys),
    in_a_set: lambda: list(KEPT.group),
    in_a_closure: lambda: [KEPT.item()],
    in_a_generator: lambda: list(KEPT.item),
    in_an_error: lambda: list(KEPT.item.args),
}


@pytest.mark.parametrize("keep", FOUND)
def test_what_is_kept_and_returned_is_an_ordinary_tensor(keep):
    @lg.compile
    def step(x):
        h = x * 2
        keep(h)
        return h

    KEPT.items, KEPT.keys, KEPT.group = [], {}, set()
    for i in range(4):
        assert step(lg.full((2,), i)).tolist() == [2 * i] * 2
        assert all(t.tolist()[0] in range(8) for t in FOUND[keep]())
    assert bool(step._calls.programs) is (keep in (as_attribute, in_a_list))


def test_a_first_call_that_keeps_nothing_is_closed():
    layer = lg.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)

    @lg.compile(closed=True)
    def step(x):
        return {"all": [layer(x), (x * 2).T], "x": x}

    x = lg.ones(2, 3, 4)
    step(x)
    assert "1 program" in step.explain()


@pytest.mark.parametrize("key", [lambda h: h, lambda h: (1, h), lambda h: frozenset([h])])
def test_a_tensor_that_it_leaves_is_a_key_of_what_it_returns(key):
    state = types.SimpleNamespace(h=lg.zeros(1))

    def step(x):
        state.h = x * 2
        return {key(state.h): 1.0}

    compiled = lg.compile(step)
    for i in range(5):
        found = compiled(lg.full((1,), float(i)))
        assert next(iter(found)) == key(state.h)
        assert state.h.item() == 2.0 * i

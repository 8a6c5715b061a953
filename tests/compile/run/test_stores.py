"""What a step stores and never reads back is stored at each call, wherever it puts it."""

from __future__ import annotations

import collections
import sys
import types

import pytest

import leafgrad as lg

MODULE = "a_module_of_this_test"
# How a step declares and stores a value, and how the test finds it.
WAYS = {
    "global": ("global g", "g = {}", "g"),
    "new global": ("global new", "new = {}", "globals().get('new')"),
    "global of a loop": ("global g", "for g in [{}]: pass", "g"),
    "global by :=": ("global g", "(g := {})", "g"),
    "variable outside": ("nonlocal c", "c = {}", "get()"),
    "attribute": ("", "o.a = {}", "o.a"),
    "new attribute": ("", "o.b = {}", "getattr(o, 'b', 0)"),
    "setattr": ("", "setattr(o, name, {})", "o.a"),
    "vars": ("", "vars(o)['a'] = {}", "o.a"),
    "slot": ("", "s.a = {}", "s.a"),
    "class": ("", "O.shared = {}", "O.shared"),
    "property": ("", "p.a = {}", "p.held"),
    "module": ("", "module.last = {}", "module.last"),
    "function": ("", "f.note = {}", "getattr(f, 'note', 0)"),
    "defaults": ("", "f.__defaults__ = ({},)", "f.__defaults__[0]"),
    "dict": ("", "d['k'] = {}", "d['k']"),
    "new key": ("", "d['n'] = {}", "d.get('n')"),
    "update": ("", "d.update(k={})", "d['k']"),
    "nested": ("", "d['inner']['k'] = {}", "d['inner']['k']"),
    "ordered": ("", "od['k'] = {}", "od['k']"),
    "list": ("", "l[0] = {}", "l[0]"),
    "end of a list": ("", "l[-1] = {}", "l[-1]"),
    "slice": ("", "l[:1] = [{}]", "l[0]"),
    "append": ("", "l.append({})", "(len(l), l[-1])"),
    "deque": ("", "q.append({})", "(len(q), q[-1] if q else 0)"),
    "nn.Module": ("", "net.extra = {}", "net.extra"),
    "group of parameters": ("", "sgd.param_groups[0]['note'] = {}", "sgd.param_groups[0].get('note')"),
}
VALUES = ("x", "x + 1", "n", "n * 2", "out.item()", "5", "str(n)", "None if n % 2 else x", "(x, n)", "[n]")
WORLD = """
class O: shared = 0
class S: __slots__ = ("a",)
class P:
    held = 0
    a = property(lambda self: self.held, lambda self, value: setattr(self, "held", value))
o, s, p = O(), S(), P()
o.a = s.a = g = 0
d, od, l, q, name = dict(k=0, inner=dict(k=0)), collections.OrderedDict(k=0), [0, 0], collections.deque(maxlen=3), "a"
net = lg.nn.Linear(2, 2)
net.extra = 0
w = lg.nn.Parameter(lg.ones(2))
sgd = lg.optim.SGD([w], 0.1)
def f(a=1): return a
def make(wrap):
    c = 0
    @wrap
    def step(x, n):
        {}
        out = (x * w).sum()
        {}
        return out
    return step, lambda: c
step, get = make(wrap)
"""


def seen(value):
    """What can be compared, down to the types."""
    if isinstance(value, lg.Tensor):
        return "tensor", value.tolist()
    return (type(value), [*map(seen, value)]) if isinstance(value, (tuple, list)) else (type(value), value)


def run(way, value, wrap):
    declared, store, found = WAYS[way]
    module = sys.modules[MODULE] = types.ModuleType(MODULE)
    module.last = None
    space = {"lg": lg, "collections": collections, "module": module, "wrap": wrap}
    exec(WORLD.replace("{}", declared or "pass", 1).replace("{}", store.format(value), 1), space)
    results = []
    for call in range(8):
        x = lg.full((2,), float(call))
        space["step"](x, call)
        held = eval(found, space)
        results.append((seen(held), held is x))
    return results


@pytest.fixture(autouse=True)
def module():
    yield
    del sys.modules[MODULE]


@pytest.mark.every(5)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_only_stored_is_stored_at_each_call(way, value):
    assert run(way, value, lg.compile) == run(way, value, lambda step: step)
